//! Policies, decisions, and what a turn may be told besides.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::body::{body, words};
use crate::raw::Raw;
use crate::text::Str;

words! {
    /// For how long the model thinks.
    Effort {
        /// Not at all.
        None = "none",
        /// Hardly.
        Minimal = "minimal",
        /// A little.
        Low = "low",
        /// The usual.
        Medium = "medium",
        /// Long.
        High = "high",
        /// As long as it can.
        XHigh = "xhigh",
    }
}

words! {
    /// How the model sums its thinking up.
    #[derive(Default)]
    Summary {
        /// As it sees fit.
        #[default]
        Auto = "auto",
        /// Briefly.
        Concise = "concise",
        /// At length.
        Detailed = "detailed",
        /// Not at all.
        None = "none",
    }
}

words! {
    /// How the model speaks.
    Personality {
        /// As it is.
        None = "none",
        /// Warmly.
        Friendly = "friendly",
        /// To the point.
        Pragmatic = "pragmatic",
    }
}

words! {
    /// What the model is to do with the user.
    CollaborationKind {
        /// Plan, and change nothing.
        Plan = "plan",
        /// Act.
        Default = "default",
    }
}

body! {
    /// What the model is to do with the user, and how.
    CollaborationMode<'a> {
        /// `plan` or `default`, which has older names too.
        mode: Str<'a>,
        /// Model, effort, instructions.
        settings: Raw<'a>,
    }
}

/// When the agent asks.
#[derive(Debug, Clone, Default)]
pub enum ApprovalPolicy<'a> {
    /// Before every command that is not known to be harmless.
    Untrusted,
    /// When a command failed inside the sandbox.
    OnFailure,
    /// When the model thinks it must.
    #[default]
    OnRequest,
    /// Never.
    Never,
    /// A finer one, as an object, or a word that is not known.
    Other(Raw<'a>),
}

impl Serialize for ApprovalPolicy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Untrusted => serializer.serialize_str("untrusted"),
            Self::OnFailure => serializer.serialize_str("on-failure"),
            Self::OnRequest => serializer.serialize_str("on-request"),
            Self::Never => serializer.serialize_str("never"),
            Self::Other(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ApprovalPolicy<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        Ok(match raw.read::<Str<'_>>().as_deref() {
            // The second spelling is that of the first releases.
            Some("untrusted" | "unless-trusted" | "unless-allow-listed") => Self::Untrusted,
            Some("on-failure" | "auto-edit") => Self::OnFailure,
            Some("on-request") => Self::OnRequest,
            Some("never") => Self::Never,
            _ => Self::Other(raw),
        })
    }
}

/// What commands can reach. The tag was `mode` up to 0.58 and is `type` since; both are read.
#[derive(Debug, Clone, Default)]
pub struct SandboxPolicy<'a> {
    /// Which field names the kind when it is written.
    pub tag: SandboxTag,
    /// The kind.
    pub kind: SandboxKind<'a>,
}

/// The field that names the kind of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxTag {
    /// `type`, since 0.60.
    #[default]
    Type,
    /// `mode`, up to 0.58.
    Mode,
}

/// What commands can reach.
#[derive(Debug, Clone, Default)]
pub enum SandboxKind<'a> {
    /// They read.
    #[default]
    ReadOnly,
    /// They write in the workspace.
    WorkspaceWrite(WorkspaceWrite<'a>),
    /// Everything.
    DangerFullAccess,
    /// Something around the agent bounds it.
    ExternalSandbox {
        /// `restricted` or `enabled`.
        network_access: Raw<'a>,
    },
    /// One that is not known: the whole object.
    Other(Raw<'a>),
}

body! {
    /// A sandbox around the workspace.
    WorkspaceWrite<'a> {
        /// Further directories to write in.
        writable_roots: Vec<Str<'a>>,
        /// Commands have a network.
        network_access: bool,
        /// `$TMPDIR` is not to be written in.
        exclude_tmpdir_env_var: bool,
        /// `/tmp` is not to be written in.
        exclude_slash_tmp: bool,
    }
}

impl SandboxPolicy<'_> {
    /// The name of the kind, where it is known.
    pub fn name(&self) -> Option<&'static str> {
        match &self.kind {
            SandboxKind::ReadOnly => Some("read-only"),
            SandboxKind::WorkspaceWrite(_) => Some("workspace-write"),
            SandboxKind::DangerFullAccess => Some("danger-full-access"),
            SandboxKind::ExternalSandbox { .. } => Some("external-sandbox"),
            SandboxKind::Other(_) => None,
        }
    }
}

