//! What each agent could do when it last told, so that a new session offers it at once.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use tieline_event::Abilities;

/// What each agent could do when it last told; in a file it outlives the process.
#[derive(Debug)]
pub(super) struct Known {
    file: Option<PathBuf>,
    agents: Mutex<Option<BTreeMap<String, Abilities>>>,
}

impl Known {
    pub(super) fn in_file(file: Option<PathBuf>) -> Self {
        Self { file, agents: Mutex::default() }
    }

    pub(super) fn of(&self, agent: &str) -> Option<Abilities> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        agents.get_or_insert_with(|| self.read()).get(agent).cloned()
    }

    /// Takes note. What is new is written by a thread that may block.
    pub(super) fn note(&self, agent: &str, abilities: &Abilities) {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let agents = agents.get_or_insert_with(|| self.read());
        if agents.get(agent) == Some(abilities) {
            return;
        }
        agents.insert(agent.to_owned(), abilities.clone());
        if let Some(file) = self.file.clone() {
            let json = serde_json::to_vec(agents);
            tokio::task::spawn_blocking(move || {
                let written = json.map_err(std::io::Error::other).and_then(|json| {
                    let spare = file.with_extension(format!("{}.tmp", std::process::id()));
                    let mut options = std::fs::OpenOptions::new();
                    let options = options.write(true).create(true).truncate(true).mode(0o600);
                    options.open(&spare)?.write_all(&json)?;
                    std::fs::rename(&spare, &file)
                });
                if let Err(error) = written {
                    tracing::debug!(%error, "what agents offer is not remembered");
                }
            });
        }
    }

    fn read(&self) -> BTreeMap<String, Abilities> {
        // A file that is missing, torn or of another version of ours is as good as empty.
        let bytes = self.file.as_deref().and_then(|file| std::fs::read(file).ok());
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }
}
