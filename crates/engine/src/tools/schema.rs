//! The tools as they are described to a model.

use std::sync::Arc;

use serde_json::{Value, json};
use tieline_wire::responses::{Tool, ToolFormat};

use crate::persona::PATCH_FORM;

#[cfg(test)]
mod tests;

/// The grammar of a patch, for models that take one.
pub(crate) const PATCH_GRAMMAR: &str = include_str!("apply_patch.lark");

/// In which words a function is described, and what it takes. What is not required may be left out.
fn function(name: &str, description: &str, properties: Value, required: &[&str]) -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    Tool::Function {
        name: name.to_owned(),
        description: description.to_owned(),
        strict: false,
        parameters: Arc::from(
            serde_json::value::to_raw_value(&parameters).expect("a JSON value is JSON"),
        ),
    }
}

fn string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "number", "description": description})
}

fn boolean(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

/// Whether the model can ask for a command to leave the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escalation {
    /// It can.
    Offered,
    /// It would be refused anyway.
    No,
}

fn with_escalation(mut properties: Value, escalation: Escalation) -> Value {
    if let (Escalation::Offered, Some(map)) = (escalation, properties.as_object_mut()) {
        map.insert(
            "sandbox_permissions".to_owned(),
            json!({
                "type": "string",
                "enum": ["use_default", "require_escalated"],
                "description": "`require_escalated` runs it outside of the sandbox, after the user said yes.",
            }),
        );
        map.insert(
            "justification".to_owned(),
            string("Only with require_escalated: the question to the user, in one sentence."),
        );
        map.insert(
            "prefix_rule".to_owned(),
            json!({
                "type": "array",
                "items": {"type": "string"},
                "description": "Only with require_escalated: the first words of commands like this one that could be allowed from now on, such as [\"cargo\", \"test\"]. As many as needed to mean only those.",
            }),
        );
    }
    properties
}

/// Runs a command in a terminal or a pipe.
pub(crate) fn exec_command(escalation: Escalation) -> Tool {
    let properties = json!({
        "cmd": string("The line for the shell."),
        "workdir": string("Where it runs; the working directory of the turn if left out."),
        "shell": string("Which shell; the user's if left out."),
        "login": boolean("Whether it is a login shell. Default: true."),
        "tty": boolean("Whether it has a terminal, for programs that want one. Default: false."),
        "yield_time_ms": number("How long to wait for output before it goes on in the background, 250 to 30000. Default: 10000."),
        "max_output_tokens": number("How much output to give at most. Default: 10000."),
    });
    function(
        "exec_command",
        "Runs a command. Gives its output and exit code, or, if it still runs, a session id for write_stdin.",
        with_escalation(properties, escalation),
        &["cmd"],
    )
}

/// Writes to a command that goes on.
pub(crate) fn write_stdin() -> Tool {
    function(
        "write_stdin",
        "Sends characters to a command that still runs, and gives what it printed since.",
        json!({
            "session_id": number("Which one."),
            "chars": string("What to send; nothing if left out, to only look."),
            "yield_time_ms": number("How long to wait for output, 250 to 30000. Default: 250, or 5000 when nothing is sent."),
            "max_output_tokens": number("How much output to give at most. Default: 10000."),
        }),
        &["session_id"],
    )
}

/// Changes files, for models that write plain text by a grammar.
pub(crate) fn apply_patch() -> Tool {
    Tool::Custom {
        name: "apply_patch".to_owned(),
        description: "Changes files by a patch. It is plain text, not JSON.".to_owned(),
        format: Some(ToolFormat::Grammar {
            syntax: "lark".to_owned(),
            definition: PATCH_GRAMMAR.to_owned(),
        }),
    }
}

/// The same for models that have only functions.
pub(crate) fn apply_patch_function() -> Tool {
    function(
        "apply_patch",
        &format!("Changes files by a patch.\n\n{PATCH_FORM}"),
        json!({"input": string("The whole patch, from `*** Begin Patch` to `*** End Patch`.")}),
        &["input"],
    )
}

