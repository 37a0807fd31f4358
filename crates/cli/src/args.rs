//! The command line.

mod apply_patch;
mod mcp;
mod proto;
mod task;

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use tieline_event::{AskWhen, ConversationKey, Mode, Reach};

use crate::{config, exit};

pub(crate) use apply_patch::ApplyPatchArgs;
pub(crate) use mcp::McpArgs;
pub(crate) use proto::{CompatArg, ProtoArgs};
pub(crate) use task::{
    TaskAnswerArgs, TaskArgs, TaskCommand, TaskFormat, TaskListArgs, TaskParseArgs, TaskRemoveArgs,
    TaskRunArgs, TaskShowArgs, TaskTailArgs, TaskWaitArgs, TaskWatchArgs,
};

/// Connects coding agents to whoever wants to talk to them.
///
/// Every conversation has a key under which it goes on, and every event of it is kept.
#[derive(Debug, Parser)]
#[command(name = "tieline", version, max_term_width = 100, after_help = exit::TABLE)]
#[command(after_long_help = format!("\
Examples:
  tieline demo
          play a conversation with the built-in agent
  tieline run \"Why does the build fail?\"
          ask the first agent that is installed
  tieline run --conversation build --mode acceptEdits \"Then fix it\"
          go on with a conversation, letting the agent edit files
  (echo Review this change:; git diff) | tieline run --format final - > review.md
          one answer in a script
  tieline run --format jsonl - < prompt.txt | jq -c .kind
          every event as a line of JSON

Configuration (TOML, see --config):
  [defaults]       agent, mode, model, on_request, format, timeout and idle_sleep in seconds
  [agents.NAME]    for claude, codex, codex-exec and codex-proto: program, args,
                   env = {{ NAME = \"value\" }}, pass = [\"NAME\"] of secrets to let through,
                   preamble = true to begin each prompt with a line `Workspace: DIR`
  [agents.claude]  besides: lifetime = \"conversation\" or \"turn\"
  [agents.codex]   besides: notify = true to have Codex call `tieline notify` at each turn's end
                   instead of what its own configuration says,
                   shared = N conversations for each server process (1), for programs that keep
                   several open
  [agents.codex-exec], [agents.codex-proto]
                   besides: notify, and for codex-exec silence = seconds without a word, and
                   without a command that runs, after which a turn is over in versions that do
                   not tell its end (30); what they leave out is as for codex
  [agents.acp.NAME]
                   for any agent of the Agent Client Protocol: program and args are its command
                   line (for one that is known, args come besides), env, pass, preamble
  [engine]         for tieline's own agent: model, provider, effort, personality, compact_at,
                   web_search, freeform_patch, shell, pass, and the tables providers.NAME,
                   models.NAME and mcp_servers.NAME; see docs/engine.md
  The variables OPENAI_API_KEY and OPENAI_BASE_URL say where the engine's model is, unless
  engine.provider does. The variables TIELINE_CLAUDE, TIELINE_CODEX, TIELINE_CODEX_EXEC and TIELINE_CODEX_PROTO go before
  the program in the table of that agent.

{}", exit::TABLE))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where conversations are kept.
    ///
    /// By default $XDG_DATA_HOME/tieline, else ~/.local/share/tieline.
    #[arg(long, global = true, value_name = "DIR", env = "TIELINE_HOME", hide_env_values = true)]
    #[arg(value_parser = path(), value_hint = ValueHint::DirPath)]
    pub(crate) store: Option<PathBuf>,
    /// The configuration file.
    ///
    /// By default $XDG_CONFIG_HOME/tieline/config.toml, else ~/.config/tieline/config.toml. Never
    /// one from the workspace.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "TIELINE_CONFIG",
        hide_env_values = true
    )]
    #[arg(value_parser = path(), value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// What to log on stderr: error, warn, info, debug, trace.
    ///
    /// Also per module, as in `warn,tieline_hub=debug`.
    #[arg(long, global = true, value_name = "LEVEL", env = "TIELINE_LOG", hide_env_values = true)]
    pub(crate) log: Option<String>,
}

