//! What the agent asks, and how it is answered: each request exactly once.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tieline_event::{
    Answer, Approval, ChangeKind, Choice, ChoiceKind, FileChange, ItemId, Mode, Native,
    NoticeLevel, Origin, Prompt, Question, QuestionOption, Request, RequestBody, RequestId, Scope,
    ToolKind,
};
use tieline_wire::acp::read::{Elicitation, Permission, PermissionOption, Whose};
use tieline_wire::acp::schema as acp;
use tieline_wire::jsonrpc::Id;
use tieline_wire::jsonrpc::write::{self, Form};

use super::driver::AcpDriver;
use super::failure::{CANCELLED, INTERNAL, INVALID_PARAMS, UNKNOWN_METHOD};
use super::mode::{self, Verdict};
use super::serve::{Command, Consent, File, Old};
use crate::driver::{Driver, Refused};
use crate::form;
use crate::ledger::{Ledger, Meta};
use crate::words::{allow, allow_session, choice, deny, first_line, refused_by, stop};

/// The answer to a link that was followed.
const OPENED: &str = "I have opened it";

/// A request that waits for the user.
#[derive(Debug)]
pub(super) struct Asked {
    /// The agent's id.
    pub(super) wire_id: Id,
    /// The tool call it is about.
    tool: Option<String>,
    what: Asking,
}

#[derive(Debug)]
enum Asking {
    /// One of these.
    Permission(Vec<PermissionOption>, ToolKind),
    /// A form to fill in.
    Form(Box<RawValue>),
    /// A link to follow, by its id.
    Link(Option<String>),
    /// A file is to be written by us.
    Write(File),
    /// A command is to be run by us.
    Run(Command),
}

/// What the user allowed us to do for as long as the session lasts.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// Write files.
    pub(super) writes: HashSet<PathBuf>,
    /// Run these command lines.
    pub(super) commands: HashSet<(String, PathBuf)>,
}

impl AcpDriver {
    /// The agent asks.
    pub(super) fn request(
        &mut self,
        id: Id,
        method: &str,
        params: Option<&RawValue>,
        ledger: &mut Ledger,
    ) {
        let params = params.map_or("{}", RawValue::get);
        if self.owes(&id) {
            // It has one answer coming, and a second one would be for nobody.
            let text = format!("the agent asked twice with the id {id}");
            return ledger.notice(NoticeLevel::Warning, "repeated_request", text);
        }
        let whose: Whose = serde_json::from_str(params).unwrap_or_default();
        if whose.session_id.is_some() && whose.session_id != self.session {
            let why = "this session is not known here";
            return refuse(&id, INVALID_PARAMS, why, ledger);
        }
        let done = match method {
            "elicitation/create" if self.is_stopping() => {
                respond(&id, &json!({"action": "cancel"}), ledger);
                Ok(())
            }
            "fs/write_text_file" | "terminal/create" if self.is_stopping() => {
                refuse(&id, CANCELLED, "the turn was interrupted", ledger);
                Ok(())
            }
            "session/request_permission" => self.permission(&id, params, ledger),
            "elicitation/create" => self.elicitation(&id, params, ledger),
            "fs/read_text_file" => self.read_file(&id, params, ledger),
            "fs/write_text_file" => self.write_file(&id, params, ledger),
            "terminal/create" => self.create_terminal(&id, params, ledger),
            "terminal/output" => self.terminal_output(&id, params, ledger),
            "terminal/wait_for_exit" => self.wait_for_exit(&id, params, ledger),
            "terminal/kill" => self.kill_terminal(&id, params, ledger),
            "terminal/release" => self.release_terminal(&id, params, ledger),
            _ => {
                let why = format!("tieline does not know the request {method}");
                refuse(&id, UNKNOWN_METHOD, &why, ledger);
                ledger.notice(NoticeLevel::Info, "unsupported_request", why);
                Ok(())
            }
        };
        if let Err(error) = done {
            let why = format!("{method} is not understood: {error}");
            refuse(&id, INVALID_PARAMS, &why, ledger);
            ledger.notice(NoticeLevel::Warning, "unsupported_request", why);
        }
    }

    /// Whether a request of the agent's waits for its answer.
    fn owes(&self, id: &Id) -> bool {
        self.asked.values().any(|asked| asked.wire_id == *id)
            || self.served.values().any(|served| served.waits(id))
            || self.terminals.values().any(|terminal| terminal.waiting.contains(id))
    }

