//! Text, commands, files, plans and other tools.

use tieline_event::{
    ChangeKind, Extras, ItemBody, ItemStatus, Kind, McpServer, McpTransport, Mode, Plan,
    PlanStatus, Prompt, Text, ToolClass,
};
use tieline_hub::OpenOptions;

use serde_json::json;
use tieline_testkit::model::{Block, Script};
use tieline_testkit::real;

use super::can;
use super::scene::{HELLO, Ran, Scene, Setup, say};
use super::wire::Wire;
use crate::bench::{until, until_end};

pub(super) async fn hello(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(wire.unasked()).await;
    for _ in 0..2 {
        let ran = say(&conversation, &mut live, "Say it. SCENARIO:hello").await.completed();
        assert_eq!(ran.end.text.preview(), HELLO);
        // What the script says for one answer: not the sum of all turns so far.
        let usage = ran.end.usage.clone().unwrap();
        assert_eq!(usage.output_tokens, 50, "{}", ran.story());
        let all = usage.input_tokens + usage.cached_input_tokens;
        assert!((1000..=1400).contains(&all), "{usage:?}");
        let strange = ran.events.iter().any(|event| matches!(event.kind, Kind::Unparsed(_)));
        assert!(!strange, "{}", ran.story());
    }
    scene.close().await;
    let history = scene.history();
    let configured: Vec<_> = history
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::ConversationConfigured(it) => Some(it),
            _ => None,
        })
        .collect();
    let version = configured.iter().find_map(|it| it.agent_version.as_deref());
    assert_eq!(version, Some(wire.version()));
    let abilities = configured.iter().rev().find_map(|it| it.abilities.clone()).unwrap();
    assert!(abilities.modes.contains(&Mode::AcceptEdits), "{abilities:?}");
    // What a client is told is what the other scenes prove.
    for (has, scene) in [
        (abilities.streaming, "streaming"),
        (abilities.fork, "fork"),
        (abilities.steering, "steer"),
        (abilities.approvals, "command_allowed"),
        (abilities.questions, "question_while_planning"),
    ] {
        assert_eq!(has, can(wire, scene), "{scene}: {abilities:?}");
    }
}

pub(super) async fn streaming(wire: Wire) {
    let ran = Scene::new(wire).await.run(wire.unasked(), "Go. SCENARIO:long:100").await.completed();
    let text = ran.end.text.preview();
    assert!(text.len() > 200, "{text}");
    assert_eq!(ran.streamed, text);
}

/// Nothing is shown early, and the text comes whole.
pub(super) async fn no_streaming(wire: Wire) {
    let ran = Scene::new(wire).await.run(wire.unasked(), "Go. SCENARIO:long:100").await.completed();
    assert_eq!(ran.streamed, "");
    assert!(ran.end.text.preview().contains("word99"));
}

pub(super) async fn reasoning(wire: Wire) {
    let ran = Scene::new(wire).await.run(wire.unasked(), "Go. SCENARIO:think").await.completed();
    let thought = ran.items("reasoning").pop().unwrap_or_else(|| panic!("{}", ran.story()));
    let ItemBody::Reasoning { text, signature } = thought.body else { panic!("reasoning") };
    assert!(text.preview().contains("The user wants a greeting."), "{text:?}");
    assert_eq!(signature.is_some(), wire == Wire::Claude, "the provider's seal");
    assert_eq!(ran.end.text.preview(), "Thought about it. Hello.");
}

/// The only command of a turn: status, output, exit code.
fn command(ran: &Ran) -> (ItemStatus, String, Option<i32>) {
    let commands = ran.items("command");
    assert_eq!(commands.len(), 1, "{}", ran.story());
    match &commands[0].body {
        ItemBody::Command { output, exit_code, .. } => {
            (commands[0].status, output.preview().to_owned(), *exit_code)
        }
        other => panic!("a command, not {other:?}"),
    }
}