// What says more than a line about itself does so at its arguments: a line here would replace it.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Task(TaskArgs),
    Mcp(McpArgs),
    Acp(AcpArgs),
    Proto(ProtoArgs),
    Demo(DemoArgs),
    /// List conversations.
    List(ListArgs),
    /// Show a conversation as a transcript.
    Show(ShowArgs),
    Export(ExportArgs),
    /// Forget an agent's session: the next turn begins afresh, the history stays.
    Reset(KeyArgs),
    Fork(ForkArgs),
    /// Delete a conversation with its whole history.
    Delete(DeleteArgs),
    Gc(GcArgs),
    Doctor(DoctorArgs),
    ApplyPatch(ApplyPatchArgs),
    Notify(NotifyArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Send a prompt to an agent and show what it does.
///
/// On a terminal the answer streams in, running tools have a live line, and the agent's questions
/// are asked in place. Ctrl-C stops the turn; a second one quits.
///
/// In a pipe the answer goes to stdout and everything else to stderr, without colours and without
/// control characters.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Agents (--agent):
  auto         claude if it is installed, else codex if it is, else engine if OPENAI_API_KEY,
               OPENAI_BASE_URL or [engine] in the configuration says where a model is, else demo
  claude       Claude Code. One process serves the conversation; it asks for approvals.
  codex        Codex by its app server, from 0.63 on: the right one for Codex. It streams, asks for
               approvals, takes messages during a turn, and can fork.
  codex-exec   Codex by `codex exec --json`: one process for each turn, any version. It cannot ask,
               so what its policy does not allow is refused. For scripts, and where there is no
               app server.
  codex-proto  Codex by `codex proto`, up to 0.42. For old installations only.
  engine       tieline's own agent: it needs no other program, only a model behind the Responses
               API. Its commands run in tieline's sandbox.
  demo         The built-in script. Needs no key and no network.
  acp:NAME     Any agent of the Agent Client Protocol: gemini, copilot, cursor, goose, opencode, qwen,
               kimi, vibe, auggie, claude-agent-acp, codex-acp, one with a table [agents.acp.NAME] in
               the configuration, or a whole command line: --agent 'acp:my-agent --acp'. Where it
               has no mode like ours, its questions are answered by the mode.

Modes (--mode):
                     Codex: approval + sandbox              Claude Code
  plan               on-request + read-only, plans only     plan
  default            on-request + read-only                 default
  acceptEdits        on-request + workspace-write           acceptEdits
  auto               the same, with its automatic review    auto
  bypassPermissions  never + workspace-write + network      bypassPermissions
  yolo               never + danger-full-access             bypassPermissions
  The aliases accept-edits, bypass and danger are known too. --ask-for-approval and --sandbox choose
  another pair for Codex; a pair that is one of the modes is that mode, for every agent.

Examples:
  tieline run \"What does this project do?\"
  tieline run --conversation review --mode plan \"Plan the release\"
  tieline run --conversation review \"Go on\"
  tieline run --agent claude --cwd ~/src/app --model opus \"Find the leak\"
  tieline run --agent codex --full-auto \"Make the tests pass\"
  tieline run --agent codex -a untrusted -s workspace-write \"Upgrade the parser\"
  OPENAI_BASE_URL=http://127.0.0.1:11434/v1 tieline run --agent engine --model qwen3 \"Hello\"
  tieline run --conversation review --fresh \"Look at it with new eyes\"
  tieline run --format final --on-request allow --timeout 600 - < prompt.md > answer.md
  tieline run -- \"-x is a prompt too\"")]