    /// Whether the turn is to end: what the agent asked before it heard of that is not done.
    fn is_stopping(&self) -> bool {
        self.is_interrupted && self.running.is_some()
    }

    fn permission(
        &mut self,
        id: &Id,
        params: &str,
        ledger: &mut Ledger,
    ) -> Result<(), serde_json::Error> {
        let Permission { tool_call, options, meta } = serde_json::from_str(params)?;
        let more = meta.and_then(|meta| meta.tieline).unwrap_or_default();
        let call = tool_call.tool_call_id.to_string();
        // What is asked about is not over; an id may come again.
        self.done.remove(&call);
        let item = self.tool(&tool_call, params.as_bytes(), ledger);
        self.speech.hush(ledger);
        if self.is_stopping() {
            select(id, None, ledger);
            return Ok(());
        }
        let tool = self.tools.entry(call.clone()).or_default();
        let kind = tool.kind;
        let is_inside = tool.paths().next().is_some()
            && tool.paths().all(|path| is_inside(Path::new(path), &self.roots));
        match mode::on_permission(self.mode, self.is_exact, kind, is_inside) {
            Verdict::Allow => {
                if let Some(option) = find(&options, &["allow_once", "allow_always"]) {
                    tool.grant();
                    select(id, Some(&option.option_id), ledger);
                    return Ok(());
                }
            }
            Verdict::Refuse => {
                let option = find(&options, &["reject_once", "reject_always"]);
                self.refused.insert(call, refused_by(Origin::Engine));
                select(id, option.map(|it| it.option_id.as_str()), ledger);
                return Ok(());
            }
            Verdict::Ask => {}
        }
        let title = tool.title.clone().unwrap_or_else(|| "Use a tool".to_owned());
        let body = match kind {
            ToolKind::SwitchMode => RequestBody::ExitPlan { plan: tool.plan() },
            _ => RequestBody::Approval(Approval {
                tool: match &more.tool {
                    Some(named) => named.to_string(),
                    None => tool.name.clone().unwrap_or_else(|| title.clone()),
                },
                command: tool.command().filter(|_| kind == ToolKind::Execute),
                path: tool.paths().next().map(str::to_owned),
                changes: tool.changes(),
                given: tool.given().cloned(),
                ..Approval::default()
            }),
        };
        // Who is asked about a call has to see it, however little is known of it.
        let item = item.or_else(|| self.show_tool(&call, ledger));
        let choices = options.iter().map(choice_of).collect();
        let asked = Asked {
            wire_id: id.clone(),
            tool: Some(call),
            what: Asking::Permission(options, kind),
        };
        let title = first_line(more.title.as_deref().unwrap_or(&title));
        let reason = more.reason.map(|reason| reason.to_string());
        self.ask(request_id(ledger), asked, item, (title, reason), body, choices, ledger);
        Ok(())
    }

    fn elicitation(
        &mut self,
        id: &Id,
        params: &str,
        ledger: &mut Ledger,
    ) -> Result<(), serde_json::Error> {
        let asked: Elicitation<'_> = serde_json::from_str(params)?;
        let (what, questions) = match (asked.mode.as_str(), asked.requested_schema, &asked.url) {
            ("url", _, Some(url)) => {
                let label = OPENED.to_owned();
                let question = Question {
                    id: "url".to_owned(),
                    header: None,
                    text: format!("{}\n{url}", asked.message),
                    options: vec![QuestionOption { label, description: None, value: None }],
                    multiple: false,
                    free_text: false,
                    secret: false,
                };
                (Asking::Link(asked.elicitation_id.clone()), vec![question])
            }
            ("form" | "", Some(schema), _) => {
                (Asking::Form(schema.to_owned()), form::questions_of(&asked.message, schema))
            }
            (mode, ..) => {
                let why = format!("tieline does not know elicitation of mode {mode:?}");
                refuse(id, INVALID_PARAMS, &why, ledger);
                ledger.notice(NoticeLevel::Warning, "unsupported_request", why);
                return Ok(());
            }
        };
        self.speech.hush(ledger);
        let tool = asked.tool_call_id.clone();
        let item = tool.as_ref().and_then(|tool| self.show_tool(tool, ledger));
        let (body, choices) = match questions.is_empty() {
            // A form without fields is a yes or a no.
            true => {
                let tool = "form".to_owned();
                let approval = Approval { tool, ..Approval::default() };
                (RequestBody::Approval(approval), vec![allow(), deny(), stop()])
            }
            false => (RequestBody::Question { questions }, vec![deny(), stop()]),
        };
        let title = first_line(&asked.message);
        let is_whole = title == *asked.message || matches!(body, RequestBody::Question { .. });
        let reason = (!is_whole).then(|| asked.message.to_string());
        let asked = Asked { wire_id: id.clone(), tool, what };
        self.ask(request_id(ledger), asked, item, (title, reason), body, choices, ledger);
        Ok(())
    }

