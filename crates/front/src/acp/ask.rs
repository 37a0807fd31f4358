//! What the agent asks, in the client's form, and the client's answers in ours.
//!
//! An approval is a permission request with the options the agent understands. Questions are a form
//! where the client shows forms, else one permission request after the other. What neither can carry
//! is left to a rule.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tieline_event::{
    Answer, Choice, ChoiceKind, Mode, Question, Request, RequestBody, RequestId, Scope,
};
use tieline_wire::acp::CANCELLED;
use tieline_wire::acp::schema::{
    Meta, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ToolCallUpdate,
};
use tieline_wire::jsonrpc::ErrorObject;

use super::call::visible_text;
use crate::review::{label, sentence};
use crate::visible;

#[cfg(test)]
mod tests;

/// A request that the client is asked about.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: RequestId,
    form: Form,
    /// The call it is about, for the next question.
    call: ToolCallUpdate,
}

#[derive(Debug)]
enum Form {
    /// Each option with what it means.
    Options(Vec<(String, Answer)>),
    /// One question after the other, and what was answered so far.
    OneByOne { questions: Vec<Question>, answers: BTreeMap<String, Vec<String>> },
    /// All at once.
    Together(Vec<Question>),
}

/// What to do with a request.
#[derive(Debug)]
pub(super) enum Plan {
    /// Ask the client this, and give what it answers to [`Asked::answered`].
    Ask(&'static str, Value, Box<Asked>),
    /// Nobody can be asked.
    Rule,
}

/// What an answer of the client means.
#[derive(Debug)]
pub(super) enum Next {
    /// It answers the request.
    Answer(Answer),
    /// There is one more question.
    Ask(&'static str, Value, Box<Asked>),
    /// The client cannot be asked after all.
    Rule,
}

/// The option that leaves a question unanswered.
const SKIP: &str = "skip";

/// The field for an answer of one's own.
const OTHER: &str = "_other";

/// How to ask the client.
pub(super) fn plan(session: &str, request: &Request, call: ToolCallUpdate, forms: bool) -> Plan {
    match &request.body {
        RequestBody::Approval(_) => {
            let options: Vec<(PermissionOption, Answer)> =
                request.options.iter().map(|choice| (option(choice), meaning(choice))).collect();
            permission(session, request, call, options)
        }
        RequestBody::ExitPlan { .. } => {
            let allow = |mode: Mode, id: &'static str, name: &str, kind| {
                let answer = Answer::Allow { scope: Scope::Once, input: None, mode: Some(mode) };
                (PermissionOption::new(id, name, kind), answer)
            };
            let mut options = vec![
                allow(
                    Mode::AcceptEdits,
                    "acceptEdits",
                    "Yes, and accept edits",
                    PermissionOptionKind::AllowAlways,
                ),
                allow(
                    Mode::Default,
                    "default",
                    "Yes, and ask before each change",
                    PermissionOptionKind::AllowOnce,
                ),
            ];
            let no = |choice: &&Choice| {
                matches!(choice.kind, ChoiceKind::Deny | ChoiceKind::DenyAndStop)
            };
            let no = request.options.iter().filter(no);
            options.extend(no.map(|choice| (option(choice), meaning(choice))));
            permission(session, request, call, options)
        }
        RequestBody::Question { questions } if forms => {
            let params = form(session, request, questions, &call);
            let form = Form::Together(questions.clone());
            let asked = Asked { request: request.id.clone(), form, call };
            Plan::Ask("elicitation/create", params, Box::new(asked))
        }
        RequestBody::Question { questions } => {
            // A question without options has no place among options.
            if questions.is_empty() || questions.iter().any(|it| it.options.is_empty()) {
                return Plan::Rule;
            }
            let form = Form::OneByOne { questions: questions.clone(), answers: BTreeMap::new() };
            let asked = Asked { request: request.id.clone(), form, call };
            match asked.next_question(session) {
                Some(params) => Plan::Ask("session/request_permission", params, Box::new(asked)),
                None => Plan::Rule,
            }
        }
    }
}

fn permission(
    session: &str,
    request: &Request,
    call: ToolCallUpdate,
    options: Vec<(PermissionOption, Answer)>,
) -> Plan {
    let meanings =
        options.iter().map(|(it, answer)| (it.option_id.0.to_string(), answer.clone())).collect();
    let options: Vec<PermissionOption> = options.into_iter().map(|(option, _)| option).collect();
    let ask = RequestPermissionRequest::new(session.to_owned(), call.clone(), options);
    let asked = Asked { request: request.id.clone(), form: Form::Options(meanings), call };
    match serde_json::to_value(&ask) {
        Ok(mut params) => {
            // What another tieline wants to know of it.
            let mut meta = json!({"title": visible::line(&request.title)});
            let reason = match &request.body {
                RequestBody::Approval(it) => sentence(it, request.reason.as_deref()),
                _ => request.reason.clone(),
            };
            if let Some(reason) = reason {
                meta["reason"] = json!(visible_text(&reason));
            }
            if let RequestBody::Approval(approval) = &request.body {
                meta["tool"] = json!(visible::line(&approval.tool));
            }
            params["_meta"] = json!({ "tieline": meta });
            Plan::Ask("session/request_permission", params, Box::new(asked))
        }
        Err(error) => {
            tracing::error!(%error, "a permission request cannot be written");
            Plan::Rule
        }
    }
}

impl Asked {
    /// Whether it wants to know something; else it wants leave.
    pub(super) fn is_question(&self) -> bool {
        !matches!(self.form, Form::Options(_))
    }

