//! What a session offers: modes, settings and commands.

use tieline_event::{Abilities, AgentCommand, Configured, Mode, ModelInfo};
use tieline_wire::acp::schema::{
    AvailableCommand, AvailableCommandInput, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionMode, SessionModeState, UnstructuredCommandInput,
};

#[cfg(test)]
mod tests;

/// The setting that is the mode.
pub(super) const MODE: &str = "mode";
/// The setting that is the model.
pub(super) const MODEL: &str = "model";
/// The setting that is the effort.
pub(super) const EFFORT: &str = "effort";

/// What a session offers and what of it is chosen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offer {
    modes: Vec<Mode>,
    pub(super) mode: Mode,
    models: Vec<ModelInfo>,
    pub(super) model: Option<String>,
    efforts: Vec<String>,
    pub(super) effort: Option<String>,
    commands: Vec<AgentCommand>,
    skills: Vec<String>,
    /// Whether the agent takes pictures, once it has told.
    pub(super) images: Option<bool>,
    /// The mode without any net was asked for when tieline was started.
    may_be_yolo: bool,
}

/// What about an offer changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) mode: bool,
    pub(super) settings: bool,
    pub(super) commands: bool,
}

/// Commands that we carry out ourselves, where the agent has none of the same name.
const OWN: [(&str, &str); 2] = [
    ("status", "Show the conversation's agent, model, mode and tokens"),
    ("fresh", "Forget the agent's session: the next prompt begins afresh, the history stays"),
];

impl Offer {
    /// Before the agent has told anything.
    pub(super) fn new(
        mode: Mode,
        model: Option<String>,
        effort: Option<String>,
        modes: &[Mode],
        may_be_yolo: bool,
    ) -> Self {
        Self {
            modes: modes.to_vec(),
            mode,
            models: Vec::new(),
            model,
            efforts: Vec::new(),
            effort,
            commands: Vec::new(),
            skills: Vec::new(),
            images: None,
            may_be_yolo,
        }
    }

    /// Takes over what the agent can do from another session with it.
    pub(super) fn adopt(&mut self, abilities: &Abilities) {
        let Abilities { modes, models, efforts, commands, skills, images, .. } = abilities;
        if !modes.is_empty() {
            self.modes.clone_from(modes);
        }
        self.models.clone_from(models);
        self.efforts.clone_from(efforts);
        self.commands.clone_from(commands);
        self.skills.clone_from(skills);
        self.images = Some(*images);
    }

    /// The agent told something.
    pub(super) fn learn(&mut self, told: &Configured) -> Changes {
        let before = self.clone();
        if let Some(mode) = told.mode {
            self.mode = mode;
        }
        if let Some(abilities) = &told.abilities {
            self.adopt(abilities);
        }
        // Some agents offer short names and report long ones; the name that was chosen stays.
        if let Some(model) = told.model.as_ref().filter(|model| self.has_model(model)) {
            self.model = Some(model.clone());
        }
        if told.effort.is_some() {
            self.effort.clone_from(&told.effort);
        }
        let is_same_choice = self.mode == before.mode
            && self.model == before.model
            && self.effort == before.effort
            && self.modes() == before.modes()
            && self.models == before.models
            && self.efforts == before.efforts;
        Changes {
            mode: self.mode != before.mode,
            settings: !is_same_choice,
            commands: self.commands != before.commands || self.skills != before.skills,
        }
    }

    /// The modes to choose from.
    fn modes(&self) -> Vec<Mode> {
        let is_offered = |mode: &Mode| *mode != Mode::Yolo || self.may_be_yolo;
        let mut modes: Vec<Mode> = self.modes.iter().copied().filter(is_offered).collect();
        if !modes.contains(&self.mode) {
            modes.push(self.mode);
        }
        modes
    }

    pub(super) fn mode_state(&self) -> SessionModeState {
        let mode = |mode: Mode| {
            SessionMode::new(mode.name(), mode_name(mode)).description(about(mode).to_owned())
        };
        SessionModeState::new(self.mode.name(), self.modes().into_iter().map(mode).collect())
    }

