//! Files and terminals, which the agent leaves to its client.
//!
//! Whether something is done is decided here, by the mode and by what the user said; how it is done
//! within the roots is the business of whoever does chores.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use tieline_event::{NoticeLevel, RequestId};
use tieline_wire::acp::schema as acp;
use tieline_wire::jsonrpc::Id;

use super::ask::{is_inside, refuse, request_id, respond};
use super::driver::AcpDriver;
use super::failure::{CANCELLED, INTERNAL, INVALID_PARAMS, NOT_FOUND};
use super::mode::{self, Verdict};
use super::terminal::{Terminal, TerminalExit};
use crate::chore::{Chore, ChoreId, ChoreNews, Leave};
use crate::ledger::Ledger;

/// How many files are read or written at a time.
const MOST_FILES: usize = 32;

/// How many terminals an agent may have at a time.
const MOST_TERMINALS: usize = 32;

/// Something that is being done.
#[derive(Debug)]
pub(super) struct Served {
    wire_id: Id,
    what: Serving,
}

#[derive(Debug)]
enum Serving {
    Read,
    Write(Writing),
    /// What the file holds is read first, so that the user sees what would change.
    Preview(File),
    /// The answer went out when it began.
    Run(String),
}

impl Served {
    /// Whether this request waits for it.
    pub(super) fn waits(&self, id: &Id) -> bool {
        !matches!(self.what, Serving::Run(_)) && self.wire_id == *id
    }
}

/// A file that is being written.
#[derive(Debug)]
struct Writing {
    path: PathBuf,
    consent: Consent,
    question: RequestId,
}

/// Whether the user was asked about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    /// And said yes to its name.
    Yes,
    /// The mode lets it be written.
    No,
}

/// What a file holds that is to be written.
#[derive(Debug)]
pub(super) enum Old {
    /// This text.
    Text(String),
    /// Nothing: it is not there.
    None,
    /// Nobody knows.
    Unknown,
}

/// A file that is to be written.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) content: String,
    /// Who runs or obeys it, if it is protected. Its path is then the real one.
    pub(super) obeyed_by: Option<String>,
    /// The name of the question about it, after the line that asked.
    pub(super) question: RequestId,
}

/// A command that is to be run.
#[derive(Debug)]
pub(super) struct Command {
    command: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    pub(super) cwd: PathBuf,
    limit: Option<u64>,
}

impl Command {
    /// With everything a person has to know to say yes: the variables it gets, and where it runs.
    pub(super) fn shown(&self) -> String {
        let variables = self.env.iter().map(|(name, value)| {
            let value = shlex::try_quote(value).map_or_else(|_| format!("{value:?}"), Into::into);
            format!("{name}={value} ")
        });
        format!("{}{}", variables.collect::<String>(), self.line())
    }

    /// As a person would type it.
    fn line(&self) -> String {
        if self.args.is_empty() {
            return self.command.clone();
        }
        let words = std::iter::once(&self.command).chain(&self.args).map(String::as_str);
        shlex::try_join(words).unwrap_or_else(|_| format!("{} {:?}", self.command, self.args))
    }
}

type Read = Result<(), serde_json::Error>;

impl AcpDriver {
    pub(super) fn read_file(&mut self, id: &Id, params: &str, ledger: &mut Ledger) -> Read {
        #[derive(Deserialize)]
        struct Params {
            path: PathBuf,
            #[serde(default)]
            line: Option<u32>,
            #[serde(default)]
            limit: Option<u32>,
        }
        let Params { path, line, limit } = serde_json::from_str(params)?;
        if self.is_outside(id, &path, ledger) || self.is_overwhelmed(id, ledger) {
            return Ok(());
        }
        let within = self.roots.clone();
        let chore = ledger.chore(Chore::ReadText { within, path, line, limit });
        self.served.insert(chore, Served { wire_id: id.clone(), what: Serving::Read });
        Ok(())
    }

