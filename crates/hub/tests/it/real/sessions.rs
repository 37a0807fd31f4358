//! Sessions: resume, reset, fork, sleep, modes and models.

use std::time::Duration;

use serde_json::Value;
use tieline_event::{Configured, ConversationKey, FailureCode, Kind, Mode, TurnStatus};
use tieline_hub::{Error, Limits, OpenOptions};
use tieline_testkit::acp::Adapter;
use tieline_testkit::{agents, real};

use super::scene::{HELLO, Scene, Setup, has_tools, say, soon};
use super::wire::Wire;
use crate::bench::{key, until};

const MANGO: &str = "The word is MANGO. SCENARIO:hello";

pub(super) async fn resume(wire: Wire) {
    let mut scene = Scene::new(wire).await;
    scene.run(Mode::Default, MANGO).await.completed();
    scene.reopen().await;
    let ran = scene.run(Mode::Default, "Again. SCENARIO:hello").await.completed();
    assert_eq!(ran.end.text.preview(), HELLO);
    assert_eq!(scene.heard("MANGO"), 1, "the session went on");
}

/// The next process says that it cannot, and how to begin afresh.
pub(super) async fn no_resume(wire: Wire) {
    let mut scene = Scene::new(wire).await;
    scene.run(Mode::Default, MANGO).await.completed();
    scene.reopen().await;
    let ran = scene.run(Mode::Default, "Again. SCENARIO:hello").await.ended(TurnStatus::Failed);
    let error = ran.end.error.unwrap();
    assert_eq!(error.code, FailureCode::SessionUnknown, "{error:?}");
    assert!(error.hint.unwrap().contains("--fresh"));
    scene.hub.start_new_session(&key()).await.unwrap();
    scene.run(Mode::Default, "Once more. SCENARIO:hello").await.completed();
}

/// Runs the real `tieline` once, as a user would, with nothing of our environment.
async fn tieline(scene: &Scene, args: &[&str]) -> String {
    let tieline = real::fake_agent_program().with_file_name("tieline");
    assert!(tieline.is_file(), "build it with `cargo build --workspace --bins`");
    let mut spec = tieline_proc::Spec::new(tieline, scene.home.workspace());
    spec.args = args.iter().map(Into::into).collect();
    for (name, value) in scene.home.vars() {
        spec.env.set(name, value);
    }
    spec.env.set("TIELINE_HOME", scene.home.root().join("cli-store"));
    if scene.wire == Wire::AcpClaude {
        let adapter = Adapter::Claude.program(&scene.home).unwrap();
        for (name, value) in adapter.env {
            spec.env.set(name, value);
        }
        let config = scene.home.root().join("config.toml");
        let table = format!(
            "[agents.acp.claude-agent-acp]\nprogram = {:?}\nargs = {:?}\n",
            adapter.path, adapter.args
        );
        std::fs::write(&config, table).unwrap();
        spec.env.set("TIELINE_CONFIG", config);
    } else {
        let variable = format!("TIELINE_{}", scene.wire.name().replace('-', "_").to_uppercase());
        spec.env.set(variable, agents::program(scene.wire.pinned()).unwrap());
    }
    let output = tieline_proc::run(spec, b"", tieline_proc::RunLimits::default()).await.unwrap();
    let stderr = output.stderr.to_text();
    assert!(output.exit.is_some_and(|exit| exit.is_success()), "{args:?}: {stderr}");
    output.stdout.to_text()
}

pub(super) async fn command_line(wire: Wire) {
    let scene = Scene::new(wire).await;
    let run = async |prompt: &str| {
        let name = wire.name();
        let base = ["run", "--agent", name, "--conversation", "chat", "--format", "final", prompt];
        assert_eq!(tieline(&scene, &base).await.trim_end(), HELLO);
    };
    run(MANGO).await;
    run("Again. SCENARIO:hello").await;
    assert_eq!(scene.heard("MANGO"), 1, "the session went on");
    tieline(&scene, &["reset", "chat"]).await;
    run("Once more. SCENARIO:hello").await;
    assert_eq!(scene.heard("MANGO"), 0, "the session is a new one");
    let shown = tieline(&scene, &["export", "chat", "--format", "markdown"]).await;
    assert!(shown.contains("MANGO") && shown.contains("Once more"), "the history stays: {shown}");
    scene.close().await;
}

