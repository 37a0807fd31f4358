//! Plays a scenario through one of the bridges.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tieline_testkit::acp::{Adapter, Answer, Client, Frame, Policy, Program, Seen, View};

use super::features::{self, Feature};
use crate::real::play::runs_a_command;
use crate::real::stage::{Agent, Stage};

/// The agent behind both bridges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Back {
    Claude,
    Codex,
}

impl Back {
    pub(super) const ALL: [Back; 2] = [Back::Claude, Back::Codex];

    pub(super) fn title(self) -> &'static str {
        match self {
            Back::Claude => "Claude Code",
            Back::Codex => "Codex",
        }
    }

    pub(super) fn adapter(self) -> &'static str {
        match self {
            Back::Claude => "claude-agent-acp",
            Back::Codex => "codex-acp",
        }
    }
}

/// What stands between the agent and the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bridge {
    Reference,
    Tieline,
}

/// What is played.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// The only agent that can play it.
    pub(super) of: Option<Back>,
    prompt: &'static str,
    act: Act,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The turn to its end.
    Turn,
    /// The same; what the agent said of itself counts too.
    Introduction,
    /// The turn; what a command prints takes its time.
    Slow,
    /// The turn in plan mode.
    Plan,
    /// The turn with an MCP server of the client's.
    Mcp,
    /// The turn, cancelled while a command runs, and one more.
    Cancel,
    /// The turn, and the session in new processes: listed, loaded, resumed.
    Again,
}

const fn turn(name: &'static str, prompt: &'static str, act: Act) -> Scenario {
    Scenario { name, of: None, prompt, act }
}

pub(super) const SCENARIOS: &[Scenario] = &[
    turn("hello", "Go. SCENARIO:hello", Act::Introduction),
    turn("think", "Go. SCENARIO:think", Act::Turn),
    turn("long text", "Go. SCENARIO:long:100", Act::Turn),
    turn("shell", "Go. SCENARIO:shell", Act::Turn),
    turn("slow command", "Go. SCENARIO:ticks", Act::Slow),
    turn("failing command", "Go. SCENARIO:fail-command", Act::Turn),
    turn("command that asks", "Go. SCENARIO:write", Act::Turn),
    turn("read", "Go. SCENARIO:read", Act::Turn),
    turn("patch", "Go. SCENARIO:patch-delete", Act::Turn),
    turn("plan", "Go. SCENARIO:plan", Act::Turn),
    turn("question", "Go. SCENARIO:question", Act::Turn),
    turn("mcp", "Go. SCENARIO:mcp", Act::Mcp),
    Scenario { of: Some(Back::Claude), ..turn("plan mode", "Go. SCENARIO:planmode", Act::Plan) },
    Scenario { of: Some(Back::Claude), ..turn("sub-agent", "Go. SCENARIO:subagent", Act::Turn) },
    turn("web search", "Go. SCENARIO:websearch", Act::Turn),
    turn("failing provider", "Go. SCENARIO:http500", Act::Turn),
    turn("cancel", "Go. SCENARIO:sleep:30", Act::Cancel),
    turn("again", "Go. SCENARIO:patch", Act::Again),
];

/// How long an agent may take to say what belongs to no turn.
const SETTLE: Duration = Duration::from_secs(3);

/// What can be seen of a scenario.
pub(super) async fn observe(back: Back, bridge: Bridge, scenario: &Scenario) -> Vec<Feature> {
    let agent = match back {
        Back::Claude => Agent::Claude,
        Back::Codex => Agent::Codex,
    };
    let stage = Stage::new(agent, "hello.script", "").await;
    let run = Run { back, bridge, scenario, stage };
    let (client, session_id, introduction) = run.open().await;
    if scenario.act == Act::Plan {
        let params = json!({"sessionId": session_id, "modeId": "plan"});
        client.request("session/set_mode", params).await.unwrap();
    }
    let turn = client.begin("session/prompt", prompt(&session_id, scenario.prompt)).await;
    if scenario.act == Act::Cancel {
        client.wait_for("a command", runs_a_command).await;
        client.cancel(&session_id).await;
    }
    // Some turns are to fail, and how is a feature.
    turn.answer().await.ok();
    if scenario.act == Act::Cancel {
        let params = prompt(&session_id, "Go on. SCENARIO:hello");
        client.request("session/prompt", params).await.ok();
    }
    if scenario.act == Act::Introduction {
        // Commands and a title may be told after the turn, or never.
        tokio::time::sleep(SETTLE).await;
    }
    let hide = |text: &str| run.hidden(text);
    let shown = match scenario.act {
        Act::Introduction => introduction,
        _ => Value::Null,
    };
    let seen = client.seen();
    let view = seen.sessions.get(&session_id).expect("the session is known");
    let questions = client.frames().iter().filter_map(question).collect();
    client.close().await;
    if scenario.act == Act::Again {
        return run.again(&session_id, view).await;
    }
    let mut found = features::of(view, &shown, &hide);
    found.push(("questions".to_owned(), questions));
    // How much of it was known depends on the moment.
    let depends = match (scenario.act, back) {
        (Act::Cancel, _) => &["input", "printed"][..],
        (Act::Plan, _) => &["input", "content"],
        // Codex keeps what a command prints at once to itself until the end, or it does not.
        (Act::Turn, Back::Codex) => &["printed"],
        _ => &[],
    };
    found.retain(|(name, _)| !depends.iter().any(|it| name.ends_with(it)));
    found.push(("broken rules".to_owned(), run.rules(&seen)));
    found
}

struct Run<'a> {
    back: Back,
    bridge: Bridge,
    scenario: &'a Scenario,
    stage: Stage,
}