    pub(super) fn write_file(&mut self, id: &Id, params: &str, ledger: &mut Ledger) -> Read {
        #[derive(Deserialize)]
        struct Params {
            path: PathBuf,
            content: String,
        }
        let Params { path, content } = serde_json::from_str(params)?;
        if self.is_outside(id, &path, ledger) || self.is_overwhelmed(id, ledger) {
            return Ok(());
        }
        // What was said about a call holds for what the call does.
        let is_granted = self.grants.writes.contains(&path)
            || self.tools.values().any(|tool| tool.may_write(&path));
        let file = File { path, content, obeyed_by: None, question: request_id(ledger) };
        match mode::on_write(self.mode) {
            Verdict::Refuse => {
                let what = format!("writing {}", file.path.display());
                self.forbid(id, &what, ledger);
            }
            Verdict::Ask if !is_granted => self.preview(id, file, ledger),
            Verdict::Ask | Verdict::Allow => {
                let consent = if is_granted { Consent::Yes } else { Consent::No };
                self.start_write(id.clone(), file, consent, ledger);
            }
        }
        Ok(())
    }

    /// A file is protected, and nobody gave leave for it by its name. In a mode that asks for nothing
    /// it is not written.
    fn protected(&mut self, id: &Id, was: &Writing, file: File, ledger: &mut Ledger) {
        let is_granted = (was.consent == Consent::Yes && was.path == file.path)
            || self.grants.writes.contains(&file.path);
        match mode::on_protected(self.mode) {
            _ if ledger.current_turn().is_none() => {
                refuse(id, CANCELLED, "the turn is over", ledger);
            }
            _ if is_granted => self.start_write(id.clone(), file, Consent::Yes, ledger),
            Verdict::Ask => self.preview(id, file, ledger),
            Verdict::Refuse | Verdict::Allow => {
                let by = file.obeyed_by.unwrap_or_default();
                let what = format!("writing {}, which {by} run or obey", file.path.display());
                self.forbid(id, &what, ledger);
            }
        }
    }

    /// Before the user is asked about a file.
    fn preview(&mut self, id: &Id, file: File, ledger: &mut Ledger) {
        let (within, path) = (self.roots.clone(), file.path.clone());
        let chore = ledger.chore(Chore::ReadText { within, path, line: None, limit: None });
        let what = Serving::Preview(file);
        self.served.insert(chore, Served { wire_id: id.clone(), what });
    }

    /// Nobody is to be asked any more about files that are still being read for it.
    pub(super) fn withdraw_previews(&mut self, reason: &str, ledger: &mut Ledger) {
        let is_preview = |_: &ChoreId, it: &mut Served| matches!(it.what, Serving::Preview(_));
        for (_, served) in self.served.extract_if(is_preview) {
            refuse(&served.wire_id, CANCELLED, reason, ledger);
        }
    }

    pub(super) fn start_write(
        &mut self,
        wire_id: Id,
        file: File,
        consent: Consent,
        ledger: &mut Ledger,
    ) {
        let File { path, content, obeyed_by, question } = file;
        let leave = match (mode::on_protected(self.mode), obeyed_by) {
            (Verdict::Allow, _) => Leave::All,
            (_, Some(_)) => Leave::File(path.clone()),
            (_, None) => Leave::None,
        };
        let what = Serving::Write(Writing { path: path.clone(), consent, question });
        let within = self.roots.clone();
        let chore = ledger.chore(Chore::WriteText { within, path, content, leave });
        self.served.insert(chore, Served { wire_id, what });
    }

    fn is_outside(&self, id: &Id, path: &Path, ledger: &mut Ledger) -> bool {
        let is_outside = !is_inside(path, &self.roots);
        if is_outside {
            let why = format!("{} is not in the workspace", path.display());
            refuse(id, INVALID_PARAMS, &why, ledger);
        }
        is_outside
    }

    fn is_overwhelmed(&self, id: &Id, ledger: &mut Ledger) -> bool {
        let is_file = |served: &&Served| !matches!(served.what, Serving::Run(_));
        let is_full = self.served.values().filter(is_file).count() >= MOST_FILES;
        if is_full {
            let why = format!("{MOST_FILES} files are being read or written already");
            refuse(id, INTERNAL, &why, ledger);
        }
        is_full
    }

    fn forbid(&self, id: &Id, what: &str, ledger: &mut Ledger) {
        let why = format!("the mode {} does not allow {what}", self.mode);
        refuse(id, INTERNAL, &why, ledger);
        ledger.notice(NoticeLevel::Info, "denied_by_mode", why);
    }

