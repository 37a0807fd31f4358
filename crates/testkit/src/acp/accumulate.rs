//! Folds frames into what a person would see, and notes each broken rule.
//!
//! The rules are those of protocol version 1 about order: a session is known before it is talked
//! about, a tool call is created once and before everything else that names it, its status never
//! goes back, and what belongs to a turn comes before the turn's answer.

mod story;
#[cfg(test)]
mod tests;
mod tool;

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::{Direction, Frame};

pub use self::tool::Tool;

/// Everything a client was shown.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// By session id.
    pub sessions: BTreeMap<String, View>,
    /// Each broken rule as a sentence, in order.
    pub broken: Vec<String>,
    /// The client's requests without an answer so far, by id.
    asked: HashMap<String, Value>,
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// Messages and tool calls, in order of their first appearance.
    pub entries: Vec<Entry>,
    /// Every plan that was shown; each replaces the one before.
    pub plans: Vec<Value>,
    pub modes: Value,
    pub config_options: Value,
    pub commands: Value,
    /// The last `usage_update`, without its kind.
    pub usage: Value,
    pub title: Value,
    pub permissions: Vec<Permission>,
    pub turns: Vec<Turn>,
    /// Updates of kinds that change nothing above, as they were.
    pub others: Vec<Value>,
    /// The kinds of all updates, in order, each run once.
    pub kinds: Vec<String>,
    /// Prompts that run.
    running: usize,
    /// The history is being replayed.
    replaying: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Message(Message),
    Tool(Tool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Agent,
    Thought,
}

/// A message: text is joined, everything else stays a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub role: Role,
    pub id: Option<String>,
    pub text: String,
    pub blocks: Vec<Value>,
}

/// A question about a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Permission {
    pub tool: String,
    /// Name and kind of each option, in order.
    pub options: Vec<(String, String)>,
    /// What the call showed when it was asked about.
    pub content: Value,
}

/// How a turn was answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    Ended { stop_reason: String, usage: Value },
    Failed { code: i64, message: String },
}

impl Seen {
    /// What these frames show.
    pub fn of(frames: &[Frame]) -> Seen {
        let mut seen = Seen::default();
        for frame in frames {
            if let Some(value) = &frame.value {
                seen.take(frame.direction, value);
            }
        }
        seen
    }

    /// What one more message shows.
    pub fn take(&mut self, direction: Direction, message: &Value) {
        let id = message.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        match (direction, message["method"].as_str(), id) {
            (Direction::ToAgent, Some(method), Some(id)) => {
                self.begin(method, &message["params"]);
                self.asked.insert(id, message.clone());
            }
            (Direction::ToClient, None, Some(id)) => match self.asked.remove(&id) {
                Some(request) => self.finish(&request, message),
                None => self.broken.push(format!("an answer to nothing: {message}")),
            },
            (Direction::ToClient, Some("session/update"), None) => self.update(&message["params"]),
            (Direction::ToClient, Some("session/request_permission"), Some(_)) => {
                self.permission(&message["params"]);
            }
            _ => {}
        }
    }

    /// The one session of a test that has one.
    pub fn only(&self) -> &View {
        let mut all = self.sessions.values();
        let view = all.next().expect("there is a session");
        assert!(all.next().is_none(), "there is more than one session");
        view
    }

    /// The client asks for something.
    fn begin(&mut self, method: &str, params: &Value) {
        let session_id = params["sessionId"].as_str().unwrap_or_default();
        match method {
            "session/prompt" => {
                if let Some(view) = self.sessions.get_mut(session_id) {
                    view.running += 1;
                    let blocks = params["prompt"].as_array().cloned().unwrap_or_default();
                    view.entries.push(Entry::Message(Message::new(Role::User, None)));
                    for block in blocks {
                        view.chunk(Role::User, None, &block);
                    }
                }
            }
            // What was there is shown anew.
            "session/load" => {
                let view = View { replaying: true, ..View::default() };
                self.sessions.insert(session_id.to_owned(), view);
            }
            "session/resume" => {
                self.sessions.entry(session_id.to_owned()).or_default();
            }
            _ => {}
        }
    }