    /// The user decides about a file.
    pub(super) fn ask_to_write(&mut self, id: &Id, file: File, old: Old, ledger: &mut Ledger) {
        let path = file.path.display().to_string();
        let (kind, old_text) = match old {
            Old::Text(text) => (ChangeKind::Update, Some(text.into())),
            Old::None => (ChangeKind::Add, None),
            Old::Unknown => (ChangeKind::Update, None),
        };
        let change = FileChange {
            path: path.clone(),
            kind,
            moved_to: None,
            old_text,
            new_text: Some(file.content.as_str().into()),
            diff: None,
        };
        let body = RequestBody::Approval(Approval {
            tool: "write".to_owned(),
            path: Some(path.clone()),
            changes: vec![change],
            ..Approval::default()
        });
        let title = match &file.obeyed_by {
            None => format!("Write {path}"),
            Some(by) => format!("Write {path}, which {by} run or obey"),
        };
        let name = file.question.clone();
        self.ask_for_us(name, id, Asking::Write(file), title, body, ledger);
    }

    /// The user decides about a command.
    pub(super) fn ask_to_run(&mut self, id: &Id, command: Command, ledger: &mut Ledger) {
        let line = command.shown();
        let title = format!("Run {}", first_line(&line));
        let body = RequestBody::Approval(Approval {
            tool: "command".to_owned(),
            command: Some(line),
            cwd: Some(command.cwd.display().to_string()),
            ..Approval::default()
        });
        self.ask_for_us(request_id(ledger), id, Asking::Run(command), title, body, ledger);
    }

