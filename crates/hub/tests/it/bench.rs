//! The bench of these tests: a store in a temporary directory and the fake agent on any wire.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tieline_agent::Agent;
use tieline_agent::acp::AcpAgent;
use tieline_agent::claude::{Claude, Lifetime};
use tieline_agent::codex::{Codex, Versions};
use tieline_agent::codex_app::CodexApp;
use tieline_agent::codex_exec::CodexExec;
use tieline_agent::codex_proto::CodexProto;
use tieline_event::{
    ConversationKey, Event, Exited, Failure, Kind, Prompt, Seq, TurnCompleted, TurnId,
};
use tieline_hub::{Conversation, Entry, Hub, Limits, OpenOptions, Registry, Subscription};
use tieline_proc::Env;
use tieline_store::{Options, Store};
use tieline_testkit::{probe, real};

/// What the fake agent speaks, and which driver listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Claude,
    App,
    /// An app server with so many seats.
    Shared(usize),
    Exec,
    /// `codex exec` of a version that does not tell the end of a turn.
    OldExec,
    Proto,
    /// Any agent of the Agent Client Protocol.
    Acp,
    /// An agent made with that protocol's own SDK.
    Sdk,
}

/// The wires that every fault is tried on.
pub(crate) const WIRES: [Wire; 5] = [Wire::Claude, Wire::App, Wire::Exec, Wire::Proto, Wire::Acp];

impl Wire {
    fn agent(self) -> &'static str {
        match self {
            Wire::Claude => "claude",
            Wire::App | Wire::Shared(_) => "codex",
            Wire::Exec | Wire::OldExec => "codex-exec",
            Wire::Proto => "codex-proto",
            Wire::Acp => "acp:fake",
            Wire::Sdk => "acp:sdk",
        }
    }

    fn version(self) -> Option<&'static str> {
        match self {
            Wire::Claude | Wire::Acp | Wire::Sdk => None,
            Wire::App | Wire::Shared(_) | Wire::Exec => Some("0.166.0"),
            Wire::OldExec => Some("0.36.0"),
            Wire::Proto => Some("0.42.0"),
        }
    }

    /// Whether the next process knows what was said to the last one.
    pub(crate) fn resumes(self) -> bool {
        !matches!(self, Wire::Proto | Wire::OldExec)
    }
}

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) marker: String,
    wire: Wire,
    lifetime: Lifetime,
    versions: Arc<Versions>,
}

struct Fake {
    env: Env,
    wire: Wire,
    lifetime: Lifetime,
    versions: Arc<Versions>,
}

impl Registry for Fake {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        let program = real::fake_agent_program();
        let codex = || Codex {
            program: program.clone(),
            args: Vec::new(),
            env: self.env.clone(),
            preamble: false,
            notify: None,
            versions: Arc::clone(&self.versions),
        };
        Ok(match self.wire {
            Wire::Claude => Arc::new(Claude {
                program,
                args: Vec::new(),
                env: self.env.clone(),
                lifetime: self.lifetime,
                preamble: false,
                name: "claude",
                is_root: false,
            }),
            Wire::App => Arc::new(CodexApp { codex: codex(), seats: 1 }),
            Wire::Shared(seats) => Arc::new(CodexApp { codex: codex(), seats }),
            Wire::Exec | Wire::OldExec => Arc::new(CodexExec { codex: codex() }),
            Wire::Proto => Arc::new(CodexProto { codex: codex() }),
            Wire::Sdk => Arc::new(AcpAgent {
                name: "acp:sdk".to_owned(),
                program: real::sdk_agent_program(),
                args: Vec::new(),
                env: self.env.clone(),
                preamble: false,
            }),
            Wire::Acp => Arc::new(AcpAgent {
                name: "acp:fake".to_owned(),
                program,
                args: vec!["acp".to_owned()],
                env: self.env.clone(),
                preamble: false,
            }),
        })
    }
}

impl Bench {
    /// A bench whose Claude plays this script.
    pub(crate) fn new(script: &str) -> Self {
        Self::on(Wire::Claude, script)
    }

