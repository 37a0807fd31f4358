//! How a turn ended, in words.

use tieline_event::{Failure, TurnCompleted, TurnStatus};

use crate::sanitize::{one_line, sanitize};
use crate::summary;

/// How many lines of the agent's own words on a failure are shown.
const DETAIL_LINES: usize = 8;

/// How a turn ended, on one line, and what can be done about a failure on the next ones.
pub fn ending(end: &TurnCompleted) -> Vec<String> {
    let mut facts = vec![match end.status {
        TurnStatus::Completed => "completed".to_owned(),
        TurnStatus::Interrupted => "interrupted".to_owned(),
        TurnStatus::Failed => "failed".to_owned(),
    }];
    if let Some(millis) = end.duration_ms {
        facts.push(format!("in {}", summary::duration(millis)));
    }
    let mut line = format!("— {}", facts.join(" "));
    if let Some(usage) = end.usage.as_ref().and_then(summary::usage) {
        line.push_str(&format!(" · {usage}"));
    }
    if end.open_tasks > 0 {
        line.push_str(&format!(" · {} tasks go on", end.open_tasks));
    }
    let mut lines = vec![line];
    if let Some(failure) = &end.error {
        lines.extend(failure_lines(failure));
    }
    lines
}

/// A failure and what can be done about it.
fn failure_lines(failure: &Failure) -> Vec<String> {
    let mut lines = vec![one_line(&failure.message)];
    if let Some(hint) = &failure.hint {
        lines.push(one_line(hint));
    }
    if let Some(detail) = &failure.detail {
        let detail = sanitize(detail);
        let tail: Vec<&str> = detail.trim_end().lines().rev().take(DETAIL_LINES).collect();
        lines.extend(tail.into_iter().rev().map(|line| format!("  {line}")));
    }
    lines
}
