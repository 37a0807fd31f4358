//! What an agent and its driver are.

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use tieline_event::{
    Answer, Choice, Content, Errand, Extras, Failure, FailureCode, Inquiry, Mode, Origin, Policy,
    Prompt, RequestId, TurnId, TurnOptions,
};

use crate::alarm::Alarm;
use crate::chore::{ChoreId, ChoreNews};
use crate::files::PrivateFiles;
use crate::inside::Inside;
use crate::ledger::{Ledger, TurnEnd};

/// Knows how to start an agent and how to speak with it.
pub trait Agent: Send + Sync {
    /// The name users give it.
    fn name(&self) -> &str;

    /// How to start it for a conversation, and the core that speaks with it. May have to ask the
    /// program for its version. The failure says what the user can do: not installed, too old,
    /// refused as root, …
    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a>;
}

/// A plan in the making.
pub type Launching<'a> = Pin<Box<dyn Future<Output = Result<Plan, Failure>> + Send + 'a>>;

/// For which conversation an agent is started.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Where it works.
    pub workspace: &'a Path,
    /// How much it may do.
    pub mode: Mode,
    /// What goes before the mode, where the agent has such a policy.
    pub policy: Option<Policy>,
    /// Which model, if not its default.
    pub model: Option<&'a str>,
    /// Which effort, if not its default.
    pub effort: Option<&'a str>,
    /// What the client brings along.
    pub extras: &'a Extras,
    /// The pictures of the message that it is started for, for programs that take them as files and
    /// serve one turn. Its words never are part of a command line.
    pub pictures: &'a [Content],
    /// The native session to go on with.
    pub resume: Option<Resume<'a>>,
}

impl<'a> Launch<'a> {
    /// A new session with nothing special about it.
    pub fn new(workspace: &'a Path, mode: Mode) -> Self {
        let extras = Extras::NONE;
        Self {
            workspace,
            mode,
            policy: None,
            model: None,
            effort: None,
            extras,
            pictures: &[],
            resume: None,
        }
    }
}

/// The native session to go on with.
#[derive(Debug, Clone, Copy)]
pub struct Resume<'a> {
    /// The agent's id of it.
    pub session: &'a str,
    /// Branch off from it, and leave it as it is.
    pub fork: bool,
    /// Branch off from this [position](crate::Ledger::set_position) and leave out what came after it.
    pub at: Option<&'a str>,
}

/// A started agent in waiting: its command line and its driver.
pub struct Plan {
    /// The program, absolute.
    pub program: PathBuf,
    /// Its arguments. Never a prompt.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: tieline_proc::Env,
    /// The core that speaks with it.
    pub driver: Box<dyn Driver>,
    /// The process serves one turn and ends with it.
    pub one_turn: bool,
    /// What it knows is lost with the process, so that it is never put to sleep.
    pub forgets: bool,
    /// Each prompt names the workspace first.
    pub preamble: bool,
    /// One process can serve several conversations.
    pub share: Option<Share>,
    /// What it reads, to be removed when it is gone.
    pub files: Option<PrivateFiles>,
    /// The agent runs within this process, in place of a program.
    pub inside: Option<Inside>,
}

impl Plan {
    /// A process of its own for a whole conversation.
    pub fn new(program: PathBuf, env: tieline_proc::Env, driver: Box<dyn Driver>) -> Self {
        let args = Vec::new();
        Self {
            program,
            args,
            env,
            driver,
            one_turn: false,
            forgets: false,
            preamble: false,
            share: None,
            files: None,
            inside: None,
        }
    }

    /// An agent within this process.
    pub fn inside(inside: Inside, driver: Box<dyn Driver>) -> Self {
        let program = PathBuf::from(inside.name);
        let env = tieline_proc::Env::empty();
        Self { inside: Some(inside), ..Self::new(program, env, driver) }
    }
}

/// How a process is shared by conversations.
pub struct Share {
    /// At most so many at once.
    pub seats: usize,
    /// What tells their lines apart.
    pub switchboard: fn() -> Box<dyn Switchboard>,
}

