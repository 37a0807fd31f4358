//! One answer of the model: the request, the stream, and the calls in it.
//!
//! Items enter the history in the order the model gave them. A call enters it, and is on disk,
//! before it runs. What came after the last call of an answer that broke off is not kept: it is
//! asked for again, and nothing is there twice. A provider that then tells the same once more, to the
//! letter, is not taken at its word: what is in the history stays as it is, and no call runs again.

use std::sync::Arc;

use tieline_wire::raw::Raw;
use tieline_wire::responses::{
    Format, Include, Item, ItemView, JsonSchema, ReasoningOptions, Request, StreamEvent,
    TextOptions, Tool,
};
use tieline_wire::sqeq::{
    self, AgentMessage, AgentMessageItem, Delta, EventMsg, ItemDelta, ItemEvent, PlanItem,
    RawResponseCompleted, SectionBreak, TokenCount, TokenInfo, TokenUsage, TurnItem,
    WebSearchBegin, WebSearchEnd,
};
use tieline_wire::text::Str;
use tokio::task::JoinSet;

use crate::calls::{self, Call};
use crate::core::Core;
use crate::history::{self, Sight};
use crate::model::{ModelError, Stream};
use crate::plan::{self, PlanParser};
use crate::shared::Shared;
use crate::task::{self, Stop};
use crate::tools::{self, Outcome, Scene};

/// What is special about a request.
#[derive(Debug, Default)]
pub(crate) struct Wish<'a> {
    /// The form of the last message.
    pub(crate) schema: Option<&'a str>,
    /// Instructions in place of the session's.
    pub(crate) instructions: Option<&'a str>,
    /// No tools.
    pub(crate) bare: bool,
    /// What the model says is not shown.
    pub(crate) silent: bool,
}

/// What came of an answer.
#[derive(Debug)]
pub(crate) struct Step {
    /// The last message in it.
    pub(crate) said: Option<String>,
    /// There is output for the model to read, or it has more to say.
    pub(crate) goes_on: bool,
}

/// Why there is no answer.
pub(crate) enum Broken {
    Model(ModelError),
    Stop(Stop),
}

impl From<ModelError> for Broken {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<tieline_event::Failure> for Broken {
    fn from(failure: tieline_event::Failure) -> Self {
        Self::Stop(failure.into())
    }
}

/// Asks once. What is in the history from `since` on is of earlier tries.
pub(crate) async fn attempt(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    wish: &Wish<'_>,
    since: usize,
) -> Result<Step, Broken> {
    let known = core.items.get(since..).unwrap_or_default().to_vec();
    let request = request(core, shared, wish).await;
    let scene = Scene {
        shared: Arc::clone(shared),
        context: Arc::new(core.context.clone()),
        task: id.to_owned(),
        outcomes: core.outcomes.clone(),
    };
    let mut answer = Answer {
        core,
        shared,
        id,
        wish,
        scene,
        known,
        is_known: false,
        staged: Vec::new(),
        calls: Calls::default(),
        speech: Speech::default(),
        said: None,
        has_more: false,
    };
    let read = answer.read(&request).await;
    if let Err(Broken::Model(ModelError::Incomplete { usage, .. })) = &read {
        answer.cut_short(usage.unwrap_or_default().into());
    }
    // What runs is waited for either way: its output belongs to the history.
    let outcome = answer.collect(read.is_ok()).await;
    let goes_on = answer.calls.n_calls > 0 || answer.has_more;
    let said = answer.said.take();
    // Whoever stopped it does not want it tried again.
    outcome?;
    read?;
    Ok(Step { said, goes_on })
}

async fn request(core: &Core, shared: &Shared, wish: &Wish<'_>) -> Request {
    let settings = &shared.settings;
    let context = &core.context;
    let thinks = settings.thinks(&context.model);
    let stored = core.last_response.as_ref().filter(|_| settings.provider.stores_responses);
    let (previous, from) = match stored.and_then(|response| Some((response, core.since(response)?)))
    {
        Some((response, from)) => (Some(response.clone()), from),
        None => (None, 0),
    };
    let items = core.items.get(from..).unwrap_or_default();
    let sight = match settings.sees(&context.model) {
        true => Sight::Pictures,
        false => Sight::TextOnly,
    };
    // What follows a stored answer has the outputs of its calls, and not the calls.
    let input = match previous {
        Some(_) => items.to_vec(),
        None => history::normalised(items, sight),
    };
    let tools: Arc<[Tool]> = match wish.bare {
        true => Arc::from([]),
        false => shared.tools(context).await,
    };
    let schema = wish.schema.and_then(|schema| {
        let schema = serde_json::value::RawValue::from_string(schema.to_owned()).ok()?;
        let format =
            JsonSchema { name: "output".to_owned(), strict: true, schema: Arc::from(schema) };
        Some(TextOptions { verbosity: None, format: Some(Format::JsonSchema(format)) })
    });
    Request {
        instructions: match wish.instructions {
            Some(instructions) => Arc::from(instructions),
            None => shared.instructions(context),
        },
        parallel_tool_calls: !tools.is_empty(),
        tools,
        reasoning: thinks.then(|| ReasoningOptions {
            effort: context.effort.clone(),
            summary: Some(context.summary.clone()).filter(|summary| summary != "none"),
        }),
        include: match thinks && !settings.provider.stores_responses {
            true => vec![Include::EncryptedReasoning],
            false => Vec::new(),
        },
        store: settings.provider.stores_responses,
        prompt_cache_key: Some(core.session.clone()),
        previous_response_id: previous,
        text: schema,
        ..Request::new(context.model.clone(), input)
    }
}

/// An answer on its way.
struct Answer<'a> {
    core: &'a mut Core,
    shared: &'a Arc<Shared>,
    id: &'a str,
    wish: &'a Wish<'a>,
    scene: Scene,
    /// What earlier tries of the same request brought into the history.
    known: Vec<Item>,
    /// What comes now is probably one of these.
    is_known: bool,
    /// Whole items that are not in the history yet.
    staged: Vec<Item>,
    calls: Calls,
    speech: Speech,
    said: Option<String>,
    /// The model says that it is not done.
    has_more: bool,
}

