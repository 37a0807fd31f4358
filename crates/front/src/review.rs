//! What somebody decides about, made once from the request, for every front: the act itself and the
//! agent's words about it, each line marked as theirs; then where it happens, how far a yes reaches
//! and why it is asked, in our own words, which nothing of an agent can look like.

use tieline_event::{
    Approval, ChangeKind, Choice, ChoiceKind, FileChange, Held, Json, Question, Request,
    RequestBody, Text,
};

use crate::json::Fields;
use crate::visible::{self, name, wrap};
use crate::{Fetch, whole};

#[cfg(test)]
mod tests;

/// Tools that do what is shown of them and nothing else.
const PLAIN: [&str; 5] = ["command", "Bash", "patch", "files", "write"];

/// Characters of a title; of a longer one the whole comes apart.
const TITLE: usize = 200;

/// Characters of the label of an option.
const LABEL: usize = 8000;

/// A request as it is shown. Every text in it is [visible].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Review {
    /// One line: what is asked.
    pub(crate) title: String,
    /// What would be done, and the agent's words about it.
    parts: Vec<Part>,
    /// Where, how far it reaches, and why it is asked.
    pub(crate) facts: Vec<String>,
}

/// Lines of an agent's below a line of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    head: Option<String>,
    mark: Mark,
    lines: Vec<String>,
}

/// What stands before each line of an agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// As a shell asks for a command.
    Command,
    Text,
}

/// How much is shown of it.
#[derive(Debug, Clone)]
pub(crate) struct Room<'a> {
    /// Columns of a row.
    pub(crate) width: usize,
    /// Rows of what an agent wrote.
    pub(crate) rows: usize,
    /// Bytes of the same.
    pub(crate) bytes: usize,
    /// How to see the rest.
    pub(crate) how: &'a str,
}

/// A review in rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) rows: Vec<String>,
    /// Rows that had no room.
    pub(crate) n_left_out: usize,
}

impl Room<'_> {
    /// All of it.
    pub(crate) fn boundless(width: usize) -> Self {
        Self { width, rows: usize::MAX, bytes: usize::MAX, how: "" }
    }
}

/// What is asked, for whoever works in this directory.
pub(crate) fn review(request: &Request, workspace: Option<&str>, fetch: &mut Fetch<'_>) -> Review {
    let mut review = Review::default();
    review.titled(&request.title);
    match &request.body {
        RequestBody::Approval(approval) => {
            review.act(approval, fetch);
            review.lasting(request, approval);
            review.said(request.reason.as_deref());
            review.reach(approval, workspace);
        }
        RequestBody::Question { questions } => {
            let is_told = |it: &&Question| it.text != request.title || it.text.contains('\n');
            questions.iter().filter(is_told).for_each(|it| review.text(None, &it.text));
            review.said(request.reason.as_deref());
        }
        RequestBody::ExitPlan { plan } => {
            review.text(None, plan.as_deref().unwrap_or_default().trim());
            review.said(request.reason.as_deref());
        }
    }
    review
}

/// An option with what it means, where its label says something else.
pub(crate) fn label(choice: &Choice) -> String {
    let label = short(&choice.label, LABEL);
    match meaning(choice) {
        Some(meaning) => format!("{label} (that is: {meaning})"),
        None => label,
    }
}

/// What an option means, where its label says something else.
pub(crate) fn meaning(choice: &Choice) -> Option<&'static str> {
    let said = choice.label.to_lowercase();
    let first = said.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    let says = |words: &[&str]| first.is_some_and(|first| words.contains(&first));
    let says_no = says(&[
        "no", "not", "never", "deny", "reject", "decline", "refuse", "cancel", "stop", "don",
    ]);
    let is_lasting = ["session", "always", "ask again", "remember", "every", "all "];
    let says_lasting = is_lasting.iter().any(|word| said.contains(word));
    let (is_honest, meaning) = match choice.kind {
        ChoiceKind::AllowOnce => (!says_no, "yes"),
        ChoiceKind::AllowSession => (!says_no && says_lasting, "yes, for this session"),
        ChoiceKind::AllowAlways => (!says_no && says_lasting, "yes, always"),
        ChoiceKind::Deny | ChoiceKind::DenyAndStop => {
            (!says(&["yes", "ok", "okay", "allow", "accept", "approve", "run", "go"]), "no")
        }
    };
    (!is_honest).then_some(meaning)
}

