//! Reviews: what the reviewer is told, and what is made of its findings.

use serde::Deserialize;
use serde_json::{Value, json};
use tieline_event::ReviewTarget;
use tieline_wire::sqeq::{CodeLocation, Finding, LineRange, ReviewOutput};

#[cfg(test)]
mod tests;

/// What a reviewer is told before everything else.
pub const RUBRIC: &str = r#"You review a change that somebody else made. You look, and change nothing.

Report what the author would want to know and fix:
- It is a real fault in this change: wrong results, crashes, lost data, races, holes in security, a broken \
interface, a clear loss of speed. Not taste, not what was there before.
- You can name the input or the situation in which it shows, and you have checked the code around it.
- One finding for each fault, at the place where the change goes wrong, in as few lines as possible.
No finding is a fine outcome.

Answer with JSON alone, in this form:
{
  "findings": [
    {
      "title": "[P1] what is wrong, at most 80 characters",
      "body": "why it is wrong and when it shows, in a paragraph",
      "confidence_score": 0.0 to 1.0,
      "priority": 0 (stop everything) to 3 (nice to have),
      "code_location": {"absolute_file_path": "/path", "line_range": {"start": 1, "end": 2}}
    }
  ],
  "overall_correctness": "patch is correct" or "patch is incorrect",
  "overall_explanation": "one to three sentences",
  "overall_confidence_score": 0.0 to 1.0
}"#;

/// What a reviewer is asked.
pub fn prompt(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::Uncommitted => {
            "Review what is not committed in this repository: staged, unstaged and untracked files. Begin \
             with `git status` and `git diff HEAD`."
                .to_owned()
        }
        ReviewTarget::Branch { branch } => format!(
            "Review what is new on this branch beside {branch}. Find where they parted with `git \
             merge-base HEAD {branch}` (or its upstream) and look at the diff from there."
        ),
        ReviewTarget::Commit { sha, title: Some(title) } => {
            format!("Review the commit {sha} ({title}). Begin with `git show {sha}`.")
        }
        ReviewTarget::Commit { sha, title: None } => {
            format!("Review the commit {sha}. Begin with `git show {sha}`.")
        }
        ReviewTarget::Custom { instructions } => instructions.clone(),
    }
}

/// A review in a few words.
pub fn hint(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::Uncommitted => "current changes".to_owned(),
        ReviewTarget::Branch { branch } => format!("changes against {branch}"),
        ReviewTarget::Commit { sha, title } => {
            let short: String = sha.chars().take(7).collect();
            match title {
                Some(title) => format!("commit {short}: {title}"),
                None => format!("commit {short}"),
            }
        }
        ReviewTarget::Custom { instructions } => {
            instructions.lines().next().unwrap_or_default().chars().take(80).collect()
        }
    }
}

/// A target in the words of the queue protocol.
pub fn wire_target(target: &ReviewTarget) -> Value {
    match target {
        ReviewTarget::Uncommitted => json!({"type": "uncommittedChanges"}),
        ReviewTarget::Branch { branch } => json!({"type": "baseBranch", "branch": branch}),
        ReviewTarget::Commit { sha, title } => {
            json!({"type": "commit", "sha": sha, "title": title})
        }
        ReviewTarget::Custom { instructions } => {
            json!({"type": "custom", "instructions": instructions})
        }
    }
}

/// What a reviewer found: its answer as JSON, else the JSON in it, else its words.
pub fn parse(answer: &str) -> ReviewOutput<'static> {
    let inner = || {
        let (from, to) = (answer.find('{')?, answer.rfind('}')?);
        answer.get(from..=to)
    };
    let read = |text: &str| serde_json::from_str::<Read>(text).ok();
    match read(answer.trim()).or_else(|| read(inner()?)) {
        Some(read) => read.into(),
        None => ReviewOutput {
            overall_explanation: answer.trim().to_owned().into(),
            ..ReviewOutput::default()
        },
    }
}

/// For a person.
pub fn render(review: &ReviewOutput<'_>) -> String {
    let mut text = review.overall_explanation.trim().to_owned();
    if !review.findings.is_empty() {
        let head = match review.findings.len() {
            1 => "Review comment:",
            _ => "Full review comments:",
        };
        text.push_str(&format!("\n\n{head}\n"));
    }
    for finding in &review.findings {
        let CodeLocation { absolute_file_path, line_range } = &finding.code_location;
        let LineRange { start, end } = line_range;
        text.push_str(&format!("\n- {} — {absolute_file_path}:{start}-{end}\n", finding.title));
        for line in finding.body.lines() {
            text.push_str(&format!("  {line}\n"));
        }
    }
    match text.trim() {
        "" => "The reviewer gave no answer.".to_owned(),
        text => text.to_owned(),
    }
}

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    findings: Vec<ReadFinding>,
    #[serde(default)]
    overall_correctness: String,
    #[serde(default)]
    overall_explanation: String,
    #[serde(default)]
    overall_confidence_score: f64,
}

#[derive(Deserialize)]
struct ReadFinding {
    title: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    confidence_score: f64,
    #[serde(default)]
    priority: Option<i64>,
    #[serde(default)]
    code_location: Place,
}

#[derive(Default, Deserialize)]
struct Place {
    #[serde(default)]
    absolute_file_path: String,
    #[serde(default)]
    line_range: LineRange,
}

impl From<Read> for ReviewOutput<'static> {
    fn from(read: Read) -> Self {
        let finding = |it: ReadFinding| Finding {
            title: it.title.into(),
            body: it.body.into(),
            confidence_score: it.confidence_score,
            priority: it.priority.unwrap_or(3),
            code_location: CodeLocation {
                absolute_file_path: it.code_location.absolute_file_path.into(),
                line_range: it.code_location.line_range,
            },
        };
        Self {
            findings: read.findings.into_iter().map(finding).collect(),
            overall_correctness: read.overall_correctness.into(),
            overall_explanation: read.overall_explanation.into(),
            overall_confidence_score: read.overall_confidence_score,
        }
    }
}
