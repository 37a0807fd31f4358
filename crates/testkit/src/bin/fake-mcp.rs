//! An MCP server on stdio with one tool, `echo`, which gives its text back.
//!
//! Some texts do more. `fail` is an error of the tool, `progress` is announced first, `ask` asks the
//! client's user, `roots` and `sample` ask the client itself, and all three give the answer back.
//! `wait` waits until it is cancelled and answers nothing; `cancelled` says how often that was.
//! `crash` ends the server, `garbage` puts a line that is no JSON before the answer, `image` and
//! `structured` are answers of their kind, `huge` is 2 MiB, `env NAME` is a variable, `cwd` the
//! directory, `more` makes a second tool appear.
//!
//! Arguments: `--documents` offers two documents and a pattern, on two pages; `--tools` offers tools
//! with other names, one of which only looks; `--silent` never answers; `--broken` complains, with
//! its variable `TOKEN`, and ends.

use std::collections::VecDeque;
use std::io::{self, BufRead, StdinLock, Write};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let is_set = |flag: &str| std::env::args().skip(1).any(|arg| arg == flag);
    if is_set("--broken") {
        let token = std::env::var("TOKEN").unwrap_or_default();
        writeln!(io::stderr(), "the token {token} is not accepted")?;
        std::process::exit(2);
    }
    let mut client = Client {
        input: io::stdin().lock(),
        later: VecDeque::new(),
        asked: 0,
        cancelled: 0,
        has_more: false,
        has_documents: is_set("--documents"),
        has_tools: is_set("--tools"),
    };
    while let Some(message) = client.next()? {
        // What has no id wants no answer.
        let Some(id) = message.get("id") else { continue };
        if is_set("--silent") {
            continue;
        }
        let params = &message["params"];
        let answer = match message["method"].as_str() {
            Some("initialize") => Ok(client.initialize(params)),
            Some("ping") => Ok(json!({})),
            Some("tools/list") => Ok(json!({"tools": client.tools()})),
            Some("tools/call") => match client.call(id, params) {
                Some(answer) => answer,
                None => continue,
            },
            Some("resources/list") => Ok(documents(params)),
            Some("resources/templates/list") => Ok(json!({"resourceTemplates": [
                {"uriTemplate": "note://{name}", "name": "notes"},
            ]})),
            Some("resources/read") => Ok(json!({"contents": [
                {"uri": params["uri"], "text": "the document"},
            ]})),
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
    /// What came while something else was waited for.
    later: VecDeque<Value>,
    asked: u64,
    cancelled: u64,
    has_more: bool,
    has_documents: bool,
    has_tools: bool,
}

impl Client {
    /// The next message, those first that had to wait.
    fn next(&mut self) -> io::Result<Option<Value>> {
        match self.later.pop_front() {
            Some(message) => Ok(Some(message)),
            None => self.read(),
        }
    }

    /// The next message from the client; what is no JSON is passed over.
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

    fn initialize(&self, params: &Value) -> Value {
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if self.has_documents {
            capabilities["resources"] = json!({});
        }
        json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": {"name": "fake", "version": "1.0.0"},
        })
    }

    fn tools(&self) -> Vec<Value> {
        let mut tools = vec![echo()];
        let tool = |name: &str, hints: Value| {
            json!({
                "name": name, "inputSchema": {"type": "object"}, "annotations": hints,
            })
        };
        if self.has_tools {
            tools.push(tool("look", json!({"readOnlyHint": true})));
            tools.push(tool("a.b", json!({"readOnlyHint": false})));
            tools.push(tool("a/b", json!({})));
        }
        if self.has_more {
            tools.push(tool("more", json!({})));
        }
        tools
    }

    /// The answer; none where there is none to give.
    fn call(&mut self, id: &Value, params: &Value) -> Option<Result<Value, Value>> {
        if params["name"] != "echo" && !self.has_tools {
            return Some(Err(error(-32602, "there is no such tool")));
        }
        let text = params["arguments"]["text"].as_str().unwrap_or_default();
        let said = match text {
            "wait" => return self.wait(id).err().map(failed),
            "ask" => {
                let schema = json!({
                    "type": "object", "properties": {"colour": {"type": "string"}},
                    "required": ["colour"],
                });
                let params = json!({"message": "Which colour?", "requestedSchema": schema});
                self.ask("elicitation/create", params)
            }
            "roots" => self.ask("roots/list", json!({})),
            "sample" => {
                let says = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
                self.ask("sampling/createMessage", json!({"messages": [says], "maxTokens": 1}))
            }
            _ => self.say(text, &params["_meta"]["progressToken"]),
        };
        let said = match said {
            Ok(said) => said,
            Err(why) => return Some(failed(why)),
        };
        let content = match text {
            "image" => json!({"type": "image", "mimeType": "image/gif", "data": "R0lGODdh"}),
            _ => json!({"type": "text", "text": said}),
        };
        let mut result = json!({"content": [content], "isError": text == "fail"});
        if text == "structured" {
            result["structuredContent"] = json!({"colour": "blue"});
        }
        Some(Ok(result))
    }

    fn say(&mut self, text: &str, token: &Value) -> io::Result<String> {
        match text {
            "progress" => progress(token)?,
            "crash" => {
                writeln!(io::stderr(), "it is over")?;
                std::process::exit(3);
            }
            "garbage" => {
                writeln!(io::stdout().lock(), "this is no JSON")?;
            }
            "more" => {
                self.has_more = true;
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))?;
            }
            "cancelled" => return Ok(format!("{} cancelled", self.cancelled)),
            "huge" => return Ok("x".repeat(2 << 20)),
            "cwd" => return Ok(std::env::current_dir()?.display().to_string()),
            _ => {
                if let Some(name) = text.strip_prefix("env ") {
                    return Ok(std::env::var(name).unwrap_or_else(|_| "not set".to_owned()));
                }
            }
        }
        Ok(text.to_owned())
    }

    /// Waits until the call is cancelled.
    fn wait(&mut self, id: &Value) -> io::Result<()> {
        while let Some(message) = self.read()? {
            let is_it = message["method"] == "notifications/cancelled";
            if is_it && message["params"]["requestId"] == *id {
                self.cancelled += 1;
                return Ok(());
            }
            self.later.push_back(message);
        }
        Ok(())
    }

    /// Asks the client; until the answer comes nothing else is done.
    fn ask(&mut self, method: &str, params: Value) -> io::Result<String> {
        self.asked += 1;
        let id = format!("ask-{}", self.asked);
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        while let Some(message) = self.read()? {
            if message["id"] == id.as_str() {
                let answer = message.get("result").unwrap_or(&message["error"]);
                return Ok(format!("answer: {answer}"));
            }
            self.later.push_back(message);
        }
        Ok("nobody answered".to_owned())
    }
}

fn echo() -> Value {
    json!({
        "name": "echo", "description": "Gives its text back",
        "inputSchema": {
            "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
        },
    })
}

/// Two documents on two pages.
fn documents(params: &Value) -> Value {
    match params["cursor"].as_str() {
        Some("2") => json!({"resources": [{"uri": "note://two", "name": "two"}]}),
        _ => json!({"resources": [{"uri": "note://one", "name": "one"}], "nextCursor": "2"}),
    }
}

/// Tells how far the call is, if the client gave a token to tell it by.
fn progress(token: &Value) -> io::Result<()> {
    if token.is_null() {
        return Ok(());
    }
    let params = json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"});
    send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
}

fn failed(why: io::Error) -> Result<Value, Value> {
    Err(error(-32603, &why.to_string()))
}

fn error(code: i64, message: &str) -> Value {
    json!({"code": code, "message": message})
}

fn send(message: &Value) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{message}")?;
    output.flush()
}
