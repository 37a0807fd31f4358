//! What the model can have done.
//!
//! A tool never fails the turn: what goes wrong is told to the model, in words it can act on.

pub(crate) mod command;
pub(crate) mod files;
mod leave;
pub(crate) mod mcp;
pub(crate) mod patch;
mod plan;
mod question;
pub(crate) mod schema;

use std::fmt::Display;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tieline_wire::responses::Output;
use tieline_wire::text::Str;

use crate::calls::{Call, Input};
use crate::context::Context;
use crate::outcomes::Outcomes;
use crate::shared::Shared;

/// Where a tool is called.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) shared: Arc<Shared>,
    /// The context of the turn.
    pub(crate) context: Arc<Context>,
    /// The submission whose task it is.
    pub(crate) task: String,
    /// Where it is told what came of it.
    pub(crate) outcomes: Outcomes,
}

/// What the model is told when the user says no.
const REJECTED_BY_USER: &str = "rejected by user";

/// How the model is told that the policy says no.
const FORBIDDEN: &str = "rejected: ";

/// Whether an output says that a call was not allowed.
pub(crate) fn is_refusal(output: &str) -> bool {
    output == REJECTED_BY_USER
        || output.starts_with(FORBIDDEN)
        || output.strip_prefix(REJECTED_BY_USER).is_some_and(|rest| rest.starts_with(": "))
}

/// What came of a call.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// For the model.
    pub(crate) output: Output<'static>,
    /// The task is to end.
    pub(crate) aborts: bool,
}

impl Outcome {
    /// Text for the model.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self { output: Output::Text(Str::Owned(text.into())), aborts: false }
    }

    /// What went wrong, for the model.
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::said(why)
    }

    /// The user said no to it.
    fn rejected(why: Option<String>) -> Self {
        match why {
            Some(why) => Self::said(format!("{REJECTED_BY_USER}: {why}")),
            None => Self::said(REJECTED_BY_USER),
        }
    }

    /// The policy said no to it.
    fn forbidden(reason: impl Display) -> Self {
        Self::said(format!("{FORBIDDEN}{reason}"))
    }

    /// The user said no to it, and to the task.
    fn aborted() -> Self {
        Self { aborts: true, ..Self::said("aborted by user") }
    }
}

/// Runs a call to its end. Those that only look run side by side; the others wait for each other.
pub(crate) async fn run(scene: &Scene, call: Call) -> Outcome {
    let gate = &scene.shared.gate;
    if is_parallel(&call.name) || scene.shared.mcp.is_parallel(&call.name) {
        let _passage = gate.read().await;
        return dispatch(scene, &call).await;
    }
    let _passage = gate.write().await;
    dispatch(scene, &call).await
}

fn is_parallel(name: &str) -> bool {
    matches!(
        name,
        "exec_command"
            | "write_stdin"
            | "shell"
            | "container.exec"
            | "shell_command"
            | "local_shell"
            | "read_file"
            | "list_dir"
            | "grep_files"
            | "view_image"
    )
}

async fn dispatch(scene: &Scene, call: &Call) -> Outcome {
    match (call.name.as_str(), &call.input) {
        ("exec_command", Input::Arguments(json)) => match read(json) {
            Ok(args) => command::exec(scene, call, args).await,
            Err(why) => why,
        },
        ("write_stdin", Input::Arguments(json)) => match read(json) {
            Ok(args) => command::write(scene, call, args).await,
            Err(why) => why,
        },
        ("shell" | "container.exec" | "local_shell", Input::Arguments(json)) => match read(json) {
            Ok(args) => command::shell(scene, call, args).await,
            Err(why) => why,
        },
        ("shell_command", Input::Arguments(json)) => match read(json) {
            Ok(args) => command::shell_line(scene, call, args).await,
            Err(why) => why,
        },
        ("apply_patch", Input::Text(text)) => patch::apply(scene, call, text, None).await,
        ("apply_patch", Input::Arguments(json)) => match read::<patch::Args>(json) {
            Ok(args) => patch::apply(scene, call, &args.input, None).await,
            Err(why) => why,
        },
        ("update_plan", Input::Arguments(json)) => match read(json) {
            Ok(args) => plan::update(scene, args).await,
            Err(why) => why,
        },
        ("request_user_input", Input::Arguments(json)) => match read(json) {
            Ok(args) => question::ask(scene, call, args).await,
            Err(why) => why,
        },
        ("view_image", Input::Arguments(json)) => match read(json) {
            Ok(args) => files::view_image(scene, call, args).await,
            Err(why) => why,
        },
        ("read_file", Input::Arguments(json)) => match read(json) {
            Ok(args) => files::read_file(scene, args).await,
            Err(why) => why,
        },
        ("list_dir", Input::Arguments(json)) => match read(json) {
            Ok(args) => files::list_dir(scene, args).await,
            Err(why) => why,
        },
        ("grep_files", Input::Arguments(json)) => match read(json) {
            Ok(args) => files::grep(scene, args).await,
            Err(why) => why,
        },
        (name, Input::Arguments(json)) if scene.shared.mcp.has(name) => {
            mcp::call(scene, call, name, json).await
        }
        (name, _) => Outcome::failed(format!("unsupported call: {name}")),
    }
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, Outcome> {
    serde_json::from_str(json)
        .map_err(|error| Outcome::failed(format!("failed to parse function arguments: {error}")))
}