    fn ask_for_us(
        &mut self,
        name: RequestId,
        id: &Id,
        what: Asking,
        title: String,
        body: RequestBody,
        ledger: &mut Ledger,
    ) {
        let choices = vec![allow(), allow_session(), deny(), stop()];
        let asked = Asked { wire_id: id.clone(), tool: None, what };
        self.ask(name, asked, None, (title, None), body, choices, ledger);
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a request, each of its own type")]
    fn ask(
        &mut self,
        id: RequestId,
        asked: Asked,
        item: Option<ItemId>,
        (title, reason): (String, Option<String>),
        body: RequestBody,
        options: Vec<Choice>,
        ledger: &mut Ledger,
    ) {
        let native = Native {
            request: Some(asked.wire_id.to_string()),
            item: asked.tool.clone(),
            ..Native::default()
        };
        let request = Request { id: id.clone(), item, title, reason, body, options };
        self.asked.insert(id, asked);
        ledger.open_request(Meta { parent: None, native }, request);
    }

    /// The user answered; `option` is the agent's id of what was chosen, where it was chosen so.
    pub(super) fn answer_request(
        &mut self,
        request: &RequestId,
        answer: &Answer,
        option: Option<&str>,
        by: Origin,
        ledger: &mut Ledger,
    ) -> Result<(), Refused> {
        let Some(asked) = self.asked.get(request) else {
            return Err(Refused(format!("request {request} is answered or gone")));
        };
        check(asked, answer)?;
        let Some(Asked { wire_id, tool, what }) = self.asked.remove(request) else {
            return Ok(());
        };
        let is_yes = !matches!(answer, Answer::Deny { .. });
        match what {
            Asking::Permission(options, kind) => {
                let chosen = option.or_else(|| chosen(&options, answer));
                select(&wire_id, chosen, ledger);
                if is_yes && kind == ToolKind::SwitchMode {
                    self.may_relax = Some(leave(answer, chosen));
                }
                let tool = tool.and_then(|id| Some((self.tools.get_mut(&id)?, id)));
                if let Some((tool, id)) = tool {
                    match is_yes {
                        true => tool.grant(),
                        false => drop(self.refused.insert(id, refused_by(by))),
                    }
                }
            }
            Asking::Form(schema) => respond(&wire_id, &filled(&schema, answer), ledger),
            Asking::Link(_) => respond(&wire_id, &filled(RawValue::NULL, answer), ledger),
            Asking::Write(file) => {
                if is_lasting(answer) {
                    self.grants.writes.insert(file.path.clone());
                }
                match is_yes {
                    true => self.start_write(wire_id, file, Consent::Yes, ledger),
                    false => refuse(&wire_id, INTERNAL, said_no(by), ledger),
                }
            }
            Asking::Run(command) => {
                if is_lasting(answer) {
                    self.grants.commands.insert((command.shown(), command.cwd.clone()));
                }
                match is_yes {
                    true => self.start_command(wire_id, command, ledger),
                    false => refuse(&wire_id, INTERNAL, said_no(by), ledger),
                }
            }
        }
        if let Answer::Deny { message, stop } = answer {
            self.after_no(message.as_deref(), *stop, by, ledger);
        }
        Ok(())
    }

    fn after_no(&mut self, message: Option<&str>, stops: bool, by: Origin, ledger: &mut Ledger) {
        if stops {
            self.interrupt(ledger);
            return;
        }
        // The wire has no place for a reason, so a person's word goes in as a message.
        let Some(message) = message.filter(|_| by != Origin::Engine) else { return };
        if self.steer(&Prompt::text(message), ledger).is_err() {
            let text = format!("{} takes a no without a reason", self.name);
            ledger.notice(NoticeLevel::Info, "not_delivered", text);
        }
    }

    /// The agent takes a request back.
    pub(super) fn take_back(&mut self, id: &Id, ledger: &mut Ledger) {
        let found = self.asked.iter().find(|(_, asked)| asked.wire_id == *id);
        if let Some(request) = found.map(|(request, _)| request.clone()) {
            return self.withdraw(&request, "the agent took it back", ledger);
        }
        for terminal in self.terminals.values_mut() {
            if terminal.waiting.contains(id) {
                terminal.waiting.retain(|waiting| waiting != id);
                refuse(id, CANCELLED, "taken back", ledger);
            }
        }
    }

    /// A link was followed to its end without us.
    pub(super) fn link_done(&mut self, elicitation: &str, ledger: &mut Ledger) {
        let is_it = |asked: &Asked| match &asked.what {
            Asking::Link(Some(id)) => id == elicitation,
            _ => false,
        };
        let found = self.asked.iter().find(|(_, asked)| is_it(asked));
        if let Some(request) = found.map(|(request, _)| request.clone())
            && let Some(asked) = self.asked.remove(&request)
        {
            respond(&asked.wire_id, &json!({"action": "accept"}), ledger);
            ledger.expire_request(&request, "it is done");
        }
    }

    /// Nothing waits for the user any more.
    pub(super) fn withdraw_all(&mut self, reason: &str, ledger: &mut Ledger) {
        self.withdraw_previews(reason, ledger);
        let mut open: Vec<RequestId> = self.asked.keys().cloned().collect();
        open.sort();
        for request in open {
            self.withdraw(&request, reason, ledger);
        }
    }

    fn withdraw(&mut self, request: &RequestId, reason: &str, ledger: &mut Ledger) {
        let Some(Asked { wire_id, what, .. }) = self.asked.remove(request) else { return };
        match what {
            Asking::Permission(..) => select(&wire_id, None, ledger),
            Asking::Form(_) | Asking::Link(_) => {
                respond(&wire_id, &json!({"action": "cancel"}), ledger);
            }
            Asking::Write(_) | Asking::Run(_) => refuse(&wire_id, CANCELLED, reason, ledger),
        }
        ledger.expire_request(request, reason);
    }
}

/// A name for a request that is in the line that is being read.
pub(super) fn request_id(ledger: &Ledger) -> RequestId {
    match ledger.frame() {
        Some(frame) => RequestId::new(format!("r{frame}")),
        None => RequestId::from("r"),
    }
}

/// Whether the answer fits the question.
fn check(asked: &Asked, answer: &Answer) -> Result<(), Refused> {
    let is_question = matches!(asked.what, Asking::Form(_) | Asking::Link(_));
    match answer {
        Answer::Allow { input: Some(_), .. } => {
            Err(Refused("the agent takes a yes or a no, but no changed input".to_owned()))
        }
        Answer::Answers { .. } if !is_question => {
            Err(Refused("this request wants a yes or a no".to_owned()))
        }
        Answer::Choose { .. } => Err(Refused("this option is not known".to_owned())),
        _ => Ok(()),
    }
}

fn is_lasting(answer: &Answer) -> bool {
    matches!(answer, Answer::Allow { scope: Scope::Session | Scope::Always, .. })
}

fn said_no(by: Origin) -> &'static str {
    match by {
        Origin::Engine => "a policy of the user forbids it",
        _ => "the user said no",
    }
}

