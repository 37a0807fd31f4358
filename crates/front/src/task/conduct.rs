//! Works on a task: turn after turn, until it is done, somebody is needed, or it must stop.

mod check;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tieline_event::{
    BlobRef, Epoch, Event, FailureCode, Kind, Mode, Origin, Prompt, TaskMarker, TaskStop,
    TurnCompleted, TurnId, TurnStatus,
};
use tieline_hub::{Conversation, Entry, Hub, LetterId, Note, Subscription};
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};

use super::brief::{self, Surroundings};
use super::core::{Core, Out, Reply};
use super::print::{Format, Printer};
use super::state::{Letter, State, Status, TaskId, bound};
use crate::run::output::{self, Output, complain};
use crate::run::page::Look;
use crate::run::stop::{Signals, Stop};

/// How often mail is looked for, and what is held back is told.
const TICK: Duration = Duration::from_millis(200);

/// How long a conversation has to close.
const CLOSING: Duration = Duration::from_secs(10);

/// How to work on a task.
pub struct Options {
    /// What is printed.
    pub format: Format,
    /// How text looks.
    pub look: Look,
    /// What was said beforehand.
    pub letters: Vec<Letter>,
    /// Lines that a person types, where one is there to answer.
    pub typed: Option<mpsc::Receiver<String>>,
    /// There is something new to tell the agent.
    pub is_new: bool,
    /// There are new commands to verify the work with.
    pub is_checked_anew: bool,
    /// Holds commands that a model chose.
    pub fence: Fence,
}

/// Puts a command line into the sandbox of a mode, for a directory: a program and its arguments.
///
/// # Errors
/// In words, when that cannot be; then it does not run.
pub type Fence = Box<
    dyn Fn(Mode, &Path, Vec<OsString>) -> Result<(PathBuf, Vec<OsString>), String> + Send + Sync,
>;

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As the task stands.
    Stands(Status),
    /// A turn failed for this reason.
    TurnFailed(FailureCode),
    /// Somebody pressed Ctrl-C, or a signal came.
    Interrupted,
    /// The output cannot be written: nobody reads it any more, or its disk is full.
    OutputGone,
}

/// Why a task could not be worked on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The hub refused.
    #[error(transparent)]
    Hub(#[from] tieline_hub::Error),
    /// Signals could not be had.
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    /// The directory could not be looked at.
    #[error("cannot look at {path}")]
    Disk {
        /// Which.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The plan cannot be read.
    #[error("{0}")]
    Plan(String),
}

/// Works on a task and closes its conversation.
///
/// # Errors
/// When it cannot be worked on at all. A task that does not come to its end is not an error but an
/// [`Ending`].
pub async fn run(
    hub: &Hub,
    conversation: &Conversation,
    id: &TaskId,
    state: State,
    options: Options,
) -> Result<Ending, Error> {
    let signals = Signals::new().map_err(Error::Signals)?;
    let key = id.key().clone();
    let row = hub.with_store(move |store| store.conversation(&key)).await?;
    let epoch = row.as_ref().map_or(Epoch(0), |row| row.epoch);
    let workspace = row.as_ref().map(|row| row.workspace.clone()).unwrap_or_default();
    let mode = row.as_ref().map_or(Mode::Plan, |row| row.mode);
    let has_session = row.is_some_and(|row| row.native_session.is_some());
    // What was said beforehand is for what is open, or for what is asked later and is no leave.
    let (given, beforehand) = bound(options.letters, &state.questions);
    let letters: VecDeque<Letter> = given.into_iter().chain(beforehand).collect();
    let mut work = Work {
        hub,
        conversation,
        id,
        epoch,
        core: Core::new(&workspace),
        workspace,
        printer: Printer::new(options.format, options.look, Some(id)),
        output: Output::new(),
        subscription: conversation.subscribe(conversation.last_seq()),
        signals,
        letters,
        unread: Vec::new(),
        last_read: None,
        done: Vec::new(),
        typed: options.typed,
        mode,
        fence: options.fence,
        asked: None,
        stopped: None,
        nothing_runs: false,
        began: Instant::now(),
        waited: Duration::ZERO,
        state,
    };
    // An agent that was never reached, or has lost its session, is told everything again.
    if !has_session {
        work.state.told = None;
    }
    // Whoever sets it to work again wants it tried again.
    work.state.n_failed = 0;
    work.state.nobody_waits();
    let mut ended = work.go(options.is_new, options.is_checked_anew).await;
    if let Err(err) = &ended {
        let stop = Some((TaskStop::Failed, err.to_string()));
        // What went wrong first is what the caller is told.
        if let Err(later) = work.end(Status::Failed, stop).await {
            tracing::debug!(%later, "the last words were not said");
        }
    }
    work.printer.finish();
    work.flush().await;
    if work.stopped == Some(Stopped::OutputGone) {
        ended = ended.map(|ended| match ended {
            // Somebody stopped it before, and may well have closed the output too.
            Ending::Interrupted | Ending::Stands(Status::Cancelled) => ended,
            _ => Ending::OutputGone,
        });
    }
    match timeout(CLOSING, conversation.close()).await {
        Ok(Ok(()) | Err(tieline_hub::Error::Closed)) => {}
        Ok(Err(err)) => tracing::warn!(%err, "the conversation did not close cleanly"),
        Err(_) => tracing::warn!("the conversation did not close in time"),
    }
    ended
}

/// Why the turn that runs is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Cancelled,
    Interrupted,
    Budget,
    /// An answer was needed, and none came in time.
    Unanswered,
    OutputGone,
}

