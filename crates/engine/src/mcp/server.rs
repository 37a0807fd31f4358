//! One server: not there yet, there, or failed.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use rmcp::model::Tool;
use tieline_event::McpTransport;
use tieline_proc::Env;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::client::Life;
use super::connection::{self, Connection};
use super::mask::Mask;
use super::questions::Questions;
use super::{Limits, words};

/// A server. One at a time starts it; calls wait for that.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    transport: McpTransport,
    mask: Mask,
    life: Arc<Life>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Down,
    Up(Arc<Connection>),
    /// It did not start, and is not tried again.
    Failed(String),
    Closed,
}

/// What it takes to start a server.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) env: Env,
    pub(super) root: Arc<StdMutex<PathBuf>>,
    pub(super) limits: Limits,
}

impl Server {
    pub(super) fn new(
        name: String,
        transport: McpTransport,
        setup: &Setup,
        questions: &Arc<Questions>,
    ) -> Self {
        let life = Life::new(&name, Arc::clone(&setup.root), Arc::clone(questions));
        let mask = Mask::of(&transport);
        Self { name, transport, mask, life: Arc::new(life), state: Mutex::new(State::Down) }
    }

    /// Starts it and asks for its tools; why not, if that fails.
    pub(super) async fn start(&self, setup: &Setup) -> Result<Vec<Tool>, String> {
        let mut state = self.state.lock().await;
        if matches!(*state, State::Closed) {
            return Err("it is closed".to_owned());
        }
        let started = within(setup.limits.start, async {
            let connection = self.open(setup).await?;
            let tools = self.list(&connection).await?;
            Ok((connection, tools))
        });
        match started.await {
            Ok((connection, tools)) => {
                *state = State::Up(connection);
                Ok(tools)
            }
            Err(why) => {
                let why = self.mask.hide(why);
                *state = State::Failed(why.clone());
                Err(why)
            }
        }
    }

    async fn open(&self, setup: &Setup) -> Result<Arc<Connection>, String> {
        let cwd = setup.root.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let opened = connection::open(&self.transport, &self.mask, &self.life, &setup.env, cwd);
        opened.await.map(Arc::new)
    }

    async fn list(&self, connection: &Connection) -> Result<Vec<Tool>, String> {
        self.life.changed.store(false, Ordering::Relaxed);
        if !connection.has_tools() {
            return Ok(Vec::new());
        }
        let listed = connection.list_tools().await;
        listed.map_err(|why| format!("its tools cannot be listed: {why}"))
    }

    /// Its tools, if they are not what they were.
    pub(super) async fn changed(&self, limit: Duration) -> Option<Vec<Tool>> {
        if !self.life.changed.load(Ordering::Relaxed) {
            return None;
        }
        let connection = self.alive().await?;
        match within(limit, self.list(&connection)).await {
            Ok(tools) => Some(tools),
            Err(why) => {
                let why = self.mask.hide(why);
                tracing::warn!(server = self.name, why, "the tools stay as they were");
                None
            }
        }
    }

    /// The connection, if there is one that lives.
    pub(super) async fn alive(&self) -> Option<Arc<Connection>> {
        match &*self.state.lock().await {
            State::Up(connection) if connection.is_alive() => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// The connection; a server that ended is started again, once.
    pub(super) async fn connection(&self, setup: &Setup) -> Result<Arc<Connection>, String> {
        let name = &self.name;
        let mut state = self.state.lock().await;
        match &*state {
            State::Up(connection) if connection.is_alive() => return Ok(Arc::clone(connection)),
            State::Up(_) | State::Down => {}
            State::Failed(why) => {
                return Err(format!("the MCP server {name} did not start: {why}"));
            }
            State::Closed => return Err(format!("the MCP server {name} is closed")),
        }
        // What is left of the old one goes first.
        *state = State::Down;
        match within(setup.limits.start, self.open(setup)).await {
            Ok(connection) => {
                self.life.changed.store(true, Ordering::Relaxed);
                *state = State::Up(Arc::clone(&connection));
                Ok(connection)
            }
            Err(why) => {
                let why = self.mask.hide(why);
                Err(format!("the MCP server {name} ended and did not start again: {why}"))
            }
        }
    }

    /// Tells it that the work is done elsewhere now.
    pub(super) async fn root_changed(&self) {
        let Some(connection) = self.alive().await else { return };
        if let Err(error) = connection.peer().notify_roots_list_changed().await {
            let why = self.mask.hide(words::told(&error));
            tracing::debug!(server = self.name, why, "not told of the new directory");
        }
    }

    pub(super) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state.lock().await, State::Closed);
        if let State::Up(connection) = state {
            connection.close().await;
        }
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let late = |_| Err(format!("it did not answer within {} seconds", limit.as_secs_f64()));
    timeout(limit, work).await.unwrap_or_else(late)
}
