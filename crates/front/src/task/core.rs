//! What happens in a conversation, as words about its task. Sans-IO.
//!
//! Progress has two sources: the agent's own markers, and what is seen of its work. What is seen is
//! held back until the next step: an agent that speaks of it itself is heard instead.

use std::collections::{BTreeMap, HashMap, HashSet};

use tieline_event::{
    Answer, ChangeKind, Event, Item, ItemBody, ItemId, ItemStatus, Kind, Plan, PlanStatus, Request,
    RequestBody, RequestId, Stream, TaskMarker, TaskOption, Teller, ToolKind, TurnCompleted,
    TurnStatus,
};
use tieline_hub::Entry;
use tieline_wire::markers::{Marker, Piece, Reader, Reading};

use super::state::{OpenQuestion, Partly, State, TEXT, Waits};
use crate::review::{self, Room, review, short};
use crate::sanitize::one_line;
use crate::summary::{cut, label};
use crate::{Fetch, visible, whole};

#[cfg(test)]
mod tests;

/// Markers that say what we measured and ran.
const OURS: [&str; 2] = ["TEST_RESULTS", "FILES_MISMATCH"];

/// For how many ticks a step that is done is held back.
const PATIENCE: u32 = 25;

/// How long a step is, in characters.
const STEP: usize = 160;

/// What comes of it, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Out {
    /// A line of the agent's text, as it wrote it.
    Line(String),
    /// A word about the task.
    Marker(TaskMarker),
}

/// Reads along.
#[derive(Debug, Default)]
pub struct Core {
    /// Where the agent works; paths are told from there.
    workspace: String,
    /// Messages of the agent that go on.
    messages: HashMap<ItemId, Message>,
    /// The last step that was seen, while the agent may still speak of it.
    held: Option<Step>,
    /// The agent's last word of progress, while the step it speaks of may still come.
    said: Option<String>,
    /// The step of the agent's plan that was told last.
    planned: Option<String>,
    /// Items that asked something; the question says it all.
    asking: HashSet<ItemId>,
}

#[derive(Debug)]
struct Message {
    reader: Reader,
    /// Bytes that were read.
    read: u64,
}

#[derive(Debug)]
struct Step {
    text: String,
    /// Words by which the agent would speak of it.
    names: Vec<String>,
    /// For how many ticks it is held back, and how many there were.
    patience: u32,
    n_ticks: u32,
}

impl Core {
    /// For an agent that works here.
    pub fn new(workspace: &str) -> Self {
        Self { workspace: format!("{}/", workspace.trim_end_matches('/')), ..Self::default() }
    }

    /// Something happened.
    pub fn see(
        &mut self,
        entry: &Entry,
        state: &mut State,
        fetch: &mut Fetch<'_>,
        out: &mut Vec<Out>,
    ) {
        match entry {
            Entry::Delta(delta) => {
                if delta.stream == Stream::Text
                    && let Some(message) = self.messages.get_mut(&delta.item)
                    && message.read == delta.offset
                {
                    message.read += delta.text.len() as u64;
                    let pieces = message.pieces(|reader, sink| reader.feed(&delta.text, sink));
                    self.hear(pieces, state, out);
                }
            }
            Entry::Event(shown) => self.event(&shown.event, state, fetch, out),
        }
    }

    /// Some time went by: what the agent has not spoken of by now is told.
    pub fn tick(&mut self, state: &mut State, out: &mut Vec<Out>) {
        if let Some(step) = &mut self.held {
            step.n_ticks += 1;
            if step.n_ticks > step.patience {
                self.release(state, out);
            }
        }
    }

    /// Tells what was held back.
    pub fn release(&mut self, state: &mut State, out: &mut Vec<Out>) {
        if let Some(step) = self.held.take() {
            state.step.clone_from(&step.text);
            out.push(Out::Marker(TaskMarker::Progress { text: step.text, by: Teller::Tieline }));
        }
    }

