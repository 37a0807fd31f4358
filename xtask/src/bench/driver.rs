//! The drivers under measurement, and what differs between them.

use serde_json::json;
use tieline_wire::text::Str;
use tieline_wire::{claude, codex_app, codex_exec, jsonrpc, sqeq};

/// A driver, by the name users give its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Driver {
    Claude,
    Codex,
    CodexExec,
    CodexProto,
}

pub(super) const DRIVERS: [Driver; 4] =
    [Driver::Claude, Driver::Codex, Driver::CodexExec, Driver::CodexProto];

impl Driver {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::CodexExec => "codex-exec",
            Self::CodexProto => "codex-proto",
        }
    }

    /// The variable that names its program.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::Claude => "TIELINE_CLAUDE",
            _ => "TIELINE_CODEX",
        }
    }

    /// The version the fake agent pretends to be.
    pub(super) fn fake_version(self) -> Option<&'static str> {
        match self {
            Self::Claude => None,
            Self::Codex | Self::CodexExec => Some("0.166.0"),
            Self::CodexProto => Some("0.42.0"),
        }
    }

    /// How the fake agent is made to speak this wire without us.
    pub(super) fn fake_args(self) -> &'static [&'static str] {
        match self {
            Self::Claude => {
                &["--print", "--output-format", "stream-json", "--include-partial-messages", "go"]
            }
            Self::Codex => &["app-server"],
            Self::CodexExec => &["exec", "--json", "-"],
            Self::CodexProto => &["proto"],
        }
    }

    /// What goes into the fake agent for one turn.
    pub(super) fn fake_input(self) -> &'static str {
        match self {
            Self::Claude => "",
            Self::Codex => concat!(
                r#"{"id":1,"method":"thread/resume","params":{"threadId":"bench"}}"#,
                "\n",
                r#"{"id":2,"method":"turn/start","params":{"threadId":"bench","input":[]}}"#,
                "\n",
            ),
            Self::CodexExec => "go",
            Self::CodexProto => "{\"id\":\"sub-1\",\"op\":{\"type\":\"user_turn\",\"items\":[]}}\n",
        }
    }

    /// How the fake agent is made to speak this wire for as many turns as come on its stdin.
    pub(super) fn fake_args_of_turns(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[
                "--print",
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "--include-partial-messages",
            ],
            _ => self.fake_args(),
        }
    }

    /// What goes into the fake agent before its first turn.
    pub(super) fn fake_opening(self) -> String {
        match self {
            Self::Codex => self.fake_input().split_inclusive('\n').take(1).collect(),
            _ => String::new(),
        }
    }

    /// What goes into the fake agent for a turn with this prompt, which is a word or two.
    pub(super) fn fake_turn(self, prompt: &str) -> String {
        let line = match self {
            Self::Codex => json!({"id": 2, "method": "turn/start", "params": {
                "threadId": "bench",
                "input": [{"type": "text", "text": prompt}],
            }}),
            _ => json!({"type": "user", "message": {"role": "user", "content": prompt}}),
        };
        format!("{line}\n")
    }

    /// What only the last line of a turn has.
    pub(super) fn end_of_turn(self) -> &'static str {
        match self {
            Self::Codex => r#""method":"turn/completed""#,
            _ => r#""type":"result""#,
        }
    }

    /// What the lines of a flood are.
    pub(super) fn flood_line(self) -> &'static str {
        match self {
            Self::Claude => "stream_event",
            Self::Codex => "item/agentMessage/delta",
            Self::CodexExec => "item.completed",
            Self::CodexProto => "agent_message_delta",
        }
    }

    /// Whether text comes in pieces.
    pub(super) fn streams(self) -> bool {
        self != Self::CodexExec
    }

    /// The new text in a line that is parsed once; for the wires that ACP is measured on.
    pub(super) fn delta(self, line: &[u8]) -> Option<Str<'_>> {
        match self {
            Self::Claude => match claude::parse(line).ok()? {
                claude::Frame::Stream(stream) => stream.event.delta.text,
                _ => None,
            },
            Self::Codex => match jsonrpc::classify(line) {
                jsonrpc::Message::Notification { method, params: Some(params) }
                    if method == "item/agentMessage/delta" =>
                {
                    let delta: codex_app::Delta<'_> = serde_json::from_str(params.get()).ok()?;
                    Some(delta.delta)
                }
                _ => None,
            },
            Self::CodexExec | Self::CodexProto => None,
        }
    }

    /// Parses a line once, as far as its driver must, and says whether it was one.
    pub(super) fn parses(self, line: &[u8]) -> bool {
        use std::hint::black_box;
        match self {
            Self::Claude => black_box(claude::parse(line)).is_ok(),
            Self::Codex => match jsonrpc::classify(line) {
                jsonrpc::Message::Notification { method, params: Some(params) }
                    if method == "item/agentMessage/delta" =>
                {
                    black_box(serde_json::from_str::<codex_app::Delta<'_>>(params.get())).is_ok()
                }
                other => !matches!(black_box(other), jsonrpc::Message::Garbage { .. }),
            },
            Self::CodexExec => black_box(codex_exec::parse(line)).is_ok(),
            Self::CodexProto => black_box(sqeq::Event::parse(line)).is_ok(),
        }
    }
}
