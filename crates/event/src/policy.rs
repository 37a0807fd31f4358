//! A policy finer than a mode: when to ask, and what may be touched without asking.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ability::Mode;

/// When an agent asks before it runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskWhen {
    /// Before every command that is not known to be harmless.
    Untrusted,
    /// When a command failed inside the sandbox.
    OnFailure,
    /// When the model thinks it must.
    OnRequest,
    /// Never.
    Never,
}

/// What commands can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// They read.
    ReadOnly,
    /// They write in the workspace, without a network.
    WorkspaceWrite,
    /// Everything.
    DangerFullAccess,
}

/// A policy finer than a mode, for agents that have such a one. It goes before the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// When it asks.
    pub ask: AskWhen,
    /// What its commands can reach.
    pub reach: Reach,
}

macro_rules! names {
    ($type:ident, $what:literal, { $($variant:ident => $name:literal),* $(,)? }) => {
        impl $type {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in JSON and on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let known = || Self::ALL.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
                match text {
                    $($name => Ok(Self::$variant),)*
                    _ => Err(format!("unknown {} {text:?}; known are {}", $what, known())),
                }
            }
        }
    };
}

names!(AskWhen, "approval policy", {
    Untrusted => "untrusted",
    OnFailure => "on-failure",
    OnRequest => "on-request",
    Never => "never",
});
names!(Reach, "sandbox", {
    ReadOnly => "read-only",
    WorkspaceWrite => "workspace-write",
    DangerFullAccess => "danger-full-access",
});

impl Policy {
    /// What a mode means. The mode that never asks in a sandbox has a network besides.
    pub fn of(mode: Mode) -> Self {
        let (ask, reach) = match mode {
            Mode::Default | Mode::Plan => (AskWhen::OnRequest, Reach::ReadOnly),
            Mode::AcceptEdits | Mode::Auto => (AskWhen::OnRequest, Reach::WorkspaceWrite),
            Mode::BypassPermissions => (AskWhen::Never, Reach::WorkspaceWrite),
            Mode::Yolo => (AskWhen::Never, Reach::DangerFullAccess),
        };
        Self { ask, reach }
    }

    /// A policy, unless it says just what the mode says: for agents that know only modes.
    pub fn beyond(mode: Mode, policy: Option<Self>) -> Option<Self> {
        policy.filter(|policy| *policy != Self::of(mode))
    }

    /// The mode that means exactly this, if there is one.
    pub fn as_mode(self) -> Option<Mode> {
        [Mode::Default, Mode::AcceptEdits, Mode::Yolo]
            .into_iter()
            .find(|mode| Self::of(*mode) == self)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.ask, self.reach)
    }
}

#[test]
fn a_policy_that_is_a_mode_is_known_as_one() {
    let policy = |ask, reach| Policy { ask, reach };
    let full_auto = policy(AskWhen::OnRequest, Reach::WorkspaceWrite);
    assert_eq!(full_auto.as_mode(), Some(Mode::AcceptEdits));
    assert_eq!(policy(AskWhen::Never, Reach::DangerFullAccess).as_mode(), Some(Mode::Yolo));
    // The mode has a network, this has none.
    assert_eq!(policy(AskWhen::Never, Reach::WorkspaceWrite).as_mode(), None);
    assert_eq!("on-failure".parse(), Ok(AskWhen::OnFailure));
    assert!("sometimes".parse::<AskWhen>().unwrap_err().contains("on-request"));
}
