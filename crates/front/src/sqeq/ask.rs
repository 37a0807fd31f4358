//! What the agent asks, in the protocol's form, and the client's answers in ours.

use std::collections::BTreeMap;

use serde_json::json;
use tieline_event::{
    Answer, Approval, Choice, ChoiceKind, Held, Mode, Question, Request, RequestBody, RequestId,
    Scope,
};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    self, ApplyPatchApprovalRequest, Besides, ElicitationRequest, EventMsg, ExecApprovalRequest,
    RequestUserInput,
};
use tieline_wire::text::Str;

use super::Compat;
use super::change;
use super::order::{Subject, Verdict};
use super::to_sqeq::{Asking, argv, parsed};
use crate::Fetch;
use crate::review::{is_known, sentence};

#[cfg(test)]
mod tests;

/// The question whether to leave plan mode.
const PLAN: &str = "plan";

/// Its answers, and what they mean.
const PLAN_ANSWERS: [(&str, &str); 3] = [
    ("Yes, and accept edits", "The agent acts and may change files in the workspace."),
    ("Yes, and ask", "The agent acts and asks before each change."),
    ("No", "The agent goes on planning."),
];

/// Requests that the client was told of and that wait.
#[derive(Debug, Default)]
pub(super) struct Asked {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    request: RequestId,
    /// The call, as the client knows it.
    call: String,
    /// The submission that began the task.
    sub: String,
    what: What,
    options: Vec<Choice>,
}

#[derive(Debug, PartialEq)]
enum What {
    Leave(Subject),
    Questions,
    ExitPlan,
}

/// How the client is asked, and what was asked.
pub(super) struct Wording<'a> {
    pub(super) compat: Compat,
    pub(super) form: sqeq::ChangeForm,
    pub(super) sub: &'a str,
}

impl Asked {
    /// The client is to be asked this.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        asking: &Asking,
        wording: &Wording<'_>,
        fetch: &mut Fetch<'_>,
    ) -> EventMsg<'static> {
        let (what, msg) = match &request.body {
            RequestBody::Approval(approval) => leave(request, approval, asking, wording, fetch),
            RequestBody::Question { questions } => {
                let questions = questions.iter().map(question).collect();
                (What::Questions, user_input(questions, asking, wording))
            }
            RequestBody::ExitPlan { plan } => {
                let text = match plan {
                    Some(plan) => format!("Leave plan mode and do this?\n\n{plan}"),
                    None => "Leave plan mode?".to_owned(),
                };
                let option =
                    |(label, description): (&'static str, &'static str)| sqeq::QuestionOption {
                        label: label.into(),
                        description: description.into(),
                        value: None,
                    };
                let question = sqeq::Question {
                    id: PLAN.into(),
                    header: "Plan".into(),
                    question: text.into(),
                    options: Some(PLAN_ANSWERS.map(option).into()),
                    ..sqeq::Question::default()
                };
                (What::ExitPlan, user_input(vec![question], asking, wording))
            }
        };
        self.open.push(Open {
            request: request.id.clone(),
            call: asking.call.clone(),
            sub: wording.sub.to_owned(),
            what,
            options: request.options.clone(),
        });
        msg
    }

    /// A request needs no answer any more.
    pub(super) fn settled(&mut self, request: &RequestId) {
        self.open.retain(|open| open.request != *request);
    }

    /// Every request that waits.
    pub(super) fn take_all(&mut self) -> Vec<RequestId> {
        self.open.drain(..).map(|open| open.request).collect()
    }

    /// A yes or a no: by the call's id, or by the submission's as old clients have it.
    pub(super) fn decide(
        &mut self,
        id: &str,
        about: Subject,
        verdict: Verdict,
    ) -> Option<(RequestId, Answer)> {
        let is_leave = |open: &&Open| matches!(open.what, What::Leave(_));
        let is_same = |open: &&Open| open.what == What::Leave(about);
        let of_sub = |open: &&Open| open.sub == id;
        let open = self.open.iter();
        let found = open
            .clone()
            .filter(is_leave)
            .find(|open| open.call == id || open.request.as_str() == id)
            .or_else(|| open.clone().filter(of_sub).find(is_same))
            .or_else(|| open.clone().filter(of_sub).find(is_leave))?;
        let answer = answer(verdict, &found.options);
        let request = found.request.clone();
        self.settled(&request);
        Some((request, answer))
    }

    /// Answers to questions: by the turn's id, which is the submission's, or by the call's.
    pub(super) fn answer(
        &mut self,
        id: &str,
        answers: BTreeMap<String, Vec<String>>,
    ) -> Option<(RequestId, Answer)> {
        let is_question = |open: &&Open| !matches!(open.what, What::Leave(_));
        let mut questions = self.open.iter().filter(is_question);
        let found = questions.find(|open| open.sub == id || open.call == id)?;
        let nothing = || Answer::deny("The user did not answer.");
        let answer = match found.what {
            What::ExitPlan => {
                let label = answers.get(PLAN).and_then(|given| given.first());
                let chosen =
                    PLAN_ANSWERS.iter().position(|(it, _)| Some(*it) == label.map(|it| &**it));
                let allow =
                    |mode| Answer::Allow { scope: Scope::Once, input: None, mode: Some(mode) };
                match (chosen, label) {
                    (Some(0), _) => allow(Mode::AcceptEdits),
                    (Some(1), _) => allow(Mode::Default),
                    (None, Some(other)) => Answer::deny(other.clone()),
                    _ => Answer::Deny { message: None, stop: false },
                }
            }
            _ if answers.values().all(Vec::is_empty) => nothing(),
            _ => Answer::Answers { answers },
        };
        let request = found.request.clone();
        self.settled(&request);
        Some((request, answer))
    }
}