/// Shows the steps of the work.
pub(crate) fn update_plan() -> Tool {
    let step = json!({
        "type": "object",
        "properties": {
            "step": string("What is done, in a few words."),
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
        },
        "required": ["step", "status"],
        "additionalProperties": false,
    });
    function(
        "update_plan",
        "Shows the user the steps of the work and how far each is. Always give all steps. At most one is in_progress at a time.",
        json!({
            "explanation": string("Why the plan changed, if it did."),
            "plan": {"type": "array", "items": step, "description": "The steps, in order."},
        }),
        &["plan"],
    )
}

/// Asks the user.
pub(crate) fn request_user_input() -> Tool {
    let option = json!({
        "type": "object",
        "properties": {
            "label": string("The answer, in one to five words."),
            "description": string("What follows from it, in one sentence."),
            "value": string("The answer for programs, in snake_case. May be left out."),
        },
        "required": ["label", "description"],
        "additionalProperties": false,
    });
    let question = json!({
        "type": "object",
        "properties": {
            "id": string("A name for the answer, in snake_case."),
            "header": string("A label of at most 12 characters."),
            "question": string("The question, in one sentence."),
            "options": {
                "type": "array",
                "items": option,
                "description": "Two or three answers that exclude each other, the one you would take first with \"(Recommended)\" after it. Leave out \"other\": the user can always write another answer. Leave out options where only the user's own words answer.",
            },
        },
        "required": ["id", "header", "question"],
        "additionalProperties": false,
    });
    function(
        "request_user_input",
        "Asks the user one to three short questions and waits for the answers.",
        json!({"questions": {"type": "array", "items": question, "description": "One to three. One is best, unless several decisions do not depend on each other."}}),
        &["questions"],
    )
}

/// Shows the model a picture.
pub(crate) fn view_image() -> Tool {
    function(
        "view_image",
        "Shows you a picture from a file. Only for files the user named or that you need to see.",
        json!({"path": string("The file.")}),
        &["path"],
    )
}

/// The provider's search: in what it has kept, or on the web as it is now.
pub(crate) fn web_search(live: bool) -> Tool {
    Tool::WebSearch { external_web_access: Some(live) }
}

/// Reads a part of a file.
pub(crate) fn read_file() -> Tool {
    function(
        "read_file",
        "Gives lines of a text file with their numbers.",
        json!({
            "file_path": string("The file."),
            "offset": number("The first line, counted from 1. Default: 1."),
            "limit": number("How many lines at most. Default: 2000."),
        }),
        &["file_path"],
    )
}

/// Lists a directory.
pub(crate) fn list_dir() -> Tool {
    function(
        "list_dir",
        "Lists what is in a directory and below it, without what git ignores.",
        json!({
            "dir_path": string("The directory."),
            "depth": number("How deep, 1 being the directory alone. Default: 2."),
        }),
        &["dir_path"],
    )
}

/// Finds lines in files.
pub(crate) fn grep_files() -> Tool {
    function(
        "grep_files",
        "Gives the lines that match a regular expression in files, without what git ignores.",
        json!({
            "pattern": string("The regular expression."),
            "include": string("Which files, as a glob such as *.rs. All if left out."),
            "path": string("Where to look; the working directory if left out."),
            "limit": number("How many lines at most. Default: 100."),
        }),
        &["pattern"],
    )
}

/// What is on offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    /// `apply_patch` takes plain text.
    pub(crate) freeform_patch: bool,
    /// The provider searches the web.
    pub(crate) web_search: bool,
    /// The model takes pictures.
    pub(crate) images: bool,
    /// The model plans: nothing that changes anything is offered.
    pub(crate) plan: bool,
    /// A command may be asked to leave the sandbox.
    pub(crate) escalation: Escalation,
}

/// The tools of a turn.
pub(crate) fn tools(offer: &Offer) -> Vec<Tool> {
    let mut tools = vec![exec_command(offer.escalation), write_stdin()];
    if !offer.plan {
        tools.push(match offer.freeform_patch {
            true => apply_patch(),
            false => apply_patch_function(),
        });
        tools.push(update_plan());
    }
    tools.extend([request_user_input(), read_file(), list_dir(), grep_files()]);
    if offer.images {
        tools.push(view_image());
    }
    if offer.web_search {
        tools.push(web_search(true));
    }
    tools
}