fn choice_of(option: &PermissionOption) -> Choice {
    // A finer word counts only where it is of the kind that everybody else goes by.
    let finer = option.meta.as_ref().and_then(|meta| meta.tieline.kind.as_deref());
    let kind = match (option.kind.as_str(), finer) {
        ("allow_once", _) => ChoiceKind::AllowOnce,
        ("allow_always", Some("allow_session")) => ChoiceKind::AllowSession,
        ("allow_always", _) => ChoiceKind::AllowAlways,
        (_, Some("deny_and_stop")) => ChoiceKind::DenyAndStop,
        // What is not known is no yes.
        _ => ChoiceKind::Deny,
    };
    choice(&option.option_id, &option.name, kind)
}

/// The first option of the first kind that there is.
fn find<'a>(options: &'a [PermissionOption], kinds: &[&str]) -> Option<&'a PermissionOption> {
    kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))
}

/// The agent's id of what an answer means.
fn chosen<'a>(options: &'a [PermissionOption], answer: &Answer) -> Option<&'a str> {
    let option = match answer {
        Answer::Allow { mode: Some(wanted), .. } => options
            .iter()
            .filter(|option| option.kind.starts_with("allow"))
            .find(|option| mode::meaning(&option.option_id) == Some(*wanted))
            .or_else(|| find(options, &["allow_once", "allow_always"])),
        Answer::Allow { scope: Scope::Once, .. } => find(options, &["allow_once", "allow_always"]),
        Answer::Allow { .. } => find(options, &["allow_always", "allow_once"]),
        Answer::Deny { stop: false, .. } => find(options, &["reject_once", "reject_always"]),
        _ => None,
    };
    option.map(|option| option.option_id.as_str())
}

/// How far a yes to another mode goes: to the mode it named, and never to one without any net.
fn leave(answer: &Answer, option: Option<&str>) -> Mode {
    let named = match answer {
        Answer::Allow { mode: Some(mode), .. } => Some(*mode),
        _ => option.and_then(mode::meaning),
    };
    named.filter(|mode| *mode != Mode::Yolo).unwrap_or(Mode::Default)
}

/// A form filled in, or not.
fn filled(schema: &RawValue, answer: &Answer) -> Value {
    match answer {
        Answer::Answers { answers } if schema.get() != "null" => {
            json!({"action": "accept", "content": form::fill(schema, answers)})
        }
        Answer::Answers { .. } | Answer::Allow { .. } => json!({"action": "accept"}),
        Answer::Deny { stop: true, .. } => json!({"action": "cancel"}),
        _ => json!({"action": "decline"}),
    }
}

/// Answers a permission request; none cancels it.
fn select(id: &Id, option: Option<&str>, ledger: &mut Ledger) {
    let outcome = match option {
        Some(option) => acp::RequestPermissionOutcome::Selected(
            acp::SelectedPermissionOutcome::new(option.to_owned()),
        ),
        None => acp::RequestPermissionOutcome::Cancelled,
    };
    respond(id, &acp::RequestPermissionResponse::new(outcome), ledger);
}

pub(super) fn respond(id: &Id, result: &impl serde::Serialize, ledger: &mut Ledger) {
    ledger.write(&write::response(Form::Versioned, id, result));
}

pub(super) fn refuse(id: &Id, code: i64, why: &str, ledger: &mut Ledger) {
    ledger.write(&write::error(Form::Versioned, id, code, why));
}

/// Whether a path is below one of the roots by its spelling. Links are looked at by whoever opens
/// it; this only keeps pointless questions from the user.
pub(super) fn is_inside(path: &Path, roots: &[PathBuf]) -> bool {
    let has_detour = path.components().any(|part| part == Component::ParentDir);
    path.is_absolute() && !has_detour && roots.iter().any(|root| path.starts_with(root))
}
