//! The engine as one of our agents.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use tieline_agent::codex::SavedPrompt;
use tieline_agent::codex_proto::{EngineOffer, ProtoDriver, engine_policy};
use tieline_agent::{Agent, Inside, Launch, Launching, Plan};
use tieline_event::{AskWhen, Failure, Mode, Reach};

use crate::context::{Asking, Context, Reaching};
use crate::model::Client;
use crate::serve::{Setup, serve};
use crate::settings::Settings;
use crate::{prompts, scripted, skills, skillset};

/// The efforts a provider may know.
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// The engine: an agent within this process.
#[derive(Debug)]
pub struct Engine {
    name: String,
    settings: Arc<Settings>,
    /// One for all sessions, so that they share connections.
    client: OnceLock<Client>,
}

impl Engine {
    /// An engine under a name.
    pub fn new(name: impl Into<String>, settings: Settings) -> Self {
        Self { name: name.into(), settings: Arc::new(settings), client: OnceLock::new() }
    }

    async fn offer(&self, workspace: &Path) -> EngineOffer {
        let (config, workspace) = (self.settings.config_dir.clone(), workspace.to_owned());
        let places = skillset::places(&self.settings);
        let found = tokio::task::spawn_blocking(move || {
            let prompts = prompts::read_all(&config);
            let skills = skills::discover(&workspace, &places).skills;
            let skills = skills.into_iter().filter(|skill| skill.enabled).map(|skill| skill.name);
            (prompts.iter().map(SavedPrompt::command).collect(), skills.collect())
        });
        let (prompts, skills) = found.await.unwrap_or_default();
        EngineOffer {
            prompts,
            skills,
            version: self.settings.version.clone(),
            efforts: match self.settings.provider.script {
                Some(_) => &scripted::EFFORTS,
                None => &EFFORTS,
            },
            models: self.settings.offered(),
        }
    }

    fn client(&self) -> Result<Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let settings = &self.settings;
        let client = Client::new(settings.provider.clone())
            .map_err(|error| error.explain(&settings.provider, &settings.model))?;
        Ok(self.client.get_or_init(|| client).clone())
    }
}

impl Agent for Engine {
    fn name(&self) -> &str {
        &self.name
    }

    fn launch<'a>(&'a self, launch: Launch<'a>) -> Launching<'a> {
        Box::pin(async move {
            let settings = Arc::clone(&self.settings);
            let setup = Setup {
                context: context(&settings, &launch),
                settings,
                client: self.client()?,
                extras: launch.extras.clone(),
                resume: launch.resume.map(|resume| (resume.session.to_owned(), resume.fork)),
            };
            let driver = ProtoDriver::engine(&launch, self.offer(launch.workspace).await);
            let driver = Box::new(driver);
            let run = Box::new(move |pipe| Box::pin(serve(setup, pipe)) as tieline_agent::Running);
            Ok(Plan::inside(Inside { name: "engine", run }, driver))
        })
    }
}

/// The context of a session before its first turn, which brings its own.
fn context(settings: &Settings, launch: &Launch<'_>) -> Context {
    let policy = engine_policy(launch.mode, launch.policy);
    Context {
        cwd: launch.workspace.to_owned(),
        asking: match policy.ask {
            AskWhen::Untrusted => Asking::Untrusted,
            AskWhen::OnFailure => Asking::OnFailure,
            AskWhen::OnRequest => Asking::OnRequest,
            AskWhen::Never => Asking::Never,
        },
        reaching: match policy.reach {
            Reach::ReadOnly => Reaching::ReadOnly,
            Reach::WorkspaceWrite => Reaching::Workspace {
                roots: launch.extras.directories.clone(),
                network: false,
                tmpdir: true,
                slash_tmp: true,
            },
            Reach::DangerFullAccess => Reaching::Everything,
        },
        model: launch.model.unwrap_or(&settings.model).to_owned(),
        effort: launch.effort.map(str::to_owned).or_else(|| settings.effort.clone()),
        summary: "auto".to_owned(),
        plan: launch.mode == Mode::Plan && launch.policy.is_none(),
        personality: settings.personality.clone(),
        instructions: None,
        base: None,
    }
}
