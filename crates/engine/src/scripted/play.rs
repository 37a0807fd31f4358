//! Going through a script: what was played is passed over, what comes then is told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::edit;
use super::past::Past;
use super::script::{Choice, Progress, Section, Step, Steps};
use crate::tools::is_refusal;

/// How long a command may run.
const LONGEST_MS: u64 = 120_000;

/// What comes next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Words.
    Speech {
        kind: Speech,
        id: Id,
        text: String,
    },
    /// A call. Nothing can follow before its output is known.
    Call {
        id: Id,
        tool: String,
        input: Input,
    },
    Sleep(Duration),
    Usage {
        input: u64,
        output: u64,
    },
    Fail {
        status: Option<u16>,
        text: String,
    },
    /// Everything was played.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Say,
    Think,
}

/// What a tool is given.
#[derive(Debug, PartialEq)]
pub(super) enum Input {
    Json(String),
    Text(String),
}

/// The how manieth thing in the how manieth turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) turn: usize,
    pub(super) number: usize,
}

/// A section and how far it is.
#[derive(Debug)]
pub(super) struct Play {
    /// Where in the script we are, innermost loop last.
    at: Vec<Place>,
    refused: Option<Steps>,
    past: Past,
    /// How many things were done up to here.
    number: usize,
    /// The answer before this one ended here, after whatever makes no item.
    settled: bool,
    /// The model plans: there is no list of steps.
    plans: bool,
    answer: String,
    steps: Vec<(String, &'static str)>,
    /// Up to where the user's words were answered.
    noted: usize,
}

/// A place in a list of steps that is played some more times.
#[derive(Debug)]
struct Place {
    steps: Steps,
    next: usize,
    more: u32,
}

impl Play {
    /// A section.
    pub(super) fn of(section: &Section, past: Past, plans: bool) -> Self {
        Self {
            at: vec![Place { steps: Arc::clone(&section.steps), next: 0, more: 0 }],
            refused: section.refused.clone(),
            number: 0,
            settled: past.ends_with_text(),
            past,
            plans,
            answer: String::new(),
            steps: Vec::new(),
            noted: 0,
        }
    }

    /// These words, and nothing else.
    pub(super) fn words(text: &str) -> Self {
        let steps = Steps::from([Step::Say(text.to_owned())]);
        Self::of(&Section { steps, refused: None }, Past::default(), false)
    }

    /// What comes next. Nothing does after a call or the end.
    pub(super) fn next(&mut self) -> Next {
        loop {
            let done = match self.step() {
                Some(step) => self.perform(step),
                None => self.note(),
            };
            if let Err(next) = done {
                return next;
            }
        }
    }

    /// The next step of the script, with loops taken in order.
    fn step(&mut self) -> Option<Step> {
        loop {
            let place = self.at.last_mut()?;
            if let Some(step) = place.steps.get(place.next) {
                place.next += 1;
                return Some(step.clone());
            }
            match place.more.checked_sub(1) {
                Some(more) => (place.next, place.more) = (0, more),
                None => {
                    self.at.pop();
                }
            }
        }
    }

    /// Passes over a step that was played; the others are what comes next.
    fn perform(&mut self, step: Step) -> Result<(), Next> {
        match step {
            Step::Say(text) => self.speak(Speech::Say, |play| play.expand(&text)),
            Step::Think(text) => self.speak(Speech::Think, |play| play.expand(&text)),
            Step::ExitPlan(text) if self.plans => {
                // Who proposes a plan waits for what is said to it.
                self.at.clear();
                self.speak(Speech::Say, |play| {
                    format!("<proposed_plan>\n{}\n</proposed_plan>", play.expand(&text))
                })
            }
            Step::ExitPlan(_) => Ok(()),
            Step::Run(command) => {
                let input = json!({"command": command, "login": false, "timeout_ms": LONGEST_MS});
                self.call("shell_command", input)
            }
            Step::Write { path, content } => {
                let patch = edit::whole(&path, &self.expand(&content));
                self.patch(patch)
            }
            Step::Edit { path, old, new } => {
                let (old, new) = (self.expand(&old), self.expand(&new));
                self.edit(&path, &old, &new)
            }
            Step::Ask { question, options } => self.ask(&question, &options),
            Step::Plan(steps) => {
                self.steps = steps.into_iter().map(|step| (step, "pending")).collect();
                self.show_steps()
            }
            Step::Mark { step, status } => {
                let marked = step.checked_sub(1).and_then(|at| self.steps.get_mut(at));
                if let Some((_, marked)) = marked {
                    *marked = match status {
                        Progress::Doing => "in_progress",
                        Progress::Done => "completed",
                    };
                }
                self.show_steps()
            }
            Step::Call { tool, input } => {
                let output = self.output(&tool, Input::Json(input))?;
                self.heed(&output);
                Ok(())
            }
            Step::Loop { times, steps } => {
                if let Some(more) = times.checked_sub(1) {
                    self.at.push(Place { steps, next: 0, more });
                }
                Ok(())
            }
            Step::Sleep(_) | Step::Usage { .. } | Step::Fail { .. } if !self.is_new() => Ok(()),
            Step::Sleep(time) => {
                self.settled = false;
                Err(Next::Sleep(time))
            }
            Step::Usage { .. } if self.settled => Ok(()),
            Step::Usage { input, output } => Err(Next::Usage { input, output }),
            Step::Fail { status, text } => Err(Next::Fail { status, text: self.expand(&text) }),
        }
    }

