//! Prompts that the user keeps as files: `prompts/NAME.md` beside our configuration.

use std::path::Path;

use tieline_agent::codex;
use tieline_event::SavedPrompt;

/// Those of a directory, by name. It blocks.
pub fn list(dir: &Path) -> Vec<SavedPrompt> {
    let saved = |it: codex::SavedPrompt| SavedPrompt {
        path: dir.join(format!("{}.md", it.name)).display().to_string(),
        name: it.name,
        content: it.text,
        description: it.description,
        argument_hint: it.hint,
    };
    codex::SavedPrompt::read_all(dir).into_iter().map(saved).collect()
}

/// What a message means that calls one, `/prompts:NAME …`; none when it calls none. It blocks.
///
/// # Errors
/// In words, when it calls one that is not there or lacks what that needs.
pub fn expand(dir: &Path, message: &str) -> Option<Result<String, String>> {
    let command = message.strip_prefix('/')?;
    let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    name.strip_prefix("prompts:")?;
    let all = codex::SavedPrompt::read_all(dir);
    let Some(prompt) = codex::SavedPrompt::find(&all, name) else {
        return Some(Err(format!("there is no saved prompt {name:?}; the message goes as it is")));
    };
    Some(prompt.expand(arguments.trim()).map_err(|missing| {
        format!("/{name} needs {}; write NAME=value after it", missing.join(", "))
    }))
}
