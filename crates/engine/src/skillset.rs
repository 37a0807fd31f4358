//! The skills of a session: looked for once for each directory, and again when somebody asks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tieline_event::{SkillInfo, SkillsAt};

use crate::settings::Settings;
use crate::skills::{self, Places};

/// The skills of a session.
pub(crate) struct SkillSet {
    places: Places,
    found: Mutex<HashMap<PathBuf, Arc<SkillsAt>>>,
}

impl SkillSet {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { places: places(settings), found: Mutex::default() }
    }

    /// The skills for a directory.
    pub(crate) async fn list(&self, dir: &Path, reload: bool) -> Arc<SkillsAt> {
        let known = self.lock().get(dir).filter(|_| !reload).cloned();
        if let Some(known) = known {
            return known;
        }
        let (place, places) = (dir.to_owned(), self.places.clone());
        let found = tokio::task::spawn_blocking(move || skills::discover(&place, &places)).await;
        let found = Arc::new(found.unwrap_or_default());
        self.lock().insert(dir.to_owned(), Arc::clone(&found));
        found
    }

    /// What the model is told of them.
    pub(crate) async fn section(&self, dir: &Path) -> Option<String> {
        skills::section(&*self.list(dir, false).await)
    }

    /// The skills that a message names, each as it is put into the conversation.
    pub(crate) async fn mentioned(&self, dir: &Path, text: &str) -> Vec<Result<String, String>> {
        if !text.contains('$') {
            return Vec::new();
        }
        let skills = self.list(dir, false).await;
        let mut texts = Vec::new();
        for skill in skills::mentioned(&skills, text) {
            texts.push(inject(skill.clone()).await);
        }
        texts
    }

    /// A skill by its name, or by its file where several have that name.
    pub(crate) async fn by_name(
        &self,
        dir: &Path,
        name: &str,
        path: Option<&str>,
    ) -> Result<String, String> {
        let skills = self.list(dir, false).await;
        let fits = |skill: &&SkillInfo| match path.filter(|path| !path.is_empty()) {
            Some(path) => skill.path == path,
            None => skill.name == name,
        };
        match skills.skills.iter().filter(|skill| skill.enabled).find(fits) {
            Some(skill) => inject(skill.clone()).await,
            None => Err(format!("there is no skill {name:?}; it was left out")),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<SkillsAt>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where skills are looked for.
pub(crate) fn places(settings: &Settings) -> Places {
    Places {
        home: settings.home.clone(),
        config: Some(settings.config_dir.clone()),
        ..Places::default()
    }
}

async fn inject(skill: SkillInfo) -> Result<String, String> {
    let name = skill.name.clone();
    let read = tokio::task::spawn_blocking(move || skills::inject(&skill)).await;
    let read = read.unwrap_or_else(|_| Err("it cannot be read".to_owned()));
    read.map_err(|why| format!("the skill {name:?} was left out: {why}"))
}
