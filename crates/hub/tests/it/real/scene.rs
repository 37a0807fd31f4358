//! The stage of a scene: a real agent, a scripted model, a home, a store and a hub.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tieline_agent::Agent;
use tieline_agent::acp::AcpAgent;
use tieline_agent::claude::{Claude, Lifetime};
use tieline_agent::codex::{Codex, Versions};
use tieline_agent::codex_app::CodexApp;
use tieline_agent::codex_exec::CodexExec;
use tieline_agent::codex_proto::CodexProto;
use tieline_event::{
    Event, Failure, FrameNo, Item, ItemBody, Kind, Mode, Prompt, Seq, TurnCompleted, TurnStatus,
};
use tieline_hub::{Conversation, Hub, Limits, OpenOptions, Registry, Subscription};
use tieline_proc::Env;
use tieline_store::{FrameRef, Options, Store};
use tieline_testkit::acp::Adapter;
use tieline_testkit::model::ModelServer;
use tieline_testkit::real::{AgentEnv, CodexConfig};
use tieline_testkit::{agents, probe, real};

use super::wire::Wire;
use crate::bench::{key, until, until_end};

/// What `SCENARIO:hello` says.
pub(super) const HELLO: &str = "Hello from the fake model.";

/// What a scene may want of its agent.
pub(super) struct Setup {
    pub(super) wire: Wire,
    pub(super) limits: Limits,
    /// One process for each turn, where there is a choice.
    pub(super) lifetime: Lifetime,
    /// Variables the agent lacks.
    pub(super) without: &'static [&'static str],
    /// How many conversations may share one app server.
    pub(super) seats: usize,
    /// Features of Codex to switch on.
    pub(super) features: &'static [&'static str],
    /// The MCP server `fake` is configured.
    pub(super) mcp: bool,
    /// Prompts name the workspace.
    pub(super) preamble: bool,
    /// A program is called at the end of each turn; it writes to [`Scene::notes`].
    pub(super) notify: bool,
}

impl Setup {
    pub(super) fn new(wire: Wire) -> Self {
        Self {
            wire,
            limits: Limits::default(),
            lifetime: Lifetime::Conversation,
            without: &[],
            seats: 1,
            features: &[],
            mcp: false,
            preamble: false,
            notify: false,
        }
    }

    pub(super) async fn scene(self) -> Scene {
        assert!(real::loopback_only(), "run this suite with `cargo xtask test`");
        tieline_proc::set_host_program(real::fake_agent_program());
        let model = ModelServer::start().await;
        let mcp = self.mcp.then(real::fake_mcp_program);
        let home = match self.wire {
            Wire::Claude | Wire::AcpClaude => AgentEnv::claude(&model.url()),
            Wire::Codex | Wire::CodexExec | Wire::CodexProto => {
                let config = CodexConfig {
                    model: self.wire.models().0,
                    features: self.features,
                    settings: &[],
                    mcp: mcp.as_deref(),
                };
                AgentEnv::codex(&model.url(), config)
            }
        };
        let mut env = Env::empty();
        for (name, value) in home.vars() {
            if !self.without.contains(&name.as_str()) {
                env.set(name, value);
            }
        }
        let notify = self.notify.then(|| notify_program(&home));
        let agent = self.agent(env, &home, mcp.as_deref(), notify);
        let hub = open_hub(&home, &agent, &self.limits);
        Scene { wire: self.wire, model, home, hub, agent, limits: self.limits }
    }

    fn agent(
        &self,
        mut env: Env,
        home: &AgentEnv,
        mcp: Option<&Path>,
        notify: Option<Vec<String>>,
    ) -> Arc<dyn Agent> {
        let program = agents::program(self.wire.pinned()).expect("the pinned agents are installed");
        let codex = || Codex {
            program: program.clone(),
            args: Vec::new(),
            env: env.clone(),
            preamble: self.preamble,
            notify: notify.clone(),
            versions: Arc::new(Versions::default()),
        };
        let servers =
            |mcp: &Path| serde_json::json!({"mcpServers": {"fake": {"command": mcp}}}).to_string();
        match self.wire {
            Wire::Claude => Arc::new(Claude {
                program,
                args: mcp.iter().flat_map(|mcp| ["--mcp-config".into(), servers(mcp)]).collect(),
                env,
                lifetime: self.lifetime,
                preamble: self.preamble,
                name: "claude",
                is_root: true,
            }),
            Wire::Codex => Arc::new(CodexApp { codex: codex(), seats: self.seats }),
            Wire::CodexExec => Arc::new(CodexExec { codex: codex() }),
            Wire::CodexProto => Arc::new(CodexProto { codex: codex() }),
            Wire::AcpClaude => {
                if let Some(mcp) = mcp {
                    std::fs::write(home.home().join(".claude.json"), servers(mcp)).unwrap();
                }
                // It offers names for the newest models alone; this is what one of them means.
                env.set("ANTHROPIC_DEFAULT_SONNET_MODEL", self.wire.models().1);
                Arc::new(adapter(Adapter::Claude, self.wire, home, env, self.preamble))
            }
        }
    }
}

