//! What a model is asked.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::Item;

/// The body of a request. Fields that are not set are not written.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    /// The model.
    pub model: String,
    /// What it is told before everything else.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub instructions: Arc<str>,
    /// The conversation.
    pub input: Vec<Item>,
    /// What it may call.
    pub tools: Arc<[Tool]>,
    /// Whether it has to.
    pub tool_choice: ToolChoice,
    /// Whether it may call several at once.
    pub parallel_tool_calls: bool,
    /// How it is to think; none for models that do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ReasoningOptions>,
    /// Whether the provider may keep the answer.
    pub store: bool,
    /// Whether the answer comes event by event. [`Request::new`] says yes.
    pub stream: bool,
    /// What else the answer is to have.
    pub include: Vec<Include>,
    /// Requests with the same key share a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache_key: Option<String>,
    /// The stored answer this one follows; then the input is only what is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_response_id: Option<String>,
    /// The form of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<TextOptions>,
    /// `auto`, `default`, `flex` or `priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// How many tokens it may write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

impl Request {
    /// A request for a stream, with no tools, that is not to be stored.
    pub fn new(model: impl Into<String>, input: Vec<Item>) -> Self {
        Self {
            model: model.into(),
            instructions: Arc::from(""),
            input,
            tools: Arc::from([]),
            tool_choice: ToolChoice::Auto,
            parallel_tool_calls: false,
            reasoning: None,
            store: false,
            stream: true,
            include: Vec::new(),
            prompt_cache_key: None,
            previous_response_id: None,
            text: None,
            service_tier: None,
            max_output_tokens: None,
        }
    }

    /// The body as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings, numbers and JSON text are JSON")
    }
}

/// Something a model may call.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Tool {
    /// A function with arguments in JSON.
    Function {
        /// Its name.
        name: String,
        /// What it is for.
        description: String,
        /// Whether the arguments have to follow the schema.
        strict: bool,
        /// The JSON Schema of the arguments.
        parameters: Arc<RawValue>,
    },
    /// A tool that takes plain text.
    Custom {
        /// Its name.
        name: String,
        /// What it is for.
        description: String,
        /// What text it takes; any, if it does not say.
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<ToolFormat>,
    },
    /// The provider's search.
    WebSearch {
        /// Whether it may look beyond what the provider has kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        external_web_access: Option<bool>,
    },
    /// The provider's tool for commands.
    LocalShell {},
    /// Another tool of the provider, as it describes it.
    #[serde(untagged)]
    Other(Arc<RawValue>),
}

/// What text a custom tool takes.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolFormat {
    /// Any.
    Text {},
    /// What a grammar allows.
    Grammar {
        /// `lark` or `regex`.
        syntax: String,
        /// The grammar.
        definition: String,
    },
}

/// Whether a model has to call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// If it wants to.
    #[default]
    Auto,
    /// It may not.
    None,
    /// It has to.
    Required,
}

/// How a model is to think.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReasoningOptions {
    /// How much: `minimal`, `low`, `medium`, `high`, or another word of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// What is shown of it: `auto`, `concise` or `detailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// What else an answer is to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Include {
    /// The thinking for the provider's own eyes, so that it need not store it.
    #[serde(rename = "reasoning.encrypted_content")]
    EncryptedReasoning,
    /// Where a search looked.
    #[serde(rename = "web_search_call.action.sources")]
    SearchSources,
    /// Another word of the provider.
    #[serde(untagged)]
    Other(String),
}

/// The form of a model's text.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TextOptions {
    /// How many words it makes: `low`, `medium` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
    /// A schema it has to follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
}

/// A form of text.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Format {
    /// JSON by a schema.
    JsonSchema(JsonSchema),
}

/// A schema for the last message.
#[derive(Debug, Clone, Serialize)]
pub struct JsonSchema {
    /// A name for it.
    pub name: String,
    /// Whether it has to be followed to the letter.
    pub strict: bool,
    /// It.
    pub schema: Arc<RawValue>,
}