    /// The client answered.
    pub(super) fn answered(mut self, session: &str, outcome: Result<&Value, &ErrorObject>) -> Next {
        let result = match outcome {
            Ok(result) => result,
            // Whoever was asked waved it away.
            Err(error) if error.code == CANCELLED => {
                return Next::Answer(Answer::Deny { message: None, stop: true });
            }
            Err(error) => {
                tracing::warn!(code = error.code, message = %error.message, "the client did not ask");
                return Next::Rule;
            }
        };
        if let Form::Together(questions) = &self.form {
            return filled(questions, result);
        }
        let chosen = match serde_json::from_value::<RequestPermissionResponse>(result.clone()) {
            Ok(RequestPermissionResponse {
                outcome: RequestPermissionOutcome::Selected(chosen),
                ..
            }) => chosen.option_id.0.to_string(),
            Ok(_) => return Next::Answer(Answer::Deny { message: None, stop: true }),
            // Somebody was asked, so no rule may turn it into a yes.
            Err(error) => {
                tracing::warn!(%error, "the client's answer is not understood");
                return Next::Answer(Answer::Deny { message: None, stop: false });
            }
        };
        match &mut self.form {
            Form::Options(options) => match options.iter().find(|(id, _)| *id == chosen) {
                Some((_, answer)) => Next::Answer(answer.clone()),
                None => {
                    tracing::warn!(%chosen, "the client chose what was not offered");
                    Next::Answer(Answer::Deny { message: None, stop: false })
                }
            },
            Form::OneByOne { questions, answers } => {
                let Some(question) = questions.get(answers.len()) else { return Next::Rule };
                let label = chosen.parse().ok().and_then(|at: usize| question.options.get(at));
                let Some(label) = label else {
                    return Next::Answer(Answer::deny("The user did not answer."));
                };
                answers.insert(question.id.clone(), vec![label.label.clone()]);
                match self.next_question(session) {
                    Some(params) => Next::Ask("session/request_permission", params, Box::new(self)),
                    None => match self.form {
                        Form::OneByOne { answers, .. } => Next::Answer(Answer::Answers { answers }),
                        _ => Next::Rule,
                    },
                }
            }
            Form::Together(_) => Next::Rule,
        }
    }

