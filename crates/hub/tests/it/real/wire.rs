//! The wires, and where they differ in what a scene can ask of them.

use tieline_event::Mode;

/// A wire to a real agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Claude,
    Codex,
    CodexExec,
    CodexProto,
    /// Claude Code behind its adapter to the Agent Client Protocol.
    AcpClaude,
}

impl Wire {
    pub(crate) const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::CodexExec, Self::CodexProto, Self::AcpClaude];

    /// The name users give the agent.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::CodexExec => "codex-exec",
            Self::CodexProto => "codex-proto",
            Self::AcpClaude => "acp:claude-agent-acp",
        }
    }

    /// The agent is Claude Code, whoever speaks with it.
    pub(crate) fn is_claude(self) -> bool {
        matches!(self, Self::Claude | Self::AcpClaude)
    }

    /// The name of its pin.
    pub(crate) fn pinned(self) -> &'static str {
        match self {
            Self::Claude | Self::AcpClaude => "claude",
            Self::Codex | Self::CodexExec => "codex",
            Self::CodexProto => "codex-proto",
        }
    }

    /// The pinned version.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.325",
            Self::Codex | Self::CodexExec => "0.166.0",
            Self::CodexProto => "0.42.0",
            Self::AcpClaude => "0.99.1",
        }
    }

    /// What is started.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::Claude => "claude --input-format stream-json",
            Self::Codex => "codex app-server",
            Self::CodexExec => "codex exec --json",
            Self::CodexProto => "codex proto",
            Self::AcpClaude => "claude-agent-acp",
        }
    }

    /// The model a scene begins with and another one.
    pub(crate) fn models(self) -> (&'static str, &'static str) {
        match self {
            Self::Claude | Self::AcpClaude => ("claude-opus-5-5", "claude-sonnet-4-5"),
            Self::Codex | Self::CodexExec => ("gpt-5.5", "gpt-5.6-luna"),
            Self::CodexProto => ("gpt-5-codex", "gpt-5"),
        }
    }

    /// What the agent calls a model.
    pub(crate) fn model_name(self, model: &'static str) -> &'static str {
        match (self, model) {
            (Self::AcpClaude, "claude-sonnet-4-5") => "sonnet",
            _ => model,
        }
    }

    /// One process serves the turns of a conversation.
    pub(crate) fn keeps_its_process(self) -> bool {
        self != Self::CodexExec
    }

    /// The most careful mode in which it acts without asking.
    pub(crate) fn unasked(self) -> Mode {
        match self {
            // It has a sandbox to ask for and none to run: see the scene `sandbox`.
            Self::CodexProto => Mode::Yolo,
            _ => Mode::BypassPermissions,
        }
    }

    /// The most careful mode in which it changes files without asking.
    pub(crate) fn edits(self) -> Mode {
        match self {
            Self::CodexProto => Mode::Yolo,
            _ => Mode::AcceptEdits,
        }
    }

    /// Where the agent keeps its sessions, below its home.
    pub(crate) fn sessions(self) -> &'static str {
        match self {
            Self::Claude | Self::AcpClaude => ".claude/projects",
            _ => ".codex/sessions",
        }
    }
}
