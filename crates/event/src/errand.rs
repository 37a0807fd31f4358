//! What a front can want of an agent besides a message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ability::ModelInfo;
use crate::text::Json;

/// Work that is not a message: it takes a turn of its own, and its prompt has no content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Errand {
    /// Shorten the agent's memory.
    Compact,
    /// Review changes.
    Review {
        /// Which ones.
        target: ReviewTarget,
    },
    /// Take back what the last turn changed in files.
    Undo,
    /// Forget the last turns; files stay as they are.
    Rollback {
        /// How many.
        turns: u32,
    },
    /// Run a command of the user's own, and let the agent know.
    Shell {
        /// The line for the shell.
        command: String,
    },
}

/// What a review is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ReviewTarget {
    /// What is not committed.
    Uncommitted,
    /// What is new since a branch.
    Branch {
        /// The branch.
        branch: String,
    },
    /// One commit.
    Commit {
        /// Its hash.
        sha: String,
        /// Its first line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// What these words say.
    Custom {
        /// The words.
        instructions: String,
    },
}

/// What holds for one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TurnOptions {
    /// The bookmark of an earlier step to go on from, leaving out what came after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The JSON Schema that the last message must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Json>,
    /// How the agent is to sound, from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub personality: Option<String>,
    /// How thinking is summed up, from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

impl TurnOptions {
    /// Whether nothing special is wanted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What an agent can be asked about itself, turn or no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inquiry {
    /// Which skills there are.
    Skills {
        /// For which directories; none means the workspace.
        dirs: Vec<String>,
        /// Look again instead of giving what is known.
        reload: bool,
    },
    /// Which prompts the user has saved.
    Prompts,
    /// Which tools servers offer.
    Tools,
    /// Which models there are.
    Models,
}

/// The answer to an [`Inquiry`].
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Skills for each directory.
    Skills(Vec<SkillsAt>),
    /// Saved prompts.
    Prompts(Vec<SavedPrompt>),
    /// Tools of servers.
    Tools(Vec<ServerTool>),
    /// Models.
    Models(Vec<ModelInfo>),
}

/// The skills for a directory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillsAt {
    /// The directory.
    pub dir: String,
    /// The skills.
    pub skills: Vec<SkillInfo>,
    /// Files that are none: path and reason.
    pub errors: Vec<(String, String)>,
}

/// A skill.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillInfo {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The same in a few words.
    pub short_description: Option<String>,
    /// Its file.
    pub path: String,
    /// Whose it is: `repo`, `user`, `system`, `admin`.
    pub scope: String,
    /// Whether it may be used.
    pub enabled: bool,
}

/// A prompt the user saved.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedPrompt {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// Its text.
    pub content: String,
    /// What it is for.
    pub description: Option<String>,
    /// What may follow the name.
    pub argument_hint: Option<String>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// The server.
    pub server: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The JSON Schema of its input.
    pub input_schema: Json,
}
