//! Reviews: what the reviewer is told, and what is made of its last message.

use std::fmt::Write;

use serde::Deserialize;
use tieline_event::ReviewTarget;
use tieline_wire::sqeq::{CodeLocation, Finding, LineRange, ReviewOutput};
use tieline_wire::text::Str;

#[cfg(test)]
mod tests;

/// What a reviewer is told in place of the usual instructions.
pub const RUBRIC: &str = include_str!("review/rubric.md");

/// What a review is about, in the words of the task. `merge_base` is where the branch and the
/// current state part, where that is known.
pub fn prompt(target: &ReviewTarget, merge_base: Option<&str>) -> String {
    match target {
        ReviewTarget::Uncommitted => "Review what is not committed yet: staged, unstaged and \
             untracked files. Report findings in order of priority."
            .to_owned(),
        ReviewTarget::Branch { branch } => match merge_base {
            Some(base) => format!(
                "Review what is new here against the branch '{branch}'. The two part at commit \
                 {base}; `git diff {base}` shows what would be merged. Report findings in order \
                 of priority."
            ),
            None => format!(
                "Review what is new here against the branch '{branch}'. Find where the two part \
                 first (`git merge-base HEAD` with the branch, or with its upstream if that is \
                 ahead), then look at `git diff` from there. Report findings in order of priority."
            ),
        },
        ReviewTarget::Commit { sha, title } => {
            let title = title.as_ref().map(|title| format!(" (\"{title}\")")).unwrap_or_default();
            format!(
                "Review what commit {sha}{title} changes. Report findings in order of priority."
            )
        }
        ReviewTarget::Custom { instructions } => instructions.trim().to_owned(),
    }
}

/// What a review is about in a few words, for people.
pub fn hint(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::Uncommitted => "current changes".to_owned(),
        ReviewTarget::Branch { branch } => format!("changes against '{branch}'"),
        ReviewTarget::Commit { sha, title } => {
            let short: String = sha.chars().take(7).collect();
            match title {
                Some(title) => format!("commit {short}: {title}"),
                None => format!("commit {short}"),
            }
        }
        ReviewTarget::Custom { instructions } => instructions.trim().to_owned(),
    }
}

/// What a client of the queue protocol writes for a target.
#[derive(serde::Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Target {
    #[serde(alias = "uncommitted_changes")]
    UncommittedChanges,
    #[serde(alias = "base_branch")]
    BaseBranch {
        branch: String,
    },
    Commit {
        sha: String,
        title: Option<String>,
    },
    Custom {
        instructions: String,
    },
}

/// Reads what a client of the queue protocol wants reviewed.
///
/// # Errors
/// In words, what is wrong with it.
pub fn read_target(json: &str) -> Result<ReviewTarget, String> {
    let target: Target = serde_json::from_str(json).map_err(|err| err.to_string())?;
    let named = |what: &str, value: &str| match value.trim() {
        "" => Err(format!("a review needs {what}")),
        value => Ok(value.to_owned()),
    };
    Ok(match target {
        Target::UncommittedChanges => ReviewTarget::Uncommitted,
        Target::BaseBranch { branch } => {
            ReviewTarget::Branch { branch: named("the name of a branch", &branch)? }
        }
        Target::Commit { sha, title } => {
            ReviewTarget::Commit { sha: named("the hash of a commit", &sha)?, title }
        }
        Target::Custom { instructions } => {
            ReviewTarget::Custom { instructions: named("instructions", &instructions)? }
        }
    })
}

/// The same as JSON, for the event that tells of it.
pub fn write_target(target: &ReviewTarget) -> serde_json::Value {
    let target = match target.clone() {
        ReviewTarget::Uncommitted => Target::UncommittedChanges,
        ReviewTarget::Branch { branch } => Target::BaseBranch { branch },
        ReviewTarget::Commit { sha, title } => Target::Commit { sha, title },
        ReviewTarget::Custom { instructions } => Target::Custom { instructions },
    };
    serde_json::to_value(target).unwrap_or_default()
}

/// What a model may write. Whatever is missing or of another kind is left out rather than taken for
/// a reason to lose the rest.
#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    findings: Option<Vec<WrittenFinding>>,
    overall_correctness: Option<String>,
    overall_explanation: Option<String>,
    overall_confidence_score: Option<f64>,
}

