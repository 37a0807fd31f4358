//! A request as a dialogue: what to show, what each key and line means, and the answer at the end.
//! Sans-IO.

use std::collections::BTreeMap;

use tieline_event::{
    Answer, Choice, ChoiceKind, FileChange, Json, Question, Request, RequestBody, Scope,
};

use crate::json::{self, Fields};
use crate::sanitize::{one_line, sanitize};
use crate::summary::cut;

#[cfg(test)]
mod tests;

/// What the dialogue wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What to show. The cursor stays at its end.
    pub text: String,
    /// What to read.
    pub input: Input,
}

/// What to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// One key.
    Key,
    /// A line.
    Line,
    /// A line that is not to be shown.
    Secret,
}

/// What came of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask this next.
    Ask(Prompt),
    /// The request has its answer.
    Done(Answer),
}

/// A dialogue about one request.
#[derive(Debug)]
pub struct Dialogue {
    request: Request,
    state: State,
    answers: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Which of the choices?
    Choose,
    /// What instead of the tool's input?
    Edit,
    /// What is the answer to this question?
    Question(usize),
}

/// How many lines of one text in a tool's input are shown, and how many characters of each.
const INPUT_LINES: usize = 12;
const INPUT_COLUMNS: usize = 160;

/// What is asked, as lines for a person.
pub fn describe(request: &Request) -> Vec<String> {
    let mut lines = vec![format!("? {}", one_line(&request.title))];
    if let Some(reason) = &request.reason {
        lines.push(format!("  {}", one_line(reason)));
    }
    match &request.body {
        RequestBody::Approval(approval) => {
            if let Some(command) = &approval.command {
                lines.extend(sanitize(command).lines().map(|line| format!("  $ {line}")));
            }
            if let Some(path) = approval.path.as_ref().filter(|it| !request.title.contains(*it)) {
                lines.push(format!("  file {}", one_line(path)));
            }
            for change in &approval.changes {
                lines.extend(shown_change(change));
            }
            if let (None, Some(input)) = (&approval.command, &approval.input) {
                lines.extend(shown_input(input, approval.path.as_deref()));
            }
        }
        RequestBody::Question { questions } => {
            for question in questions.iter().filter(|it| it.text != request.title) {
                lines.push(format!("  {}", one_line(&question.text)));
            }
        }
        RequestBody::ExitPlan { plan } => {
            let plan = sanitize(plan.as_deref().unwrap_or_default());
            lines.extend(plan.trim().lines().map(|line| format!("  {line}")));
        }
    }
    lines
}

impl Dialogue {
    /// A dialogue about this request.
    pub fn new(request: Request) -> Self {
        let state = match &request.body {
            RequestBody::Question { questions } if !questions.is_empty() => State::Question(0),
            _ => State::Choose,
        };
        Self { request, state, answers: BTreeMap::new() }
    }

