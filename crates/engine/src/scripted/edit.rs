//! Patches for what a script writes and edits.

/// Lines around a change.
const CONTEXT: usize = 3;

/// The longest line that `read_file` gives whole, less the bytes a character may have.
const WIDE: usize = 496;

/// A patch that makes a file, or gives it a new content.
pub(super) fn whole(path: &str, content: &str) -> String {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

/// The text of a file, as `read_file` gives it piece by piece.
#[derive(Debug, Default)]
pub(super) struct Text {
    lines: Vec<String>,
    is_whole: bool,
    /// What stands in the way.
    trouble: Option<String>,
}

impl Text {
    /// The line to read from; none when there is no more.
    pub(super) fn next_line(&self) -> Option<usize> {
        (!self.is_whole).then_some(self.lines.len() + 1)
    }

    /// Takes what `read_file` gave.
    pub(super) fn add(&mut self, output: &str) {
        self.is_whole = true;
        let before = self.lines.len();
        for line in output.lines() {
            let numbered = line.strip_prefix('L').and_then(|line| line.split_once(": "));
            match numbered {
                Some((_, line)) => self.lines.push(line.to_owned()),
                None if self.lines.len() > before => self.is_whole = false,
                None if line == "the file is empty" => {}
                None => self.trouble = Some(line.to_owned()),
            }
        }
    }

    /// A patch that puts `new` into the one place where `old` stands, or why there is none.
    pub(super) fn patch(&self, path: &str, old: &str, new: &str) -> Result<String, String> {
        if let Some(trouble) = &self.trouble {
            return Err(trouble.clone());
        }
        let before: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        match before.matches(old).count() {
            0 => return Err(format!("it does not contain {old:?}.")),
            1 => {}
            n => return Err(format!("it contains {old:?} {n} times.")),
        }
        let after = before.replace(old, new);
        let before: Vec<&str> = before.lines().collect();
        let after: Vec<&str> = after.lines().collect();
        let is_same = |pair: &(&&str, &&str)| pair.0 == pair.1;
        let head = before.iter().zip(&after).take_while(is_same).count();
        let shorter = before.len().min(after.len()) - head;
        let ends = before.iter().rev().zip(after.iter().rev());
        let tail = ends.take_while(is_same).count().min(shorter);
        let is_cut = |line: &&&str| line.len() >= WIDE && line.ends_with('…');
        if before.get(head..before.len() - tail).unwrap_or_default().iter().any(|it| is_cut(&it)) {
            return Err("the line is too long.".to_owned());
        }
        // As many lines around it as it takes to tell the place from every other.
        let mut context = CONTEXT;
        let (start, end) = loop {
            let start = head.saturating_sub(context);
            let end = (before.len() - tail + context).min(before.len());
            let block = before.get(start..end).unwrap_or_default();
            let n_places = before.windows(block.len().max(1)).filter(|it| *it == block).count();
            if n_places <= 1 || block.len() == before.len() {
                break (start, end);
            }
            context *= 2;
        };
        let lines = |sign: char, all: &[&str], from: usize, to: usize| -> String {
            let some = all.get(from..to).unwrap_or_default();
            some.iter().map(|line| format!("{sign}{line}\n")).collect()
        };
        let hunk = [
            lines(' ', &before, start, head),
            lines('-', &before, head, before.len() - tail),
            lines('+', &after, head, after.len() - tail),
            lines(' ', &before, before.len() - tail, end),
        ]
        .concat();
        Ok(format!("*** Begin Patch\n*** Update File: {path}\n@@\n{hunk}*** End Patch\n"))
    }
}
