//! What the server is asked about itself, for whoever wants to know.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tieline_event::{Inquiry, Json, ModelInfo, Report, ServerTool, SkillInfo, SkillsAt};
use tieline_wire::codex_app::{Models, ServerStatuses, Skills, SkillsOf};

use super::driver::{AppDriver, What};
use crate::ledger::Ledger;
use crate::words::first_line;

/// How many MCP servers are asked for.
const MOST_SERVERS: u32 = 200;

impl AppDriver {
    /// Asks the server. The thread is there.
    pub(super) fn ask(&mut self, number: u64, inquiry: Inquiry, ledger: &mut Ledger) {
        let (method, params) = self.question(&inquiry);
        self.call(What::Inquiry(number, inquiry), method, params, ledger);
    }

    fn question(&self, inquiry: &Inquiry) -> (&'static str, Value) {
        match inquiry {
            Inquiry::Skills { dirs, reload } => {
                let here = std::slice::from_ref(&self.workspace);
                let dirs = if dirs.is_empty() { here } else { dirs };
                ("skills/list", json!({"cwds": dirs, "forceReload": reload}))
            }
            Inquiry::Tools => {
                let params = json!({"threadId": self.thread, "limit": MOST_SERVERS});
                ("mcpServerStatus/list", params)
            }
            // The user's prompts are known here; they are answered before.
            Inquiry::Models | Inquiry::Prompts => ("model/list", json!({})),
        }
    }
}

/// What the server's answer says.
pub(super) fn report(inquiry: &Inquiry, answer: &str) -> Result<Report, serde_json::Error> {
    Ok(match inquiry {
        Inquiry::Skills { .. } => {
            let skills: Skills = serde_json::from_str(answer)?;
            Report::Skills(skills.data.into_iter().map(skills_at).collect())
        }
        Inquiry::Tools => {
            let servers: ServerStatuses = serde_json::from_str(answer)?;
            let tools = servers.data.into_iter().flat_map(|it| tools(&it.name, it.tools));
            Report::Tools(tools.collect())
        }
        Inquiry::Models | Inquiry::Prompts => Report::Models(models(serde_json::from_str(answer)?)),
    })
}

/// The models that are for people.
pub(super) fn models(models: Models) -> Vec<ModelInfo> {
    let shown = models.data.into_iter().filter(|model| !model.hidden);
    let info = shown.map(|model| ModelInfo {
        name: model.display_name.unwrap_or_else(|| model.id.clone()),
        id: model.id,
        description: model.description.as_deref().map(first_line),
    });
    info.collect()
}

fn skills_at(at: SkillsOf) -> SkillsAt {
    let skills = at.skills.into_iter().map(|skill| SkillInfo {
        name: skill.name,
        description: skill.description,
        short_description: skill.short_description,
        path: skill.path,
        scope: skill.scope,
        enabled: skill.enabled != Some(false),
    });
    let errors = at.errors.into_iter().map(|error| (error.path, error.message));
    SkillsAt { dir: at.cwd, skills: skills.collect(), errors: errors.collect() }
}

fn tools(server: &str, tools: BTreeMap<String, Box<RawValue>>) -> Vec<ServerTool> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Tool {
        description: Option<String>,
        input_schema: Option<Box<RawValue>>,
    }
    let tool = |(name, raw): (String, Box<RawValue>)| {
        let tool: Tool = serde_json::from_str(raw.get()).unwrap_or_default();
        let schema = tool.input_schema.unwrap_or_default();
        ServerTool {
            server: server.to_owned(),
            name,
            description: tool.description,
            input_schema: Json::from_raw(&schema),
        }
    };
    tools.into_iter().map(tool).collect()
}
