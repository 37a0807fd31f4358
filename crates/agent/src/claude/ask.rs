//! What Claude Code asks, and how it is answered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tieline_event::{
    Answer, Approval, Bounds, Choice, ChoiceKind, Content, Held, ImageSource, ItemBody, ItemId,
    Json, Question, QuestionOption, Request, RequestBody, RequestId, Scope,
};
use tieline_wire::claude::ControlRequest;
use tieline_wire::claude::write::{Permission, control_success};

use super::driver::word;
use super::{setup, tool};
use crate::ledger::Ledger;
use crate::words::{allow, allow_session, choice, deny, first_line, plain, stop};

/// What is needed to answer.
#[derive(Debug)]
pub(super) struct Asked {
    /// The agent's id of the request. Ours is another, because an agent may count from one again.
    pub(super) wire_id: String,
    /// Which tool use, for versions that say so.
    pub(super) tool_use: Option<String>,
    input: Option<Box<RawValue>>,
    suggestions: Vec<Box<RawValue>>,
}

/// The request as everybody sees it, and what is needed to answer it.
pub(super) fn question(
    id: &str,
    request: &ControlRequest<'_>,
    ledger: &Ledger,
) -> (Asked, Request) {
    let suggestions: Vec<Box<RawValue>> = request
        .permission_suggestions
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let tool = request.tool_name.as_deref().unwrap_or("tool");
    // Before 2.0 the request does not say which tool use it is about: it is about the last one.
    let latest = ledger.open_items().last().map(|open| open.item.id.as_str());
    let tool_use = request.tool_use_id.as_deref().or(latest);
    let input = request.input;
    let reason = request.decision_reason.map(word).or_else(|| {
        request.blocked_path.as_deref().map(|path| format!("{path} is outside of what is allowed"))
    });
    let (title, body, options) = match (tool, input.and_then(questions)) {
        ("AskUserQuestion", Some(questions)) => {
            let title = questions.first().map(|question| question.text.clone());
            let options = vec![deny(), stop()];
            (title.unwrap_or_default(), RequestBody::Question { questions }, options)
        }
        ("ExitPlanMode", _) => {
            let plan = input.map(Json::from_raw).as_ref().and_then(tool::plan_text);
            let plan = plan.or_else(|| plan_of_item(tool_use, ledger));
            let title = "Leave plan mode and carry the plan out?".to_owned();
            (title, RequestBody::ExitPlan { plan }, vec![allow(), deny(), stop()])
        }
        _ => approval(tool, request, &suggestions),
    };
    let question = Request {
        id: match ledger.frame() {
            Some(frame) => RequestId::new(format!("r{frame}")),
            None => RequestId::from(id),
        },
        item: tool_use.filter(|id| ledger.item(id).is_some()).map(ItemId::from),
        title,
        reason,
        body,
        options,
    };
    let asked = Asked {
        wire_id: id.to_owned(),
        tool_use: tool_use.map(str::to_owned),
        input: input.map(RawValue::to_owned),
        suggestions,
    };
    (asked, question)
}

fn approval(
    tool: &str,
    request: &ControlRequest<'_>,
    suggestions: &[Box<RawValue>],
) -> (String, RequestBody, Vec<Choice>) {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Subject {
        command: Option<String>,
        file_path: Option<String>,
        notebook_path: Option<String>,
        url: Option<String>,
        #[serde(rename = "dangerouslyDisableSandbox")]
        leaves_sandbox: Option<bool>,
    }
    let subject: Subject =
        request.input.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let held = (subject.leaves_sandbox == Some(true)).then_some(Held::Nothing);
    let path = subject.file_path.or(subject.notebook_path);
    let title = match (&request.title, &subject.command, &path, &subject.url) {
        (Some(title), ..) => title.to_string(),
        (None, Some(command), ..) => format!("Run {}", first_line(command)),
        (None, None, Some(path), _) => format!("{tool} {path}"),
        (None, None, None, Some(url)) => format!("{tool} {url}"),
        (None, None, None, None) => format!("Use {tool}"),
    };
    let mut options = vec![allow()];
    if !suggestions.is_empty() {
        options.push(allow_session());
    }
    if suggestions.iter().any(|suggestion| is_lasting(suggestion)) {
        options.push(choice("always", "Yes, always", ChoiceKind::AllowAlways));
    }
    options.extend([deny(), stop()]);
    let approval = Approval {
        tool: tool.to_owned(),
        command: subject.command,
        // A command names no file, but the agent knows which one it would touch.
        path: path.or_else(|| request.blocked_path.as_deref().map(str::to_owned)),
        input: request.input.map(Json::from_raw),
        suggestions: suggestions.iter().map(|raw| Json::from_raw(raw)).collect(),
        bounds: Bounds { held, ..Bounds::default() }.into(),
        ..Approval::default()
    };
    (title, RequestBody::Approval(approval), options)
}

/// Recent versions leave the plan out of the request: it stands in the tool call before it.
fn plan_of_item(tool_use: Option<&str>, ledger: &Ledger) -> Option<String> {
    match &ledger.item(tool_use?)?.body {
        ItemBody::ToolCall { input: Some(input), .. } => tool::plan_text(input),
        _ => None,
    }
}

