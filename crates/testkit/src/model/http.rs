//! The little HTTP/1.1 that agents need: bodies with a length in, JSON or SSE out.

use std::future::Future;
use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// The connection is gone, or is to be closed without finishing the answer.
#[derive(Debug)]
pub(crate) struct Lost;

impl From<io::Error> for Lost {
    fn from(_: io::Error) -> Lost {
        Lost
    }
}

pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

pub(crate) struct Connection {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    /// Read and not yet consumed.
    buffer: Vec<u8>,
    /// The answer to HEAD has no body.
    head: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Connection {
        // Chunks must leave when they are written, or `Gate::reached` would lie.
        stream.set_nodelay(true).expect("a fresh TCP socket takes options");
        let (reader, writer) = stream.into_split();
        Connection { reader, writer, buffer: Vec::new(), head: false }
    }

    /// The next request, or `None` when the client is done.
    pub(crate) async fn request(&mut self) -> Result<Option<Request>, Lost> {
        let head = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let rest = self.buffer.split_off(end + 4);
                break std::mem::replace(&mut self.buffer, rest);
            }
            if self.read_more().await? == 0 {
                return Ok(None);
            }
        };
        let mut request = parse_head(&String::from_utf8_lossy(&head)).ok_or(Lost)?;
        self.head = request.method == "HEAD";
        if request.header("expect") == Some("100-continue") {
            self.writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let length = match request.header("content-length") {
            Some(length) => length.parse().map_err(|_| Lost)?,
            None => 0,
        };
        while self.buffer.len() < length {
            if self.read_more().await? == 0 {
                return Err(Lost);
            }
        }
        let rest = self.buffer.split_off(length);
        request.body = std::mem::replace(&mut self.buffer, rest);
        Ok(Some(request))
    }

    pub(crate) async fn json(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<(), Lost> {
        let body = body.to_string();
        let mut answer = head(status, "application/json", headers);
        answer.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        if !self.head {
            answer.push_str(&body);
        }
        self.writer.write_all(answer.as_bytes()).await?;
        Ok(())
    }

    pub(crate) async fn start_stream(&mut self, headers: &[(&str, &str)]) -> Result<(), Lost> {
        let mut answer = head(200, "text/event-stream", headers);
        // With chunks a client can tell a cut stream from a finished one.
        answer.push_str("cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n");
        self.writer.write_all(answer.as_bytes()).await?;
        Ok(())
    }

    pub(crate) async fn event(&mut self, name: &str, data: &Value) -> Result<(), Lost> {
        let event = format!("event: {name}\ndata: {data}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        self.writer.write_all(chunk.as_bytes()).await?;
        Ok(())
    }

    pub(crate) async fn end_stream(&mut self) -> Result<(), Lost> {
        self.writer.write_all(b"0\r\n\r\n").await?;
        Ok(())
    }

    /// Waits for `work`, but not longer than the client stays.
    pub(crate) async fn unless_lost(&mut self, work: impl Future<Output = ()>) -> Result<(), Lost> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                read = self.read_more() => if read? == 0 { return Err(Lost) },
                () = &mut work => return Ok(()),
            }
        }
    }

    async fn read_more(&mut self) -> io::Result<usize> {
        self.reader.read_buf(&mut self.buffer).await
    }
}

fn parse_head(head: &str) -> Option<Request> {
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Some(Request { method, target, headers, body: Vec::new() })
}

fn head(status: u16, content_type: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}
