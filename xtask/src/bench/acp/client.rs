//! An ACP client that does as little as it can while the clock runs.

use anyhow::{Context, bail, ensure};
use memchr::memmem;
use serde_json::{Value, json};

use super::talk::{Pace, Talk};
use crate::bench::scene::Scene;

pub(super) struct Client {
    talk: Talk,
    n_asked: u64,
    workspace: String,
}

impl Client {
    pub(super) fn new(talk: Talk, scene: &Scene) -> Self {
        Self { talk, n_asked: 0, workspace: scene.workspace().display().to_string() }
    }

    pub(super) fn initialize(&mut self) -> anyhow::Result<()> {
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
        self.ask("initialize", params, Pace::Full).map(drop)
    }

    /// Opens a session and gives its id.
    pub(super) fn new_session(&mut self) -> anyhow::Result<String> {
        let params = json!({"cwd": self.workspace, "mcpServers": []});
        let answer = self.ask("session/new", params, Pace::Full)?;
        let id = answer.pointer("/result/sessionId").and_then(Value::as_str);
        Ok(id.context("a session has an id")?.to_owned())
    }

    pub(super) fn load(&mut self, session: &str) -> anyhow::Result<()> {
        let params = json!({"sessionId": session, "cwd": self.workspace, "mcpServers": []});
        self.ask("session/load", params, Pace::Full).map(drop)
    }

    /// A turn, which must end well.
    pub(super) fn prompt(&mut self, session: &str, text: &str, pace: Pace) -> anyhow::Result<()> {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        let answer = self.ask("session/prompt", params, pace)?;
        let reason = answer.pointer("/result/stopReason").and_then(Value::as_str);
        ensure!(reason == Some("end_turn"), "the turn ended otherwise: {answer}");
        Ok(())
    }

    /// What came up to the last answer, and after the one before.
    pub(super) fn talk(&mut self) -> &mut Talk {
        &mut self.talk
    }

    /// Checks that the agent's message is this, in pieces of any size, and counts them.
    pub(super) fn check_text(&self, expected: &str) -> anyhow::Result<usize> {
        check_text(self.talk.heard(), expected)
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.talk.finish()
    }

    fn ask(&mut self, method: &str, params: Value, pace: Pace) -> anyhow::Result<Value> {
        self.n_asked += 1;
        // Words that are in the answer and in no other line.
        let id = format!("bench-{}", self.n_asked);
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.talk.ask(&format!("{line}\n"), &format!(r#""id":"{id}""#), pace)?;
        let answer: Value = serde_json::from_slice(self.talk.last_line())?;
        if let Some(error) = answer.get("error") {
            bail!("{method} is refused: {error}");
        }
        Ok(answer)
    }
}

/// Whether the message chunks in these lines are this text; how many there are.
pub(super) fn check_text(lines: &[u8], expected: &str) -> anyhow::Result<usize> {
    let (mut n_bytes, mut n_chunks) = (0, 0);
    for line in lines.split(|byte| *byte == b'\n') {
        if let Some(text) = chunk_text(line)? {
            let end = n_bytes + text.len();
            ensure!(
                expected.as_bytes().get(n_bytes..end) == Some(text),
                "the text is wrong after {n_bytes} bytes"
            );
            (n_bytes, n_chunks) = (end, n_chunks + 1);
        }
    }
    ensure!(n_bytes == expected.len(), "{n_bytes} of {} bytes came", expected.len());
    Ok(n_chunks)
}

/// The text of a message chunk, found without parsing; the scripts write nothing to be escaped.
pub(super) fn chunk_text(line: &[u8]) -> anyhow::Result<Option<&[u8]>> {
    let Some(at) = memmem::find(line, br#""agent_message_chunk""#) else { return Ok(None) };
    let rest = line.get(at..).unwrap_or_default();
    let key = br#""text":""#;
    let start = memmem::find(rest, key).context("a chunk has a text")? + key.len();
    let rest = rest.get(start..).unwrap_or_default();
    let text = rest.split(|byte| *byte == b'"').next().unwrap_or_default();
    ensure!(!text.contains(&b'\\'), "an escaped text, which no script here has");
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_chunks_is_found_and_held_against_what_is_expected() {
        let lines = concat!(
            r#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"ab"}}}}"#,
            "\n",
            r#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"no"}}}}"#,
            "\n",
            r#"{"method":"session/update","params":{"update":{"content":{"text":"c","type":"text"},"sessionUpdate":"other"}}}"#,
            "\n",
            r#"{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"cd"}}}}"#,
        );
        assert_eq!(check_text(lines.as_bytes(), "abcd").unwrap(), 2);
        assert!(check_text(lines.as_bytes(), "abcde").is_err());
        assert!(check_text(lines.as_bytes(), "abxd").is_err());
    }
}
