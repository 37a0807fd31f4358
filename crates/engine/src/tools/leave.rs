//! What somebody who is asked for leave is told besides the act itself.

use tieline_wire::sqeq::Besides;
use tieline_wire::text::Str;

use super::Scene;
use crate::command::Sandbox;

#[cfg(test)]
mod tests;

/// Why leave is asked for, and how far it reaches.
#[derive(Debug, Clone, Default)]
pub(super) struct Terms {
    /// Why, in our words.
    pub(super) why: String,
    /// Why, in the model's.
    pub(super) said: Option<String>,
    /// What holds a command.
    pub(super) held: Option<Sandbox>,
    /// Whether it reaches the network.
    pub(super) network: Option<bool>,
    /// It failed in the sandbox.
    pub(super) is_retry: bool,
}

impl Terms {
    /// For a command that is held by this.
    pub(super) fn within(mut self, scene: &Scene, sandbox: Sandbox) -> Self {
        let policy = scene.shared.policy(&scene.context, sandbox);
        self.held = Some(sandbox);
        // Without a sandbox there is the network that we have.
        self.network = Some(policy.is_none_or(|policy| policy.network));
        self
    }

    /// For clients that show one sentence. What the model says cannot be taken for ours: it comes
    /// last, quoted, on the same line.
    pub(super) fn sentence(&self) -> Str<'static> {
        let mut text = self.why.clone();
        if let Some(held) = self.held {
            text.push_str(match held {
                Sandbox::ReadOnly => "; it runs in the sandbox and writes nothing",
                Sandbox::WorkspaceWrite => "; it runs in the sandbox and writes in the workspace",
                Sandbox::None | Sandbox::External => "; it runs outside of the sandbox",
            });
        }
        match self.network {
            Some(true) => text.push_str(", with the network"),
            Some(false) => text.push_str(", without the network"),
            None => {}
        }
        if let Some(said) = &self.said {
            text.push_str(&format!("; the model says: {said:?}"));
        }
        text.into()
    }

    /// The same for programs.
    pub(super) fn besides(&self) -> Besides<'_> {
        let held = self.held.map(|held| match held {
            Sandbox::ReadOnly => "read-only",
            Sandbox::WorkspaceWrite => "workspace-write",
            Sandbox::None | Sandbox::External => "nothing",
        });
        Besides {
            why: Some(Str::Borrowed(&self.why)),
            said: self.said.as_deref().map(Str::Borrowed),
            held: held.map(Str::Borrowed),
            network: self.network,
            retry: self.is_retry.then_some(true),
        }
    }
}
