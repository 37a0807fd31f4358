//! What the agent asks, and how it is answered.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{
    Answer, Approval, Bounds, Held, ItemBody, ItemId, ItemStatus, Json, Native, NoticeLevel,
    Question, QuestionOption, Request, RequestBody, RequestId, Scope,
};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{self, Decision, Op, Sniffed};
use tieline_wire::text::Str;

use super::ProtoDriver;
use crate::codex::{Version, file_changes};
use crate::form;
use crate::ledger::{Ledger, Meta};
use crate::sqeq::command;
use crate::words::{allow, allow_session, by_server, deny, first_line, stop};

/// The first version that finds an approval by its call; those before find it by the submission
/// that began the task.
const FIRST_BY_CALL: Version = Version(0, 99, 0);

/// What is needed to answer.
#[derive(Debug)]
pub(super) struct Asked {
    /// The id the agent finds it by.
    id: String,
    call: String,
    what: What,
}

#[derive(Debug)]
enum What {
    Command,
    Patch,
    Questions,
    Form(Form),
}

/// What a server of tools asks.
#[derive(Debug)]
struct Form {
    server: String,
    /// What is to be filled in; none where a yes is all.
    schema: Option<Box<RawValue>>,
}

/// The parts of a server's question that we show.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    #[serde(alias = "requestedSchema")]
    requested_schema: Option<Box<RawValue>>,
    message: Option<String>,
    url: Option<String>,
}

impl Asked {
    /// Whether a no can stop the task by itself.
    pub(super) fn stops(&self) -> bool {
        matches!(self.what, What::Command | What::Patch)
    }

    /// What is submitted as the answer, or why it is none.
    pub(super) fn answer(&self, answer: &Answer) -> Result<Op<'static>, String> {
        let id = Str::Owned(self.id.clone());
        let is_patch = match &self.what {
            What::Form(form) => return form.answer(&self.id, answer),
            What::Questions => {
                let answers = match answer {
                    Answer::Answers { answers } => {
                        let list = |given: &Vec<_>| sqeq::AnswerList { answers: given.clone() };
                        answers.iter().map(|(id, given)| (id.clone(), list(given))).collect()
                    }
                    _ => Default::default(),
                };
                let response = Some(sqeq::Answers { answers });
                return Ok(Op::UserInputAnswer(sqeq::UserInputAnswer { id, response }));
            }
            What::Command => false,
            What::Patch => true,
        };
        let decision = match answer {
            Answer::Allow { input: Some(_), .. } => {
                return Err("Codex takes a yes or a no, but no changed input".to_owned());
            }
            Answer::Answers { .. } | Answer::Choose { .. } => {
                return Err("this request wants a yes or a no".to_owned());
            }
            Answer::Allow { scope: Scope::Once, .. } => Decision::Approved,
            Answer::Allow { .. } => Decision::ApprovedForSession,
            Answer::Deny { stop: false, .. } => Decision::Denied,
            Answer::Deny { stop: true, .. } => Decision::Abort,
        };
        Ok(match is_patch {
            true => Op::PatchApproval(sqeq::PatchApproval { id, decision }),
            false => Op::ExecApproval(sqeq::ExecApproval { id, decision, turn_id: None }),
        })
    }
}

impl Form {
    fn answer(&self, id: &str, answer: &Answer) -> Result<Op<'static>, String> {
        let nothing = || serde_json::json!({});
        let (decision, content) = match (answer, self.schema.as_deref()) {
            (Answer::Answers { answers }, Some(schema)) => {
                ("accept", Some(form::fill(schema, answers)))
            }
            (Answer::Allow { input: None, .. }, None) => ("accept", Some(nothing())),
            (Answer::Deny { stop: true, .. }, _) => ("cancel", None),
            (Answer::Deny { .. }, _) => ("decline", None),
            (_, Some(_)) => return Err("this request wants answers, or a no".to_owned()),
            (_, None) => return Err("this request wants a yes or a no".to_owned()),
        };
        let request_id = RawValue::from_string(id.to_owned()).map(Raw::Owned);
        Ok(Op::ResolveElicitation(sqeq::ResolveElicitation {
            server_name: Str::Owned(self.server.clone()),
            request_id: request_id.unwrap_or_default(),
            decision: decision.into(),
            content: content.and_then(|content| Raw::of(&content).ok()),
            ..sqeq::ResolveElicitation::default()
        }))
    }
}

/// What an engine of tieline says of a request besides: how far a yes reaches, and why it asks.
fn besides(it: Option<&sqeq::Besides<'_>>) -> Approval {
    let Some(it) = it else { return Approval::default() };
    let held = match it.held.as_deref() {
        Some("read-only") => Some(Held::ReadOnly),
        Some("workspace-write") => Some(Held::WorkspaceWrite),
        Some("nothing") => Some(Held::Nothing),
        _ => None,
    };
    let is_retry = it.retry == Some(true);
    Approval {
        bounds: Bounds { held, network: it.network, is_retry, ..Bounds::default() }.into(),
        why: it.why.as_deref().map(str::to_owned),
        ..Approval::default()
    }
}

