//! `codex proto`: submissions in, events out. `codex exec` up to 0.41 prints the same events, fewer
//! of them.

use std::process;
use std::sync::Arc;

use serde_json::Value;

use crate::exec::OVERLOADED;
use crate::inbox::Inbox;
use crate::output::{self, Output};
use crate::script::Outcome;
use crate::voice::{self, During, Ear, Ended, Part, User, Verdict, Voice, text};

const USAGE: &str = r#"{"input_tokens":1000,"cached_input_tokens":400,"output_tokens":50,"reasoning_output_tokens":7,"total_tokens":1050}"#;

pub(crate) struct Proto {
    /// The submission that began the task.
    submission: String,
    by: By,
    n_calls: u64,
    /// The call that asked, and its command.
    asking: Option<(String, String)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Proto,
    /// Streams nothing and ends without a word.
    OldExec,
}

impl Proto {
    pub(crate) fn new() -> Proto {
        Proto { submission: String::new(), by: By::Proto, n_calls: 0, asking: None }
    }

    pub(crate) fn old_exec() -> Proto {
        Proto { by: By::OldExec, ..Proto::new() }
    }

    fn event(&self, msg: &str) -> String {
        format!(r#"{{"id":"{}","msg":{msg}}}"#, self.submission)
    }

    fn tokens(&self) -> String {
        let limits = match self.by {
            By::Proto => r#","rate_limits":{"primary":null,"secondary":null}"#,
            By::OldExec => "",
        };
        self.event(&format!(
            r#"{{"type":"token_count","info":{{"total_token_usage":{USAGE},"last_token_usage":{USAGE},"model_context_window":272000}}{limits}}}"#
        ))
    }

    fn next_call(&mut self) -> String {
        self.n_calls += 1;
        format!("call_{:04}", self.n_calls)
    }

    fn runs(&self, id: &str, command: &str, output: &str) -> Vec<String> {
        let (cwd, command, output) = (text(&voice::current_dir()), text(command), text(output));
        vec![
            self.event(&format!(
                r#"{{"type":"exec_command_begin","call_id":"{id}","command":["bash","-lc",{command}],"cwd":{cwd},"parsed_cmd":[{{"type":"unknown","cmd":{command}}}]}}"#
            )),
            self.event(&format!(
                r#"{{"type":"exec_command_end","call_id":"{id}","stdout":{output},"stderr":"","aggregated_output":{output},"exit_code":0,"duration":{{"secs":0,"nanos":6609716}},"formatted_output":{output}}}"#
            )),
        ]
    }
}

/// The line that `codex proto` greets with.
pub(crate) fn greeting() -> String {
    let id = voice::session_id(0);
    format!(
        r#"{{"id":"","msg":{{"type":"session_configured","session_id":"{id}","model":"gpt-5-codex","history_log_id":0,"history_entry_count":0,"rollout_path":"/home/agent/.codex/sessions/rollout-{id}.jsonl"}}}}"#
    )
}

impl Voice for Proto {
    fn turn_begins(&mut self, user: &User) -> Vec<String> {
        let mut lines = Vec::new();
        self.submission = user.turn.clone();
        if self.by == By::OldExec {
            let cwd = text(&voice::current_dir());
            self.submission = "0".to_owned();
            lines.push(format!(
                r#"{{"sandbox":"read-only","model":"gpt-5-codex","reasoning effort":"none","reasoning summaries":"auto","workdir":{cwd},"provider":"fake","approval":"never"}}"#
            ));
            lines.push(format!(r#"{{"prompt":{}}}"#, text(&user.text)));
        }
        lines.push(self.event(r#"{"type":"task_started","model_context_window":272000}"#));
        if self.by == By::Proto {
            lines.push(self.event(r#"{"type":"token_count","info":null,"rate_limits":{"primary":null,"secondary":null}}"#));
        }
        lines
    }

    fn part_begins(&mut self, part: Part) -> Vec<String> {
        match (self.by, part) {
            (By::Proto, Part::Reasoning) => {
                vec![self.event(r#"{"type":"agent_reasoning_section_break"}"#)]
            }
            _ => Vec::new(),
        }
    }

    fn delta(&mut self, part: Part, content: &str) -> Option<String> {
        let kind = match part {
            Part::Text => "agent_message_delta",
            Part::Reasoning => "agent_reasoning_delta",
        };
        let line = || self.event(&format!(r#"{{"type":"{kind}","delta":{}}}"#, text(content)));
        (self.by == By::Proto).then(line)
    }

    fn part_ends(&mut self, part: Part, ended: Ended<'_>) -> Vec<String> {
        let Ended::Whole(whole) = ended else { return Vec::new() };
        let whole = text(whole);
        vec![self.event(&match part {
            Part::Text => format!(r#"{{"type":"agent_message","message":{whole}}}"#),
            Part::Reasoning => format!(r#"{{"type":"agent_reasoning","text":{whole}}}"#),
        })]
    }

    fn flood_line(&mut self, content: &str, _: &str) -> String {
        let content = text(content);
        self.event(&match self.by {
            By::Proto => format!(r#"{{"type":"agent_message_delta","delta":{content}}}"#),
            By::OldExec => format!(r#"{{"type":"agent_message","message":{content}}}"#),
        })
    }

    fn repeats(&self) -> bool {
        self.by == By::Proto
    }

    fn tool(&mut self, name: &str, input: &Value, output: &str) -> Vec<String> {
        let id = self.next_call();
        self.runs(&id, &voice::command_of(name, input), output)
    }

    fn asks(&mut self, name: &str, input: &Value) -> Option<(String, Vec<String>)> {
        if self.by == By::OldExec {
            return None;
        }
        let (id, command) = (self.next_call(), voice::command_of(name, input));
        let line = self.event(&format!(
            r#"{{"type":"exec_approval_request","call_id":"{id}","command":["bash","-lc",{}],"cwd":{}}}"#,
            text(&command),
            text(&voice::current_dir()),
        ));
        self.asking = Some((id, command));
        // The answer names the submission, not the call.
        Some((self.submission.clone(), vec![line]))
    }

    fn answered(&mut self, verdict: &Verdict) -> Vec<String> {
        match (self.asking.take(), verdict) {
            (Some((id, command)), Verdict::Allow) => self.runs(&id, &command, "ok"),
            // Nothing more is said about it.
            _ => Vec::new(),
        }
    }

    fn around_huge(&mut self) -> (String, String) {
        let id = &self.submission;
        let head = format!(r#"{{"id":"{id}","msg":{{"type":"agent_message","message":""#);
        (head, r#""}}"#.to_owned())
    }

    fn interrupted(&mut self, _: During) -> Vec<String> {
        self.asking = None;
        vec![self.event(r#"{"type":"turn_aborted","reason":"interrupted"}"#)]
    }

    fn turn_ends(&mut self, outcome: Outcome, said: &str) -> Vec<String> {
        let error = match outcome {
            Outcome::Success if self.by == By::OldExec => return vec![self.tokens()],
            Outcome::Success => {
                let said = if said.is_empty() { "null".to_owned() } else { text(said) };
                let end = format!(r#"{{"type":"task_complete","last_agent_message":{said}}}"#);
                return vec![self.tokens(), self.event(&end)];
            }
            Outcome::Error => text("fake failure"),
            Outcome::ApiError => text(OVERLOADED),
        };
        let mut lines = vec![self.event(&format!(r#"{{"type":"error","message":{error}}}"#))];
        if self.by == By::Proto {
            let end = r#"{"type":"task_complete","last_agent_message":null}"#;
            lines.push(self.event(end));
        }
        lines
    }
}

/// Hears submissions.
pub(crate) struct ProtoEar {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) output: Arc<Output>,
}

impl Ear for ProtoEar {
    fn hear(&mut self, message: &Value) {
        let (id, op) = (message["id"].as_str().unwrap_or_default(), &message["op"]);
        match op["type"].as_str().unwrap_or_default() {
            // During a task it is taken into it.
            "user_turn" | "user_input" if !self.inbox.is_busy() => {
                let items = op["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                let text = items.iter().filter_map(|item| item["text"].as_str()).collect();
                let turn = id.to_owned();
                self.inbox.push_user(User { text, turn, ..User::default() });
            }
            "interrupt" => self.inbox.interrupt(),
            "exec_approval" | "patch_approval" => {
                let id = op["id"].as_str().unwrap_or_default().to_owned();
                let verdict = match op["decision"].as_str() {
                    Some("approved" | "approved_for_session") => Verdict::Allow,
                    decision => Verdict::Deny {
                        message: "denied".to_owned(),
                        stop: decision == Some("abort"),
                    },
                };
                self.inbox.push_answer(id, verdict);
            }
            "shutdown" => {
                let msg = r#"{"type":"shutdown_complete"}"#;
                self.output.line(&format!(r#"{{"id":{},"msg":{msg}}}"#, text(id)));
                process::exit(0);
            }
            _ => {}
        }
    }

    fn misses(&mut self) {
        output::stderr(b"invalid submission\n");
    }

    fn ends(&mut self) {
        self.inbox.end();
    }
}