    /// The agent answers.
    fn finish(&mut self, request: &Value, answer: &Value) {
        let result = &answer["result"];
        let asked_for = request["params"]["sessionId"].as_str();
        let made = result["sessionId"].as_str();
        match request["method"].as_str().unwrap_or_default() {
            "session/new" | "session/fork" => {
                if let Some(session_id) = made {
                    let view = self.sessions.entry(session_id.to_owned()).or_default();
                    view.configure(result);
                }
            }
            "session/load" | "session/resume" | "session/set_config_option" => {
                if let Some(view) = asked_for.and_then(|id| self.sessions.get_mut(id)) {
                    view.configure(result);
                    view.replaying = false;
                }
            }
            "session/set_mode" if answer.get("error").is_none() => {
                if let Some(view) = asked_for.and_then(|id| self.sessions.get_mut(id)) {
                    view.modes["currentModeId"] = request["params"]["modeId"].clone();
                }
            }
            "session/prompt" => {
                if let Some(view) = asked_for.and_then(|id| self.sessions.get_mut(id)) {
                    view.running = view.running.saturating_sub(1);
                    view.turns.push(Turn::of(answer));
                }
            }
            _ => {}
        }
    }

    fn update(&mut self, params: &Value) {
        let session_id = params["sessionId"].as_str().unwrap_or_default();
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let Some(view) = self.sessions.get_mut(session_id) else {
            return self.broken.push(format!("{kind} for a session nobody knows"));
        };
        if let Err(rule) = view.update(kind, update) {
            self.broken.push(rule);
        }
    }

    fn permission(&mut self, params: &Value) {
        let session_id = params["sessionId"].as_str().unwrap_or_default();
        let tool = params["toolCall"]["toolCallId"].as_str().unwrap_or_default().to_owned();
        let Some(view) = self.sessions.get_mut(session_id) else {
            return self.broken.push("a permission for a session nobody knows".to_owned());
        };
        let mut content = Value::Null;
        match view.tool_mut(&tool) {
            // What the request tells about its call is news like any other.
            Some(call) => {
                if let Err(rule) = call.merge(&params["toolCall"]) {
                    self.broken.push(rule);
                }
                content = call.get("content").clone();
            }
            None => self.broken.push(format!("a permission before its tool call {tool}")),
        }
        if view.running == 0 {
            self.broken.push(format!("a permission for {tool} outside a turn"));
        }
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let options = options.iter().map(|it| (text(&it["name"]), text(&it["kind"])));
        view.permissions.push(Permission { tool, options: options.collect(), content });
    }
}

