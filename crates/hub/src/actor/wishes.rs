//! Wishes that wait: for the process to be there or gone, or for the disk.

use tieline_agent::{Refused, TurnEnd};
use tieline_event::{
    Content, EndSignal, Failure, FailureCode, ImageSource, Inquiry, NoticeLevel, Prompt, Report,
    Seq, TurnId, TurnStatus,
};

use super::clock::Timer;
use super::{Actor, For, KEYS, answer_with, title, turn_runs};
use crate::conversation::Reply;
use crate::error::Error;
use crate::pipeline::Mark;

/// A wish that needs a process that is there, or is gone.
pub(super) enum Wish {
    /// The agent is to run.
    Wake(Reply<()>),
    Inquire(Inquiry, Reply<Report>),
    /// The native session is to be forgotten, once no process has it.
    Reset(Reply<()>),
    /// The configuration holds, once the process that had another is gone.
    Configured(Reply<Seq>),
}

/// Somebody who waits until everything so far is on disk and shown.
pub(super) enum Settled {
    Done(Reply<()>),
    /// And wants to know the last event.
    Shown(Reply<Seq>),
}

/// A message for a turn that has not begun yet.
pub(super) struct Steer {
    pub(super) prompt: Prompt,
    pub(super) queue: bool,
    pub(super) reply: Reply<Option<TurnId>>,
}

const TELLS_NOTHING: &str = "this agent tells nothing before its first turn";

impl Actor {
    /// Answers once everything so far is on disk and shown.
    pub(super) fn settle(&mut self, who: Settled) {
        self.flush();
        self.settling.push_back((self.pipeline.mark(), who));
        self.answer_settled();
    }

    /// Answers those whose words are on disk.
    pub(super) fn answer_settled(&mut self) {
        let is_done = |pipeline: &crate::pipeline::Pipeline, mark: Mark| pipeline.has_passed(mark);
        while let Some((mark, _)) = self.settling.front()
            && is_done(&self.pipeline, *mark)
            && let Some((_, who)) = self.settling.pop_front()
        {
            match who {
                Settled::Done(reply) => answer_with(reply, Ok(())),
                Settled::Shown(reply) => answer_with(reply, Ok(self.tail.shown())),
            }
        }
    }

    /// Does what can be done now: wishes first, then the turn that waits. Says whether anything was.
    pub(super) fn go_on(&mut self) -> bool {
        let mut did_anything = false;
        while self.is_settled() {
            if let Some(wish) = self.wishes.pop_front() {
                self.grant(wish);
                did_anything = true;
                continue;
            }
            if self.ledger().current_turn().is_some() {
                break;
            }
            self.timers.clear(&[Timer::Turn, Timer::Interrupt, Timer::Silence, Timer::Notified]);
            self.notified = None;
            if self.queued.is_empty() {
                self.expect_idle();
                break;
            }
            self.timers.clear(&[Timer::Idle]);
            did_anything = true;
            let unfit = self.process.live().map(|it| {
                let is_used_up = it.one_turn && it.has_had_turn;
                // It was started for another message, which is not wanted any more.
                let has_others = it.one_turn && !it.pictures.iter().eq(self.pictures_of_waiting());
                is_used_up || has_others || it.ending || self.stale
            });
            match unfit {
                Some(true) => self.rest(None),
                Some(false) => self.begin_waiting(),
                None => self.start(For::Turn),
            }
        }
        did_anything
    }

    /// The pictures of the message that waits.
    pub(super) fn pictures_of_waiting(&self) -> impl Iterator<Item = &Content> {
        let content = self.queued.front().into_iter().flat_map(|(prompt, _)| &prompt.content);
        content
            .filter(|piece| matches!(piece, Content::Image { source: ImageSource::Base64(_), .. }))
    }

