//! Servers of tools: the Model Context Protocol from the client's side.
//!
//! # How it works
//!
//! Nothing is started before somebody asks for the tools; then all servers start side by side, each
//! with a deadline, and one that fails keeps nobody else up. A process is started by `tieline_proc`
//! and spoken to over its pipes, another server over HTTP. A server that ends is reported to whoever
//! waits for it, and started again with the next call.
//!
//! # Invariants
//!
//! * A call is sent once. One whose server ended may have had its effect, so it is not repeated.
//! * Values of variables and headers, and addresses, are in no error, no log line and no `Debug`.
//! * Dropping [`Mcp`] kills what it started.

mod client;
mod connection;
mod leave;
mod mask;
mod names;
mod questions;
mod resources;
mod server;
mod show;
mod stdio;
mod table;
mod web;
mod words;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject};
use serde_json::Value;
use tieline_event::{McpServer, ServerTool};
use tieline_proc::Env;
use tieline_wire::responses::Tool;
use tokio::sync::{OnceCell, mpsc};

pub use leave::{Hint, Leave, leave};
pub use questions::Elicitation;
pub use resources::Documents;
pub use show::CallResult;

use questions::Questions;
use server::{Server, Setup};
use table::Table;

/// How long servers may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// To start, to shake hands and to list the tools.
    pub start: Duration,
    /// For an answer without a sign of progress.
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { start: Duration::from_secs(10), call: Duration::from_secs(60) }
    }
}

/// How the servers started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Startup {
    /// Those that did.
    pub ready: Vec<String>,
    /// Those that did not, and why.
    pub failed: Vec<(String, String)>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The server.
    pub server: String,
    /// What the server calls it.
    pub tool: String,
    /// What the server says of its effects.
    pub hint: Hint,
}

/// The servers of a session.
#[derive(Debug)]
pub struct Mcp {
    servers: Vec<Server>,
    setup: Setup,
    questions: Arc<Questions>,
    started: OnceCell<Startup>,
    /// What each server offers, and the same under full names.
    offered: Mutex<Vec<(String, Vec<rmcp::model::Tool>)>>,
    table: Mutex<Arc<Table>>,
}

impl Mcp {
    /// The servers of a session, none of which is started yet. They know the variables of commands
    /// and their own.
    pub fn new(servers: Vec<McpServer>, env: Env) -> Self {
        Self::with_limits(servers, env, Limits::default())
    }

    /// The same with other limits.
    pub fn with_limits(servers: Vec<McpServer>, env: Env, limits: Limits) -> Self {
        // A place of nobody's, until there is word of a better one.
        let root = Arc::new(Mutex::new(std::env::temp_dir()));
        let setup = Setup { env, root, limits };
        let questions = Arc::<Questions>::default();
        let names = names::of_servers(servers.iter().map(|server| server.name.as_str()));
        let servers = servers.into_iter().zip(names);
        let servers: Vec<Server> = servers
            .map(|(server, name)| Server::new(name, server.transport, &setup, &questions))
            .collect();
        Self {
            servers,
            setup,
            questions,
            started: OnceCell::new(),
            offered: Mutex::default(),
            table: Mutex::default(),
        }
    }

    /// Where the work is done: servers start there and are told so when they ask. To be said before
    /// the first turn, and again when it changes.
    pub async fn set_root(&self, dir: impl Into<PathBuf>) {
        let dir = dir.into();
        let old = std::mem::replace(&mut *lock(&self.setup.root), dir.clone());
        if old != dir && self.started.initialized() {
            join_all(self.servers.iter().map(Server::root_changed)).await;
        }
    }

    /// Questions of servers come out here from now on; without it, or when it is dropped, they are
    /// declined. Each is answered with [`elicited`](Self::elicited).
    pub fn questions(&self) -> mpsc::Receiver<Elicitation> {
        self.questions.listen()
    }

    /// Answers a question: `None` declines, else there is what was filled in, as JSON. `false` when
    /// the server asked nothing under this id.
    pub fn elicited(&self, server: &str, id: &str, accepted: Option<Option<String>>) -> bool {
        self.questions.answer(server, id, accepted)
    }

    /// Declines whatever is asked now: nobody is there any more to answer it.
    pub(crate) fn dismiss_questions(&self) {
        self.questions.dismiss();
    }

    /// Starts the servers, if nobody has; says how that went.
    pub async fn startup(&self) -> Startup {
        self.started.get_or_init(|| self.start()).await.clone()
    }

