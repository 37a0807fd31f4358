//! The terms a session works under: when somebody is asked, and what commands can reach.

use serde::Deserialize;
use tieline_event::{AskWhen, Mode, Policy, Reach};

/// When somebody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// As one of the four common policies says.
    When(AskWhen),
    /// As [`AskWhen::OnRequest`], but questions of some sorts are answered with no, unasked.
    Granular(Granular),
}

/// Which sorts of questions are asked at all. What is not named is not asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Granular {
    /// Whether a command may leave the sandbox, or is dangerous.
    pub sandbox_approval: bool,
    /// What a rule wants to be asked.
    pub rules: bool,
}

impl Granular {
    /// Reads `{"granular":{…}}`, as it stands where a policy's name would.
    pub fn read(policy: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Named {
            granular: Granular,
        }
        serde_json::from_str::<Named>(policy).ok().map(|named| named.granular)
    }
}

/// What holds commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// They read, and that is all.
    ReadOnly,
    /// They write in the workspace.
    WorkspaceWrite,
    /// Nothing does.
    None,
    /// Something around this process, which is somebody else's care.
    External,
}

impl Sandbox {
    /// Whether there is one of ours.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::ReadOnly | Self::WorkspaceWrite)
    }
}

impl From<Reach> for Sandbox {
    fn from(reach: Reach) -> Self {
        match reach {
            Reach::ReadOnly => Self::ReadOnly,
            Reach::WorkspaceWrite => Self::WorkspaceWrite,
            Reach::DangerFullAccess => Self::None,
        }
    }
}

/// The terms a session works under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// When somebody is asked.
    pub ask: Ask,
    /// What holds commands nobody was asked about.
    pub sandbox: Sandbox,
    /// What holds commands that somebody said yes to. One that was to leave the sandbox is held by
    /// nothing.
    pub approved: Sandbox,
    /// Commands have a network inside the sandbox.
    pub network: bool,
    /// The model plans: nothing is changed, and nobody is asked whether it may be.
    pub plan: bool,
}

impl Terms {
    /// What a mode means here. A policy that is given goes before the mode.
    ///
    /// In the default mode every write is asked for, so commands run where they cannot write; one
    /// that somebody approved would be good for nothing there, so it may write in the workspace.
    pub fn of(mode: Mode, policy: Option<Policy>) -> Self {
        if let Some(policy) = policy {
            return Self::of_policy(Ask::When(policy.ask), policy.reach.into());
        }
        let (ask, sandbox) = match mode {
            Mode::Default => (AskWhen::Untrusted, Sandbox::ReadOnly),
            Mode::Plan => (AskWhen::OnRequest, Sandbox::ReadOnly),
            // Nothing here judges for itself what needs asking.
            Mode::AcceptEdits | Mode::Auto => (AskWhen::OnRequest, Sandbox::WorkspaceWrite),
            Mode::BypassPermissions => (AskWhen::Never, Sandbox::WorkspaceWrite),
            Mode::Yolo => (AskWhen::Never, Sandbox::None),
        };
        Self {
            approved: if mode == Mode::Default { Sandbox::WorkspaceWrite } else { sandbox },
            network: matches!(mode, Mode::BypassPermissions | Mode::Yolo),
            plan: mode == Mode::Plan,
            ..Self::of_policy(Ask::When(ask), sandbox)
        }
    }

    /// What a policy means that comes from a client of the queue protocol.
    pub fn of_policy(ask: Ask, sandbox: Sandbox) -> Self {
        let network = !sandbox.is_ours();
        Self { ask, sandbox, approved: sandbox, network, plan: false }
    }

    /// What holds a command that leaves the sandbox: ours does not.
    pub fn outside(&self) -> Sandbox {
        if self.sandbox.is_ours() { Sandbox::None } else { self.sandbox }
    }
}