/// Tells the lines of a shared process apart. Like a driver it does no I/O. Lines come without
/// their terminator and go with it.
pub trait Switchboard: Send {
    /// A conversation has a line for the process.
    fn outgoing(&mut self, seat: usize, line: &[u8]) -> Vec<Routed>;

    /// The process wrote a line.
    fn incoming(&mut self, line: &[u8]) -> Vec<Routed>;

    /// A conversation is gone.
    fn left(&mut self, seat: usize) -> Vec<Routed>;
}

/// A line and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routed {
    /// Where to.
    pub to: Destination,
    /// The line with its terminator.
    pub line: Vec<u8>,
}

/// Where a line on a shared process goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To the process.
    Process,
    /// To one conversation.
    Seat(usize),
    /// To all of them.
    Everybody,
}

/// The sans-IO core of one agent process.
pub trait Driver: Send {
    /// The process is there; nothing was read or written yet.
    fn started(&mut self, ledger: &mut Ledger);

    /// The agent wrote a line, given without its terminator.
    fn line(&mut self, line: &[u8], ledger: &mut Ledger);

    /// A turn was begun in the ledger; tell the agent.
    fn start_turn(&mut self, prompt: &Prompt, ledger: &mut Ledger);

    /// Which options of a turn it carries out. The user is warned of the others.
    fn takes(&self) -> Takes {
        Takes::default()
    }

    /// A turn was begun in the ledger for work that is not a message; tell the agent.
    ///
    /// # Errors
    /// When this agent has no such work.
    fn start_errand(&mut self, errand: &Errand, ledger: &mut Ledger) -> Result<(), Refused> {
        let _ = (errand, ledger);
        Err(Refused("this agent has no such work".to_owned()))
    }

    /// Somebody wants to know something about the agent. The answer follows with
    /// [`Ledger::report`] under the same number, now or later.
    ///
    /// # Errors
    /// When this agent does not tell.
    fn inquire(
        &mut self,
        number: u64,
        inquiry: &Inquiry,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        let _ = (number, inquiry, ledger);
        Err(Refused("this agent does not tell".to_owned()))
    }

    /// The user says something while a turn runs.
    ///
    /// # Errors
    /// When this agent takes no message during a turn.
    fn steer(&mut self, prompt: &Prompt, ledger: &mut Ledger) -> Result<(), Refused>;

    /// The user wants the turn to stop. `false` when the wire has no word for it, so that a signal
    /// must do.
    fn interrupt(&mut self, ledger: &mut Ledger) -> bool;

    /// A request has its answer. What a policy refuses, not a person, is denied, not declined.
    ///
    /// # Errors
    /// When the agent takes no answer to it any more.
    fn answer(
        &mut self,
        request: &RequestId,
        answer: &Answer,
        by: Origin,
        ledger: &mut Ledger,
    ) -> Result<(), Refused>;

    /// A request is answered by one of its own options. For agents whose options say more than their
    /// kinds; for all others the kind is the answer.
    ///
    /// # Errors
    /// When the agent takes no answer to it any more.
    fn choose(
        &mut self,
        request: &RequestId,
        choice: &Choice,
        by: Origin,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        self.answer(request, &choice.kind.answer(), by, ledger)
    }

    /// Something came of a chore the driver asked for with [`Ledger::chore`].
    fn chore_news(&mut self, chore: ChoreId, news: ChoreNews, ledger: &mut Ledger) {
        let _ = (chore, news, ledger);
    }

    /// Change the mode, and what goes before it, from now on. `false` when that needs a new process.
    fn set_mode(&mut self, mode: Mode, policy: Option<Policy>, ledger: &mut Ledger) -> bool;

    /// Change the model from now on. `false` when that needs a new process.
    fn set_model(&mut self, model: Option<&str>, ledger: &mut Ledger) -> bool;

    /// Change the effort from now on. `false` when that needs a new process.
    fn set_effort(&mut self, effort: Option<&str>, ledger: &mut Ledger) -> bool {
        let _ = (effort, ledger);
        false
    }

    /// The input is about to be closed, for good: a last word, for agents that wait for one.
    fn leaving(&mut self, ledger: &mut Ledger) {
        let _ = ledger;
    }

