//! The built-in agent: a script, played in a real workspace.
//!
//! # How it works
//!
//! [`Demo`] starts the running executable once more with [`FIRST_ARGUMENT`], and [`main`] is what
//! that process does: it speaks Claude Code's stream-json, so that the same driver speaks with both
//! and everything between the two is the same as with a real agent. It runs its commands and writes
//! its files for real, asks as the real one does, and needs neither a network nor a model.
//!
//! # The script
//!
//! One verb a line. A message of the user plays one section; sections are separated by `---`, and
//! the last one plays again for every further message. Empty lines and lines that start with `#`
//! say nothing.
//!
//! | line | what it does |
//! | --- | --- |
//! | `say TEXT` | streams a text, word by word |
//! | `think TEXT` | the same as reasoning |
//! | `run COMMAND` | runs a command in the workspace; asks unless it is harmless |
//! | `write PATH <<END` … `END` | writes a file; asks unless the mode allows it |
//! | `edit PATH "old" => "new"` | replaces a text in a file; asks as `write` does |
//! | `ask QUESTION \| label: description \| …` | asks the user; later texts have it as `{answer}` |
//! | `plan STEP; STEP; …` | shows a list of steps |
//! | `step N doing`, `step N done` | marks a step of the list |
//! | `exit-plan TEXT` | proposes to leave plan mode |
//! | `call TOOL {…} => TEXT` | calls a tool of a server, with this JSON; the script says what it gives back |
//! | `sleep MS` | waits |
//! | `fail [STATUS] TEXT` | ends the turn as a failed call of a provider does |
//! | `usage IN OUT` | adds tokens to the turn's count |
//! | `loop N` … `end` | plays the lines between N times |
//! | `refused` | what follows in this section plays instead of the rest once a tool is not allowed |
//!
//! `TEXT` may be `<<END`, followed by lines up to `END`. `{prompt}` is what the user said. Neither
//! it nor `{answer}` is put into commands and paths: what a user types never reaches a shell.
//!
//! # Invariants
//!
//! * Files are changed inside the workspace only, and none in plan mode.
//! * What a user types never becomes part of a command or a path.
//! * Nothing waits before the first frame.

mod ids;
mod permission;
mod player;
mod script;
mod serve;
mod tool;
mod voice;
mod workspace;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use tieline_event::{Failure, FailureCode, Mode};
use tieline_proc::Env;

use crate::claude::{ClaudeDriver, Lifetime};
use crate::driver::{Agent, Launch, Launching, Plan, Resume, checked_argument};

pub use serve::main;

/// The argument that makes the executable a demo agent.
pub const FIRST_ARGUMENT: &str = "__demo-agent";

/// The variable that lets the words of a text follow each other without a pause.
pub const FAST: &str = "TIELINE_DEMO_FAST";

/// The built-in agent.
#[derive(Debug, Clone)]
pub struct Demo {
    /// The executable, absolute; it calls [`main`] with what follows [`FIRST_ARGUMENT`].
    pub program: PathBuf,
    /// The environment it gets.
    pub env: Env,
    /// The script to play; the embedded one if none.
    pub script: Option<PathBuf>,
}

impl Agent for Demo {
    fn name(&self) -> &'static str {
        "demo"
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(async move { self.plan(&launch) })
    }
}

impl Demo {
    fn plan(&self, launch: &Launch<'_>) -> Result<Plan, Failure> {
        let mut args: Vec<OsString> = [FIRST_ARGUMENT, "--permission-mode", mode_name(launch.mode)]
            .map(OsString::from)
            .into();
        let refused = |message: String| Failure::new(FailureCode::BadRequest, message);
        if let Some(model) = launch.model {
            let model = model_name(model).map_err(refused)?;
            args.extend(["--model", model].map(OsString::from));
        }
        if let Some(name) = launch.effort {
            effort(name).map_err(refused)?;
            args.extend(["--effort", name].map(OsString::from));
        }
        if let Some(Resume { session, fork }) = launch.resume {
            if fork {
                return Err(refused("the demo agent cannot branch off from a session".to_owned()));
            }
            let session = checked_argument("session id", session)?;
            args.extend(["--resume", session].map(OsString::from));
        }
        if let Some(path) = &self.script {
            // Read here too: a mistake in it is told before anything is started.
            let shown = path.display();
            let path = std::path::absolute(path)
                .and_then(|path| Ok((std::fs::read_to_string(&path)?, path)));
            let (text, path) =
                path.map_err(|err| refused(format!("cannot read {shown}: {err}")))?;
            script::parse(&text).map_err(|err| refused(format!("{shown}: {err}")))?;
            args.extend(["--script".into(), path.into_os_string()]);
        }
        let driver = ClaudeDriver::new(Lifetime::Conversation, launch.mode)
            .named("the demo agent")
            .launched(launch)
            .without_directories(launch);
        let plan = Plan::new(self.program.clone(), self.env.clone(), Box::new(driver));
        Ok(Plan { args, ..plan })
    }
}

/// What the agent calls its version.
const VERSION: &str = "1.0.0";

/// The command that plays the script from its beginning.
const RESTART: &str = "restart";

/// The tools a script can use.
const TOOLS: &[&str] = &["AskUserQuestion", "Bash", "Edit", "ExitPlanMode", "TodoWrite", "Write"];

/// The only model there is.
const DEFAULT_MODEL: &str = "scripted";

/// Names, titles and descriptions of the models.
const MODELS: &[(&str, &str, &str)] = &[
    ("default", "Default", "The script"),
    (DEFAULT_MODEL, "Scripted", "No model: it plays its script"),
];

/// How much the agent thinks of its words: a name, and how many pauses it makes between two.
const EFFORTS: [(&str, u32); 3] = [("low", 0), (DEFAULT_EFFORT, 1), ("high", 3)];

/// The effort without a choice.
const DEFAULT_EFFORT: &str = "medium";

/// The pauses of an effort.
fn effort(name: &str) -> Result<u32, String> {
    let known = EFFORTS.into_iter().find(|(known, _)| *known == name);
    known.map(|(_, pauses)| pauses).ok_or_else(|| {
        let names = EFFORTS.map(|(name, _)| name).join(", ");
        format!("the demo agent has no effort {name:?}, only {names}")
    })
}

/// The model behind a name.
fn model_name(name: &str) -> Result<&'static str, String> {
    if MODELS.iter().any(|(known, ..)| *known == name) {
        Ok(DEFAULT_MODEL)
    } else {
        Err(format!("the demo agent has no model {name:?}, only {DEFAULT_MODEL:?}"))
    }
}

/// A mode's name on the wire, which has no word for `yolo`.
fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Yolo => Mode::BypassPermissions.name(),
        mode => mode.name(),
    }
}