/// Calls under way.
#[derive(Default)]
struct Calls {
    running: JoinSet<Call>,
    begun: Vec<Call>,
    n_calls: usize,
}

/// The message that grows.
#[derive(Default)]
struct Speech {
    parser: PlanParser,
}

impl Answer<'_> {
    async fn read(&mut self, request: &Request) -> Result<(), Broken> {
        let mut stream = self.ask(request).await?;
        loop {
            let is_full = match stream.next().await? {
                None => return Ok(()),
                Some(StreamEvent::Text(it) | StreamEvent::Refusal(it)) => self.text(&it.delta),
                Some(StreamEvent::Summary(it)) => {
                    let delta = it.delta;
                    self.tell_delta(EventMsg::AgentReasoningDelta(Delta { delta }))
                }
                Some(StreamEvent::SummaryPartAdded(it)) if it.summary_index > 0 => {
                    self.tell_delta(EventMsg::AgentReasoningSectionBreak(SectionBreak::default()))
                }
                Some(StreamEvent::Reasoning(it)) => {
                    let delta = it.delta;
                    self.tell_delta(EventMsg::AgentReasoningRawContentDelta(Delta { delta }))
                }
                Some(StreamEvent::ItemAdded(it)) => {
                    self.added(&it.item);
                    false
                }
                Some(StreamEvent::ItemDone(it)) => {
                    let item = it.to_item();
                    self.done(item).await?;
                    true
                }
                Some(StreamEvent::Completed(it)) => {
                    let usage: TokenUsage = it.usage.unwrap_or_default().into();
                    self.has_more = it.end_turn == Some(false);
                    let response = it.id.map(String::from).filter(|id| !id.is_empty());
                    // The rest is read beside, so that the connection can be used again.
                    tokio::spawn(async move { drop(stream.next().await) });
                    return self.completed(response, usage).await;
                }
                Some(_) => false,
            };
            // Deltas that came at once leave at once.
            if is_full || !stream.has_unread() {
                self.shared.out.flush().await;
            }
        }
    }

    /// Waits for the head of the answer, and says so when that takes several tries.
    async fn ask(&self, request: &Request) -> Result<Stream, ModelError> {
        let Self { shared, id, .. } = self;
        let mut question = shared.client.question(request, self.core.turns())?;
        loop {
            let (error, wait) = match question.ask().await {
                Ok(stream) => {
                    shared.hear();
                    return Ok(stream);
                }
                Err(failed) => failed,
            };
            // Somebody who refuses is there.
            if !matches!(error, ModelError::Connect { .. }) {
                shared.hear();
            }
            let Some(wait) = wait else { return Err(error) };
            // Later on, whoever repeats the whole answer says so.
            if !shared.was_heard() {
                task::announce(shared, id, &wait, &error).await;
            }
            tokio::time::sleep(wait.delay).await;
        }
    }

    fn tell(&self, msg: EventMsg<'_>) -> bool {
        match self.wish.silent {
            true => false,
            false => self.shared.out.put(self.id, msg),
        }
    }

    /// Tells a piece of an item that grows.
    fn tell_delta(&self, msg: EventMsg<'_>) -> bool {
        !self.is_known && self.tell(msg)
    }

    /// A piece of a message. In plan mode a plan in it is told apart.
    fn text(&mut self, delta: &str) -> bool {
        if !self.core.context.plan {
            let delta = Str::Borrowed(delta);
            return self.tell_delta(EventMsg::AgentMessageDelta(Delta { delta }));
        }
        if self.is_known {
            return false;
        }
        let Self { shared, id, core, speech, wish, .. } = self;
        let mut is_full = false;
        speech.parser.push(delta, |piece| {
            if !wish.silent {
                is_full |= tell_piece(shared, id, &core.session, piece);
            }
        });
        is_full
    }

    fn added(&mut self, item: &Raw<'_>) {
        self.is_known = !self.known.is_empty()
            && id_of(item.get()).is_some_and(|id| {
                self.known.iter().any(|known| id_of(known.get()).as_ref() == Some(&id))
            });
        let item = ItemView::read_raw(item);
        if matches!(item, ItemView::Message(_)) {
            // A line of one message does not go on in the next.
            self.end_speech();
        }
        match item {
            ItemView::WebSearchCall(it) => {
                let call_id = it.id.unwrap_or_default();
                self.tell(EventMsg::WebSearchBegin(WebSearchBegin { call_id }));
            }
            // What grows now is not what grew before, which was not told whole yet.
            ItemView::Message(_) if self.has_staged(|it| matches!(it, ItemView::Message(_))) => {
                self.tell_delta(EventMsg::ItemStarted(ItemEvent {
                    thread_id: Str::Borrowed(&self.core.session),
                    turn_id: Str::Borrowed(self.id),
                    item: TurnItem::AgentMessage(AgentMessageItem::default()),
                }));
            }
            ItemView::Reasoning(_)
                if self.has_staged(|it| matches!(it, ItemView::Reasoning(_))) =>
            {
                self.tell_delta(EventMsg::AgentReasoningSectionBreak(SectionBreak::default()));
            }
            _ => {}
        }
    }

    fn has_staged(&self, is_it: impl Fn(&ItemView<'_>) -> bool) -> bool {
        self.staged.iter().any(|item| is_it(&item.view()))
    }

    /// An item is whole.
    async fn done(&mut self, item: Item) -> Result<(), Broken> {
        let call = calls::call_of(&item);
        if self.known.contains(&item) {
            // The output of a call is there already, and the model has to read it.
            self.calls.n_calls += usize::from(call.is_some());
            return Ok(());
        }
        self.staged.push(item);
        if let Some(call) = call {
            self.enter();
            while let Some(ended) = self.calls.running.try_join_next() {
                self.note_end(ended.ok());
            }
            // On disk before it runs.
            self.core.keep().await?;
            self.shared.out.flush().await;
            self.calls.start(call, &self.scene);
        }
        Ok(())
    }

    /// Takes what is whole into the history, and tells it.
    fn enter(&mut self) {
        for item in std::mem::take(&mut self.staged) {
            self.tell_item(&item);
            self.core.push(item);
        }
    }

    fn tell_item(&mut self, item: &Item) {
        match item.view() {
            ItemView::Message(it) if &*it.role == "assistant" => {
                let text = it.text();
                let phase = it.phase.clone();
                self.tell_message(&text, phase);
            }
            ItemView::Reasoning(it) => {
                for part in &it.summary {
                    let text = Str::Borrowed(part.text());
                    self.tell(EventMsg::AgentReasoning(sqeq::Text { text }));
                }
                for part in &it.content {
                    let text = Str::Borrowed(part.text());
                    self.tell(EventMsg::AgentReasoningRawContent(sqeq::Text { text }));
                }
            }
            ItemView::WebSearchCall(it) => {
                let query = it.action.as_ref().map(query_of).unwrap_or_default();
                self.tell(EventMsg::WebSearchEnd(WebSearchEnd {
                    call_id: it.id.unwrap_or_default(),
                    query: query.into(),
                    action: it.action,
                }));
            }
            _ => {}
        }
    }

    /// Tells what was held back of a message, because it could have become a plan.
    fn end_speech(&mut self) {
        let Self { shared, id, core, speech, wish, .. } = self;
        speech.parser.finish(|piece| {
            if !wish.silent {
                tell_piece(shared, id, &core.session, piece);
            }
        });
        speech.parser = PlanParser::default();
    }

    fn tell_message(&mut self, text: &str, phase: Option<Str<'_>>) {
        let (text, proposed) = match self.core.context.plan {
            true => plan::split(text),
            false => (text.to_owned(), None),
        };
        self.end_speech();
        if let Some(proposed) = proposed {
            let item = TurnItem::Plan(PlanItem {
                id: Str::Owned(format!("{}-plan", self.id)),
                text: Str::Owned(proposed),
            });
            self.tell(EventMsg::ItemCompleted(ItemEvent {
                thread_id: Str::Borrowed(&self.core.session),
                turn_id: Str::Borrowed(self.id),
                item,
            }));
        }
        if !text.trim().is_empty() {
            let message = Str::Borrowed(text.as_str());
            self.tell(EventMsg::AgentMessage(AgentMessage { message, phase }));
        }
        self.said = Some(text);
    }

    /// The model stopped in its midst: what is there counts, for it may be told to go on.
    fn cut_short(&mut self, usage: TokenUsage) {
        self.enter();
        self.core.answer(None, usage);
    }

    /// The answer is whole.
    async fn completed(
        &mut self,
        response: Option<String>,
        usage: TokenUsage,
    ) -> Result<(), Broken> {
        self.enter();
        self.core.answer(response.clone(), usage);
        let info = TokenInfo {
            total_token_usage: self.core.total_usage,
            last_token_usage: usage,
            model_context_window: self.shared.settings.context_window(&self.core.context.model),
        };
        let count = TokenCount { info: Some(info), rate_limits: None };
        self.shared.out.put(self.id, EventMsg::TokenCount(Box::new(count)));
        self.core.keep().await?;
        self.shared.out.flush().await;
        Ok(())
    }

    /// A call has ended while others go on: a crash that cuts those off leaves it as it is.
    fn note_end(&mut self, ended: Option<Call>) {
        if let Some(call) = ended {
            self.core.ran(&call);
        }
    }

    /// Waits for the calls and takes their outputs into the history, in the order of the calls.
    async fn collect(&mut self, is_whole: bool) -> Result<(), Broken> {
        let mut kept = Ok(());
        while let Some(ended) = self.calls.running.join_next().await {
            self.note_end(ended.ok());
            // Those that ended at the same time wait for the disk together.
            while let Some(ended) = self.calls.running.try_join_next() {
                self.note_end(ended.ok());
            }
            if !self.calls.running.is_empty() && kept.is_ok() {
                kept = self.core.keep().await;
            }
        }
        kept?;
        let mut aborted = false;
        for call in std::mem::take(&mut self.calls.begun) {
            // A tool that failed in a panic has no output of its own.
            let outcome = self.core.outcomes.take(&call.id);
            let outcome = outcome.unwrap_or_else(|| Outcome::failed("the tool failed"));
            aborted |= outcome.aborts;
            self.core.give(&call, outcome);
        }
        if is_whole {
            let response = self.core.last_response.clone().unwrap_or_default();
            self.tell(EventMsg::RawResponseCompleted(RawResponseCompleted {
                response_id: response.into(),
                token_usage: Some(self.core.last_usage),
            }));
        }
        self.core.keep().await?;
        self.shared.out.flush().await;
        match aborted {
            true => Err(Broken::Stop(Stop::Aborted(sqeq::AbortReason::Interrupted))),
            false => Ok(()),
        }
    }
}