struct Work<'a> {
    hub: &'a Hub,
    conversation: &'a Conversation,
    id: &'a TaskId,
    /// Since when the task is ours.
    epoch: Epoch,
    workspace: String,
    state: State,
    core: Core,
    printer: Printer,
    output: Output,
    subscription: Subscription,
    signals: Signals,
    letters: VecDeque<Letter>,
    /// Mail that was taken and is not acted upon yet.
    unread: Vec<(LetterId, Letter)>,
    /// The last letter that was read.
    last_read: Option<LetterId>,
    /// Letters that were acted upon; they go with the next note.
    done: Vec<LetterId>,
    typed: Option<mpsc::Receiver<String>>,
    mode: Mode,
    fence: Fence,
    /// Since when somebody is waited for.
    asked: Option<Instant>,
    stopped: Option<Stopped>,
    /// There was no turn to be interrupted when it was last tried.
    nothing_runs: bool,
    began: Instant,
    /// How much of the time since then an answer was waited for.
    waited: Duration,
}

impl Work<'_> {
    async fn go(&mut self, is_new: bool, is_checked_anew: bool) -> Result<Ending, Error> {
        if self.state.baseline.is_none() {
            self.remember_disk().await?;
        }
        let mut is_wanted = is_new
            || !matches!(self.state.status, Status::Question | Status::Complete)
            || !self.state.given.is_empty();
        let mail = self.mail().await?;
        self.take(mail).await?;
        if let Some(stopped) = self.stopped.take() {
            return self.stop(stopped).await;
        }
        if self.state.status == Status::Complete && !is_wanted && is_checked_anew {
            if self.verify().await? {
                return self.end(Status::Complete, None).await;
            }
            is_wanted = true;
        }
        if self.state.status == Status::Complete && !is_wanted {
            let iterations = self.state.iterations;
            self.printer.marker(&TaskMarker::Completed { iterations });
            return Ok(Ending::Stands(Status::Complete));
        }
        self.read_letters().await?;
        for question in &self.state.questions {
            self.printer.marker(&question.marker());
        }
        is_wanted |= self.state.questions.is_empty();
        loop {
            self.read_letters().await?;
            if let Some(stopped) = self.stopped.take() {
                return self.stop(stopped).await;
            }
            if !is_wanted && self.state.given.is_empty() {
                if let Some(stopped) = self.wait_for_answer().await? {
                    return self.stop(stopped).await;
                }
                continue;
            }
            if let Some(reason) = self.state.overspent() {
                return self.end(Status::Budget, Some((TaskStop::Budget, reason))).await;
            }
            let end = self.turn().await?;
            is_wanted = false;
            match self.stopped.take() {
                // The answer came while the turn was being stopped.
                Some(Stopped::Unanswered) if self.state.questions.is_empty() => continue,
                Some(stopped) => return self.stop(stopped).await,
                None => {}
            }
            match (end.status, end.error) {
                (TurnStatus::Completed, _) => {}
                (TurnStatus::Interrupted, _) => return self.stop(Stopped::Cancelled).await,
                (TurnStatus::Failed, failure) => {
                    let reason = failure.as_ref().map(ToString::to_string);
                    let reason = reason.unwrap_or_else(|| "the turn failed".to_owned());
                    self.end(Status::Failed, Some((TaskStop::Failed, reason))).await?;
                    let code = failure.map_or(FailureCode::Agent, |failure| failure.code);
                    return Ok(Ending::TurnFailed(code));
                }
            }
            if self.state.blocked.is_some() {
                return self.end(Status::Blocked, None).await;
            }
            if !self.state.questions.is_empty() || !self.state.given.is_empty() {
                continue;
            }
            if self.verify().await? {
                return self.end(Status::Complete, None).await;
            }
            if let Some(stopped) = self.stopped.take() {
                return self.stop(stopped).await;
            }
            if self.state.n_failed > self.state.tries {
                let reason = format!("the work did not pass {} times", self.state.n_failed);
                return self.end(Status::Failed, Some((TaskStop::Failed, reason))).await;
            }
            is_wanted = true;
        }
    }

    /// One turn, to its end.
    async fn turn(&mut self) -> Result<TurnCompleted, Error> {
        let plan = self.state.plan.clone();
        let around = Surroundings::look(Path::new(&self.workspace), plan.as_deref());
        let around = around.map_err(Error::Plan)?;
        self.state.status = Status::Running;
        self.note(Vec::new()).await?;
        let mut next = self.state.clone();
        next.iterations += 1;
        let text = brief::next(self.id.as_str(), &mut next, &around);
        let prompt = Prompt { origin: Origin::Task, ..Prompt::text(text) };
        (self.began, self.waited) = (Instant::now(), Duration::ZERO);
        self.nothing_runs = false;
        let turn = self.start(prompt).await?;
        // What is told twice after a crash is a nuisance; what is never told is lost.
        let untold = std::mem::replace(&mut self.state, next);
        self.note(Vec::new()).await?;
        self.read_letters().await?;
        let mut ticks = ticks();
        // A turn of ours, or one that its background work brought.
        let is_over = |event: &Event, end: &TurnCompleted, ours: &mut Option<TurnId>| {
            ours.take_if(|turn| event.turn.as_ref() == Some(turn));
            ours.is_none() && (end.open_tasks == 0 || end.status != TurnStatus::Completed)
        };
        let mut ours = Some(turn);
        let mut last = None;
        loop {
            tokio::select! {
                biased;
                stop = self.signals.next() => self.signalled(stop).await?,
                entries = self.subscription.next() => {
                    let entries = entries?;
                    if entries.is_empty() {
                        return Err(tieline_hub::Error::Closed.into());
                    }
                    let mut ended = None;
                    for entry in &entries {
                        self.see(entry).await?;
                        if let Entry::Event(shown) = entry
                            && let Kind::TurnCompleted(end) = &shown.event.kind
                        {
                            let is_over = is_over(&shown.event, end, &mut ours);
                            last = Some(end.clone());
                            ended = last.clone().filter(|_| is_over).or(ended);
                        }
                    }
                    if let Some(end) = ended {
                        return self.turn_ended(end, untold).await;
                    }
                }
                line = typed(&mut self.typed) => self.hear(line).await?,
                _ = ticks.tick() => self.tick().await?,
            }
            self.flush().await;
            // Only background work went on, and nobody is there to be interrupted.
            if self.stopped.is_some()
                && self.nothing_runs
                && let Some(end) = last.take_if(|_| ours.is_none())
            {
                return self.turn_ended(end, untold).await;
            }
        }
    }

    async fn turn_ended(
        &mut self,
        end: TurnCompleted,
        untold: State,
    ) -> Result<TurnCompleted, Error> {
        self.state.millis += u64::try_from(self.worked().as_millis()).unwrap_or(0);
        self.asked = None;
        if end.status == TurnStatus::Failed {
            self.tell_again(untold);
        }
        self.note(Vec::new()).await?;
        Ok(end)
    }

    /// Begins a turn. Its agent may take long to start, and whoever wants it stopped is heard.
    async fn start(&mut self, prompt: Prompt) -> Result<TurnId, Error> {
        let mut starting = self.conversation.start_turn(prompt);
        let mut ticks = ticks();
        loop {
            tokio::select! {
                biased;
                turn = &mut starting => return Ok(turn?),
                stop = self.signals.next() => self.signalled(stop).await?,
                _ = ticks.tick() => {
                    let mail = self.mail().await?;
                    let (cancels, answers) = mail
                        .into_iter()
                        .partition(|(_, letter)| matches!(letter, Letter::Cancel { .. }));
                    // What else is said waits until the turn has begun.
                    self.unread = answers;
                    self.take(cancels).await?;
                }
            }
        }
    }

    /// How long the agent has worked in this turn; not while it waited for somebody.
    fn worked(&self) -> Duration {
        self.began.elapsed().saturating_sub(self.waited)
    }

    /// A turn that failed may not have reached the agent.
    fn tell_again(&mut self, untold: State) {
        let mut given = untold.given;
        given.append(&mut self.state.given);
        self.state.given = given;
        self.state.failed_check = self.state.failed_check.take().or(untold.failed_check);
        self.state.told = untold.told;
    }

    /// Time went by.
    async fn tick(&mut self) -> Result<(), Error> {
        let mut out = Vec::new();
        self.core.tick(&mut self.state, &mut out);
        self.show(out).await?;
        self.read_letters().await?;
        // Whoever types an answer has the last line of the screen.
        if self.typed.is_some() && !self.state.questions.is_empty() {
            self.printer.finish();
        } else {
            let worked = Duration::from_millis(self.state.millis).saturating_add(self.worked());
            self.printer.live(&self.state, worked);
        }
        let waits = self.state.questions.iter().any(|question| question.waits.is_some());
        if !waits {
            self.asked = None;
            let is_over = self.state.time_left().is_some_and(|left| self.worked() >= left);
            if is_over && self.stopped.is_none() {
                self.interrupt(Stopped::Budget).await?;
            }
            return Ok(());
        }
        self.waited += TICK;
        let since = *self.asked.get_or_insert_with(Instant::now);
        if self.typed.is_none()
            && since.elapsed() >= Duration::from_secs(self.state.wait)
            && self.stopped.is_none()
        {
            self.interrupt(Stopped::Unanswered).await?;
        }
        Ok(())
    }

    async fn see(&mut self, entry: &Entry) -> Result<(), Error> {
        self.printer.entry(entry);
        let store = self.hub.store().clone();
        let mut fetch = |blob: &BlobRef| store.blob(&blob.sha256).ok().flatten();
        let mut out = Vec::new();
        self.core.see(entry, &mut self.state, &mut fetch, &mut out);
        let asks = out.iter().any(|it| matches!(it, Out::Marker(TaskMarker::Question { .. })));
        self.show(out).await?;
        if asks {
            self.read_letters().await?;
        }
        Ok(())
    }

    /// What is said about the task is on disk before it is shown.
    async fn show(&mut self, out: Vec<Out>) -> Result<(), Error> {
        let markers: Vec<TaskMarker> = out
            .iter()
            .filter_map(|it| match it {
                Out::Marker(marker) => Some(marker.clone()),
                Out::Line(_) => None,
            })
            .collect();
        if !markers.is_empty() {
            self.note(markers).await?;
        }
        for it in &out {
            match it {
                Out::Line(line) => self.printer.line(line),
                Out::Marker(marker) => self.printer.marker(marker),
            }
        }
        self.flush().await;
        Ok(())
    }

    async fn note(&mut self, markers: Vec<TaskMarker>) -> Result<(), Error> {
        let letters = std::mem::take(&mut self.done);
        let note = Note { markers, task: Some(self.state.to_json()), blob: None, letters };
        Ok(self.conversation.note(note).await?)
    }

    async fn flush(&mut self) {
        let written = self.output.write(&mut self.printer.out).await;
        if let Err(err) = &written {
            output::failed(err, &mut self.printer.err);
        }
        if !self.printer.err.is_empty() {
            complain(&mut self.printer.err);
        }
        if written.is_err() && self.stopped.replace(Stopped::OutputGone).is_none() {
            // A turn that is over needs no word.
            self.conversation.interrupt().await.ok();
        }
    }

    async fn interrupt(&mut self, why: Stopped) -> Result<(), Error> {
        self.stopped.get_or_insert(why);
        match self.conversation.interrupt().await {
            Ok(()) => Ok(()),
            Err(tieline_hub::Error::NoTurn) => {
                self.nothing_runs = true;
                Ok(())
            }
            Err(err) => Err(err.into()),
        }
    }

    async fn signalled(&mut self, stop: Stop) -> Result<(), Error> {
        match stop {
            Stop::Turn => self.printer.remark("stopping …"),
            // Whatever is left is ended with the conversation.
            Stop::Everything => self.stopped = Some(Stopped::Interrupted),
        }
        self.interrupt(Stopped::Interrupted).await
    }

    /// What other processes have to say.
    async fn mail(&mut self) -> Result<Vec<(LetterId, Letter)>, Error> {
        let (key, after) = (self.id.key().clone(), self.last_read);
        let mail = self.hub.with_store(move |store| store.mail(&key, after)).await?;
        let mut letters = std::mem::take(&mut self.unread);
        for (id, body) in mail {
            self.last_read = Some(id);
            match serde_json::from_str(&body) {
                Ok(letter) => letters.push((id, letter)),
                Err(err) => {
                    tracing::warn!(%err, "a letter is not understood");
                    self.done.push(id);
                }
            }
        }
        Ok(letters)
    }

    /// Does what letters say. An answer is for what was asked when it was written, and for nothing
    /// that is asked later.
    async fn take(&mut self, letters: Vec<(LetterId, Letter)>) -> Result<(), Error> {
        for (id, letter) in letters {
            // It goes along with what it changes.
            self.done.push(id);
            match letter {
                Letter::Cancel { epoch } if epoch < self.epoch => {
                    tracing::debug!(%epoch, "a cancel was meant for an earlier owner");
                }
                Letter::Cancel { .. } => self.interrupt(Stopped::Cancelled).await?,
                Letter::Answer { question, text, hash } => {
                    let at = self.state.question_for(question.as_deref());
                    let asked = at.and_then(|at| self.state.questions.get(at));
                    if asked.is_some_and(|asked| !asked.takes(hash.as_deref())) {
                        let why = "an answer came for something else than what is asked now";
                        self.printer.remark(why);
                        continue;
                    }
                    self.answer(question.as_deref(), &text).await?;
                }
            }
        }
        if !self.done.is_empty() {
            self.note(Vec::new()).await?;
        }
        Ok(())
    }

    /// What others have to say, what was answered before, and what was said beforehand.
    async fn read_letters(&mut self) -> Result<(), Error> {
        let mail = self.mail().await?;
        self.take(mail).await?;
        while let Some((id, text)) = self.state.take_kept() {
            self.answer(Some(&id), &text).await?;
        }
        for letter in std::mem::take(&mut self.letters) {
            // What is not asked yet may be asked later.
            match self.meant_by(&letter) {
                Some((id, text)) => self.answer(Some(&id), &text).await?,
                None => self.letters.push_back(letter),
            }
        }
        Ok(())
    }

    /// The open question that an answer said beforehand is for, and the answer.
    fn meant_by(&self, letter: &Letter) -> Option<(String, String)> {
        let Letter::Answer { question, text, hash } = letter else { return None };
        let mut open = self.state.questions.iter().filter(|it| it.takes(hash.as_deref()));
        let found = open.find(|it| question.as_ref().is_none_or(|id| *id == it.id))?;
        Some((found.id.clone(), text.clone()))
    }

    async fn hear(&mut self, line: Option<String>) -> Result<(), Error> {
        match line {
            None => self.typed = None,
            Some(line) if line.trim().is_empty() => {}
            Some(line) => {
                let (given, left) = bound(vec![Letter::answer(&line)], &self.state.questions);
                for letter in given.into_iter().chain(left) {
                    let Letter::Answer { question, text, hash } = letter else { continue };
                    let is_unclear = hash.is_none() && question.is_none();
                    if is_unclear && !self.state.questions.is_empty() {
                        self.printer.remark("several questions are open: write q1=… for the first");
                        continue;
                    }
                    self.answer(question.as_deref(), &text).await?;
                }
            }
        }
        Ok(())
    }

    async fn answer(&mut self, question: Option<&str>, text: &str) -> Result<(), Error> {
        let mut out = Vec::new();
        let told = self.core.answer(question, text, &mut self.state, &mut out);
        self.show(out).await?;
        match told {
            Err(why) => self.printer.remark(&why),
            Ok(None) => {}
            Ok(Some(Reply { request, answer })) => {
                let answered = self.conversation.answer(&request, answer, Origin::Client, None);
                if let Err(err) = answered.await {
                    // It was too late for the agent, which hears of it with its next message.
                    tracing::debug!(%err, "an answer came too late");
                    self.state.leave_partly(|it| *it == request);
                    self.note(Vec::new()).await?;
                }
            }
        }
        Ok(())
    }

    /// Between two turns, with a question open: until somebody answers, or for as long as is waited.
    async fn wait_for_answer(&mut self) -> Result<Option<Stopped>, Error> {
        // A time that no clock has never comes.
        let until = Instant::now().checked_add(Duration::from_secs(self.state.wait));
        if self.state.wait > 0 || self.typed.is_some() {
            self.state.status = Status::Question;
            self.note(Vec::new()).await?;
        }
        let mut ticks = interval(TICK);
        while self.state.given.is_empty() {
            if let Some(stopped) = self.stopped {
                return Ok(Some(stopped));
            }
            if self.typed.is_none() && until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Some(Stopped::Unanswered));
            }
            tokio::select! {
                biased;
                _ = self.signals.next() => return Ok(Some(Stopped::Interrupted)),
                line = typed(&mut self.typed) => self.hear(line).await?,
                _ = ticks.tick() => self.read_letters().await?,
            }
            self.flush().await;
        }
        Ok(None)
    }

    async fn stop(&mut self, stopped: Stopped) -> Result<Ending, Error> {
        let stop = |how, reason: &str| Some((how, reason.to_owned()));
        match stopped {
            Stopped::Unanswered => self.end(Status::Question, None).await,
            Stopped::Budget => {
                let reason =
                    self.state.overspent().unwrap_or_else(|| "its time is over".to_owned());
                self.end(Status::Budget, Some((TaskStop::Budget, reason))).await
            }
            Stopped::Cancelled => {
                self.end(Status::Cancelled, stop(TaskStop::Cancelled, "somebody cancelled it"))
                    .await
            }
            Stopped::Interrupted => {
                let why = "tieline was interrupted; the same command goes on";
                self.end(Status::Cancelled, stop(TaskStop::Cancelled, why)).await?;
                Ok(Ending::Interrupted)
            }
            Stopped::OutputGone => {
                self.end(
                    Status::Cancelled,
                    stop(TaskStop::Cancelled, "its output could not be written"),
                )
                .await?;
                Ok(Ending::OutputGone)
            }
        }
    }

    /// The last words: what changed, and how it stands.
    async fn end(
        &mut self,
        status: Status,
        stop: Option<(TaskStop, String)>,
    ) -> Result<Ending, Error> {
        let mut out = Vec::new();
        self.core.release(&mut self.state, &mut out);
        if let Some(files) = self.measure().await? {
            out.push(Out::Marker(files));
        }
        self.state.status = status;
        if status == Status::Complete {
            let iterations = self.state.iterations;
            out.push(Out::Marker(TaskMarker::Completed { iterations }));
        }
        if let Some((how, reason)) = stop {
            out.push(Out::Marker(TaskMarker::Stopped { how, reason }));
        }
        for letter in std::mem::take(&mut self.letters) {
            if let Letter::Answer { question, text, .. } = letter {
                let question = question.map_or_else(String::new, |id| format!(" {id}"));
                let remark = format!("no question{question} is open for the answer {text:?}");
                self.printer.remark(&remark);
            }
        }
        self.show(out).await?;
        // Also when there was nothing to say.
        self.note(Vec::new()).await?;
        self.drain().await;
        Ok(Ending::Stands(status))
    }

    /// JSON lines have every event, the last ones too.
    async fn drain(&mut self) {
        let last = self.conversation.last_seq();
        while self.subscription.cursor() < last {
            let Ok(Ok(entries)) = timeout(TICK, self.subscription.next()).await else { return };
            entries.iter().for_each(|entry| self.printer.entry(entry));
        }
        self.flush().await;
    }
}

fn ticks() -> Interval {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// The next line that somebody types.
async fn typed(lines: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match lines {
        Some(lines) => lines.recv().await,
        None => std::future::pending().await,
    }
}