    fn event(
        &mut self,
        event: &Event,
        state: &mut State,
        fetch: &mut Fetch<'_>,
        out: &mut Vec<Out>,
    ) {
        let is_agents_own = event.parent.is_none();
        match &event.kind {
            Kind::ItemStarted(item) | Kind::ItemUpdated(item) if is_agents_own => {
                self.begins(item, state, out);
            }
            Kind::ItemCompleted(item) if is_agents_own => self.ends(item, state, fetch, out),
            Kind::PlanUpdated(plan) if is_agents_own => self.plans(plan, state, out),
            Kind::RequestOpened(request) => {
                self.release(state, out);
                if let RequestBody::Question { .. } = request.body {
                    self.asking.extend(request.item.clone());
                }
                let asking = Asking {
                    task: event.conversation.as_str(),
                    workspace: self.workspace.trim_end_matches('/'),
                };
                asking.ask(request, state, fetch, out);
            }
            Kind::RequestResolved(resolved) => {
                state.questions.retain(|it| !it.is_of(&resolved.request));
                state.partly.retain(|it| !it.question.is_of(&resolved.request));
            }
            Kind::RequestExpired(expired) => {
                state.leave_partly(|request| *request == expired.request);
                for question in state.questions.iter_mut().filter(|it| it.is_of(&expired.request)) {
                    (question.waits, question.lapsed) = (None, true);
                }
            }
            Kind::TurnCompleted(end) => self.turn_ends(end, state, out),
            _ => {}
        }
    }

    fn begins(&mut self, item: &Item, state: &mut State, out: &mut Vec<Out>) {
        match &item.body {
            ItemBody::AgentMessage { .. } => {
                self.messages.entry(item.id.clone()).or_insert_with(Message::new);
            }
            // One that was announced may not be known yet.
            ItemBody::Command { command, .. }
                if item.status == ItemStatus::InProgress && !command.trim().is_empty() =>
            {
                let words: Vec<&str> = command.split_whitespace().take(2).collect();
                let text = format!("Running {}", visible::line(command));
                self.step(text, vec![words.join(" ")], state, out);
            }
            _ => {}
        }
    }

    fn ends(&mut self, item: &Item, state: &mut State, fetch: &mut Fetch<'_>, out: &mut Vec<Out>) {
        match &item.body {
            ItemBody::AgentMessage { text } => {
                let mut message = self.messages.remove(&item.id).unwrap_or_else(Message::new);
                let text = whole(text, fetch);
                let read = usize::try_from(message.read).unwrap_or(usize::MAX);
                let rest = text.get(read..).unwrap_or_default();
                let mut pieces = message.pieces(|reader, sink| reader.feed(rest, sink));
                pieces.extend(message.pieces(|reader, sink| reader.finish(sink)));
                self.hear(pieces, state, out);
            }
            ItemBody::Command { command, exit_code, .. } if item.status == ItemStatus::Failed => {
                let code = exit_code.map(|code| format!(" with exit code {code}"));
                let text = format!("{} failed{}", visible::line(command), code.unwrap_or_default());
                self.held = None;
                self.step(text, Vec::new(), state, out);
            }
            // One that was told in a single event.
            ItemBody::Command { .. } => {
                let known = format!("Running {}", command_of(&item.body));
                if !is_same(&known, state, self.held.as_ref()) {
                    let started = Item { status: ItemStatus::InProgress, ..item.clone() };
                    self.begins(&started, state, out);
                }
            }
            ItemBody::FileChange { changes } if item.status == ItemStatus::Ok => {
                for change in changes {
                    let verb = match change.kind {
                        ChangeKind::Add => "Created",
                        ChangeKind::Update => "Edited",
                        ChangeKind::Delete => "Deleted",
                    };
                    let path = change.path.strip_prefix(&self.workspace).unwrap_or(&change.path);
                    let text = format!("{verb} {}", visible::line(path));
                    let name = change.path.rsplit('/').next().unwrap_or_default().to_owned();
                    self.step(text, vec![name], state, out);
                }
            }
            ItemBody::ToolCall { gist, .. } if item.status == ItemStatus::Ok => {
                let kind = gist.as_ref().map(|gist| gist.kind);
                let is_quiet = matches!(
                    kind,
                    Some(ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Plan)
                );
                if !is_quiet && !self.asking.contains(&item.id) {
                    self.step(label(&item.body), Vec::new(), state, out);
                }
            }
            _ => {}
        }
    }

    fn plans(&mut self, plan: &Plan, state: &mut State, out: &mut Vec<Out>) {
        let current = plan.entries.iter().position(|it| it.status == PlanStatus::InProgress);
        let Some((at, entry)) = current.and_then(|at| Some((at, plan.entries.get(at)?))) else {
            return;
        };
        if self.planned.as_deref() == Some(&entry.text) {
            return;
        }
        self.planned = Some(entry.text.clone());
        let text = format!("Step {} of {}: {}", at + 1, plan.entries.len(), one_line(&entry.text));
        self.step(text, vec![entry.text.clone()], state, out);
    }