#[derive(Deserialize)]
struct WrittenFinding {
    title: Option<String>,
    body: Option<String>,
    confidence_score: Option<f64>,
    priority: Option<i64>,
    code_location: Option<WrittenLocation>,
}

#[derive(Deserialize)]
struct WrittenLocation {
    #[serde(alias = "file_path", alias = "path")]
    absolute_file_path: Option<String>,
    line_range: Option<LineRange>,
}

/// What a reviewer's last message says: JSON as a whole, or what is between its first and last
/// brace, or else plain words.
pub fn parse(message: &str) -> ReviewOutput<'static> {
    let braces = || {
        let (_, rest) = message.split_at_checked(message.find('{')?)?;
        rest.split_at_checked(rest.rfind('}')? + 1).map(|(json, _)| json)
    };
    read(message).or_else(|| read(braces()?)).unwrap_or_else(|| ReviewOutput {
        overall_explanation: Str::Owned(message.trim().to_owned()),
        ..ReviewOutput::default()
    })
}

fn read(json: &str) -> Option<ReviewOutput<'static>> {
    let written: Written = serde_json::from_str(json).ok()?;
    // An object about something else is no review.
    if written.findings.is_none() && written.overall_explanation.is_none() {
        return None;
    }
    let text = |text: Option<String>| Str::Owned(text.unwrap_or_default());
    let findings = written.findings.unwrap_or_default().into_iter().map(|finding| {
        let place = finding.code_location;
        let (path, range) =
            place.map(|place| (place.absolute_file_path, place.line_range)).unwrap_or_default();
        Finding {
            title: text(finding.title),
            body: text(finding.body),
            confidence_score: finding.confidence_score.unwrap_or_default(),
            // The tag in the title says the same.
            priority: finding.priority.unwrap_or(2),
            code_location: CodeLocation {
                absolute_file_path: text(path),
                line_range: range.unwrap_or_default(),
            },
        }
    });
    Some(ReviewOutput {
        findings: findings.collect(),
        overall_correctness: text(written.overall_correctness),
        overall_explanation: text(written.overall_explanation),
        overall_confidence_score: written.overall_confidence_score.unwrap_or_default(),
    })
}

/// What came of a review, as text for people.
pub fn render(output: &ReviewOutput<'_>) -> String {
    let explanation = output.overall_explanation.trim();
    let mut text = explanation.to_owned();
    if !output.findings.is_empty() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let many = output.findings.len() > 1;
        text.push_str(if many { "Full review comments:\n" } else { "Review comment:\n" });
        for finding in &output.findings {
            text.push('\n');
            render_finding(&mut text, finding);
        }
    }
    if text.is_empty() { "The review said nothing.".to_owned() } else { text }
}

fn render_finding(text: &mut String, finding: &Finding<'_>) {
    let title = finding.title.trim();
    let tag = match title.starts_with("[P") {
        true => String::new(),
        false => format!("[P{}] ", finding.priority),
    };
    let place = &finding.code_location;
    let LineRange { start, end } = place.line_range;
    // Writing to a `String` cannot fail.
    let written = match (place.absolute_file_path.is_empty(), start) {
        (true, _) => writeln!(text, "- {tag}{title}"),
        (false, 0) => writeln!(text, "- {tag}{title} — {}", &*place.absolute_file_path),
        (false, _) => writeln!(
            text,
            "- {tag}{title} — {}:{start}-{}",
            &*place.absolute_file_path,
            end.max(start)
        ),
    };
    debug_assert!(written.is_ok());
    for line in finding.body.trim().lines() {
        let written = writeln!(text, "  {line}");
        debug_assert!(written.is_ok());
    }
}

/// What the history of the conversation gets of a review, so that the model knows of it.
pub fn user_action(target: &ReviewTarget, rendered: Option<&str>) -> String {
    let result = match rendered {
        Some(rendered) => format!(
            "The user had a review of {} made. If they ask for it, act on it.\n{rendered}",
            hint(target)
        ),
        None => format!("The user began a review of {} and stopped it.", hint(target)),
    };
    format!("<user_action>\n{}\n</user_action>", result.trim_end())
}