pub(super) async fn command_runs(wire: Wire) {
    let ran = Scene::new(wire).await.run(wire.unasked(), "Go. SCENARIO:shell").await.completed();
    let (status, output, exit_code) = command(&ran);
    assert_eq!((status, exit_code), (ItemStatus::Ok, Some(0)), "{output}");
    assert!(output.contains("hello-from-shell") && output.contains("to-stderr"), "{output}");
    assert_eq!(ran.items("agent_message").len(), 2, "{}", ran.story());
}

pub(super) async fn command_fails(wire: Wire) {
    let ran =
        Scene::new(wire).await.run(wire.unasked(), "Go. SCENARIO:fail-command").await.completed();
    let (status, output, exit_code) = command(&ran);
    assert_eq!((status, exit_code), (ItemStatus::Failed, Some(3)), "{output}");
    assert!(output.contains("before-failure"), "{output}");
}

pub(super) async fn parallel_commands(wire: Wire) {
    let ran = Scene::new(wire).await.run(wire.unasked(), "Go. SCENARIO:parallel").await.completed();
    let commands = ran.items("command");
    assert_eq!(commands.len(), 2, "{}", ran.story());
    assert_ne!(commands[0].id, commands[1].id);
    assert!(commands.iter().all(|item| item.status == ItemStatus::Ok));
}

/// A command that writes, and asks for nothing.
fn touch(scene: &Scene) {
    let command = "touch touched.txt";
    let call = match scene.wire {
        Wire::CodexProto => Block::tool("shell", json!({"command": ["bash", "-lc", command]})),
        _ => Block::tool("exec_command", json!({"cmd": command})),
    };
    scene.model.scenario("touch", Script::tool_then_say(call, "Tried."));
}

pub(super) async fn sandbox(wire: Wire) {
    let scene = Scene::new(wire).await;
    touch(&scene);
    let ran = scene.run(Mode::Default, "Go. SCENARIO:touch").await.completed();
    // Codex shows no item for a command that its sandbox stopped; the model hears of it.
    assert_eq!(scene.heard("Read-only file system"), 1, "{}", ran.story());
    assert!(!scene.file("touched.txt").exists(), "it may only read");
    let ran = scene.run(Mode::AcceptEdits, "Go. SCENARIO:touch").await.completed();
    assert_eq!(command(&ran).0, ItemStatus::Ok, "{}", ran.story());
    assert!(scene.file("touched.txt").exists(), "it may write in the workspace");
}

/// Without a sandbox a command fails; it does not run unguarded.
pub(super) async fn no_sandbox(wire: Wire) {
    let scene = Scene::new(wire).await;
    touch(&scene);
    let ran = scene.run(Mode::AcceptEdits, "Go. SCENARIO:touch").await.completed();
    let (status, output, _) = command(&ran);
    assert_eq!(status, ItemStatus::Failed, "{}", ran.story());
    assert!(output.contains("sandbox was required but not provided"), "{output}");
    assert!(!scene.file("touched.txt").exists());
}

/// Runs `SCENARIO:patch` and gives the changes of its two steps.
async fn patched(wire: Wire) -> Vec<tieline_event::FileChange> {
    let scene = Scene::new(wire).await;
    let ran = scene.run(wire.edits(), "Go. SCENARIO:patch").await.completed();
    assert!(!ran.asked(), "{}", ran.story());
    assert_eq!(std::fs::read_to_string(scene.file("notes.txt")).unwrap(), "alpha\ngamma\n");
    let changed = ran.items("file_change").into_iter().map(|item| match item.body {
        ItemBody::FileChange { mut changes } if item.status == ItemStatus::Ok => {
            assert_eq!(changes.len(), 1);
            changes.remove(0)
        }
        other => panic!("a change that went well, not {other:?}"),
    });
    changed.collect()
}

pub(super) async fn patch(wire: Wire) {
    let changes = patched(wire).await;
    let kinds: Vec<_> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Add, ChangeKind::Update]);
    assert!(changes.iter().all(|change| change.path.ends_with("notes.txt")), "{changes:?}");
}

