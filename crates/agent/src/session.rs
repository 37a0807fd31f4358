//! One agent process seen as bytes: framer, driver and ledger together.

use std::borrow::Cow;

use tieline_event::{
    Answer, Content, EndSignal, Failure, FailureCode, FrameNo, Inquiry, Kind, Mode, NoticeLevel,
    Origin, Policy, Prompt, RequestId, Resolved, TurnId, TurnStatus, Unparsed,
};
use tieline_wire::ndjson::{self, Framer, Line};

use crate::alarm::Alarm;
use crate::chore::{ChoreId, ChoreNews};
use crate::driver::{Driver, ExitInfo, Refused, Takes};
use crate::ledger::{Ledger, OpenItem, Output, TurnEnd, UNREAD};

/// What stands for an answer that is not to be shown.
const MASK: &str = "[secret]";

/// Which way a frame went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the agent.
    In,
    /// From the agent.
    Out,
    /// The agent's stderr.
    Err,
}

/// One agent process, without the process.
pub struct Session {
    framer: Framer,
    driver: Box<dyn Driver>,
    ledger: Ledger,
    next_frame: FrameNo,
    interrupted: bool,
    /// What each prompt begins with.
    preamble: Option<String>,
    /// Answers that must not stay in what is kept of the next writes.
    secrets: Vec<String>,
}

impl Session {
    /// A session whose frames are numbered from `next_frame`.
    pub fn new(
        driver: Box<dyn Driver>,
        ledger: Ledger,
        line_limit: usize,
        next_frame: FrameNo,
    ) -> Self {
        let framer = Framer::new(line_limit);
        Self {
            framer,
            driver,
            ledger,
            next_frame,
            interrupted: false,
            preamble: None,
            secrets: vec![],
        }
    }

    /// Each prompt begins with this on the wire; the record has it as the user wrote it.
    #[must_use]
    pub fn with_preamble(mut self, preamble: Option<String>) -> Self {
        self.preamble = preamble;
        self
    }

    /// The books, to look at.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The books, to add what only the owner knows.
    pub fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Gives the books back, for the next process of the same conversation.
    pub fn into_ledger(mut self) -> Ledger {
        self.ledger.forget_writes();
        self.ledger
    }

    /// The process is there.
    pub fn started(&mut self) {
        self.driver.started(&mut self.ledger);
    }

