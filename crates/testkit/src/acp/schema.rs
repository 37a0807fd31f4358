//! The official JSON schema of the protocol, held against what an agent writes.

use std::collections::HashMap;
use std::fs;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::{Direction, Frame};
use crate::agents;

/// Where the installed package keeps the schema of version 1, and the one with what is not stable.
const STABLE: &str = "@agentclientprotocol/sdk/schema/v1/schema.json";
const UNSTABLE: &str = "@agentclientprotocol/sdk/schema/v1/schema.unstable.json";

/// Methods that are judged by the schema with what is not stable, because we use it: `fork` and
/// saying so, and the tokens of a turn in the answer to a prompt.
const UNSTABLE_METHODS: [&str; 3] = ["initialize", "session/fork", "session/prompt"];

/// Whether fields that the schema does not know are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// As the schema is written.
    Open,
    /// A field of our own belongs into `_meta`, nowhere else.
    Closed,
}

/// The schema, compiled as far as it was needed.
pub struct Schema {
    stable: Value,
    unstable: Value,
    strictness: Strictness,
    compiled: HashMap<(bool, String), Validator>,
}

impl Schema {
    /// The schema of the pinned package.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn installed(strictness: Strictness) -> Result<Schema, String> {
        let read = |file| {
            let text = fs::read_to_string(agents::acp(file)?).map_err(|err| err.to_string())?;
            serde_json::from_str(&text).map_err(|err| format!("{file}: {err}"))
        };
        let (mut stable, mut unstable) = (read(STABLE)?, read(UNSTABLE)?);
        if strictness == Strictness::Closed {
            close(&mut stable);
            close(&mut unstable);
        }
        Ok(Schema { stable, unstable, strictness, compiled: HashMap::new() })
    }

    /// What is wrong with the agent's side of a whole conversation, a sentence for each fault.
    pub fn faults(&mut self, frames: &[Frame]) -> Vec<String> {
        let mut asked: HashMap<String, String> = HashMap::new();
        let mut faults = Vec::new();
        for frame in frames {
            let found = match (frame.direction, &frame.value) {
                (Direction::ToAgent, Some(value)) => {
                    if let (Some(method), Some(id)) = (value["method"].as_str(), value.get("id")) {
                        asked.insert(id.to_string(), method.to_owned());
                    }
                    continue;
                }
                (Direction::ToAgent, None) => continue,
                (Direction::ToClient, None) => vec!["it is no JSON".to_owned()],
                (Direction::ToClient, Some(value)) => {
                    let of = value.get("id").and_then(|id| asked.get(&id.to_string()));
                    self.frame(value, of.map(String::as_str))
                }
            };
            faults.extend(found.into_iter().map(|fault| format!("{fault}\n  {frame}")));
        }
        faults
    }

    /// What is wrong with one message of an agent. `answers` is the method of the request that a
    /// response belongs to.
    pub fn frame(&mut self, message: &Value, answers: Option<&str>) -> Vec<String> {
        let mut faults = Vec::new();
        if message["jsonrpc"] != "2.0" {
            faults.push("`jsonrpc` is not \"2.0\"".to_owned());
        }
        let known = ["jsonrpc", "id", "method", "params", "result", "error"];
        let fields = message.as_object().map(Map::keys).into_iter().flatten();
        faults.extend(
            fields.filter(|it| !known.contains(&it.as_str())).map(|it| format!("a field `{it}`")),
        );
        match (message["method"].as_str(), message.get("id")) {
            // An extension means what its two ends agreed on.
            (Some(method), _) if method.starts_with('_') => {}
            (Some(method), id) => {
                let suffix = if id.is_some() { "Request" } else { "Notification" };
                faults.extend(self.body(method, suffix, &message["params"]));
            }
            (None, Some(_)) if message.get("error").is_some() => {
                faults.extend(self.named(false, "Error", &message["error"]));
            }
            (None, Some(_)) => match answers {
                Some(method) if method.starts_with('_') => {}
                Some(method) => faults.extend(self.body(method, "Response", &message["result"])),
                None => faults.push("an answer to nothing".to_owned()),
            },
            (None, None) => faults.push("neither method nor id".to_owned()),
        }
        faults
    }

    fn body(&mut self, method: &str, suffix: &str, body: &Value) -> Vec<String> {
        let unstable = UNSTABLE_METHODS.contains(&method);
        let definitions = self.root(unstable)["$defs"].as_object();
        let found = definitions
            .into_iter()
            .flatten()
            .find(|(name, definition)| definition["x-method"] == method && name.ends_with(suffix));
        match found.map(|(name, _)| name.clone()) {
            Some(name) => self.named(unstable, &name, body),
            None => vec![format!("{method} is no {suffix} of the schema")],
        }
    }

    fn named(&mut self, unstable: bool, name: &str, body: &Value) -> Vec<String> {
        let key = (unstable, name.to_owned());
        if !self.compiled.contains_key(&key) {
            let mut root = self.root(unstable).clone();
            let closed = self.strictness == Strictness::Closed;
            if let Some(root) = root.as_object_mut() {
                root.retain(|key, _| key == "$schema" || key == "$defs");
                root.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
                if closed {
                    root.insert("unevaluatedProperties".to_owned(), false.into());
                }
            }
            let validator = jsonschema::validator_for(&root).expect("the official schema is one");
            self.compiled.insert(key.clone(), validator);
        }
        let validator = &self.compiled[&key];
        let faults = validator.iter_errors(body);
        faults.map(|fault| format!("{name}{}: {fault}", fault.instance_path())).collect()
    }

    fn root(&self, unstable: bool) -> &Value {
        if unstable { &self.unstable } else { &self.stable }
    }
}

/// Forbids unknown fields wherever a type of the schema is used: as a field, or in a list.
///
/// Not where types are defined: some are made of others, and each part knows only its own fields.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (key, inner) in fields.iter_mut() {
                match key.as_str() {
                    "properties" => inner.as_object_mut().into_iter().flatten().for_each(close_use),
                    "items" => close_use((key, inner)),
                    _ => {}
                }
                close(inner);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

fn close_use((_, used): (&String, &mut Value)) {
    const REFERENCES: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];
    if let Some(fields) = used.as_object_mut()
        && REFERENCES.iter().any(|it| fields.contains_key(*it))
    {
        fields.insert("unevaluatedProperties".to_owned(), json!(false));
    }
}