pub(super) async fn patch_text(wire: Wire) {
    let changes = patched(wire).await;
    assert_eq!(changes[0].new_text.as_ref().unwrap().preview(), "alpha\nbeta\n");
    let text = |text: &Option<Text>| text.as_ref().map(|text| text.preview().to_owned());
    if wire == Wire::AcpClaude {
        // The lines around the change, before and after.
        assert_eq!(text(&changes[1].old_text).as_deref(), Some("alpha\nbeta"));
        assert_eq!(text(&changes[1].new_text).as_deref(), Some("alpha\ngamma"));
        return;
    }
    let diff = text(&changes[1].diff).unwrap();
    assert!(diff.contains("-beta\n+gamma\n"), "{diff}");
    if wire == Wire::Claude {
        assert_eq!(changes[1].old_text.as_ref().unwrap().preview(), "alpha\nbeta\n");
        assert_eq!(changes[1].new_text.as_ref().unwrap().preview(), "alpha\ngamma\n");
    }
}

/// The changes are named, and that is all.
pub(super) async fn no_patch_text(wire: Wire) {
    let told =
        |change: &tieline_event::FileChange| change.diff.is_some() || change.new_text.is_some();
    assert!(!patched(wire).await.iter().any(told));
}

pub(super) async fn plan(wire: Wire) {
    let scene = Scene::new(wire).await;
    let mut options = scene.options(wire.unasked());
    let scenario = match wire {
        // Its default model has no tool for a list of steps.
        Wire::Claude | Wire::AcpClaude => {
            options.model = Some(wire.model_name(wire.models().1).into());
            "tasks"
        }
        _ => "plan",
    };
    let conversation = scene.hub.conversation(&crate::bench::key(), options).await.unwrap();
    let mut live = conversation.subscribe(conversation.last_seq());
    let ran = say(&conversation, &mut live, &format!("Go. SCENARIO:{scenario}")).await.completed();
    scene.close().await;
    let plans: Vec<&Plan> = ran
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::PlanUpdated(plan) => Some(plan),
            _ => None,
        })
        .collect();
    assert!(plans.len() >= 2, "{}", ran.story());
    assert_ne!(plans[0].entries[0].status, PlanStatus::Completed);
    let last = plans.last().unwrap();
    assert_eq!(last.entries[0].text, "Look at the code");
    assert!(last.entries.iter().all(|entry| entry.status == PlanStatus::Completed), "{last:?}");
}

/// The only call of the MCP tool.
async fn mcp(wire: Wire, scenario: &str) -> (ItemStatus, String) {
    let scene = Setup { mcp: true, ..Setup::new(wire) }.scene().await;
    let ran = scene.run(Mode::Yolo, &format!("Go. SCENARIO:{scenario}")).await.completed();
    let calls = ran.items("tool_call");
    let call = calls.first().unwrap_or_else(|| panic!("{}", ran.story()));
    let ItemBody::ToolCall { class, tool, server, output, .. } = &call.body else {
        panic!("a tool call")
    };
    assert_eq!((*class, server.as_deref()), (ToolClass::Mcp, Some("fake")), "{call:?}");
    assert_eq!(tool, "echo");
    (call.status, format!("{output:?}"))
}

pub(super) async fn mcp_tool(wire: Wire) {
    let (status, output) = mcp(wire, "mcp").await;
    assert_eq!(status, ItemStatus::Ok);
    assert!(output.contains("\"hi\""), "{output}");
}

pub(super) async fn mcp_tool_fails(wire: Wire) {
    let (status, output) = mcp(wire, "mcp-fail").await;
    assert_eq!(status, ItemStatus::Failed);
    assert!(output.contains("fail"), "{output}");
}

