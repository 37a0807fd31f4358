//! What a session's task, its tools and its inbox share.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tieline_event::{Extras, Failure, FailureCode};
use tieline_proc::Env;
use tieline_sandbox::Policy;
use tieline_wire::responses::Tool;
use tieline_wire::sqeq::{EventMsg, McpStartupComplete, McpStartupFailure, Personality};
use tokio::sync::RwLock;

use crate::ask::Asked;
use crate::calls::Call;
use crate::command::{Granted, Rule, Rules, Sandbox};
use crate::context::{Asking, Context};
use crate::exec::{self, Commands, Input, Ran, SessionId};
use crate::mcp::{Mcp, Startup};
use crate::model::Client;
use crate::order::Piece;
use crate::out::Out;
use crate::persona;
use crate::settings::Settings;
use crate::skillset::SkillSet;
use crate::tools::command::end_event;
use crate::tools::patch::TurnChanges;
use crate::tools::schema::{self, Escalation};

/// What a session's task, its tools and its inbox share.
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) client: Client,
    pub(crate) out: Out,
    pub(crate) asked: Asked,
    pub(crate) commands: Commands,
    pub(crate) mcp: Mcp,
    /// Tools that only look hold it together, the others alone.
    pub(crate) gate: RwLock<()>,
    pub(crate) skills: SkillSet,
    steered: Mutex<VecDeque<Vec<Piece>>>,
    granted: Mutex<Granted>,
    rules: Mutex<Rules>,
    diff: Mutex<TurnChanges>,
    told_startup: AtomicBool,
    /// The model's server answered since the task began.
    was_heard: AtomicBool,
    /// Commands that went on after the call that began them.
    sessions: Mutex<HashMap<SessionId, Begun>>,
}

/// A command that goes on.
struct Begun {
    call: String,
    argv: Vec<String>,
}

impl Shared {
    pub(crate) async fn new(
        settings: Arc<Settings>,
        client: Client,
        extras: Extras,
        out: Out,
    ) -> Result<Arc<Self>, Failure> {
        let path = rules_file(&settings.config_dir);
        let rules = tokio::task::spawn_blocking(move || Rules::load(&path)).await;
        let rules = match rules {
            Ok(Ok(rules)) => rules,
            Ok(Err(error)) => {
                return Err(Failure::new(FailureCode::BadRequest, error.to_string()));
            }
            Err(_) => Rules::default(),
        };
        let servers = settings.mcp_servers.iter().chain(&extras.mcp_servers).cloned().collect();
        let mcp = Mcp::new(servers, settings.env.clone());
        Ok(Arc::new(Self {
            client,
            out,
            asked: Asked::default(),
            commands: Commands::new(exec::Limits::default(), SessionId(1)),
            mcp,
            gate: RwLock::new(()),
            skills: SkillSet::new(&settings),
            steered: Mutex::default(),
            granted: Mutex::default(),
            rules: Mutex::new(rules),
            diff: Mutex::default(),
            told_startup: AtomicBool::new(false),
            was_heard: AtomicBool::new(false),
            sessions: Mutex::default(),
            settings,
        }))
    }

    /// A task begins, and nobody has answered in it.
    pub(crate) fn forget_voice(&self) {
        self.was_heard.store(false, Ordering::Relaxed);
    }

    /// The model's server answered.
    pub(crate) fn hear(&self) {
        self.was_heard.store(true, Ordering::Relaxed);
    }

    /// Whether the model's server answered since the task began.
    pub(crate) fn was_heard(&self) -> bool {
        self.was_heard.load(Ordering::Relaxed)
    }

    /// The user says something while a task runs.
    pub(crate) fn steer(&self, pieces: Vec<Piece>) {
        lock(&self.steered).push_back(pieces);
    }

    /// What the user said meanwhile.
    pub(crate) fn take_steered(&self) -> VecDeque<Vec<Piece>> {
        std::mem::take(&mut *lock(&self.steered))
    }

