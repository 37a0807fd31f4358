//! What a session knows: its history, its context, where it can be taken back to.

use tieline_event::Failure;
use tieline_wire::responses::Item;
use tieline_wire::sqeq::TokenUsage;

use crate::calls::{self, Call};
use crate::context::Context;
use crate::journal::{Entry, Mark, Scribe, VERSION};
use crate::outcomes::{Changed, Outcomes};
use crate::tools::Outcome;

#[cfg(test)]
mod tests;

/// What is said for a call that a crash cut off.
const CUT_OFF: &str = "interrupted: the session ended while this call was under way. It was not \
                       run again; look at what it left behind before you repeat it.";

/// What the model is told when changes were taken back.
const UNDONE: &str = "<user_action>\nThe user took back the file changes of the last turn that \
                      made some. Read files again before you change them.\n</user_action>";

/// What a session knows. Whatever changes is noted in the journal first.
pub(crate) struct Core {
    /// Its id.
    pub(crate) session: String,
    /// The context of the next turn.
    pub(crate) context: Context,
    /// The context that the model was told last; none when it was told none yet.
    pub(crate) told: Option<Context>,
    /// What is sent to the model.
    pub(crate) items: Vec<Item>,
    /// Where the turns of the user begin in it.
    turns: Vec<usize>,
    /// Where answers end in it.
    marks: Vec<Mark>,
    /// The turn has no answer yet.
    fresh: bool,
    /// The provider's id of the last answer.
    pub(crate) last_response: Option<String>,
    /// What the last answer used, and all since the session was opened.
    pub(crate) last_usage: TokenUsage,
    pub(crate) total_usage: TokenUsage,
    /// What the last turns changed in files, each with the means to take it back.
    pub(crate) changed: Vec<Vec<tieline_patch::Undo>>,
    /// What came of calls that have no output in the history yet.
    pub(crate) outcomes: Outcomes,
    /// The same as the journal has it.
    ran: Vec<Item>,
    /// It is a conversation beside the session's.
    is_aside: bool,
    pub(crate) scribe: Scribe,
}

impl Core {
    /// A new session.
    pub(crate) fn new(session: String, context: Context, mut scribe: Scribe) -> Self {
        scribe.note(&Entry::Began { version: VERSION });
        Self {
            session,
            context,
            told: None,
            items: Vec::new(),
            turns: Vec::new(),
            marks: Vec::new(),
            fresh: false,
            last_response: None,
            last_usage: TokenUsage::default(),
            total_usage: TokenUsage::default(),
            changed: Vec::new(),
            outcomes: Outcomes::default(),
            ran: Vec::new(),
            is_aside: false,
            scribe,
        }
    }

    /// Goes on with a session as its journal has it. A call without an output was cut off, and the
    /// model is told so.
    pub(crate) fn replay(
        session: String,
        context: Context,
        scribe: Scribe,
        entries: Vec<Entry>,
    ) -> Self {
        let mut core = Self::new(session, context, scribe);
        core.scribe.forget();
        for entry in entries {
            core.take_in(entry);
        }
        // Who reads the count tells turns apart by it and begins at nothing.
        core.total_usage = TokenUsage::default();
        let ran = std::mem::take(&mut core.ran);
        for call in calls::open_calls(&core.items) {
            let output = ran.iter().find(|item| calls::is_output_of(item, &call));
            core.push(output.cloned().unwrap_or_else(|| call.output(CUT_OFF)));
        }
        core
    }

    /// The same history under another name: nothing of it reaches the old one any more.
    pub(crate) fn fork(mut self, session: String, mut scribe: Scribe) -> Self {
        scribe.note(&Entry::Began { version: VERSION });
        scribe.note(&Entry::Compacted(self.items.clone()));
        // A bookmark of the old session is one of this, too.
        let (turns, marks) = (self.turns.clone(), self.marks.clone());
        scribe.note(&Entry::Forked { turns, marks });
        self.session = session;
        self.scribe = scribe;
        // What was changed on disk is the other's to take back.
        self.changed.clear();
        self
    }

