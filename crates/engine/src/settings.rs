//! What the user configured for the engine.

use std::path::PathBuf;

use tieline_event::{McpServer, ModelInfo};
use tieline_proc::Env;

use crate::model::Provider;

/// What the user configured for the engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What it calls its version.
    pub version: String,
    /// Who serves the model.
    pub provider: Provider,
    /// The model, if a conversation names none.
    pub model: String,
    /// What is known of models.
    pub models: Vec<Model>,
    /// For how long the model thinks, if a conversation does not say.
    pub effort: Option<String>,
    /// How it speaks: `friendly`, `pragmatic` or `none`.
    pub personality: String,
    /// The history is shortened when it has so many tokens; without it at nine tenths of what the
    /// model can hold.
    pub compact_at: Option<u64>,
    /// The provider searches the web for the model.
    pub web_search: bool,
    /// `apply_patch` takes its patch as plain text; without it as a field of JSON.
    pub freeform_patch: bool,
    /// The user's home, for their own skills.
    pub home: Option<PathBuf>,
    /// Where our configuration is: rules, prompts, skills, AGENTS.md.
    pub config_dir: PathBuf,
    /// What commands may not read: the store, the key.
    pub hidden: Vec<PathBuf>,
    /// What commands may not change, although it may lie in the workspace, and patches only with
    /// leave: our configuration, the store.
    pub protected: Vec<PathBuf>,
    /// What commands know of the environment.
    pub env: Env,
    /// The shell that commands are handed to.
    pub shell: String,
    /// Servers of tools.
    pub mcp_servers: Vec<McpServer>,
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// How many tokens it can hold.
    pub context_window: Option<u64>,
    /// It thinks, and can be told for how long.
    pub thinks: bool,
    /// It takes pictures.
    pub sees: bool,
    /// What it is good for.
    pub description: Option<String>,
}

/// What a model can hold about which nothing is known.
const WINDOW: u64 = 128_000;

impl Settings {
    /// A model of a provider, and nothing of the user's: no home, no configuration, no servers.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            version: "0.0.0".to_owned(),
            provider,
            model: model.into(),
            models: Vec::new(),
            effort: None,
            personality: "none".to_owned(),
            compact_at: None,
            web_search: false,
            freeform_patch: true,
            home: None,
            config_dir: PathBuf::from("/nonexistent"),
            hidden: Vec::new(),
            protected: Vec::new(),
            env: crate::exec::for_tools(&[]),
            shell: "/bin/sh".to_owned(),
            mcp_servers: Vec::new(),
        }
    }

    fn find(&self, model: &str) -> Option<&Model> {
        self.models.iter().find(|known| known.name == model)
    }

    /// How many tokens a model can hold.
    pub(crate) fn context_window(&self, model: &str) -> Option<u64> {
        Some(self.find(model).and_then(|known| known.context_window).unwrap_or(WINDOW))
    }

    /// How many tokens there may be before the history is shortened.
    pub(crate) fn compact_at(&self, model: &str) -> u64 {
        let window = self.context_window(model).unwrap_or(WINDOW);
        let most = window / 10 * 9;
        self.compact_at.map_or(most, |set| set.min(most))
    }

    /// Whether a model can be told to think. Of one that is not known nothing is assumed that its
    /// server may refuse.
    pub(crate) fn thinks(&self, model: &str) -> bool {
        self.find(model).is_some_and(|known| known.thinks)
    }

    /// Whether a model takes pictures.
    pub(crate) fn sees(&self, model: &str) -> bool {
        self.find(model).is_none_or(|known| known.sees)
    }

    /// The models to choose from.
    pub(crate) fn offered(&self) -> Vec<ModelInfo> {
        let info = |model: &Model| ModelInfo {
            id: model.name.clone(),
            name: model.name.clone(),
            description: model.description.clone(),
        };
        let mut offered: Vec<ModelInfo> = self.models.iter().map(info).collect();
        if self.find(&self.model).is_none() {
            let id = self.model.clone();
            offered.insert(0, ModelInfo { name: id.clone(), id, description: None });
        }
        offered
    }
}
