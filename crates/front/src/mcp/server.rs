//! Carries calls out.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tieline_event::Seq;
use tokio::time::{Instant, sleep};

use super::hangup::Gone;
use super::report::{Digest, Line, Report, Standing};
use super::tools::{self, Patience};
use super::{Desk, Options, Refusal, View};
use crate::task::state::{Letter, TaskId};

/// How often a task is looked at.
const PAUSE: Duration = Duration::from_millis(150);

/// How long a call follows a task, unless somebody said otherwise.
const USUAL: Duration = Duration::from_secs(600);

/// The same for Codex, which gives up on a tool after a minute unless it is told otherwise.
const SHORT: Duration = Duration::from_secs(50);

/// The longest a call follows a task.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long an answer that was taken may take until its question is closed.
const SETTLING: Duration = Duration::from_secs(10);

/// How many tasks a list has.
const LISTED: usize = 30;

type Context = RequestContext<RoleServer>;

pub(super) struct Server {
    pub(super) desk: Arc<dyn Desk>,
    pub(super) options: Options,
    pub(super) gone: Gone,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let server = Implementation::new("tieline", self.options.version);
        ServerConfig::new(capabilities)
            .with_server_info(server)
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        ctx: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, .. } = request;
        let given = match name.as_ref() {
            "delegate" => self.delegate(tools::read(&name, arguments), &ctx).await,
            "status" => self.status(tools::read(&name, arguments)).await,
            "answer" => self.answer(tools::read(&name, arguments), &ctx).await,
            "cancel" => self.cancel(tools::read(&name, arguments)).await,
            "result" => self.result(tools::read(&name, arguments), &ctx).await,
            _ => {
                let why = format!("there is no tool {name:?}");
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        Ok(match given {
            Ok(given) => given.into(),
            Err(refusal) => {
                tracing::debug!(tool = %name, %refusal, "a call was refused");
                CallToolResult::error(vec![ContentBlock::text(refusal.to_string())])
            }
        }
        .into())
    }
}

/// What a tool gives back, for programs and for readers.
struct Given {
    value: Value,
    text: String,
}

impl From<Given> for CallToolResult {
    fn from(given: Given) -> Self {
        let mut result = CallToolResult::success(vec![ContentBlock::text(given.text)]);
        result.structured_content = Some(given.value);
        result
    }
}

type Asked<T> = Result<T, Refusal>;

impl Server {
    async fn delegate(&self, input: Asked<tools::Delegate>, ctx: &Context) -> Asked<Given> {
        let input = input?;
        let patience = input.patience();
        let order = input.order(client(ctx))?;
        let begun = self.ask(move |desk| desk.begin(order)).await?;
        self.follow(Following::new(begun.id, begun.after), patience, ctx).await
    }

    async fn status(&self, input: Asked<tools::Status>) -> Asked<Given> {
        if let Some(id) = input?.id {
            let id = tools::task_id(&id)?;
            let view = self.ask(move |desk| desk.look(&id)).await?;
            let line = Line::new(&view);
            return Ok(Given { value: to_value(&line)?, text: line.text() });
        }
        let views = self.ask(|desk| desk.all()).await?;
        let lines: Vec<Line<'_>> = views.iter().take(LISTED).map(Line::new).collect();
        let mut text: String = lines.iter().map(Line::text).collect();
        if lines.is_empty() {
            text.push_str("There are no tasks yet; `delegate` begins one.\n");
        }
        let n_more = views.len() - lines.len();
        if n_more > 0 {
            text.push_str(&format!("and {n_more} older ones; ask for them by their id\n"));
        }
        Ok(Given { value: json!({"tasks": to_value(&lines)?, "older": n_more}), text })
    }

    async fn answer(&self, input: Asked<tools::Answer>, ctx: &Context) -> Asked<Given> {
        let input = input?;
        let id = tools::task_id(&input.id)?;
        let letters = input.letters()?;
        let answering = id.clone();
        let (after, answered) = self
            .ask(move |desk| {
                let view = desk.look(&answering)?;
                let answered = answered(&view, &letters);
                desk.answer(&answering, &letters)?;
                Ok((view.last, answered))
            })
            .await?;
        let following = Following { answered, ..Following::new(id, after) };
        self.follow(following, input.patience(), ctx).await
    }

    async fn cancel(&self, input: Asked<tools::Cancel>) -> Asked<Given> {
        let id = tools::task_id(&input?.id)?;
        let stopping = id.clone();
        self.ask(move |desk| desk.cancel(&stopping)).await?;
        let (_, view, digest) = self.look(Following::new(id, Seq(0))).await?;
        given(&view, &digest)
    }

    async fn result(&self, input: Asked<tools::Outcome>, ctx: &Context) -> Asked<Given> {
        let input = input?;
        let id = tools::task_id(&input.id)?;
        let looking = id.clone();
        let view = self.ask(move |desk| desk.look(&looking)).await?;
        self.follow(Following::new(id, view.last), input.patience(), ctx).await
    }

