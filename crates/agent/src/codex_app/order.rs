//! Commands that users type with a slash. The server has no such thing: some are requests of its
//! own, some are prompts.

use serde_json::{Value, json};
use tieline_event::{AgentCommand, Content, Errand as Work, Failure, FailureCode, Prompt};

use super::errand::Errand;
use crate::codex::{SavedPrompt, review_target};

#[cfg(test)]
mod tests;

/// What `/init` says.
const INIT: &str = "\
Write a file AGENTS.md in the root of this repository: what somebody who begins to work here has to \
know. If there is one already, improve it and keep what is still true.

Look around first, at the manifests, the build and test setup, the documentation and a few typical \
sources, and write down only what you found. Cover, as far as it applies:

- what the project is, and how its directories divide the work;
- the exact commands to build it, to run it, to test it as a whole and one test alone, to format and \
to lint it;
- the conventions of its code and of its tests that one would not guess;
- how changes are described and handed in, as the history shows it;
- what to be careful about.

Keep it under a page and a half of plain Markdown, with no general advice that holds anywhere.";

/// Why nothing is taken back.
pub(super) const NO_UNDO: &str =
    "Codex's app server has no undo; ask the agent to take its changes back";

/// What a message asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Order {
    /// Nothing but to be said.
    Say,
    /// Something else to be said in its place.
    SayInstead(Prompt),
    /// A plan of this, in a turn that does nothing else.
    Plan(Prompt),
    /// Something the server does without its model.
    Run(Errand),
    /// To shorten the memory.
    Compact,
    /// A review of this.
    Review(Value),
}

/// Commands on offer.
pub(super) fn commands(prompts: &[SavedPrompt]) -> Vec<AgentCommand> {
    let command = |name: &str, description: &str, hint: Option<&str>| AgentCommand {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        hint: hint.map(str::to_owned),
    };
    let own = [
        command("compact", "Shorten the conversation's memory", None),
        command(
            "review",
            "Review the changes in the working tree",
            Some("what to look at, if not all changes"),
        ),
        command("review-branch", "Review what a branch adds to another", Some("the base branch")),
        command("review-commit", "Review one commit", Some("the commit")),
        command("init", "Write an AGENTS.md for this repository", None),
        command("plan", "Plan something without doing it", Some("what to plan")),
        command("rename", "Give the conversation a name", Some("the new name")),
        command(
            "goal",
            "Work until a goal is reached; alone, show it",
            Some("the goal, or clear to forget it"),
        ),
        command("mcp", "Show the MCP servers, their state and their tools", None),
        command("skills", "Show the skills and where they are", None),
        command("fast", "Answer faster, at a higher price", Some("on or off")),
    ];
    own.into_iter().chain(prompts.iter().map(SavedPrompt::command)).collect()
}

/// What a message asks for.
///
/// # Errors
/// When the command lacks something.
pub(super) fn order(prompt: &Prompt, prompts: &[SavedPrompt]) -> Result<Order, Failure> {
    if let Some(work) = &prompt.errand {
        return of_work(work);
    }
    let Some((name, rest)) = slash_command(prompt) else { return Ok(Order::Say) };
    let say = |text: &str| {
        let content = vec![Content::text(text)];
        Order::SayInstead(Prompt { content, ..prompt.clone() })
    };
    let needs = |what: &str| {
        Failure::new(FailureCode::BadRequest, format!("/{name} needs {what}"))
            .hint(format!("say /{name} and {what} after it"))
    };
    Ok(match (name, rest) {
        ("compact", _) => Order::Compact,
        ("review", "") => Order::Review(json!({"type": "uncommittedChanges"})),
        ("review", rest) => Order::Review(json!({"type": "custom", "instructions": rest})),
        ("review-branch", "") => return Err(needs("the base branch")),
        ("review-branch", branch) => Order::Review(json!({"type": "baseBranch", "branch": branch})),
        ("review-commit", "") => return Err(needs("the commit")),
        ("review-commit", sha) => Order::Review(json!({"type": "commit", "sha": sha})),
        ("plan", "") => return Err(needs("what to plan")),
        ("plan", rest) => {
            Order::Plan(Prompt { content: vec![Content::text(rest)], ..prompt.clone() })
        }
        ("rename", "") => return Err(needs("the new name")),
        ("rename", new) => Order::Run(Errand::Rename(new.to_owned())),
        ("goal", "") => Order::Run(Errand::Goal),
        ("goal", "clear") => Order::Run(Errand::ClearGoal),
        ("goal", goal) => Order::Run(Errand::SetGoal(goal.to_owned())),
        ("mcp", _) => Order::Run(Errand::Servers),
        ("skills", _) => Order::Run(Errand::Skills),
        ("fast", "on") => Order::Run(Errand::Fast(true)),
        ("fast", "off") => Order::Run(Errand::Fast(false)),
        ("fast", _) => return Err(needs("on or off")),
        ("init", "") => say(INIT),
        ("init", more) => say(&format!("{INIT}\n\n{more}")),
        (name, rest) => match SavedPrompt::find(prompts, name) {
            None => Order::Say,
            Some(saved) => match saved.expand(rest) {
                Ok(text) => say(&text),
                Err(missing) => {
                    let values: Vec<String> =
                        missing.iter().map(|name| format!("{name}=value")).collect();
                    return Err(needs(&values.join(" ")));
                }
            },
        },
    })
}

/// What work that is not a message is here.
fn of_work(work: &Work) -> Result<Order, Failure> {
    Ok(match work {
        Work::Compact => Order::Compact,
        Work::Review { target } => Order::Review(review_target(target)),
        Work::Rollback { turns } => Order::Run(Errand::Rollback(*turns)),
        Work::Shell { command } => Order::Run(Errand::Shell(command.clone())),
        Work::Undo => return Err(Failure::new(FailureCode::BadRequest, NO_UNDO)),
    })
}

/// A prompt that is nothing but `/name rest`.
fn slash_command(prompt: &Prompt) -> Option<(&str, &str)> {
    let [Content::Text { text }] = prompt.content.as_slice() else { return None };
    let line = text.preview().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((name, rest.trim()))
}
