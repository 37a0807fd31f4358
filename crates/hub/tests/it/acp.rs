//! An agent made with the Agent Client Protocol's own SDK, and what it leaves to us: files and
//! terminals in a real workspace.

use std::os::unix::fs::symlink;

use tieline_event::{
    Answer, EndSignal, Event, FailureCode, Item, ItemBody, ItemStatus, Kind, Mode, Origin, Prompt,
    Request, RequestBody, Seq, TurnCompleted, TurnStatus,
};
use tieline_hub::{Conversation, Hub, OpenOptions, Subscription};

use crate::bench::{Bench, Wire, key, until, until_end};

/// A conversation with the agent in some mode.
struct Talk {
    bench: Bench,
    hub: Hub,
    conversation: Conversation,
    live: Subscription,
}

impl Talk {
    async fn new(mode: Mode) -> Self {
        let bench = Bench::on(Wire::Sdk, "");
        let hub = bench.hub();
        let options = OpenOptions { mode: Some(mode), ..bench.open_options() };
        let conversation = hub.conversation(&key(), options).await.unwrap();
        let live = conversation.subscribe(Seq(0));
        Self { bench, hub, conversation, live }
    }

    fn path(&self, name: &str) -> String {
        self.bench.workspace().join(name).display().to_string()
    }

    async fn say(&mut self, text: &str) -> (Vec<Event>, TurnCompleted) {
        let turn = self.conversation.start_turn(Prompt::text(text)).await.unwrap();
        let (events, _, end) = until_end(&mut self.live, &turn).await;
        (events, end)
    }

    /// What the agent said at the end of a turn.
    async fn heard(&mut self, text: &str) -> String {
        self.say(text).await.1.text.preview().to_owned()
    }

    async fn begin(&mut self, text: &str) -> Request {
        self.conversation.start_turn(Prompt::text(text)).await.unwrap();
        until(&mut self.live, |event| match &event.kind {
            Kind::RequestOpened(request) => Some(request.clone()),
            _ => None,
        })
        .await
    }

    async fn answer(&mut self, request: &Request, answer: Answer) -> TurnCompleted {
        self.conversation.answer(&request.id, answer, Origin::Human, None).await.unwrap();
        self.end().await
    }

    async fn end(&mut self) -> TurnCompleted {
        until(&mut self.live, |event| match &event.kind {
            Kind::TurnCompleted(end) => Some(end.clone()),
            _ => None,
        })
        .await
    }

    async fn close(self) {
        self.hub.close_all().await;
        assert!(self.bench.alive().is_empty(), "alive: {:?}", self.bench.alive());
    }
}

fn completed(events: &[Event]) -> impl Iterator<Item = &Item> {
    events.iter().filter_map(|event| match &event.kind {
        Kind::ItemCompleted(item) => Some(item),
        _ => None,
    })
}

#[tokio::test]
async fn it_speaks_thinks_and_plans() {
    let mut talk = Talk::new(Mode::Default).await;
    let (events, end) = talk.say("speak").await;
    assert_eq!((end.status, end.text.preview()), (TurnStatus::Completed, "Hello there."));
    let names: Vec<_> = completed(&events).map(|item| item.body.name()).collect();
    assert_eq!(names, ["user_message", "reasoning", "agent_message"]);
    assert!(!events.iter().any(|event| matches!(event.kind, Kind::Unparsed(_))));
    let (events, _) = talk.say("plan").await;
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.kind, Kind::PlanUpdated(it) if it.entries.len() == 2))
    );
    talk.close().await;
}

#[tokio::test]
async fn it_tells_what_it_can_do_before_the_first_turn() {
    let mut talk = Talk::new(Mode::Default).await;
    talk.conversation.wake().await.unwrap();
    let version = until(&mut talk.live, |event| match &event.kind {
        Kind::ConversationConfigured(it) => it.agent_version.clone(),
        _ => None,
    })
    .await;
    assert_eq!(version, "5.0.0");
    talk.close().await;
}

#[tokio::test]
async fn every_option_it_offers_can_be_chosen() {
    let mut talk = Talk::new(Mode::Default).await;
    for option in ["yes", "all", "half", "no"] {
        let request = talk.begin("permission").await;
        assert_eq!(request.title, "Paint it black");
        let ids: Vec<_> = request.options.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["yes", "all", "half", "no"]);
        let end = talk.answer(&request, Answer::Choose { option: option.to_owned() }).await;
        assert_eq!(end.text.preview(), option);
    }
    let stored = talk.hub.store().events(&key(), Seq(0), 1000).unwrap();
    let last = stored.iter().rev().find_map(|stored| {
        let event = Event::from_json(&stored.json).ok()?;
        match event.kind {
            Kind::ItemCompleted(item) if item.body.name() == "tool_call" => Some(item.status),
            _ => None,
        }
    });
    assert_eq!(last, Some(ItemStatus::Declined), "the last answer was no");
    talk.close().await;
}

#[tokio::test]
async fn a_cancel_while_it_asks_ends_the_turn() {
    let mut talk = Talk::new(Mode::Default).await;
    let request = talk.begin("permission").await;
    talk.conversation.interrupt().await.unwrap();
    let end = talk.end().await;
    assert_eq!((end.status, end.signal), (TurnStatus::Interrupted, EndSignal::Wire));
    let late = talk.conversation.answer(&request.id, Answer::allow(), Origin::Human, None).await;
    assert!(late.is_err());
    assert_eq!(talk.heard("speak").await, "Hello there.", "and the next turn works");
    talk.close().await;
}