    /// Reads along until the task is over or needs somebody.
    async fn follow(
        &self,
        mut following: Following,
        patience: Patience,
        ctx: &Context,
    ) -> Asked<Given> {
        let limit = match patience {
            Patience::None => Duration::ZERO,
            Patience::Seconds(seconds) => Duration::from_secs(seconds).min(LONGEST),
            Patience::Usual => self.options.timeout.unwrap_or_else(|| usual(client(ctx))),
        };
        let began = Instant::now();
        let mut gone = self.gone.clone();
        loop {
            let (read, view, mut digest) = self.look(following).await?;
            following = read;
            for message in digest.progress.drain(..) {
                following.n_told += 1;
                // Nobody takes it any more once the client is gone.
                tokio::select! {
                    biased;
                    _ = gone.wait_for(|is_gone| *is_gone) => break,
                    () = tell(ctx, following.n_told, message) => {}
                }
            }
            if began.elapsed() > SETTLING {
                following.answered.clear();
            }
            let is_running = Standing::of(&view, &following.answered) == Standing::Running;
            let is_over = began.elapsed() >= limit && following.is_settled(&view);
            if !is_running || is_over || *gone.borrow() {
                return given(&view, &digest);
            }
            following.digest = digest;
            tokio::select! {
                // Nobody reads what comes of it.
                () = ctx.ct.cancelled() => return given(&view, &following.digest),
                _ = gone.changed() => {}
                () = sleep(PAUSE) => {}
            }
        }
    }

    /// A task and what is new of it.
    async fn look(&self, mut following: Following) -> Asked<(Following, View, Digest)> {
        self.ask(move |desk| {
            // What a task that ends says last is there when it is at rest.
            let view = desk.look(&following.id)?;
            let mut digest = std::mem::take(&mut following.digest);
            let mut fetch = |blob: &_| desk.blob(blob);
            let after = digest.last;
            digest.last = desk.events(&following.id, after, &mut |event| {
                digest.see(event, &mut fetch);
                if event.seq <= following.after {
                    digest.progress.clear();
                }
            })?;
            Ok((following, view, digest))
        })
        .await
    }

    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Desk) -> Asked<T> + Send + 'static,
    ) -> Asked<T> {
        let desk = Arc::clone(&self.desk);
        let asked = tokio::task::spawn_blocking(move || ask(&*desk)).await;
        asked.unwrap_or_else(|err| Err(Refusal::new(format!("this call came to nothing: {err}"))))
    }
}

/// A task that is read along.
struct Following {
    id: TaskId,
    /// What was said up to here is no news.
    after: Seq,
    digest: Digest,
    /// Questions whose answer is on its way.
    answered: Vec<String>,
    n_told: u32,
}

impl Following {
    fn new(id: TaskId, after: Seq) -> Self {
        Self { id, after, digest: Digest::default(), answered: Vec::new(), n_told: 0 }
    }

    /// Whether every answer has closed its question; who looks next would be asked again.
    fn is_settled(&self, view: &View) -> bool {
        !view.state.questions.iter().any(|question| self.answered.contains(&question.id))
    }
}

/// The questions that these letters are for.
fn answered(view: &View, letters: &[Letter]) -> Vec<String> {
    let mut answered: Vec<String> = Vec::new();
    for letter in letters {
        let Letter::Answer { question, .. } = letter else { continue };
        let mut open = view.state.questions.iter().map(|it| &it.id);
        let oldest = open.find(|id| !answered.contains(id)).cloned();
        answered.extend(question.clone().or(oldest));
    }
    answered
}

fn given(view: &View, digest: &Digest) -> Asked<Given> {
    let report = Report::new(view, digest);
    Ok(Given { value: to_value(&report)?, text: report.text() })
}

fn to_value(value: &impl serde::Serialize) -> Asked<Value> {
    serde_json::to_value(value).map_err(|err| Refusal::new(format!("cannot write JSON: {err}")))
}

/// Who calls, by its own name.
fn client(ctx: &Context) -> Option<String> {
    ctx.client_info().map(|client| client.name)
}

fn usual(client: Option<String>) -> Duration {
    let is_hasty = client.is_some_and(|name| name.to_ascii_lowercase().contains("codex"));
    if is_hasty { SHORT } else { USUAL }
}

/// A word of progress, for a client that wants it.
async fn tell(ctx: &Context, n_told: u32, message: String) {
    let Some(token) = ctx.meta.get_progress_token() else { return };
    let mut progress = ProgressNotificationParam::new(token, f64::from(n_told));
    progress.message = Some(message);
    if let Err(err) = ctx.peer.notify_progress(progress).await {
        tracing::debug!(%err, "progress was not told");
    }
}