pub(super) async fn reset(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    say(&conversation, &mut live, MANGO).await.completed();
    scene.hub.start_new_session(&key()).await.unwrap();
    say(&conversation, &mut live, "Once more. SCENARIO:hello").await.completed();
    assert_eq!(scene.heard("MANGO"), 0, "the session is a new one");
    scene.close().await;
    let history = format!("{:?}", scene.history());
    assert!(history.contains("MANGO") && history.contains("Once more"), "the history stays");
}

fn branch() -> ConversationKey {
    ConversationKey::new("branch").unwrap()
}

pub(super) async fn fork(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    say(&conversation, &mut live, MANGO).await.completed();
    scene.hub.fork(&key(), &branch()).await.unwrap();
    let options = OpenOptions::default();
    let branched = scene.hub.conversation(&branch(), options).await.unwrap();
    let mut its_live = branched.subscribe(branched.last_seq());
    say(&branched, &mut its_live, "The word is KIWI. SCENARIO:hello").await.completed();
    assert_eq!((scene.heard("MANGO"), scene.heard("KIWI")), (1, 1), "it remembers");
    say(&conversation, &mut live, "Again. SCENARIO:hello").await.completed();
    let heard = |word| scene.heard_beside("Again.", word);
    assert_eq!((heard("MANGO"), heard("KIWI")), (1, 0), "the old one is as it was");
    scene.close().await;
    let session = |key| scene.hub.store().conversation(&key).unwrap().unwrap().native_session;
    assert_ne!(session(key()).unwrap(), session(branch()).unwrap());
}

/// What was said in the other one after the fork is not in the branch, even when the other one is
/// gone.
pub(super) async fn fork_is_a_snapshot(wire: Wire) {
    for is_deleted in [false, true] {
        let scene = Scene::new(wire).await;
        scene.run(Mode::Default, MANGO).await.completed();
        scene.hub.fork(&key(), &branch()).await.unwrap();
        scene.run(Mode::Default, "The word is PAPAYA. SCENARIO:hello").await.completed();
        if is_deleted {
            scene.hub.delete(&key()).await.unwrap();
        }
        let branched = scene.hub.conversation(&branch(), OpenOptions::default()).await.unwrap();
        let mut live = branched.subscribe(branched.last_seq());
        say(&branched, &mut live, "The word is KIWI. SCENARIO:hello").await.completed();
        let heard = |word| scene.heard_beside("KIWI", word);
        assert_eq!((heard("MANGO"), heard("PAPAYA")), (1, 0), "deleted: {is_deleted}");
        say(&branched, &mut live, "Again. SCENARIO:hello").await.completed();
        assert_eq!((heard("KIWI"), heard("PAPAYA")), (1, 0), "deleted: {is_deleted}");
        scene.close().await;
    }
}

/// The wire has no word for an earlier place, and a branch that would have more says so.
pub(super) async fn fork_is_refused_later(wire: Wire) {
    let scene = Scene::new(wire).await;
    scene.run(Mode::Default, MANGO).await.completed();
    scene.hub.fork(&key(), &branch()).await.unwrap();
    scene.run(Mode::Default, "The word is PAPAYA. SCENARIO:hello").await.completed();
    let branched = scene.hub.conversation(&branch(), OpenOptions::default()).await.unwrap();
    let mut live = branched.subscribe(branched.last_seq());
    let ran = say(&branched, &mut live, "The word is KIWI. SCENARIO:hello").await;
    let error = ran.ended(TurnStatus::Failed).end.error.unwrap();
    assert_eq!(error.code, FailureCode::BadRequest, "{error:?}");
    assert!(error.message.contains("went on"), "{error:?}");
    scene.close().await;
}

/// Asked to fork, it says no, and nothing is made.
pub(super) async fn no_fork(wire: Wire) {
    let scene = Scene::new(wire).await;
    scene.run(Mode::Default, MANGO).await.completed();
    let refused = scene.hub.fork(&key(), &branch()).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    assert_eq!(scene.hub.store().conversation(&branch()).unwrap(), None);
}

pub(super) async fn sleep(wire: Wire) {
    let limits = Limits { idle: Duration::from_millis(100), ..Limits::default() };
    let scene = Setup { limits, ..Setup::new(wire) }.scene().await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    say(&conversation, &mut live, MANGO).await.completed();
    until(&mut live, |event| matches!(&event.kind, Kind::ProcessExited(_)).then_some(())).await;
    say(&conversation, &mut live, "Again. SCENARIO:hello").await.completed();
    assert_eq!(scene.heard("MANGO"), 1);
    scene.close().await;
}