#[tokio::test]
async fn files_are_read_and_written_by_the_mode() {
    let mut talk = Talk::new(Mode::AcceptEdits).await;
    let path = talk.path("new/a.txt");
    assert_eq!(talk.heard(&format!("write {path} first words")).await, "written");
    assert_eq!(talk.heard(&format!("read {path}")).await, "first words");
    assert!(talk.heard(&format!("read {}", talk.path("nothing"))).await.starts_with("refused"));

    talk.conversation.set_mode(Mode::Plan).await.unwrap();
    assert!(talk.heard(&format!("write {path} more")).await.contains("mode plan"));

    talk.conversation.set_mode(Mode::Default).await.unwrap();
    let request = talk.begin(&format!("write {path} asked")).await;
    let RequestBody::Approval(approval) = &request.body else { panic!("{request:?}") };
    assert_eq!(approval.changes[0].new_text.as_ref().unwrap().preview(), "asked");
    assert_eq!(approval.changes[0].old_text.as_ref().unwrap().preview(), "first words");
    let end = talk.answer(&request, Answer::deny("no")).await;
    assert!(end.text.preview().starts_with("refused"), "{:?}", end.text);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "first words");
    let request = talk.begin(&format!("write {path} asked")).await;
    assert_eq!(talk.answer(&request, Answer::allow()).await.text.preview(), "written");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "asked");
    talk.close().await;
}

#[tokio::test]
async fn nothing_outside_the_workspace_is_read_or_written_in_any_mode() {
    let mut talk = Talk::new(Mode::Yolo).await;
    let secret = talk.bench.dir.path().join("secret");
    std::fs::write(&secret, "hunter2").unwrap();
    symlink(&secret, talk.path("link")).unwrap();
    symlink(talk.bench.dir.path(), talk.path("up")).unwrap();
    for path in [
        secret.display().to_string(),
        talk.path("../secret"),
        talk.path("link"),
        talk.path("up/secret"),
        "/etc/hostname".to_owned(),
    ] {
        let said = talk.heard(&format!("read {path}")).await;
        assert!(said.starts_with("refused"), "{path}: {said}");
        let said = talk.heard(&format!("write {path} gotcha")).await;
        assert!(said.starts_with("refused"), "{path}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hunter2");
    talk.close().await;
}

#[tokio::test]
async fn a_terminal_prints_in_order_and_is_cut_at_its_beginning() {
    let mut talk = Talk::new(Mode::BypassPermissions).await;
    let (events, end) = talk.say("run echo out; echo err >&2; echo again; exit 3").await;
    assert_eq!(end.text.preview(), "exit Some(3), cut false: out\nerr\nagain\n");
    let command = completed(&events).find(|item| item.body.name() == "command").unwrap();
    let ItemBody::Command { output, exit_code, .. } = &command.body else { panic!("{command:?}") };
    assert_eq!((output.preview(), *exit_code), ("out\nerr\nagain\n", Some(3)));
    assert_eq!(command.status, ItemStatus::Failed);
    let said = talk.heard("run for i in 1 2 3 4 5 6 7 8 9; do echo line number $i; done").await;
    assert!(said.starts_with("exit Some(0), cut true: "), "{said}");
    assert!(said.ends_with("line number 9\n") && !said.contains("number 1\n"), "{said}");
    assert!(talk.heard("run pwd").await.contains("workspace"));
    talk.close().await;
}

#[tokio::test]
async fn commands_die_with_the_turn_the_agent_and_the_conversation() {
    // With the conversation.
    let talk = Talk::new(Mode::Yolo).await;
    let hang = "hang setsid sleep 300 & sleep 300";
    talk.conversation.start_turn(Prompt::text(hang)).await.unwrap();
    talk.bench.has_descendants().await;
    talk.close().await;
    // With the agent.
    let mut talk = Talk::new(Mode::Yolo).await;
    talk.conversation.start_turn(Prompt::text(hang)).await.unwrap();
    talk.bench.has_descendants().await;
    talk.conversation.interrupt().await.unwrap();
    assert_eq!(talk.end().await.status, TurnStatus::Interrupted);
    let (_, end) = talk.say("die").await;
    assert_eq!(end.error.unwrap().code, FailureCode::AgentExited);
    talk.bench.nobody_is_left().await;
    talk.close().await;
    // With whoever wanted it.
    let talk = Talk::new(Mode::Yolo).await;
    talk.conversation.start_turn(Prompt::text(hang)).await.unwrap();
    talk.bench.has_descendants().await;
    let Talk { bench, hub, conversation, live } = talk;
    drop((live, conversation, hub));
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn the_next_process_loads_the_session_and_tells_nothing_twice() {
    let mut talk = Talk::new(Mode::Default).await;
    talk.say("speak").await;
    let (_, end) = talk.say("die").await;
    assert_eq!(end.status, TurnStatus::Failed);
    let (events, end) = talk.say("speak").await;
    assert_eq!(end.text.preview(), "Hello there.");
    let said: Vec<_> = completed(&events).filter(|it| it.body.name() == "agent_message").collect();
    assert_eq!(said.len(), 1, "not what was said before: {said:?}");
    let session = talk.hub.store().conversation(&key()).unwrap().unwrap().native_session;
    assert_eq!(session.as_deref(), Some("sdk-session"));
    talk.close().await;
}

#[tokio::test]
async fn the_fake_agent_takes_a_message_in_a_turn() {
    let bench = Bench::on(Wire::Acp, "tool sleep {}\nsleep 300\necho");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("one")).await.unwrap();
    until(&mut live, |event| match &event.kind {
        Kind::ItemCompleted(item) => (item.body.name() == "command").then_some(()),
        _ => None,
    })
    .await;
    assert_eq!(conversation.steer_or_queue(Prompt::text("two")).await.unwrap(), None);
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.text.preview(), "one");
    hub.close_all().await;
}
