//! What holds for a session's turns, and what a change of it means for the conversation.

use std::path::PathBuf;

use tieline_event::{AskWhen, Extras, Mode, Policy, Reach};
use tieline_hub::OpenOptions;
use tieline_wire::sqeq::{ApprovalPolicy, SandboxKind, SandboxPolicy, SandboxTag, WorkspaceWrite};

use super::order::{Context, Sandbox};

#[cfg(test)]
mod tests;

/// What holds now.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    pub(super) policy: Policy,
    /// Somebody chose it; else it is what the mode means, which an agent may know better.
    is_chosen: bool,
    network: bool,
    roots: Vec<PathBuf>,
    pub(super) plans: bool,
    /// What the next turn is told once.
    pub(super) personality: Option<String>,
    pub(super) summary: Option<String>,
}

impl Standing {
    pub(super) fn of(mode: Mode, policy: Option<Policy>) -> Self {
        Self {
            policy: policy.unwrap_or_else(|| Policy::of(mode)),
            is_chosen: policy.is_some(),
            network: policy.is_none() && mode == Mode::BypassPermissions,
            roots: Vec::new(),
            plans: policy.is_none() && mode == Mode::Plan,
            personality: None,
            summary: None,
        }
    }

    /// Takes a change over; gives what it means for the conversation.
    pub(super) fn change(&mut self, context: &Context) -> OpenOptions {
        let before = self.clone();
        self.policy.ask = context.ask.unwrap_or(self.policy.ask);
        self.is_chosen |= context.ask.is_some();
        if let Some(Sandbox { reach, network, roots }) = &context.sandbox {
            self.policy.reach = *reach;
            self.network = *network;
            self.roots.clone_from(roots);
        }
        self.plans = context.plan.unwrap_or(self.plans);
        self.personality = context.personality.clone().or(self.personality.take());
        self.summary = context.summary.clone().or(self.summary.take());
        let mut options = OpenOptions {
            workspace: context.cwd.clone(),
            model: context.model.clone(),
            effort: context.effort.clone(),
            ..OpenOptions::default()
        };
        let held = |it: &Self| (it.policy, it.is_chosen, it.network, it.plans);
        let is_other = held(self) != held(&before);
        if is_other {
            let (mode, policy) = self.mode();
            (options.mode, options.policy) = (Some(mode), policy);
        }
        if self.roots != before.roots {
            let directories = self.roots.clone();
            options.extras = Some(Extras { directories, ..Extras::default() });
        }
        options
    }

    /// The mode that comes nearest, for agents that know only modes; and the policy, where it is not
    /// exactly that mode for every agent.
    pub(super) fn mode(&self) -> (Mode, Option<Policy>) {
        if self.plans {
            return (Mode::Plan, None);
        }
        let Policy { ask, reach } = self.policy;
        if (ask, reach, self.network) == (AskWhen::Never, Reach::WorkspaceWrite, true) {
            return (Mode::BypassPermissions, None);
        }
        match self.policy.as_mode() {
            // Some agents ask for more in this mode than who chose the policy wants.
            Some(Mode::Default) if self.is_chosen => return (Mode::Default, Some(self.policy)),
            Some(mode) => return (mode, None),
            None => {}
        }
        let nearest = match (ask, reach) {
            (_, Reach::ReadOnly) | (AskWhen::Untrusted, _) => Mode::Default,
            (AskWhen::Never, Reach::WorkspaceWrite) => Mode::BypassPermissions,
            (AskWhen::Never, Reach::DangerFullAccess) => Mode::Yolo,
            (AskWhen::OnFailure | AskWhen::OnRequest, _) => Mode::AcceptEdits,
        };
        (nearest, Some(self.policy))
    }

    /// Nobody wants to be asked: an agent that asks all the same is told no.
    pub(super) fn never_asks(&self) -> bool {
        self.policy.ask == AskWhen::Never && !self.plans
    }

    pub(super) fn approval_policy(&self) -> ApprovalPolicy<'static> {
        match self.policy.ask {
            AskWhen::Untrusted => ApprovalPolicy::Untrusted,
            AskWhen::OnFailure => ApprovalPolicy::OnFailure,
            AskWhen::OnRequest => ApprovalPolicy::OnRequest,
            AskWhen::Never => ApprovalPolicy::Never,
        }
    }

    pub(super) fn sandbox_policy(&self) -> SandboxPolicy<'static> {
        SandboxPolicy {
            tag: SandboxTag::Type,
            kind: match self.policy.reach {
                Reach::ReadOnly => SandboxKind::ReadOnly,
                Reach::DangerFullAccess => SandboxKind::DangerFullAccess,
                Reach::WorkspaceWrite => SandboxKind::WorkspaceWrite(WorkspaceWrite {
                    writable_roots: self
                        .roots
                        .iter()
                        .map(|root| root.display().to_string().into())
                        .collect(),
                    network_access: self.network,
                    ..WorkspaceWrite::default()
                }),
            },
        }
    }
}
