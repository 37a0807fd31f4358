//! Commands act at every moment: while an agent starts, while it stops, while the store is locked.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tieline_agent::{Agent, Launch, Launching};
use tieline_event::{Answer, Failure, Kind, Mode, Origin, Prompt, TurnStatus};
use tieline_hub::{Error, Hub, Limits, Registry};
use tieline_store::{Options, Store};
use tieline_testkit::probe;
use tokio::sync::Semaphore;

use crate::bench::{Bench, Wire, quick, until, until_end};

/// Lets an agent start when the test says so.
#[derive(Clone)]
struct Gate {
    open: Arc<Semaphore>,
    n_waiting: Arc<AtomicUsize>,
}

impl Gate {
    fn closed() -> Self {
        Self { open: Arc::new(Semaphore::new(0)), n_waiting: Arc::default() }
    }

    fn let_one_start(&self) {
        self.open.add_permits(1);
    }

    async fn has_started(&self, n: usize) {
        while self.n_waiting.load(Ordering::SeqCst) < n {
            tokio::task::yield_now().await;
        }
    }
}

struct Gated<T> {
    inner: T,
    gate: Gate,
}

impl Registry for Gated<Arc<dyn Registry>> {
    fn agent(&self, name: &str, workspace: &Path) -> Result<Arc<dyn Agent>, Failure> {
        let inner = self.inner.agent(name, workspace)?;
        Ok(Arc::new(Gated { inner, gate: self.gate.clone() }))
    }
}

impl Agent for Gated<Arc<dyn Agent>> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(async move {
            self.gate.n_waiting.fetch_add(1, Ordering::SeqCst);
            self.gate.open.acquire().await.unwrap().forget();
            self.inner.launch(launch).await
        })
    }
}

/// A hub whose agents start when the gate opens.
fn gated_hub(bench: &Bench, limits: Limits) -> (Hub, Gate) {
    let gate = Gate::closed();
    let registry = Gated { inner: bench.registry(), gate: gate.clone() };
    let store = Store::open(&bench.store_dir(), Options::default()).unwrap();
    (Hub::new(store, Arc::new(registry), limits), gate)
}

#[tokio::test]
async fn an_interrupt_ends_a_turn_whose_agent_still_starts() {
    let bench = Bench::new("say Back again.");
    let (hub, gate) = gated_hub(&bench, quick());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go"));
    gate.has_started(1).await;
    conversation.interrupt().await.unwrap();
    let turn = turn.await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    assert!(matches!(conversation.interrupt().await, Err(Error::NoTurn)));
    // The agent that was starting serves the next turn.
    gate.let_one_start();
    bench.works_again(&conversation, &mut live).await;
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn a_cancel_takes_every_turn_that_waits_for_a_starting_agent() {
    let bench = Bench::new("say Back again.");
    let (hub, gate) = gated_hub(&bench, quick());
    let (conversation, mut live) = bench.open(&hub).await;
    let first = conversation.start_turn(Prompt::text("one"));
    let second = conversation.start_turn(Prompt::text("two"));
    gate.has_started(1).await;
    conversation.cancel().await.unwrap();
    assert!(matches!(second.await, Err(Error::Cancelled)));
    let (_, _, end) = until_end(&mut live, &first.await.unwrap()).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    gate.let_one_start();
    bench.works_again(&conversation, &mut live).await;
    hub.close_all().await;
}

#[tokio::test]
async fn a_message_for_a_turn_whose_agent_starts_reaches_that_turn() {
    let bench = Bench::on(Wire::App, "say Wait.\nsleep 300\necho");
    let (hub, gate) = gated_hub(&bench, quick());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("one"));
    let steered = conversation.steer_or_queue(Prompt::text("two"));
    gate.has_started(1).await;
    gate.let_one_start();
    assert_eq!(steered.await.unwrap(), None, "it went to the running turn");
    let (events, _, end) = until_end(&mut live, &turn.await.unwrap()).await;
    assert_eq!(end.text.preview(), "one");
    let is_user =
        |kind: &Kind| matches!(kind, Kind::ItemCompleted(it) if it.body.name() == "user_message");
    assert_eq!(events.iter().filter(|event| is_user(&event.kind)).count(), 2);
    hub.close_all().await;
}