    /// The time the driver asked for with [`Ledger::wake_after`] is over for this alarm.
    fn wake(&mut self, alarm: Alarm, ledger: &mut Ledger) {
        let _ = (alarm, ledger);
    }

    /// Which turn a notification is about, by the agent's names for session and turn; none when it is
    /// about nothing that runs here.
    fn turn_of_notice(
        &self,
        session: Option<&str>,
        turn: Option<&str>,
        ledger: &Ledger,
    ) -> Option<TurnId> {
        let _ = turn;
        let is_mine = session.is_some() && session == ledger.session();
        ledger.oldest_turn().filter(|_| is_mine).cloned()
    }

    /// Whether silence may be the end of the turn: the wire has no word for it, and the agent has
    /// begun to work.
    fn ends_in_silence(&self) -> bool {
        false
    }

    /// A turn is over although the wire did not say so: by the agent's notify program, or by silence.
    fn conclude(&mut self, turn: &TurnId, end: TurnEnd, ledger: &mut Ledger) {
        ledger.end_turn(turn, end);
    }

    /// The process ended by itself and all it wrote was read. For agents whose turn ends with
    /// their process; what they leave open fails by [`Driver::explain_exit`].
    fn exited(&mut self, exit: &ExitInfo, ledger: &mut Ledger) {
        let _ = (exit, ledger);
    }

    /// What the end of the process means for a turn that was still open.
    fn explain_exit(&self, exit: &ExitInfo) -> Failure;
}

/// Which options of a turn an agent carries out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Takes {
    /// To go on from an earlier point.
    pub after: bool,
    /// The form of the last message.
    pub output_schema: bool,
    /// How the agent sounds.
    pub personality: bool,
    /// How thinking is summed up.
    pub summary: bool,
}

impl Takes {
    /// All of them.
    pub const ALL: Self =
        Self { after: true, output_schema: true, personality: true, summary: true };

    /// Those that are set and not carried out: what they are and what happens in their place.
    pub(crate) fn ignored(self, options: &TurnOptions) -> Vec<&'static str> {
        let TurnOptions { after, output_schema, personality, summary } = options;
        // What says nothing is no wish; older clients always say it.
        let summary = summary.as_ref().filter(|it| *it != "auto");
        let all = [
            (
                after.is_some(),
                self.after,
                "response_id: this agent cannot go on from an earlier point; the turn goes on from the last",
            ),
            (
                output_schema.is_some(),
                self.output_schema,
                "the output schema: this agent cannot be held to one; its last message may have any form",
            ),
            (
                personality.is_some(),
                self.personality,
                "personality: this agent has no choice of one",
            ),
            (
                summary.is_some(),
                self.summary,
                "summary: this agent has no choice of how thinking is summed up",
            ),
        ];
        let ignored = all.into_iter().filter(|(is_set, is_taken, _)| *is_set && !is_taken);
        ignored.map(|(_, _, text)| text).collect()
    }
}

/// A command this agent cannot follow, with the reason for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// How an agent's process ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExitInfo {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The end of its stderr.
    pub stderr: String,
    /// We ended it, and why.
    pub stopped: Option<Failure>,
}

impl ExitInfo {
    /// `exited with status 3`, `was killed by signal 9`.
    pub fn describe(&self) -> String {
        match (self.code, self.signal) {
            (_, Some(signal)) => format!("was killed by signal {signal}"),
            (Some(code), None) => format!("exited with status {code}"),
            (None, None) => "ended".to_owned(),
        }
    }
}

/// A value that will stand on a command line: refused when it could be taken for a flag or breaks
/// the line.
///
/// # Errors
/// A [`Failure`] that names the value's purpose.
pub fn checked_argument<'a>(purpose: &str, value: &'a str) -> Result<&'a str, Failure> {
    if value.is_empty() || value.starts_with('-') || value.chars().any(char::is_control) {
        return Err(Failure::new(
            FailureCode::BadRequest,
            format!("{value:?} cannot be a {purpose}"),
        )
        .hint("it may not be empty, start with '-' or contain control characters"));
    }
    Ok(value)
}