    /// All settings with what is chosen.
    pub(super) fn settings(&self) -> Vec<SessionConfigOption> {
        let modes = self.modes().into_iter().map(|mode| {
            SessionConfigSelectOption::new(mode.name(), mode_name(mode))
                .description(about(mode).to_owned())
        });
        let mut settings = vec![
            SessionConfigOption::select(MODE, "Mode", self.mode.name(), modes.collect::<Vec<_>>())
                .description("How much the agent may do without asking".to_owned())
                .category(SessionConfigOptionCategory::Mode),
        ];
        let models: Vec<_> = self
            .models
            .iter()
            .map(|model| {
                SessionConfigSelectOption::new(model.id.clone(), model.name.as_str())
                    .description(model.description.clone())
            })
            .collect();
        settings.extend(
            select(MODEL, "Model", self.model.as_deref(), models)
                .map(|it| it.category(SessionConfigOptionCategory::Model)),
        );
        let efforts: Vec<_> = self
            .efforts
            .iter()
            .map(|effort| SessionConfigSelectOption::new(effort.clone(), capitalized(effort)))
            .collect();
        settings.extend(
            select(EFFORT, "Effort", self.effort.as_deref(), efforts)
                .map(|it| it.category(SessionConfigOptionCategory::ThoughtLevel)),
        );
        settings
    }

    /// The agent's commands, its skills, and ours.
    pub(super) fn commands(&self) -> Vec<AvailableCommand> {
        let own = self.commands.iter().map(|command| {
            let hint = command.hint.as_ref().map(|hint| {
                AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.as_str()))
            });
            let about = command.description.as_deref().unwrap_or(&command.name);
            AvailableCommand::new(command.name.as_str(), about).input(hint)
        });
        let skills = self.skills.iter().filter(|skill| !self.has_command(skill)).map(|skill| {
            let hint = UnstructuredCommandInput::new("what to use it for");
            AvailableCommand::new(skill.as_str(), format!("Use the skill {skill}"))
                .input(AvailableCommandInput::Unstructured(hint))
        });
        let ours = OWN.iter().filter(|(name, _)| !self.is_agents(name));
        let ours = ours.map(|(name, about)| AvailableCommand::new(*name, *about));
        own.chain(skills).chain(ours).collect()
    }

    /// Whether a command is one that we carry out ourselves.
    pub(super) fn is_ours(&self, name: &str) -> bool {
        OWN.iter().any(|(own, _)| *own == name) && !self.is_agents(name)
    }

    /// Whether a name is that of a skill and of no command.
    pub(super) fn is_skill(&self, name: &str) -> bool {
        self.skills.iter().any(|skill| skill == name) && !self.has_command(name)
    }

    /// Whether a setting can have this value. What is not known yet can have any.
    pub(super) fn has_model(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|it| it.id == model)
    }

    /// Whether the effort can have this value: any until the agent has told, and none where it has
    /// told of none, because then there is no such setting.
    pub(super) fn has_effort(&self, effort: &str) -> bool {
        let has_told = self.images.is_some();
        let is_chosen = self.effort.as_deref() == Some(effort);
        !has_told || is_chosen || self.efforts.iter().any(|it| it == effort)
    }

    fn is_agents(&self, name: &str) -> bool {
        self.has_command(name) || self.skills.iter().any(|skill| skill == name)
    }

    fn has_command(&self, name: &str) -> bool {
        self.commands.iter().any(|command| command.name == name)
    }
}

/// A setting with a value out of several. One that nobody chose has the first; one that is chosen
/// and not on offer is added, because clients show only what is.
fn select(
    id: &'static str,
    name: &'static str,
    chosen: Option<&str>,
    mut options: Vec<SessionConfigSelectOption>,
) -> Option<SessionConfigOption> {
    if let Some(chosen) = chosen
        && !options.iter().any(|option| &*option.value.0 == chosen)
    {
        options.insert(0, SessionConfigSelectOption::new(chosen.to_owned(), chosen));
    }
    let first = options.first()?.value.clone();
    let chosen = chosen.map_or(first, |chosen| chosen.to_owned().into());
    Some(SessionConfigOption::select(id, name, chosen, options))
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "Ask",
        Mode::Plan => "Plan",
        Mode::AcceptEdits => "Accept edits",
        Mode::Auto => "Auto",
        Mode::BypassPermissions => "Never ask",
        Mode::Yolo => "Never ask, no sandbox",
    }
}

fn about(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "Asks before it changes anything or runs what is not known to be harmless",
        Mode::Plan => "Reads and plans, changes nothing",
        Mode::AcceptEdits => "Edits files in the workspace without asking",
        Mode::Auto => "The agent decides itself what needs asking",
        Mode::BypassPermissions => "Never asks; sandboxed where the agent has a sandbox",
        Mode::Yolo => "Never asks, and nothing holds it back",
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
