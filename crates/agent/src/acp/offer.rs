//! What the agent offers: modes, models, efforts.

use tieline_event::{Mode, ModelInfo};
use tieline_wire::acp::read::{ConfigOption, Models, Modes, Named, Opened};

use super::mode::{self, Fit};

/// What can be set, and to what.
#[derive(Debug, Default)]
pub(super) struct Offer {
    options: Vec<ConfigOption>,
    /// The older ways, where there is no such option.
    modes: Modes,
    models: Models,
}

/// One thing to set, in the agent's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// An option.
    Option {
        /// Which one.
        id: String,
        /// To what.
        value: String,
    },
    /// The mode, the older way.
    Mode(String),
    /// The model, the older way.
    Model(String),
}

impl Setting {
    /// Whether one replaces the other.
    pub(super) fn is_about_same(&self, other: &Setting) -> bool {
        match (self, other) {
            (Setting::Option { id, .. }, Setting::Option { id: other, .. }) => id == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Offer {
    pub(super) fn of(opened: Opened) -> Self {
        Self {
            options: opened.config_options.unwrap_or_default(),
            modes: opened.modes.unwrap_or_default(),
            models: opened.models.unwrap_or_default(),
        }
    }

    /// The complete list came again.
    pub(super) fn replace_options(&mut self, options: Vec<ConfigOption>) {
        self.options = options;
    }

    /// The mode changed, the older way.
    pub(super) fn set_current_mode(&mut self, id: &str) {
        self.modes.current_mode_id = id.to_owned();
        if let Some(option) = self.options.iter_mut().find(|it| is_about(it, "mode")) {
            option.current = Some(id.to_owned());
        }
    }

    fn option(&self, category: &str) -> Option<&ConfigOption> {
        self.options.iter().find(|option| is_about(option, category))
    }

    /// A switch for planning beside the mode.
    fn planner(&self) -> Option<&ConfigOption> {
        let plans = |it: &&ConfigOption| it.values.iter().any(|value| value.id == "plan");
        self.option("collaboration_mode").filter(plans)
    }

    /// The agent's id of the mode in use.
    pub(super) fn current_mode(&self) -> Option<&str> {
        let planner = self.planner().and_then(|it| it.current.as_deref());
        if planner == Some("plan") {
            return planner;
        }
        let by_option = self.option("mode").and_then(|it| it.current.as_deref());
        by_option.or(Some(self.modes.current_mode_id.as_str()).filter(|id| !id.is_empty()))
    }

    /// What is to be set for a mode, and whether the agent then is in it.
    pub(super) fn for_mode(&self, mode: Mode) -> (Vec<Setting>, bool) {
        let by_option = self.option("mode").filter(|option| !option.values.is_empty());
        let fit: Option<Fit> = match by_option {
            Some(option) => mode::fit(mode, ids(&option.values)),
            None => mode::fit(mode, ids(&self.modes.available_modes)),
        };
        let mut settings = Vec::new();
        let mut is_exact = fit.as_ref().is_some_and(|fit| fit.is_exact);
        if let Some(Fit { id, .. }) = fit {
            settings.push(match by_option {
                Some(option) => Setting::Option { id: option.id.clone(), value: id },
                None => Setting::Mode(id),
            });
        }
        if let Some(planner) = self.planner() {
            let value = if mode == Mode::Plan { "plan" } else { "default" };
            is_exact |= mode == Mode::Plan;
            if ids(&planner.values).any(|id| id == value) {
                let value = value.to_owned();
                settings.push(Setting::Option { id: planner.id.clone(), value });
            }
        }
        (settings, is_exact)
    }

    /// What to set for a model.
    pub(super) fn for_model(&self, model: &str) -> Option<Setting> {
        match self.option("model") {
            Some(option) => {
                Some(Setting::Option { id: option.id.clone(), value: model.to_owned() })
            }
            None if self.models.available_models.is_empty() => None,
            None => Some(Setting::Model(model.to_owned())),
        }
    }

    /// What to set for an effort.
    pub(super) fn for_effort(&self, effort: &str) -> Option<Setting> {
        let option = self.option("thought_level")?;
        Some(Setting::Option { id: option.id.clone(), value: effort.to_owned() })
    }

    /// Whether something is as it is to be.
    pub(super) fn is_set(&self, setting: &Setting) -> bool {
        match setting {
            Setting::Option { id, value } => {
                let option = self.options.iter().find(|option| option.id == *id);
                option.is_some_and(|option| option.current.as_ref() == Some(value))
            }
            Setting::Mode(id) => self.modes.current_mode_id == *id,
            Setting::Model(id) => self.models.current_model_id.as_ref() == Some(id),
        }
    }

    /// Something was set.
    pub(super) fn note(&mut self, setting: &Setting) {
        match setting {
            Setting::Option { id, value } => {
                if let Some(option) = self.options.iter_mut().find(|option| option.id == *id) {
                    option.current = Some(value.clone());
                }
            }
            Setting::Mode(id) => self.modes.current_mode_id.clone_from(id),
            Setting::Model(id) => self.models.current_model_id = Some(id.clone()),
        }
    }

    /// The model in use.
    pub(super) fn model(&self) -> Option<String> {
        match self.option("model") {
            Some(option) => option.current.clone(),
            None => self.models.current_model_id.clone(),
        }
    }

    /// The effort in use.
    pub(super) fn effort(&self) -> Option<String> {
        self.option("thought_level").and_then(|option| option.current.clone())
    }

    /// Models to choose from.
    pub(super) fn models(&self) -> Vec<ModelInfo> {
        let named = match self.option("model") {
            Some(option) => &option.values,
            None => &self.models.available_models,
        };
        let model = |it: &Named| ModelInfo {
            id: it.id.clone(),
            name: if it.name.is_empty() { it.id.clone() } else { it.name.clone() },
            description: it.description.as_deref().map(crate::words::first_line),
        };
        named.iter().map(model).collect()
    }

    /// Efforts to choose from.
    pub(super) fn efforts(&self) -> Vec<String> {
        let option = self.option("thought_level");
        option.map(|option| ids(&option.values).map(str::to_owned).collect()).unwrap_or_default()
    }
}

/// By its category, or by its name where it has none.
fn is_about(option: &ConfigOption, category: &str) -> bool {
    option.category.as_deref().unwrap_or(&option.id) == category
}

fn ids(values: &[Named]) -> impl Iterator<Item = &str> {
    values.iter().map(|value| value.id.as_str())
}
