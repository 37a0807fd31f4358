//! What a run does about what happens: shows it, heeds it, ends with it.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tieline_event::{
    Answer, BlobRef, Event, FailureCode, Kind, Origin, Request, RequestId, TurnCompleted, TurnId,
    TurnStatus,
};
use tieline_hub::{Conversation, Entry, Hub};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::face::Face;
use super::output::{self, Output, complain};
use super::stop::{Signals, Stop};
use super::talk::Talk;
use super::{Ending, Format, Layout, OnRequest, Options, Tasks, ending};

/// How long a conversation has to close when the person is in a hurry.
const HURRY: Duration = Duration::from_millis(600);

/// How long a conversation has to close after its turn.
const CLOSING: Duration = Duration::from_secs(10);

/// How long the last events of a closed conversation are waited for.
const DRAIN: Duration = Duration::from_millis(500);

/// How much is held back while somebody decides; with more it is shown, and the question again.
const HELD: usize = 10_000;

/// How far a run is.
#[derive(Debug, PartialEq)]
pub(super) enum Phase {
    /// A turn runs, or one is awaited.
    Running,
    /// The turn is over and the conversation is being closed.
    Closing(Ending),
    /// Nothing more is shown.
    Over(Ending),
}

/// A run of one turn.
pub(super) struct Run<'a> {
    pub(super) hub: &'a Hub,
    pub(super) conversation: &'a Conversation,
    pub(super) turn: TurnId,
    /// Where the agent works.
    pub(super) workspace: Option<String>,
    pub(super) options: Options,
    pub(super) face: Face,
    pub(super) output: Output,
    pub(super) phase: Phase,
    /// What was asked of the conversation and is not done yet. There are never more than the
    /// requests that are open, an interrupt and a close.
    pub(super) acts: JoinSet<(Act, Result<(), tieline_hub::Error>)>,
    /// Requests that wait for the person.
    pub(super) open: VecDeque<Request>,
    pub(super) talk: Option<Talk>,
    /// What happened while somebody decides: it is shown afterwards, so that nothing comes between
    /// what is asked and the answer, or looks like what is asked.
    pub(super) held: Vec<Entry>,
    /// The last line on the screen is a question and the cursor stands behind it.
    pub(super) is_prompted: bool,
    pub(super) needs_answer: bool,
    pub(super) was_interrupted: bool,
    pub(super) end: Option<TurnCompleted>,
}

