//! The least of an HTTP server: it writes the bytes it is told to.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What follows an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// The connection is closed.
    Close,
    /// The next request may come.
    Stay,
    /// Nothing, for ever.
    Hang,
}

#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) bytes: Vec<u8>,
    pub(super) then: Then,
}

/// One request: its head, and its body.
pub(super) type Seen = (String, Vec<u8>);

/// Gives its replies in order; the last one repeats.
pub(super) struct Server {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let accepting = tokio::spawn(accept(listener, replies, seen.clone(), connections.clone()));
        Self { url, seen, connections, accepting }
    }

    pub(super) fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    replies: Vec<Reply>,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
) {
    let mut tasks = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        *connections.lock().unwrap() += 1;
        tasks.spawn(serve(stream, replies.clone(), seen.clone()));
        while tasks.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: TcpStream, replies: Vec<Reply>, seen: Arc<Mutex<Vec<Seen>>>) {
    stream.set_nodelay(true).unwrap();
    loop {
        let Some(request) = read(&mut stream).await else { return };
        let reply = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            let at = seen.len().min(replies.len()) - 1;
            replies[at].clone()
        };
        // A client that hangs up in the middle is part of some tests.
        if stream.write_all(&reply.bytes).await.is_err() {
            return;
        }
        match reply.then {
            Then::Close => return,
            Then::Stay => {}
            Then::Hang => std::future::pending().await,
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let length = text.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
    });
    let mut body = bytes.split_off(head + 4);
    while body.len() < length.unwrap_or(0) {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((text, body))
}

/// A stream whose end is the end of the connection.
pub(super) fn open_ended(body: &[u8]) -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    Reply { bytes: [head.as_bytes(), body].concat(), then: Then::Close }
}

/// A stream in chunks, with or without its end.
pub(super) fn chunked<'a>(
    chunks: impl IntoIterator<Item = &'a [u8]>,
    whole: bool,
    headers: &str,
) -> Reply {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\
         {headers}\r\n"
    )
    .into_bytes();
    for chunk in chunks {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    if whole {
        bytes.extend(b"0\r\n\r\n");
    }
    Reply { bytes, then: if whole { Then::Stay } else { Then::Close } }
}

/// A refusal.
pub(super) fn refusal(status: u16, headers: &str, body: &str) -> Reply {
    let head = format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    Reply { bytes: [head.as_bytes(), body.as_bytes()].concat(), then: Then::Stay }
}
