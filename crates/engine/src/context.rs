//! What holds for a turn: where, how much, which model, in what manner.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tieline_event::AskWhen;
use tieline_sandbox::{Files, Policy};

use crate::command::{Ask, Granular, Sandbox, Terms};

/// When the engine asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Asking {
    /// Before every command that is not known to be harmless.
    Untrusted,
    /// When a command failed in the sandbox.
    OnFailure,
    /// When the model wants more than the sandbox gives.
    OnRequest,
    /// Never.
    Never,
    /// As [`OnRequest`](Self::OnRequest), but only about these.
    Granular {
        /// Leaving the sandbox.
        sandbox: bool,
        /// What a rule wants to be asked.
        rules: bool,
    },
}

/// What commands can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reaching {
    /// They read.
    ReadOnly,
    /// They write in the workspace.
    Workspace {
        /// And in these directories.
        roots: Vec<PathBuf>,
        /// They have a network.
        network: bool,
        /// They write in `$TMPDIR`.
        tmpdir: bool,
        /// They write in `/tmp`.
        slash_tmp: bool,
    },
    /// Everything.
    Everything,
}

/// What holds for a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Context {
    /// Where.
    pub(crate) cwd: PathBuf,
    /// When to ask.
    pub(crate) asking: Asking,
    /// What commands can reach.
    pub(crate) reaching: Reaching,
    /// Which model.
    pub(crate) model: String,
    /// For how long it thinks.
    pub(crate) effort: Option<String>,
    /// How thinking is summed up.
    pub(crate) summary: String,
    /// The model plans and changes nothing.
    pub(crate) plan: bool,
    /// How it speaks.
    pub(crate) personality: String,
    /// The user's own instructions.
    pub(crate) instructions: Option<String>,
    /// Instructions in place of ours.
    pub(crate) base: Option<String>,
}

/// New values; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) cwd: Option<String>,
    pub(crate) asking: Option<Asking>,
    pub(crate) reaching: Option<Reaching>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<Option<String>>,
    pub(crate) summary: Option<String>,
    pub(crate) plan: Option<bool>,
    pub(crate) personality: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) base: Option<String>,
}

impl Context {
    /// Takes over what changed.
    pub(crate) fn apply(&mut self, change: Change) {
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        if let Some(cwd) = change.cwd {
            // A directory that is not absolute is one below the last.
            self.cwd = self.cwd.join(cwd);
        }
        set(&mut self.asking, change.asking);
        set(&mut self.reaching, change.reaching);
        set(&mut self.model, change.model);
        set(&mut self.effort, change.effort);
        set(&mut self.summary, change.summary);
        set(&mut self.plan, change.plan);
        set(&mut self.personality, change.personality);
        set(&mut self.instructions, change.instructions.map(Some));
        set(&mut self.base, change.base.map(Some));
    }

    /// A path as the model gave it, absolute.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.cwd.join(path)
    }
}

impl Context {
    /// The terms commands and patches are judged by.
    pub(crate) fn terms(&self) -> Terms {
        let when = |when| Ask::When(when);
        let ask = match self.asking {
            Asking::Untrusted => when(AskWhen::Untrusted),
            Asking::OnFailure => when(AskWhen::OnFailure),
            Asking::OnRequest => when(AskWhen::OnRequest),
            Asking::Never => when(AskWhen::Never),
            Asking::Granular { sandbox, rules } => {
                Ask::Granular(Granular { sandbox_approval: sandbox, rules })
            }
        };
        let sandbox = match self.reaching {
            Reaching::ReadOnly => Sandbox::ReadOnly,
            Reaching::Workspace { .. } => Sandbox::WorkspaceWrite,
            Reaching::Everything => Sandbox::None,
        };
        let terms = Terms { plan: self.plan, ..Terms::of_policy(ask, sandbox) };
        match (self.asking, sandbox) {
            // Everything is asked for, so a yes is worth something: it may write in the workspace.
            (Asking::Untrusted, Sandbox::ReadOnly) => {
                Terms { approved: Sandbox::WorkspaceWrite, ..terms }
            }
            _ => terms,
        }
    }

    /// What holds a command, for the sandbox; none when nothing does.
    pub(crate) fn policy(
        &self,
        sandbox: Sandbox,
        hidden: &[PathBuf],
        protected: &[PathBuf],
    ) -> Option<Policy> {
        let (more, network, tmpdir, slash_tmp) = match &self.reaching {
            Reaching::Workspace { roots, network, tmpdir, slash_tmp } => {
                (roots.as_slice(), *network, *tmpdir, *slash_tmp)
            }
            _ => (&[] as &[PathBuf], false, true, true),
        };
        let files = match sandbox {
            Sandbox::None | Sandbox::External => return None,
            Sandbox::ReadOnly => Files::ReadOnly,
            Sandbox::WorkspaceWrite => Files::WorkspaceWrite {
                roots: std::iter::once(&self.cwd).chain(more).cloned().collect(),
                exclude_tmp: !slash_tmp,
                exclude_tmpdir: !tmpdir,
            },
        };
        let (hidden, protected) = (hidden.to_vec(), protected.to_vec());
        Some(Policy { files, network, hidden, protected })
    }
}
