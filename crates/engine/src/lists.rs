//! Answers to questions about the engine itself.

use std::path::PathBuf;

use tieline_event::{SavedPrompt, ServerTool, SkillInfo, SkillsAt};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    CustomPrompt, EventMsg, ListCustomPromptsResponse, ListModelsResponse, ListSkillsResponse,
    McpListToolsResponse, Model, Skill, SkillError, SkillsOf,
};
use tieline_wire::text::Str;

use crate::mcp::Documents;
use crate::prompts;
use crate::shared::Shared;

/// The skills for some directories.
pub(crate) async fn skills(shared: &Shared, dirs: Vec<PathBuf>, reload: bool) -> EventMsg<'static> {
    let mut skills = Vec::new();
    for dir in dirs {
        let found = shared.skills.list(&dir, reload).await;
        let SkillsAt { dir: at, skills: found, mut errors } = (*found).clone();
        if !tokio::fs::metadata(&dir).await.is_ok_and(|it| it.is_dir()) {
            errors.push((dir.display().to_string(), "there is no such directory".to_owned()));
        }
        let dir = if at.is_empty() { dir.display().to_string() } else { at };
        skills.push(SkillsOf {
            cwd: dir.into(),
            skills: found.into_iter().map(skill).collect(),
            errors: errors
                .into_iter()
                .map(|(path, message)| SkillError { path: path.into(), message: message.into() })
                .collect(),
        });
    }
    EventMsg::ListSkillsResponse(ListSkillsResponse { skills })
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

/// The prompts the user saved.
pub(crate) async fn prompts(shared: &Shared) -> EventMsg<'static> {
    let config = shared.settings.config_dir.clone();
    let read = tokio::task::spawn_blocking(move || prompts::listed(&prompts::read_all(&config)));
    let found = read.await.unwrap_or_default();
    let prompt = |it: SavedPrompt| CustomPrompt {
        name: it.name.into(),
        path: it.path.into(),
        content: it.content.into(),
        description: it.description.map(Str::Owned),
        argument_hint: it.argument_hint.map(Str::Owned),
    };
    let custom_prompts = found.into_iter().map(prompt).collect();
    EventMsg::ListCustomPromptsResponse(ListCustomPromptsResponse { custom_prompts })
}

/// The tools of servers.
pub(crate) async fn tools(shared: &Shared) -> EventMsg<'static> {
    let tool = |it: ServerTool| {
        let value = serde_json::json!({
            "name": it.name,
            "description": it.description,
            "inputSchema": serde_json::from_str::<serde_json::Value>(it.input_schema.as_str())
                .unwrap_or_default(),
        });
        (format!("mcp__{}__{}", it.server, it.name), value)
    };
    let tools: serde_json::Map<_, _> = shared.mcp.list().await.into_iter().map(tool).collect();
    let documents = |all: serde_json::Value| Raw::of(&all).unwrap_or_default();
    EventMsg::McpListToolsResponse(McpListToolsResponse {
        tools: Raw::of(&tools).unwrap_or_default(),
        resources: documents(shared.mcp.by_server(Documents::Resources).await),
        resource_templates: documents(shared.mcp.by_server(Documents::Templates).await),
        auth_statuses: documents(serde_json::json!({})),
    })
}

/// The models.
pub(crate) fn models(shared: &Shared) -> EventMsg<'static> {
    let model = |it: tieline_event::ModelInfo| Model {
        model: it.id.into(),
        display_name: it.name.into(),
        description: it.description.map(Str::Owned),
    };
    let models = shared.settings.offered().into_iter().map(model).collect();
    EventMsg::ListModelsResponse(ListModelsResponse { models })
}