    fn next_question(&self, session: &str) -> Option<Value> {
        let Form::OneByOne { questions, answers } = &self.form else { return None };
        let question = questions.get(answers.len())?;
        let option = |(at, option): (usize, &tieline_event::QuestionOption)| {
            let name = match &option.description {
                Some(about) => format!("{} — {about}", option.label),
                None => option.label.clone(),
            };
            let name = visible::line(&name);
            PermissionOption::new(at.to_string(), name, PermissionOptionKind::AllowOnce)
        };
        let mut options: Vec<_> = question.options.iter().enumerate().map(option).collect();
        options.push(PermissionOption::new(SKIP, "Skip", PermissionOptionKind::RejectOnce));
        let mut call = self.call.clone();
        call.fields.title = Some(visible_text(&question.text));
        let ask = RequestPermissionRequest::new(session.to_owned(), call, options);
        serde_json::to_value(&ask).ok()
    }
}

fn option(choice: &Choice) -> PermissionOption {
    let kind = match choice.kind {
        ChoiceKind::AllowOnce => PermissionOptionKind::AllowOnce,
        ChoiceKind::AllowSession | ChoiceKind::AllowAlways => PermissionOptionKind::AllowAlways,
        ChoiceKind::Deny | ChoiceKind::DenyAndStop => PermissionOptionKind::RejectOnce,
    };
    let meta = Meta::from_iter([("tieline".to_owned(), json!({"kind": choice.kind}))]);
    PermissionOption::new(choice.id.clone(), label(choice), kind).meta(meta)
}

fn meaning(choice: &Choice) -> Answer {
    Answer::Choose { option: choice.id.clone() }
}

/// The parameters of a form with a field for each question, and one more for an answer of one's own
/// where the question takes such.
fn form(session: &str, request: &Request, questions: &[Question], call: &ToolCallUpdate) -> Value {
    let mut properties = Map::new();
    for (at, question) in questions.iter().enumerate() {
        let options: Vec<Value> = question
            .options
            .iter()
            .map(|it| {
                let mut option = json!({"const": it.label, "title": visible::line(&it.label)});
                if let Some(about) = &it.description {
                    option["description"] = json!(visible_text(about));
                }
                option
            })
            .collect();
        let mut field = match (options.is_empty(), question.multiple) {
            (true, _) => json!({"type": "string"}),
            (false, false) => json!({"type": "string", "oneOf": options}),
            (false, true) => json!({"type": "array", "items": {"anyOf": options}}),
        };
        let head = visible_text(question.header.as_ref().unwrap_or(&question.text));
        field["title"] = json!(head);
        field["description"] = json!(visible_text(&question.text));
        let name = field_name(at);
        if question.free_text && !question.options.is_empty() {
            let title = format!("Other: {head}");
            let other = json!({"type": "string", "title": title});
            properties.insert(name.clone(), field);
            properties.insert(format!("{name}{OTHER}"), other);
        } else {
            properties.insert(name, field);
        }
    }
    let message = match questions {
        [one] => visible_text(&one.text),
        _ => visible_text(&request.title),
    };
    json!({
        "sessionId": session,
        "toolCallId": call.tool_call_id.0,
        "mode": "form",
        "message": message,
        "requestedSchema": {"type": "object", "properties": properties},
    })
}

fn field_name(at: usize) -> String {
    format!("question{}", at + 1)
}

/// What the client filled in.
fn filled(questions: &[Question], result: &Value) -> Next {
    match result.get("action").and_then(Value::as_str) {
        Some("accept") => {}
        Some("decline") => return Next::Answer(Answer::deny("The user did not answer.")),
        Some("cancel") => return Next::Answer(Answer::Deny { message: None, stop: true }),
        _ => return Next::Rule,
    }
    let empty = Map::new();
    let content = result.get("content").and_then(Value::as_object).unwrap_or(&empty);
    let mut answers = BTreeMap::new();
    for (at, question) in questions.iter().enumerate() {
        let name = field_name(at);
        let own = content.get(&format!("{name}{OTHER}")).and_then(Value::as_str);
        let own = own.filter(|own| !own.trim().is_empty());
        let given = match (own, content.get(&name)) {
            (Some(own), _) => vec![own.to_owned()],
            (None, Some(Value::String(text))) => vec![text.clone()],
            (None, Some(Value::Array(several))) => {
                several.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            (None, Some(Value::Null) | None) => continue,
            (None, Some(other)) => vec![other.to_string()],
        };
        answers.insert(question.id.clone(), given);
    }
    match answers.is_empty() {
        true => Next::Answer(Answer::deny("The user did not answer.")),
        false => Next::Answer(Answer::Answers { answers }),
    }
}
