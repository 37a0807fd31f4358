//! What the events of the queue protocol mean, for the two wires of Codex that have them: `codex
//! proto` and, up to 0.42, `codex exec`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tieline_event::{
    Content, ItemBody, ItemStatus, Json, ModelInfo, Plan, PlanEntry, Report, SavedPrompt,
    ServerTool, SkillInfo, SkillsAt, Text, ToolClass, Usage,
};
use tieline_wire::codex::Tokens;
use tieline_wire::sqeq::{self, Changes, EventMsg};
use tieline_wire::text::Str;

use crate::codex::{bare_words, content, file_changes, gist, plan_status, search_query, usage};
use crate::words::first_line;

/// A call that began, changed or is over.
pub(crate) struct Call<'a> {
    /// The agent's id.
    pub(crate) id: &'a str,
    /// How far it is.
    pub(crate) status: ItemStatus,
    /// What it is.
    pub(crate) body: ItemBody,
    /// Why a patch failed; its item has no place for that.
    pub(crate) trouble: Option<String>,
}

/// The call an event tells of, if it does. `begun` gives what is known of one that is open.
pub(crate) fn call<'a>(
    event: &'a EventMsg<'_>,
    begun: impl FnOnce(&str) -> Option<ItemBody>,
) -> Option<Call<'a>> {
    let mut trouble = None;
    let (id, status, body) = match event {
        EventMsg::ExecCommandBegin(it) => {
            let body = command(&it.command, Some(&it.cwd), Some(&it.parsed_cmd));
            (&it.call_id, ItemStatus::InProgress, body)
        }
        EventMsg::ExecCommandEnd(it) => {
            let status = ended(it.status.as_deref(), it.exit_code == 0);
            (&it.call_id, status, command_end(it, begun(&it.call_id)))
        }
        EventMsg::PatchApplyBegin(it) => (&it.call_id, ItemStatus::InProgress, patch(&it.changes)),
        EventMsg::PatchApplyUpdated(it) => {
            (&it.call_id, ItemStatus::InProgress, patch(&it.changes))
        }
        EventMsg::PatchApplyEnd(it) => {
            let status = ended(it.status.as_deref(), it.success);
            if status == ItemStatus::Failed && !it.stderr.is_empty() {
                trouble = Some(first_line(&it.stderr));
            }
            let told = it.changes.as_ref().filter(|changes| !changes.files.is_empty());
            let body = told.map(patch).or_else(|| begun(&it.call_id));
            (&it.call_id, status, body.unwrap_or_else(|| patch(&Changes::default())))
        }
        EventMsg::McpToolCallBegin(it) => {
            (&it.call_id, ItemStatus::InProgress, mcp(&it.invocation, Vec::new()))
        }
        EventMsg::McpToolCallEnd(it) => {
            let (status, output) = match &it.result {
                sqeq::McpResult::Ok(given) => (
                    ended(None, given.is_error != Some(true)),
                    given.content.iter().map(|piece| content(piece)).collect(),
                ),
                sqeq::McpResult::Err(why) => (ItemStatus::Failed, vec![Content::text(&**why)]),
            };
            (&it.call_id, status, mcp(&it.invocation, output))
        }
        EventMsg::WebSearchBegin(it) => {
            let body = ItemBody::WebSearch { query: String::new(), output: Vec::new() };
            (&it.call_id, ItemStatus::InProgress, body)
        }
        EventMsg::WebSearchEnd(it) => {
            let query = search_query(&it.query, it.action.as_deref());
            (&it.call_id, ItemStatus::Ok, ItemBody::WebSearch { query, output: Vec::new() })
        }
        EventMsg::ViewImageToolCall(it) => {
            let content = Content::Link { uri: it.path.to_string(), name: None };
            (&it.call_id, ItemStatus::Ok, ItemBody::Image { content })
        }
        _ => return None,
    };
    Some(Call { id, status, body, trouble })
}