    /// A bench whose agent speaks this wire and plays this script.
    pub(crate) fn on(wire: Wire, script: &str) -> Self {
        tieline_proc::set_host_program(real::fake_agent_program());
        let dir = TempDir::new().unwrap();
        let marker = format!("TIELINE_BENCH={}", dir.path().display());
        let lifetime = Lifetime::Conversation;
        let bench = Self { dir, marker, wire, lifetime, versions: Arc::default() };
        bench.play(script);
        bench
    }

    /// What the next process plays.
    pub(crate) fn play(&self, script: &str) {
        std::fs::write(self.script(), script).unwrap();
    }

    fn script(&self) -> PathBuf {
        self.dir.path().join("script")
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
        // By a file, so that the next process may play something else in the same environment.
        env.set("FAKE_AGENT_SCRIPT", self.script());
        if let Some(version) = self.wire.version() {
            env.set("FAKE_AGENT_VERSION", version);
        }
        let (name, value) = self.marker.split_once('=').unwrap();
        env.set(name, value);
        let versions = Arc::clone(&self.versions);
        Arc::new(Fake { env, wire: self.wire, lifetime: self.lifetime, versions })
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
            agent: Some(self.wire.agent().into()),
            workspace: Some(self.workspace()),
            ..OpenOptions::default()
        }
    }

    pub(crate) async fn open(&self, hub: &Hub) -> (Conversation, Subscription) {
        self.open_as(hub, &key()).await
    }

    pub(crate) async fn open_as(
        &self,
        hub: &Hub,
        key: &ConversationKey,
    ) -> (Conversation, Subscription) {
        let conversation = hub.conversation(key, self.open_options()).await.unwrap();
        let subscription = conversation.subscribe(Seq(0));
        (conversation, subscription)
    }

    /// A turn in a process that plays this, after the last one is gone. Where the wire cannot go
    /// on with a session it says so, and begins anew when asked to.
    pub(crate) async fn works_again(&self, conversation: &Conversation, live: &mut Subscription) {
        self.play("say Back again.");
        let said = |end: TurnCompleted| end.text.preview().to_owned();
        let turn = conversation.start_turn(Prompt::text("and now?")).await.unwrap();
        let (_, _, end) = until_end(live, &turn).await;
        let end = match &end.error {
            Some(error) if !self.wire.resumes() => {
                assert_eq!(error.code, tieline_event::FailureCode::SessionUnknown, "{error}");
                assert!(error.hint.as_ref().unwrap().contains("--fresh"), "{error:?}");
                conversation.reset().await.unwrap();
                let turn = conversation.start_turn(Prompt::text("and now?")).await.unwrap();
                until_end(live, &turn).await.2
            }
            error => {
                assert!(error.is_none(), "{:?}: {error:?}", self.wire);
                end
            }
        };
        assert_eq!(said(end), "Back again.", "{:?}", self.wire);
    }

    /// Descendants that carry this bench's marker, the hosts not counted.
    pub(crate) fn alive(&self) -> Vec<u32> {
        probe::alive_with(&self.marker)
    }

    /// Until the agent has started somebody.
    pub(crate) async fn has_descendants(&self) {
        let patience = std::time::Instant::now() + Duration::from_secs(10);
        while self.alive().len() < 2 {
            assert!(std::time::Instant::now() < patience, "alive: {:?}", self.alive());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn nobody_is_left(&self) {
        let patience = std::time::Instant::now() + Duration::from_secs(5);
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

/// How the last process ended.
pub(crate) fn exit_in(events: &[Event]) -> Option<Exited> {
    events.iter().rev().find_map(|event| match &event.kind {
        Kind::ProcessExited(it) => Some(it.clone()),
        _ => None,
    })
}

/// Whether this is a message of the agent that is over.
pub(crate) fn is_message(event: &Event) -> bool {
    matches!(&event.kind, Kind::ItemCompleted(item) if item.body.name() == "agent_message")
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
