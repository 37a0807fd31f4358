//! What an agent can do, as data.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much an agent may do without asking. One vocabulary for all agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Ask for every write and every command that is not known to be harmless.
    #[default]
    Default,
    /// Read and plan; change nothing.
    Plan,
    /// Write inside the workspace without asking.
    AcceptEdits,
    /// The agent decides itself what needs asking.
    Auto,
    /// Never ask; sandboxed where the agent has a sandbox.
    BypassPermissions,
    /// Never ask, no sandbox. An explicit choice only.
    Yolo,
}

/// A mode nobody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode(pub String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown mode {:?}; the modes are default, plan, acceptEdits, auto, bypassPermissions, yolo",
            self.0
        )
    }
}

impl std::error::Error for UnknownMode {}

impl Mode {
    /// Every mode, from the most careful to the least.
    pub const ALL: [Self; 6] = [
        Self::Plan,
        Self::Default,
        Self::AcceptEdits,
        Self::Auto,
        Self::BypassPermissions,
        Self::Yolo,
    ];

    /// The modes that mean something to every agent. One that cannot judge its own deeds takes
    /// [`Auto`](Self::Auto) for [`AcceptEdits`](Self::AcceptEdits) and does not offer it.
    pub const COMMON: [Self; 5] =
        [Self::Plan, Self::Default, Self::AcceptEdits, Self::BypassPermissions, Self::Yolo];

    /// The modes in which an agent may still ask.
    pub const ASKING: [Self; 4] = [Self::Plan, Self::Default, Self::AcceptEdits, Self::Auto];

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::AcceptEdits => "acceptEdits",
            Self::Auto => "auto",
            Self::BypassPermissions => "bypassPermissions",
            Self::Yolo => "yolo",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Mode {
    type Err = UnknownMode;

    /// Accepts every name and alias in any case, with or without `-` and `_`.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let plain: String =
            text.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect();
        match plain.as_str() {
            "default" | "manual" => Ok(Self::Default),
            "plan" => Ok(Self::Plan),
            "acceptedits" => Ok(Self::AcceptEdits),
            "auto" => Ok(Self::Auto),
            "bypasspermissions" | "bypass" => Ok(Self::BypassPermissions),
            "yolo" | "danger" | "dangerfullaccess" => Ok(Self::Yolo),
            _ => Err(UnknownMode(text.to_owned())),
        }
    }
}

/// What an agent can do in this conversation, so that fronts adapt without knowing its name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Abilities {
    /// Modes it can be put in.
    pub modes: Vec<Mode>,
    /// Models it offers.
    pub models: Vec<ModelInfo>,
    /// Efforts it offers.
    pub efforts: Vec<String>,
    /// Slash commands it offers.
    pub commands: Vec<AgentCommand>,
    /// Skills it offers, by name.
    pub skills: Vec<String>,
    /// Tools its model has, by name.
    pub tools: Vec<String>,
    /// Takes a message while a turn runs.
    pub steering: bool,
    /// Can go on from an earlier session in a new one.
    pub fork: bool,
    /// Takes pictures.
    pub images: bool,
    /// Asks questions of its own.
    pub questions: bool,
    /// Asks before it acts, where the mode says so.
    pub approvals: bool,
    /// Streams text as it is written.
    pub streaming: bool,
}

/// A model on offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelInfo {
    /// What to pass as the model.
    pub id: String,
    /// What to show.
    pub name: String,
    /// What it is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A slash command on offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentCommand {
    /// Its name, without the slash.
    pub name: String,
    /// The first line of its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What may follow the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