/// A request for leave. One that is about neither a command nor files is a question of a server; old
/// clients know only the first two.
fn leave(
    request: &Request,
    approval: &Approval,
    asking: &Asking,
    wording: &Wording<'_>,
    fetch: &mut Fetch<'_>,
) -> (What, EventMsg<'static>) {
    let is_seed = wording.compat == Compat::Seed;
    let reason = sentence(approval, request.reason.as_deref()).map(Str::Owned);
    let tieline = besides(approval, request.reason.as_deref());
    let turn_id = is_seed.then(|| wording.sub.to_owned().into());
    let call_id = Str::Owned(asking.call.clone());
    if asking.command.is_none() && !asking.changes.is_empty() {
        let msg = EventMsg::ApplyPatchApprovalRequest(Box::new(ApplyPatchApprovalRequest {
            call_id,
            changes: change::changes(&asking.changes, wording.form, fetch),
            reason,
            grant_root: approval.bounds.opens.clone().map(Str::Owned),
            turn_id,
            tieline,
        }));
        return (What::Leave(Subject::Patch), msg);
    }
    let command = match &asking.command {
        Some(command) => argv(command),
        None if is_seed => {
            let server = asking.server.clone().unwrap_or_else(|| "agent".to_owned());
            let message = match &request.reason {
                Some(reason) => format!("{}\n{reason}", request.title),
                None => request.title.clone(),
            };
            let msg = EventMsg::ElicitationRequest(ElicitationRequest {
                server_name: server.into(),
                id: Raw::of(&asking.call).unwrap_or_default(),
                message: Some(message.into()),
                request: None,
            });
            return (What::Leave(Subject::Server), msg);
        }
        None => {
            let input = approval.input.as_ref().or(approval.given.as_ref());
            let input = input.map(|input| input.as_str().to_owned());
            let tool = Str::Owned(approval.tool.clone());
            [Some(tool), input.or_else(|| approval.path.clone()).map(Str::Owned)]
                .into_iter()
                .flatten()
                .collect()
        }
    };
    let rule = approval.suggestions.iter().find_map(|it| it.read::<Vec<String>>().ok());
    let decisions: Vec<_> = request.options.iter().map(|it| decision(it.kind)).collect();
    let msg = EventMsg::ExecApprovalRequest(Box::new(ExecApprovalRequest {
        call_id,
        parsed_cmd: is_seed
            .then(|| parsed(asking.command.as_deref().unwrap_or(&approval.tool), None)),
        command,
        cwd: approval.cwd.clone().unwrap_or_else(|| asking.cwd.clone()).into(),
        reason,
        turn_id,
        proposed_execpolicy_amendment: rule.and_then(|it| Raw::of(&it).ok()).filter(|_| is_seed),
        approval_id: None,
        tieline,
        available_decisions: Raw::of(&decisions).ok().filter(|_| is_seed && !decisions.is_empty()),
    }));
    (What::Leave(Subject::Command), msg)
}

