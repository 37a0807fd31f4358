//! What the server needs to know of a request, for both APIs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Dialect;

/// A request for a model answer, boiled down.
pub(crate) struct Prompt {
    pub(crate) dialect: Dialect,
    pub(crate) scenario: Option<Scenario>,
    /// The user text that names the scenario, or the last one.
    pub(crate) text: String,
    /// Tool results after that text.
    pub(crate) results: usize,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) tools: Vec<Tool>,
    pub(crate) workspace: PathBuf,
    /// Equal for a retry of the same request.
    pub(crate) conversation: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) n: Option<usize>,
}

/// A tool that the agent offers to the model.
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) kind: String,
}

impl Prompt {
    pub(crate) fn read(dialect: Dialect, body: &Value, workspace: Option<PathBuf>) -> Prompt {
        let mut history = History::default();
        match dialect {
            Dialect::Messages => history.messages(&body["messages"]),
            Dialect::Responses => history.input(&body["input"]),
        }
        let mut tools = Vec::new();
        collect_tools(&body["tools"], &mut tools);
        for item in items(&body["input"]) {
            collect_tools(&item["tools"], &mut tools);
        }
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        // Old versions ask a small model about the user's text, newer ones want a title in a form;
        // neither is a turn.
        let wants_form = body["output_config"]["format"]["type"] == "json_schema";
        let side_call = tools.is_empty() && (wants_form || model.contains("haiku"));
        Prompt {
            dialect,
            scenario: history.scenario.filter(|_| !side_call),
            text: history.text,
            results: history.results,
            model,
            stream: body["stream"].as_bool().unwrap_or(false),
            tools,
            workspace: workspace.or_else(|| find_workspace(body)).unwrap_or_else(|| ".".into()),
            conversation: fingerprint(body),
        }
    }

    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    pub(crate) fn n_or(&self, default: usize) -> usize {
        self.scenario.as_ref().and_then(|scenario| scenario.n).unwrap_or(default)
    }

    /// An absolute path in the workspace, as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.workspace.join(name).display().to_string()
    }

    /// `input` with `{workspace}` filled in.
    pub(crate) fn fill(&self, input: &Value) -> Value {
        match input {
            Value::String(text) => {
                text.replace("{workspace}", &self.workspace.display().to_string()).into()
            }
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| (key.clone(), self.fill(value))).collect()
            }
            other => other.clone(),
        }
    }
}

#[derive(Default)]
struct History {
    scenario: Option<Scenario>,
    text: String,
    results: usize,
}

impl History {
    fn messages(&mut self, messages: &Value) {
        for message in items(messages).iter().filter(|message| message["role"] == "user") {
            if let Some(text) = message["content"].as_str() {
                self.user_text(text);
            }
            for block in items(&message["content"]) {
                match block["type"].as_str() {
                    Some("text") => self.user_text(block["text"].as_str().unwrap_or_default()),
                    Some("tool_result") => self.results += 1,
                    _ => {}
                }
            }
        }
    }

    fn input(&mut self, input: &Value) {
        if let Some(text) = input.as_str() {
            self.user_text(text);
        }
        for item in items(input) {
            match item["type"].as_str() {
                Some("function_call_output" | "custom_tool_call_output") => self.results += 1,
                _ if item["role"] == "user" => {
                    for part in items(&item["content"]) {
                        self.user_text(part["text"].as_str().unwrap_or_default());
                    }
                }
                _ => {}
            }
        }
    }

    fn user_text(&mut self, text: &str) {
        if let Some(scenario) = last_scenario(text) {
            *self = History { scenario: Some(scenario), text: text.to_owned(), results: 0 };
        } else if self.scenario.is_none() {
            self.text = text.to_owned();
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn last_scenario(text: &str) -> Option<Scenario> {
    let (_, rest) = text.rsplit_once("SCENARIO:")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = rest.chars().take_while(|c| is_name(*c)).collect();
    let number = rest.strip_prefix(name.as_str())?.strip_prefix(':').unwrap_or_default();
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    Some(Scenario { name, n: digits.parse().ok() })
}

fn collect_tools(list: &Value, tools: &mut Vec<Tool>) {
    for tool in items(list) {
        let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        if tool["type"] == "namespace" {
            collect_tools(&tool["tools"], tools);
        } else {
            tools.push(Tool { name: text("name"), kind: text("type") });
        }
    }
}

/// The working directory that an agent's prompt tells the model.
fn find_workspace(body: &Value) -> Option<PathBuf> {
    let mut found = None;
    for key in ["instructions", "system", "input", "messages"] {
        each_text(&body[key], &mut |text| {
            if found.is_none() {
                found = workspace_in(text);
            }
        });
    }
    found
}

fn workspace_in(text: &str) -> Option<PathBuf> {
    let markers =
        [("Primary working directory: ", '\n'), ("Working directory: ", '\n'), ("<cwd>", '<')];
    markers.iter().find_map(|(marker, end)| {
        let (_, rest) = text.split_once(marker)?;
        let path = Path::new(rest.split(*end).next()?.trim());
        path.is_absolute().then(|| path.to_owned())
    })
}

fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(map) => map.values().for_each(|item| each_text(item, visit)),
        _ => {}
    }
}

fn fingerprint(body: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for key in ["messages", "input", "metadata", "prompt_cache_key"] {
        body[key].to_string().hash(&mut hasher);
    }
    hasher.finish()
}
