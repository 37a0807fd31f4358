//! An agent of the Agent Client Protocol, with one session at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::exec::OVERLOADED;
use crate::inbox::Inbox;
use crate::output::{self, Output};
use crate::play::{self, Player};
use crate::script::{Outcome, Section};
use crate::voice::{self, During, Ear, Ended, Part, User, Verdict, Voice, text};

/// The session's side of the conversation.
pub(crate) struct Acp {
    session: String,
    /// The id of the prompt, which its answer carries.
    prompt: String,
    ids: Arc<AtomicU64>,
    message: String,
    /// The call that asked.
    asking: Option<String>,
}

impl Acp {
    fn next_id(&self, prefix: &str) -> String {
        format!("{prefix}_{:04}", self.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn update(&self, update: &str) -> String {
        let session = &self.session;
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{update}}}}}"#
        )
    }

    fn chunk(&self, part: Part, content: &str) -> String {
        let kind = match part {
            Part::Text => "agent_message_chunk",
            Part::Reasoning => "agent_thought_chunk",
        };
        let (message, content) = (&self.message, text(content));
        self.update(&format!(
            r#"{{"sessionUpdate":"{kind}","messageId":"{message}","content":{{"type":"text","text":{content}}}}}"#
        ))
    }

    fn call(&self, id: &str, command: &str, status: &str) -> String {
        let (cwd, command) = (text(&voice::current_dir()), text(command));
        self.update(&format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"{id}","name":"shell","kind":"execute","title":{command},"status":"{status}","content":[{{"type":"terminal","terminalId":"{id}"}}],"rawInput":{{"command":{command},"cwd":{cwd}}}}}"#
        ))
    }

    fn over(&self, id: &str, status: &str, printed: &str) -> String {
        let printed = text(printed);
        let code = if status == "completed" { "0" } else { "null" };
        self.update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}","status":"{status}","_meta":{{"terminal_output":{{"terminal_id":"{id}","data":{printed}}},"terminal_exit":{{"terminal_id":"{id}","exit_code":{code},"signal":null}}}}}}"#
        ))
    }

    fn end(&self, body: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},{body}}}"#, self.prompt)
    }
}

impl Voice for Acp {
    fn turn_begins(&mut self, user: &User) -> Vec<String> {
        self.prompt.clone_from(&user.turn);
        Vec::new()
    }

    fn part_begins(&mut self, _: Part) -> Vec<String> {
        self.message = self.next_id("msg");
        Vec::new()
    }

    fn delta(&mut self, part: Part, content: &str) -> Option<String> {
        Some(self.chunk(part, content))
    }

    fn part_ends(&mut self, _: Part, _: Ended<'_>) -> Vec<String> {
        Vec::new()
    }

    fn flood_line(&mut self, content: &str, _: &str) -> String {
        self.chunk(Part::Text, content)
    }

    fn repeats(&self) -> bool {
        false
    }

    fn tool(&mut self, name: &str, input: &Value, output: &str) -> Vec<String> {
        let (id, command) = (self.next_id("call"), voice::command_of(name, input));
        vec![self.call(&id, &command, "in_progress"), self.over(&id, "completed", output)]
    }

    fn asks(&mut self, name: &str, input: &Value) -> Option<(String, Vec<String>)> {
        let (id, command) = (self.next_id("call"), voice::command_of(name, input));
        // It may well be a number that the client uses too.
        let request = self.ids.fetch_add(1, Ordering::Relaxed);
        let session = &self.session;
        let ask = format!(
            r#"{{"jsonrpc":"2.0","id":{request},"method":"session/request_permission","params":{{"sessionId":"{session}","toolCall":{{"toolCallId":"{id}","status":"pending"}},"options":[{{"optionId":"once","name":"Yes","kind":"allow_once"}},{{"optionId":"always","name":"Always","kind":"allow_always"}},{{"optionId":"no","name":"No","kind":"reject_once"}}]}}}}"#
        );
        let lines = vec![self.call(&id, &command, "pending"), ask];
        self.asking = Some(id);
        Some((request.to_string(), lines))
    }

    fn answered(&mut self, verdict: &Verdict) -> Vec<String> {
        let Some(id) = self.asking.take() else { return Vec::new() };
        vec![match verdict {
            Verdict::Allow => self.over(&id, "completed", "ok"),
            Verdict::Deny { .. } => self.over(&id, "failed", ""),
        }]
    }

    fn around_huge(&mut self) -> (String, String) {
        const SPLIT: &str = "\u{1}";
        self.message = self.next_id("msg");
        let whole = self.chunk(Part::Text, SPLIT);
        let marker = text(SPLIT);
        let (head, tail) = whole.split_once(&marker).expect("the text is in the line");
        (format!("{head}\""), format!("\"{tail}"))
    }

