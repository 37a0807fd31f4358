//! What an agent is told about its task, whatever agent it is.

use std::path::{Path, PathBuf};

use tieline_workspace::beneath::Links;
use tieline_workspace::{Content, Error, Tree, named};

use super::state::{Given, State};

/// The most that is read of a plan or a guideline.
const MOST: usize = 256 * 1024;

/// Guidelines of a project, by the names they have.
const GUIDELINES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"];

/// How to speak of a task.
const RULES: &str = "\
You work on a task for somebody who reads what you write through a program. Speak to it in markers: a \
line that begins with one, in capitals and square brackets, with nothing before it. Never write one \
inside a code block.

[PROGRESS] what you have just done or are doing, after each larger step.

[QUESTION] what you need to know, when the task leaves it open and the answer matters
Options:
1. First answer - what it means
2. Second answer - what it means
Why you ask, in a line or two; then a blank line. Go on with whatever does not depend on it. The \
answer comes with the next message.

[BLOCKED] what keeps you from doing anything more
What you need, in a line or two; then a blank line. Stop after it.

[FILES_MODIFIED]
- path/of/a/file (created)
- path/of/another (modified)
- path/of/a/third (deleted)
At the end, every file that you changed.

Do not say that the task is complete in a marker: that is decided when you stop, by what is on disk.";

/// What stands around a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Where the agent works.
    pub workspace: PathBuf,
    /// The root of the repository, if there is one.
    pub root: Option<PathBuf>,
    /// The plan.
    pub plan: Option<(PathBuf, String)>,
    /// Guidelines of the project.
    pub guidelines: Vec<(PathBuf, String)>,
    /// Guidelines that were not read, and why.
    pub left_out: Vec<(PathBuf, String)>,
}

impl Surroundings {
    /// Looks around.
    ///
    /// # Errors
    /// A sentence, when the plan cannot be read.
    pub fn look(workspace: &Path, plan: Option<&Path>) -> Result<Self, String> {
        let root = workspace.ancestors().find(|it| it.join(".git").exists()).map(Path::to_owned);
        let read_plan = |path: &Path| {
            // The user named it, so links lead where they lead.
            let content = named(path).and_then(|file| Content::of(&file, MOST));
            let content =
                content.map_err(|err| format!("cannot read {}: {err}", path.display()))?;
            Ok::<_, String>((path.to_owned(), text(&content)))
        };
        let plan = plan.map(read_plan).transpose()?;
        let mut places = vec![workspace.to_owned()];
        places.extend(root.clone().filter(|root| root != workspace));
        let (guidelines, left_out) = (Vec::new(), Vec::new());
        let mut around = Self { workspace: workspace.to_owned(), root, plan, guidelines, left_out };
        for place in places {
            around.read_guidelines(&place);
        }
        Ok(around)
    }

    /// They are somebody else's files: a link may lead to our environment, and a pipe to nothing.
    fn read_guidelines(&mut self, place: &Path) {
        let Ok(tree) = Tree::open(place) else { return };
        for name in GUIDELINES {
            let path = place.join(name);
            match tree.read(Path::new(name), Links::Inside, MOST) {
                Ok(content) => {
                    let text = text(&content);
                    // The same text under two names is one.
                    if !self.guidelines.iter().any(|(_, known)| *known == text) {
                        self.guidelines.push((path, text));
                    }
                }
                Err(err) if err.is_missing() => {}
                Err(Error::LeadsOut) => {
                    let why = "it is a link that leads elsewhere".to_owned();
                    self.left_out.push((path, why));
                }
                Err(err) => self.left_out.push((path, err.to_string())),
            }
        }
    }

    /// Everything the agent should know of them.
    fn text(&self) -> String {
        let mut text = format!("Directory: {}\n", self.workspace.display());
        if let Some(root) = &self.root {
            text.push_str(&format!("Repository: {}\n", root.display()));
        }
        for (path, guideline) in &self.guidelines {
            text.push_str(&format!("\nGuidelines, from {}:\n", path.display()));
            text.push_str(&fenced(guideline));
        }
        for (path, why) in &self.left_out {
            text.push_str(&format!("\nGuidelines that are not shown: {}: {why}\n", path.display()));
        }
        if let Some((path, plan)) = &self.plan {
            text.push_str(&format!("\nThe plan, from {}:\n", path.display()));
            text.push_str(&fenced(plan));
        }
        text
    }
}

/// The next thing to say to the agent. It is told anew what changed around it.
pub fn next(id: &str, state: &mut State, around: &Surroundings) -> String {
    let surroundings = around.text();
    let is_first = state.told.is_none();
    let mut text = String::new();
    if is_first {
        text.push_str(&format!("{RULES}\n\n{surroundings}\nTask {id}: {}\n", state.description));
    } else if state.told.as_deref() != Some(&surroundings) {
        text.push_str(&format!("Plan or guidelines have changed since. Now:\n{surroundings}\n"));
    }
    state.told = Some(surroundings);
    for Given { question, answer } in std::mem::take(&mut state.given) {
        text.push_str(&format!("You asked: {question}\nThe answer: {answer}\n\n"));
    }
    if let Some(failure) = state.failed_check.take() {
        text.push_str(&format!("The work does not pass its verification yet.\n{failure}\n"));
    }
    let block = state.blocked.take();
    if !is_first {
        let block = block.map(|it| format!(" What blocked you ({it}) may be gone."));
        let block = block.unwrap_or_default();
        text.push_str(&format!("Go on with task {id}: {}{block}", state.description));
    }
    text
}

/// A text between fences that it cannot end itself.
fn fenced(text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| line.trim_start().len() - line.trim_start().trim_start_matches('`').len());
    let fence = "`".repeat(longest.max().unwrap_or(0).max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

fn text(content: &Content) -> String {
    match content.is_cut {
        true => format!("{}\n(cut: only the first {MOST} bytes are shown)", content.text()),
        false => content.text(),
    }
}

#[cfg(test)]
mod tests;
