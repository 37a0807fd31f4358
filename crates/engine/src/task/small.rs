//! Work that asks no model: undo, rollback, a command of the user's own.

use std::path::PathBuf;
use std::sync::Arc;

use tieline_patch::{Options, Roots, Undo};
use tieline_wire::responses::Item;
use tieline_wire::sqeq::{EventMsg, ThreadRolledBack, UndoCompleted, UndoStarted};
use tieline_wire::text::Str;

use super::{End, Stop};
use crate::calls::{Call, Input};
use crate::core::Core;
use crate::outcomes::Changed;
use crate::shared::Shared;
use crate::tools::{Scene, command};

/// Takes back what the last turn that changed files did to them.
pub(super) async fn undo(core: &mut Core, shared: &Arc<Shared>, id: &str) -> Result<End, Stop> {
    shared.out.send(id, EventMsg::UndoStarted(UndoStarted::default())).await;
    let last = core.changed.iter().rev().find(|turn| !turn.is_empty()).cloned();
    let cwd = core.context.cwd.clone();
    let done = match last {
        None => Err("there is nothing to undo".to_owned()),
        Some(turn) => {
            let outcomes = core.outcomes.clone();
            let work = async move {
                let done = tokio::task::spawn_blocking(move || take_back(turn, cwd)).await;
                let done = done.unwrap_or_else(|_| Err("tieline failed".to_owned()));
                done.inspect(|_| outcomes.changed(Changed::Undone))
            };
            let done = core.outcomes.change(work).await;
            done.unwrap_or_else(|| Err("the task is over".to_owned()))
        }
    };
    core.take_changes();
    core.keep().await?;
    let (success, message) = match done {
        Ok(n) => (true, format!("{n} files are as they were before the last changes")),
        Err(why) => (false, why),
    };
    let event = UndoCompleted { success, message: Some(Str::Owned(message)) };
    shared.out.send(id, EventMsg::UndoCompleted(event)).await;
    Ok(End::default())
}

fn take_back(turn: Vec<Undo>, cwd: PathBuf) -> Result<usize, String> {
    let mut all = Undo::default();
    for undo in turn {
        all.append(undo);
    }
    let n_files = all.files.len();
    // These very files were written with leave before.
    let roots = Roots::open(&cwd, &[PathBuf::from("/")]).map_err(|error| error.to_string())?;
    let roots = roots.guarded_by(tieline_workspace::Guard::none());
    all.carry_out(&roots, Options::default()).map_err(|error| error.to_string())?;
    Ok(n_files)
}

/// Forgets the last turns.
pub(super) async fn roll_back(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    turns: u32,
) -> Result<End, Stop> {
    if turns == 0 {
        return Err(Stop::failed("num_turns must be at least 1"));
    }
    let num_turns = core.roll_back(turns);
    core.keep().await?;
    let event = EventMsg::ThreadRolledBack(ThreadRolledBack { num_turns });
    shared.out.send(id, event).await;
    Ok(End::default())
}

/// Runs a command of the user's own, and lets the model know.
pub(super) async fn shell(
    core: &mut Core,
    shared: &Arc<Shared>,
    id: &str,
    line: String,
) -> Result<End, Stop> {
    let scene = Scene {
        shared: Arc::clone(shared),
        context: Arc::new(core.context.clone()),
        task: id.to_owned(),
        outcomes: core.outcomes.clone(),
    };
    let call = Call {
        id: format!("user-{id}"),
        name: "shell".to_owned(),
        input: Input::Text(line.clone()),
    };
    let (shown, ran) = command::of_user(&scene, &call, line.clone()).await;
    let code = ran.map_or(-1, |ran| ran.ended.code());
    let text = format!(
        "<user_shell_command>\n<command>\n{line}\n</command>\n<result code=\"{code}\">\n{shown}\n\
         </result>\n</user_shell_command>"
    );
    core.push(Item::message("user", &text));
    core.keep().await?;
    Ok(End::default())
}
