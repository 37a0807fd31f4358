//! The tools as the model is told of them.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tieline_wire::responses::{Tool, ToolFormat};

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
}

/// What a patch looks like, for models that are held to a grammar.
const GRAMMAR: &str = r#"start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
"#;

/// What a patch looks like, for all others.
const PATCH: &str = "Changes files by a patch:\n\
    *** Begin Patch\n\
    *** Add File: path — every following line begins with +\n\
    *** Delete File: path\n\
    *** Update File: path — then optionally `*** Move to: path`, then for each place `@@` with an \
    optional line of context, lines that stay (begin with a space), go (-) and come (+)\n\
    *** End Patch\n\
    Give three lines of context around each change. Paths are relative to the working directory.";

/// The tools.
pub(crate) fn tools(offer: &Offer) -> Vec<Tool> {
    let mut tools = vec![exec_command(), write_stdin()];
    if !offer.plan {
        tools.push(match offer.freeform_patch {
            true => Tool::Custom {
                name: "apply_patch".to_owned(),
                description: "Changes files by a patch. The input is the patch itself, not JSON."
                    .to_owned(),
                format: Some(ToolFormat::Grammar {
                    syntax: "lark".to_owned(),
                    definition: GRAMMAR.to_owned(),
                }),
            },
            false => function(
                "apply_patch",
                PATCH,
                &[("input", text("The whole patch, from *** Begin Patch to *** End Patch."))],
                &["input"],
            ),
        });
        tools.push(update_plan());
    }
    tools.push(request_user_input());
    tools.extend([read_file(), list_dir(), grep_files()]);
    if offer.images {
        let path = text("The file: PNG, JPEG, GIF or WebP.");
        tools.push(function("view_image", "Looks at a picture.", &[("path", path)], &["path"]));
    }
    if offer.web_search {
        tools.push(Tool::WebSearch { external_web_access: None });
    }
    tools
}

fn exec_command() -> Tool {
    function(
        "exec_command",
        "Runs a command. Gives what it printed, and its exit code or, if it still runs, a session \
         ID for write_stdin.",
        &[
            ("cmd", text("The line for the shell.")),
            ("workdir", text("Where; the working directory if left out.")),
            ("shell", text("Which shell; the user's if left out.")),
            ("login", boolean("Whether the shell reads its login files; yes if left out.")),
            ("tty", boolean("Whether the command has a terminal; no if left out.")),
            ("yield_time_ms", number("How long to wait for output, 250 to 30000; 10000 if left out.")),
            ("max_output_tokens", number("The most output to show; 10000 if left out.")),
            (
                "sandbox_permissions",
                json!({
                    "type": "string",
                    "enum": ["use_default", "require_escalated"],
                    "description": "require_escalated asks the user to let it run without the sandbox.",
                }),
            ),
            ("justification", text("With require_escalated: one short question to the user.")),
            (
                "prefix_rule",
                json!({
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "With require_escalated: first words that could be allowed for good, such as [\"git\", \"push\"].",
                }),
            ),
        ],
        &["cmd"],
    )
}

fn write_stdin() -> Tool {
    function(
        "write_stdin",
        "Writes to a command that still runs, and gives what it printed since.",
        &[
            ("session_id", number("The session ID that exec_command gave.")),
            ("chars", text("What to write; nothing to only look.")),
            ("yield_time_ms", number("How long to wait for output, 250 to 30000.")),
            ("max_output_tokens", number("The most output to show; 10000 if left out.")),
        ],
        &["session_id"],
    )
}

fn update_plan() -> Tool {
    let step = json!({
        "type": "object",
        "properties": {
            "step": {"type": "string", "description": "What is to be done, in a few words."},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
        },
        "required": ["step", "status"],
        "additionalProperties": false,
    });
    function(
        "update_plan",
        "Tells the user the list of steps and how far they are. At most one is in progress.",
        &[
            ("explanation", text("A word on what changed.")),
            ("plan", json!({"type": "array", "items": step, "description": "Every step, whole list."})),
        ],
        &["plan"],
    )
}

fn request_user_input() -> Tool {
    let option = json!({
        "type": "object",
        "properties": {
            "label": {"type": "string", "description": "One to five words."},
            "description": {"type": "string", "description": "What choosing it means."},
        },
        "required": ["label", "description"],
        "additionalProperties": false,
    });
    let question = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "A name for the answer, in snake_case."},
            "header": {"type": "string", "description": "A word or two above the question."},
            "question": {"type": "string", "description": "One sentence."},
            "options": {
                "type": "array",
                "items": option,
                "description": "Two or three choices, the recommended one first; none for a free answer.",
            },
        },
        "required": ["id", "header", "question"],
        "additionalProperties": false,
    });
    function(
        "request_user_input",
        "Asks the user one to three short questions and waits for the answers. Only for what you \
         cannot find out yourself.",
        &[("questions", json!({"type": "array", "items": question}))],
        &["questions"],
    )
}

fn read_file() -> Tool {
    function(
        "read_file",
        "Shows lines of a file, numbered.",
        &[
            ("path", text("The file.")),
            ("offset", number("The first line, from 1.")),
            ("limit", number("How many lines; 2000 at most.")),
        ],
        &["path"],
    )
}

fn list_dir() -> Tool {
    function(
        "list_dir",
        "Lists what is in a directory and below, without what git ignores.",
        &[
            ("path", text("The directory; the working directory if left out.")),
            ("depth", number("How many levels, 1 to 8; 2 if left out.")),
        ],
        &[],
    )
}

fn grep_files() -> Tool {
    function(
        "grep_files",
        "Finds lines by a regular expression in files, without what git ignores.",
        &[
            ("pattern", text("The regular expression.")),
            ("path", text("Where; the working directory if left out.")),
            ("include", text("Only files of this form, such as *.rs.")),
            ("limit", number("The most lines; 100 if left out.")),
        ],
        &["pattern"],
    )
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn number(description: &str) -> Value {
    json!({"type": "number", "description": description})
}

fn boolean(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn function(name: &str, description: &str, fields: &[(&str, Value)], required: &[&str]) -> Tool {
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let parameters = RawValue::from_string(schema.to_string()).unwrap_or_default();
    Tool::Function {
        name: name.to_owned(),
        description: description.to_owned(),
        strict: false,
        parameters: Arc::from(parameters),
    }
}