fn questions(input: &RawValue) -> Option<Vec<Question>> {
    #[derive(Deserialize)]
    struct Input {
        questions: Vec<Asked>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Asked {
        question: String,
        #[serde(default)]
        header: Option<String>,
        #[serde(default)]
        options: Vec<QuestionOption>,
        #[serde(default)]
        multi_select: bool,
    }
    let Input { questions } = serde_json::from_str(input.get()).ok()?;
    let question = |asked: Asked| Question {
        // The agent finds an answer by the question's text.
        id: asked.question.clone(),
        header: asked.header,
        text: asked.question,
        options: asked.options,
        multiple: asked.multi_select,
        free_text: true,
        secret: false,
    };
    Some(questions.into_iter().map(question).collect())
}

/// The line that answers.
pub(super) fn answer(asked: &Asked, answer: &Answer) -> Vec<u8> {
    let wire_id = asked.wire_id.as_str();
    match answer {
        Answer::Allow { scope, input, mode } => {
            let edited = input.as_ref().and_then(|json| {
                // An edited input that is no JSON cannot exist: `Json` holds JSON only.
                RawValue::from_string(json.as_str().to_owned()).ok()
            });
            let mut rules = rules(&asked.suggestions, *scope);
            if let Some(mode) = mode {
                let set = SetMode {
                    r#type: "setMode",
                    mode: setup::mode_name(*mode),
                    destination: "session",
                };
                rules.extend(serde_json::value::to_raw_value(&set));
            }
            let rules: Vec<&RawValue> = rules.iter().map(AsRef::as_ref).collect();
            let permission = Permission::Allow {
                updated_input: edited.as_deref().or(asked.input.as_deref()),
                updated_permissions: &rules,
            };
            control_success(wire_id, &permission)
        }
        Answer::Deny { message, stop } => {
            let message = message.as_deref().unwrap_or("The user said no.");
            control_success(wire_id, &Permission::Deny { message, interrupt: *stop })
        }
        // The session takes a choice apart before; what is not understood is no yes.
        Answer::Choose { .. } => {
            let message = "The answer was not understood.";
            control_success(wire_id, &Permission::Deny { message, interrupt: false })
        }
        Answer::Answers { answers } => {
            let input = with_answers(asked.input.as_deref(), answers);
            let permission =
                Permission::Allow { updated_input: input.as_deref(), updated_permissions: &[] };
            control_success(wire_id, &permission)
        }
    }
}

#[derive(Serialize)]
struct SetMode<'a> {
    r#type: &'a str,
    mode: &'a str,
    destination: &'a str,
}

/// The rules that make a yes last as long as it should: those the agent offers, all together. One of
/// them alone is not enough for it: a command that writes needs its rule and the directory and the
/// mode, or it asks again.
fn rules(suggestions: &[Box<RawValue>], scope: Scope) -> Vec<Box<RawValue>> {
    match scope {
        Scope::Once => Vec::new(),
        Scope::Always => suggestions.to_vec(),
        Scope::Session => suggestions.iter().filter_map(|raw| for_the_session(raw)).collect(),
    }
}

fn field(raw: &RawValue, name: &str) -> Option<String> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
    fields.get(name).map(|value| word(value))
}

fn is_lasting(suggestion: &RawValue) -> bool {
    field(suggestion, "destination").is_some_and(|destination| destination != "session")
}

fn for_the_session(suggestion: &RawValue) -> Option<Box<RawValue>> {
    let mut fields: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(suggestion.get()).ok()?;
    let session = serde_json::value::to_raw_value("session").ok()?;
    fields.insert("destination".to_owned(), session);
    serde_json::value::to_raw_value(&fields).ok()
}

/// The tool's input with `answers` in it: question to answer, several joined by commas.
fn with_answers(
    input: Option<&RawValue>,
    answers: &BTreeMap<String, Vec<String>>,
) -> Option<Box<RawValue>> {
    let answers: BTreeMap<&str, String> =
        answers.iter().map(|(question, chosen)| (question.as_str(), chosen.join(", "))).collect();
    let answers = serde_json::to_string(&answers).ok()?;
    let object = input.map_or("{}", RawValue::get).trim_end();
    let open = object.strip_suffix('}')?.trim_end();
    let comma = if open.ends_with('{') { "" } else { "," };
    RawValue::from_string(format!("{open}{comma}\"answers\":{answers}}}")).ok()
}

/// A message's pieces in the provider's form.
pub(super) fn blocks(content: &[Content]) -> Vec<serde_json::Value> {
    content.iter().map(block).collect()
}

fn block(piece: &Content) -> serde_json::Value {
    use serde_json::json;
    let text = |text: &str| json!({"type": "text", "text": text});
    match piece {
        Content::Image { mime, source } => match source {
            ImageSource::Base64(data) => json!({
                "type": "image",
                "source": {"type": "base64", "media_type": mime, "data": data.preview()},
            }),
            ImageSource::Url(url) => {
                json!({"type": "image", "source": {"type": "url", "url": url}})
            }
            ImageSource::Blob(blob) => text(&format!("[image {}]", blob.sha256)),
        },
        other => text(&plain(other, '/').unwrap_or_default()),
    }
}
