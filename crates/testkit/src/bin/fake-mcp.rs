//! An MCP server on stdio with one tool, `echo`, which gives its text back.
//!
//! Three texts do more: `fail` is an error of the tool, `progress` is announced
//! first, and `ask` asks the client's user and gives the answer back.

use std::io::{self, BufRead, StdinLock, Write};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let mut client = Client { input: io::stdin().lock(), asked: 0 };
    while let Some(message) = client.read()? {
        // What has no id wants no answer.
        let Some(id) = message.get("id") else { continue };
        let answer = match message["method"].as_str() {
            Some("initialize") => Ok(initialize(&message["params"])),
            Some("ping") => Ok(json!({})),
            Some("tools/list") => Ok(json!({"tools": [echo()]})),
            Some("tools/call") if message["params"]["name"] == "echo" => {
                client.call(&message["params"])
            }
            Some("tools/call") => Err(error(-32602, "there is no such tool")),
            Some(_) => Err(error(-32601, "there is no such method")),
            // An answer to nothing we asked.
            None => continue,
        };
        let answer = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        send(&answer)?;
    }
    Ok(())
}

struct Client {
    input: StdinLock<'static>,
    asked: u64,
}

impl Client {
    /// The next message; what is no JSON is passed over.
    fn read(&mut self) -> io::Result<Option<Value>> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.input.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if let Ok(message) = serde_json::from_str(&line) {
                return Ok(Some(message));
            }
        }
    }

    fn call(&mut self, params: &Value) -> Result<Value, Value> {
        let text = params["arguments"]["text"].as_str().unwrap_or_default();
        let io = |failed: io::Error| error(-32603, &failed.to_string());
        let said = match text {
            "ask" => self.ask().map_err(io)?,
            "progress" => {
                progress(&params["_meta"]["progressToken"]).map_err(io)?;
                text.to_owned()
            }
            text => text.to_owned(),
        };
        let content = json!([{"type": "text", "text": said}]);
        Ok(json!({"content": content, "isError": text == "fail"}))
    }

    /// Asks for a colour; until the answer comes nothing else is listened to.
    fn ask(&mut self) -> io::Result<String> {
        self.asked += 1;
        let id = format!("ask-{}", self.asked);
        let schema = json!({
            "type": "object", "properties": {"colour": {"type": "string"}},
            "required": ["colour"],
        });
        let params = json!({"message": "Which colour?", "requestedSchema": schema});
        send(&json!({
            "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params,
        }))?;
        while let Some(message) = self.read()? {
            if message["id"] == id.as_str() {
                return Ok(format!("answer: {}", message["result"]));
            }
        }
        Ok("nobody answered".to_owned())
    }
}

fn initialize(params: &Value) -> Value {
    json!({
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "fake", "version": "1.0.0"},
    })
}

fn echo() -> Value {
    json!({
        "name": "echo", "description": "Gives its text back",
        "inputSchema": {
            "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
        },
    })
}

/// Tells how far the call is, if the client gave a token to tell it by.
fn progress(token: &Value) -> io::Result<()> {
    if token.is_null() {
        return Ok(());
    }
    let params = json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"});
    send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
}

fn error(code: i64, message: &str) -> Value {
    json!({"code": code, "message": message})
}

fn send(message: &Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{message}")?;
    output.flush()
}