pub(super) async fn mode_and_model(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    say(&conversation, &mut live, MANGO).await.completed();
    conversation.set_mode(wire.edits()).await.unwrap();
    let (_, other) = wire.models();
    conversation.set_model(wire.model_name(other).into()).await.unwrap();
    let ran = say(&conversation, &mut live, "Go. SCENARIO:patch").await.completed();
    assert!(!ran.asked(), "edits are accepted now: {}", ran.story());
    assert!(scene.file("notes.txt").exists(), "{}", ran.story());
    let requests = scene.model.requests();
    let model = requests.iter().rev().find_map(|request| request.body["model"].as_str());
    assert_eq!(model, Some(other));
    // A mode that never asks may need a new process; the session goes on in it.
    conversation.set_mode(wire.unasked()).await.unwrap();
    let ran = say(&conversation, &mut live, "Go. SCENARIO:write").await.completed();
    assert!(!ran.asked(), "nothing is asked now: {}", ran.story());
    assert_eq!(scene.heard("MANGO"), 1);
    scene.close().await;
}

pub(super) async fn effort(wire: Wire) {
    let scene = Scene::new(wire).await;
    let options = OpenOptions { effort: Some("low".into()), ..scene.options(Mode::Default) };
    let conversation = scene.hub.conversation(&key(), options).await.unwrap();
    let mut live = conversation.subscribe(conversation.last_seq());
    let used = || {
        let requests = scene.model.requests();
        requests.iter().rev().filter(|request| has_tools(&request.body)).find_map(|request| {
            let told = ["output_config", "reasoning"].map(|field| &request.body[field]["effort"]);
            told.into_iter().find_map(|effort| effort.as_str().map(str::to_owned))
        })
    };
    say(&conversation, &mut live, "Hi. SCENARIO:hello").await.completed();
    assert_eq!(used().as_deref(), Some("low"));
    conversation.set_effort("high".into()).await.unwrap();
    say(&conversation, &mut live, "Hi. SCENARIO:hello").await.completed();
    assert_eq!(used().as_deref(), Some("high"));
    scene.close().await;
    let told: Vec<String> = scene
        .history()
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::ConversationConfigured(it) => it.effort.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(told.first().map(String::as_str), Some("low"), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("high"), "{told:?}");
}

pub(super) async fn offer(wire: Wire) {
    let scene = Scene::new(wire).await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    conversation.wake().await.unwrap();
    until(&mut live, |event| match &event.kind {
        Kind::ConversationConfigured(Configured { abilities: Some(it), .. }) => {
            let is_all = [it.models.len(), it.efforts.len(), it.commands.len()];
            (!is_all.contains(&0)).then_some(())
        }
        _ => None,
    })
    .await;
    assert_eq!(scene.model.requests().len(), 0, "nothing was said");
    scene.close().await;
}

pub(super) async fn unknown_session(wire: Wire) {
    let scene = Scene::new(wire).await;
    scene.run(Mode::Default, MANGO).await.completed();
    std::fs::remove_dir_all(scene.home.home().join(wire.sessions())).unwrap();
    let ran = scene.run(Mode::Default, "Again. SCENARIO:hello").await.ended(TurnStatus::Failed);
    let error = ran.end.error.clone().unwrap();
    assert_eq!(error.code, FailureCode::SessionUnknown, "{}", ran.story());
    assert!(error.hint.unwrap().contains("--fresh"));
    scene.hub.start_new_session(&key()).await.unwrap();
    scene.run(Mode::Default, "Once more. SCENARIO:hello").await.completed();
}

pub(super) async fn notify(wire: Wire) {
    let scene = Setup { notify: true, ..Setup::new(wire) }.scene().await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    say(&conversation, &mut live, "Hi. SCENARIO:hello").await.completed();
    let notes = scene.home.root().join("notes");
    let note = soon("the notify program is called", || {
        let notes = std::fs::read_to_string(&notes).ok()?;
        serde_json::from_str::<Value>(notes.lines().next()?).ok()
    })
    .await;
    assert_eq!(note["type"], "agent-turn-complete");
    assert_eq!(note["last-assistant-message"], HELLO);
    if wire != Wire::CodexProto {
        let row = scene.hub.store().conversation(&key()).unwrap().unwrap();
        assert_eq!(note["thread-id"].as_str(), row.native_session.as_deref(), "{note}");
    }
    scene.close().await;
}

pub(super) async fn preamble(wire: Wire) {
    let scene = Setup { preamble: true, ..Setup::new(wire) }.scene().await;
    scene.run(Mode::Default, "Hi. SCENARIO:hello").await.completed();
    let line = format!("Workspace: {}", scene.home.workspace().display());
    assert_eq!(scene.heard(&line), 1);
}
