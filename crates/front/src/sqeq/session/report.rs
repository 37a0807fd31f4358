//! What was asked about and is told.

use std::collections::BTreeMap;

use serde_json::json;
use tieline_event::{Inquiry, ModelInfo, Report, SavedPrompt, ServerTool, SkillInfo, SkillsAt};
use tieline_hub::{Error, TypedLine};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    CustomPrompt, EventMsg, GetHistoryEntryResponse, ListCustomPromptsResponse, ListModelsResponse,
    ListSkillsResponse, McpListToolsResponse, Model, Skill, SkillError, SkillsOf,
};
use tieline_wire::text::Str;

use super::Session;

impl Session {
    pub(super) fn recalled(
        &mut self,
        id: &str,
        offset: u64,
        log_id: u64,
        line: Result<Option<TypedLine>, Error>,
    ) {
        let line = line.unwrap_or_else(|error| {
            self.warn(id, error.to_string());
            None
        });
        let entry = line.map(|line| {
            let ts = line.ts.as_millis() / 1000;
            json!({"conversation_id": line.conversation, "ts": ts, "text": line.text})
        });
        let entry = entry.and_then(|entry| Raw::of(&entry).ok());
        let response = GetHistoryEntryResponse { offset, log_id, entry };
        self.out.tell(id, EventMsg::GetHistoryEntryResponse(response));
    }

    /// What the agent told about itself. One that does not tell has nothing, so that nobody waits.
    pub(super) fn report(&mut self, id: &str, inquiry: &Inquiry, report: Result<Report, Error>) {
        let report = report.unwrap_or_else(|error| {
            self.warn(id, error.to_string());
            match inquiry {
                Inquiry::Skills { .. } => Report::Skills(Vec::new()),
                Inquiry::Prompts => Report::Prompts(Vec::new()),
                Inquiry::Tools => Report::Tools(Vec::new()),
                Inquiry::Models => Report::Models(Vec::new()),
            }
        });
        self.out.tell(id, told(report));
    }
}

fn told(report: Report) -> EventMsg<'static> {
    match report {
        Report::Skills(places) => EventMsg::ListSkillsResponse(ListSkillsResponse {
            skills: places.into_iter().map(skills_of).collect(),
        }),
        Report::Prompts(prompts) => {
            EventMsg::ListCustomPromptsResponse(ListCustomPromptsResponse {
                custom_prompts: prompts.into_iter().map(prompt).collect(),
            })
        }
        Report::Tools(tools) => {
            let tools: BTreeMap<_, _> = tools.iter().map(tool).collect();
            let none = || Raw::of(&json!({})).unwrap_or_default();
            EventMsg::McpListToolsResponse(McpListToolsResponse {
                tools: Raw::of(&tools).unwrap_or_default(),
                resources: none(),
                resource_templates: none(),
                auth_statuses: none(),
            })
        }
        Report::Models(models) => EventMsg::ListModelsResponse(ListModelsResponse {
            models: models.into_iter().map(model).collect(),
        }),
    }
}

fn skills_of(it: SkillsAt) -> SkillsOf<'static> {
    let error = |(path, message): (String, String)| SkillError {
        path: path.into(),
        message: message.into(),
    };
    SkillsOf {
        cwd: it.dir.into(),
        skills: it.skills.into_iter().map(skill).collect(),
        errors: it.errors.into_iter().map(error).collect(),
    }
}

fn skill(it: SkillInfo) -> Skill<'static> {
    Skill {
        name: it.name.into(),
        description: it.description.into(),
        path: it.path.into(),
        scope: it.scope.into(),
        enabled: it.enabled,
        short_description: it.short_description.map(Str::Owned),
        ..Skill::default()
    }
}

fn prompt(it: SavedPrompt) -> CustomPrompt<'static> {
    CustomPrompt {
        name: it.name.into(),
        path: it.path.into(),
        content: it.content.into(),
        description: it.description.map(Str::Owned),
        argument_hint: it.argument_hint.map(Str::Owned),
    }
}

/// A tool by the name under which models know it.
fn tool(it: &ServerTool) -> (String, serde_json::Value) {
    let schema: serde_json::Value = it.input_schema.read().unwrap_or_default();
    let tool = json!({"name": it.name, "description": it.description, "inputSchema": schema});
    (format!("mcp__{}__{}", it.server, it.name), tool)
}

fn model(it: ModelInfo) -> Model<'static> {
    Model {
        model: it.id.into(),
        display_name: it.name.into(),
        description: it.description.map(Str::Owned),
    }
}