pub(crate) struct RunArgs {
    /// What to say. `-`, or none and something piped in, reads it from stdin.
    #[arg(value_name = "PROMPT | -", allow_hyphen_values = false)]
    pub(crate) prompt: Option<String>,
    /// The agent: auto, claude, codex, codex-exec, codex-proto, engine, demo or
    /// acp:NAME.
    ///
    /// `auto` takes the first that is there. See below which one is for what.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The conversation to begin or to go on with.
    ///
    /// Without it a new one begins; its key is shown at the end.
    #[arg(long, short, value_name = "KEY")]
    pub(crate) conversation: Option<ConversationKey>,
    /// Where the agent works; by default here, or where the conversation has worked so far.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// How much the agent may do without asking.
    ///
    /// plan: read only. default: ask before every change. acceptEdits: edit files in the workspace.
    /// auto: the agent decides itself what needs asking, where it can; else as acceptEdits.
    /// bypassPermissions: never ask. yolo: never ask, and no sandbox where the agent has one.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// When Codex asks before it runs a command.
    ///
    /// untrusted: unless the command is known to be harmless. on-failure: when it failed in the
    /// sandbox. on-request: when the model thinks it must. never: never. Without --sandbox the
    /// sandbox is that of the mode.
    #[arg(long, short, value_name = "WHEN", value_parser = names::<AskWhen>(AskWhen::ALL, AskWhen::name))]
    pub(crate) ask_for_approval: Option<AskWhen>,
    /// What the commands of Codex can reach.
    ///
    /// Without --ask-for-approval it asks as the mode says.
    #[arg(long, short, value_name = "WHAT", value_parser = names::<Reach>(Reach::ALL, Reach::name))]
    pub(crate) sandbox: Option<Reach>,
    /// The same as --mode acceptEdits.
    #[arg(long, conflicts_with_all = ["mode", "ask_for_approval", "sandbox", "yolo"])]
    pub(crate) full_auto: bool,
    /// The same as --mode yolo: never ask, no sandbox.
    #[arg(long, visible_alias = "dangerously-bypass-approvals-and-sandbox")]
    #[arg(conflicts_with_all = ["mode", "ask_for_approval", "sandbox"])]
    pub(crate) yolo: bool,
    /// The model, by the agent's own name for it.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// What to print: text for people, jsonl for programs, final for the answer alone.
    #[arg(long, value_enum)]
    pub(crate) format: Option<FormatArg>,
    /// Who answers when the agent asks; by default you on a terminal, and no one (deny) elsewhere.
    ///
    /// ask: you. deny: no. allow: yes. fail: stop the turn and exit with code 5.
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) on_request: Option<OnRequestArg>,
    /// Stop the turn after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1))]
    pub(crate) timeout: Option<u64>,
    /// Do not wait for tasks that go on in the background after the turn.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Forget the agent's session first: it begins afresh, the history stays.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Wait while another process has a turn in this conversation.
    ///
    /// Ctrl-C ends the wait. When several wait, any of them is next.
    #[arg(long)]
    pub(crate) queue: bool,
}

/// Serve an editor: speak the Agent Client Protocol on stdin and stdout.
///
/// Editors that know the protocol start this command as their agent. Every session is a conversation
/// like any other: `tieline list` shows it, `tieline run --conversation KEY` goes on with it, and the
/// editor finds those that began elsewhere. Permissions are asked in the editor.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Zed, in settings.json:
  \"agent_servers\": {
    \"tieline\": { \"type\": \"custom\", \"command\": \"tieline\", \"args\": [\"acp\"] }
  }

JetBrains IDEs, in ~/.jetbrains/acp.json:
  { \"agent_servers\": { \"tieline\": { \"command\": \"tieline\", \"args\": [\"acp\"] } } }

Any client, to try it:
  npx acpx --agent \"tieline acp --agent demo\" exec hello")]
pub(crate) struct AcpArgs {
    /// The agent of new sessions: auto, claude, codex, codex-exec, codex-proto, engine, demo or
    /// acp:NAME.
    ///
    /// A session that exists keeps the agent it began with.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The mode of new sessions: plan, default, acceptEdits, auto, bypassPermissions or yolo.
    ///
    /// The editor can change it. yolo can be chosen only here.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// The model of new sessions, by the agent's own name for it.
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Who answers what the editor cannot ask: deny, allow or fail.
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) on_request: Option<OnRequestArg>,
    /// Stop a turn after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds(1))]
    pub(crate) timeout: Option<u64>,
    /// Log in to the agent, in this terminal, and end.
    ///
    /// Editors run this when the agent asks for a login.
    #[arg(long)]
    pub(crate) login: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// For people.
    Text,
    /// Every event and delta as a line of JSON.
    Jsonl,
    /// The final answer alone.
    Final,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnRequestArg {
    /// You are asked.
    Ask,
    /// Every request is refused.
    Deny,
    /// Every request is granted.
    Allow,
    /// The turn is stopped; exit code 5.
    Fail,
}

/// Play a conversation with the built-in agent.
///
/// The agent is a script, but what it does is real: it works in a fresh temporary directory,
/// streams text, runs commands, asks for an approval, writes and edits a file. The transcript is
/// kept like any other.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// What to print.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: FormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// As JSON, one array.
    #[arg(long)]
    pub(crate) json: bool,
    /// Only conversations with this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The conversation.
    #[arg(value_name = "KEY")]
    pub(crate) key: ConversationKey,
}

/// Branch a conversation off from another one, which stays as it is.
///
/// The new one has the same agent, workspace, mode and model, and its agent remembers what was said
/// so far. The other one must have had a turn, and its agent must be able to fork: claude and codex
/// are, and codex-exec from Codex 0.150 on.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tieline fork build build-2
  tieline run --conversation build-2 \"Try it the other way\"")]
pub(crate) struct ForkArgs {
    /// The conversation to branch off from.
    #[arg(value_name = "KEY")]
    pub(crate) key: ConversationKey,
    /// The key of the new one.
    #[arg(value_name = "NEWKEY")]
    pub(crate) new: ConversationKey,
}