/// The agent's own words. The reason for people has ours in it too, where they come apart as well.
fn said<'a>(reason: Option<&'a str>, it: Option<&'a sqeq::Besides<'_>>) -> Option<&'a str> {
    match it {
        Some(it) => it.said.as_deref(),
        None => reason,
    }
}

impl ProtoDriver {
    /// The id by which the agent finds an approval. The one place that knows.
    fn approval_id(&self, submission: &str, call: &str, own: Option<&str>) -> String {
        let id = match self.version < FIRST_BY_CALL || call.is_empty() {
            true => submission,
            false => own.unwrap_or(call),
        };
        id.to_owned()
    }

    pub(super) fn exec_approval(
        &mut self,
        submission: &str,
        it: &sqeq::ExecApprovalRequest<'_>,
        ledger: &mut Ledger,
    ) {
        let body = command(&it.command, Some(&it.cwd), it.parsed_cmd.as_deref());
        let line = match &body {
            ItemBody::Command { command, .. } => command.clone(),
            _ => String::new(),
        };
        let item = self.call_begins(&it.call_id, body, ledger);
        let rule = it.proposed_execpolicy_amendment.as_deref();
        let approval = Approval {
            tool: "command".to_owned(),
            command: Some(line.clone()),
            cwd: Some(it.cwd.to_string()).filter(|cwd| !cwd.is_empty()),
            suggestions: rule.map(Json::from_raw).into_iter().collect(),
            ..besides(it.tieline.as_ref())
        };
        let title = format!("Run {}", first_line(&line));
        let id = self.approval_id(submission, &it.call_id, it.approval_id.as_deref());
        let asked = Asked { id, call: it.call_id.to_string(), what: What::Command };
        let body = RequestBody::Approval(approval);
        let reason = said(it.reason.as_deref(), it.tieline.as_ref());
        self.ask(asked, Some(item), title, reason, body, ledger);
    }

    pub(super) fn patch_approval(
        &mut self,
        submission: &str,
        it: &sqeq::ApplyPatchApprovalRequest<'_>,
        ledger: &mut Ledger,
    ) {
        let changes = file_changes(&it.changes);
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        let title = match paths.as_slice() {
            [path] => format!("Change {path}"),
            paths => format!("Change {} files", paths.len()),
        };
        let approval = Approval {
            tool: "patch".to_owned(),
            path: paths.first().copied().map(str::to_owned),
            changes: changes.clone(),
            ..besides(it.tieline.as_ref())
        };
        let opens = it.grant_root.as_deref().map(str::to_owned);
        let bounds = Box::new(Bounds { opens, ..*approval.bounds });
        let approval = Approval { bounds, ..approval };
        let item = self.call_begins(&it.call_id, ItemBody::FileChange { changes }, ledger);
        let id = self.approval_id(submission, &it.call_id, None);
        let asked = Asked { id, call: it.call_id.to_string(), what: What::Patch };
        let body = RequestBody::Approval(approval);
        let reason = said(it.reason.as_deref(), it.tieline.as_ref());
        self.ask(asked, Some(item), title, reason, body, ledger);
    }

