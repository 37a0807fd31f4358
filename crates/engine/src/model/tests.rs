mod answers;
mod refusals;
mod requests;
mod server;

use std::time::Duration;

use tieline_wire::responses::{Item, Request, StreamEvent};

use super::{Client, Key, ModelError, Provider, Secret, Stream};

const KEY: &str = "sk-very-secret-123";

/// A provider that is in a hurry.
fn provider(base_url: &str) -> Provider {
    let mut provider = Provider::new("test", base_url);
    provider.key = Key::Given(Secret::new(KEY));
    provider.retry_pause = Duration::from_millis(1);
    provider.stream_idle_timeout = Duration::from_secs(60);
    provider
}

fn client(base_url: &str) -> Client {
    Client::new(provider(base_url)).unwrap()
}

fn request() -> Request {
    Request::new("gpt-5.5", vec![Item::message("user", "hi")])
}

async fn ask(base_url: &str) -> Result<Stream, ModelError> {
    client(base_url).stream(&request()).await
}

/// How many events came, and how it ended.
async fn drain(stream: &mut Stream) -> (usize, Result<(), ModelError>) {
    let mut events = 0;
    loop {
        match stream.next().await {
            Ok(Some(_)) => events += 1,
            Ok(None) => return (events, Ok(())),
            Err(error) => return (events, Err(error)),
        }
    }
}

/// The text of an answer, and how many events nobody knows.
async fn text(stream: &mut Stream) -> Result<(String, Vec<String>), ModelError> {
    let (mut text, mut unknown) = (String::new(), Vec::new());
    while let Some(event) = stream.next().await? {
        match event {
            StreamEvent::Text(delta) => text.push_str(&delta.delta),
            StreamEvent::Unknown(kind) => unknown.push(kind.to_string()),
            _ => {}
        }
    }
    Ok((text, unknown))
}
