//! Commands that users type with a slash, for our engine: work of its own, saved prompts and skills. The
//! engine fills saved prompts in itself.

use tieline_event::{AgentCommand, Content, Errand, Prompt, ReviewTarget};

/// The work on offer.
pub(super) fn own() -> impl Iterator<Item = AgentCommand> {
    let all: [(&str, &str, Option<&str>); 5] = [
        ("compact", "Shorten the conversation's memory", None),
        (
            "review",
            "Review the changes in the working tree",
            Some("what to look at, if not all changes"),
        ),
        ("review-branch", "Review what this branch adds to another", Some("the base branch")),
        ("review-commit", "Review one commit", Some("the commit")),
        ("undo", "Take back the file changes of the last turn that made some", None),
    ];
    all.into_iter().map(|(name, description, hint)| AgentCommand {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        hint: hint.map(str::to_owned),
    })
}

/// The work that a message asks for, if it is nothing but such a command.
///
/// # Errors
/// What the command lacks, in words.
pub(super) fn errand(prompt: &Prompt) -> Result<Option<Errand>, String> {
    let Some((name, rest)) = slash_command(prompt) else { return Ok(None) };
    let text = || rest.to_owned();
    let target = match (name, rest) {
        ("compact", "") => return Ok(Some(Errand::Compact)),
        ("undo", "") => return Ok(Some(Errand::Undo)),
        ("review", "") => ReviewTarget::Uncommitted,
        ("review", _) => ReviewTarget::Custom { instructions: text() },
        ("review-branch", "") => return Err("/review-branch needs the base branch after it".into()),
        ("review-branch", _) => ReviewTarget::Branch { branch: text() },
        ("review-commit", "") => return Err("/review-commit needs the commit after it".into()),
        ("review-commit", _) => ReviewTarget::Commit { sha: text(), title: None },
        _ => return Ok(None),
    };
    Ok(Some(Errand::Review { target }))
}

/// A prompt that is nothing but `/name rest`.
fn slash_command(prompt: &Prompt) -> Option<(&str, &str)> {
    let [Content::Text { text }] = prompt.content.as_slice() else { return None };
    let line = text.preview().trim().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((name, rest.trim()))
}