    /// Whether everything that was done is passed over.
    fn is_new(&self) -> bool {
        self.number >= self.past.last()
    }

    fn id(&self) -> Id {
        Id { turn: self.past.n_turns(), number: self.number }
    }

    fn speak(&mut self, kind: Speech, text: impl FnOnce(&Self) -> String) -> Result<(), Next> {
        self.number += 1;
        if self.number <= self.past.last() {
            return Ok(());
        }
        self.settled = false;
        Err(Next::Speech { kind, id: self.id(), text: text(self) })
    }

    /// What came of a call; one that was not made is next.
    fn output(&mut self, tool: &str, input: Input) -> Result<String, Next> {
        self.number += 1;
        match self.past.output(self.number) {
            Some(output) => Ok(output.to_owned()),
            None => Err(Next::Call { id: self.id(), tool: tool.to_owned(), input }),
        }
    }

    fn call(&mut self, tool: &str, input: Value) -> Result<(), Next> {
        let output = self.output(tool, Input::Json(input.to_string()))?;
        self.heed(&output);
        Ok(())
    }

    fn patch(&mut self, patch: String) -> Result<(), Next> {
        let output = self.output("apply_patch", Input::Text(patch))?;
        self.heed(&output);
        Ok(())
    }

    /// What was not allowed leads another way, if there is one.
    fn heed(&mut self, output: &str) {
        if is_refusal(output) {
            self.turn_away();
        }
    }

    fn turn_away(&mut self) {
        if let Some(steps) = self.refused.take() {
            self.at = vec![Place { steps, next: 0, more: 0 }];
        }
    }

    fn edit(&mut self, path: &str, old: &str, new: &str) -> Result<(), Next> {
        let mut text = edit::Text::default();
        while let Some(from) = text.next_line() {
            let input = json!({"file_path": path, "offset": from});
            text.add(&self.output("read_file", Input::Json(input.to_string()))?);
        }
        match text.patch(path, old, new) {
            Ok(patch) => self.patch(patch),
            Err(why) => self.speak(Speech::Say, |_| format!("I cannot edit {path}: {why}")),
        }
    }

    fn ask(&mut self, question: &str, options: &[Choice]) -> Result<(), Next> {
        let question = self.expand(question);
        let header = question.split_whitespace().next().unwrap_or_default();
        let option = |it: &Choice| json!({"label": it.label, "description": it.description});
        let input = json!({"questions": [{
            "id": "answer",
            "header": header.trim_end_matches(['?', ',', ':']),
            "question": question,
            "options": options.iter().map(option).collect::<Vec<_>>(),
        }]});
        let output = self.output("request_user_input", Input::Json(input.to_string()))?;
        let answers: Value = serde_json::from_str(&output).unwrap_or_default();
        match answers.pointer("/answers/answer/answers/0").and_then(Value::as_str) {
            Some(answer) => answer.clone_into(&mut self.answer),
            None => self.turn_away(),
        }
        Ok(())
    }

    fn show_steps(&mut self) -> Result<(), Next> {
        if self.plans {
            return Ok(());
        }
        let step = |(step, status): &(String, &str)| json!({"step": step, "status": status});
        let steps: Vec<Value> = self.steps.iter().map(step).collect();
        self.call("update_plan", json!({"plan": steps}))
    }

    /// The section is played: what the user said meanwhile is answered.
    fn note(&mut self) -> Result<(), Next> {
        let said = self.past.said.iter().filter(|(at, _)| *at > self.noted);
        let said: Vec<String> = said.map(|(_, text)| format!("\"{text}\"")).collect();
        if said.is_empty() {
            return Err(Next::End);
        }
        self.noted = self.past.place(self.number + 1).unwrap_or(usize::MAX);
        self.speak(Speech::Say, |_| {
            format!("While I was at it you said {}. Noted.", said.join(" and "))
        })
    }

    /// Puts what the user said into a text. What is put in is not looked at again.
    fn expand(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            expanded.push_str(before);
            if let Some(after) = after.strip_prefix("prompt}") {
                expanded.push_str(self.past.prompt());
                rest = after;
            } else if let Some(after) = after.strip_prefix("answer}") {
                expanded.push_str(&self.answer);
                rest = after;
            } else {
                expanded.push('{');
                rest = after;
            }
        }
        expanded.push_str(rest);
        expanded
    }
}