pub(super) async fn client_mcp(wire: Wire) {
    let scene = Setup { mcp: true, ..Setup::new(wire) }.scene().await;
    let tool = if wire == Wire::CodexProto { "client__echo" } else { "mcp__client__echo" };
    let call = Block::tool(tool, json!({"text": "for the client"}));
    scene.model.scenario("client-mcp", Script::tool_then_say(call, "MCP done."));
    // The others take none that has variables.
    let has_variables = wire.is_claude() || wire == Wire::Codex;
    let variable = has_variables.then(|| ("CLIENT_TOKEN".to_owned(), "hunter2".to_owned()));
    let transport = McpTransport::Stdio {
        command: real::fake_mcp_program().display().to_string(),
        args: Vec::new(),
        env: variable.into_iter().collect(),
    };
    let server = McpServer { name: "client".to_owned(), transport };
    let extras = Extras { mcp_servers: vec![server], directories: Vec::new() };
    let options = OpenOptions { extras: Some(extras), ..scene.options(Mode::Yolo) };
    let conversation = scene.hub.conversation(&crate::bench::key(), options).await.unwrap();
    let mut live = conversation.subscribe(conversation.last_seq());
    // The user's own server is there as well.
    for (scenario, server) in [("client-mcp", "client"), ("mcp", "fake")] {
        let ran = say(&conversation, &mut live, &format!("Go. SCENARIO:{scenario}")).await;
        let ran = ran.completed();
        let call = ran.items("tool_call").pop().unwrap_or_else(|| panic!("{}", ran.story()));
        assert_eq!(call.status, ItemStatus::Ok, "{}", ran.story());
        let ItemBody::ToolCall { server: of, .. } = &call.body else { panic!("a tool call") };
        assert_eq!(of.as_deref(), Some(server), "{}", ran.story());
    }
    scene.close().await;
    assert!(!scene.kept("hunter2"), "a client's secret is not kept");
}

pub(super) async fn client_directory(wire: Wire) {
    let scene = Scene::new(wire).await;
    let other = scene.home.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let file = other.join("made.txt");
    let call = match wire {
        Wire::Claude | Wire::AcpClaude => {
            Block::tool("Write", json!({"file_path": file, "content": "x"}))
        }
        _ => Block::tool("exec_command", json!({"cmd": format!("touch {}", file.display())})),
    };
    scene.model.scenario("elsewhere", Script::tool_then_say(call, "Made."));
    for directories in [vec![], vec![other]] {
        let is_known = !directories.is_empty();
        let extras = Some(Extras { mcp_servers: Vec::new(), directories });
        let options = OpenOptions { extras, ..scene.options(Mode::AcceptEdits) };
        let conversation = scene.hub.conversation(&crate::bench::key(), options).await.unwrap();
        let mut live = conversation.subscribe(conversation.last_seq());
        let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:elsewhere")).await.unwrap();
        let asked = until(&mut live, |event| match &event.kind {
            Kind::RequestOpened(_) => Some(true),
            Kind::TurnCompleted(_) => Some(false),
            _ => None,
        })
        .await;
        if asked {
            conversation.interrupt().await.unwrap();
            until_end(&mut live, &turn).await;
        }
        scene.close().await;
        assert_eq!(file.exists(), is_known, "asked: {asked}");
    }
}

pub(super) async fn web_search(wire: Wire) {
    let ran =
        Scene::new(wire).await.run(wire.unasked(), "Go. SCENARIO:websearch").await.completed();
    let searches = ran.items("web_search");
    let search = searches.first().unwrap_or_else(|| panic!("{}", ran.story()));
    let ItemBody::WebSearch { query, .. } = &search.body else { panic!("a search") };
    assert_eq!((query.as_str(), search.status), ("rust async traits", ItemStatus::Ok));
}

pub(super) async fn unknown_tool(wire: Wire) {
    let ran =
        Scene::new(wire).await.run(wire.unasked(), "Go. SCENARIO:unknown-tool").await.completed();
    assert_eq!(ran.end.text.preview(), "That tool does not exist.");
    // Codex tells the model alone.
    let failed: Vec<_> = ran.items("tool_call").iter().map(|item| item.status).collect();
    let expected: &[_] = if wire.is_claude() { &[ItemStatus::Failed] } else { &[] };
    assert_eq!(failed, expected);
}
