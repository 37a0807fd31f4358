//! How fast an answer is read: 10^5 deltas over the loopback interface, as fast as they come.
//!
//! `cargo run --release -p tieline-engine --example model_speed`

use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use tieline_engine::model::{Client, Provider};
use tieline_wire::responses::{Item, Request, StreamEvent};
use tieline_wire::sse::Parser;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const DELTAS: usize = 100_000;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Runtime::new()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let body = answer();
    let mut out = std::io::stdout();
    let size = body.len() as f64 / 1e6;
    writeln!(out, "{DELTAS} deltas, {size:.1} MB, best of {ROUNDS}")?;

    let best = |times: Vec<Duration>| times.into_iter().min().unwrap_or_default().as_secs_f64();
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let mut parser = Parser::default();
        let mut bytes = 0;
        for chunk in body.chunks(8192) {
            parser.feed(chunk);
            while parser.advance()? {
                if let StreamEvent::Text(delta) = StreamEvent::parse(parser.event().data) {
                    bytes += delta.delta.len();
                }
            }
        }
        times.push(begin.elapsed());
        assert_eq!(bytes, DELTAS * 6);
    }
    let time = best(times);
    writeln!(out, "read in memory: {:.0} events/s, {:.0} MB/s", DELTAS as f64 / time, size / time)?;

    for events_per_chunk in [1, 40] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let server = tokio::spawn(serve(listener, chunked(&body, events_per_chunk)));
        let client = Client::new(Provider::new("loopback", url))?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(read(&client).await?);
        }
        let time = best(times);
        let (events, speed) = (DELTAS as f64 / time, size / time);
        writeln!(
            out,
            "over loopback, {events_per_chunk} to a chunk: {events:.0} events/s, {speed:.0} MB/s"
        )?;
        server.abort();
    }
    Ok(())
}

async fn read(client: &Client) -> Result<Duration, Box<dyn Error>> {
    let request = Request::new("m", vec![Item::message("user", "hi")]);
    let begin = Instant::now();
    let mut stream = client.stream(&request).await?;
    let mut bytes = 0;
    while let Some(event) = stream.next().await? {
        if let StreamEvent::Text(delta) = event {
            bytes += delta.delta.len();
        }
    }
    assert_eq!(bytes, DELTAS * 6);
    Ok(begin.elapsed())
}

fn answer() -> Vec<u8> {
    let mut body = Vec::new();
    for n in 0..DELTAS {
        body.extend(
            format!(
                "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\
                 \"sequence_number\":{n},\"item_id\":\"msg_0123456789abcdef\",\"output_index\":0,\
                 \"content_index\":0,\"delta\":\" words\",\"logprobs\":[]}}\n\n"
            )
            .bytes(),
        );
    }
    body.extend(b"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n");
    body
}

/// Servers write a chunk for each event; what stands between may put several into one.
fn chunked(body: &[u8], events: usize) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    let text = String::from_utf8_lossy(body);
    let all: Vec<&str> = text.split_inclusive("\n\n").collect();
    for events in all.chunks(events) {
        let chunk = events.concat();
        bytes.extend(format!("{:x}\r\n{chunk}\r\n", chunk.len()).bytes());
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

async fn serve(listener: TcpListener, answer: Vec<u8>) -> std::io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut buffer = [0; 4096];
        // The request is small and comes at once.
        while stream.read(&mut buffer).await? > 0 {
            stream.write_all(&answer).await?;
        }
    }
}