    async fn start(&self) -> Startup {
        let started = self.servers.iter().map(|server| server.start(&self.setup));
        let mut startup = Startup::default();
        let mut offered = Vec::new();
        for (server, started) in self.servers.iter().zip(join_all(started).await) {
            let name = server.name.clone();
            let tools = match started {
                Ok(tools) => {
                    startup.ready.push(name.clone());
                    tools
                }
                Err(why) => {
                    tracing::warn!(server = name, why, "an MCP server did not start");
                    startup.failed.push((name.clone(), why));
                    Vec::new()
                }
            };
            offered.push((name, tools));
        }
        self.offer(offered);
        startup
    }

    fn offer(&self, offered: Vec<(String, Vec<rmcp::model::Tool>)>) {
        *lock(&self.table) = Arc::new(Table::new(&offered));
        *lock(&self.offered) = offered;
    }

    /// Starts the servers if nobody has, and asks those again whose tools changed.
    async fn refresh(&self) -> Arc<Table> {
        self.started.get_or_init(|| self.start()).await;
        let limit = self.setup.limits.start;
        let changed = join_all(self.servers.iter().map(|server| server.changed(limit))).await;
        if changed.iter().any(Option::is_some) {
            let mut offered = lock(&self.offered).clone();
            for ((_, old), new) in offered.iter_mut().zip(changed) {
                *old = new.unwrap_or_else(|| std::mem::take(old));
            }
            self.offer(offered);
        }
        self.table()
    }

    /// The tools for the model. The first time this starts the servers.
    pub async fn tools(&self) -> Vec<Tool> {
        let table = self.refresh().await;
        let mut tools: Vec<Tool> = table.entries.iter().map(table::Entry::to_model).collect();
        if self.have_resources().await {
            tools.extend(resources::tools());
        }
        tools
    }

    /// The tools for a list.
    pub async fn list(&self) -> Vec<ServerTool> {
        self.refresh().await.entries.iter().map(table::Entry::to_list).collect()
    }

    /// The full names of the tools, in the order of [`list`](Self::list).
    pub fn full_names(&self) -> Vec<String> {
        self.table().entries.iter().map(|entry| entry.full_name.clone()).collect()
    }

    /// Whether this is a tool of a server, or one of ours to look at servers.
    pub fn has(&self, full_name: &str) -> bool {
        self.table().get(full_name).is_some()
            || (resources::is_ours(full_name) && !self.servers.is_empty())
    }

    /// Whether it only looks, so that others may run beside it.
    pub fn is_parallel(&self, full_name: &str) -> bool {
        match self.find(full_name) {
            Some(found) => found.hint == Hint::ReadOnly,
            None => resources::is_ours(full_name),
        }
    }

    /// A tool of a server by its full name.
    pub fn find(&self, full_name: &str) -> Option<Found> {
        let table = self.table();
        let entry = table.get(full_name)?;
        let (server, tool) = (entry.server_name.clone(), entry.tool.clone());
        Some(Found { server, tool, hint: entry.hint })
    }

    /// Calls a tool of a server. Dropping the future tells the server that nobody waits any more.
    ///
    /// # Errors
    /// Says in words for the model why there is no answer.
    pub async fn call(&self, full_name: &str, arguments: &str) -> Result<CallResult, String> {
        let (server, tool) = {
            let table = self.table();
            let entry = table.get(full_name).ok_or_else(|| format!("there is no {full_name}"))?;
            (entry.server, entry.tool.clone())
        };
        let server = self.servers.get(server).ok_or_else(|| format!("there is no {full_name}"))?;
        let mut params = CallToolRequestParams::new(tool);
        if !arguments.trim().is_empty() {
            let object: Option<JsonObject> = serde_json::from_str(arguments)
                .map_err(|error| format!("the arguments are no JSON object: {error}"))?;
            params.arguments = object;
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let answer = self.request(server, request).await?;
        CallResult::read(&answer).map_err(|why| format!("the MCP server {}: {why}", server.name))
    }

    /// A request and its answer as JSON.
    async fn request(&self, server: &Server, request: ClientRequest) -> Result<Value, String> {
        let connection = server.connection(&self.setup).await?;
        let answer = connection.request(request, self.setup.limits.call).await?;
        serde_json::to_value(answer).map_err(|error| error.to_string())
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&lock(&self.table))
    }

    /// Ends all servers and waits for that. There are no calls after it.
    pub async fn close(&self) {
        self.questions.close();
        join_all(self.servers.iter().map(Server::close)).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