    fn take_in(&mut self, entry: Entry) {
        match entry {
            Entry::Began { .. } => {}
            Entry::Turn { context } => {
                self.turns.push(self.items.len());
                self.changed.push(Vec::new());
                self.told = Some(*context);
                self.fresh = true;
            }
            Entry::Item(item) => {
                self.items.push(item);
                if !self.fresh {
                    self.set_mark();
                }
            }
            Entry::Ran(item) => self.ran.push(item),
            Entry::Answered { response, usage } => self.answered(response, usage),
            Entry::Compacted(items) => {
                self.replace(items);
            }
            Entry::Forked { turns, marks } => {
                self.last_response = marks.last().map(|mark| mark.response.clone());
                (self.turns, self.marks) = (turns, marks);
            }
            Entry::RolledBack { turns } => self.cut_turns(turns as usize),
            Entry::Resumed { after } => {
                if let Some(at) = self.mark(&after).map(|mark| mark.end) {
                    self.cut(at);
                    self.last_response = Some(after);
                }
            }
            Entry::Patched(raw) => {
                if let Ok(undo) = serde_json::from_str(raw.get()) {
                    self.patched(undo);
                }
            }
            Entry::Undone => self.drop_last_change(),
        }
    }

    /// Where the turns of the user begin, as far as that is known.
    pub(crate) fn turns(&self) -> &[usize] {
        &self.turns
    }

    /// A turn of the user begins.
    pub(crate) fn begin_turn(&mut self) {
        self.turns.push(self.items.len());
        self.changed.push(Vec::new());
        self.fresh = true;
        self.scribe.note(&Entry::Turn { context: Box::new(self.context.clone()) });
    }

    /// Adds an item to the history.
    pub(crate) fn push(&mut self, item: Item) {
        self.scribe.note(&Entry::Item(item.clone()));
        self.items.push(item);
    }

    /// Notes what came of a call before it can enter the history, because others still run.
    pub(crate) fn ran(&mut self, call: &Call) {
        let Some(output) = self.outcomes.look_at(call) else { return };
        self.take_changes();
        self.scribe.note(&Entry::Ran(output));
    }

    /// Takes what came of a call into the history.
    pub(crate) fn give(&mut self, call: &Call, outcome: Outcome) {
        self.take_changes();
        self.push(call.output_of(outcome.output));
    }

    /// An answer is complete.
    pub(crate) fn answer(&mut self, response: Option<String>, usage: TokenUsage) {
        self.scribe.note(&Entry::Answered { response: response.clone(), usage });
        self.answered(response, usage);
    }

    fn answered(&mut self, response: Option<String>, usage: TokenUsage) {
        add(&mut self.total_usage, &usage);
        self.last_usage = usage;
        self.fresh = false;
        if let Some(response) = response {
            let at = self.items.len();
            self.marks.push(Mark { response: response.clone(), answered: at, end: at });
            self.last_response = Some(response);
        }
    }

    /// What there is now belongs to the last answer.
    pub(crate) fn set_mark(&mut self) {
        let at = self.items.len();
        if let Some(mark) = self.marks.last_mut() {
            mark.end = at;
        }
    }

    fn mark(&self, response: &str) -> Option<&Mark> {
        self.marks.iter().rev().find(|mark| mark.response == response)
    }

    /// Where what the model does not know begins, if its provider has kept an answer.
    pub(crate) fn since(&self, response: &str) -> Option<usize> {
        self.mark(response).map(|mark| mark.answered)
    }

    /// Goes on from an earlier answer; `false` when there is none of that id.
    pub(crate) fn resume_after(&mut self, response: &str) -> bool {
        let Some(at) = self.mark(response).map(|mark| mark.end) else { return false };
        if at == self.items.len() {
            return true;
        }
        self.scribe.note(&Entry::Resumed { after: response.to_owned() });
        self.cut(at);
        self.last_response = Some(response.to_owned());
        true
    }

