//! A session in a form for people and for comparing.

use std::fmt::{self, Write};

use serde_json::Value;

use super::{Entry, Message, Role, Tool, View};

impl View {
    /// What is on the screen, without anything that tells a replay from the first time: messages
    /// and tool calls in order, then the plan.
    pub fn story(&self) -> String {
        let mut story = String::new();
        let written = self.write(&mut story);
        written.expect("a string takes everything");
        story
    }

    fn write(&self, story: &mut String) -> fmt::Result {
        for entry in &self.entries {
            match entry {
                Entry::Message(message) => write_message(story, message)?,
                Entry::Tool(tool) => write_tool(story, tool)?,
            }
        }
        for step in self.plans.last().and_then(Value::as_array).into_iter().flatten() {
            writeln!(story, "plan: {} ({})", text(&step["content"]), text(&step["status"]))?;
        }
        Ok(())
    }
}

fn write_message(story: &mut String, message: &Message) -> fmt::Result {
    let who = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
        Role::Thought => "thought",
    };
    if !message.text.is_empty() {
        writeln!(story, "{who}: {}", message.text)?;
    }
    for block in &message.blocks {
        writeln!(story, "{who}: {block}")?;
    }
    Ok(())
}

fn write_tool(story: &mut String, tool: &Tool) -> fmt::Result {
    writeln!(story, "{} {:?} {}", tool.kind(), tool.text("title"), tool.status())?;
    for place in tool.get("locations").as_array().into_iter().flatten() {
        let line = place["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
        writeln!(story, "  at {}{line}", text(&place["path"]))?;
    }
    for content in tool.get("content").as_array().into_iter().flatten() {
        match text(&content["type"]) {
            "diff" => {
                writeln!(story, "  diff {}", text(&content["path"]))?;
                for (sign, side) in [("-", "oldText"), ("+", "newText")] {
                    for line in text(&content[side]).lines() {
                        writeln!(story, "    {sign}{line}")?;
                    }
                }
            }
            "terminal" => writeln!(story, "  terminal")?,
            _ => match content["content"]["text"].as_str() {
                Some(text) => writeln!(story, "  text {text:?}")?,
                None => writeln!(story, "  {}", content["content"])?,
            },
        }
    }
    if let Some(terminal) = &tool.terminal {
        writeln!(story, "  printed {:?}", terminal.output)?;
        writeln!(story, "  exit {}", terminal.exit["exit_code"])?;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