#[tokio::test]
async fn a_mode_chosen_while_the_agent_starts_is_the_mode_of_the_turn() {
    let bench = Bench::new("say Hello.");
    let (hub, gate) = gated_hub(&bench, quick());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go"));
    gate.has_started(1).await;
    conversation.set_mode(Mode::Plan).await.unwrap();
    // One that did not know the mode is not used.
    gate.has_started(2).await;
    gate.let_one_start();
    let (events, ..) = until_end(&mut live, &turn.await.unwrap()).await;
    let args: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::ProcessSpawned(it) => Some(it.args.join(" ")),
            _ => None,
        })
        .collect();
    assert!(args.len() == 1 && args[0].contains("--permission-mode plan"), "{args:?}");
    hub.close_all().await;
}

#[tokio::test]
async fn closing_does_not_wait_for_an_agent_that_starts() {
    let bench = Bench::new("say Hello.");
    let (hub, gate) = gated_hub(&bench, quick());
    let (conversation, _live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go"));
    let wake = conversation.wake();
    gate.has_started(1).await;
    conversation.close().await.unwrap();
    assert!(matches!(turn.await, Err(Error::Closed)));
    assert!(matches!(wake.await, Err(Error::Closed)));
    // The other conversations of the hub are not delayed either.
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn another_conversation_is_not_delayed_by_one_whose_agent_starts() {
    let bench = Bench::new("say Hello.");
    let (hub, gate) = gated_hub(&bench, quick());
    let (slow, _live) = bench.open(&hub).await;
    let waits = slow.start_turn(Prompt::text("go"));
    gate.has_started(1).await;
    let other = tieline_event::ConversationKey::new("other").unwrap();
    let (other, mut live) = bench.open_as(&hub, &other).await;
    let turn = other.start_turn(Prompt::text("go"));
    gate.has_started(2).await;
    // The first one waits at the gate longest, so both may go.
    gate.let_one_start();
    gate.let_one_start();
    until_end(&mut live, &turn.await.unwrap()).await;
    waits.await.unwrap();
    hub.close_all().await;
}

#[tokio::test]
async fn commands_act_while_an_agent_is_being_stopped() {
    let bench = Bench::new("ignore TERM\nsay Hello.\nlinger 3600000");
    let hour = Duration::from_secs(3600);
    let limits = Limits { exit_grace: hour, ..quick() };
    let hub = bench.hub_with(limits, Options::default());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    until_end(&mut live, &turn).await;
    // It does not go when it is told to.
    let reset = tokio::spawn(conversation.reset());
    let waits = conversation.start_turn(Prompt::text("next"));
    conversation.rename("a name".to_owned()).await.unwrap();
    let unknown = conversation.answer(&"nobody".into(), Answer::allow(), Origin::Human, None).await;
    assert!(matches!(unknown, Err(Error::NoRequest(_))));
    conversation.interrupt().await.unwrap();
    let (_, _, end) = until_end(&mut live, &waits.await.unwrap()).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    assert!(!reset.is_finished() && !bench.alive().is_empty(), "the old process is still there");
    bench.play("say Back again.");
    for pid in bench.alive() {
        probe::kill(pid).unwrap();
    }
    reset.await.unwrap().unwrap();
    bench.works_again(&conversation, &mut live).await;
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn answers_and_interrupts_reach_the_agent_while_the_store_is_locked() {
    let bench = Bench::new("");
    let seen = bench.dir.path().join("seen");
    let script = format!(
        "ask-permission Bash {{\"command\":\"touch x\"}}\ndump-argv {}\nsilence\n---\nsay Back again.",
        seen.display()
    );
    bench.play(&script);
    let limits = Limits { interrupt_grace: Duration::from_secs(3600), ..quick() };
    let hub = bench.hub_with(limits, Options::default());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let request = until(&mut live, |event| match &event.kind {
        Kind::RequestOpened(request) => Some(request.id.clone()),
        _ => None,
    })
    .await;
    let other = rusqlite::Connection::open(bench.store_dir().join("tieline.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    conversation.answer(&request, Answer::allow(), Origin::Human, None).await.unwrap();
    // The agent goes on although nothing can be written.
    while !seen.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    conversation.interrupt().await.unwrap();
    other.execute_batch("COMMIT").unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.status, TurnStatus::Interrupted);
    let turn = conversation.start_turn(Prompt::text("and now?")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.text.preview(), "Back again.");
    hub.close_all().await;
}

#[tokio::test]
async fn a_time_the_clock_does_not_have_never_comes() {
    let bench = Bench::new("say Hello.");
    let limits = Limits {
        turn_timeout: Some(Duration::from_secs(u64::MAX)),
        idle: Duration::MAX,
        interrupt_grace: Duration::MAX,
        ..quick()
    };
    let hub = bench.hub_with(limits, Options::default());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.text.preview(), "Hello.");
    hub.close_all().await;
}
