//! A connection to a server, and a request over it.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{ClientRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{PeerRequestOptions, RequestHandle, RunningService, ServiceError};
use rmcp::{Peer, RoleClient, ServiceExt};
use tieline_event::McpTransport;
use tieline_proc::{Child, Env, StderrChunk};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::client::{Handler, Life};
use super::mask::Mask;
use super::{stdio, web, words};

#[cfg(test)]
mod tests;

/// How long an answer may still come after the server ended: it may be in the pipe.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long stderr is read after that.
const STDERR: Duration = Duration::from_millis(200);

/// How long a server has to go by itself, and then once it was told to.
const FAREWELL: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_millis(500);

/// How many pages of tools are read, and how many bytes. A server that gives a next page for ever
/// would fill the memory.
const PAGES: usize = 64;
const LIST: usize = 8 << 20;

/// How long word of a call that nobody waits for may take.
const CANCEL: Duration = Duration::from_secs(5);

/// A connection to a server. Dropping it kills the server and everything it started.
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, Handler>>>,
    process: Option<Process>,
    life: Arc<Life>,
    mask: Mask,
    gone: watch::Receiver<bool>,
    /// It failed in a way that a new connection may mend.
    broken: AtomicBool,
}

/// A server of our own.
struct Process {
    child: Arc<Child>,
    watcher: AbortHandle,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.watcher.abort();
        self.child.begin_kill();
    }
}

/// Connects to a server: starts it if it is a process, and shakes hands.
pub(super) async fn open(
    transport: &McpTransport,
    mask: &Mask,
    life: &Arc<Life>,
    env: &Env,
    cwd: PathBuf,
) -> Result<Connection, String> {
    let (ended, gone) = watch::channel(false);
    let handler = Handler { life: Arc::clone(life), gone: gone.clone() };
    let (running, process) = match transport {
        McpTransport::Stdio { command, args, env: own } => {
            let (child, stderr, output, input) =
                stdio::start(command, args, own, env, &cwd).await?;
            let process = Process::new(Arc::clone(&child), stderr, ended);
            match handler.serve((output, input)).await {
                Ok(running) => (running, Some(process)),
                Err(error) => {
                    let why = words::not_begun(&error);
                    // Then it has said all that it had to say.
                    timeout(LAST_WORDS, is_gone(&mut gone.clone())).await.ok();
                    return Err(match stdio::last_words(&child) {
                        Some(said) => format!("{why}; it wrote: {said}"),
                        None => why,
                    });
                }
            }
        }
        McpTransport::Http { url, headers } => {
            let transport = web::transport(url, headers)?;
            let running =
                handler.serve(transport).await.map_err(|error| words::not_begun(&error))?;
            (running, None)
        }
        McpTransport::Sse { .. } => {
            return Err("the older transport, HTTP with server-sent events, is not spoken here; \
                        give the server's streamable HTTP address as `http`"
                .to_owned());
        }
    };
    Ok(Connection {
        peer: running.peer().clone(),
        running: Mutex::new(Some(running)),
        process,
        life: Arc::clone(life),
        mask: mask.clone(),
        gone,
        broken: AtomicBool::new(false),
    })
}

impl Process {
    /// `ended` is told when the process has ended and what it wrote to stderr is read.
    fn new(
        child: Arc<Child>,
        mut stderr: mpsc::Receiver<StderrChunk>,
        ended: watch::Sender<bool>,
    ) -> Self {
        let watched = Arc::clone(&child);
        let watcher = tokio::spawn(async move {
            watched.exited().await;
            // Somebody it started may hold the pipe for ever.
            let rest = async { while stderr.recv().await.is_some() {} };
            timeout(STDERR, rest).await.ok();
            // Nobody may be there to hear it, and then it does not matter.
            ended.send(true).ok();
        });
        Self { child, watcher: watcher.abort_handle() }
    }
}

