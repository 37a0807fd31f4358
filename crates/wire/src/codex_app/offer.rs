//! What the server tells when it is asked: models, skills, the account.

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
    /// Each.
    #[serde(default)]
    pub skills: Vec<Skill>,
}

/// A skill.
#[derive(Debug, Deserialize)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// Its file.
    #[serde(default)]
    pub path: String,
    /// Whether it may be used.
    #[serde(default)]
    pub enabled: Option<bool>,
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
