//! What only the app server of Codex does: one process serves several conversations, and prompts that
//! users keep as files are commands.

use tieline_event::{Configured, ConversationKey, FailureCode, Kind, Mode, TurnId, TurnStatus};
use tieline_hub::{Conversation, Subscription};
use tieline_testkit::model::Script;
use tieline_testkit::probe;

use super::scene::{HELLO, Ran, Scene, Setup, say, soon};
use super::wire::Wire;
use crate::bench::until_end;

async fn shared() -> Scene {
    Setup { seats: 4, ..Setup::new(Wire::Codex) }.scene().await
}

/// A conversation under a key of its own.
async fn open(scene: &Scene, key: &str) -> (Conversation, Subscription) {
    let key = ConversationKey::new(key).unwrap();
    let conversation = scene.hub.conversation(&key, scene.options(Mode::Default)).await.unwrap();
    let live = conversation.subscribe(conversation.last_seq());
    (conversation, live)
}

/// The process that serves a turn.
fn pid(ran: &Ran) -> u32 {
    let pid = ran.events.iter().find_map(|event| match &event.kind {
        Kind::ProcessSpawned(it) => Some(it.pid),
        _ => None,
    });
    pid.unwrap_or_else(|| panic!("{}", ran.story()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_share_a_server_and_keep_apart() {
    let scene = shared().await;
    let (one, mut one_live) = open(&scene, "one").await;
    let (two, mut two_live) = open(&scene, "two").await;
    let first = say(&one, &mut one_live, "Hi. SCENARIO:hello").await.completed();
    let second = say(&two, &mut two_live, "Hi. SCENARIO:hello").await.completed();
    assert_eq!(pid(&first), pid(&second), "one process");
    let (first, second) = tokio::join!(
        say(&one, &mut one_live, "The word is MANGO. SCENARIO:echo"),
        say(&two, &mut two_live, "The word is KIWI. SCENARIO:echo"),
    );
    let (first, second) = (first.completed(), second.completed());
    for (ran, own, other) in [(&first, "MANGO", "KIWI"), (&second, "KIWI", "MANGO")] {
        let story = ran.story();
        assert!(story.contains(own) && !story.contains(other), "{story}");
    }
    // Who leaves takes nothing down.
    one.close().await.unwrap();
    let ran = say(&two, &mut two_live, "Again. SCENARIO:hello").await.completed();
    assert_eq!(ran.end.text.preview(), HELLO);
    assert!(scene.heard("KIWI") > 0 && scene.heard("MANGO") == 0);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_name_the_thread_and_show_its_mcp_servers() {
    let scene = Setup { mcp: true, ..Setup::new(Wire::Codex) }.scene().await;
    let (conversation, mut live) = scene.open(Mode::Default).await;
    for (command, answer) in [
        ("/rename My work", "The conversation is called My work."),
        ("/mcp", "- fake: connected; tools: echo"),
        ("/skills", "SKILL.md)"),
        ("/goal", "There is no goal."),
        ("/fast on", "Fast mode is on."),
    ] {
        let ran = say(&conversation, &mut live, command).await.completed();
        assert!(ran.end.text.preview().contains(answer), "{command}: {}", ran.story());
    }
    assert_eq!(scene.model.requests().len(), 0, "the model was not needed");
    soon("the name comes back as the title", || {
        let history = scene.history();
        let mut titles = history.iter().filter_map(|event| match &event.kind {
            Kind::ConversationConfigured(Configured { title, .. }) => title.as_deref(),
            _ => None,
        });
        titles.next_back().filter(|title| *title == "My work").map(|_| ())
    })
    .await;
    say(&conversation, &mut live, "Hi. SCENARIO:hello").await.completed();
    let requests = scene.model.requests();
    let tiers: Vec<_> = requests.iter().map(|it| it.body["service_tier"].clone()).collect();
    assert!(tiers.contains(&serde_json::json!("priority")), "{tiers:?}");
    scene.close().await;
}

/// What a reviewer answers.
const FINDINGS: &str = r#"{"findings":[{"title":"[P1] Off by one","body":"The loop skips the last.",
    "confidence_score":0.9,"priority":1,"code_location":{"absolute_file_path":"/w/a.rs",
    "line_range":{"start":1,"end":2}}}],"overall_correctness":"patch is incorrect",
    "overall_explanation":"One bug.","overall_confidence_score":0.8}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_ends_and_is_told_once() {
    let scene = Scene::new(Wire::Codex).await;
    scene.model.scenario("review", Script::say(FINDINGS));
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let ran = say(&conversation, &mut live, "/review The loop. SCENARIO:review").await.completed();
    assert!(ran.end.text.preview().contains("Off by one"), "{}", ran.story());
    let (reviews, messages) = (ran.items("review"), ran.items("agent_message"));
    assert_eq!((reviews.len(), messages.len()), (1, 0), "{}", ran.story());
    let found = serde_json::to_string(&reviews[0]).unwrap();
    assert!(found.contains("The loop skips the last."), "{found}");
    // The session is free, and knows of the review.
    let ran = say(&conversation, &mut live, "And now? SCENARIO:hello").await.completed();
    assert_eq!(ran.end.text.preview(), HELLO);
    assert!(scene.heard("Off by one") > 0);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_review_is_interrupted() {
    let scene = Scene::new(Wire::Codex).await;
    let gate = scene.model.gate("gated");
    let (conversation, mut live) = scene.open(Mode::Default).await;
    let turn = conversation.start_turn("/review Go. SCENARIO:gated:4".into()).await.unwrap();
    gate.release(2);
    gate.reached(2).await;
    conversation.interrupt().await.unwrap();
    end(&mut live, &turn).await.ended(TurnStatus::Interrupted);
    gate.open();
    say(&conversation, &mut live, "And now? SCENARIO:hello").await.completed();
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_judges_itself_in_the_mode_auto_alone() {
    let mut scene = Scene::new(Wire::Codex).await;
    scene.run(Mode::Auto, "Hi. SCENARIO:hello").await.completed();
    // In the server's own words, when it opens a thread and when its settings change.
    assert!(scene.kept(r#""approvalsReviewer":"auto_review","sandbox":{"#));
    assert!(!scene.kept(r#""approvalsReviewer":"user""#));
    // The thread remembers it, over processes.
    scene.reopen().await;
    scene.run(Mode::Default, "Hi. SCENARIO:hello").await.completed();
    assert!(scene.kept(r#""approvalsReviewer":"user","sandboxPolicy":{"#));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_stops_the_turn_of_one_conversation() {
    let scene = shared().await;
    let (one, mut one_live) = open(&scene, "one").await;
    let (two, mut two_live) = open(&scene, "two").await;
    for (conversation, live) in [(&one, &mut one_live), (&two, &mut two_live)] {
        say(conversation, live, "Hi. SCENARIO:hello").await.completed();
    }
    let gate = scene.model.gate("gated");
    let gated = "Go. SCENARIO:gated:4";
    let stopped = one.start_turn(gated.into()).await.unwrap();
    let kept = two.start_turn(gated.into()).await.unwrap();
    gate.release(2);
    gate.reached(2).await;
    one.interrupt().await.unwrap();
    end(&mut one_live, &stopped).await.ended(TurnStatus::Interrupted);
    gate.open();
    let ran = end(&mut two_live, &kept).await.completed();
    assert!(ran.end.text.preview().contains("gated3"), "{}", ran.story());
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_hears_of_the_server_s_death_and_goes_on() {
    let scene = shared().await;
    let (one, mut one_live) = open(&scene, "one").await;
    let (two, mut two_live) = open(&scene, "two").await;
    let ran = say(&one, &mut one_live, "The word is MANGO. SCENARIO:hello").await.completed();
    say(&two, &mut two_live, "The word is KIWI. SCENARIO:hello").await.completed();
    let gate = scene.model.gate("gated");
    let gated = "Go. SCENARIO:gated:4";
    let turns =
        (one.start_turn(gated.into()).await.unwrap(), two.start_turn(gated.into()).await.unwrap());
    gate.release(2);
    gate.reached(2).await;
    probe::kill(pid(&ran)).unwrap();
    for (live, turn) in [(&mut one_live, &turns.0), (&mut two_live, &turns.1)] {
        let ran = end(live, turn).await.ended(TurnStatus::Failed);
        assert_eq!(ran.end.error.as_ref().unwrap().code, FailureCode::AgentKilled);
    }
    gate.open();
    for (conversation, live, word) in
        [(&one, &mut one_live, "MANGO"), (&two, &mut two_live, "KIWI")]
    {
        say(conversation, live, "After. SCENARIO:hello").await.completed();
        assert_eq!(scene.heard(word), 1, "the session goes on");
    }
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_saved_prompt_is_a_command_and_is_expanded() {
    let scene = Scene::new(Wire::Codex).await;
    let directory = scene.home.home().join(".codex/prompts");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("greet.md"), "Greet $1, $WHO. SCENARIO:hello").unwrap();
    let ran = scene.run(Wire::Codex.unasked(), "/prompts:greet 'the world' WHO=please").await;
    assert_eq!(ran.completed().end.text.preview(), HELLO);
    assert_eq!(scene.heard("Greet the world, please."), 1);
    let told = scene.history().iter().any(|event| match &event.kind {
        Kind::ConversationConfigured(Configured { abilities: Some(it), .. }) => {
            it.commands.iter().any(|command| command.name == "prompts:greet")
        }
        _ => false,
    });
    assert!(told);
}

async fn end(live: &mut Subscription, turn: &TurnId) -> Ran {
    let (events, streamed, end) = until_end(live, turn).await;
    Ran { events, streamed, end }
}