    /// What somebody allowed for the whole session.
    pub(crate) fn granted(&self) -> MutexGuard<'_, Granted> {
        lock(&self.granted)
    }

    /// The user's rules.
    pub(crate) fn rules(&self) -> MutexGuard<'_, Rules> {
        lock(&self.rules)
    }

    /// Adds a rule, for this session and all that come.
    pub(crate) async fn add_rule(&self, rule: Rule) -> Result<(), String> {
        lock(&self.rules).rules.push(rule.clone());
        let path = rules_file(&self.settings.config_dir);
        let written = tokio::task::spawn_blocking(move || Rules::append(&path, &rule)).await;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the rule holds for this session only: {error}")),
            Err(_) => Err("the rule holds for this session only".to_owned()),
        }
    }

    /// A turn begins: its changes are counted from here.
    pub(crate) fn begin_diff(&self) {
        *lock(&self.diff) = TurnChanges::default();
    }

    /// Adds what a patch did; gives the diff of the turn.
    pub(crate) fn add_to_diff(&self, changes: &[tieline_patch::Change]) -> String {
        lock(&self.diff).add(changes)
    }

    /// What a command knows of its environment.
    pub(crate) fn environment(&self, context: &Context, input: Input, sandbox: Sandbox) -> Env {
        let mut env = exec::environment(&self.settings.env, input);
        if let Some(policy) = self.policy(context, sandbox) {
            env.set("TIELINE_SANDBOX", if policy.network { "files" } else { "files,network" });
            if !policy.network {
                env.set("TIELINE_SANDBOX_NETWORK_DISABLED", "1");
            }
        }
        env
    }

    /// What holds a command.
    pub(crate) fn policy(&self, context: &Context, sandbox: Sandbox) -> Option<Policy> {
        context.policy(sandbox, &self.settings.hidden, &self.settings.protected)
    }

    /// A command goes on after its call.
    pub(crate) fn began(&self, id: SessionId, call: &Call, argv: &[String]) {
        lock(&self.sessions).insert(id, Begun { call: call.id.clone(), argv: argv.to_vec() });
    }

    /// A command that went on has ended.
    pub(crate) async fn tell_end(&self, task: &str, id: SessionId, ran: &Ran) {
        let Some(begun) = lock(&self.sessions).remove(&id) else { return };
        let shown = ran.to_model(10_000);
        let event = end_event(&begun.call, task, &begun.argv, ran, &shown);
        self.out.send(task, EventMsg::ExecCommandEnd(Box::new(event))).await;
    }

    /// The tools of a turn.
    pub(crate) async fn tools(&self, context: &Context) -> Arc<[Tool]> {
        let mut tools = schema::tools(&schema::Offer {
            freeform_patch: self.settings.freeform_patch,
            web_search: self.settings.web_search,
            images: self.settings.sees(&context.model),
            plan: context.plan,
            escalation: match context.asking {
                Asking::OnRequest | Asking::Granular { sandbox: true, .. }
                    if context.terms().sandbox.is_ours() =>
                {
                    Escalation::Offered
                }
                _ => Escalation::No,
            },
        });
        tools.extend(self.mcp.tools().await);
        self.tell_startup().await;
        Arc::from(tools)
    }

    /// Tells how the servers of tools started, once.
    async fn tell_startup(&self) {
        if self.told_startup.swap(true, Ordering::Relaxed) {
            return;
        }
        let Startup { ready, failed } = self.mcp.startup().await;
        if ready.is_empty() && failed.is_empty() {
            return;
        }
        let failure = |(server, error): (String, String)| McpStartupFailure {
            server: server.into(),
            error: error.into(),
        };
        let event = McpStartupComplete {
            ready: ready.into_iter().map(Into::into).collect(),
            failed: failed.into_iter().map(failure).collect(),
            cancelled: Vec::new(),
        };
        self.out.send("", EventMsg::McpStartupComplete(event)).await;
    }

    /// What the model is told before everything else.
    pub(crate) fn instructions(&self, context: &Context) -> Arc<str> {
        match &context.base {
            Some(base) => Arc::from(base.as_str()),
            None => {
                let personality = Personality::from(context.personality.as_str());
                Arc::from(persona::instructions(&personality))
            }
        }
    }

    /// An answer for a server of tools; `false` when it asked nothing.
    pub(crate) fn elicited(
        &self,
        server: &str,
        request: &str,
        accepted: Option<Option<String>>,
    ) -> bool {
        self.mcp.elicited(server, request, accepted)
    }
}

fn rules_file(config: &Path) -> PathBuf {
    config.join("rules.toml")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