/// A command that printed nothing yet.
pub(crate) fn command(
    words: &[Str<'_>],
    cwd: Option<&str>,
    actions: Option<&RawValue>,
) -> ItemBody {
    let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
    ItemBody::Command {
        command: bare_words(&words),
        cwd: cwd.filter(|cwd| !cwd.is_empty()).map(str::to_owned),
        description: None,
        output: Text::default(),
        exit_code: None,
        background: false,
        gist: gist(actions),
    }
}

fn command_end(it: &sqeq::ExecCommandEnd<'_>, begun: Option<ItemBody>) -> ItemBody {
    let mut body = begun.unwrap_or_else(|| {
        let words = it.command.as_deref().unwrap_or_default();
        command(words, it.cwd.as_deref(), it.parsed_cmd.as_deref())
    });
    // Else it is a patch that was applied by a command.
    if let ItemBody::Command { output, exit_code, .. } = &mut body {
        *output = match it.aggregated_output.is_empty() {
            false => (&*it.aggregated_output).into(),
            // Before 0.24 or so the two streams come apart only.
            true => format!("{}{}", &*it.stdout, &*it.stderr).into(),
        };
        *exit_code = Some(it.exit_code);
    }
    body
}

fn patch(changes: &Changes<'_>) -> ItemBody {
    ItemBody::FileChange { changes: file_changes(changes) }
}

fn mcp(invocation: &sqeq::McpInvocation<'_>, output: Vec<Content>) -> ItemBody {
    ItemBody::ToolCall {
        class: ToolClass::Mcp,
        tool: invocation.tool.to_string(),
        server: Some(invocation.server.to_string()),
        title: None,
        input: invocation.arguments.as_deref().map(Json::from_raw),
        output,
        gist: None,
    }
}

/// How something ended: its own word, else whether it worked.
fn ended(word: Option<&str>, worked: bool) -> ItemStatus {
    match word {
        Some("declined") => ItemStatus::Declined,
        _ if worked => ItemStatus::Ok,
        _ => ItemStatus::Failed,
    }
}

/// The list of steps.
pub(crate) fn plan(it: &sqeq::PlanUpdate<'_>) -> Plan {
    let entry = |step: &sqeq::PlanStep<'_>| PlanEntry {
        text: step.step.to_string(),
        status: plan_status(&step.status),
    };
    Plan {
        entries: it.plan.iter().map(entry).collect(),
        explanation: it.explanation.as_deref().map(str::to_owned),
    }
}

/// Tokens as the provider counts them.
pub(crate) fn tokens(told: &sqeq::TokenUsage, context_window: Option<u64>) -> Usage {
    let tokens = Tokens {
        input_tokens: told.input_tokens,
        cached_input_tokens: told.cached_input_tokens,
        cache_write_input_tokens: 0,
        output_tokens: told.output_tokens,
        reasoning_output_tokens: told.reasoning_output_tokens,
        total_tokens: told.total_tokens,
    };
    usage(tokens, context_window)
}

/// What was used since the session, or the process, began.
pub(crate) fn total(info: &sqeq::TokenInfo, context_window: Option<u64>) -> Usage {
    let held = info.last_token_usage.total_tokens;
    let total = tokens(&info.total_token_usage, context_window);
    Usage { context_used: (held > 0).then_some(held), ..total }
}

/// The skills there are.
pub(crate) fn skills(it: &sqeq::ListSkillsResponse<'_>) -> Report {
    let skill = |skill: &sqeq::Skill<'_>| SkillInfo {
        name: skill.name.to_string(),
        description: skill.description.to_string(),
        short_description: skill.short_description.as_deref().map(str::to_owned),
        path: skill.path.to_string(),
        scope: skill.scope.to_string(),
        enabled: skill.enabled,
    };
    let error = |it: &sqeq::SkillError<'_>| (it.path.to_string(), it.message.to_string());
    let at = |at: &sqeq::SkillsOf<'_>| SkillsAt {
        dir: at.cwd.to_string(),
        skills: at.skills.iter().map(skill).collect(),
        errors: at.errors.iter().map(error).collect(),
    };
    Report::Skills(it.skills.iter().map(at).collect())
}

/// The prompts there are.
pub(crate) fn prompts(it: &sqeq::ListCustomPromptsResponse<'_>) -> Report {
    let prompt = |it: &sqeq::CustomPrompt<'_>| SavedPrompt {
        name: it.name.to_string(),
        path: it.path.to_string(),
        content: it.content.to_string(),
        description: it.description.as_deref().map(str::to_owned),
        argument_hint: it.argument_hint.as_deref().map(str::to_owned),
    };
    Report::Prompts(it.custom_prompts.iter().map(prompt).collect())
}

/// The models there are.
pub(crate) fn models(it: &sqeq::ListModelsResponse<'_>) -> Report {
    let model = |it: &sqeq::Model<'_>| ModelInfo {
        id: it.model.to_string(),
        name: it.display_name.to_string(),
        description: it.description.as_deref().map(str::to_owned),
    };
    Report::Models(it.models.iter().map(model).collect())
}

/// The tools of servers, which are told by their full names: `mcp__server__tool`.
pub(crate) fn tools(it: &sqeq::McpListToolsResponse<'_>) -> Report {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tool {
        name: String,
        #[serde(default)]
        description: Option<String>,
        #[serde(default)]
        input_schema: Box<RawValue>,
    }
    let told: BTreeMap<String, Tool> = it.tools.read().unwrap_or_default();
    let tool = |(full, tool): (String, Tool)| ServerTool {
        server: full.split("__").nth(1).unwrap_or_default().to_owned(),
        name: tool.name,
        description: tool.description,
        input_schema: Json::from_raw(&tool.input_schema),
    };
    Report::Tools(told.into_iter().map(tool).collect())
}
