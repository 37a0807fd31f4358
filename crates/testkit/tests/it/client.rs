//! A raw HTTP client, so that the server is not tested by its own code.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    /// The body ended as its framing says.
    pub(crate) complete: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The `data` of every server-sent event.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    pub(crate) fn types(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    /// All chunks of text.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |event: &Value| match event["type"].as_str() {
            Some("content_block_delta") => event["delta"]["text"].as_str().map(str::to_owned),
            Some("response.output_text.delta") => event["delta"].as_str().map(str::to_owned),
            _ => None,
        };
        self.events().iter().filter_map(text).collect()
    }
}

pub(crate) async fn post(url: &str, path: &str, body: &Value) -> Answer {
    request(url, "POST", path, &body.to_string()).await
}

pub(crate) async fn request(url: &str, method: &str, path: &str, body: &str) -> Answer {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    read(stream, method).await
}

async fn read(mut stream: BufReader<TcpStream>, method: &str) -> Answer {
    let status = line(&mut stream).await;
    let status = status.split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = Vec::new();
    loop {
        match line(&mut stream).await {
            end if end.is_empty() => break,
            header => headers.push(header),
        }
    }
    let mut answer = Answer { status, headers, body: String::new(), complete: false };
    if method == "HEAD" {
        answer.complete = true;
        return answer;
    }
    let length = answer.headers.iter().find_map(|header| header.strip_prefix("content-length: "));
    if let Some(length) = length {
        let mut body = vec![0; length.parse().unwrap()];
        answer.complete = stream.read_exact(&mut body).await.is_ok();
        answer.body = String::from_utf8(body).unwrap();
        return answer;
    }
    loop {
        let Ok(size) = usize::from_str_radix(&line(&mut stream).await, 16) else { return answer };
        if size == 0 {
            answer.complete = true;
            return answer;
        }
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).await.unwrap();
        chunk.truncate(size);
        answer.body.push_str(str::from_utf8(&chunk).unwrap());
    }
}

async fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    // A cut connection reads as an empty line.
    stream.read_line(&mut line).await.unwrap_or_default();
    line.trim_end().to_owned()
}

/// A Messages request with this one user text.
pub(crate) fn ask(text: &str) -> Value {
    json!({
        "model": "claude-opus-5-5", "stream": true, "max_tokens": 1000,
        "system": [{"type": "text", "text": "x\n - Primary working directory: /ws/here\n"}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
    })
}

/// `ask` with the tool calls of `answer` answered.
pub(crate) fn with_results(mut ask: Value, n: usize) -> Value {
    let result =
        |i| json!({"type": "tool_result", "tool_use_id": format!("t{i}"), "content": "ok"});
    let results: Vec<Value> = (0..n).map(result).collect();
    let messages = ask["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": []}));
    messages.push(json!({"role": "user", "content": results}));
    ask
}