    /// Which request it is about.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// What to ask now.
    pub fn prompt(&self) -> Prompt {
        match self.state {
            State::Choose => Prompt { text: self.menu(), input: Input::Key },
            State::Edit => Prompt { text: self.edit_text(), input: Input::Line },
            State::Question(at) => match self.question(at) {
                Some(question) => question_prompt(question),
                None => Prompt { text: String::new(), input: Input::Line },
            },
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: char) -> Step {
        if key == 'e' && self.input().is_some() {
            self.state = State::Edit;
            return Step::Ask(self.prompt());
        }
        let choices = self.choices();
        let by_number = key
            .to_digit(10)
            .and_then(|digit| usize::try_from(digit).ok())
            .and_then(|digit| choices.get(digit.checked_sub(1)?));
        let by_letter = || choices.iter().find(|choice| letter(choice.kind) == key);
        match by_number.or_else(by_letter) {
            Some(choice) => Step::Done(self.chosen(choice)),
            None => Step::Ask(self.prompt()),
        }
    }

    /// Where several options mean the same, which of them it was.
    fn chosen(&self, choice: &Choice) -> Answer {
        let options = &self.request.options;
        match options.iter().filter(|option| option.kind == choice.kind).count() {
            2.. => Answer::Choose { option: choice.id.clone() },
            _ => meaning(choice.kind),
        }
    }

    /// A line was entered, without its newline.
    pub fn line(&mut self, line: &str) -> Step {
        match self.state {
            State::Choose => self.key(line.trim().chars().next().unwrap_or(' ')),
            State::Edit => self.edited(line.trim()),
            State::Question(at) => self.answered(at, line.trim()),
        }
    }

    fn question(&self, at: usize) -> Option<&Question> {
        match &self.request.body {
            RequestBody::Question { questions } => questions.get(at),
            _ => None,
        }
    }

    fn input(&self) -> Option<&Json> {
        match &self.request.body {
            RequestBody::Approval(approval) => approval.input.as_ref(),
            _ => None,
        }
    }

    fn choices(&self) -> Vec<Choice> {
        if !self.request.options.is_empty() {
            return self.request.options.clone();
        }
        let choice =
            |label: &str, kind| Choice { id: label.to_owned(), label: label.to_owned(), kind };
        vec![
            choice("Yes", ChoiceKind::AllowOnce),
            choice("No", ChoiceKind::Deny),
            choice("No, and stop", ChoiceKind::DenyAndStop),
        ]
    }

    fn menu(&self) -> String {
        let mut text = String::new();
        for (at, choice) in self.choices().iter().enumerate() {
            let label = one_line(&choice.label);
            text.push_str(&format!("  {} {}) {label}\n", at + 1, letter(choice.kind)));
        }
        if self.input().is_some() {
            text.push_str("    e) Yes, but edited\n");
        }
        text.push_str("  your choice: ");
        text
    }

    fn edit_text(&self) -> String {
        match (self.command(), self.input()) {
            (Some(command), _) => {
                format!(
                    "  the command is:  {}\n  run instead (Enter keeps it): ",
                    one_line(command)
                )
            }
            (None, Some(input)) => {
                format!(
                    "  the input is:  {}\n  use instead, as JSON (Enter keeps it): ",
                    input.as_str()
                )
            }
            (None, None) => String::new(),
        }
    }

    /// The command, when the input is an object that holds it under that name.
    fn command(&self) -> Option<&str> {
        match &self.request.body {
            RequestBody::Approval(approval) => {
                let command = approval.command.as_deref()?;
                json::has_text(approval.input.as_ref()?, "command", command).then_some(command)
            }
            _ => None,
        }
    }

    fn edited(&mut self, line: &str) -> Step {
        if line.is_empty() {
            self.state = State::Choose;
            return Step::Ask(self.prompt());
        }
        let input = match (self.command(), self.input()) {
            (Some(_), Some(input)) => json::with_text(input, "command", line),
            _ => Json::from_text(line.to_owned()).map_err(|err| err.to_string()),
        };
        match input {
            Ok(input) => {
                Step::Done(Answer::Allow { scope: Scope::Once, input: Some(input), mode: None })
            }
            Err(reason) => {
                let Prompt { text, input } = self.prompt();
                let text = format!("  this is not JSON: {}\n{text}", one_line(&reason));
                Step::Ask(Prompt { text, input })
            }
        }
    }

    fn answered(&mut self, at: usize, line: &str) -> Step {
        let Some(question) = self.question(at) else {
            return Step::Done(Answer::Answers { answers: std::mem::take(&mut self.answers) });
        };
        match read_answer(question, line) {
            Ok(chosen) => {
                let id = question.id.clone();
                self.answers.insert(id, chosen);
                self.state = State::Question(at + 1);
                match self.question(at + 1) {
                    Some(_) => Step::Ask(self.prompt()),
                    None => {
                        Step::Done(Answer::Answers { answers: std::mem::take(&mut self.answers) })
                    }
                }
            }
            Err(reason) => {
                let Prompt { text, input } = question_prompt(question);
                Step::Ask(Prompt { text: format!("  {reason}\n{text}"), input })
            }
        }
    }
}

/// What would happen to a file: its diff, or its whole text where there is no other side.
fn shown_change(change: &FileChange) -> Vec<String> {
    let (sign, text) = match (&change.diff, &change.new_text, &change.old_text) {
        (Some(diff), ..) => ("", diff),
        (None, Some(new), _) => ("+", new),
        (None, None, Some(old)) => ("-", old),
        (None, None, None) => return Vec::new(),
    };
    let text = sanitize(text.preview());
    let n_lines = text.lines().count();
    let shown = text.lines().take(INPUT_LINES);
    let mut lines: Vec<String> =
        shown.map(|line| format!("    {sign}{}", cut(line, INPUT_COLUMNS))).collect();
    if n_lines > INPUT_LINES {
        lines.push(format!("    … {} more lines", n_lines - INPUT_LINES));
    }
    lines
}

/// A tool's input, a line for each value and a block for each text of many lines. What was said
/// already is left out.
fn shown_input(input: &Json, said: Option<&str>) -> Vec<String> {
    let Ok(Fields(fields)) = input.read() else {
        return vec![format!("  {}", cut(&one_line(input.as_str()), INPUT_COLUMNS))];
    };
    let mut lines = Vec::new();
    for (name, value) in fields {
        let text = serde_json::from_str::<String>(value.get()).unwrap_or(value.get().to_owned());
        if said == Some(text.as_str()) {
            continue;
        }
        let (name, text) = (one_line(&name), sanitize(text.trim_end()));
        if !text.contains('\n') {
            lines.push(format!("  {name}: {}", cut(&text, INPUT_COLUMNS)));
            continue;
        }
        lines.push(format!("  {name}:"));
        let n_more = text.lines().count().saturating_sub(INPUT_LINES);
        let shown = text.lines().take(INPUT_LINES);
        lines.extend(
            shown.map(|line| format!("    {}", cut(line, INPUT_COLUMNS)).trim_end().to_owned()),
        );
        if n_more > 0 {
            lines.push(format!("    … {n_more} more lines"));
        }
    }
    lines
}

fn letter(kind: ChoiceKind) -> char {
    match kind {
        ChoiceKind::AllowOnce => 'y',
        ChoiceKind::AllowSession => 's',
        ChoiceKind::AllowAlways => 'a',
        ChoiceKind::Deny => 'n',
        ChoiceKind::DenyAndStop => 'q',
    }
}

fn meaning(kind: ChoiceKind) -> Answer {
    let allow = |scope| Answer::Allow { scope, input: None, mode: None };
    let deny = |stop| Answer::Deny { message: None, stop };
    match kind {
        ChoiceKind::AllowOnce => allow(Scope::Once),
        ChoiceKind::AllowSession => allow(Scope::Session),
        ChoiceKind::AllowAlways => allow(Scope::Always),
        ChoiceKind::Deny => deny(false),
        ChoiceKind::DenyAndStop => deny(true),
    }
}

fn question_prompt(question: &Question) -> Prompt {
    let mut text = String::new();
    match &question.header {
        Some(header) => {
            text.push_str(&format!("  {}: {}\n", one_line(header), one_line(&question.text)));
        }
        None => text.push_str(&format!("  {}\n", one_line(&question.text))),
    }
    for (at, option) in question.options.iter().enumerate() {
        let label = one_line(&option.label);
        match &option.description {
            Some(description) => {
                text.push_str(&format!("  {}) {label} – {}\n", at + 1, one_line(description)))
            }
            None => text.push_str(&format!("  {}) {label}\n", at + 1)),
        }
    }
    text.push_str(match (question.options.is_empty(), question.multiple, question.free_text) {
        (true, ..) => "  your answer: ",
        (false, true, true) => "  numbers, or your own words: ",
        (false, true, false) => "  numbers, for example 1,3: ",
        (false, false, true) => "  number, or your own words: ",
        (false, false, false) => "  number: ",
    });
    let input = if question.secret { Input::Secret } else { Input::Line };
    Prompt { text, input }
}

/// Numbers and labels mean options, anything else is free text where that is allowed.
fn read_answer(question: &Question, line: &str) -> Result<Vec<String>, &'static str> {
    if line.is_empty() {
        return Err("an answer is needed; Ctrl-C stops the turn");
    }
    let option = |word: &str| {
        let word = word.trim();
        let by_number = word
            .parse::<usize>()
            .ok()
            .and_then(|number| question.options.get(number.checked_sub(1)?));
        let by_label =
            || question.options.iter().find(|option| option.label.eq_ignore_ascii_case(word));
        by_number.or_else(by_label).map(|option| option.label.clone())
    };
    if let Some(label) = option(line) {
        return Ok(vec![label]);
    }
    if question.multiple
        && let Some(labels) =
            line.split([',', ' ']).filter(|word| !word.is_empty()).map(option).collect()
    {
        return Ok(labels);
    }
    if question.options.is_empty() || question.free_text {
        return Ok(vec![line.to_owned()]);
    }
    Err("that is none of the answers")
}
