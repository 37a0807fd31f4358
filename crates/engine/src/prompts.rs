//! Prompts that the user keeps as files in our configuration: `prompts/NAME.md`, called as
//! `/prompts:NAME arguments`.
//!
//! How they are read and filled in is what [`SavedPrompt`] does for Codex's.

use std::path::Path;

use tieline_agent::codex::SavedPrompt;

#[cfg(test)]
mod tests;

/// Reads the prompts below the directory of our configuration. It blocks.
pub fn read_all(config: &Path) -> Vec<SavedPrompt> {
    SavedPrompt::read_all(&config.join("prompts"))
}

/// The prompts as they are listed.
pub fn listed(prompts: &[SavedPrompt]) -> Vec<tieline_event::SavedPrompt> {
    prompts.iter().map(SavedPrompt::info).collect()
}

/// What a message means that calls a prompt; nothing when it calls none that is known.
///
/// # Errors
/// What the call lacks, in words.
pub fn expand(prompts: &[SavedPrompt], message: &str) -> Option<Result<String, String>> {
    let call = message.trim().strip_prefix('/')?;
    let (name, arguments) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
    let prompt = SavedPrompt::find(prompts, name)?;
    Some(prompt.expand(arguments.trim()).map_err(|missing| {
        let values: Vec<String> = missing.iter().map(|name| format!("{name}=value")).collect();
        format!("/{name} needs {} after it", values.join(" "))
    }))
}