impl Connection {
    /// What the server can do beside tools: it has documents.
    pub(super) fn has_resources(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.resources.is_some())
    }

    pub(super) fn has_tools(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some())
    }

    /// All its tools, page by page, as far as a list has an end.
    pub(super) async fn list_tools(&self) -> Result<Vec<Tool>, String> {
        let (mut tools, mut n_bytes, mut cursor) = (Vec::new(), 0, None);
        for _ in 0..PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.peer.list_tools(Some(params)).await;
            let page = page.map_err(|error| words::told(&error))?;
            n_bytes += page.tools.iter().map(size).sum::<usize>();
            if n_bytes > LIST {
                return Err(format!("they are more than {} MiB", LIST >> 20));
            }
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(format!("there are more than {PAGES} pages of them"))
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// Whether a request has a chance.
    pub(super) fn is_alive(&self) -> bool {
        !self.peer.is_transport_closed()
            && !*self.gone.borrow()
            && !self.broken.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for its answer, `limit` at most without a sign of progress. Dropping
    /// the future tells the server that nobody waits any more.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<ServerResult, String> {
        let options = PeerRequestOptions::no_options();
        let handle = match self.peer.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => return Err(self.explain(error)),
        };
        let news = self.life.watch(handle.progress_token.clone());
        let mut pending = Pending { handle: Some(handle) };
        let mut deadline = Instant::now() + limit;
        let mut gone = self.gone.clone();
        let mut ended = false;
        loop {
            let Some(handle) = pending.handle.as_mut() else { return Err(self.ended()) };
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    pending.handle = None;
                    return match answer {
                        Ok(Ok(result)) => Ok(result),
                        Ok(Err(error)) => Err(self.explain(error)),
                        Err(_) => Err(self.explain(ServiceError::TransportClosed)),
                    };
                }
                () = news.progress() => deadline = Instant::now() + limit,
                () = is_gone(&mut gone), if !ended => {
                    ended = true;
                    deadline = Instant::now() + LAST_WORDS;
                }
                () = sleep_until(deadline) => {
                    if ended {
                        return Err(self.ended());
                    }
                    if self.life.is_asking() {
                        // It is the user who takes their time.
                        deadline = Instant::now() + limit;
                        continue;
                    }
                    let server = &self.life.server;
                    let seconds = limit.as_secs_f64();
                    return Err(format!(
                        "the MCP server {server} did not answer within {seconds} seconds"
                    ));
                }
            }
        }
    }

    fn explain(&self, error: ServiceError) -> String {
        let server = &self.life.server;
        match error {
            ServiceError::McpError(error) => {
                let (code, message) = (error.code.0, error.message);
                self.mask.hide(format!("the MCP server {server} refused it: {message} ({code})"))
            }
            ServiceError::TransportClosed => self.ended(),
            ServiceError::TransportSend(error) => {
                self.broken.store(true, Ordering::Relaxed);
                if *self.gone.borrow() || words::is_closed(&error) {
                    return self.ended();
                }
                let why = words::not_sent(&error);
                self.mask.hide(format!("the MCP server {server} cannot be reached: {why}"))
            }
            other => self.mask.hide(format!("the MCP server {server}: {other}")),
        }
    }

    /// What to say of a server that is no more.
    fn ended(&self) -> String {
        self.broken.store(true, Ordering::Relaxed);
        let server = &self.life.server;
        let said = self.process.as_ref().and_then(|process| stdio::last_words(&process.child));
        let said = said.map(|said| format!("; it wrote: {said}")).unwrap_or_default();
        self.mask.hide(format!(
            "the MCP server {server} ended during the call, and is started again with the next \
             one{said}"
        ))
    }

    /// Ends the connection, and the server if it is ours.
    pub(super) async fn close(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut running) = running
            && let Err(error) = running.close_with_timeout(FAREWELL).await
        {
            tracing::warn!(server = self.life.server, %error, "an MCP connection ended badly");
        }
        let Some(Process { child, .. }) = &self.process else { return };
        // Its input is closed by now, and most servers go by themselves.
        if timeout(FAREWELL, child.exited()).await.is_err() {
            child.begin_stop(GRACE);
            timeout(GRACE + FAREWELL, child.exited()).await.ok();
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("server", &self.life.server).finish_non_exhaustive()
    }
}

/// How much of a list a tool is.
fn size(tool: &Tool) -> usize {
    serde_json::to_vec(tool).map_or(0, |json| json.len())
}

/// Waits until the server is gone. One that is none of ours never is.
pub(super) async fn is_gone(gone: &mut watch::Receiver<bool>) {
    let is_told = gone.wait_for(|gone| *gone).await.is_ok();
    if !is_told {
        std::future::pending::<()>().await;
    }
}

/// A request that waits for its answer.
struct Pending {
    handle: Option<RequestHandle<RoleClient>>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        // Without a runtime there is no server either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let id = super::client::shown(&handle.id);
            let told = timeout(CANCEL, handle.cancel(Some("nobody waits for it".to_owned()))).await;
            if !matches!(told, Ok(Ok(()))) {
                tracing::debug!(id, "a server could not be told that a call is cancelled");
            }
        });
    }
}