    /// Does a wish, or puts it back and does what it needs first.
    fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Wake(reply) if self.process.live().is_some() => answer_with(reply, Ok(())),
            Wish::Inquire(inquiry, reply) if self.process.live().is_some() => {
                self.inquire(&inquiry, reply);
            }
            Wish::Wake(_) | Wish::Inquire(..) => {
                self.wishes.push_front(wish);
                self.start(For::Later);
            }
            // The agent began one by itself.
            Wish::Reset(reply) if self.ledger().current_turn().is_some() => {
                answer_with(reply, Err(turn_runs()));
            }
            Wish::Reset(reply) if self.process.is_absent() => {
                self.forget_session();
                self.settle(Settled::Done(reply));
            }
            Wish::Reset(_) => {
                self.wishes.push_front(wish);
                self.rest(Some("reset"));
            }
            Wish::Configured(reply) => self.settle(Settled::Shown(reply)),
        }
    }

    /// Whoever wanted the agent to run is told why it does not.
    pub(super) fn answer_unstarted(&mut self, failure: Option<Failure>) {
        let is_meant = |wish: &mut Wish| matches!(wish, Wish::Wake(_) | Wish::Inquire(..));
        match (self.wishes.pop_front_if(is_meant), failure) {
            (Some(Wish::Wake(reply)), None) => answer_with(reply, Ok(())),
            (Some(Wish::Wake(reply)), Some(failure)) => {
                answer_with(reply, Err(Error::Agent(failure)));
            }
            (Some(Wish::Inquire(_, reply)), None) => {
                answer_with(reply, Err(Error::Refused(TELLS_NOTHING.to_owned())));
            }
            (Some(Wish::Inquire(_, reply)), Some(failure)) => {
                answer_with(reply, Err(Error::Agent(failure)));
            }
            _ => tracing::debug!(conversation = %self.key, "nobody waits for the agent any more"),
        }
    }

    /// Asks the agent about itself.
    fn inquire(&mut self, inquiry: &Inquiry, reply: Reply<Report>) {
        self.n_inquiries += 1;
        let number = self.n_inquiries;
        let asked = match self.process.live_mut() {
            Some(live) => live.session.inquire(number, inquiry),
            None => Err(Refused(TELLS_NOTHING.to_owned())),
        };
        match asked {
            Ok(()) => drop(self.inquiries.insert(number, reply)),
            Err(refused) => answer_with(reply, Err(Error::Refused(refused.0))),
        }
    }

    fn forget_session(&mut self) {
        self.forks = false;
        let ledger = self.ledger_mut();
        ledger.forget_session();
        ledger.notice(NoticeLevel::Info, "reset", "the next turn begins a new session");
        self.change().native_session = Some(None);
    }

    /// Begins the turn that waits, in the process that is there.
    fn begin_waiting(&mut self) {
        let Some((prompt, replies)) = self.queued.pop_front() else { return };
        let Some(live) = self.process.live_mut() else { return };
        live.has_had_turn = true;
        let turn = live.session.start_turn(&prompt);
        self.begun(&prompt, &turn, replies);
    }

    /// The turn that waits cannot begin, because its agent did not start.
    pub(super) fn fail_waiting(&mut self, failure: Option<Failure>) {
        let failure = failure.unwrap_or_else(|| {
            Failure::new(FailureCode::AgentCannotStart, "the agent is not there")
        });
        self.end_waiting(TurnEnd::failed(failure, EndSignal::Tieline));
    }

    /// The turn that waits for its agent is not wanted any more; `false` when there is none.
    pub(super) fn interrupt_waiting(&mut self) -> bool {
        let end = TurnEnd::completed(EndSignal::Tieline);
        self.end_waiting(TurnEnd { status: TurnStatus::Interrupted, ..end })
    }

    /// Begins the turn that waits and ends it at once, on the same path as any other.
    fn end_waiting(&mut self, end: TurnEnd) -> bool {
        let Some((prompt, replies)) = self.queued.pop_front() else { return false };
        let ledger = self.ledger_mut();
        let turn = ledger.begin_turn(prompt.origin, prompt.idempotency_key.clone());
        ledger.user_message(&prompt);
        ledger.end_turn(&turn, end);
        self.begun(&prompt, &turn, replies);
        true
    }

    fn begun(&mut self, prompt: &Prompt, turn: &TurnId, replies: Vec<Reply<TurnId>>) {
        if let Some(key) = prompt.idempotency_key.clone() {
            self.keys.push_back((key, turn.clone()));
            if self.keys.len() > KEYS {
                self.keys.pop_front();
            }
        }
        if self.title.is_none() {
            self.title = title(prompt);
            self.change().title = self.title.clone();
        }
        tracing::info!(conversation = %self.key, %turn, "turn started");
        for reply in replies {
            answer_with(reply, Ok(turn.clone()));
        }
        for Steer { prompt, queue, reply } in std::mem::take(&mut self.steers) {
            self.steer(prompt, queue, reply);
        }
    }
}