    /// A step was seen: it is told unless the agent has just spoken of it, or does so now.
    fn step(&mut self, text: String, names: Vec<String>, state: &mut State, out: &mut Vec<Out>) {
        // What runs now is worth knowing now; of what is done the agent may speak in its next message.
        let patience = if text.starts_with("Running ") { 0 } else { PATIENCE };
        let step = Step { text: cut(&text, STEP), names, patience, n_ticks: 0 };
        if self.held.as_ref().is_some_and(|held| held.text == step.text) {
            return;
        }
        self.release(state, out);
        if !self.said.take().is_some_and(|said| step.is_meant_by(&said)) {
            self.held = Some(step);
        }
    }

    /// What the agent says.
    fn hear(&mut self, pieces: Vec<Heard>, state: &mut State, out: &mut Vec<Out>) {
        for piece in pieces {
            let marker = match piece {
                Heard::Line(line) => {
                    self.release(state, out);
                    out.push(Out::Line(line));
                    continue;
                }
                Heard::Marker(marker) => marker,
            };
            match marker {
                Marker::Progress(text) => {
                    if self.held.take_if(|held| held.is_meant_by(&text)).is_none() {
                        self.release(state, out);
                    }
                    state.step.clone_from(&text);
                    self.said = Some(text.clone());
                    out.push(Out::Marker(TaskMarker::Progress { text, by: Teller::Agent }));
                }
                Marker::Question(question) => {
                    self.release(state, out);
                    let asked = state.asked_in_marker(question);
                    out.push(Out::Marker(asked));
                }
                Marker::Blocked { reason, context } => {
                    self.release(state, out);
                    state.blocked = Some(reason.clone());
                    out.push(Out::Marker(TaskMarker::Blocked { reason, context }));
                }
                // Believed when it was measured.
                Marker::FilesModified(files) => files.iter().for_each(|file| state.claim(file)),
                // Decided by us.
                Marker::Complete { .. } => {}
                // These two are ours: from an agent they are text.
                Marker::Other { name, content } if OURS.contains(&name.as_str()) => {
                    self.release(state, out);
                    let mut lines = content.into_iter();
                    let first = format!("[{name}] {}", lines.next().unwrap_or_default());
                    out.extend(std::iter::once(first).chain(lines).map(Out::Line));
                }
                Marker::Other { name, content } => {
                    self.release(state, out);
                    out.push(Out::Marker(TaskMarker::Other { name, content }));
                }
            }
        }
    }

    fn turn_ends(&mut self, end: &TurnCompleted, state: &mut State, out: &mut Vec<Out>) {
        self.release(state, out);
        self.said = None;
        self.messages.clear();
        self.asking.clear();
        // An agent that ended its turn well went on without the answers it had waited for; one
        // that was stopped still needs them.
        match end.status {
            TurnStatus::Completed => {
                state.questions.retain(|question| !question.lapsed);
                // What it did not ask again it does not need any more.
                state.kept_answers.clear();
            }
            _ => state.questions.iter_mut().for_each(|question| question.lapsed = false),
        }
        if let Some(usage) = &end.usage {
            state.tokens += usage.input_tokens
                + usage.cached_input_tokens
                + usage.cache_write_tokens
                + usage.output_tokens;
        }
    }

    /// Somebody answered: gives what the agent is to be told at once, if it waits for it and has
    /// every answer.
    ///
    /// # Errors
    /// A sentence, when there is no such question, or this is no answer to it.
    pub fn answer(
        &mut self,
        id: Option<&str>,
        text: &str,
        state: &mut State,
        out: &mut Vec<Out>,
    ) -> Result<Option<Reply>, String> {
        let Some(at) = state.question_for(id) else {
            return Err(match id {
                Some(id) => format!("there is no open question {id}"),
                None => "no question is open".to_owned(),
            });
        };
        if let Some(why) = state.questions.get(at).and_then(|question| question.refuses(text)) {
            return Err(why);
        }
        let question = state.questions.remove(at);
        let chosen = question.chosen(text).cloned();
        let words = chosen.as_ref().map_or_else(|| text.trim().to_owned(), |it| it.label.clone());
        out.push(Out::Marker(TaskMarker::Answered {
            question: question.id.clone(),
            answer: words.clone(),
        }));
        let Some(waits) = question.waits.clone() else {
            state.leave(question, words);
            return Ok(None);
        };
        let request = waits.request;
        state.partly.push(Partly { question, answer: words.clone() });
        if waits.question.is_none() {
            let at = chosen.and_then(|it| usize::try_from(it.number).ok()?.checked_sub(1));
            let option = at.and_then(|at| waits.options.get(at).cloned());
            // Words that are no option are a reason to do something else.
            let answer =
                option.map_or_else(|| Answer::deny(words), |option| Answer::Choose { option });
            return Ok(Some(Reply { request, answer }));
        }
        if state.questions.iter().any(|it| it.is_of(&request)) {
            return Ok(None);
        }
        let of_request = state.partly.iter().filter(|it| it.question.is_of(&request));
        let answers: BTreeMap<String, Vec<String>> = of_request
            .filter_map(|it| Some((it.question.waits.clone()?.question?, vec![it.answer.clone()])))
            .collect();
        Ok(Some(Reply { request, answer: Answer::Answers { answers } }))
    }
}

