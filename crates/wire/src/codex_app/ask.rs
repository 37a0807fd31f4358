//! What the server asks.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::or_default;
use crate::text::Str;

/// The server asks for leave: to run a command, to change files, to have more permissions.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest<'a> {
    /// For which item; v1 says `callId`.
    #[serde(borrow, default, alias = "callId")]
    pub item_id: Option<Str<'a>>,
    /// Why.
    #[serde(borrow, default)]
    pub reason: Option<Str<'a>>,
    /// The command: one quoted string; v1 has a list of words.
    #[serde(borrow, default)]
    pub command: Option<&'a RawValue>,
    /// Where it would run.
    #[serde(borrow, default)]
    pub cwd: Option<Str<'a>>,
    /// The rule the server offers to write down.
    #[serde(borrow, default)]
    pub proposed_execpolicy_amendment: Option<&'a RawValue>,
    /// The connection it is about.
    #[serde(default)]
    pub network_approval_context: Option<NetworkContext>,
    /// The rules about the network it offers to write down.
    #[serde(borrow, default)]
    pub proposed_network_policy_amendments: Option<Vec<&'a RawValue>>,
    /// A directory that would become writable.
    #[serde(borrow, default)]
    pub grant_root: Option<Str<'a>>,
    /// What the command would be allowed besides.
    #[serde(borrow, default)]
    pub additional_permissions: Option<&'a RawValue>,
    /// The permissions it is about.
    #[serde(borrow, default)]
    pub permissions: Option<&'a RawValue>,
    /// v1: the changes themselves.
    #[serde(borrow, default)]
    pub file_changes: Option<&'a RawValue>,
}

/// A connection that needs leave.
#[derive(Debug, Deserialize)]
pub struct NetworkContext {
    /// To where.
    pub host: String,
    /// How.
    #[serde(default)]
    pub protocol: Option<String>,
}

/// The server asks the user.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInputRequest<'a> {
    /// For which item.
    #[serde(borrow, default)]
    pub item_id: Option<Str<'a>>,
    /// What.
    #[serde(default, deserialize_with = "or_default")]
    pub questions: Vec<Question>,
}

/// One question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Under which name its answer is given.
    pub id: String,
    /// A word or two above it.
    #[serde(default)]
    pub header: Option<String>,
    /// The question.
    pub question: String,
    /// Another text is an answer too.
    #[serde(default)]
    pub is_other: bool,
    /// The answer is not to be shown.
    #[serde(default)]
    pub is_secret: bool,
    /// Answers to choose from.
    #[serde(default)]
    pub options: Option<Vec<QuestionOption>>,
}

/// One answer to choose from.
#[derive(Debug, Deserialize)]
pub struct QuestionOption {
    /// The answer.
    pub label: String,
    /// What it means.
    #[serde(default)]
    pub description: Option<String>,
}

/// A server of tools asks the user.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation<'a> {
    /// Which server.
    #[serde(borrow, default)]
    pub server_name: Str<'a>,
    /// `form`, `url`, ….
    #[serde(borrow, default)]
    pub mode: Option<Str<'a>>,
    /// What it asks.
    #[serde(borrow, default)]
    pub message: Str<'a>,
    /// The form.
    #[serde(borrow, default)]
    pub requested_schema: Option<&'a RawValue>,
    /// The page to be opened.
    #[serde(borrow, default)]
    pub url: Option<Str<'a>>,
    /// Says when it is really the approval of a tool.
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<&'a RawValue>,
}