    pub(super) fn create_terminal(&mut self, id: &Id, params: &str, ledger: &mut Ledger) -> Read {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            command: String,
            #[serde(default)]
            args: Vec<String>,
            #[serde(default)]
            env: Vec<Variable>,
            #[serde(default)]
            cwd: Option<PathBuf>,
            #[serde(default)]
            output_byte_limit: Option<u64>,
        }
        #[derive(Deserialize)]
        struct Variable {
            name: String,
            value: String,
        }
        let params: Params = serde_json::from_str(params)?;
        let cwd = params.cwd.unwrap_or_else(|| self.workspace.clone());
        if self.is_outside(id, &cwd, ledger) {
            return Ok(());
        }
        if self.terminals.len() >= MOST_TERMINALS {
            let why = format!("{MOST_TERMINALS} terminals are open already; release some");
            refuse(id, INTERNAL, &why, ledger);
            return Ok(());
        }
        let command = Command {
            command: params.command,
            args: params.args,
            env: params.env.into_iter().map(|it| (it.name, it.value)).collect(),
            cwd,
            limit: params.output_byte_limit,
        };
        let line = command.line();
        // A yes to a call says nothing of variables, and one for the session holds where it was given.
        let is_granted = self.grants.commands.contains(&(command.shown(), command.cwd.clone()))
            || (command.env.is_empty() && self.tools.values().any(|tool| tool.may_run(&line)));
        match mode::on_command(self.mode) {
            Verdict::Refuse => self.forbid(id, "commands", ledger),
            Verdict::Ask if !is_granted => self.ask_to_run(id, command, ledger),
            Verdict::Ask | Verdict::Allow => self.start_command(id.clone(), command, ledger),
        }
        Ok(())
    }

    pub(super) fn start_command(&mut self, wire_id: Id, command: Command, ledger: &mut Ledger) {
        self.n_terminals += 1;
        let name = format!("term{}", self.n_terminals);
        let Command { command, args, env, cwd, limit } = command;
        let within = self.roots.clone();
        let chore = ledger.chore(Chore::Run { within, command, args, env, cwd });
        self.terminals.insert(name.clone(), Terminal::new(chore, limit));
        respond(&wire_id, &acp::CreateTerminalResponse::new(name.clone()), ledger);
        self.served.insert(chore, Served { wire_id, what: Serving::Run(name) });
    }

    pub(super) fn terminal_output(&mut self, id: &Id, params: &str, ledger: &mut Ledger) -> Read {
        if let Some((_, terminal)) = self.terminal(id, params, ledger)? {
            let (output, is_cut) = terminal.output();
            let exit = terminal.exit.as_ref().map(exit_status);
            let answer = acp::TerminalOutputResponse::new(output, is_cut).exit_status(exit);
            respond(id, &answer, ledger);
        }
        Ok(())
    }

    pub(super) fn wait_for_exit(&mut self, id: &Id, params: &str, ledger: &mut Ledger) -> Read {
        if let Some((_, terminal)) = self.terminal(id, params, ledger)? {
            match &terminal.exit {
                Some(exit) => respond(id, &exit_status(exit), ledger),
                None => terminal.waiting.push(id.clone()),
            }
        }
        Ok(())
    }

    pub(super) fn kill_terminal(&mut self, id: &Id, params: &str, ledger: &mut Ledger) -> Read {
        if let Some((_, terminal)) = self.terminal(id, params, ledger)? {
            kill(terminal, ledger);
            respond(id, &json!({}), ledger);
        }
        Ok(())
    }

    pub(super) fn release_terminal(&mut self, id: &Id, params: &str, ledger: &mut Ledger) -> Read {
        let Some((name, _)) = self.terminal(id, params, ledger)? else { return Ok(()) };
        if let Some(terminal) = self.terminals.remove(&name) {
            kill(&terminal, ledger);
            for waiting in &terminal.waiting {
                refuse(waiting, NOT_FOUND, "the terminal was released", ledger);
            }
        }
        respond(id, &json!({}), ledger);
        Ok(())
    }

    /// The terminal a request is about; where there is none that is said.
    fn terminal(
        &mut self,
        id: &Id,
        params: &str,
        ledger: &mut Ledger,
    ) -> Result<Option<(String, &mut Terminal)>, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            terminal_id: String,
        }
        let Params { terminal_id: name } = serde_json::from_str(params)?;
        match self.terminals.get_mut(&name) {
            Some(terminal) => Ok(Some((name, terminal))),
            None => {
                refuse(id, NOT_FOUND, &format!("there is no terminal {name:?}"), ledger);
                Ok(None)
            }
        }
    }

    /// Something came of what is being done.
    pub(super) fn served(&mut self, chore: ChoreId, news: ChoreNews, ledger: &mut Ledger) {
        let Some(Served { wire_id, what }) = self.served.remove(&chore) else { return };
        match (what, news) {
            (Serving::Preview(file), news) => {
                let old = match news {
                    ChoreNews::Text(text) => Old::Text(text),
                    ChoreNews::Failed { missing: true, .. } => Old::None,
                    // It may be no text, or not there for us; the user decides all the same.
                    _ => Old::Unknown,
                };
                self.ask_to_write(&wire_id, file, old, ledger);
            }
            (Serving::Read, ChoreNews::Text(text)) => {
                respond(&wire_id, &acp::ReadTextFileResponse::new(text), ledger);
            }
            (Serving::Write(..), ChoreNews::Written) => respond(&wire_id, &json!({}), ledger),
            (Serving::Write(was), ChoreNews::Protected { path, by, content }) => {
                // The first question may have been asked already.
                let question = RequestId::new(format!("{}p", was.question));
                let file = File { path, content, obeyed_by: Some(by), question };
                self.protected(&wire_id, &was, file, ledger);
            }
            (Serving::Run(name), news) => {
                let is_end = news.is_end();
                self.ran(&name, news, ledger);
                if !is_end {
                    self.served.insert(chore, Served { wire_id, what: Serving::Run(name) });
                }
            }
            (_, ChoreNews::Failed { why, missing }) => {
                let code = if missing { NOT_FOUND } else { INTERNAL };
                refuse(&wire_id, code, &why, ledger);
            }
            (_, news) => {
                tracing::warn!(%chore, ?news, "news that fit no chore");
                refuse(&wire_id, INTERNAL, "it went wrong", ledger);
            }
        }
    }

    /// A command did something. What it still prints after its terminal was released is for nobody.
    fn ran(&mut self, name: &str, news: ChoreNews, ledger: &mut Ledger) {
        let shows = |tool: &super::tool::Tool| tool.terminal.as_deref() == Some(name);
        let tool = self.tools.iter().find(|(_, tool)| shows(tool)).map(|(id, _)| id.clone());
        let terminal = self.terminals.get_mut(name);
        let exit = match news {
            ChoreNews::Printed(bytes) => {
                let text = terminal.map(|terminal| terminal.push(&bytes)).unwrap_or_default();
                if let Some(tool) = tool {
                    self.printed(&tool, &text, ledger);
                }
                return;
            }
            ChoreNews::Ended { code, signal } => TerminalExit { code, signal },
            ChoreNews::Failed { why, .. } => {
                // As a shell would tell it.
                if let Some(terminal) = self.terminals.get_mut(name) {
                    terminal.push(format!("{why}\n").as_bytes());
                }
                TerminalExit { code: Some(127), signal: None }
            }
            ChoreNews::Text(_) | ChoreNews::Written | ChoreNews::Protected { .. } => return,
        };
        if let Some(tool) = tool.and_then(|tool| self.tools.get_mut(&tool)) {
            tool.exited(exit.code);
        }
        if let Some(terminal) = self.terminals.get_mut(name) {
            for waiting in std::mem::take(&mut terminal.waiting) {
                respond(&waiting, &exit_status(&exit), ledger);
            }
            terminal.exit = Some(exit);
        }
    }
}

fn kill(terminal: &Terminal, ledger: &mut Ledger) {
    if terminal.exit.is_none() {
        ledger.chore(Chore::Kill(terminal.chore));
    }
}

fn exit_status(exit: &TerminalExit) -> acp::TerminalExitStatus {
    let code = exit.code.and_then(|code| u32::try_from(code).ok());
    let signal = exit.signal.map(signal_name);
    acp::TerminalExitStatus::new().exit_code(code).signal(signal)
}

/// The names a person would know; else the number.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        other => return other.to_string(),
    };
    name.to_owned()
}
