//! What was chosen: mode, model, effort, and where the agent works.

use tieline_agent::Session;
use tieline_event::{Configured, Seq};

use super::Actor;
use crate::conversation::OpenOptions;

impl Actor {
    /// Takes over what the options say and tells the agent, or notes that it needs a new process.
    pub(super) fn reconfigure(&mut self, options: &OpenOptions) {
        let mut told = Configured::default();
        if let Some(workspace) = options.workspace.as_ref().filter(|it| **it != self.workspace) {
            self.workspace.clone_from(workspace);
            self.change().workspace = Some(workspace.display().to_string());
            told.cwd = Some(workspace.display().to_string());
            self.stale |= !self.process.is_absent();
        }
        // A mode without a policy is the mode's own.
        let mode = options.mode.unwrap_or(self.mode);
        let kept = self.policy.filter(|_| options.mode.is_none());
        let policy = options.policy.or(kept);
        if (mode, policy) != (self.mode, self.policy) {
            (self.mode, self.policy) = (mode, policy);
            let change = self.change();
            (change.mode, change.policy) = (Some(mode), Some(policy));
            if !self.is_taken(|session| session.set_mode(mode, policy)) {
                (told.mode, told.policy) = (Some(mode), policy);
            }
        }
        if options.model.is_some() && options.model != self.model {
            self.model.clone_from(&options.model);
            self.change().model = Some(options.model.clone());
            if !self.is_taken(|session| session.set_model(options.model.as_deref())) {
                told.model.clone_from(&options.model);
            }
        }
        if options.effort.is_some() && options.effort != self.effort {
            self.effort.clone_from(&options.effort);
            self.change().effort = Some(options.effort.clone());
            if !self.is_taken(|session| session.set_effort(options.effort.as_deref())) {
                told.effort.clone_from(&options.effort);
            }
        }
        if let Some(extras) = options.extras.as_ref().filter(|it| **it != self.extras) {
            self.extras.clone_from(extras);
            self.stale |= !self.process.is_absent();
        }
        if told != Configured::default() && self.next_seq > Seq(1) {
            self.ledger_mut().configured(told);
        }
    }

    /// Whether the agent takes a change as it runs, and tells it. One that cannot is replaced.
    fn is_taken(&mut self, set: impl FnOnce(&mut Session) -> bool) -> bool {
        let is_taken = self.process.live_mut().map(|live| set(&mut live.session));
        self.stale |= !is_taken.unwrap_or(self.process.is_absent());
        is_taken.unwrap_or(false)
    }

    /// A process that is to be replaced knows nothing of what was chosen since.
    pub(super) fn keep_ours(&self, told: &mut Configured) {
        told.mode = told.mode.filter(|mode| *mode == self.mode);
        told.policy = told.policy.filter(|_| told.mode.is_some());
        told.model = told.model.take().filter(|model| self.model.as_ref() == Some(model));
        told.effort = told.effort.take().filter(|effort| self.effort.as_ref() == Some(effort));
    }
}
