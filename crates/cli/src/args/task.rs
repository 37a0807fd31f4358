//! The command line of tasks.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use tieline_event::Mode;
use tieline_front::task::state::{TaskId, VerifyBy};

use crate::exit;

/// Hand a task to an agent, watch it, answer it, and know when it is done.
///
/// A task has an id. Under that id it goes on after a question, a crash or a reboot. What the agent
/// does is told in markers that people and programs read:
///
///   [PROGRESS]        a step was done
///   [QUESTION]        somebody must decide; with numbered options
///   [BLOCKED]         the task cannot go on; why, and what is needed
///   [TEST_RESULTS]    a command of --verify was run
///   [FILES_MODIFIED]  what changed on disk, measured
///   [CODEX_COMPLETE]  done: the turn ended well, nothing is open, every --verify passed
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_long_help = format!("\
Five minutes with tasks:
  tieline task run fix-login \"The login form accepts empty passwords\" --verify 'npm test'
  tieline task run fix-login --answer 1          go on with the answer to its question
  tieline task run big --background --wait 3600 --plan plan.md \"Follow the plan\"
  tieline task list                              what runs, what waits for you
  tieline task tail big                          read along
  tieline task answer big q2=1                   from any other terminal or script
  tieline task wait big && git diff              until it is done, or somebody is needed

{}", exit::TASKS))]
pub(crate) struct TaskArgs {
    #[command(subcommand)]
    pub(crate) command: TaskCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    Run(Box<TaskRunArgs>),
    /// List tasks: how they stand and what they wait for.
    List(TaskListArgs),
    /// Show a task: how it stands, its open questions, what it changed.
    Show(TaskShowArgs),
    Wait(TaskWaitArgs),
    Tail(TaskTailArgs),
    Answer(TaskAnswerArgs),
    /// Stop a task. Its files and its working tree stay, and it can go on later.
    Cancel(TaskIdArgs),
    Remove(TaskRemoveArgs),
    Watch(TaskWatchArgs),
    Parse(TaskParseArgs),
}

/// Work on a task until it is done, or until somebody is needed.
///
/// With a description a task begins, or gets more to do; without one it goes on. The agent is told the
/// description, the plan, the guidelines of the project (AGENTS.md, CLAUDE.md) and how to speak in
/// markers.
#[derive(Debug, Args)]
#[command(after_long_help = format!("\
Examples:
  tieline task run readme \"Write a README\" --agent codex
  tieline task run api - --plan docs/plan.md --verify 'cargo test' < description.txt
  tieline task run api --answer q1=2 --answer \"Use the second table\"
  tieline task run port --worktree --background \"Port the parser\" --budget 30min --budget 500000tokens

{}", exit::TASKS))]
pub(crate) struct TaskRunArgs {
    /// The task's id: letters, digits, dots, dashes and underscores.
    #[arg(value_name = "TASK_ID")]
    pub(crate) id: TaskId,
    /// What is to be done. `-` reads it from stdin.
    #[arg(value_name = "DESCRIPTION | -")]
    pub(crate) description: Option<String>,
    /// A file with the plan. A changed one is told to the agent again.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plan: Option<PathBuf>,
    /// The agent: auto, claude, codex, codex-exec, codex-proto, engine, demo or
    /// acp:NAME.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Where the agent works; by default here, or where the task has worked so far.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
    /// How much the agent may do without asking; a new task begins with acceptEdits.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// The model, by the agent's own name for it.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// What to print: by default text on a terminal and markers elsewhere.
    #[arg(long, value_enum)]
    pub(crate) format: Option<TaskFormat>,
    /// An answer: `q2=1`, `q2=some text`, or one to the oldest open question. May be repeated.
    #[arg(long, value_name = "ANSWER | QID=ANSWER")]
    pub(crate) answer: Vec<String>,
    /// A command that must succeed before the task is complete. May be repeated.
    ///
    /// It runs in the task's directory with `sh -c`. What it prints goes back to the agent when it fails.
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    /// Whose words they are.
    #[arg(skip)]
    pub(crate) verify_by: VerifyBy,
    /// How often a failed verification goes back to the agent; by default 3.
    #[arg(long, value_name = "N")]
    pub(crate) verify_tries: Option<u32>,
    /// How much it may use: 20turns, 600s, 30min, 200000tokens. May be repeated.
    #[arg(long, value_name = "BUDGET")]
    pub(crate) budget: Vec<String>,
    /// How long to wait for an answer, with the agent kept alive.
    ///
    /// By default not at all: the run ends with exit code 5, and the next one goes on with the answer.
    /// In the background a day. On a terminal you are asked.
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds(0))]
    pub(crate) wait: Option<u64>,
    /// Return at once; the task goes on without a terminal.
    #[arg(long)]
    pub(crate) background: bool,
    /// Work in a git worktree of its own, on the branch tieline/TASK_ID.
    ///
    /// It is kept until `tieline task remove`.
    #[arg(long)]
    pub(crate) worktree: bool,
    /// Started by --background.
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