/// A text in one line. Of a very long one the beginning, and how much there is besides.
pub(crate) fn short(text: &str, most: usize) -> String {
    let shown = visible::line(text);
    match shown.char_indices().nth(most) {
        None => shown,
        Some((end, _)) => {
            let (head, rest) = shown.split_at(end);
            format!("{head}…⟨{} more characters⟩", rest.chars().count())
        }
    }
}

/// Whether anything is known of a request besides what its agent says.
pub(crate) fn is_known(approval: &Approval) -> bool {
    approval.why.is_some() || !approval.bounds.is_unknown()
}

/// For clients that show one sentence: what we know, and behind it, quoted, what the agent says.
pub(crate) fn sentence(approval: &Approval, said: Option<&str>) -> Option<String> {
    if !is_known(approval) {
        return said.map(str::to_owned);
    }
    let mut review = Review::default();
    review.reach(&Approval { cwd: None, ..approval.clone() }, None);
    let said = said.map(|said| format!("the agent says: \"{}\"", visible::line(said)));
    review.facts.extend(said);
    Some(review.facts.join("; "))
}

impl Review {
    fn titled(&mut self, title: &str) {
        self.title = visible::line(title);
        if let Some((end, _)) = self.title.char_indices().nth(TITLE) {
            self.title.truncate(end);
            self.title.push('…');
            self.text(Some("all of this line:".to_owned()), title);
        }
    }

    fn text(&mut self, head: Option<String>, text: &str) {
        let lines = if text.is_empty() { Vec::new() } else { visible::lines(text) };
        if head.is_some() || !lines.is_empty() {
            self.parts.push(Part { head, mark: Mark::Text, lines });
        }
    }

    fn act(&mut self, approval: &Approval, fetch: &mut Fetch<'_>) {
        if let Some(command) = &approval.command {
            let lines = visible::lines(command);
            self.parts.push(Part { head: None, mark: Mark::Command, lines });
        }
        let is_changed = approval.changes.iter().any(|it| Some(&it.path) == approval.path.as_ref());
        if let Some(path) = approval.path.as_ref().filter(|_| !is_changed) {
            let what = if path.contains("://") { "at" } else { "file" };
            self.text(Some(format!("{what} {}", name(path))), "");
        }
        approval.changes.iter().for_each(|change| self.change(change, fetch));
        // A tool of somebody's with a command in its input is no shell.
        let is_plain = approval.command.is_some() || !approval.changes.is_empty();
        if !is_plain || !PLAIN.contains(&approval.tool.as_str()) {
            self.text(Some(format!("with the tool {}", name(&approval.tool))), "");
        }
        for input in approval.input.iter().chain(&approval.given) {
            self.input(input, approval);
        }
        if let Some(wanted) = &approval.bounds.permissions {
            self.text(Some("and with these permissions besides:".to_owned()), wanted.as_str());
        }
    }

    /// One file: what happens, where, and each line that comes or goes.
    fn change(&mut self, change: &FileChange, fetch: &mut Fetch<'_>) {
        let verb = match change.kind {
            ChangeKind::Add => "add",
            ChangeKind::Update => "edit",
            ChangeKind::Delete => "delete",
        };
        let target = change.moved_to.as_ref().map(|to| format!(" and move it to {}", name(to)));
        let head = format!("{verb} {}{}", name(&change.path), target.unwrap_or_default());
        let mut read = |text: &Text| whole(text, fetch);
        let text = match (&change.diff, &change.old_text, &change.new_text) {
            (Some(diff), ..) => read(diff),
            (None, old, new) => {
                let mut side = |text: &Option<Text>| text.as_ref().map_or(String::new(), &mut read);
                let (old, new) = (side(old), side(new));
                compared(&old, &new)
            }
        };
        self.text(Some(head), &text);
    }

