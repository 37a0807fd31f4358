//! Calls of tools in the history, and their outputs.

use std::collections::HashSet;

use serde::Deserialize;
use tieline_wire::responses::{Item, ItemView, Output};
use tieline_wire::text::Str;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// What its output is sent under.
    pub(crate) id: String,
    /// The tool.
    pub(crate) name: String,
    /// What it is given.
    pub(crate) input: Input,
}

/// What a tool is given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// JSON.
    Arguments(String),
    /// Text.
    Text(String),
}

impl Call {
    /// Its output, as text.
    pub(crate) fn output(&self, text: &str) -> Item {
        self.output_of(Output::Text(Str::Borrowed(text)))
    }

    /// Its output.
    pub(crate) fn output_of(&self, output: Output<'_>) -> Item {
        match self.input {
            Input::Arguments(_) => Item::function_output(&self.id, output),
            Input::Text(_) => Item::custom_output(&self.id, output),
        }
    }
}

/// The call that an item is, if it is one.
pub(crate) fn call_of(item: &Item) -> Option<Call> {
    #[derive(Deserialize)]
    struct Action {
        #[serde(default)]
        command: Vec<String>,
        #[serde(default)]
        working_directory: Option<String>,
        #[serde(default)]
        timeout_ms: Option<u64>,
    }
    match item.view() {
        ItemView::FunctionCall(it) => Some(Call {
            id: it.call_id.into(),
            name: it.name.into(),
            input: Input::Arguments(it.arguments.into()),
        }),
        ItemView::CustomToolCall(it) => Some(Call {
            id: it.call_id.into(),
            name: it.name.into(),
            input: Input::Text(it.input.into()),
        }),
        // The provider's own word for a command: the same as our tool for it.
        ItemView::LocalShellCall(it) => {
            let action = it.action.read::<Action>()?;
            let arguments = serde_json::json!({
                "command": action.command,
                "workdir": action.working_directory,
                "timeout_ms": action.timeout_ms,
            });
            Some(Call {
                id: it.call_id.or(it.id)?.into(),
                name: "shell".to_owned(),
                input: Input::Arguments(arguments.to_string()),
            })
        }
        _ => None,
    }
}

/// Whether an item is what came of a call.
pub(crate) fn is_output_of(item: &Item, call: &Call) -> bool {
    match item.view() {
        ItemView::FunctionCallOutput(it) | ItemView::CustomToolCallOutput(it) => {
            *it.call_id == *call.id
        }
        _ => false,
    }
}

/// Calls that have no output, in order.
pub(crate) fn open_calls(items: &[Item]) -> Vec<Call> {
    let mut answered = HashSet::new();
    for item in items {
        if let ItemView::FunctionCallOutput(it) | ItemView::CustomToolCallOutput(it) = item.view() {
            answered.insert(String::from(it.call_id));
        }
    }
    items.iter().filter_map(call_of).filter(|call| !answered.contains(&call.id)).collect()
}
