//! What changed, as a unified diff.

#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::ops::Range;

use similar::{Algorithm, DiffOp};

/// Lines that became others, both counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// A run is looked at line by line up to this product of its sides; a longer one is shown as gone
/// and come, which is true as well and costs nothing.
const MOST_CELLS: usize = 1 << 22;

impl Run {
    /// Adds lines behind those that are there already; neighbours are joined.
    pub(crate) fn push(runs: &mut Vec<Self>, old: Range<usize>, new: Range<usize>) {
        match runs.last_mut() {
            Some(last) if last.old.end >= old.start && last.new.end >= new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => runs.push(Self { old, new }),
        }
    }

    /// The whole of both contents.
    pub(crate) fn whole(old: &str, new: &str) -> Vec<Self> {
        let count = |text: &str| text.split_inclusive('\n').count();
        vec![Self { old: 0..count(old), new: 0..count(new) }]
    }
}

/// The hunks of a unified diff, without the two lines that name the files. Empty when nothing
/// changed.
pub(crate) fn unified(old: &str, new: &str, runs: &[Run], n_context: usize) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut fine = Vec::new();
    runs.iter().for_each(|run| refine(&old, &new, run, &mut fine));
    let mut text = String::new();
    let mut rest = fine.as_slice();
    while let Some(first) = rest.first() {
        // Changes with no more than their context between them are one hunk.
        let is_far = |pair: &[Run]| match pair {
            [left, right] => right.old.start > left.old.end + 2 * n_context,
            _ => false,
        };
        let n_near = rest.windows(2).position(is_far).map_or(rest.len(), |index| index + 1);
        let (near, far) = rest.split_at_checked(n_near).unwrap_or((rest, &[]));
        let last = near.last().unwrap_or(first);
        let before = n_context.min(first.old.start);
        let after = n_context.min(old.len() - last.old.end);
        let (from, to) = (first.old.start - before, last.old.end + after);
        let new_from = first.new.start - before;
        heading(&mut text, from..to, new_from..last.new.end + after);
        let mut at = from;
        for run in near {
            lines(&mut text, ' ', &old, at..run.old.start);
            lines(&mut text, '-', &old, run.old.clone());
            lines(&mut text, '+', &new, run.new.clone());
            at = run.old.end;
        }
        lines(&mut text, ' ', &old, at..to);
        rest = far;
    }
    text
}

/// What is really different in a run.
fn refine(old: &[&str], new: &[&str], run: &Run, fine: &mut Vec<Run>) {
    let (before, after) = match (old.get(run.old.clone()), new.get(run.new.clone())) {
        (Some(before), Some(after)) => (before, after),
        _ => return,
    };
    let n_head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let tail = before.iter().rev().zip(after.iter().rev());
    let most = before.len().min(after.len()) - n_head;
    let n_tail = tail.take(most).take_while(|(one, other)| one == other).count();
    let run = Run {
        old: run.old.start + n_head..run.old.end - n_tail,
        new: run.new.start + n_head..run.new.end - n_tail,
    };
    let (Some(before), Some(after)) = (old.get(run.old.clone()), new.get(run.new.clone())) else {
        return;
    };
    if before.is_empty() && after.is_empty() {
        return;
    }
    if before.len().saturating_mul(after.len()) > MOST_CELLS {
        return fine.push(run);
    }
    for op in similar::capture_diff_slices(Algorithm::Myers, before, after) {
        let (is_same, old, new) = match op {
            DiffOp::Equal { .. } => (true, 0..0, 0..0),
            other => (false, other.old_range(), other.new_range()),
        };
        if !is_same {
            let shift = |by: usize, range: Range<usize>| by + range.start..by + range.end;
            Run::push(fine, shift(run.old.start, old), shift(run.new.start, new));
        }
    }
}

fn heading(text: &mut String, old: Range<usize>, new: Range<usize>) {
    let part = |range: Range<usize>| match range.len() {
        // Nothing is said to be behind the line before it.
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        n => format!("{},{n}", range.start + 1),
    };
    // Writing to a string cannot fail.
    writeln!(text, "@@ -{} +{} @@", part(old), part(new)).ok();
}

fn lines(text: &mut String, sign: char, from: &[&str], range: Range<usize>) {
    for line in from.get(range).unwrap_or_default() {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}
