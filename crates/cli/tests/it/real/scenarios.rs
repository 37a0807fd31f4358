//! The scenarios: what is said, and what must be seen.

use tieline_testkit::acp::{Role, Tool, Turn};

use super::play::{Played, Say, Scenario};
use super::stage::{Agent, Peer};

const HELLO: &str = "Hello from the fake model.";

/// One prompt, played to its end.
fn scenario(script: &'static str, turns: &'static [Say], check: fn(&Played)) -> Scenario {
    Scenario { script, turns, mcp: false, config: "", check }
}

pub(super) fn handshake() -> Scenario {
    const TURNS: &[Say] = &[Say::to_its_end("Go. SCENARIO:hello")];
    scenario("hello.script", TURNS, |played| {
        let told = played.answer("initialize");
        assert_eq!(told["protocolVersion"], 1);
        assert_eq!(told["agentInfo"]["name"], "tieline");
        assert_eq!(told["agentInfo"]["version"], env!("CARGO_PKG_VERSION"));
        let can = &told["agentCapabilities"];
        assert_eq!(can["loadSession"], true);
        assert_eq!(can["promptCapabilities"]["embeddedContext"], true);
        for ability in ["list", "resume", "close"] {
            assert!(can["sessionCapabilities"][ability].is_object(), "{ability}");
        }
    })
}

pub(super) fn session_creation() -> Scenario {
    const TURNS: &[Say] = &[Say::to_its_end("Go. SCENARIO:hello")];
    scenario("hello.script", TURNS, |played| {
        // acpx makes a session with one process and talks in it with the next.
        let made = match played.peer {
            Peer::Acpx => played.answer("session/resume"),
            Peer::Raw | Peer::Sdk => played.answer("session/new"),
        };
        let modes = &made["modes"];
        let ids: Vec<_> = modes["availableModes"].as_array().unwrap().iter().collect();
        assert!(ids.iter().any(|mode| mode["id"] == modes["currentModeId"]));
        let options = made["configOptions"].as_array().unwrap();
        let mode = options.iter().find(|option| option["category"] == "mode").unwrap();
        assert_eq!(mode["currentValue"], modes["currentModeId"]);
    })
}

pub(super) fn simple_prompt() -> Scenario {
    const TURNS: &[Say] = &[Say::to_its_end("Go. SCENARIO:hello")];
    scenario("hello.script", TURNS, |played| {
        assert_eq!(played.view().text(Role::Agent), HELLO);
        let turn = &played.view().turns[0];
        let Turn::Ended { stop_reason, usage } = turn else { panic!("{turn:?}") };
        assert_eq!(stop_reason, "end_turn");
        assert!(usage["outputTokens"].as_u64().unwrap() > 0, "{usage}");
    })
}

pub(super) fn command_with_output() -> Scenario {
    const TURNS: &[Say] = &[Say::to_its_end("Go. SCENARIO:ticks")];
    scenario("ticks.script", TURNS, |played| {
        ended(played, "end_turn");
        let tool = only_tool(played);
        assert_eq!((tool.kind(), tool.status()), ("execute", "completed"));
        let printed = printed(&tool);
        let count = |text: &str| printed.matches(text).count();
        assert_eq!(count("tick-4"), 1, "{printed}");
        // The app server tells what a command prints while it runs, but for its first piece; the
        // others tell at its end.
        if (played.agent, played.peer) != (Agent::Codex, Peer::Raw) {
            assert_eq!(count("tick-1"), 1, "{printed}");
        } else {
            let is_piece = |line: &str| line.contains("terminal_output") && line.contains("tick-");
            let lines = played.frames.iter().map(|frame| String::from_utf8_lossy(&frame.line));
            assert!(lines.filter(|line| is_piece(line)).count() > 1);
        }
    })
}

pub(super) fn patch_edit_and_delete() -> Scenario {
    const TURNS: &[Say] = &[Say::to_its_end("Go. SCENARIO:patch-delete")];
    scenario("patch-delete.script", TURNS, |played| {
        ended(played, "end_turn");
        let view = played.view();
        let edits: Vec<&Tool> = view.tools().filter(|tool| tool.kind() == "edit").collect();
        assert!(edits.len() >= 2, "{}", view.story());
        let notes = played.stage.workspace().join("notes.txt");
        let diffs: Vec<_> = edits
            .iter()
            .flat_map(|tool| tool.get("content").as_array().cloned().unwrap_or_default())
            .filter(|content| {
                content["type"] == "diff" && content["path"] == notes.to_str().unwrap()
            })
            .collect();
        assert!(diffs[0]["oldText"].is_null() && diffs[0]["newText"] == "alpha\nbeta\n");
        let changed = diffs.last().unwrap();
        assert!(changed["oldText"].as_str().unwrap().contains("beta"), "{changed}");
        assert!(changed["newText"].as_str().unwrap().contains("gamma"), "{changed}");
        assert!(view.tools().all(|tool| tool.status() == "completed"), "{}", view.story());
        assert!(!notes.exists(), "it is deleted");
        if played.agent == Agent::Codex {
            assert_eq!(view.tools().last().unwrap().kind(), "delete", "{}", view.story());
        }
    })
}