/// What tieline knows of a request, for programs that know of it.
fn besides(approval: &Approval, said: Option<&str>) -> Option<Besides<'static>> {
    if !is_known(approval) {
        return None;
    }
    let held = approval.bounds.held.map(|held| match held {
        Held::ReadOnly => "read-only",
        Held::WorkspaceWrite => "workspace-write",
        Held::Nothing => "nothing",
    });
    Some(Besides {
        why: approval.why.clone().map(Str::Owned),
        said: said.map(|said| said.to_owned().into()),
        held: held.map(Str::Borrowed),
        network: approval.bounds.network,
        retry: approval.bounds.is_retry.then_some(true),
    })
}

fn decision(kind: ChoiceKind) -> serde_json::Value {
    json!(match kind {
        ChoiceKind::AllowOnce => "approved",
        ChoiceKind::AllowSession => "approved_for_session",
        ChoiceKind::AllowAlways => "approved_execpolicy_amendment",
        ChoiceKind::Deny => "denied",
        ChoiceKind::DenyAndStop => "abort",
    })
}

fn user_input(
    questions: Vec<sqeq::Question<'static>>,
    asking: &Asking,
    wording: &Wording<'_>,
) -> EventMsg<'static> {
    EventMsg::RequestUserInput(RequestUserInput {
        call_id: asking.call.clone().into(),
        questions,
        turn_id: Some(wording.sub.to_owned().into()),
    })
}

fn question(it: &Question) -> sqeq::Question<'static> {
    let option = |option: &tieline_event::QuestionOption| sqeq::QuestionOption {
        label: option.label.clone().into(),
        description: option.description.clone().unwrap_or_default().into(),
        value: option.value.clone().map(Str::Owned),
    };
    sqeq::Question {
        id: it.id.clone().into(),
        header: it.header.clone().unwrap_or_default().into(),
        question: it.text.clone().into(),
        is_other: it.free_text,
        is_secret: it.secret,
        options: (!it.options.is_empty()).then(|| it.options.iter().map(option).collect()),
    }
}

/// The option that means it, or the nearest that is narrower; else the plain answer.
fn answer(verdict: Verdict, options: &[Choice]) -> Answer {
    use ChoiceKind::{AllowAlways, AllowOnce, AllowSession, Deny, DenyAndStop};
    let kinds: &[ChoiceKind] = match &verdict {
        Verdict::Yes => &[AllowOnce],
        Verdict::YesForSession => &[AllowSession, AllowOnce],
        Verdict::YesAlways => &[AllowAlways, AllowSession, AllowOnce],
        Verdict::No(None) => &[Deny],
        Verdict::No(Some(_)) => &[],
        Verdict::Stop => &[DenyAndStop],
    };
    let offered = kinds.iter().find_map(|kind| options.iter().find(|it| it.kind == *kind));
    if let Some(choice) = offered {
        return Answer::Choose { option: choice.id.clone() };
    }
    match verdict {
        Verdict::Yes => AllowOnce.answer(),
        Verdict::YesForSession => AllowSession.answer(),
        Verdict::YesAlways => AllowAlways.answer(),
        Verdict::No(message) => Answer::Deny { message, stop: false },
        Verdict::Stop => DenyAndStop.answer(),
    }
}
