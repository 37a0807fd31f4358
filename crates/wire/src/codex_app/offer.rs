//! What the server tells when it is asked: models, skills, MCP servers, the goal, the account.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::or_default;

/// The answer to `model/list`.
#[derive(Debug, Deserialize)]
pub struct Models {
    /// Each.
    #[serde(default)]
    pub data: Vec<Model>,
}

/// A model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Its id.
    pub id: String,
    /// What to show.
    #[serde(default)]
    pub display_name: Option<String>,
    /// What it is good for.
    #[serde(default)]
    pub description: Option<String>,
    /// The efforts it knows.
    #[serde(default, deserialize_with = "or_default")]
    pub supported_reasoning_efforts: Vec<Effort>,
    /// Not for people.
    #[serde(default)]
    pub hidden: bool,
    /// The one that is used when none is named.
    #[serde(default)]
    pub is_default: bool,
}

/// An effort.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Effort {
    /// Its name.
    pub reasoning_effort: String,
}

/// The answer to `skills/list`.
#[derive(Debug, Deserialize)]
pub struct Skills {
    /// By directory.
    #[serde(default)]
    pub data: Vec<SkillsOf>,
}

/// The skills of a directory.
#[derive(Debug, Deserialize)]
pub struct SkillsOf {
    /// The directory.
    #[serde(default, deserialize_with = "or_default")]
    pub cwd: String,
    /// Files that are no skills.
    #[serde(default, deserialize_with = "or_default")]
    pub errors: Vec<SkillError>,
    /// Each.
    #[serde(default)]
    pub skills: Vec<Skill>,
}

/// A file that is no skill.
#[derive(Debug, Deserialize)]
pub struct SkillError {
    /// Which.
    #[serde(default)]
    pub path: String,
    /// Why.
    #[serde(default)]
    pub message: String,
}

/// A skill.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// What it is good for, in a few words.
    #[serde(default)]
    pub short_description: Option<String>,
    /// Whose it is.
    #[serde(default, deserialize_with = "or_default")]
    pub scope: String,
    /// Its name.
    pub name: String,
    /// What it is good for.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Its file.
    #[serde(default)]
    pub path: String,
    /// Whether it may be used.
    #[serde(default)]
    pub enabled: Option<bool>,
}

/// The answer to `mcpServerStatus/list`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatuses {
    /// Each.
    #[serde(default)]
    pub data: Vec<ServerStatus>,
    /// Where more of them begin.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// How an MCP server is doing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its connection to the thread; older versions do not tell.
    #[serde(default)]
    pub runtime_status: Option<String>,
    /// Whether somebody is logged in to it.
    #[serde(default)]
    pub auth_status: Option<String>,
    /// Its tools by name.
    #[serde(default, deserialize_with = "or_default")]
    pub tools: BTreeMap<String, Box<RawValue>>,
    /// Why there are none.
    #[serde(default)]
    pub tools_error: Option<String>,
}

/// The answer to `thread/goal/get` and `thread/goal/set`.
#[derive(Debug, Deserialize)]
pub struct GoalAnswer {
    /// The goal, if there is one.
    #[serde(default)]
    pub goal: Option<Goal>,
}

/// What a thread works towards.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// What it is.
    pub objective: String,
    /// `active`, `paused`, `complete`, ….
    pub status: String,
    /// What it cost so far.
    #[serde(default)]
    pub tokens_used: u64,
    /// How long was worked at it.
    #[serde(default)]
    pub time_used_seconds: u64,
}

/// The answer to `thread/goal/clear`.
#[derive(Debug, Deserialize)]
pub struct Cleared {
    /// There was one.
    pub cleared: bool,
}

/// The answer to `account/read`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account<'a> {
    /// Who is logged in.
    #[serde(borrow, default)]
    pub account: Option<&'a RawValue>,
    /// Whether the provider asks for a login at all.
    #[serde(default)]
    pub requires_openai_auth: bool,
}