impl TaskRunArgs {
    /// In the background, and nothing said but its name.
    pub(crate) fn of(id: TaskId) -> Self {
        Self {
            id,
            description: None,
            plan: None,
            agent: None,
            cwd: None,
            mode: None,
            model: None,
            format: None,
            answer: Vec::new(),
            verify: Vec::new(),
            verify_by: VerifyBy::User,
            verify_tries: None,
            budget: Vec::new(),
            wait: None,
            background: true,
            worktree: false,
            detached: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskFormat {
    /// Markers, and the agent's text between them.
    Markers,
    /// Every event and delta as a line of JSON.
    Jsonl,
    /// For people.
    Text,
}

#[derive(Debug, Args)]
pub(crate) struct TaskIdArgs {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    pub(crate) id: TaskId,
}

#[derive(Debug, Args)]
pub(crate) struct TaskListArgs {
    /// As JSON, one array.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskShowArgs {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    pub(crate) id: TaskId,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Wait until a task is done or needs somebody; the exit code says which.
#[derive(Debug, Args)]
#[command(after_long_help = exit::TASKS)]
pub(crate) struct TaskWaitArgs {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    pub(crate) id: TaskId,
    /// Give up after this many seconds, with exit code 4.
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds(0))]
    pub(crate) timeout: Option<u64>,
}

/// Print what is said about a task, and read along while it runs.
#[derive(Debug, Args)]
pub(crate) struct TaskTailArgs {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    pub(crate) id: TaskId,
    /// In which form.
    #[arg(long, value_enum)]
    pub(crate) format: Option<TaskFormat>,
    /// Only what there is now.
    #[arg(long)]
    pub(crate) no_follow: bool,
}

/// Answer a question of a task.
///
/// An agent that waits gets the answer at once. A task that ended with its question goes on with it in
/// the background.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tieline task answer fix-login 1
  tieline task answer fix-login q2=localStorage q3=2
  tieline task answer fix-login \"Neither: use a cookie\"")]
pub(crate) struct TaskAnswerArgs {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    pub(crate) id: TaskId,
    /// The answers: a number, a label or any text, with `QID=` before it for another than the oldest.
    #[arg(value_name = "ANSWER | QID=ANSWER", required = true)]
    pub(crate) answers: Vec<String>,
    /// Do not go on with a task that is at rest; only leave the answer for it.
    #[arg(long)]
    pub(crate) only_leave: bool,
}

/// Remove a task: its history and its working tree. Its branch stays.
///
/// A task that runs is not removed, nor a working tree with changes that are not committed.
#[derive(Debug, Args)]
pub(crate) struct TaskRemoveArgs {
    /// The task.
    #[arg(value_name = "TASK_ID")]
    pub(crate) id: TaskId,
    /// Also with changes that are not committed: they are lost.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Run a program that prints markers, and turn what it prints into events.
///
/// For scripts that speak in markers already. Its stdout is read, its stderr is passed on, its exit code
/// is ours.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tieline task watch -- python3 execute-task.py 7 \"Add a login form\" plan.md
  tieline task watch --format text -- ./nightly.sh")]
pub(crate) struct TaskWatchArgs {
    /// jsonl for programs, text for people, markers to clean them up.
    #[arg(long, value_enum, default_value = "jsonl")]
    pub(crate) format: TaskFormat,
    /// Only markers at the start of a line; not those glued to other text or behind blanks.
    #[arg(long)]
    pub(crate) strict: bool,
    /// The program and its arguments.
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) command: Vec<String>,
}

/// Read a log with markers, and turn it into events.
#[derive(Debug, Args)]
pub(crate) struct TaskParseArgs {
    /// The log; `-`, or none, is stdin.
    #[arg(value_name = "FILE | -", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// jsonl for programs, text for people, markers to clean them up.
    #[arg(long, value_enum, default_value = "jsonl")]
    pub(crate) format: TaskFormat,
    /// Only markers at the start of a line; not those glued to other text or behind blanks.
    #[arg(long)]
    pub(crate) strict: bool,
}
