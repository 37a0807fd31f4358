//! A tool call, as its updates make it.

use std::collections::BTreeMap;

use serde_json::Value;

/// The fields that an update may carry; a list replaces the one before.
const FIELDS: [&str; 8] =
    ["title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput"];

/// One tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    pub id: String,
    /// By the name of the field; what was never said is not there.
    pub fields: BTreeMap<&'static str, Value>,
    /// Every status it had, in order, each run once.
    pub statuses: Vec<String>,
    /// What its terminal printed, and the working directory and exit it was given.
    pub terminal: Option<Terminal>,
    /// The other keys of `_meta`, the last value of each.
    pub meta: BTreeMap<String, Value>,
}

/// A terminal that is shown by the convention of `_meta`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terminal {
    pub info: Value,
    pub output: String,
    pub exit: Value,
}

impl Tool {
    pub(super) fn new(id: &str) -> Tool {
        Tool {
            id: id.to_owned(),
            fields: BTreeMap::new(),
            statuses: vec!["pending".to_owned()],
            terminal: None,
            meta: BTreeMap::new(),
        }
    }

    /// A field, or nothing.
    pub fn get(&self, field: &str) -> &Value {
        self.fields.get(field).unwrap_or(&Value::Null)
    }

    pub fn text(&self, field: &str) -> &str {
        self.get(field).as_str().unwrap_or_default()
    }

    /// `other` unless it was said.
    pub fn kind(&self) -> &str {
        self.fields.get("kind").and_then(Value::as_str).unwrap_or("other")
    }

    pub fn status(&self) -> &str {
        self.statuses.last().map(String::as_str).unwrap_or_default()
    }

    /// Takes what an update, or a request for permission, says.
    ///
    /// # Errors
    /// The rule it breaks.
    pub(super) fn merge(&mut self, update: &Value) -> Result<(), String> {
        for field in FIELDS {
            if let Some(value) = update.get(field).filter(|value| !value.is_null()) {
                self.fields.insert(field, value.clone());
            }
        }
        for (key, value) in update["_meta"].as_object().into_iter().flatten() {
            self.meta(key, value);
        }
        match update["status"].as_str() {
            Some(status) => self.advance(status),
            None => Ok(()),
        }
    }

    fn meta(&mut self, key: &str, value: &Value) {
        let terminal = |tool: &mut Tool, fill: &dyn Fn(&mut Terminal)| {
            fill(tool.terminal.get_or_insert_default());
        };
        match key {
            "terminal_info" => terminal(self, &|it| it.info = value.clone()),
            "terminal_exit" => terminal(self, &|it| it.exit = value.clone()),
            "terminal_output" => {
                terminal(self, &|it| {
                    it.output.push_str(value["data"].as_str().unwrap_or_default())
                });
            }
            _ => {
                self.meta.insert(key.to_owned(), value.clone());
            }
        }
    }

    fn advance(&mut self, status: &str) -> Result<(), String> {
        let rank = |status: &str| match status {
            "pending" => Some(0),
            "in_progress" => Some(1),
            "completed" | "failed" => Some(2),
            _ => None,
        };
        let before = self.status().to_owned();
        let new = rank(status).ok_or_else(|| format!("{} has the status {status}", self.id))?;
        if before == status {
            return Ok(());
        }
        self.statuses.push(status.to_owned());
        match Some(new) > rank(&before) {
            true => Ok(()),
            false => Err(format!("{} goes back from {before} to {status}", self.id)),
        }
    }
}