/// Pass on what Codex tells its notify program at the end of a turn.
///
/// Codex calls the program of its setting `notify` with one JSON object. This command gives it to
/// the tieline that runs the conversation, which ends the turn if Codex itself does not tell; or it
/// writes it to a file or a FIFO, one line for each. With `notify = true` in the table of the agent
/// tieline sets this up by itself.
///
/// Without an option it goes to the socket in TIELINE_NOTIFY_SOCKET, which tieline sets for the
/// agents it starts, else to every tieline of the same store that listens: those whose agent has
/// `notify = true`. Exits with 1 when it reached nobody.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("place").multiple(false))]
#[command(after_long_help = "\
Examples, in ~/.codex/config.toml:
  notify = [\"tieline\", \"notify\"]
  notify = [\"tieline\", \"notify\", \"--file\", \"/home/me/turns.jsonl\"]")]
pub(crate) struct NotifyArgs {
    /// What Codex says: a JSON object.
    #[arg(value_name = "JSON")]
    pub(crate) json: String,
    /// Give it to the tieline that listens on this socket.
    #[arg(long, value_name = "PATH", group = "place", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,
    /// Append it to this file.
    #[arg(long, value_name = "PATH", group = "place", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Write it to this FIFO; somebody must read it within 2 seconds.
    #[arg(long, value_name = "PATH", group = "place", value_hint = ValueHint::FilePath)]
    pub(crate) fifo: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The conversation.
    #[arg(value_name = "KEY")]
    pub(crate) key: ConversationKey,
    /// Its events as lines of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a conversation to a file or a pipe.
///
/// jsonl: every event, one line of JSON each. markdown: a document for people. raw: the bytes that
/// went over the wire, exactly as they were.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tieline export build --format markdown -o build.md
  tieline export build | jq -r 'select(.kind == \"turn.completed\") | .data.text'
  tieline export build --format raw --direction all > wire.ndjson")]
pub(crate) struct ExportArgs {
    /// The conversation.
    #[arg(value_name = "KEY")]
    pub(crate) key: ConversationKey,
    /// In which form.
    #[arg(long, value_enum, default_value = "jsonl")]
    pub(crate) format: ExportFormat,
    /// Of the raw bytes, those that went to the agent (in), came from it (out) or from its stderr
    /// (err), or all.
    #[arg(long, value_enum, default_value = "out")]
    pub(crate) direction: DirectionArg,
    /// Where to; by default stdout. A file that exists is not overwritten.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file.
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Events as lines of JSON.
    Jsonl,
    /// A document.
    Markdown,
    /// The bytes of the wire.
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionArg {
    /// To the agent.
    In,
    /// From the agent.
    Out,
    /// From the agent's stderr.
    Err,
    /// All three, in order.
    All,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The conversation.
    #[arg(value_name = "KEY")]
    pub(crate) key: ConversationKey,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Give disk space back.
///
/// Clears up what crashes left behind. With a limit, the oldest raw frames go as well; events and
/// transcripts always stay.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Drop raw frames older than this many days.
    #[arg(long, value_name = "DAYS")]
    pub(crate) max_age: Option<u64>,
    /// Keep at most this many megabytes of raw frames.
    #[arg(long, value_name = "MB")]
    pub(crate) max_size: Option<u64>,
    /// Only say what would be freed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Look for trouble: agents, login, the engine's model, sandbox, store.
///
/// Nobody outside this machine is asked, unless --online is given. No key is shown.
///
/// Exits with 0 when everything is in order and with 1 when something needs attention.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask the endpoint of the engine's model, wherever it is; without this only one of this machine.
    #[arg(long)]
    pub(crate) online: bool,
    /// Rename a damaged store, so that a new one can begin. Nothing is deleted.
    #[arg(long, conflicts_with = "json")]
    pub(crate) set_aside: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Print the manual page.
///
/// `tieline man | man -l -` shows it; `tieline man --dir DIR` writes one page for every command.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write every page to this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// One of several names, so that help and completions list them.
fn names<T>(all: &'static [T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + std::str::FromStr<Err = String> + 'static,
{
    PossibleValuesParser::new(all.iter().map(move |it| name(*it))).try_map(|text| text.parse::<T>())
}

/// Seconds, from so many on. More than a clock can count would be a mistake.
fn seconds(least: u64) -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(least..=config::MOST_SECONDS)
}

/// A path that may be empty, as a variable that is set to nothing is.
fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}
