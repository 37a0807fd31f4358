//! Prompts that users keep as files: `$CODEX_HOME/prompts/NAME.md`, and those of an agent of our
//! own, which are written the same way.
//!
//! They are a thing of Codex's own screen, and its servers never expanded them, so this does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use tieline_event::AgentCommand;

use crate::words::first_line;

#[cfg(test)]
mod tests;

/// At most so many are read.
const MOST: usize = 256;

/// A file over this size is no prompt.
const LARGEST: u64 = 256 * 1024;

/// What their commands begin with.
const PREFIX: &str = "prompts:";

/// A prompt with places to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPrompt {
    name: String,
    path: String,
    description: Option<String>,
    hint: Option<String>,
    text: String,
}

impl SavedPrompt {
    /// Reads those of a directory, by name. It blocks.
    pub fn read_all(directory: &Path) -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        paths.sort();
        if paths.len() > MOST {
            tracing::warn!(n = paths.len(), "only the first {MOST} prompts are read");
        }
        paths.truncate(MOST);
        paths.iter().filter_map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Option<Self> {
        let name = path.file_stem()?.to_str()?.to_owned();
        let read = || {
            let file = File::open(path)?;
            // A pipe or a device could be read for ever.
            if !file.metadata()?.is_file() {
                return Err(std::io::Error::other("not a file"));
            }
            let mut text = String::new();
            file.take(LARGEST + 1).read_to_string(&mut text)?;
            match text.len() as u64 > LARGEST {
                true => Err(std::io::Error::other("too large")),
                false => Ok(text),
            }
        };
        let text = read().inspect_err(|err| tracing::warn!(name, %err, "a prompt is left out"));
        Some(Self { path: path.display().to_string(), ..Self::parse(name, &text.ok()?) })
    }

    fn parse(name: String, text: &str) -> Self {
        let (path, text_of) = (String::new(), text.to_owned());
        let mut prompt = Self { name, path, description: None, hint: None, text: text_of };
        let Some((matter, body)) = split_front_matter(text) else { return prompt };
        body.clone_into(&mut prompt.text);
        for (key, value) in matter.lines().filter_map(|line| line.split_once(':')) {
            let value = first_line(unquoted(value.trim()));
            let value = (!value.is_empty()).then_some(value);
            match key.trim() {
                "description" => prompt.description = value,
                "argument-hint" | "argument_hint" => prompt.hint = value,
                _ => {}
            }
        }
        prompt
    }

    /// What is told of it where prompts are listed.
    pub fn info(&self) -> tieline_event::SavedPrompt {
        tieline_event::SavedPrompt {
            name: self.name.clone(),
            path: self.path.clone(),
            content: self.text.clone(),
            description: self.description.clone(),
            argument_hint: self.hint.clone(),
        }
    }

    /// The command it is offered as.
    pub fn command(&self) -> AgentCommand {
        AgentCommand {
            name: format!("{PREFIX}{}", self.name),
            description: self.description.clone().or_else(|| Some("A saved prompt".to_owned())),
            hint: self.hint.clone(),
        }
    }

    /// The one that a command names.
    pub fn find<'a>(prompts: &'a [Self], command: &str) -> Option<&'a Self> {
        let name = command.strip_prefix(PREFIX)?;
        prompts.iter().find(|prompt| prompt.name == name)
    }

    /// The text with its places filled in: `$1` to `$9`, `$ARGUMENTS`, and `$NAME` where the
    /// arguments have `NAME=value`. `$$` is one `$`.
    ///
    /// # Errors
    /// The names that the arguments lack.
    pub fn expand(&self, arguments: &str) -> Result<String, Vec<String>> {
        let words = shlex::split(arguments)
            .unwrap_or_else(|| arguments.split_whitespace().map(str::to_owned).collect());
        let named: BTreeMap<&str, &str> =
            words.iter().filter_map(|word| word.split_once('=')).collect();
        let mut missing = Vec::new();
        let mut expanded = String::new();
        let mut rest = self.text.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            rest = after;
            if let Some(after) = rest.strip_prefix('$') {
                expanded.push('$');
                rest = after;
            } else if let Some(number) = rest.chars().next().and_then(|c| c.to_digit(10))
                && number > 0
            {
                let word = words.get(number as usize - 1);
                expanded.push_str(word.map(String::as_str).unwrap_or_default());
                rest = rest.get(1..).unwrap_or_default();
            } else {
                let (name, after) = split_name(rest);
                match name {
                    "" => expanded.push('$'),
                    "ARGUMENTS" => expanded.push_str(arguments),
                    name => match named.get(name) {
                        Some(value) => expanded.push_str(value),
                        None => missing.push(name.to_owned()),
                    },
                }
                rest = after;
            }
        }
        expanded.push_str(rest);
        missing.sort();
        missing.dedup();
        if missing.is_empty() { Ok(expanded) } else { Err(missing) }
    }
}

/// What stands between the first two lines of dashes, and what follows.
fn split_front_matter(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"))?;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return text.get(..end).zip(text.get(end + line.len()..));
        }
        end += line.len();
    }
    None
}

fn unquoted(value: &str) -> &str {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

/// A name in capitals at the start of a text, and what follows it.
fn split_name(text: &str) -> (&str, &str) {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if !text.starts_with(|c: char| c.is_ascii_uppercase()) {
        return ("", text);
    }
    text.split_at_checked(text.find(|c| !is_name(c)).unwrap_or(text.len())).unwrap_or(("", text))
}