pub(super) fn mcp_tool() -> Scenario {
    const TURNS: &[Say] = &[Say::to_its_end("Go. SCENARIO:mcp")];
    let check = |played: &Played| {
        ended(played, "end_turn");
        let view = played.view();
        let tool = view.tools().find(|tool| tool.text("title") == "fake: echo");
        let tool = tool.unwrap_or_else(|| panic!("{}", view.story()));
        assert_eq!(tool.status(), "completed");
        assert_eq!(tool.get("rawInput")["text"], "hi", "{tool:?}");
        assert!(printed(tool).contains("hi"), "{tool:?}");
    };
    Scenario { mcp: true, ..scenario("mcp.script", TURNS, check) }
}

pub(super) fn command_fails() -> Scenario {
    const TURNS: &[Say] = &[Say::to_its_end("Go. SCENARIO:fail-command")];
    scenario("fail-command.script", TURNS, |played| {
        ended(played, "end_turn");
        let tool = only_tool(played);
        assert_eq!((tool.kind(), tool.status()), ("execute", "failed"));
        assert!(printed(&tool).contains("before-failure"), "{tool:?}");
        let text = played.view().text(Role::Agent);
        assert!(text.ends_with("The command failed with exit code 3."), "{text}");
    })
}

pub(super) fn provider_fails() -> Scenario {
    const TURNS: &[Say] = &[Say::to_its_end("Go. SCENARIO:http500")];
    scenario("http500.script", TURNS, |played| {
        let turn = &played.view().turns[0];
        let Turn::Failed { code, message } = turn else { panic!("{turn:?}") };
        assert_eq!(*code, -32603);
        assert!(!message.is_empty());
    })
}

pub(super) fn completion_by_notify() -> Scenario {
    const TURNS: &[Say] =
        &[Say::to_its_end("Go. SCENARIO:hello"), Say::to_its_end("Again. SCENARIO:hello")];
    let check = |played: &Played| {
        assert_eq!(played.view().text(Role::Agent), [HELLO, HELLO].concat());
        ended(played, "end_turn");
    };
    Scenario { config: "[agents.codex]\nnotify = true\n", ..scenario("hello.script", TURNS, check) }
}

pub(super) fn several_prompts() -> Scenario {
    const TURNS: &[Say] = &[
        Say::to_its_end("First. SCENARIO:echo"),
        Say::to_its_end("Second. SCENARIO:echo"),
        Say::to_its_end("Third. SCENARIO:echo"),
    ];
    scenario("several.script", TURNS, |played| {
        ended(played, "end_turn");
        let text = played.view().text(Role::Agent);
        let places: Vec<_> = ["First.", "Second.", "Third."].map(|it| text.find(it)).into();
        assert!(places.is_sorted() && places[0].is_some(), "{text}");
    })
}

pub(super) fn cancellation() -> Scenario {
    const TURNS: &[Say] = &[
        Say { prompt: "Go. SCENARIO:sleep:30", cancel: true },
        Say::to_its_end("Again. SCENARIO:hello"),
    ];
    scenario("sleep.script", TURNS, |played| {
        let turns = &played.view().turns;
        let reasons: Vec<&str> = turns
            .iter()
            .map(|turn| match turn {
                Turn::Ended { stop_reason, .. } => stop_reason.as_str(),
                Turn::Failed { message, .. } => message,
            })
            .collect();
        assert_eq!(reasons, ["cancelled", "end_turn"]);
        assert!(played.view().text(Role::Agent).ends_with(HELLO));
        let tool = only_tool(played);
        assert_eq!(tool.status(), "failed", "nothing runs on: {tool:?}");
    })
}

/// Every turn ended like this.
#[track_caller]
fn ended(played: &Played, reason: &str) {
    for turn in &played.view().turns {
        let Turn::Ended { stop_reason, .. } = turn else { panic!("{turn:?}") };
        assert_eq!(stop_reason, reason);
    }
}

#[track_caller]
fn only_tool(played: &Played) -> Tool {
    let tools: Vec<&Tool> = played.view().tools().collect();
    let [tool] = tools[..] else { panic!("{}", played.view().story()) };
    tool.clone()
}

/// What a tool call shows of its output, in whatever form.
fn printed(tool: &Tool) -> String {
    let terminal = tool.terminal.as_ref().map(|it| it.output.clone()).unwrap_or_default();
    format!("{terminal}{}", tool.get("content"))
}