/// What an agent that waits is to be told. Until it has been, the answers are among those of
/// [`State::partly`].
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Its request.
    pub request: RequestId,
    /// The answer.
    pub answer: Answer,
}

/// A piece of a message, apart from the reader that gave it.
enum Heard {
    Line(String),
    Marker(Marker),
}

impl Message {
    fn new() -> Self {
        Self { reader: Reader::new(Reading::Spec), read: 0 }
    }

    fn pieces(&mut self, read: impl FnOnce(&mut Reader, &mut dyn FnMut(Piece<'_>))) -> Vec<Heard> {
        let mut heard = Vec::new();
        read(&mut self.reader, &mut |piece| {
            heard.push(match piece {
                Piece::Text(line) => Heard::Line(line.to_owned()),
                Piece::Marker(marker) => Heard::Marker(marker),
            });
        });
        heard
    }
}

impl Step {
    /// Whether the agent's words are about this step.
    fn is_meant_by(&self, said: &str) -> bool {
        self.names.iter().any(|name| name.len() > 2 && said.contains(name.as_str()))
    }
}

impl OpenQuestion {
    /// Whether this request waits for it.
    fn is_of(&self, request: &RequestId) -> bool {
        self.waits.as_ref().is_some_and(|waits| waits.request == *request)
    }
}

fn command_of(body: &ItemBody) -> String {
    match body {
        ItemBody::Command { command, .. } => cut(&visible::line(command), STEP),
        _ => String::new(),
    }
}

fn is_same(text: &str, state: &State, held: Option<&Step>) -> bool {
    let text = cut(text, STEP);
    state.step == text || held.is_some_and(|held| held.text == text)
}

/// Where something is asked.
struct Asking<'a> {
    task: &'a str,
    workspace: &'a str,
}

/// Columns, rows and bytes of what an agent asks that are told; the protocol has room for more.
const COLUMNS: usize = 400;
const ROWS: usize = 150;
const BYTES: usize = 48 * 1024;

impl Asking<'_> {
    /// What an agent asks on its own wire, as questions of the task.
    fn ask(&self, request: &Request, state: &mut State, fetch: &mut Fetch<'_>, out: &mut Vec<Out>) {
        let hash = request.fingerprint();
        let waits = |question: Option<String>| Waits {
            request: request.id.clone(),
            question,
            options: request.options.iter().map(|choice| choice.id.clone()).collect(),
        };
        let review = review(request, Some(self.workspace), fetch);
        let how = format!("tieline show {} shows all of it", self.task);
        let room = Room { width: COLUMNS, rows: ROWS, bytes: BYTES, how: &how };
        let context: Vec<String> = review
            .below_title(&room)
            .iter()
            .map(|row| row.strip_prefix("  ").unwrap_or(row).to_owned())
            .collect();
        let RequestBody::Question { questions } = &request.body else {
            let means = |choice| review::meaning(choice).map(|it| format!("that is: {it}"));
            let labels = request.options.iter().map(|it| (it.label.clone(), means(it)));
            let asked = state.ask(OpenQuestion {
                text: review.title,
                options: numbered(labels),
                context,
                waits: Some(waits(None)),
                hash,
                leave: true,
                ..OpenQuestion::default()
            });
            return out.push(Out::Marker(asked));
        };
        for question in questions {
            let options = question.options.iter();
            let labels = options.map(|it| (it.label.clone(), it.description.clone()));
            let asked = state.ask(OpenQuestion {
                text: short(&question.text, TEXT),
                options: numbered(labels),
                context: context.clone(),
                hash: format!("{hash} {}", question.id),
                is_fixed: !question.options.is_empty() && !question.free_text && !question.multiple,
                waits: Some(waits(Some(question.id.clone()))),
                ..OpenQuestion::default()
            });
            out.push(Out::Marker(asked));
        }
    }
}

fn numbered(labels: impl Iterator<Item = (String, Option<String>)>) -> Vec<TaskOption> {
    let options = labels.zip(1..);
    options
        .map(|((label, description), number)| TaskOption { number, label, description })
        .collect()
}
