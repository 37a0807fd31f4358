//! What an agent tells: the kinds, and the bodies about session, turn and text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{body, words};
use super::item::ItemEvent;
use super::policy::{ApprovalPolicy, CollaborationKind, Effort, SandboxPolicy};
use super::{reply, work};
use crate::raw::Raw;
use crate::tagged::{Unknown, tagged};
use crate::text::Str;

tagged! {
    /// What an agent tells.
    #[derive(JsonSchema)]
    pub enum EventMsg<'a> by "type" {
        /// The session is there.
        SessionConfigured(Box<SessionConfigured<'a>>) = "session_configured",
        /// The conversation has another name.
        ThreadNameUpdated(ThreadNameUpdated<'a>) = "thread_name_updated",
        /// Nothing more will come.
        ShutdownComplete = "shutdown_complete",
        /// Something will go away.
        DeprecationNotice(DeprecationNotice<'a>) = "deprecation_notice",
        /// News without consequence.
        BackgroundEvent(Message<'a>) = "background_event",
        /// A task begins.
        TaskStarted(TaskStarted<'a>) = "task_started" | "turn_started",
        /// A task is over.
        TaskComplete(TaskComplete<'a>) = "task_complete" | "turn_complete",
        /// A task was stopped.
        TurnAborted(TurnAborted<'a>) = "turn_aborted",
        /// A task failed.
        Error(ErrorEvent<'a>) = "error",
        /// Something is degraded.
        Warning(Message<'a>) = "warning",
        /// The provider is asked again.
        StreamError(ErrorEvent<'a>) = "stream_error",
        /// An answer of the provider is complete.
        RawResponseCompleted(RawResponseCompleted<'a>) = "raw_response_completed",
        /// Tokens were counted.
        TokenCount(Box<TokenCount<'a>>) = "token_count",
        /// The memory was shortened.
        ContextCompacted = "context_compacted",
        /// The last turns were forgotten.
        ThreadRolledBack(ThreadRolledBack) = "thread_rolled_back",
        /// Changes are being taken back.
        UndoStarted(UndoStarted<'a>) = "undo_started",
        /// Changes were taken back.
        UndoCompleted(UndoCompleted<'a>) = "undo_completed",
        /// Another model answers.
        ModelReroute(ModelReroute<'a>) = "model_reroute",
        /// A message of the model, whole.
        AgentMessage(AgentMessage<'a>) = "agent_message",
        /// A piece of one.
        AgentMessageDelta(Delta<'a>) = "agent_message_delta",
        /// A piece of one, with the ids of newer versions.
        AgentMessageContentDelta(ItemDelta<'a>) = "agent_message_content_delta",
        /// What the user said.
        UserMessage(UserMessage<'a>) = "user_message",
        /// What the model thought, summed up.
        AgentReasoning(Text<'a>) = "agent_reasoning",
        /// A piece of it.
        AgentReasoningDelta(Delta<'a>) = "agent_reasoning_delta",
        /// What the model thought, word for word.
        AgentReasoningRawContent(Text<'a>) = "agent_reasoning_raw_content",
        /// A piece of it.
        AgentReasoningRawContentDelta(Delta<'a>) = "agent_reasoning_raw_content_delta",
        /// A new part of the thinking begins.
        AgentReasoningSectionBreak(SectionBreak<'a>) = "agent_reasoning_section_break",
        /// A piece of thinking, with the ids of newer versions.
        ReasoningContentDelta(ItemDelta<'a>) = "reasoning_content_delta",
        /// The same, word for word.
        ReasoningRawContentDelta(ItemDelta<'a>) = "reasoning_raw_content_delta",
        /// A piece of a proposed plan.
        PlanDelta(ItemDelta<'a>) = "plan_delta",
        /// The list of steps.
        PlanUpdate(PlanUpdate<'a>) = "plan_update",
        /// An item begins.
        ItemStarted(ItemEvent<'a>) = "item_started",
        /// An item is over.
        ItemCompleted(ItemEvent<'a>) = "item_completed",
        /// A command runs.
        ExecCommandBegin(Box<work::ExecCommandBegin<'a>>) = "exec_command_begin",
        /// It printed something.
        ExecCommandOutputDelta(work::ExecCommandOutputDelta<'a>) = "exec_command_output_delta",
        /// It is over.
        ExecCommandEnd(Box<work::ExecCommandEnd<'a>>) = "exec_command_end",
        /// Something was typed into it.
        TerminalInteraction(work::TerminalInteraction<'a>) = "terminal_interaction",
        /// The model looks at a picture.
        ViewImageToolCall(work::ViewImageToolCall<'a>) = "view_image_tool_call",
        /// A patch is being applied.
        PatchApplyBegin(work::PatchApplyBegin<'a>) = "patch_apply_begin",
        /// It grows.
        PatchApplyUpdated(work::PatchApplyUpdated<'a>) = "patch_apply_updated",
        /// It was applied, or not.
        PatchApplyEnd(Box<work::PatchApplyEnd<'a>>) = "patch_apply_end",
        /// All changes of the turn so far.
        TurnDiff(work::TurnDiff<'a>) = "turn_diff",
        /// May a command run?
        ExecApprovalRequest(Box<work::ExecApprovalRequest<'a>>) = "exec_approval_request",
        /// May a patch be applied?
        ApplyPatchApprovalRequest(Box<work::ApplyPatchApprovalRequest<'a>>) =
            "apply_patch_approval_request",
        /// Questions of the model.
        RequestUserInput(work::RequestUserInput<'a>) = "request_user_input",
        /// A server of tools asks.
        ElicitationRequest(work::ElicitationRequest<'a>) = "elicitation_request",
        /// A tool of the client is wanted.
        DynamicToolCallRequest(work::DynamicToolCallRequest<'a>) = "dynamic_tool_call_request",
        /// More than the sandbox gives is wanted.
        RequestPermissions(work::RequestPermissions<'a>) = "request_permissions",
        /// A server of tools starts.
        McpStartupUpdate(work::McpStartupUpdate<'a>) = "mcp_startup_update",
        /// All servers of tools have started, or not.
        McpStartupComplete(work::McpStartupComplete<'a>) = "mcp_startup_complete",
        /// A server's tool is called.
        McpToolCallBegin(work::McpToolCallBegin<'a>) = "mcp_tool_call_begin",
        /// It is over.
        McpToolCallEnd(Box<work::McpToolCallEnd<'a>>) = "mcp_tool_call_end",
        /// The web is searched.
        WebSearchBegin(work::WebSearchBegin<'a>) = "web_search_begin",
        /// It was searched.
        WebSearchEnd(work::WebSearchEnd<'a>) = "web_search_end",
        /// The skills there are.
        ListSkillsResponse(reply::ListSkillsResponse<'a>) = "list_skills_response",
        /// Skills changed.
        SkillsUpdateAvailable = "skills_update_available",
        /// The prompts there are.
        ListCustomPromptsResponse(reply::ListCustomPromptsResponse<'a>) = "list_custom_prompts_response",
        /// The models there are.
        ListModelsResponse(reply::ListModelsResponse<'a>) = "list_models_response",
        /// The tools there are.
        McpListToolsResponse(work::McpListToolsResponse<'a>) = "mcp_list_tools_response",
        /// A line of input.
        GetHistoryEntryResponse(reply::GetHistoryEntryResponse<'a>) = "get_history_entry_response",
        /// Where the conversation is recorded.
        ConversationPath(reply::ConversationPath<'a>) = "conversation_path",
        /// A review begins.
        EnteredReviewMode(reply::EnteredReviewMode<'a>) = "entered_review_mode",
        /// It is over.
        ExitedReviewMode(reply::ExitedReviewMode<'a>) = "exited_review_mode",
    } else {
        /// An event without a body here: one of [`EventMsg::PASSED_ON`], or one that is not known.
        #[schemars(skip)]
        Unknown(Unknown<'a>),
    }
}

impl EventMsg<'_> {
    /// Kinds that are known and have no body here, because no client of ours needs one.
    pub const PASSED_ON: &'static [&'static str] = &[
        "collab_agent_interaction_begin",
        "collab_agent_interaction_end",
        "collab_agent_spawn_begin",
        "collab_agent_spawn_end",
        "collab_close_begin",
        "collab_close_end",
        "collab_resume_begin",
        "collab_resume_end",
        "collab_waiting_begin",
        "collab_waiting_end",
        "conversation_history",
        "guardian_assessment",
        "hook_completed",
        "hook_started",
        "list_remote_skills_response",
        "raw_response_item",
        "remote_skill_downloaded",
        "thread_settings_applied",
    ];

    /// Whether this kind of event is known, with a body or without.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Unknown(unknown) => Self::PASSED_ON.contains(&&*unknown.kind),
            _ => true,
        }
    }
}

body! {
    /// The session is there.
    SessionConfigured<'a> {
        /// Its id.
        session_id: Str<'a>,
        /// The model in use.
        model: Str<'a>,
        /// The file of input lines.
        history_log_id: u64,
        /// How many lines it has.
        history_entry_count: u64,
    } ? {
        /// The session it branched off from.
        forked_from_id: Str<'a>,
        /// Its name.
        thread_name: Str<'a>,
        /// Who serves the model.
        model_provider_id: Str<'a>,
        /// When the agent asks.
        approval_policy: ApprovalPolicy<'a>,
        /// What commands can reach.
        sandbox_policy: SandboxPolicy<'a>,
        /// Where it works.
        cwd: Str<'a>,
        /// For how long the model thinks.
        reasoning_effort: Effort,
        /// What was said before, when a session goes on: events without their envelope.
        initial_messages: Raw<'a>,
        /// The way to the network.
        network_proxy: Raw<'a>,
        /// Where the session is recorded.
        rollout_path: Str<'a>,
    }
}

body! {
    /// The conversation has another name.
    ThreadNameUpdated<'a> {
        /// Which conversation.
        thread_id: Str<'a>,
    } ? {
        /// The name.
        thread_name: Str<'a>,
    }
}

body! {
    /// Something will go away.
    DeprecationNotice<'a> {
        /// What.
        summary: Str<'a>,
    } ? {
        /// What to do.
        details: Str<'a>,
    }
}

body! {
    /// One sentence.
    Message<'a> {
        /// It.
        message: Str<'a>,
    }
}

body! {
    /// A task begins.
    TaskStarted<'a> {
        /// How many tokens the model can hold.
        model_context_window: Option<u64>,
    } ? {
        /// What the model is to do with the user.
        collaboration_mode_kind: CollaborationKind,
        /// The turn's id.
        turn_id: Str<'a>,
    }
}

body! {
    /// A task is over.
    TaskComplete<'a> {
        /// What the model said last.
        last_agent_message: Option<Str<'a>>,
    } ? {
        /// The provider's id of the last answer, a bookmark that a later turn can go on from. The
        /// protocol's description has it, none of the old programs.
        response_id: Str<'a>,
        /// What is over: an answer of the model with what it asked for (`turn`), or all of it
        /// (`task`). Where it is missing, all.
        scope: Scope,
        /// The turn's id.
        turn_id: Str<'a>,
        /// What went wrong.
        error: Raw<'a>,
        /// How long it took.
        duration_ms: u64,
    }
}

words! {
    /// What is over.
    Scope {
        /// One answer of the model, with the work it asked for.
        Turn = "turn",
        /// The whole task.
        Task = "task",
    }
}

words! {
    /// Why a task was stopped.
    #[derive(Default)]
    AbortReason {
        /// Somebody wanted it.
        #[default]
        Interrupted = "interrupted",
        /// Another task took its place.
        Replaced = "replaced",
        /// It was a review, and that is over.
        ReviewEnded = "review_ended",
        /// A budget is spent.
        BudgetLimited = "budget_limited",
    }
}

body! {
    /// A task was stopped.
    TurnAborted<'a> {
        /// Why.
        reason: AbortReason,
    } ? {
        /// The turn's id.
        turn_id: Str<'a>,
    }
}

body! {
    /// Something went wrong.
    ErrorEvent<'a> {
        /// What.
        message: Str<'a>,
    } ? {
        /// The same for programs: a word, or an object with the HTTP status.
        codex_error_info: Raw<'a>,
        /// More for a person.
        additional_details: Str<'a>,
        /// The same in the words of tieline's events, which only its own engine writes.
        tieline_failure: Raw<'a>,
    }
}

body! {
    /// Tokens were counted.
    TokenCount<'a> {
        /// How many; none before the first answer.
        info: Option<TokenInfo>,
        /// What the provider leaves.
        rate_limits: Option<RateLimits<'a>>,
    }
}

body! {
    /// An answer of the provider is complete.
    RawResponseCompleted<'a> {
        /// The provider's id of it.
        response_id: Str<'a>,
    } ? {
        /// What it used.
        token_usage: TokenUsage,
    }
}

/// How many tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TokenInfo {
    /// Since the session began.
    pub total_token_usage: TokenUsage,
    /// Of the last answer.
    pub last_token_usage: TokenUsage,
    /// How many the model can hold.
    pub model_context_window: Option<u64>,
}

/// Tokens as the provider counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TokenUsage {
    /// Read, with those from the cache.
    pub input_tokens: u64,
    /// Read from the cache.
    pub cached_input_tokens: u64,
    /// Written, with those of thinking.
    pub output_tokens: u64,
    /// Of thinking.
    pub reasoning_output_tokens: u64,
    /// All.
    pub total_tokens: u64,
}

body! {
    /// What the provider leaves.
    RateLimits<'a> {
        /// Of the shorter time.
        primary: Option<RateWindow>,
        /// Of the longer time.
        secondary: Option<RateWindow>,
    } ? {
        /// Money.
        credits: Raw<'a>,
        /// What is paid for.
        plan_type: Raw<'a>,
    }
}

/// How much of a limit is used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RateWindow {
    /// From 0 to 100.
    pub used_percent: f64,
    /// How long it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_minutes: Option<u64>,
    /// When it starts anew, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<i64>,
    /// The same from now on, up to about 0.45.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets_in_seconds: Option<u64>,
}

/// The last turns were forgotten.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadRolledBack {
    /// How many.
    pub num_turns: u32,
}

body! {
    /// Changes are being taken back.
    UndoStarted<'a> {
    } ? {
        /// A word on it.
        message: Str<'a>,
    }
}

body! {
    /// Changes were taken back.
    UndoCompleted<'a> {
        /// Whether it worked.
        success: bool,
    } ? {
        /// A word on it.
        message: Str<'a>,
    }
}

body! {
    /// Another model answers.
    ModelReroute<'a> {
        /// The one that was asked for.
        from_model: Str<'a>,
        /// The one that answers.
        to_model: Str<'a>,
        /// Why.
        reason: Raw<'a>,
    }
}

body! {
    /// A message of the model.
    AgentMessage<'a> {
        /// The text.
        message: Str<'a>,
    } ? {
        /// `commentary` or `final_answer`.
        phase: Str<'a>,
    }
}

body! {
    /// A piece of a text.
    Delta<'a> {
        /// What is new.
        delta: Str<'a>,
    }
}

body! {
    /// A piece of an item's text.
    ItemDelta<'a> {
        /// The conversation.
        thread_id: Str<'a>,
        /// The turn.
        turn_id: Str<'a>,
        /// The item.
        item_id: Str<'a>,
        /// What is new.
        delta: Str<'a>,
    } ? {
        /// Which part of a summary.
        summary_index: i64,
        /// Which part of the thinking.
        content_index: i64,
    }
}

body! {
    /// What the user said.
    UserMessage<'a> {
        /// The text.
        message: Str<'a>,
        /// Pictures in files.
        local_images: Vec<Str<'a>>,
        /// Ranges of the text that mean something to the client.
        text_elements: Vec<Raw<'a>>,
    } ? {
        /// Pictures at addresses.
        images: Vec<Str<'a>>,
        /// What sort of message it is, up to about 0.45.
        kind: Str<'a>,
    }
}

body! {
    /// A text.
    Text<'a> {
        /// It.
        text: Str<'a>,
    }
}

body! {
    /// A new part of the thinking begins.
    SectionBreak<'a> {
    } ? {
        /// The item.
        item_id: Str<'a>,
        /// Which part.
        summary_index: i64,
    }
}

body! {
    /// The list of steps.
    PlanUpdate<'a> {
        /// A word on the change.
        explanation: Option<Str<'a>>,
        /// Each step.
        plan: Vec<PlanStep<'a>>,
    }
}

body! {
    /// A step.
    PlanStep<'a> {
        /// What is to be done.
        step: Str<'a>,
        /// `pending`, `in_progress` or `completed`.
        status: Str<'a>,
    }
}
