//! What a command may do, as plain data.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

#[cfg(test)]
mod tests;

/// What a command may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Policy {
    /// Which files it may change.
    pub files: Files,
    /// Whether it may reach the network.
    #[serde(default)]
    pub network: bool,
    /// Files and directories it may not read. One that does not exist when the command starts is not
    /// hidden if somebody else makes it later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<PathBuf>,
    /// Files and directories that stay as they are although a writable root contains them, beside
    /// those that [`tieline_workspace::protected`] names. Also when they do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<PathBuf>,
}

/// Which files a command may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Files {
    /// None.
    ReadOnly,
    /// Those below some directories, and temporary ones.
    WorkspaceWrite {
        /// Absolute paths of directories that exist.
        roots: Vec<PathBuf>,
        /// `/tmp` is not one of them.
        #[serde(default)]
        exclude_tmp: bool,
        /// What `TMPDIR` names is not one of them.
        #[serde(default)]
        exclude_tmpdir: bool,
    },
    /// All of them, and everything else besides: no sandbox.
    DangerFullAccess,
}

impl Policy {
    /// Everything may be read, nothing changed, no network.
    pub fn read_only() -> Self {
        Self { files: Files::ReadOnly, network: false, hidden: vec![], protected: vec![] }
    }

    /// Files below `roots`, `/tmp` and `TMPDIR` may be changed; no network.
    pub fn workspace_write(roots: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let roots = roots.into_iter().map(Into::into).collect();
        let files = Files::WorkspaceWrite { roots, exclude_tmp: false, exclude_tmpdir: false };
        Self { files, ..Self::read_only() }
    }

    /// No sandbox at all.
    pub fn danger_full_access() -> Self {
        Self { files: Files::DangerFullAccess, network: true, ..Self::read_only() }
    }

    /// Says no to what contradicts itself, instead of giving one half of it.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.files == Files::DangerFullAccess {
            let asks_for_less =
                !self.network || !self.hidden.is_empty() || !self.protected.is_empty();
            if asks_for_less {
                return Err(Refusal::policy(
                    "full access cannot be had without network or with hidden or protected paths; \
                     choose workspace-write",
                ));
            }
        }
        let roots = match &self.files {
            Files::WorkspaceWrite { roots, .. } => roots.as_slice(),
            _ => &[],
        };
        for path in roots.iter().chain(&self.hidden).chain(&self.protected) {
            if !path.is_absolute() {
                let text = format!("{} is not an absolute path; write it out", path.display());
                return Err(Refusal::policy(text));
            }
        }
        Ok(())
    }
}
