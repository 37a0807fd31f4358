//! The stage of these tests: a scripted model, a store, a hub, and the engine behind it.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tieline_agent::Agent;
use tieline_engine::model::Provider;
use tieline_engine::{Engine, Model, Settings};
use tieline_event::{
    ConversationKey, Event, Failure, Item, ItemBody, Kind, Mode, Prompt, TurnCompleted,
};
use tieline_hub::{Conversation, Entry, Hub, Limits, OpenOptions, Registry, Subscription};
use tieline_proc::Env;
use tieline_store::{Options, Store};
use tieline_testkit::model::ModelServer;

/// What `SCENARIO:hello` says.
pub(crate) const HELLO: &str = "Hello from the fake model.";

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Stage {
    pub(crate) dir: TempDir,
    pub(crate) model: ModelServer,
    pub(crate) settings: Settings,
}

struct One(Arc<Engine>);

impl Registry for One {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::clone(&self.0) as Arc<dyn Agent>)
    }
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let probe = PathBuf::from(env!("CARGO_BIN_EXE_engine-probe"));
        tieline_proc::set_host_program(probe.clone());
        tieline_sandbox::set_helper_program(probe);
        let dir = TempDir::new().unwrap();
        let model = ModelServer::start().await;
        let settings = settings(&dir, &model);
        let stage = Self { dir, model, settings };
        std::fs::create_dir_all(stage.workspace()).unwrap();
        std::fs::write(stage.workspace().join("README.md"), "# A workspace\n").unwrap();
        stage
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    pub(crate) fn hub(&self) -> Hub {
        let store = Store::open(&self.dir.path().join("store"), Options::default()).unwrap();
        let engine = Arc::new(Engine::new("engine", self.settings.clone()));
        Hub::new(store, Arc::new(One(engine)), Limits::default())
    }

    pub(crate) async fn open(&self, hub: &Hub, mode: Mode) -> Talk {
        self.open_as(hub, mode, "talk").await
    }

    pub(crate) async fn open_as(&self, hub: &Hub, mode: Mode, key: &str) -> Talk {
        let key: ConversationKey = key.parse().unwrap();
        let options = OpenOptions {
            agent: Some("engine".to_owned()),
            workspace: Some(self.workspace()),
            mode: Some(mode),
            ..OpenOptions::default()
        };
        let conversation = hub.conversation(&key, options).await.unwrap();
        let live = conversation.subscribe(conversation.last_seq());
        Talk {
            conversation,
            live,
            heard: VecDeque::new(),
            events: Vec::new(),
            grown: HashMap::new(),
        }
    }

    /// The bodies of the requests that the model got.
    pub(crate) fn asked(&self) -> Vec<serde_json::Value> {
        let all = self.model.requests().into_iter();
        all.filter(|it| it.path.ends_with("/responses")).map(|it| it.body).collect()
    }
}

fn settings(dir: &TempDir, model: &ModelServer) -> Settings {
    let mut env = Env::empty();
    env.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    env.set("HOME", dir.path());
    let mut provider = Provider::new("scripted", format!("{}/v1", model.url()));
    provider.retry_pause = Duration::from_millis(5);
    Settings {
        version: "0.0.0".to_owned(),
        provider,
        model: "scripted-1".to_owned(),
        models: vec![Model {
            name: "scripted-1".to_owned(),
            context_window: Some(100_000),
            thinks: true,
            sees: true,
            description: None,
        }],
        effort: None,
        personality: "none".to_owned(),
        compact_at: None,
        web_search: false,
        freeform_patch: true,
        home: Some(dir.path().to_owned()),
        config_dir: dir.path().join("config"),
        hidden: vec![dir.path().join("store")],
        protected: vec![dir.path().join("config")],
        env,
        shell: "/bin/bash".to_owned(),
        mcp_servers: Vec::new(),
    }
}

/// A conversation, and what was heard of it.
pub(crate) struct Talk {
    pub(crate) conversation: Conversation,
    live: Subscription,
    heard: VecDeque<Entry>,
    pub(crate) events: Vec<Event>,
    /// What came of each item piece by piece.
    pub(crate) grown: HashMap<String, String>,
}

impl Talk {
    /// Says something and waits for the end of the turn.
    pub(crate) async fn say(&mut self, text: &str) -> TurnCompleted {
        self.turn(Prompt::text(text)).await
    }

    pub(crate) async fn turn(&mut self, prompt: Prompt) -> TurnCompleted {
        self.events.clear();
        self.conversation.start_turn(prompt).await.unwrap();
        self.end().await
    }

    /// Waits for the end of the turn.
    pub(crate) async fn end(&mut self) -> TurnCompleted {
        match self.until(|kind| matches!(kind, Kind::TurnCompleted(_))).await {
            Kind::TurnCompleted(end) => end,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for an event.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Kind) -> bool) -> Kind {
        let wait = async {
            loop {
                while let Some(entry) = self.heard.pop_front() {
                    match entry {
                        Entry::Event(shown) => {
                            self.events.push(shown.event.clone());
                            if is_it(&shown.event.kind) {
                                return shown.event.kind.clone();
                            }
                        }
                        Entry::Delta(delta) => {
                            let id = delta.item.as_str().to_owned();
                            self.grown.entry(id).or_default().push_str(&delta.text);
                        }
                    }
                }
                self.heard.extend(self.live.next().await.unwrap());
            }
        };
        match tokio::time::timeout(PATIENCE, wait).await {
            Ok(kind) => kind,
            Err(_) => panic!("it never came; heard: {:#?}", self.names()),
        }
    }

    /// Items that were completed, in order.
    pub(crate) fn items(&self) -> Vec<Item> {
        let completed = |event: &Event| match &event.kind {
            Kind::ItemCompleted(item) => Some(item.clone()),
            _ => None,
        };
        self.events.iter().filter_map(completed).collect()
    }

    /// The names of the items that were completed.
    pub(crate) fn item_names(&self) -> Vec<&'static str> {
        self.items().iter().map(|item| item.body.name()).collect()
    }

    /// Everything that was heard, in a word each.
    pub(crate) fn names(&self) -> Vec<String> {
        self.events
            .iter()
            .map(|event| match &event.kind {
                Kind::ItemStarted(item) | Kind::ItemUpdated(item) | Kind::ItemCompleted(item) => {
                    format!("{} {}", event.kind.name(), item.body.name())
                }
                Kind::Notice(it) => format!("notice {} {}", it.code, it.text),
                Kind::TurnCompleted(end) => {
                    format!("turn.completed {:?} {:?}", end.status, end.error)
                }
                kind => kind.name().to_owned(),
            })
            .collect()
    }

    /// The output of the only command.
    pub(crate) fn command(&self) -> (String, Option<i32>) {
        let commands: Vec<_> = self
            .items()
            .into_iter()
            .filter_map(|item| match item.body {
                ItemBody::Command { output, exit_code, .. } => {
                    Some((output.preview().to_owned(), exit_code))
                }
                _ => None,
            })
            .collect();
        assert_eq!(commands.len(), 1, "{:#?}", self.names());
        commands[0].clone()
    }
}
