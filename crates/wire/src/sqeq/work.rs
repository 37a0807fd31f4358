//! What an agent tells about its work: commands, patches, tools, and what it asks on the way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{body, words};
use super::change::Changes;
use super::chunk::Chunk;
use crate::raw::Raw;
use crate::text::Str;

/// How long something took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Duration {
    /// Whole seconds.
    pub secs: u64,
    /// And nanoseconds.
    pub nanos: u32,
}

body! {
    /// A command runs.
    ExecCommandBegin<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// Its words.
        command: Vec<Str<'a>>,
        /// Where.
        cwd: Str<'a>,
        /// What it does, as far as that is plain.
        parsed_cmd: Raw<'a>,
    } ? {
        /// The turn.
        turn_id: Str<'a>,
        /// `agent`, `user_shell`, `unified_exec_startup` or `unified_exec_interaction`.
        source: Str<'a>,
        /// The process, where it goes on.
        process_id: Str<'a>,
        /// What was typed into it.
        interaction_input: Str<'a>,
    }
}

words! {
    /// Which of a command's outputs.
    #[derive(Default)]
    OutputStream {
        /// Standard output.
        #[default]
        Stdout = "stdout",
        /// Standard error.
        Stderr = "stderr",
    }
}

body! {
    /// A command printed something.
    ExecCommandOutputDelta<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// Where to.
        stream: OutputStream,
        /// What.
        chunk: Chunk<'a>,
    }
}

body! {
    /// A command is over.
    ExecCommandEnd<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// What it wrote to standard output.
        stdout: Str<'a>,
        /// What it wrote to standard error.
        stderr: Str<'a>,
        /// Both, in order.
        aggregated_output: Str<'a>,
        /// How it ended.
        exit_code: i32,
        /// How long it took.
        duration: Duration,
        /// What the model is shown.
        formatted_output: Str<'a>,
    } ? {
        /// `completed`, `failed` or `declined`.
        status: Str<'a>,
        /// The turn.
        turn_id: Str<'a>,
        /// Its words.
        command: Vec<Str<'a>>,
        /// Where.
        cwd: Str<'a>,
        /// What it does, as far as that is plain.
        parsed_cmd: Raw<'a>,
        /// Who ran it.
        source: Str<'a>,
        /// The process, where it goes on.
        process_id: Str<'a>,
        /// What was typed into it.
        interaction_input: Str<'a>,
    }
}

body! {
    /// Something was typed into a command.
    TerminalInteraction<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// The process.
        process_id: Str<'a>,
        /// What.
        stdin: Str<'a>,
    }
}

body! {
    /// The model looks at a picture.
    ViewImageToolCall<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// The file.
        path: Str<'a>,
    }
}

body! {
    /// A patch is being applied.
    PatchApplyBegin<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// Nobody was asked.
        auto_approved: bool,
        /// The changes.
        changes: Changes<'a>,
    } ? {
        /// The turn.
        turn_id: Str<'a>,
    }
}

body! {
    /// A patch grows.
    PatchApplyUpdated<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// The changes.
        changes: Changes<'a>,
    }
}

body! {
    /// A patch was applied, or not.
    PatchApplyEnd<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// What was said about it.
        stdout: Str<'a>,
        /// What went wrong.
        stderr: Str<'a>,
        /// Whether it was applied.
        success: bool,
    } ? {
        /// `completed`, `failed` or `declined`.
        status: Str<'a>,
        /// The turn.
        turn_id: Str<'a>,
        /// The changes.
        changes: Changes<'a>,
    }
}

body! {
    /// All changes of the turn so far.
    TurnDiff<'a> {
        /// As one diff.
        unified_diff: Str<'a>,
    }
}

body! {
    /// May a command run?
    ExecApprovalRequest<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// Its words.
        command: Vec<Str<'a>>,
        /// Where.
        cwd: Str<'a>,
    } ? {
        /// Why it is asked.
        reason: Str<'a>,
        /// The turn.
        turn_id: Str<'a>,
        /// What it does, as far as that is plain.
        parsed_cmd: Raw<'a>,
        /// Words a rule could begin with.
        proposed_execpolicy_amendment: Raw<'a>,
        /// The id to answer with, where it is not the call's.
        approval_id: Str<'a>,
        /// The answers that are understood.
        available_decisions: Raw<'a>,
        /// What tieline says besides; other programs do not know it.
        tieline: Besides<'a>,
    }
}

body! {
    /// What tieline says of a request besides.
    Besides<'a> {
    } ? {
        /// Why it is asked, in tieline's words.
        why: Str<'a>,
        /// The model's own reason.
        said: Str<'a>,
        /// What holds the command: `read-only` or `workspace-write`, a sandbox; or `nothing`.
        held: Str<'a>,
        /// Whether it reaches the network.
        network: bool,
        /// It ran in the sandbox before and failed there.
        retry: bool,
    }
}