    pub(super) fn user_input(
        &mut self,
        submission: &str,
        it: &sqeq::RequestUserInput<'_>,
        ledger: &mut Ledger,
    ) {
        let option = |option: &sqeq::QuestionOption<'_>| QuestionOption {
            label: option.label.to_string(),
            description: Some(option.description.to_string()).filter(|text| !text.is_empty()),
            value: option.value.as_ref().map(ToString::to_string),
        };
        let question = |question: &sqeq::Question<'_>| {
            let options = question.options.as_deref().unwrap_or_default();
            Question {
                id: question.id.to_string(),
                header: Some(question.header.to_string()).filter(|text| !text.is_empty()),
                text: question.question.to_string(),
                options: options.iter().map(option).collect(),
                multiple: false,
                free_text: question.is_other || options.is_empty(),
                secret: question.is_secret,
            }
        };
        let title = it.questions.first().map(|question| first_line(&question.question));
        let questions = it.questions.iter().map(question).collect();
        // In every version it is the turn that the answer names.
        let id = it.turn_id.as_deref().unwrap_or(submission).to_owned();
        let asked = Asked { id, call: it.call_id.to_string(), what: What::Questions };
        let body = RequestBody::Question { questions };
        self.ask(asked, None, title.unwrap_or_default(), None, body, ledger);
    }

    fn ask(
        &mut self,
        asked: Asked,
        item: Option<ItemId>,
        title: String,
        reason: Option<&str>,
        body: RequestBody,
        ledger: &mut Ledger,
    ) {
        let options = match &body {
            RequestBody::Approval(_) if matches!(asked.what, What::Form(_)) => {
                vec![allow(), deny(), stop()]
            }
            RequestBody::Approval(_) => vec![allow(), allow_session(), deny(), stop()],
            _ => Vec::new(),
        };
        let id = match ledger.frame() {
            Some(frame) => RequestId::new(format!("r{frame}")),
            None => RequestId::new(format!("r:{}", asked.call)),
        };
        let native = Native { request: Some(asked.id.clone()), ..Native::default() };
        let reason = reason.map(str::to_owned);
        let request = Request { id: id.clone(), item, title, reason, body, options };
        self.asked.insert(id, asked);
        ledger.open_request(Meta { parent: None, native }, request);
    }

    /// What was said no to is over; the agent tells nothing about it.
    pub(super) fn refused(&mut self, asked: &Asked, status: ItemStatus, ledger: &mut Ledger) {
        if let Some(body) = self.call_body(&asked.call, ledger) {
            self.call_ends(&asked.call, status, body, ledger);
        }
    }

    /// A server of tools asks: a form to fill in, or a yes.
    pub(super) fn elicitation(&mut self, it: &sqeq::ElicitationRequest<'_>, ledger: &mut Ledger) {
        let server = it.server_name.to_string();
        let wanted: Wanted = it.request.as_ref().and_then(Raw::read).unwrap_or_default();
        let message = it.message.as_deref().or(wanted.message.as_deref()).unwrap_or_default();
        let questions = |schema: &RawValue| form::questions_of(message, schema);
        let questions = wanted.requested_schema.as_deref().map(questions).unwrap_or_default();
        let schema = wanted.requested_schema.filter(|_| !questions.is_empty());
        let body = match questions.is_empty() {
            false => RequestBody::Question { questions },
            true => RequestBody::Approval(Approval {
                tool: server.clone(),
                why: Some(by_server(&server)),
                ..Approval::default()
            }),
        };
        let title = match first_line(message) {
            line if line.is_empty() => format!("{server} asks something"),
            line => line,
        };
        // Nobody says yes to what they were not shown.
        let mut reason = format!("asked by the MCP server {server}");
        if title != message {
            reason = format!("{message}\n{reason}");
        }
        if let Some(url) = &wanted.url {
            reason = format!("{reason}, at {url}");
        }
        let id = it.id.get().to_owned();
        let what = What::Form(Form { server, schema });
        let asked = Asked { id, call: String::new(), what };
        if ledger.current_turn().is_none() {
            // Nobody is there who would see it.
            let text = format!("{title}: {reason} between two turns; declined");
            ledger.notice(NoticeLevel::Warning, "request_refused", first_line(&text));
            if let Ok(op) = asked.answer(&Answer::deny("no turn is running")) {
                self.submit(op, ledger);
            }
            return;
        }
        self.ask(asked, None, title, Some(&reason), body, ledger);
    }

    /// We offer no tools of our own.
    pub(super) fn refuse_tool(
        &mut self,
        it: &sqeq::DynamicToolCallRequest<'_>,
        ledger: &mut Ledger,
    ) {
        let text = format!("the agent wanted the tool {:?}, which there is not", &*it.tool);
        ledger.notice(NoticeLevel::Warning, "request_refused", text.as_str());
        let said = serde_json::json!({"type": "inputText", "text": "there is no such tool"});
        let content_items = Raw::of(&said).into_iter().collect();
        let response = sqeq::DynamicToolOutput { content_items, success: false };
        let id = it.call_id.clone();
        self.submit(Op::DynamicToolResponse(sqeq::DynamicToolResponse { id, response }), ledger);
    }

    /// The policy is what the user chose; more is not given on the way.
    pub(super) fn refuse_permissions(
        &mut self,
        it: &sqeq::RequestPermissions<'_>,
        ledger: &mut Ledger,
    ) {
        let why = it.reason.as_deref().unwrap_or("no reason given");
        let text = format!("the agent wanted further permissions ({why}); refused");
        ledger.notice(NoticeLevel::Warning, "request_refused", first_line(&text));
        self.refuse_permission(&it.call_id, ledger);
    }

    fn refuse_permission(&mut self, call: &str, ledger: &mut Ledger) {
        let none = serde_json::json!({"permissions": {}, "scope": "turn"});
        let response = Raw::of(&none).unwrap_or_default();
        let id = Str::Borrowed(call);
        self.submit(Op::RequestPermissionsResponse(sqeq::Response { id, response }), ledger);
    }

    /// A question that cannot be read, or that comes after its turn, is answered all the same: an
    /// open one stalls the task.
    pub(super) fn refuse_unread(&mut self, sniffed: &Sniffed, ledger: &mut Ledger) {
        let call = sniffed.call_id.clone().unwrap_or_default();
        let what = match sniffed.kind.as_str() {
            "exec_approval_request" => What::Command,
            "apply_patch_approval_request" => What::Patch,
            "request_user_input" => What::Questions,
            "request_permissions" => return self.refuse_permission(&call, ledger),
            _ => return,
        };
        let id = match &what {
            What::Questions => sniffed.id.clone(),
            _ => self.approval_id(&sniffed.id, &call, None),
        };
        let asked = Asked { id, call, what };
        if let Ok(op) = asked.answer(&Answer::deny("not understood")) {
            self.submit(op, ledger);
        }
    }
}