/// What is asked of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Interrupt,
    Answer,
    Close,
    Drain,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        hub: &'a Hub,
        conversation: &'a Conversation,
        turn: TurnId,
        options: Options,
        workspace: Option<String>,
    ) -> Self {
        let asks = matches!(options.on_request, OnRequest::Ask(_));
        let key = conversation.key().clone();
        Self {
            hub,
            conversation,
            turn,
            workspace,
            face: Face::new(options.format, options.look, key, asks),
            held: Vec::new(),
            options,
            output: Output::new(),
            phase: Phase::Running,
            acts: JoinSet::new(),
            open: VecDeque::new(),
            talk: None,
            is_prompted: false,
            needs_answer: false,
            was_interrupted: false,
            end: None,
        }
    }

    pub(super) fn act(
        &mut self,
        act: Act,
        work: impl Future<Output = Result<(), tieline_hub::Error>> + Send + 'static,
    ) {
        self.acts.spawn(async move { (act, work.await) });
    }

    pub(super) fn interrupt(&mut self) {
        let conversation = self.conversation.clone();
        self.act(Act::Interrupt, async move { conversation.interrupt().await });
    }

    pub(super) fn close(&mut self, ending: Ending) {
        self.phase = Phase::Closing(ending);
        let conversation = self.conversation.clone();
        self.act(Act::Close, async move {
            let closing = conversation.close();
            timeout(CLOSING, closing).await.unwrap_or(Err(tieline_hub::Error::Closed))
        });
    }

    pub(super) fn answer(
        &mut self,
        request: RequestId,
        answer: Answer,
        by: Origin,
        policy: Option<String>,
    ) {
        let conversation = self.conversation.clone();
        self.act(
            Act::Answer,
            async move { conversation.answer(&request, answer, by, policy).await },
        );
    }

    pub(super) fn stop(&mut self, stop: Stop) {
        let has_turn = self.end.is_none();
        self.was_interrupted = true;
        self.drop_talk();
        match (stop, &self.phase) {
            (Stop::Turn, Phase::Running) if has_turn => {
                self.face.note("interrupting … (Ctrl-C again to quit)");
                self.interrupt();
            }
            // Only background tasks are left, and nobody wants to wait for them any more.
            (Stop::Turn, Phase::Running) => self.close(Ending::Interrupted),
            // The turn is over; only the closing is cut short.
            (_, Phase::Closing(ending)) => self.phase = Phase::Over(ending.clone()),
            _ => self.phase = Phase::Over(Ending::Interrupted),
        }
    }

    pub(super) fn acted(
        &mut self,
        done: Result<(Act, Result<(), tieline_hub::Error>), tokio::task::JoinError>,
    ) {
        match done {
            // What happened up to the end is still to be read; the end itself is read too, and
            // waited for only so long.
            Ok((Act::Close, Ok(()))) => self.act(Act::Drain, async {
                tokio::time::sleep(DRAIN).await;
                Ok(())
            }),
            Ok((Act::Close, Err(err))) => {
                tracing::debug!(%err, "closing the conversation");
                self.closed();
            }
            Ok((Act::Drain, _)) => self.closed(),
            Ok((_, Ok(()))) => {}
            // The turn was over before the word reached it.
            Ok((Act::Interrupt, Err(err))) => tracing::debug!(%err, "interrupting"),
            Ok((Act::Answer, Err(err))) => self.face.note(&format!("! {err}")),
            Err(err) => tracing::error!(%err, "a task failed"),
        }
    }

    /// Nothing more comes from the conversation.
    pub(super) fn closed(&mut self) {
        let ending = match std::mem::replace(&mut self.phase, Phase::Running) {
            Phase::Closing(ending) | Phase::Over(ending) => ending,
            Phase::Running => self.ending(),
        };
        self.phase = Phase::Over(ending);
    }

    pub(super) fn show(&mut self, entries: &[Entry]) {
        let is_held = self.talk.is_some() && self.has_screen();
        match is_held {
            true => self.held.extend_from_slice(entries),
            false => self.write(entries),
        }
        for entry in entries {
            if let Entry::Event(shown) = entry {
                self.heed(&shown.event);
            }
        }
        if self.talk.is_none() || self.held.len() > HELD {
            self.release();
        }
        if let Some(talk) = self.talk.as_ref().filter(|_| !self.is_prompted) {
            self.face.rows(talk.dialogue.opening());
            self.face.say(&talk.dialogue.prompt().text, self.options.look);
            self.is_prompted = true;
        }
    }

    /// Shows what was held back.
    pub(super) fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.write(&held);
    }

    fn write(&mut self, entries: &[Entry]) {
        let store = self.hub.store();
        let mut fetch = |blob: &BlobRef| match store.blob(&blob.sha256) {
            Ok(bytes) => bytes,
            Err(err) => {
                tracing::warn!(%err, "a large text could not be read");
                None
            }
        };
        let before = self.face.out.len();
        self.face.show(entries, &mut fetch);
        // Something else comes between the question and its answer: on a line of its own.
        if self.is_prompted && self.face.out.len() > before && self.has_screen() {
            self.face.out.insert(before, b'\n');
            self.is_prompted = false;
        }
    }

    pub(super) fn has_screen(&self) -> bool {
        self.options.format == Format::Text && self.options.look.layout == Layout::Together
    }

    /// What an event means for the run.
    pub(super) fn heed(&mut self, event: &Event) {
        match &event.kind {
            Kind::RequestOpened(request) => self.requested(request),
            Kind::RequestResolved(resolved) => self.settled(&resolved.request),
            Kind::RequestExpired(expired) => self.settled(&expired.request),
            Kind::TurnCompleted(end) => self.turn_completed(event.turn.as_ref(), end),
            // Whoever would bring the next turn is gone.
            Kind::ProcessExited(_) if self.end.is_some() && self.phase == Phase::Running => {
                self.close(self.ending());
            }
            _ => {}
        }
    }

    pub(super) fn turn_completed(&mut self, turn: Option<&TurnId>, end: &TurnCompleted) {
        if self.end.is_none() && turn != Some(&self.turn) {
            return;
        }
        self.drop_talk();
        self.open.clear();
        let goes_on = end.open_tasks > 0
            && end.status == TurnStatus::Completed
            && self.options.tasks == Tasks::Await
            && !self.was_interrupted;
        self.end = Some(end.clone());
        if self.phase != Phase::Running {
            return;
        }
        if goes_on {
            self.face.note(&format!("· waiting for {} background tasks", end.open_tasks));
        } else {
            self.close(self.ending());
        }
    }

    pub(super) fn ending(&self) -> Ending {
        match &self.end {
            _ if self.needs_answer => Ending::AnswerNeeded,
            None => Ending::Failed(FailureCode::Agent),
            Some(end) => match (end.status, &end.error) {
                (TurnStatus::Completed, _) => Ending::Completed,
                (TurnStatus::Interrupted, _) => Ending::Interrupted,
                (TurnStatus::Failed, Some(failure)) => Ending::Failed(failure.code),
                (TurnStatus::Failed, None) => Ending::Failed(FailureCode::Agent),
            },
        }
    }

    /// Writes what there is to write. `false` when nobody reads it any more.
    pub(super) async fn flush(&mut self, signals: &mut Signals) -> bool {
        let mut out = std::mem::take(&mut self.face.out);
        let written = {
            let writing = self.output.write(&mut out);
            tokio::pin!(writing);
            loop {
                // Nobody may read for a long time, and Ctrl-C works all the same.
                tokio::select! {
                    written = &mut writing => break written,
                    stop = signals.next() => {
                        if stop == Stop::Everything {
                            self.phase = Phase::Over(Ending::Interrupted);
                            return true;
                        }
                        self.was_interrupted = true;
                        let conversation = self.conversation.clone();
                        self.acts.spawn(async move {
                            (Act::Interrupt, conversation.interrupt().await)
                        });
                    }
                }
            }
        };
        // What the loop wrote in the meantime comes after; nothing does, and the room is reused.
        out.append(&mut self.face.out);
        self.face.out = out;
        if let Err(err) = &written {
            output::failed(err, &mut self.face.err);
        }
        if !self.face.err.is_empty() {
            complain(&mut self.face.err);
        }
        written.is_ok()
    }

    /// Somebody who reads slowly is waited for, unless the person is in a hurry.
    async fn last_write(&mut self, out: &mut Vec<u8>, is_hurried: bool) -> io::Result<()> {
        let writing = self.output.write(out);
        match is_hurried {
            true => timeout(HURRY, writing).await.unwrap_or(Ok(())),
            false => writing.await,
        }
    }

    /// Leaves everything in order and says the last words.
    pub(super) async fn end(mut self, ending: Ending) -> Ending {
        self.talk = None;
        self.release();
        let store = self.hub.store().clone();
        self.face.finish(&mut |blob| store.blob(&blob.sha256).ok().flatten());
        let is_gone = ending == Ending::OutputGone;
        let is_hurried = self.end.is_none() || is_gone || ending == Ending::Interrupted;
        if is_hurried
            && !self.conversation.is_closed()
            && timeout(HURRY, self.conversation.close()).await.is_err()
        {
            // The process ends now, and with it everything it started.
            tracing::debug!("the conversation did not close in time");
        }
        if is_gone {
            return ending;
        }
        let mut out = std::mem::take(&mut self.face.out);
        if let Err(err) = self.last_write(&mut out, is_hurried).await {
            output::failed(&err, &mut self.face.err);
            complain(&mut self.face.err);
            return Ending::OutputGone;
        }
        let mut lines = match &self.end {
            Some(end) => ending::ending(end),
            None => vec!["— stopped before the turn ended".to_owned()],
        };
        if ending == Ending::AnswerNeeded {
            lines.push("an answer was needed and nobody was there to give one".to_owned());
        }
        if self.has_screen() {
            self.face.err.push(b'\n');
        }
        // Of an agent that was never there nothing goes on.
        let never_was = [FailureCode::AgentNotFound, FailureCode::AgentCannotStart];
        let goes_on = !matches!(ending, Ending::Failed(code) if never_was.contains(&code));
        if let Some(first) = lines.first_mut().filter(|_| goes_on) {
            first.push_str(&format!(" · go on: {}", self.options.go_on));
        }
        for line in lines {
            self.face.err.extend_from_slice(line.as_bytes());
            self.face.err.push(b'\n');
        }
        complain(&mut self.face.err);
        ending
    }
}
