//! Text, tools, sub-agents, background work.

use tieline_event::{ItemBody, ItemStatus, Kind, Mode, Origin, Prompt, TurnStatus};

use super::{Scene, ends, items};
use crate::bench::until_end;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hello() {
    let scene = Scene::new().await;
    let ran = scene.run(Mode::BypassPermissions, "Say it. SCENARIO:hello").await;
    assert_eq!(ran.end.status, TurnStatus::Completed);
    assert_eq!(ran.end.text.preview(), "Hello from the fake model.");
    let usage = ran.end.usage.unwrap();
    assert!(usage.output_tokens > 0 && usage.cost_usd.unwrap() > 0.0);
    assert_eq!(ends(&ran.events), 1);
    let unparsed: Vec<_> =
        ran.events.iter().filter(|event| matches!(event.kind, Kind::Unparsed(_))).collect();
    assert!(unparsed.is_empty(), "{unparsed:?}");
    let configured = ran.events.iter().find_map(|event| match &event.kind {
        Kind::ConversationConfigured(it) => Some(it.clone()),
        _ => None,
    });
    let configured = configured.unwrap();
    assert_eq!(configured.agent_version.as_deref(), Some("2.1.325"));
    let abilities = configured.abilities.unwrap();
    assert!(!abilities.models.is_empty() && !abilities.commands.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_streams_in_parts_and_thinking_is_signed() {
    let scene = Scene::new().await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:long:100").await;
    let text = ran.end.text.preview().to_owned();
    assert_eq!(ran.streamed, text);
    assert!(text.len() > 200, "{text}");
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:think").await;
    let signed = ran.events.iter().any(|event| {
        matches!(&event.kind, Kind::ItemCompleted(item)
            if matches!(&item.body, ItemBody::Reasoning { signature: Some(_), .. }))
    });
    assert!(signed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_succeed_and_fail_with_their_output() {
    let scene = Scene::new().await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:shell").await;
    let ItemBody::Command { output, exit_code, .. } = &ran.items("command")[0].body else {
        panic!("a command");
    };
    assert!(output.preview().contains("hello-from-shell"));
    assert_eq!(*exit_code, Some(0));
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:fail-command").await;
    let failed = ran.items("command").pop().unwrap();
    let ItemBody::Command { output, exit_code, .. } = &failed.body else { panic!("a command") };
    assert!(output.preview().contains("before-failure"));
    assert_eq!((failed.status, *exit_code), (ItemStatus::Failed, Some(3)));
    assert_eq!(ran.end.status, TurnStatus::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_changes_the_file_and_shows_both_texts() {
    let scene = Scene::new().await;
    let ran = scene.run(Mode::AcceptEdits, "Go. SCENARIO:patch").await;
    let file = scene.claude.workspace().join("notes.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "alpha\ngamma\n");
    let changes = ran.items("file_change");
    let ItemBody::FileChange { changes } = &changes[1].body else { panic!("a change") };
    assert_eq!(changes[0].old_text.as_ref().unwrap().preview(), "alpha\nbeta\n");
    assert_eq!(changes[0].new_text.as_ref().unwrap().preview(), "alpha\ngamma\n");
    assert!(changes[0].diff.as_ref().unwrap().preview().contains("-beta\n+gamma\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_tools_each_have_their_item() {
    let scene = Scene::new().await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:parallel").await;
    let commands = ran.items("command");
    assert_eq!(commands.len(), 2);
    assert_ne!(commands[0].id, commands[1].id);
    assert!(commands.iter().all(|item| item.status == ItemStatus::Ok));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_in_the_background_brings_a_turn_of_its_own() {
    let scene = Scene::new().await;
    let (conversation, mut live) = scene.open(Mode::BypassPermissions).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:background")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!((end.status, end.open_tasks), (TurnStatus::Completed, 1));
    let (events, _, end) = until_end(&mut live, &"t2".into()).await;
    assert_eq!(end.status, TurnStatus::Completed);
    let own = events
        .iter()
        .any(|event| matches!(&event.kind, Kind::TurnStarted(it) if it.origin == Origin::Agent));
    assert!(own, "{events:?}");
    let command = items(&events, "command").pop().unwrap();
    assert_eq!(command.status, ItemStatus::Ok);
    let turn = conversation.start_turn(Prompt::text("And? SCENARIO:hello")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.text.preview(), "Hello from the fake model.");
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_sub_agent_does_stands_under_its_call() {
    let scene = Scene::new().await;
    let (conversation, mut live) = scene.open(Mode::BypassPermissions).await;
    let turn = conversation.start_turn(Prompt::text("Go. SCENARIO:subagent")).await.unwrap();
    let (mut events, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Completed);
    // The sub-agent works in the background; its end may bring a turn of its own.
    while !events.iter().any(|event| event.parent.is_some() && is_command_end(&event.kind)) {
        for entry in live.next().await.unwrap() {
            if let tieline_hub::Entry::Event(shown) = entry {
                events.push(shown.event.clone());
            }
        }
    }
    let call = events.iter().find_map(|event| match &event.kind {
        Kind::ItemStarted(item) if item.body.name() == "tool_call" => Some(item.id.clone()),
        _ => None,
    });
    let under: Vec<_> = events.iter().filter(|event| event.parent == call).collect();
    assert!(under.iter().any(|event| is_command_end(&event.kind)), "{events:?}");
    scene.close().await;
}

fn is_command_end(kind: &Kind) -> bool {
    matches!(kind, Kind::ItemCompleted(item) if item.body.name() == "command")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_tool_fails_alone() {
    let scene = Scene::new().await;
    let ran = scene.run(Mode::BypassPermissions, "Go. SCENARIO:unknown-tool").await;
    assert_eq!(ran.items("tool_call")[0].status, ItemStatus::Failed);
    assert_eq!(ran.end.status, TurnStatus::Completed);
}