impl Calls {
    fn start(&mut self, call: Call, scene: &Scene) {
        self.n_calls += 1;
        let scene = scene.clone();
        self.begun.push(call.clone());
        self.running.spawn(async move {
            let outcome = tools::run(&scene, call.clone()).await;
            scene.outcomes.put(&call.id, outcome);
            call
        });
    }
}

fn tell_piece(shared: &Shared, id: &str, session: &str, piece: plan::Piece<'_>) -> bool {
    let plan_event = |delta: &str| ItemDelta {
        thread_id: Str::Owned(session.to_owned()),
        turn_id: Str::Owned(id.to_owned()),
        item_id: Str::Owned(format!("{id}-plan")),
        delta: Str::Owned(delta.to_owned()),
        ..ItemDelta::default()
    };
    match piece {
        plan::Piece::Text(text) => {
            let delta = Str::Borrowed(text);
            shared.out.put(id, EventMsg::AgentMessageDelta(Delta { delta }))
        }
        plan::Piece::Plan(text) => shared.out.put(id, EventMsg::PlanDelta(plan_event(text))),
        plan::Piece::PlanStart | plan::Piece::PlanEnd => false,
    }
}

/// The provider's id of an item.
fn id_of(item: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: Option<String>,
    }
    serde_json::from_str::<Named>(item).ok()?.id.filter(|id| !id.is_empty())
}

fn query_of(action: &Raw<'_>) -> String {
    #[derive(serde::Deserialize)]
    struct Action {
        #[serde(default)]
        query: Option<String>,
        #[serde(default)]
        url: Option<String>,
        #[serde(default)]
        pattern: Option<String>,
    }
    let action = action.read::<Action>();
    action.and_then(|it| it.query.or(it.pattern).or(it.url)).unwrap_or_default()
}