    /// A tool's input: a line for each value, a block for each text of many lines. What is shown as
    /// the command is not shown twice.
    fn input(&mut self, input: &Json, approval: &Approval) {
        let head = Some("it is given:".to_owned());
        let Ok(Fields(fields)) = input.read() else { return self.text(head, input.as_str()) };
        let mut lines = Vec::new();
        for (key, value) in fields {
            let text = serde_json::from_str::<String>(value.get());
            let text = text.unwrap_or_else(|_| value.get().to_owned());
            let is_shown = |shown: &Option<String>| shown.as_ref() == Some(&text);
            let is_path = is_shown(&approval.path) && key.contains("path");
            if is_path || is_shown(&approval.command) && matches!(&*key, "command" | "cmd") {
                continue;
            }
            let key = name(&key);
            match visible::lines(&text).as_slice() {
                [one] => lines.push(format!("{key}: {one}")),
                many => {
                    lines.push(format!("{key}:"));
                    lines.extend(many.iter().map(|line| format!("  {line}")));
                }
            }
        }
        if !lines.is_empty() {
            self.parts.push(Part { head, mark: Mark::Text, lines });
        }
    }

    /// What a yes that lasts brings with it.
    fn lasting(&mut self, request: &Request, approval: &Approval) {
        // The engine writes none down for the session.
        let lasts = |it: &Choice| match it.kind {
            ChoiceKind::AllowSession => approval.bounds.held.is_none(),
            kind => kind == ChoiceKind::AllowAlways,
        };
        if approval.suggestions.is_empty() || !request.options.iter().any(lasts) {
            return;
        }
        // The engine runs outside of the sandbox what a rule allows.
        let outside = match approval.bounds.held {
            Some(_) => ", and what it allows runs outside of the sandbox",
            None => "",
        };
        let head = format!("a yes that lasts may add these rules{outside}:");
        let rules: Vec<&str> = approval.suggestions.iter().map(Json::as_str).collect();
        self.text(Some(head), &rules.join("\n"));
    }

    fn said(&mut self, reason: Option<&str>) {
        if let Some(reason) = reason.map(str::trim).filter(|reason| !reason.is_empty()) {
            self.text(Some("the agent says:".to_owned()), reason);
        }
    }

    fn reach(&mut self, approval: &Approval, workspace: Option<&str>) {
        let Approval { bounds, .. } = approval;
        if let Some(cwd) = &approval.cwd {
            self.facts.push(match workspace {
                Some(workspace) if workspace == cwd => "in the workspace".to_owned(),
                Some(_) => format!("in {}, which is NOT the workspace", name(cwd)),
                None => format!("in {}", name(cwd)),
            });
        }
        if let Some(host) = &bounds.host {
            self.facts.push(format!("a yes lets it connect to {}", name(host)));
        }
        if let Some(dir) = &bounds.opens {
            self.facts.push(format!("a yes lets it write in {} from then on", name(dir)));
        }
        let network = match bounds.network {
            Some(true) => ", WITH the network",
            Some(false) => ", without the network",
            None => "",
        };
        let held = match bounds.held {
            Some(Held::Nothing) if bounds.is_retry => Some("runs AGAIN, OUTSIDE of the sandbox"),
            Some(Held::Nothing) => Some("runs OUTSIDE of the sandbox"),
            Some(Held::ReadOnly) => Some("runs in the sandbox, writes nothing"),
            Some(Held::WorkspaceWrite) => Some("runs in the sandbox, writes only in the workspace"),
            None if approval.command.is_some() => {
                Some("runs as the agent's own rules allow; tieline does not hold it")
            }
            None => None,
        };
        self.facts.extend(held.map(|held| format!("{held}{network}")));
        if let Some(why) = &approval.why {
            self.facts.push(format!("asked because {}", visible::line(why)));
        }
    }

