//! Plays a scenario and looks at what came of it.

use serde_json::Value;
use tieline_testkit::acp::{Direction, Frame, Schema, Seen, Strictness, View};

use super::stage::{Agent, Peer, Stage};
use super::{acpx, raw, sdk};

/// What is said to an agent, and what must come of it.
pub(super) struct Scenario {
    /// The script of the demo agent.
    pub(super) script: &'static str,
    pub(super) turns: &'static [Say],
    /// The client brings an MCP server along.
    pub(super) mcp: bool,
    /// More of tieline's configuration.
    pub(super) config: &'static str,
    pub(super) check: fn(&Played),
}

/// One prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Say {
    pub(super) prompt: &'static str,
    /// The turn is cancelled once a command runs.
    pub(super) cancel: bool,
}

impl Say {
    pub(super) const fn to_its_end(prompt: &'static str) -> Say {
        Say { prompt, cancel: false }
    }
}

/// Whether a frame says that a command runs.
pub(super) fn runs_a_command(frame: &Frame) -> bool {
    frame.update() == Some("tool_call")
}

/// What came of a scenario.
pub(super) struct Played {
    pub(super) agent: Agent,
    pub(super) peer: Peer,
    pub(super) stage: Stage,
    pub(super) frames: Vec<Frame>,
    pub(super) seen: Seen,
}

pub(super) async fn play(scenario: &Scenario, agent: Agent, peer: Peer) {
    let stage = Stage::new(agent, scenario.script, scenario.config).await;
    let frames = match peer {
        Peer::Raw => raw::play(&stage, scenario).await,
        Peer::Acpx => acpx::play(&stage, scenario).await,
        Peer::Sdk => sdk::play(&stage, scenario).await,
    };
    let seen = Seen::of(&frames);
    let story: String = frames.iter().map(|frame| format!("{frame}\n")).collect();
    let mut schema = Schema::installed(Strictness::Closed).unwrap();
    let faults = schema.faults(&frames);
    assert!(faults.is_empty(), "against the schema: {faults:#?}\n{story}");
    assert!(seen.broken.is_empty(), "against the rules: {:#?}\n{story}", seen.broken);
    let played = Played { agent, peer, stage, frames, seen };
    assert_eq!(played.view().turns.len(), scenario.turns.len(), "{story}");
    (scenario.check)(&played);
}

impl Played {
    /// The session that was talked in.
    pub(super) fn view(&self) -> &View {
        let view = self.seen.sessions.values().find(|view| !view.turns.is_empty());
        view.expect("a turn was played")
    }

    /// The first answer to a request of this method.
    pub(super) fn answer(&self, method: &str) -> &Value {
        let sent = |frame: &&Frame| {
            frame.direction == Direction::ToAgent && frame.method() == Some(method)
        };
        let id = &value(self.frames.iter().find(sent).expect("it was asked"))["id"];
        let mut answers = self.frames.iter().filter(|it| it.direction == Direction::ToClient);
        let answer = answers.find(|it| it.method().is_none() && value(it)["id"] == *id);
        &value(answer.expect("it was answered"))["result"]
    }
}

fn value(frame: &Frame) -> &Value {
    frame.value.as_ref().expect("everybody writes JSON")
}
