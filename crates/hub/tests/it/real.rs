//! The real Claude Code against the scripted model, in a network of loopback alone.

mod approvals;
mod failures;
mod interrupts;
mod sessions;
mod tools;

use std::path::Path;
use std::sync::Arc;

use tieline_agent::Agent;
use tieline_agent::claude::{Claude, Lifetime};
use tieline_event::{Event, Failure, Kind, Mode, Prompt, Seq, TurnCompleted};
use tieline_hub::{Conversation, Hub, Limits, OpenOptions, Registry, Subscription};
use tieline_proc::Env;
use tieline_store::{Options, Store};
use tieline_testkit::model::ModelServer;
use tieline_testkit::{probe, real};

use crate::bench::{key, until_end};

/// One scene: a model, a home, a workspace, a store and a hub.
pub(crate) struct Scene {
    pub(crate) model: ModelServer,
    pub(crate) claude: real::ClaudeEnv,
    pub(crate) hub: Hub,
}

struct Real {
    env: Env,
    lifetime: Lifetime,
    is_root: bool,
}

impl Registry for Real {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::new(Claude {
            program: real::claude_program(),
            args: Vec::new(),
            env: self.env.clone(),
            lifetime: self.lifetime,
            preamble: false,
            name: "claude",
            is_root: self.is_root,
        }))
    }
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with(Lifetime::Conversation, Limits::default(), &[]).await
    }

    /// A scene whose agent lacks some variables.
    pub(crate) async fn with(lifetime: Lifetime, limits: Limits, without: &[&str]) -> Self {
        assert!(real::loopback_only(), "run this suite with `cargo xtask test`");
        tieline_proc::set_host_program(real::fake_agent_program());
        let model = ModelServer::start().await;
        let claude = real::ClaudeEnv::new(model.url());
        let mut env = Env::empty();
        for (name, value) in claude.vars() {
            if !without.contains(&name.as_str()) {
                env.set(name, value);
            }
        }
        let store = Store::open(&claude.root().join("store"), Options::default()).unwrap();
        let registry = Real { env, lifetime, is_root: true };
        let hub = Hub::new(store, Arc::new(registry), limits);
        Self { model, claude, hub }
    }

    pub(crate) fn options(&self, mode: Mode) -> OpenOptions {
        OpenOptions {
            agent: Some("claude".into()),
            workspace: Some(self.claude.workspace()),
            mode: Some(mode),
            ..OpenOptions::default()
        }
    }

    pub(crate) async fn open(&self, mode: Mode) -> (Conversation, Subscription) {
        let conversation = self.hub.conversation(&key(), self.options(mode)).await.unwrap();
        let subscription = conversation.subscribe(Seq(0));
        (conversation, subscription)
    }

    /// Opens, runs one turn to its end, closes, and checks that nobody is left.
    pub(crate) async fn run(&self, mode: Mode, prompt: &str) -> Ran {
        let (conversation, mut live) = self.open(mode).await;
        let turn = conversation.start_turn(Prompt::text(prompt)).await.unwrap();
        let (events, streamed, end) = until_end(&mut live, &turn).await;
        self.close().await;
        Ran { events, streamed, end }
    }

    pub(crate) async fn close(&self) {
        self.hub.close_all().await;
        let marker = format!("HOME={}", self.claude.home().display());
        assert_eq!(probe::alive_with(&marker), Vec::<u32>::new(), "no process remains");
    }
}

/// A turn that ran.
pub(crate) struct Ran {
    pub(crate) events: Vec<Event>,
    pub(crate) streamed: String,
    pub(crate) end: TurnCompleted,
}

impl Ran {
    /// Completed items of a type, as text for comparison.
    pub(crate) fn items(&self, name: &str) -> Vec<tieline_event::Item> {
        items(&self.events, name)
    }
}

pub(crate) fn items(events: &[Event], name: &str) -> Vec<tieline_event::Item> {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::ItemCompleted(item) if item.body.name() == name => Some(item.clone()),
            _ => None,
        })
        .collect()
}

/// The ends of turns, in order.
pub(crate) fn ends(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.kind, Kind::TurnCompleted(_))).count()
}