body! {
    /// May a patch be applied?
    ApplyPatchApprovalRequest<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// The changes.
        changes: Changes<'a>,
    } ? {
        /// Why it is asked.
        reason: Str<'a>,
        /// A directory that would be open to writing from then on.
        grant_root: Str<'a>,
        /// The turn.
        turn_id: Str<'a>,
        /// What tieline says besides; other programs do not know it.
        tieline: Besides<'a>,
    }
}

body! {
    /// Questions of the model.
    RequestUserInput<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// The questions.
        questions: Vec<Question<'a>>,
    } ? {
        /// The turn, whose id the answer carries.
        turn_id: Str<'a>,
    }
}

/// A question. Its words are spelled unlike the rest of this protocol.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub struct Question<'a> {
    /// Under which its answer is given.
    pub id: Str<'a>,
    /// A word or two.
    pub header: Str<'a>,
    /// The question.
    pub question: Str<'a>,
    /// Another text is an answer too.
    pub is_other: bool,
    /// The answer is not to be shown.
    pub is_secret: bool,
    /// Answers to choose from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<QuestionOption<'a>>>,
}

body! {
    /// An answer to choose from.
    QuestionOption<'a> {
        /// The answer.
        label: Str<'a>,
        /// What it means.
        description: Str<'a>,
    } ? {
        /// The answer for programs.
        value: Str<'a>,
    }
}

body! {
    /// A server of tools asks.
    ElicitationRequest<'a> {
        /// Which server.
        server_name: Str<'a>,
        /// Its id, a text or a number.
        id: Raw<'a>,
    } ? {
        /// What is asked.
        message: Str<'a>,
        /// The same in newer versions, as an object.
        request: Raw<'a>,
    }
}

/// A tool of the client is wanted. Its words are spelled unlike the rest of this protocol.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub struct DynamicToolCallRequest<'a> {
    /// The call's id.
    pub call_id: Str<'a>,
    /// The turn.
    pub turn_id: Str<'a>,
    /// Which tool.
    pub tool: Str<'a>,
    /// Its input.
    pub arguments: Raw<'a>,
}

body! {
    /// More than the sandbox gives is wanted.
    RequestPermissions<'a> {
        /// The call's id.
        call_id: Str<'a>,
    } ? {
        /// Why.
        reason: Str<'a>,
        /// What.
        permissions: Raw<'a>,
        /// The turn.
        turn_id: Str<'a>,
    }
}

body! {
    /// A server of tools starts.
    McpStartupUpdate<'a> {
        /// Which.
        server: Str<'a>,
        /// How far it is.
        status: Raw<'a>,
    }
}

body! {
    /// All servers of tools have started, or not.
    McpStartupComplete<'a> {
        /// Those that have.
        ready: Vec<Str<'a>>,
        /// Those that have not.
        failed: Vec<McpStartupFailure<'a>>,
        /// Those that were not waited for.
        cancelled: Vec<Str<'a>>,
    }
}

body! {
    /// A server of tools that did not start.
    McpStartupFailure<'a> {
        /// Which.
        server: Str<'a>,
        /// Why.
        error: Str<'a>,
    }
}

body! {
    /// Which tool is called, with what.
    McpInvocation<'a> {
        /// Whose tool.
        server: Str<'a>,
        /// Its name.
        tool: Str<'a>,
    } ? {
        /// Its input.
        arguments: Raw<'a>,
    }
}

body! {
    /// A server's tool is called.
    McpToolCallBegin<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// The call.
        invocation: McpInvocation<'a>,
    }
}

body! {
    /// A server's tool was called.
    McpToolCallEnd<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// The call.
        invocation: McpInvocation<'a>,
        /// How long it took.
        duration: Duration,
        /// What it gave back.
        result: McpResult<'a>,
    }
}

/// What a tool gave back: `{"Ok": …}` or `{"Err": "…"}`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub enum McpResult<'a> {
    /// An answer, which may say that it failed.
    Ok(McpOutput<'a>),
    /// No answer.
    Err(Str<'a>),
}

impl Default for McpResult<'_> {
    fn default() -> Self {
        Self::Err(Str::default())
    }
}

/// A tool's answer.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
pub struct McpOutput<'a> {
    /// Texts, pictures, documents.
    pub content: Vec<Raw<'a>>,
    /// The answer as one value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Raw<'a>>,
    /// It failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

body! {
    /// The tools of servers.
    McpListToolsResponse<'a> {
        /// By name.
        tools: Raw<'a>,
        /// Documents, by server.
        resources: Raw<'a>,
        /// Patterns of documents, by server.
        resource_templates: Raw<'a>,
        /// Who is logged in, by server.
        auth_statuses: Raw<'a>,
    }
}

body! {
    /// The web is searched.
    WebSearchBegin<'a> {
        /// The call's id.
        call_id: Str<'a>,
    }
}

body! {
    /// The web was searched.
    WebSearchEnd<'a> {
        /// The call's id.
        call_id: Str<'a>,
        /// What for.
        query: Str<'a>,
    } ? {
        /// A search, a page that was opened, a word that was looked for in it.
        action: Raw<'a>,
    }
}