impl Run<'_> {
    fn program(&self) -> Program {
        match (self.bridge, self.back) {
            (Bridge::Tieline, _) => self.stage.tieline(),
            (Bridge::Reference, Back::Claude) => Adapter::Claude.program(&self.stage.home).unwrap(),
            (Bridge::Reference, Back::Codex) => {
                let mut program = Adapter::Codex.program(&self.stage.home).unwrap();
                // Its usual mode lets another model decide; this is the one that asks.
                program.env.push(("INITIAL_AGENT_MODE".to_owned(), "read-only".to_owned()));
                program
            }
        }
    }

    /// A client that can do what editors can.
    async fn connect(&self) -> (Client, Value) {
        let client = Client::start(self.program()).await;
        client.on("session/request_permission", Policy::select("allow_once"));
        client.on("elicitation/create", Policy::by(fill_in));
        let capabilities = json!({
            "_meta": {"terminal_output": true},
            "elicitation": {"form": {}},
            "session": {"configOptions": {"boolean": {}}, "notices": {}},
        });
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let introduction = client.request("initialize", params).await.unwrap();
        (client, introduction)
    }

    async fn open(&self) -> (Client, String, Value) {
        let (client, introduction) = self.connect().await;
        let servers = self.stage.servers(self.scenario.act == Act::Mcp);
        let params = json!({"cwd": self.stage.workspace(), "mcpServers": servers});
        let session = client.request("session/new", params).await.unwrap();
        let session_id = session["sessionId"].as_str().unwrap().to_owned();
        (client, session_id, introduction)
    }

    /// The session in new processes.
    async fn again(&self, session_id: &str, live: &View) -> Vec<Feature> {
        let one = |name: &str, value: String| (name.to_owned(), vec![value]);
        let mut found = Vec::new();
        let cwd = self.stage.workspace();

        let (client, _) = self.connect().await;
        let listed = client.request("session/list", json!({"cwd": cwd})).await.unwrap();
        let sessions = listed["sessions"].as_array().cloned().unwrap_or_default();
        let own = sessions.iter().find(|it| it["sessionId"] == session_id);
        found.push((
            "listed with".to_owned(),
            own.and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(key, _)| key.clone())
                .collect(),
        ));
        let params = json!({"sessionId": session_id, "cwd": cwd, "mcpServers": []});
        let loaded = client.request("session/load", params.clone()).await;
        found.push(one("load", loaded.as_ref().err().map_or("ok", |_| "error").to_owned()));
        let seen = client.seen();
        let replayed = seen.sessions.get(session_id).map(View::story).unwrap_or_default();
        let same = replayed == live.story();
        found.push(one("replay is as it was live", if same { "yes" } else { "no" }.to_owned()));
        found.push(("broken rules of the replay".to_owned(), self.rules(&seen)));
        let turn = client.request("session/prompt", prompt(session_id, "On. SCENARIO:hello")).await;
        found.push(one("turn after load", reason(turn)));
        client.close().await;

        let (client, _) = self.connect().await;
        let resumed = client.request("session/resume", params).await;
        found.push(one("resume", resumed.as_ref().err().map_or("ok", |_| "error").to_owned()));
        let turn = client.request("session/prompt", prompt(session_id, "On. SCENARIO:hello")).await;
        found.push(one("turn after resume", reason(turn)));
        client.close().await;
        found
    }

    /// Each broken rule once, without ids.
    fn rules(&self, seen: &Seen) -> Vec<String> {
        let plain = seen.broken.iter().map(|rule| {
            let words = rule.split(": ").next().unwrap_or_default().split(' ');
            let words = words.map(|word| {
                if word.contains('_') && word.contains(char::is_numeric) { "ID" } else { word }
            });
            words.collect::<Vec<_>>().join(" ")
        });
        plain.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// A text without what is different each time.
    fn hidden(&self, text: &str) -> String {
        let text = text.replace(&self.stage.workspace().display().to_string(), "WORKSPACE");
        let text = text.replace(&self.stage.home.home().display().to_string(), "HOME");
        text.replace(&self.stage.home.root().display().to_string(), "ROOT")
    }
}

/// What a form asks, and how many fields it has.
fn question(frame: &Frame) -> Option<String> {
    let value = frame.value.as_ref().filter(|_| frame.method() == Some("elicitation/create"))?;
    let fields = value["params"]["requestedSchema"]["properties"].as_object().map_or(0, Map::len);
    Some(format!("{} ({fields})", value["params"]["message"].as_str().unwrap_or_default()))
}

fn prompt(session_id: &str, text: &str) -> Value {
    json!({"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})
}

fn reason(turn: Result<Value, tieline_testkit::acp::Fault>) -> String {
    match turn {
        Ok(answer) => answer["stopReason"].as_str().unwrap_or_default().to_owned(),
        Err(fault) => format!("error {}", fault.code),
    }
}

/// Fills in a form: the first of what there is to choose from.
fn fill_in(params: &Value) -> Answer {
    let fields = params["requestedSchema"]["properties"].as_object().cloned().unwrap_or_default();
    let content: Map<String, Value> =
        fields.into_iter().map(|(name, field)| (name, first_of(&field))).collect();
    Answer::Result(json!({"action": "accept", "content": content}))
}

fn first_of(field: &Value) -> Value {
    let choice = field["enum"].get(0).or_else(|| field["oneOf"].get(0).map(|it| &it["const"]));
    match (choice, field["type"].as_str()) {
        (Some(choice), _) => choice.clone(),
        (None, Some("array")) => json!([first_of(&field["items"])]),
        (None, Some("boolean")) => true.into(),
        (None, Some("integer" | "number")) => 1.into(),
        _ => "Red".into(),
    }
}
