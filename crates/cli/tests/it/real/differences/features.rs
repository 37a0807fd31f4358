//! What a conversation looks like, without what is different each time.

use std::collections::BTreeSet;

use serde_json::Value;
use tieline_testkit::acp::{Entry, Role, Tool, Turn, View};

/// A name and its values.
pub(super) type Feature = (String, Vec<String>);

/// Up to how many values are shown whole.
const FEW: usize = 6;

/// What the client sees of a session, and of the agent when it introduced itself.
pub(super) fn of(view: &View, introduction: &Value, hide: &dyn Fn(&str) -> String) -> Vec<Feature> {
    let mut all = Features { list: Vec::new(), hide };
    all.put("order", order(view));
    all.put("text", [view.text(Role::Agent)]);
    all.put("thoughts", [view.text(Role::Thought).trim()]);
    all.put("turns", view.turns.iter().map(turn));
    all.put("plans", view.plans.iter().map(plan));
    for (n, tool) in view.tools().enumerate() {
        tool_features(&mut all, &format!("tool {}", n + 1), tool);
    }
    for (n, permission) in view.permissions.iter().enumerate() {
        let options = permission.options.iter().map(|(name, kind)| format!("{name} ({kind})"));
        all.put(&format!("permission {}", n + 1), options);
        let shows = permission.content.as_array().into_iter().flatten().map(content);
        all.put(&format!("question {} shows", n + 1), shows);
    }
    // Whether there is a bubblewrap depends on the machine, and a feature was switched on by us.
    let ours = ["bubblewrap", "Under-development features"];
    let notices = view.others.iter().map(|it| text(&it["title"]));
    let notices = notices.filter(|it| !ours.iter().any(|own| it.contains(own)));
    all.put("notices", notices.map(|it| it.split(';').next().unwrap_or_default()));
    if !introduction.is_null() {
        let kinds: BTreeSet<&String> = view.kinds.iter().collect();
        all.put("kinds of updates", kinds);
        all.put("title", [if view.title.is_string() { "yes" } else { "" }]);
        all.put("context", keys(&view.usage));
        all.put("current mode", [text(&view.modes["currentModeId"])]);
        let mut abilities = Vec::new();
        flatten("", &introduction["agentCapabilities"], &mut abilities);
        all.put("capabilities", abilities);
        all.put("ways to log in", list(&introduction["authMethods"], "id"));
        all.put("modes", list(&view.modes["availableModes"], "id"));
        let options = view.config_options.as_array().into_iter().flatten();
        let options = options.map(|it| format!("{} ({})", text(&it["id"]), text(&it["category"])));
        all.put("settings", options);
        all.put("commands", list(&view.commands, "name"));
    }
    all.list
}

struct Features<'a> {
    list: Vec<Feature>,
    hide: &'a dyn Fn(&str) -> String,
}

impl Features<'_> {
    fn put(&mut self, name: &str, values: impl IntoIterator<Item = impl AsRef<str>>) {
        let values = values.into_iter().map(|value| (self.hide)(value.as_ref()));
        let values: Vec<String> = values.filter(|value| !value.is_empty()).collect();
        self.list.push((name.to_owned(), values));
    }
}

/// Messages and tool calls in the order in which they appear.
fn order(view: &View) -> Vec<&'static str> {
    let words = view.entries.iter().map(|entry| match entry {
        Entry::Message(message) => match message.role {
            Role::User => "user",
            Role::Agent => "agent",
            Role::Thought => "thought",
        },
        Entry::Tool(_) => "tool",
    });
    words.collect()
}

fn tool_features(all: &mut Features<'_>, name: &str, tool: &Tool) {
    let mut put = |what: &str, values: Vec<String>| all.put(&format!("{name} {what}"), values);
    put("kind", vec![tool.kind().to_owned()]);
    put("title", vec![tool.text("title").to_owned()]);
    put("status", vec![tool.status().to_owned()]);
    let places = tool.get("locations").as_array().into_iter().flatten();
    let places = places.map(|it| format!("{}:{}", text(&it["path"]), it["line"]));
    put("places", places.map(|it| it.trim_end_matches(":null").to_owned()).collect());
    let contents = tool.get("content").as_array().into_iter().flatten();
    put("content", contents.map(content).collect());
    if let Some(terminal) = &tool.terminal {
        // Two streams meet in any order.
        let mut lines: Vec<String> = terminal.output.lines().map(str::to_owned).collect();
        lines.sort();
        put("printed", lines);
        put("exit", vec![terminal.exit["exit_code"].to_string()]);
    }
    put("input", keys(tool.get("rawInput")));
    put("output", vec![if tool.get("rawOutput").is_null() { "" } else { "yes" }.to_owned()]);
}

fn content(content: &Value) -> String {
    match text(&content["type"]) {
        "diff" => {
            let old =
                content["oldText"].as_str().map_or("nothing".to_owned(), |it| format!("{it:?}"));
            format!("diff of {}: {old} to {}", text(&content["path"]), content["newText"])
        }
        "content" => {
            format!("{} {}", text(&content["content"]["type"]), content["content"]["text"])
        }
        other => other.to_owned(),
    }
}

fn turn(turn: &Turn) -> String {
    match turn {
        Turn::Ended { stop_reason, usage } => format!("{stop_reason} {}", keys(usage).join(" ")),
        Turn::Failed { code, .. } => format!("error {code}"),
    }
}

fn plan(plan: &Value) -> String {
    let steps = plan.as_array().into_iter().flatten();
    let steps = steps.map(|it| format!("{} {}", text(&it["content"]), text(&it["status"])));
    steps.collect::<Vec<_>>().join("; ")
}

/// The names of the fields that say something.
fn keys(value: &Value) -> Vec<String> {
    let fields = value.as_object().into_iter().flatten();
    let said = fields.filter(|(name, value)| !value.is_null() && *name != "_meta");
    let mut names: Vec<String> = said.map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

fn list(values: &Value, name: &str) -> Vec<String> {
    let values = values.as_array().into_iter().flatten();
    values.map(|value| text(&value[name]).to_owned()).collect()
}

/// Every ability as a path; `false` is none.
fn flatten(path: &str, value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields.iter().filter(|(name, _)| *name != "_meta") {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{name}"), value, into);
            }
        }
        Value::Bool(false) | Value::Null => {}
        _ => into.push(path.to_owned()),
    }
    into.sort();
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Both sides as cells of a table; of long lists only what the other side lacks.
pub(super) fn shown(left: &[String], right: &[String]) -> (String, String) {
    let cell = |own: &[String], other: &[String]| {
        let own: Vec<&String> = match own.len() > FEW || other.len() > FEW {
            true => own.iter().filter(|it| !other.contains(it)).collect(),
            false => own.iter().collect(),
        };
        let joined: Vec<String> = own.iter().map(|it| shortened(it)).collect();
        if joined.is_empty() { "–".to_owned() } else { joined.join("; ") }
    };
    (cell(left, right), cell(right, left))
}

fn shortened(text: &str) -> String {
    let plain = text.replace('|', "\\|").replace('\n', " ");
    match plain.chars().count() > 120 {
        true => plain.chars().take(117).chain("...".chars()).collect(),
        false => plain,
    }
}
