//! A request as a dialogue: what to show, what each key and line means, and the answer at the end.
//! Sans-IO.

use std::collections::BTreeMap;

use tieline_event::{Answer, Choice, ChoiceKind, Json, Question, Request, RequestBody, Scope};

use crate::json;
use crate::review::{Review, Room, Shown, label};
use crate::visible;

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
    shown: Shown,
    /// Every row, where some had no room.
    whole: Option<Shown>,
    state: State,
    answers: BTreeMap<String, Vec<String>>,
    width: usize,
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

/// How to see what had no room on the screen.
const HOW: &str = "press v to see all of it";

/// Rows for what an agent wrote where the height of the screen is not known.
const ROWS: usize = 30;

/// Rows that the rest of a question takes: what we say, the options, the line for the answer.
const OTHERS: usize = 14;

/// Bytes that are shown at once.
const BYTES: usize = 16 * 1024;

/// The columns and rows of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Columns.
    pub width: usize,
    /// Rows, where that is known.
    pub height: Option<usize>,
}

impl Dialogue {
    /// A dialogue about this request, on a screen like this.
    pub(crate) fn new(request: Request, review: &Review, screen: Screen) -> Self {
        let state = match &request.body {
            RequestBody::Question { questions } if !questions.is_empty() => State::Question(0),
            _ => State::Choose,
        };
        let Screen { width, height } = screen;
        let rows = height.map_or(ROWS, |height| height.saturating_sub(OTHERS).max(8));
        let shown = review.rows(&Room { width, rows, bytes: BYTES, how: HOW });
        let whole = (shown.n_left_out > 0).then(|| review.rows(&Room::boundless(width)));
        Self { request, shown, whole, state, answers: BTreeMap::new(), width }
    }

    /// What is asked, to be shown right before the first prompt.
    pub fn opening(&self) -> &[String] {
        &self.shown.rows
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
                Some(question) => question_prompt(question, self.width),
                None => Prompt { text: String::new(), input: Input::Line },
            },
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: char) -> Step {
        if key == 'v'
            && let Some(whole) = self.whole.take()
        {
            // From now on a yes is for what was shown.
            self.shown = whole;
            let Prompt { text, input } = self.prompt();
            let text = format!("{}\n{text}", self.shown.rows.join("\n"));
            return Step::Ask(Prompt { text, input });
        }
        if key == 'e' && self.input().is_some() {
            if self.whole.is_some() {
                return self.refused();
            }
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
            Some(choice) if self.whole.is_some() && is_yes(choice.kind) => self.refused(),
            Some(choice) => Step::Done(self.chosen(choice)),
            None => Step::Ask(self.prompt()),
        }
    }

    /// A yes would be for something that was not shown.
    fn refused(&self) -> Step {
        let Prompt { text, input } = self.prompt();
        let text = format!("  not all of it was shown: press v first, then say yes\n{text}");
        Step::Ask(Prompt { text, input })
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
            let head = format!("  {} {}) ", at + 1, letter(choice.kind));
            push_wrapped(&label(choice), &head, self.width, &mut text);
        }
        if self.input().is_some() {
            text.push_str("    e) Yes, but edited\n");
        }
        if self.whole.is_some() {
            let n = self.shown.n_left_out;
            text.push_str(&format!("    v) Show all of it: {n} lines are not shown\n"));
        }
        text.push_str("  your choice: ");
        text
    }

    fn edit_text(&self) -> String {
        let (is, change, value) = match (self.command(), self.input()) {
            (Some(command), _) => ("command", "run instead", command),
            (None, Some(input)) => ("input", "use instead, as JSON", input.as_str()),
            (None, None) => return String::new(),
        };
        let mut text = String::new();
        let head = format!("  the {is} is:  ");
        push_wrapped(&visible::line(value), &head, self.width, &mut text);
        text.push_str(&format!("  {change} (Enter keeps it): "));
        text
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
                let text = format!("  this is not JSON: {}\n{text}", visible::line(&reason));
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
                let Prompt { text, input } = question_prompt(question, self.width);
                Step::Ask(Prompt { text: format!("  {reason}\n{text}"), input })
            }
        }
    }
}

/// A text of an agent in rows, behind words of ours.
fn push_wrapped(shown: &str, head: &str, width: usize, text: &mut String) {
    for row in visible::wrap(shown, head, "  … ", width) {
        text.push_str(&row);
        text.push('\n');
    }
}

fn is_yes(kind: ChoiceKind) -> bool {
    !matches!(kind, ChoiceKind::Deny | ChoiceKind::DenyAndStop)
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

fn question_prompt(question: &Question, width: usize) -> Prompt {
    let mut text = String::new();
    let asked = match &question.header {
        Some(header) => format!("{}: ", visible::line(header)),
        None => String::new(),
    };
    match visible::lines(&question.text).as_slice() {
        [one] => push_wrapped(&format!("{asked}{one}"), "  ", width, &mut text),
        several => {
            if !asked.is_empty() {
                push_wrapped(asked.trim_end(), "  ", width, &mut text);
            }
            several.iter().for_each(|line| push_wrapped(line, "  | ", width, &mut text));
        }
    }
    for (at, option) in question.options.iter().enumerate() {
        let mut shown = visible::line(&option.label);
        if let Some(description) = &option.description {
            shown.push_str(&format!(" – {}", visible::line(description)));
        }
        push_wrapped(&shown, &format!("  {}) ", at + 1), width, &mut text);
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
