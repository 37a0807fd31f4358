//! What a client asks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::body::body;
use super::policy::{
    ApprovalPolicy, CollaborationMode, Decision, Effort, Personality, SandboxPolicy, Summary,
};
use crate::raw::Raw;
use crate::tagged::{Unknown, tagged};
use crate::text::Str;

tagged! {
    /// What a client asks.
    #[derive(JsonSchema)]
    pub enum Op<'a> by "type" {
        /// Configure the session; must come first in the protocol's description, and is gone from
        /// the programs since 0.22.
        ConfigureSession(Box<ConfigureSession<'a>>) = "configure_session",
        /// Show the token of a listener; comes before everything else where one is asked for. An
        /// addition.
        Authenticate(Authenticate<'a>) = "authenticate",
        /// Stop the running task.
        Interrupt = "interrupt",
        /// Say something, with the context as it is.
        UserInput(UserInput<'a>) = "user_input",
        /// Say something, with the whole context.
        UserTurn(Box<UserTurn<'a>>) = "user_turn",
        /// Change the context from the next turn on.
        OverrideTurnContext(Box<OverrideTurnContext<'a>>) = "override_turn_context",
        /// Whether a command may run.
        ExecApproval(ExecApproval<'a>) = "exec_approval",
        /// Whether a patch may be applied.
        PatchApproval(PatchApproval<'a>) = "patch_approval",
        /// Answers to questions.
        UserInputAnswer(UserInputAnswer<'a>) = "user_input_answer" | "request_user_input_response",
        /// An answer to a server of tools.
        ResolveElicitation(ResolveElicitation<'a>) = "resolve_elicitation",
        /// What a tool of the client gave back.
        DynamicToolResponse(DynamicToolResponse<'a>) = "dynamic_tool_response",
        /// Whether more may be reached.
        RequestPermissionsResponse(Response<'a>) = "request_permissions_response",
        /// Remember a line of input.
        AddToHistory(AddToHistory<'a>) = "add_to_history",
        /// Give a line of input back.
        GetHistoryEntryRequest(GetHistoryEntry) = "get_history_entry_request",
        /// Give the history of the conversation.
        GetHistory = "get_history",
        /// Say where the conversation is recorded.
        GetPath = "get_path",
        /// Shorten the memory.
        Compact = "compact",
        /// Take the last changes back.
        Undo = "undo",
        /// Forget the last turns.
        ThreadRollback(ThreadRollback) = "thread_rollback",
        /// Review changes.
        Review(Review<'a>) = "review",
        /// Run a command of the user's own.
        RunUserShellCommand(RunUserShellCommand<'a>) = "run_user_shell_command",
        /// List the tools of servers.
        ListMcpTools = "list_mcp_tools",
        /// Start the servers of tools anew.
        RefreshMcpServers(RefreshMcpServers<'a>) = "refresh_mcp_servers",
        /// List prompts the user wrote.
        ListCustomPrompts = "list_custom_prompts",
        /// List skills.
        ListSkills(ListSkills<'a>) = "list_skills",
        /// List models.
        ListModels = "list_models",
        /// Name the conversation.
        SetThreadName(SetThreadName<'a>) = "set_thread_name",
        /// End commands that run in the background.
        CleanBackgroundTerminals = "clean_background_terminals",
        /// Read the user's configuration again.
        ReloadUserConfig = "reload_user_config",
        /// End.
        Shutdown = "shutdown",
    } else {
        /// An op that is not known.
        #[schemars(skip)]
        Unknown(Unknown<'a>),
    }
}

tagged! {
    /// A piece of what the user says.
    #[derive(JsonSchema)]
    pub enum InputItem<'a> by "type" {
        /// Text.
        Text(TextItem<'a>) = "text",
        /// A picture at an address, often a `data:` URL.
        Image(ImageItem<'a>) = "image",
        /// A picture in a file.
        LocalImage(LocalImageItem<'a>) = "local_image",
        /// A skill to be used.
        Skill(NamedItem<'a>) = "skill",
        /// A connector to be used; its path is `app://…`.
        Mention(NamedItem<'a>) = "mention",
    } else {
        /// One that is not known.
        #[schemars(skip)]
        Unknown(Unknown<'a>),
    }
}

body! {
    /// Text.
    TextItem<'a> {
        /// The text.
        text: Str<'a>,
    } ? {
        /// Ranges of it that mean something to the client.
        text_elements: Raw<'a>,
    }
}

body! {
    /// A picture at an address.
    ImageItem<'a> {
        /// Where.
        image_url: Str<'a>,
    }
}

body! {
    /// A picture in a file.
    LocalImageItem<'a> {
        /// Where.
        path: Str<'a>,
    }
}

body! {
    /// Something with a name and a place.
    NamedItem<'a> {
        /// Its name.
        name: Str<'a>,
        /// Its place.
        path: Str<'a>,
    }
}

impl<'a> InputItem<'a> {
    /// Text.
    pub fn text(text: impl Into<Str<'a>>) -> Self {
        Self::Text(TextItem { text: text.into(), text_elements: None })
    }
}

body! {
    /// Configures the session. The fields are those of 2025-04 and of 0.20 together.
    ConfigureSession<'a> {
    } ? {
        /// The model.
        model: Str<'a>,
        /// The user's instructions.
        instructions: Str<'a>,
        /// The same, in 0.20.
        user_instructions: Str<'a>,
        /// Instructions in place of the agent's own.
        base_instructions: Str<'a>,
        /// When to ask.
        approval_policy: ApprovalPolicy<'a>,
        /// What commands can reach.
        sandbox_policy: SandboxPolicy<'a>,
        /// Where to work.
        cwd: Str<'a>,
        /// For how long to think.
        model_reasoning_effort: Effort,
        /// How to sum it up.
        model_reasoning_summary: Summary,
        /// Who serves the model.
        provider: Raw<'a>,
        /// The provider is not to keep answers.
        disable_response_storage: bool,
        /// A program to call at the end of each turn.
        notify: Vec<Str<'a>>,
        /// The recorded session to go on with.
        resume_path: Str<'a>,
        /// The conversation to go on with, by its key or session id. An addition.
        resume: Str<'a>,
    }
}

body! {
    /// Shows the token of a listener.
    Authenticate<'a> {
        /// The token.
        token: Str<'a>,
    }
}

body! {
    /// Says something, with the context as it is.
    UserInput<'a> {
        /// What.
        items: Vec<InputItem<'a>>,
    } ? {
        /// The form the last message must have.
        final_output_json_schema: Raw<'a>,
        /// Go on from this bookmark of an earlier answer, leaving out what came after it.
        #[serde(alias = "last_response_id")]
        response_id: Str<'a>,
    }
}

body! {
    /// Says something, with the whole context.
    UserTurn<'a> {
        /// What.
        items: Vec<InputItem<'a>>,
        /// Where to work.
        cwd: Str<'a>,
        /// When to ask.
        approval_policy: ApprovalPolicy<'a>,
        /// What commands can reach.
        sandbox_policy: SandboxPolicy<'a>,
        /// Which model.
        model: Str<'a>,
        /// How to sum thinking up.
        summary: Summary,
        /// The form the last message must have.
        final_output_json_schema: Raw<'a>,
    } ? {
        /// For how long to think. Must be there up to 0.34.
        effort: Effort,
        /// What to do with the user.
        collaboration_mode: CollaborationMode<'a>,
        /// How to speak.
        personality: Personality,
        /// Go on from this bookmark of an earlier answer, leaving out what came after it.
        #[serde(alias = "last_response_id")]
        response_id: Str<'a>,
    }
}

/// Changes the context from the next turn on. What is missing stays as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct OverrideTurnContext<'a> {
    /// Where to work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Str<'a>>,
    /// When to ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_policy: Option<ApprovalPolicy<'a>>,
    /// What commands can reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_policy: Option<SandboxPolicy<'a>>,
    /// Which model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Str<'a>>,
    /// For how long to think. `null` is the model's own default.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub effort: Option<Option<Effort>>,
    /// How to sum it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// What to do with the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collaboration_mode: Option<CollaborationMode<'a>>,
    /// How to speak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub personality: Option<Personality>,
}

/// A field that is there, be it `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Effort>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

body! {
    /// Whether a command may run.
    ExecApproval<'a> {
        /// Which: the submission's id up to 0.98, the call's since.
        id: Str<'a>,
        /// The answer.
        decision: Decision<'a>,
    } ? {
        /// In which turn.
        turn_id: Str<'a>,
    }
}

body! {
    /// Whether a patch may be applied.
    PatchApproval<'a> {
        /// Which: the submission's id up to 0.98, the call's since.
        id: Str<'a>,
        /// The answer.
        decision: Decision<'a>,
    }
}

body! {
    /// Answers to questions.
    UserInputAnswer<'a> {
        /// The turn's id, in every version.
        id: Str<'a>,
    } ? {
        /// The answers.
        response: Answers,
    }
}

/// Answers by the id of their question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// By id.
    pub answers: BTreeMap<String, AnswerList>,
}

/// What was answered to one question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "AnswerForm")]
pub struct AnswerList {
    /// Labels that were chosen, or text.
    pub answers: Vec<String>,
}

/// The forms in which an answer is read.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an answer is {\"answers\":[\"\u{2026}\"]} or {\"selected\":[\"\u{2026}\"],\"other\":\"\u{2026}\"}"
)]
enum AnswerForm {
    /// As it is written here.
    Answers {
        /// Labels that were chosen, or text.
        answers: Vec<String>,
    },
    /// As the tool's output was first described.
    Selected {
        /// Labels that were chosen.
        selected: Vec<String>,
        /// The user's own words.
        #[serde(default)]
        other: Option<String>,
    },
    /// The user's own words alone.
    Other {
        /// The words.
        other: String,
    },
    /// Several answers.
    List(Vec<String>),
    /// One.
    Text(String),
}

impl From<AnswerForm> for AnswerList {
    fn from(form: AnswerForm) -> Self {
        let answers = match form {
            AnswerForm::Answers { answers } | AnswerForm::List(answers) => answers,
            AnswerForm::Selected { mut selected, other } => {
                selected.extend(other.filter(|other| !other.is_empty()));
                selected
            }
            AnswerForm::Other { other: text } | AnswerForm::Text(text) => vec![text],
        };
        Self { answers }
    }
}

body! {
    /// An answer to a server of tools.
    ResolveElicitation<'a> {
        /// Which server.
        server_name: Str<'a>,
        /// Its id, a text or a number.
        request_id: Raw<'a>,
        /// `accept`, `decline` or `cancel`.
        decision: Str<'a>,
    } ? {
        /// The form filled in.
        content: Raw<'a>,
        /// What else belongs to it.
        meta: Raw<'a>,
    }
}

body! {
    /// What a tool of the client gave back.
    DynamicToolResponse<'a> {
        /// The call's id.
        id: Str<'a>,
        /// What it gave back.
        response: DynamicToolOutput<'a>,
    }
}

/// What a tool of the client gave back.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub struct DynamicToolOutput<'a> {
    /// Texts and pictures.
    pub content_items: Vec<Raw<'a>>,
    /// It worked.
    pub success: bool,
}

body! {
    /// An answer whose form is the asker's.
    Response<'a> {
        /// To what.
        id: Str<'a>,
        /// The answer.
        response: Raw<'a>,
    }
}

body! {
    /// Remembers a line of input.
    AddToHistory<'a> {
        /// The line.
        text: Str<'a>,
    }
}

/// Gives a line of input back.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GetHistoryEntry {
    /// Which line.
    pub offset: u64,
    /// Of which file.
    pub log_id: u64,
}

/// Forgets the last turns.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadRollback {
    /// How many.
    pub num_turns: u32,
}

body! {
    /// Reviews changes.
    Review<'a> {
        /// Which: `{target, user_facing_hint?}`, or `{prompt, user_facing_hint}` up to 0.42.
        review_request: Raw<'a>,
    }
}

body! {
    /// Runs a command of the user's own.
    RunUserShellCommand<'a> {
        /// The command line.
        command: Str<'a>,
    }
}

body! {
    /// Starts the servers of tools anew.
    RefreshMcpServers<'a> {
    } ? {
        /// Their configuration, while it was part of the op.
        config: Raw<'a>,
    }
}

body! {
    /// Lists skills.
    ListSkills<'a> {
        /// For which directories; none is the session's own.
        cwds: Vec<Str<'a>>,
        /// Look again.
        force_reload: bool,
    }
}

body! {
    /// Names the conversation.
    SetThreadName<'a> {
        /// The name.
        name: Str<'a>,
    }
}