    fn interrupted(&mut self, _: During) -> Vec<String> {
        self.asking = None;
        vec![self.end(r#""result":{"stopReason":"cancelled"}"#)]
    }

    fn turn_ends(&mut self, outcome: Outcome, _: &str) -> Vec<String> {
        let message = match outcome {
            Outcome::Success => {
                let used = r#"{"sessionUpdate":"usage_update","used":1050,"size":258400}"#;
                let end = r#""result":{"stopReason":"end_turn","usage":{"totalTokens":1450,"inputTokens":1000,"cachedReadTokens":400,"outputTokens":50,"thoughtTokens":7}}"#;
                return vec![self.update(used), self.end(end)];
            }
            Outcome::Error => text("fake failure"),
            Outcome::ApiError => text(OVERLOADED),
        };
        vec![self.end(&format!(r#""error":{{"code":-32603,"message":{message}}}"#))]
    }
}

/// The agent: hears requests, answers them at once, and lets a player play the session.
pub(crate) struct Server {
    sections: Arc<[Section]>,
    output: Arc<Output>,
    ids: Arc<AtomicU64>,
    open: Option<Open>,
}

struct Open {
    session: String,
    inbox: Arc<Inbox>,
    player: JoinHandle<()>,
}

impl Server {
    pub(crate) fn new(sections: Vec<Section>, output: Arc<Output>) -> Server {
        Server { sections: sections.into(), output, ids: Arc::default(), open: None }
    }

    fn answer(&self, id: &Value, result: &Value) {
        self.output.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
    }

    fn refuse(&self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.output.line(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) {
        match method {
            "initialize" => self.answer(
                id,
                &json!({
                    "protocolVersion": 1,
                    "agentInfo": {"name": "fake", "title": "Fake", "version": "1.0.0"},
                    "agentCapabilities": {
                        "loadSession": true,
                        "promptCapabilities": {"image": true, "embeddedContext": true},
                        "sessionCapabilities": {"resume": {}, "fork": {}},
                    },
                    "authMethods": [],
                    "_meta": {"steering": {"supported": true}},
                }),
            ),
            "session/new" | "session/fork" => {
                let session = voice::session_id(1);
                self.open(&session);
                self.answer(id, &json!({"sessionId": session}));
            }
            "session/resume" | "session/load" => {
                self.open(params["sessionId"].as_str().unwrap_or_default());
                self.answer(id, &json!({}));
            }
            "session/prompt" => self.prompt(id, params),
            "_session/steering" => self.answer(id, &json!({"outcome": "injected"})),
            method => self.refuse(id, -32601, &format!("no method {method}")),
        }
    }

    fn open(&mut self, session: &str) {
        let inbox = Arc::new(Inbox::default());
        let voice = Acp {
            session: session.to_owned(),
            prompt: String::new(),
            ids: Arc::clone(&self.ids),
            message: String::new(),
            asking: None,
        };
        let mut player = Player::new(Box::new(voice), Arc::clone(&self.output), Arc::clone(&inbox));
        let (sections, own) = (Arc::clone(&self.sections), Arc::clone(&inbox));
        let player = thread::spawn(move || play::perform(&sections, &own, &mut player));
        self.open = Some(Open { session: session.to_owned(), inbox, player });
    }

    fn prompt(&mut self, id: &Value, params: &Value) {
        let open = self.open.as_ref().filter(|open| params["sessionId"] == *open.session);
        let Some(open) = open else { return self.refuse(id, -32002, "no such session") };
        let blocks = params["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        open.inbox.push_user(User { text, turn: id.to_string(), ..User::default() });
    }
}

impl Ear for Server {
    fn hear(&mut self, message: &Value) {
        match (message.get("id"), message["method"].as_str()) {
            (Some(id), Some(method)) => self.request(&id.clone(), method, &message["params"]),
            (None, Some("session/cancel")) => {
                if let Some(open) = &self.open {
                    open.inbox.interrupt();
                }
            }
            (Some(id), None) => {
                if let Some(open) = &self.open {
                    open.inbox.push_answer(id.to_string(), verdict(message));
                }
            }
            (None, _) => {}
        }
    }

    fn misses(&mut self) {
        output::stderr(b"not JSON\n");
    }

    /// The process lives until it has played what it began.
    fn ends(&mut self) {
        if let Some(open) = self.open.take() {
            open.inbox.end();
            open.player.join().ok();
        }
    }
}

fn verdict(message: &Value) -> Verdict {
    let outcome = &message["result"]["outcome"];
    match outcome["optionId"].as_str() {
        Some("once" | "always") => Verdict::Allow,
        option => Verdict::Deny { message: "no".to_owned(), stop: option.is_none() },
    }
}