/// A bridge from an agent to the protocol, with the variables of the scene.
fn adapter(
    adapter: Adapter,
    wire: Wire,
    home: &AgentEnv,
    mut env: Env,
    preamble: bool,
) -> AcpAgent {
    let program = adapter.program(home).expect("the pinned adapters are installed");
    let known = home.vars();
    // What it needs to find the agent, beside what every agent of a scene has.
    for (name, value) in program.env.iter().filter(|it| !known.contains(it)) {
        env.set(name, value);
    }
    let args = program.args.iter().map(|arg| arg.to_str().expect("a path of ours").to_owned());
    let args = args.collect();
    AcpAgent { name: wire.name().to_owned(), program: program.path, args, env, preamble }
}

/// The one agent of a scene, whatever its name.
struct One(Arc<dyn Agent>);

impl Registry for One {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

fn open_hub(home: &AgentEnv, agent: &Arc<dyn Agent>, limits: &Limits) -> Hub {
    let store = Store::open(&home.root().join("store"), Options::default()).unwrap();
    Hub::new(store, Arc::new(One(Arc::clone(agent))), limits.clone())
}

/// A program that appends its argument to a file.
fn notify_program(home: &AgentEnv) -> Vec<String> {
    let script = format!("printf '%s\\n' \"$0\" >> {}", home.root().join("notes").display());
    ["/bin/sh", "-c", &script].map(str::to_owned).into()
}

/// One scene: a model, a home, a workspace, a store and a hub.
pub(super) struct Scene {
    pub(super) wire: Wire,
    pub(super) model: ModelServer,
    pub(super) home: AgentEnv,
    pub(super) hub: Hub,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) limits: Limits,
}

impl Scene {
    pub(super) async fn new(wire: Wire) -> Self {
        Setup::new(wire).scene().await
    }

    pub(super) fn options(&self, mode: Mode) -> OpenOptions {
        OpenOptions {
            agent: Some(self.wire.name().into()),
            workspace: Some(self.home.workspace()),
            mode: Some(mode),
            ..OpenOptions::default()
        }
    }

    pub(super) async fn open(&self, mode: Mode) -> (Conversation, Subscription) {
        let conversation = self.hub.conversation(&key(), self.options(mode)).await.unwrap();
        let subscription = conversation.subscribe(conversation.last_seq());
        (conversation, subscription)
    }

    /// Opens, runs one turn to its end, closes, and checks that nobody is left.
    pub(super) async fn run(&self, mode: Mode, prompt: &str) -> Ran {
        let (conversation, mut live) = self.open(mode).await;
        let ran = say(&conversation, &mut live, prompt).await;
        self.close().await;
        ran
    }

    /// Closes every conversation and goes on with another hub on the same store.
    pub(super) async fn reopen(&mut self) {
        self.close().await;
        self.hub = open_hub(&self.home, &self.agent, &self.limits);
    }

    pub(super) async fn close(&self) {
        self.hub.close_all().await;
        let marker = format!("HOME={}", self.home.home().display());
        assert_eq!(probe::alive_with(&marker), Vec::<u32>::new(), "no process remains");
    }

    /// How often a text stands in what the model was last told.
    pub(super) fn heard(&self, text: &str) -> usize {
        self.heard_beside("", text)
    }

    /// The same of what it was last told together with another text: an agent may tell it something
    /// of another conversation meanwhile.
    pub(super) fn heard_beside(&self, other: &str, text: &str) -> usize {
        let requests = self.model.requests();
        let mut turns = requests.iter().filter(|request| has_tools(&request.body)).rev();
        let history = turns.find_map(|request| {
            let mut keys = ["messages", "input"].into_iter();
            let history = keys.find_map(|key| request.body[key].as_array())?;
            history.iter().any(|it| it.to_string().contains(other)).then_some(history)
        });
        history.map_or(0, |history| {
            history.iter().map(|message| message.to_string().matches(text).count()).sum()
        })
    }