    /// Takes bytes of the agent's stdout. Every line is given to `keep` as received.
    pub fn read(&mut self, chunk: &[u8], mut keep: impl FnMut(Direction, Cow<'_, [u8]>)) {
        let Self { framer, driver, ledger, next_frame, .. } = self;
        framer.feed(chunk, |line| see(line, driver.as_mut(), ledger, next_frame, &mut keep));
        // An interrupt is over with the turn it was meant for.
        self.interrupted &= self.ledger.current_turn().is_some();
    }

    /// Takes what is to be written to the agent; each line is given to `keep`. The flag says that
    /// the input is to be closed afterwards.
    pub fn take_writes(
        &mut self,
        mut keep: impl FnMut(Direction, Cow<'_, [u8]>),
    ) -> (Vec<u8>, bool) {
        let bytes = self.ledger.take_writes();
        let mut secrets = std::mem::take(&mut self.secrets);
        secrets.extend(self.ledger.take_secrets());
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match masked(line, &secrets) {
                None => keep(Direction::In, Cow::Borrowed(line)),
                Some(masked) => keep(Direction::In, Cow::Owned(masked)),
            }
            self.next_frame = self.next_frame.next();
        }
        (bytes, self.ledger.take_close_input())
    }

    /// Keeps a piece of the agent's stderr.
    pub fn keep_stderr(&mut self, bytes: &[u8], mut keep: impl FnMut(Direction, Cow<'_, [u8]>)) {
        keep(Direction::Err, Cow::Borrowed(bytes));
        self.next_frame = self.next_frame.next();
    }

    /// Takes what is to be stored and shown.
    pub fn take_outputs(&mut self) -> Vec<Output> {
        self.ledger.take_outputs()
    }

    /// Begins a turn.
    pub fn start_turn(&mut self, prompt: &Prompt) -> TurnId {
        self.interrupted = false;
        let turn = self.ledger.begin_turn(prompt.origin, prompt.idempotency_key.clone());
        if let Some(errand) = &prompt.errand {
            if let Err(refused) = self.driver.start_errand(errand, &mut self.ledger) {
                let failure = Failure::new(FailureCode::BadRequest, refused.0);
                self.ledger.end_turn(&turn, TurnEnd::failed(failure, EndSignal::Tieline));
            }
            return turn;
        }
        self.ledger.user_message(prompt);
        self.warn_of_options(self.driver.takes(), prompt);
        match self.preamble.as_ref().filter(|_| !is_command(prompt)) {
            None => self.driver.start_turn(prompt, &mut self.ledger),
            Some(preamble) => {
                let mut prompt = prompt.clone();
                prompt.content.insert(0, Content::text(preamble.as_str()));
                self.driver.start_turn(&prompt, &mut self.ledger);
            }
        }
        turn
    }

    /// Asks the agent about itself; [`Ledger::take_reports`] has the answer, once it is there.
    ///
    /// # Errors
    /// When this agent does not tell.
    pub fn inquire(&mut self, number: u64, inquiry: &Inquiry) -> Result<(), Refused> {
        self.driver.inquire(number, inquiry, &mut self.ledger)
    }

    /// Says something while a turn runs.
    ///
    /// # Errors
    /// When the agent takes no message now.
    pub fn steer(&mut self, prompt: &Prompt) -> Result<(), Refused> {
        self.driver.steer(prompt, &mut self.ledger)?;
        self.ledger.user_message(prompt);
        // A turn keeps what it began with.
        self.warn_of_options(Takes::default(), prompt);
        Ok(())
    }

    fn warn_of_options(&mut self, takes: Takes, prompt: &Prompt) {
        for text in takes.ignored(&prompt.options) {
            self.ledger.notice(NoticeLevel::Warning, "option_ignored", text);
        }
    }

    /// Stops the turn by the wire's own word; `false` when it has none.
    pub fn interrupt(&mut self) -> bool {
        self.interrupted = true;
        self.driver.interrupt(&mut self.ledger)
    }

    /// Whether the running turn is to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Answers a request.
    ///
    /// # Errors
    /// When the request is answered or gone.
    pub fn answer(
        &mut self,
        request: &RequestId,
        answer: &Answer,
        by: Origin,
        policy: Option<String>,
    ) -> Result<(), Refused> {
        let shown = self.without_secrets(request, answer);
        let before = self.ledger.n_outputs();
        let (shown, option) = match answer {
            Answer::Choose { option } => {
                let Some(choice) = self.ledger.option_of(request, option).cloned() else {
                    return Err(Refused(format!("request {request} has no option {option:?}")));
                };
                self.driver.choose(request, &choice, by, &mut self.ledger)?;
                (choice.kind.answer(), Some(choice.id))
            }
            answer => {
                self.driver.answer(request, answer, by, &mut self.ledger)?;
                (shown, None)
            }
        };
        if matches!(shown, Answer::Deny { stop: true, .. }) {
            self.interrupted = true;
        }
        let resolved = Resolved { request: request.clone(), answer: shown, option, by, policy };
        self.ledger.close_request(request, Kind::RequestResolved(resolved));
        // The answer comes before what it brought about.
        self.ledger.move_last_output(before);
        Ok(())
    }

    /// The input is about to be closed, for good.
    pub fn leaving(&mut self) {
        self.driver.leaving(&mut self.ledger);
    }

    /// The answer as it may be kept: what answers a secret question is known to the agent alone.
    fn without_secrets(&mut self, request: &RequestId, answer: &Answer) -> Answer {
        let mut shown = answer.clone();
        if let Answer::Answers { answers } = &mut shown {
            for question in self.ledger.secret_questions(request) {
                let given = answers.get_mut(question).into_iter().flatten();
                self.secrets.extend(given.map(|it| std::mem::replace(it, MASK.to_owned())));
            }
        }
        shown
    }

    /// Changes the mode and what goes before it; `false` when that needs a new process.
    pub fn set_mode(&mut self, mode: Mode, policy: Option<Policy>) -> bool {
        self.driver.set_mode(mode, policy, &mut self.ledger)
    }

    /// Changes the model; `false` when that needs a new process.
    pub fn set_model(&mut self, model: Option<&str>) -> bool {
        self.driver.set_model(model, &mut self.ledger)
    }

    /// Changes the effort; `false` when that needs a new process.
    pub fn set_effort(&mut self, effort: Option<&str>) -> bool {
        self.driver.set_effort(effort, &mut self.ledger)
    }

    /// Something came of a chore.
    pub fn chore_news(&mut self, chore: ChoreId, news: ChoreNews) {
        self.driver.chore_news(chore, news, &mut self.ledger);
    }

    /// The time the driver asked for is over for this alarm.
    pub fn wake(&mut self, alarm: Alarm) {
        match alarm {
            UNREAD => self.ledger.tell_unread(),
            alarm => self.driver.wake(alarm, &mut self.ledger),
        }
    }

    /// Which turn a notification is about.
    pub fn turn_of_notice(&self, session: Option<&str>, turn: Option<&str>) -> Option<TurnId> {
        self.driver.turn_of_notice(session, turn, &self.ledger)
    }

    /// Whether silence is the end of a turn: then nothing of it is under way that takes its time.
    pub fn ends_in_silence(&self) -> bool {
        // Few wires have to look at what is open.
        self.driver.ends_in_silence()
            && self.ledger.open_items().iter().all(OpenItem::is_text)
            && self.ledger.open_requests().next().is_none()
    }

    /// Ends a turn of which the wire does not say that it is over.
    pub fn conclude(&mut self, turn: &TurnId, end: TurnEnd) {
        self.driver.conclude(turn, end, &mut self.ledger);
    }

    /// The agent is gone and its output read to the end. The one path on which a turn fails
    /// without the agent's word.
    pub fn exited(&mut self, exit: &ExitInfo, mut keep: impl FnMut(Direction, Cow<'_, [u8]>)) {
        let Self { framer, driver, ledger, next_frame, .. } = self;
        framer.finish(|line| see(line, driver.as_mut(), ledger, next_frame, &mut keep));
        ledger.at_frame(None);
        if exit.stopped.is_none() && !self.interrupted {
            driver.exited(exit, ledger);
        }
        let (status, failure) = match (&exit.stopped, self.interrupted) {
            (Some(failure), _) => (TurnStatus::Failed, Some(failure.clone())),
            (None, true) => (TurnStatus::Interrupted, None),
            (None, false) => (TurnStatus::Failed, Some(self.driver.explain_exit(exit))),
        };
        let signal = match &exit.stopped {
            Some(failure) if failure.code == FailureCode::Timeout => EndSignal::Timeout,
            Some(_) => EndSignal::Tieline,
            None => EndSignal::Process,
        };
        self.ledger.end_everything(status, failure.as_ref(), signal);
        self.ledger.tell_unread();
    }
}

fn see(
    line: Line<'_>,
    driver: &mut dyn Driver,
    ledger: &mut Ledger,
    next_frame: &mut FrameNo,
    keep: &mut impl FnMut(Direction, Cow<'_, [u8]>),
) {
    ledger.at_frame(Some(*next_frame));
    *next_frame = next_frame.next();
    match line {
        Line::Whole(line) => {
            let content = ndjson::content(&line);
            if !content.is_empty() {
                driver.line(content, ledger);
                ledger.line_is_read();
            }
            keep(Direction::Out, line);
        }
        Line::Unfinished(line) => {
            // A last line may lack nothing but its terminator.
            if serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_ok() {
                driver.line(ndjson::content(&line), ledger);
            } else {
                ledger.unparsed("end of input in the middle of a line", &line);
            }
            keep(Direction::Out, line);
        }
        Line::Oversized { head, bytes, sha256 } => {
            keep(Direction::Out, Cow::Borrowed(head));
            let sha256 = sha256.iter().map(|byte| format!("{byte:02x}")).collect();
            let unparsed = Unparsed::new("the line is longer than the limit", head);
            ledger.emit(Kind::Unparsed(Unparsed { bytes, sha256: Some(sha256), ..unparsed }));
        }
    }
    ledger.at_frame(None);
}

/// Whether a prompt is nothing but a slash command. With anything before it no agent knows it.
fn is_command(prompt: &Prompt) -> bool {
    let [Content::Text { text }] = prompt.content.as_slice() else { return false };
    let name =
        text.preview().strip_prefix('/').and_then(|rest| rest.split(char::is_whitespace).next());
    // A path has another slash.
    name.is_some_and(|name| name.starts_with(char::is_alphabetic) && !name.contains('/'))
}

/// A line without the secrets in it, if there are any.
fn masked(line: &[u8], secrets: &[String]) -> Option<Vec<u8>> {
    let mut text = std::str::from_utf8(line).ok().filter(|_| !secrets.is_empty())?.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        // As JSON writes it, quotes included: a word that happens to be the same stays.
        let written = serde_json::Value::from(secret.as_str()).to_string();
        text = text.replace(&written, &format!("\"{MASK}\""));
    }
    Some(text.into_bytes())
}