impl View {
    /// The tool calls, in order of their creation.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Tool(tool) => Some(tool),
            Entry::Message(_) => None,
        })
    }

    /// The messages of a role, in order.
    pub fn messages(&self, role: Role) -> impl Iterator<Item = &Message> {
        self.entries.iter().filter_map(move |entry| match entry {
            Entry::Message(message) if message.role == role => Some(message),
            _ => None,
        })
    }

    /// All text of a role.
    pub fn text(&self, role: Role) -> String {
        self.messages(role).map(|message| message.text.as_str()).collect()
    }

    fn tool_mut(&mut self, id: &str) -> Option<&mut Tool> {
        self.entries.iter_mut().find_map(|entry| match entry {
            Entry::Tool(tool) if tool.id == id => Some(tool),
            _ => None,
        })
    }

    /// What the answer to a request says about the session.
    fn configure(&mut self, result: &Value) {
        for (name, place) in
            [("modes", &mut self.modes), ("configOptions", &mut self.config_options)]
        {
            if let Some(value) = result.get(name).filter(|value| !value.is_null()) {
                *place = value.clone();
            }
        }
    }

    fn update(&mut self, kind: &str, update: &Value) -> Result<(), String> {
        if self.kinds.last().is_none_or(|last| last != kind) {
            self.kinds.push(kind.to_owned());
        }
        match kind {
            "available_commands_update" => self.commands = update["availableCommands"].clone(),
            "current_mode_update" => self.modes["currentModeId"] = update["currentModeId"].clone(),
            "config_option_update" => self.config_options = update["configOptions"].clone(),
            "session_info_update" => {
                if let Some(title) = update.get("title") {
                    self.title = title.clone();
                }
            }
            "usage_update" => {
                self.usage = update.clone();
                if let Some(usage) = self.usage.as_object_mut() {
                    usage.remove("sessionUpdate");
                }
            }
            _ => return self.turn_update(kind, update),
        }
        Ok(())
    }

    /// An update that belongs to a turn.
    fn turn_update(&mut self, kind: &str, update: &Value) -> Result<(), String> {
        let role = match kind {
            "user_message_chunk" => Some(Role::User),
            "agent_message_chunk" => Some(Role::Agent),
            "agent_thought_chunk" => Some(Role::Thought),
            _ => None,
        };
        let tool = update["toolCallId"].as_str().unwrap_or_default();
        let known = self.tool_mut(tool);
        let done = match (kind, role, known) {
            (_, Some(role), _) => {
                self.chunk(role, update["messageId"].as_str(), &update["content"]);
                Ok(())
            }
            ("tool_call", _, Some(_)) => Err(format!("the tool call {tool} is created twice")),
            ("tool_call", _, None) => {
                let mut call = Tool::new(tool);
                let merged = call.merge(update);
                self.entries.push(Entry::Tool(call));
                merged
            }
            ("tool_call_update", _, Some(call)) => call.merge(update),
            ("tool_call_update", _, None) => {
                Err(format!("an update of the tool call {tool} before it is created"))
            }
            ("plan", ..) => {
                self.plans.push(update["entries"].clone());
                Ok(())
            }
            _ => {
                self.others.push(update.clone());
                // Notices and the like may come at any time.
                return Ok(());
            }
        };
        done?;
        match self.running > 0 || self.replaying {
            true => Ok(()),
            false => Err(format!("{kind} outside a turn: {update}")),
        }
    }

    /// A piece of a message: of the one with this id, else of the last entry if it fits.
    fn chunk(&mut self, role: Role, id: Option<&str>, content: &Value) {
        let place = match id {
            Some(id) => self.entries.iter().position(|entry| entry.is(role, Some(id))),
            None => {
                let last = self.entries.len().checked_sub(1);
                last.filter(|last| self.entries.get(*last).is_some_and(|it| it.is(role, None)))
            }
        };
        let place = place.unwrap_or_else(|| {
            self.entries.push(Entry::Message(Message::new(role, id)));
            self.entries.len() - 1
        });
        if let Some(Entry::Message(message)) = self.entries.get_mut(place) {
            match content["text"].as_str() {
                Some(text) if content["type"] == "text" => message.text.push_str(text),
                _ => message.blocks.push(content.clone()),
            }
        }
    }
}

impl Entry {
    fn is(&self, role: Role, id: Option<&str>) -> bool {
        match self {
            Entry::Message(message) => message.role == role && message.id.as_deref() == id,
            Entry::Tool(_) => false,
        }
    }
}

impl Message {
    fn new(role: Role, id: Option<&str>) -> Message {
        Message { role, id: id.map(str::to_owned), text: String::new(), blocks: Vec::new() }
    }
}

impl Turn {
    fn of(answer: &Value) -> Turn {
        match answer.get("error") {
            Some(error) => Turn::Failed {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
            },
            None => Turn::Ended {
                stop_reason: answer["result"]["stopReason"].as_str().unwrap_or_default().to_owned(),
                usage: answer["result"]["usage"].clone(),
            },
        }
    }
}