    /// In rows, as many as there is room for.
    pub(crate) fn rows(&self, room: &Room<'_>) -> Shown {
        let mut rows = wrap(&self.title, "? ", "  … ", room.width);
        let (parts, n_left_out) = room.fit(self.part_rows(room.width));
        rows.extend(parts);
        rows.extend(self.facts.iter().flat_map(|it| wrap(it, "  ", "  … ", room.width)));
        Shown { rows, n_left_out }
    }

    /// The same without the title, for those who show it themselves.
    pub(crate) fn below_title(&self, room: &Room<'_>) -> Vec<String> {
        let (mut rows, _) = room.fit(self.part_rows(room.width));
        rows.extend(self.facts.iter().flat_map(|it| wrap(it, "  ", "  … ", room.width)));
        rows
    }

    fn part_rows(&self, width: usize) -> Vec<String> {
        let mut rows = Vec::new();
        for Part { head, mark, lines } in &self.parts {
            rows.extend(head.iter().flat_map(|head| wrap(head, "  ", "  … ", width)));
            for (at, line) in lines.iter().enumerate() {
                let first = match (mark, at) {
                    (Mark::Command, 0) => "  $ ",
                    (Mark::Command, _) => "  > ",
                    (Mark::Text, _) => "  | ",
                };
                rows.extend(wrap(line, first, "  … ", width));
            }
        }
        rows
    }
}

impl Room<'_> {
    /// As much as there is room for: most of it from the beginning, the rest from the end, and words
    /// about what is left out between them.
    fn fit(&self, rows: Vec<String>) -> (Vec<String>, usize) {
        let n_bytes: usize = rows.iter().map(String::len).sum();
        if rows.len() <= self.rows && n_bytes <= self.bytes {
            return (rows, 0);
        }
        let taken = |rows: &mut dyn Iterator<Item = &String>, part: usize| {
            let mut room = self.bytes / 3 * part;
            let fits = |row: &&String| {
                let fits = row.len() <= room;
                room = room.saturating_sub(row.len());
                fits
            };
            rows.take(self.rows / 3 * part).take_while(fits).count()
        };
        let n_head = taken(&mut rows.iter(), 2);
        let n_tail = taken(&mut rows.iter().skip(n_head).rev(), 1);
        let n_left_out = rows.len() - n_head - n_tail;
        let end = rows.len() - n_tail;
        let lost: usize = rows.iter().take(end).skip(n_head).map(String::len).sum();
        let words =
            format!("⟨{n_left_out} lines with {lost} bytes are NOT shown here; {}⟩", self.how);
        let mut shown: Vec<String> = rows.iter().take(n_head).cloned().collect();
        shown.extend(wrap(&words, "  ", "  … ", self.width));
        shown.extend(rows.into_iter().skip(end));
        (shown, n_left_out)
    }
}

/// Lines that go and come. What both sides have at their beginnings and ends stays and is counted.
fn compared(old: &str, new: &str) -> String {
    let lines = |text: &'_ str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let (old, new) = (lines(old), lines(new));
    let n_head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let n_most = old.len().min(new.len()) - n_head;
    let ends = old.iter().rev().zip(new.iter().rev()).take(n_most);
    let n_tail = ends.take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    let kept = |n: usize, text: &mut String| {
        if n > 0 {
            text.push_str(&format!("({n} lines stay as they are)\n"));
        }
    };
    kept(n_head, &mut text);
    for (sign, lines) in [('-', &old), ('+', &new)] {
        for line in lines.iter().take(lines.len() - n_tail).skip(n_head) {
            text.push_str(&format!("{sign}{line}"));
            if !line.ends_with('\n') {
                text.push_str("\n\\ no line end here\n");
            }
        }
    }
    kept(n_tail, &mut text);
    text
}
