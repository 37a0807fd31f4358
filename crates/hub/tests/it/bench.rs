//! The bench of these tests: a store in a temporary directory and the fake agent as `claude`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tieline_agent::Agent;
use tieline_agent::claude::{Claude, Lifetime};
use tieline_event::{ConversationKey, Event, Failure, Kind, Seq, TurnCompleted, TurnId};
use tieline_hub::{Conversation, Entry, Hub, Limits, OpenOptions, Registry, Subscription};
use tieline_proc::Env;
use tieline_store::{Options, Store};
use tieline_testkit::{probe, real};

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) marker: String,
    script: String,
    lifetime: Lifetime,
}

struct Fake {
    env: Env,
    lifetime: Lifetime,
}

impl Registry for Fake {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::new(Claude {
            program: real::fake_agent_program(),
            args: Vec::new(),
            env: self.env.clone(),
            lifetime: self.lifetime,
            preamble: false,
            name: "claude",
            is_root: false,
        }))
    }
}

impl Bench {
    /// A bench whose agent plays this script.
    pub(crate) fn new(script: &str) -> Self {
        tieline_proc::set_host_program(real::fake_agent_program());
        let dir = TempDir::new().unwrap();
        let marker = format!("TIELINE_BENCH={}", dir.path().display());
        Self { dir, marker, script: script.to_owned(), lifetime: Lifetime::Conversation }
    }

    pub(crate) fn one_process_per_turn(mut self) -> Self {
        self.lifetime = Lifetime::Turn;
        self
    }

    pub(crate) fn store_dir(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        let workspace = self.dir.path().join("workspace");
        std::fs::create_dir_all(&workspace).unwrap();
        workspace
    }

    pub(crate) fn registry(&self) -> Arc<dyn Registry> {
        let mut env = Env::empty();
        env.set("PATH", "/usr/bin:/bin");
        env.set("FAKE_AGENT_SCRIPT", self.script.as_str());
        let (name, value) = self.marker.split_once('=').unwrap();
        env.set(name, value);
        Arc::new(Fake { env, lifetime: self.lifetime })
    }

    pub(crate) fn hub(&self) -> Hub {
        self.hub_with(quick(), Options::default())
    }

    pub(crate) fn hub_with(&self, limits: Limits, options: Options) -> Hub {
        let store = Store::open(&self.store_dir(), options).unwrap();
        Hub::new(store, self.registry(), limits)
    }

    pub(crate) fn open_options(&self) -> OpenOptions {
        OpenOptions {
            agent: Some("claude".into()),
            workspace: Some(self.workspace()),
            ..OpenOptions::default()
        }
    }

    pub(crate) async fn open(&self, hub: &Hub) -> (Conversation, Subscription) {
        let conversation = hub.conversation(&key(), self.open_options()).await.unwrap();
        let subscription = conversation.subscribe(Seq(0));
        (conversation, subscription)
    }

    /// Descendants that carry this bench's marker, the hosts not counted.
    pub(crate) fn alive(&self) -> Vec<u32> {
        probe::alive_with(&self.marker)
    }

    pub(crate) async fn nobody_is_left(&self) {
        let patience = std::time::Instant::now() + Duration::from_secs(2);
        while !self.alive().is_empty() {
            assert!(std::time::Instant::now() < patience, "alive: {:?}", self.alive());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Limits under which nothing in a test waits long.
pub(crate) fn quick() -> Limits {
    Limits {
        interrupt_grace: Duration::from_millis(500),
        exit_grace: Duration::from_millis(500),
        stop_grace: Duration::from_millis(200),
        ..Limits::default()
    }
}

pub(crate) fn key() -> ConversationKey {
    ConversationKey::new("test").unwrap()
}

/// Everything up to the end of a turn: events, and the text of its deltas.
pub(crate) async fn until_end(
    subscription: &mut Subscription,
    turn: &TurnId,
) -> (Vec<Event>, String, TurnCompleted) {
    let mut events = Vec::new();
    let mut streamed = String::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(30), subscription.next());
        let entries = next.await.expect("a turn ends").unwrap();
        assert!(!entries.is_empty(), "closed before the turn ended: {events:?}");
        for entry in entries {
            match entry {
                Entry::Delta(delta) => streamed.push_str(&delta.text),
                Entry::Event(shown) => {
                    events.push(shown.event.clone());
                    if let Kind::TurnCompleted(end) = &shown.event.kind
                        && shown.event.turn.as_ref() == Some(turn)
                    {
                        return (events, streamed, end.clone());
                    }
                }
            }
        }
    }
}

/// Waits for an event that the test looks for.
pub(crate) async fn until<T>(
    subscription: &mut Subscription,
    find: impl Fn(&Event) -> Option<T>,
) -> T {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(30), subscription.next());
        let entries = next.await.expect("the event comes").unwrap();
        assert!(!entries.is_empty(), "closed before the event came");
        let found = entries.iter().find_map(|entry| match entry {
            Entry::Event(shown) => find(&shown.event),
            Entry::Delta(_) => None,
        });
        if let Some(found) = found {
            return found;
        }
    }
}
