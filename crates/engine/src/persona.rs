//! What our agent is told about itself: who it is, how it works, what it may do, where it is.
//!
//! The texts are files beside this one. Here they are put together.

use std::fmt::Write;
use std::path::Path;

use tieline_event::AskWhen;
use tieline_wire::sqeq::Personality;

use crate::command::{Ask, Sandbox, Terms};

#[cfg(test)]
mod tests;

const BASE: &str = include_str!("persona/base.md");

/// The form of a patch, as it is told to a model.
pub const PATCH_FORM: &str = include_str!("persona/patch.md");

/// What a model is told that plans.
pub const PLAN_MODE: &str = include_str!("persona/plan.md");

/// What a model is told that planned and now works.
pub const DEFAULT_MODE: &str = include_str!("persona/default_mode.md");

/// What a model is told that is to sum a conversation up.
pub const COMPACT: &str = include_str!("persona/compact.md");

/// What stands before such a summary where it takes the conversation's place.
pub const SUMMARY_PREFIX: &str = "Another model began this task and left the note below when the \
     conversation became too long. Its work is done and its files are as it left them: build on \
     it, and do not do it again.";

/// The message that takes the place of a conversation.
pub fn summary_message(summary: &str) -> String {
    format!("{SUMMARY_PREFIX}\n{}", summary.trim())
}

/// What the model is told about itself, in the tone the user wants.
pub fn instructions(personality: &Personality) -> String {
    let text = BASE.replace("{{ patch }}", PATCH_FORM.trim_end());
    match tone(personality) {
        "" => text.replace("{{ personality }}\n\n", ""),
        tone => text.replace("{{ personality }}", tone.trim_end()),
    }
}

/// A message for a conversation in which the tone changes.
pub fn personality_message(personality: &Personality) -> String {
    let tone = match tone(personality).trim_end() {
        "" => "No particular one: write plainly.",
        tone => tone,
    };
    format!(
        "<personality_spec>\nFrom now on the user wants another tone in what you write:\n{tone}\n\
         </personality_spec>"
    )
}

/// Whether there is such a personality.
pub fn is_known(personality: &str) -> bool {
    !matches!(Personality::from(personality), Personality::Other(_))
}

/// A tone nobody knows is none.
fn tone(personality: &Personality) -> &'static str {
    match personality {
        Personality::Friendly => include_str!("persona/friendly.md"),
        Personality::Pragmatic => include_str!("persona/pragmatic.md"),
        Personality::None | Personality::Other(_) => "",
    }
}

/// What the model may do, in words that follow from the terms. `roots` are the directories that may
/// be written.
pub fn permissions(terms: &Terms, roots: &[&Path]) -> String {
    let mut text = String::from("<permissions instructions>\n");
    text.push_str(match terms.sandbox {
        Sandbox::ReadOnly => {
            "Commands run in a sandbox where they can read everything and write nothing."
        }
        Sandbox::WorkspaceWrite => {
            "Commands run in a sandbox where they can read everything and write only in the \
             directories below. `.git` and the folders of agents' settings in them stay read-only."
        }
        Sandbox::None => "Commands run without a sandbox and can reach everything the user can.",
        Sandbox::External => {
            "Commands run in a sandbox that is not ours: what fails for lack of permission is \
             meant to."
        }
    });
    if terms.sandbox.is_ours() {
        text.push_str(match terms.network {
            true => " They have a network.",
            false => " They have no network.",
        });
    }
    text.push('\n');
    if terms.sandbox == Sandbox::WorkspaceWrite {
        for root in roots {
            // Writing to a `String` cannot fail.
            let written = writeln!(text, "- {}", root.display());
            debug_assert!(written.is_ok());
        }
    }
    text.push_str(asking(terms));
    text.push_str("\n</permissions instructions>");
    text
}

fn asking(terms: &Terms) -> &'static str {
    const ESCALATE: &str = "When a command needs more than the sandbox gives, such as a network, \
         a write elsewhere or a window, call it with `sandbox_permissions` set to \
         `require_escalated` and a `justification` that puts the question to the user in one \
         sentence; a `prefix_rule` may name the beginning of commands like it that could be \
         allowed from then on. Do so at once when a command that matters failed because of the \
         sandbox; do not ask in a message first. Before something destructive that was not asked \
         for, do the same. Whatever can be done within the sandbox, do there.";
    if terms.plan {
        return "Nobody is asked for more, because nothing is to be changed while planning.";
    }
    match terms.ask {
        Ask::When(AskWhen::Never) => {
            "Nobody is asked for more: a command that needs more than this fails. Find another \
             way, check your work as far as you can, and say what you could not do. Do not set \
             `sandbox_permissions`."
        }
        Ask::When(AskWhen::Untrusted) => {
            "The user is asked before every change of a file and before every command that is not \
             known to only read, so keep commands simple: plain words, no redirects, one thing at \
             a time. When the user says no, do not try the same in another way; say what you would \
             have done, or ask."
        }
        Ask::When(AskWhen::OnFailure) => {
            "When a command fails because of the sandbox, the user is asked whether it may run \
             again without. You need not ask for it."
        }
        Ask::When(AskWhen::OnRequest) => ESCALATE,
        Ask::Granular(sorts) if sorts.sandbox_approval => ESCALATE,
        Ask::Granular(_) => {
            "Nobody is asked whether a command may leave the sandbox: one that needs more fails. \
             Do not set `sandbox_permissions`."
        }
    }
}

/// Where the model is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The working directory.
    pub cwd: String,
    /// The shell that runs commands.
    pub shell: Option<String>,
    /// The day, where somebody knows it.
    pub date: Option<String>,
}

impl Environment {
    /// As the model sees it.
    pub fn message(&self) -> String {
        let line = |tag: &str, value: &str| format!("  <{tag}>{}</{tag}>\n", escaped(value));
        let shell = self.shell.iter().map(|shell| line("shell", shell));
        let date = self.date.iter().map(|date| line("current_date", date));
        let lines: String =
            std::iter::once(line("cwd", &self.cwd)).chain(shell).chain(date).collect();
        format!("<environment_context>\n{lines}</environment_context>")
    }

    /// As the model sees what changed since; nothing when nothing did.
    pub fn change_since(&self, before: &Self) -> Option<String> {
        (self != before).then(|| self.message())
    }
}

/// A directory can be named like anything, and its name must not end the block.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