    /// A file of the workspace.
    pub(super) fn file(&self, name: &str) -> std::path::PathBuf {
        self.home.workspace().join(name)
    }

    /// Everything that was ever kept of the conversation.
    pub(super) fn history(&self) -> Vec<Event> {
        let stored = self.hub.store().events(&key(), Seq(0), 10_000).unwrap();
        stored.iter().map(|it| Event::from_json(&it.json).unwrap()).collect()
    }
}

impl Scene {
    /// Whether a text stands in anything that was kept of what went over the wire.
    pub(super) fn kept(&self, text: &str) -> bool {
        let mut found = false;
        let mut look = |frame: FrameRef<'_>| {
            found |= String::from_utf8_lossy(frame.bytes).contains(text);
            ControlFlow::Continue(())
        };
        self.hub.store().frames(&key(), FrameNo(0), &mut look).unwrap();
        found
    }
}

/// Whether a request to the model is a turn's: what has no tools is a title in the making, or the like.
pub(super) fn has_tools(body: &Value) -> bool {
    body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

/// Whoever reads a failed test wants to see what went over the wire.
impl Drop for Scene {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut show = |frame: FrameRef<'_>| {
            println!("{:?} {}", frame.dir, String::from_utf8_lossy(frame.bytes).trim_end());
            ControlFlow::Continue(())
        };
        if let Err(error) = self.hub.store().frames(&key(), FrameNo(0), &mut show) {
            println!("no frames: {error}");
        }
    }
}

/// A turn that ran.
pub(super) struct Ran {
    pub(super) events: Vec<Event>,
    pub(super) streamed: String,
    pub(super) end: TurnCompleted,
}

impl Ran {
    /// Completed items of a type.
    pub(super) fn items(&self, name: &str) -> Vec<Item> {
        items(&self.events, name)
    }

    /// The turn ended well.
    #[track_caller]
    pub(super) fn completed(self) -> Self {
        self.ended(TurnStatus::Completed)
    }

    /// The turn ended like this, once.
    #[track_caller]
    pub(super) fn ended(self, status: TurnStatus) -> Self {
        assert_eq!(self.end.status, status, "{}", self.story());
        assert_eq!(ends(&self.events), 1, "{}", self.story());
        self
    }

    /// Whether the agent asked anything.
    pub(super) fn asked(&self) -> bool {
        self.events.iter().any(|event| matches!(event.kind, Kind::RequestOpened(_)))
    }

    /// What happened, a line for each event, for whoever reads a failed test.
    pub(super) fn story(&self) -> String {
        let lines = self.events.iter().map(|event| serde_json::to_string(&event.kind).unwrap());
        lines.fold(String::new(), |story, line| format!("{story}\n{line}"))
    }
}

/// Runs one turn to its end.
pub(super) async fn say(conversation: &Conversation, live: &mut Subscription, prompt: &str) -> Ran {
    let turn = conversation.start_turn(Prompt::text(prompt)).await.unwrap();
    let (events, streamed, end) = until_end(live, &turn).await;
    Ran { events, streamed, end }
}

/// Waits until the agent runs a command.
pub(super) async fn until_command(live: &mut Subscription) {
    until(live, |event| {
        let (Kind::ItemStarted(item) | Kind::ItemUpdated(item)) = &event.kind else { return None };
        // What it is comes after its name.
        let is_known = |body: &ItemBody| matches!(body, ItemBody::Command { command, .. } if !command.is_empty());
        is_known(&item.body).then_some(())
    })
    .await;
}

pub(super) fn items(events: &[Event], name: &str) -> Vec<Item> {
    let completed = events.iter().filter_map(|event| match &event.kind {
        Kind::ItemCompleted(item) if item.body.name() == name => Some(item.clone()),
        _ => None,
    });
    completed.collect()
}

/// How many turns ended.
pub(super) fn ends(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.kind, Kind::TurnCompleted(_))).count()
}

/// Waits for what is to be there soon.
pub(super) async fn soon<T>(what: &str, find: impl Fn() -> Option<T>) -> T {
    let patience = std::time::Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(std::time::Instant::now() < patience, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
