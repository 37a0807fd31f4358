//! What goes into the history that is not the model's: the context it works in, and the user's words.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tieline_wire::responses::{Content, ImageUrl, Item, ItemView, Message, Part};
use tieline_wire::sqeq::{EventMsg, Message as Sentence, Personality};
use tieline_wire::text::Str;

use crate::context::{Context, Reaching};
use crate::core::Core;
use crate::docs::{self, DocOptions};
use crate::order::Piece;
use crate::persona::{self, Environment};
use crate::prompts;
use crate::shared::Shared;
use crate::tools::files::image;

/// What the model is told of a turn that was stopped.
pub(crate) const TURN_ABORTED: &str = "<turn_aborted>\nThe user stopped the last turn. Commands and changes it had begun may be \
     half done: look before you go on.\n</turn_aborted>";

/// Tells the model where it is and what holds, as far as it does not know yet.
pub(crate) async fn context(core: &mut Core, shared: &Arc<Shared>) {
    let now = core.context.clone();
    match core.told.take() {
        None => {
            for item in whole(&now, shared).await {
                core.push(item);
            }
        }
        Some(before) => {
            for item in changes(&before, &now) {
                core.push(item);
            }
        }
    }
    core.told = Some(now);
}

/// Everything that stands at the beginning of a session.
async fn whole(now: &Context, shared: &Arc<Shared>) -> Vec<Item> {
    let mut items = vec![developer(&permissions(now))];
    if now.plan {
        items.push(developer(persona::PLAN_MODE));
    }
    if let Some(skills) = shared.skills.section(&now.cwd).await {
        items.push(developer(&skills));
    }
    if let Some(instructions) = &now.instructions {
        items.push(developer(instructions));
    }
    let (cwd, config) = (now.cwd.clone(), shared.settings.config_dir.clone());
    let read = tokio::task::spawn_blocking(move || {
        docs::collect(&cwd, Some(&config), &DocOptions::default()).message(&cwd)
    });
    if let Ok(Some(text)) = read.await {
        items.push(Item::message("user", &text));
    }
    items.push(Item::message("user", &environment(now, Some(&shared.settings.shell))));
    items
}

/// What is different from what the model was told.
fn changes(before: &Context, now: &Context) -> Vec<Item> {
    let mut items = Vec::new();
    if (&before.asking, &before.reaching, before.plan) != (&now.asking, &now.reaching, now.plan) {
        items.push(developer(&permissions(now)));
    }
    match (before.plan, now.plan) {
        (false, true) => items.push(developer(persona::PLAN_MODE)),
        (true, false) => items.push(developer(persona::DEFAULT_MODE)),
        _ => {}
    }
    if before.personality != now.personality {
        let personality = Personality::from(now.personality.as_str());
        items.push(developer(&persona::personality_message(&personality)));
    }
    if before.instructions != now.instructions
        && let Some(instructions) = &now.instructions
    {
        items.push(developer(instructions));
    }
    if before.cwd != now.cwd {
        items.push(Item::message("user", &environment(now, None)));
    }
    items
}

fn developer(text: &str) -> Item {
    Item::message("developer", text)
}

fn permissions(now: &Context) -> String {
    let mut writable: Vec<&Path> = Vec::new();
    if let Reaching::Workspace { roots, .. } = &now.reaching {
        writable.push(&now.cwd);
        writable.extend(roots.iter().map(PathBuf::as_path));
    }
    persona::permissions(&now.terms(), &writable)
}

fn environment(now: &Context, shell: Option<&str>) -> String {
    let name = |shell: &str| {
        Path::new(shell).file_name().unwrap_or_default().to_string_lossy().into_owned()
    };
    let cwd = now.cwd.display().to_string();
    Environment { cwd, shell: shell.map(name), date: None }.message()
}

/// The user says something. What cannot be taken along is told.
pub(crate) async fn user(core: &mut Core, shared: &Arc<Shared>, id: &str, pieces: &[Piece]) {
    let mut parts = Vec::new();
    let mut skills = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                let text = expanded(shared, id, text).await;
                let text = &text;
                for skill in shared.skills.mentioned(&core.context.cwd, text).await {
                    match skill {
                        Ok(text) => skills.push(text),
                        Err(why) => warn(shared, id, why).await,
                    }
                }
                parts.push(Part::InputText(Content { text: Str::Owned(text.clone()) }));
            }
            Piece::Image(url) => parts.push(picture(url.clone())),
            Piece::LocalImage(path) => {
                let path = core.context.path(path);
                let hidden = shared.settings.hidden.clone();
                let read = tokio::task::spawn_blocking(move || image(&path, &hidden)).await;
                match read.unwrap_or_else(|_| Err("the picture cannot be read".to_owned())) {
                    Ok(url) => parts.push(picture(url)),
                    Err(why) => warn(shared, id, why).await,
                }
            }
            Piece::Skill { name, path } => {
                match shared.skills.by_name(&core.context.cwd, name, Some(path)).await {
                    Ok(text) => skills.push(text),
                    Err(why) => warn(shared, id, why).await,
                }
            }
            Piece::Mention { name, path } => {
                let text = Str::Owned(format!("[${name}]({path})"));
                parts.push(Part::InputText(Content { text }));
            }
        }
    }
    let message = Message { role: "user".into(), content: parts, ..Message::default() };
    core.push(Item::of(&ItemView::Message(message)));
    for skill in skills {
        core.push(Item::message("user", &skill));
    }
}

/// The text a message means: that of a saved prompt, if it calls one.
async fn expanded(shared: &Arc<Shared>, id: &str, text: &str) -> String {
    if !text.trim_start().starts_with('/') {
        return text.to_owned();
    }
    let (config, message) = (shared.settings.config_dir.clone(), text.to_owned());
    let read =
        tokio::task::spawn_blocking(move || prompts::expand(&prompts::read_all(&config), &message));
    match read.await {
        Ok(Some(Ok(expanded))) => expanded,
        Ok(Some(Err(why))) => {
            warn(shared, id, why).await;
            text.to_owned()
        }
        Ok(None) | Err(_) => text.to_owned(),
    }
}

fn picture(url: String) -> Part<'static> {
    Part::InputImage(ImageUrl { image_url: Str::Owned(url), detail: None })
}

async fn warn(shared: &Shared, id: &str, why: String) {
    let message = Str::Owned(why);
    shared.out.send(id, EventMsg::Warning(Sentence { message })).await;
}