impl Serialize for SandboxPolicy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tag = match self.tag {
            SandboxTag::Type => "type",
            SandboxTag::Mode => "mode",
        };
        let Some(name) = self.name() else {
            return match &self.kind {
                SandboxKind::Other(raw) => raw.serialize(serializer),
                _ => serializer.serialize_unit(),
            };
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(tag, name)?;
        match &self.kind {
            SandboxKind::WorkspaceWrite(it) => {
                if !it.writable_roots.is_empty() {
                    map.serialize_entry("writable_roots", &it.writable_roots)?;
                }
                map.serialize_entry("network_access", &it.network_access)?;
                map.serialize_entry("exclude_tmpdir_env_var", &it.exclude_tmpdir_env_var)?;
                map.serialize_entry("exclude_slash_tmp", &it.exclude_slash_tmp)?;
            }
            SandboxKind::ExternalSandbox { network_access } => {
                map.serialize_entry("network_access", network_access)?;
            }
            _ => {}
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for SandboxPolicy<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            r#type: Option<Str<'a>>,
            #[serde(borrow)]
            mode: Option<Str<'a>>,
            #[serde(borrow, default)]
            network_access: Raw<'a>,
        }
        // No hot path: the object is read twice, and one that is not understood is kept.
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        let other = || SandboxKind::Other(Raw::Borrowed(raw));
        let Ok(head) = serde_json::from_str::<Head<'de>>(raw.get()) else {
            return Ok(Self { tag: SandboxTag::Type, kind: other() });
        };
        let tag = if head.r#type.is_some() { SandboxTag::Type } else { SandboxTag::Mode };
        let kind = match head.r#type.or(head.mode).as_deref() {
            Some("read-only") => SandboxKind::ReadOnly,
            Some("danger-full-access") => SandboxKind::DangerFullAccess,
            Some("workspace-write") => serde_json::from_str(raw.get())
                .map_or_else(|_| other(), SandboxKind::WorkspaceWrite),
            Some("external-sandbox") => {
                SandboxKind::ExternalSandbox { network_access: head.network_access }
            }
            _ => other(),
        };
        Ok(Self { tag, kind })
    }
}

/// The answer to a request for leave.
#[derive(Debug, Clone, Default)]
pub enum Decision<'a> {
    /// Yes.
    Approved,
    /// Yes, and do not ask again for the same.
    ApprovedForSession,
    /// Yes, and this beginning of a command line is allowed from now on.
    ApprovedExecpolicyAmendment {
        /// The words it begins with.
        proposed_execpolicy_amendment: Vec<Str<'a>>,
    },
    /// No; the agent goes on without it.
    #[default]
    Denied,
    /// No, with a word for the model. Newer than the rest.
    DeniedBecause {
        /// The word.
        rejection: Str<'a>,
    },
    /// No, and the turn ends.
    Abort,
    /// Nobody answered in time.
    TimedOut,
    /// One that is not known.
    Other(Raw<'a>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DecisionObject<'a> {
    ApprovedExecpolicyAmendment {
        #[serde(borrow)]
        proposed_execpolicy_amendment: Vec<Str<'a>>,
    },
    Denied {
        #[serde(borrow)]
        rejection: Str<'a>,
    },
}

impl Serialize for Decision<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Approved => serializer.serialize_str("approved"),
            Self::ApprovedForSession => serializer.serialize_str("approved_for_session"),
            Self::Denied => serializer.serialize_str("denied"),
            Self::Abort => serializer.serialize_str("abort"),
            Self::TimedOut => serializer.serialize_str("timed_out"),
            Self::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment } => {
                let proposed_execpolicy_amendment = proposed_execpolicy_amendment.clone();
                DecisionObject::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment }
                    .serialize(serializer)
            }
            Self::DeniedBecause { rejection } => {
                DecisionObject::Denied { rejection: rejection.clone() }.serialize(serializer)
            }
            Self::Other(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Decision<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        if let Ok(word) = serde_json::from_str::<Str<'_>>(raw.get()) {
            return Ok(match &*word {
                "approved" => Self::Approved,
                "approved_for_session" => Self::ApprovedForSession,
                "denied" => Self::Denied,
                "abort" => Self::Abort,
                "timed_out" => Self::TimedOut,
                _ => Self::Other(Raw::Borrowed(raw)),
            });
        }
        Ok(match serde_json::from_str::<DecisionObject<'de>>(raw.get()) {
            Ok(DecisionObject::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment }) => {
                Self::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment }
            }
            Ok(DecisionObject::Denied { rejection }) => Self::DeniedBecause { rejection },
            Err(_) => Self::Other(Raw::Borrowed(raw)),
        })
    }
}