    /// Forgets the last turns; gives how many there were.
    pub(crate) fn roll_back(&mut self, turns: u32) -> u32 {
        let turns = turns.min(u32::try_from(self.turns.len()).unwrap_or(u32::MAX));
        if turns > 0 {
            self.scribe.note(&Entry::RolledBack { turns });
            self.cut_turns(turns as usize);
        }
        turns
    }

    fn cut_turns(&mut self, turns: usize) {
        let left = self.turns.len().saturating_sub(turns);
        if let Some(at) = self.turns.get(left).copied() {
            self.cut(at);
        }
    }

    fn cut(&mut self, at: usize) {
        self.items.truncate(at);
        self.turns.retain(|turn| *turn < at);
        self.marks.retain(|mark| mark.end <= at);
        self.last_response = self.marks.last().map(|mark| mark.response.clone());
        // What was told of the context may be gone with it.
        self.told = None;
    }

    /// Puts a shorter history in place of the old one.
    pub(crate) fn compacted(&mut self, items: Vec<Item>) {
        self.scribe.note(&Entry::Compacted(items.clone()));
        self.replace(items);
    }

    fn replace(&mut self, items: Vec<Item>) {
        self.items = items;
        // What came before has no place of its own any more.
        self.turns.clear();
        self.marks.clear();
        self.last_response = None;
        self.told = None;
        self.last_usage = TokenUsage::default();
    }

    /// Takes over what was changed in files. A conversation beside this one leaves it to this one.
    pub(crate) fn take_changes(&mut self) {
        if self.is_aside {
            return;
        }
        for changed in self.outcomes.take_changes() {
            match changed {
                Changed::Patched(undo) => self.patch(undo),
                Changed::Undone => self.undone(),
            }
        }
    }

    /// Files were changed in this turn.
    fn patch(&mut self, undo: tieline_patch::Undo) {
        if let Ok(raw) = serde_json::value::to_raw_value(&undo) {
            self.scribe.note(&Entry::Patched(raw));
        }
        self.patched(undo);
    }

    fn patched(&mut self, undo: tieline_patch::Undo) {
        match self.changed.last_mut() {
            Some(turn) => turn.push(undo),
            None => self.changed.push(vec![undo]),
        }
    }

    /// The changes of the last turn that made some were taken back.
    fn undone(&mut self) {
        self.scribe.note(&Entry::Undone);
        self.drop_last_change();
        self.push(Item::message("user", UNDONE));
    }

    fn drop_last_change(&mut self) {
        while self.changed.pop_if(|turn| turn.is_empty()).is_some() {}
        self.changed.pop();
    }

    /// Waits until everything is on disk.
    pub(crate) async fn keep(&mut self) -> Result<(), Failure> {
        self.scribe.keep().await
    }

    /// A conversation beside this one, with the same context, of which nothing is kept.
    pub(crate) fn aside(&self, items: Vec<Item>) -> Self {
        let scribe = Scribe::none();
        let mut aside = Self::new(self.session.clone(), self.context.clone(), scribe);
        aside.items = items;
        aside.is_aside = true;
        aside.outcomes = self.outcomes.clone();
        aside
    }

    /// What a conversation beside this one used counts here.
    pub(crate) fn count(&mut self, aside: &Self) {
        add(&mut self.total_usage, &aside.total_usage);
    }
}

fn add(total: &mut TokenUsage, usage: &TokenUsage) {
    total.input_tokens += usage.input_tokens;
    total.cached_input_tokens += usage.cached_input_tokens;
    total.output_tokens += usage.output_tokens;
    total.reasoning_output_tokens += usage.reasoning_output_tokens;
    total.total_tokens += usage.total_tokens;
}
