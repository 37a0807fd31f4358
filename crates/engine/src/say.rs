//! What goes into the history that is not the model's: the context it works in, and the user's words.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tieline_wire::responses::{Content, ImageUrl, Item, ItemView, Message, Part};
use tieline_wire::sqeq::{EventMsg, Message as Sentence};
use tieline_wire::text::Str;

use crate::context::Context;
use crate::core::Core;
use crate::order::Piece;
use crate::shared::Shared;
use crate::tools::files::image;
use crate::docs::{self, DocOptions};
use crate::persona;

/// What the model is told of a turn that was stopped.
pub(crate) const TURN_ABORTED: &str =
    "<turn_aborted>\nThe user stopped the last turn. Commands and changes it had begun may be \
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
    let mut items = vec![developer(&persona::permissions(&now.terms(), &writable(now)))];
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
    items.push(Item::message("user", &environment(now, shared)));
    items
}

/// What is different from what the model was told.
fn changes(before: &Context, now: &Context) -> Vec<Item> {
    let mut items = Vec::new();
    if (&before.asking, &before.reaching, before.plan) != (&now.asking, &now.reaching, now.plan) {
        items.push(developer(&persona::permissions(&now.terms(), &writable(now))));
    }
    match (before.plan, now.plan) {
        (false, true) => items.push(developer(persona::PLAN_MODE)),
        (true, false) => items.push(developer(persona::PLAN_MODE_OVER)),
        _ => {}
    }
    if before.personality != now.personality
        && let Some(text) = persona::change_of_personality(&now.personality)
    {
        items.push(developer(&text));
    }
    if before.instructions != now.instructions
        && let Some(instructions) = &now.instructions
    {
        items.push(developer(instructions));
    }
    if before.cwd != now.cwd {
        let text = format!(
            "<environment_context>\n  <cwd>{}</cwd>\n</environment_context>",
            now.cwd.display()
        );
        items.push(Item::message("user", &text));
    }
    items
}

fn developer(text: &str) -> Item {
    Item::message("developer", text)
}

fn writable(now: &Context) -> Vec<PathBuf> {
    match &now.reaching {
        crate::context::Reaching::Workspace { roots, .. } => {
            std::iter::once(&now.cwd).chain(roots).cloned().collect()
        }
        _ => Vec::new(),
    }
}

fn environment(now: &Context, shared: &Shared) -> String {
    let shell = Path::new(&shared.settings.shell);
    let shell = shell.file_name().unwrap_or_default().to_string_lossy();
    persona::environment(&now.cwd, &shell)
}

/// The user says something. What cannot be taken along is told.
pub(crate) async fn user(core: &mut Core, shared: &Arc<Shared>, id: &str, pieces: &[Piece]) {
    let mut parts = Vec::new();
    let mut skills = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
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

fn picture(url: String) -> Part<'static> {
    Part::InputImage(ImageUrl { image_url: Str::Owned(url), detail: None })
}

async fn warn(shared: &Shared, id: &str, why: String) {
    let message = Str::Owned(why);
    shared.out.send(id, EventMsg::Warning(Sentence { message })).await;
}
