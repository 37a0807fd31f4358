//! Claude Code: stream-json and the control protocol.

mod frames;

use std::process;
use std::sync::Arc;

use serde_json::{Value, json};

use self::frames::Session;
use crate::inbox::Inbox;
use crate::options::Options;
use crate::output::{self, Output};
use crate::script::Outcome;
use crate::voice::{During, Ear, Ended, Part, User, Verdict, Voice};

pub(crate) const VERSION: &str = "2.1.325 (Claude Code)";

pub(crate) struct Claude {
    session: Session,
    partial: bool,
    replay: bool,
    /// The message that is being written.
    message_id: String,
    /// The tool that asked, and its request.
    asking: Option<(String, String)>,
}

impl Claude {
    pub(crate) fn new(options: &Options) -> Claude {
        Claude {
            session: Session::new(options),
            partial: options.partial,
            replay: options.replay,
            message_id: String::new(),
            asking: None,
        }
    }

    fn event(&mut self, event: &str) -> String {
        let id = self.message_id.clone();
        self.session.stream_event(&id, event)
    }

    fn block(part: Part, text: &str) -> String {
        match part {
            Part::Text => frames::text_block(text),
            Part::Reasoning => frames::thinking_block(text),
        }
    }

    fn tool_use(&mut self, name: &str, input: &Value) -> (String, String) {
        let (message_id, id) = (self.session.next_id("msg"), self.session.next_id("toolu"));
        let block = frames::tool_block(&id, name, input);
        let line = self.session.assistant(&message_id, &block, false);
        (id, line)
    }
}

impl Voice for Claude {
    fn turn_begins(&mut self, user: &User) -> Vec<String> {
        let mut lines = Vec::new();
        if self.replay {
            lines.push(self.session.replay(&user.line));
        }
        lines.push(self.session.init());
        lines
    }

    fn part_begins(&mut self, part: Part) -> Vec<String> {
        self.message_id = self.session.next_id("msg");
        if !self.partial {
            return Vec::new();
        }
        let block = Self::block(part, "");
        let begin =
            format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
        let id = self.message_id.clone();
        vec![self.session.status(), self.session.message_start(&id), self.event(&begin)]
    }

    fn delta(&mut self, part: Part, text: &str) -> Option<String> {
        let (kind, key) = match part {
            Part::Text => ("text_delta", "text"),
            Part::Reasoning => ("thinking_delta", "thinking"),
        };
        self.partial.then(|| self.event(&frames::delta(kind, key, text)))
    }

    fn part_ends(&mut self, part: Part, ended: Ended<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        if let Ended::Whole(text) | Ended::Cut(text) = ended {
            let (id, is_cut) = (self.message_id.clone(), matches!(ended, Ended::Cut(_)));
            lines.push(self.session.assistant(&id, &Self::block(part, text), is_cut));
        }
        if self.partial {
            lines.push(self.event(r#"{"type":"content_block_stop","index":0}"#));
            lines.push(self.event(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":50}}"#));
            lines.push(self.event(r#"{"type":"message_stop"}"#));
        }
        lines
    }

    fn flood_line(&mut self, text: &str, _: &str) -> String {
        self.event(&frames::delta("text_delta", "text", text))
    }

    fn tool(&mut self, name: &str, input: &Value, output: &str) -> Vec<String> {
        let (id, begin) = self.tool_use(name, input);
        vec![begin, self.session.tool_result(&id, output, false)]
    }

    fn asks(&mut self, name: &str, input: &Value) -> Option<(String, Vec<String>)> {
        let (id, begin) = self.tool_use(name, input);
        let request_id = self.session.next_uuid();
        let ask = frames::can_use_tool(&request_id, &id, name, input);
        self.asking = Some((id, request_id.clone()));
        Some((request_id, vec![begin, ask]))
    }

    fn answered(&mut self, verdict: &Verdict) -> Vec<String> {
        let Some((id, _)) = self.asking.take() else { return Vec::new() };
        vec![match verdict {
            Verdict::Allow => self.session.tool_result(&id, "ok", false),
            Verdict::Deny { message, .. } => self.session.tool_result(&id, message, true),
        }]
    }

    fn around_huge(&mut self) -> (String, String) {
        let id = self.session.next_id("msg");
        let (head, tail) = self.session.assistant_around(&id, false);
        (format!(r#"{head}{{"type":"text","text":""#), format!("\"}}{tail}"))
    }

    fn interrupted(&mut self, during: During) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some((id, request_id)) = self.asking.take() {
            lines.push(frames::cancel_request(&request_id));
            let refusal = "The user doesn't want to proceed with this tool use.";
            lines.push(self.session.tool_result(&id, refusal, true));
        }
        let (text, reason) = match during {
            During::Text => ("[Request interrupted by user]", "aborted_streaming"),
            During::Tool => ("[Request interrupted by user for tool use]", "aborted_tools"),
        };
        lines.push(self.session.user(&format!("[{}]", frames::text_block(text))));
        lines.push(self.session.result(Outcome::Error, reason, ""));
        lines
    }

    fn turn_ends(&mut self, outcome: Outcome, said: &str) -> Vec<String> {
        let reason = match outcome {
            Outcome::Success => "completed",
            Outcome::Error => "error",
            Outcome::ApiError => "api_error",
        };
        vec![self.session.result(outcome, reason, said)]
    }
}

/// Hears user messages and control requests, and answers the latter at once.
pub(crate) struct ClaudeEar {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) output: Arc<Output>,
}

impl ClaudeEar {
    fn control(&self, message: &Value) {
        let request = &message["request"];
        let answer = match request["subtype"].as_str().unwrap_or_default() {
            "initialize" => frames::initialize_answer(),
            "interrupt" => r#"{"still_queued":[]}"#.to_owned(),
            "set_permission_mode" => json!({"mode": request["mode"]}).to_string(),
            "set_model" => json!({"model": request["model"]}).to_string(),
            "mcp_status" => r#"{"mcpServers":[]}"#.to_owned(),
            _ => "{}".to_owned(),
        };
        self.output.line(&frames::control_response(&message["request_id"], &answer));
        if request["subtype"] == "interrupt" {
            self.inbox.interrupt();
        }
    }
}

impl Ear for ClaudeEar {
    fn hear(&mut self, message: &Value) {
        match message["type"].as_str() {
            Some("user") => {
                let text = content(&message["message"]["content"]);
                let line = message.clone();
                self.inbox.push_user(User { text, line, ..User::default() });
            }
            Some("control_request") => self.control(message),
            Some("control_response") => {
                let response = &message["response"];
                let id = response["request_id"].as_str().unwrap_or_default().to_owned();
                self.inbox.push_answer(id, verdict(&response["response"]));
            }
            _ => {}
        }
    }

    fn misses(&mut self) {
        // The real one ends at the first line it cannot read.
        output::stderr(b"Error parsing streaming input line\n");
        process::exit(1);
    }

    fn ends(&mut self) {
        self.inbox.end();
    }
}

/// A prompt on the command line, as a message.
pub(crate) fn prompt(text: String) -> User {
    let line = json!({"message": {"role": "user", "content": text}});
    User { text, line, ..User::default() }
}

fn content(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

fn verdict(answer: &Value) -> Verdict {
    if answer["behavior"] == "allow" {
        return Verdict::Allow;
    }
    let message = answer["message"].as_str().unwrap_or("denied").to_owned();
    Verdict::Deny { message, stop: answer["interrupt"] == true }
}
