//! Reading a script; docs/demo.md describes it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

/// The script of a model that was given none.
pub(crate) const DEFAULT: &str = include_str!("demo.script");

/// The most often a loop turns, with the loops around it: a mistyped number is found when the script
/// is read.
const MOST_TURNS: u32 = 10_000_000;

/// Deeper loops than anybody writes, so that playing needs no deep stack.
const DEEPEST: usize = 16;

/// A script that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Script {
    /// At least one.
    pub(super) sections: Vec<Section>,
}

/// What one message of the user plays.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Section {
    pub(super) steps: Steps,
    /// Played in place of the rest once a tool is not allowed.
    pub(super) refused: Option<Steps>,
}

/// Steps in order, shared with the play that is at them.
pub(super) type Steps = Arc<[Step]>;

/// One line of a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Say(String),
    Think(String),
    Run(String),
    Write { path: String, content: String },
    Edit { path: String, old: String, new: String },
    Ask { question: String, options: Vec<Choice> },
    Plan(Vec<String>),
    Mark { step: usize, status: Progress },
    ExitPlan(String),
    Call { tool: String, input: String },
    Sleep(Duration),
    Fail { status: Option<u16>, text: String },
    Usage { input: u64, output: u64 },
    Loop { times: u32, steps: Steps },
}

/// One answer that is offered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choice {
    pub(super) label: String,
    pub(super) description: String,
}

/// How far a step of a plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Doing,
    Done,
}

/// What is wrong with a script, and where.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the script: {reason}")]
pub(crate) struct Mistake {
    line: usize,
    reason: String,
}

/// Reads a script.
pub(crate) fn parse(text: &str) -> Result<Script, Mistake> {
    let mut reader = Reader { lines: text.lines().enumerate(), line: 1, turns: 1 };
    let mut sections = Vec::new();
    loop {
        let (section, end) = reader.section()?;
        sections.push(section);
        if end == End::Script {
            return Ok(Script { sections });
        }
    }
}

struct Reader<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    /// The line that was read last, from 1.
    line: usize,
    /// How often what stands here plays.
    turns: u32,
}

/// What ended a run of steps.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Loop,
    Refused,
    Section,
    Script,
}

impl<'a> Reader<'a> {
    fn section(&mut self) -> Result<(Section, End), Mistake> {
        let (steps, mut end) = self.steps(0)?;
        let mut refused = None;
        if end == End::Refused {
            let (steps, refused_end) = self.steps(0)?;
            if refused_end == End::Refused {
                return Err(self.error("a section has only one `refused`"));
            }
            refused = Some(steps);
            end = refused_end;
        }
        if steps.is_empty() {
            return Err(self.error("there is no step before this"));
        }
        Ok((Section { steps, refused }, end))
    }

    fn steps(&mut self, depth: usize) -> Result<(Steps, End), Mistake> {
        let mut steps = Vec::new();
        let opened_at = self.line;
        while let Some(line) = self.next_line() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (verb, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let rest = rest.trim();
            let end = match verb {
                "end" if depth > 0 => End::Loop,
                "refused" if depth == 0 => End::Refused,
                "---" if depth == 0 => End::Section,
                "loop" => {
                    steps.push(self.repeated(rest, depth + 1)?);
                    continue;
                }
                _ => {
                    steps.push(self.step(verb, rest)?);
                    continue;
                }
            };
            return match rest {
                "" => Ok((steps.into(), end)),
                _ => Err(self.error(format!("nothing may follow `{verb}`"))),
            };
        }
        if depth > 0 {
            self.line = opened_at;
            return Err(self.error("this `loop` has no `end`"));
        }
        Ok((steps.into(), End::Script))
    }

    fn repeated(&mut self, rest: &str, depth: usize) -> Result<Step, Mistake> {
        let times: u32 = self.number(rest, "`loop` needs how many times")?;
        let around = self.turns;
        self.turns = around.saturating_mul(times.max(1));
        if self.turns > MOST_TURNS {
            return Err(self.error(format!("a loop turns at most {MOST_TURNS} times")));
        }
        if depth > DEEPEST {
            return Err(self.error(format!("at most {DEEPEST} loops can stand in each other")));
        }
        let (steps, _) = self.steps(depth)?;
        self.turns = around;
        Ok(Step::Loop { times, steps })
    }

    fn step(&mut self, verb: &str, rest: &str) -> Result<Step, Mistake> {
        Ok(match verb {
            "say" => Step::Say(self.text(verb, rest)?),
            "think" => Step::Think(self.text(verb, rest)?),
            "exit-plan" => Step::ExitPlan(self.text(verb, rest)?),
            "run" if rest.is_empty() => return Err(self.error("`run` needs a command")),
            "run" => Step::Run(rest.to_owned()),
            "write" => self.write(rest)?,
            "edit" => self.edit(rest)?,
            "ask" => self.ask(rest)?,
            "plan" => self.plan(rest)?,
            "step" => self.mark(rest)?,
            "sleep" => {
                let millis = self.number(rest, "`sleep` needs milliseconds")?;
                Step::Sleep(Duration::from_millis(millis))
            }
            "call" => self.call(rest)?,
            "fail" => self.fail(rest)?,
            "usage" => {
                let what = "`usage` needs two numbers, tokens read and tokens written";
                let (input, output) =
                    rest.split_once(char::is_whitespace).ok_or_else(|| self.error(what))?;
                Step::Usage { input: self.number(input, what)?, output: self.number(output, what)? }
            }
            "end" => return Err(self.error("`end` without a `loop`")),
            "refused" | "---" => {
                return Err(self.error(format!("`{verb}` cannot stand inside a `loop`")));
            }
            _ => return Err(self.error(format!("unknown verb `{verb}`"))),
        })
    }

    fn write(&mut self, rest: &str) -> Result<Step, Mistake> {
        let what = "`write` needs a path and `<<END`";
        let (path, word) = rest.rsplit_once("<<").ok_or_else(|| self.error(what))?;
        let (path, word) = (path.trim(), word.trim());
        if path.is_empty() || word.is_empty() {
            return Err(self.error(what));
        }
        let mut content = self.lines_up_to(word)?;
        if !content.is_empty() {
            content.push('\n');
        }
        Ok(Step::Write { path: path.to_owned(), content })
    }

    fn edit(&self, rest: &str) -> Result<Step, Mistake> {
        let what = "`edit` needs a path and \"old\" => \"new\"";
        let (path, rest) = rest.split_once(" \"").ok_or_else(|| self.error(what))?;
        let (old, rest) = self.quoted(rest, what)?;
        let rest = rest.trim_start().strip_prefix("=>").ok_or_else(|| self.error(what))?;
        let rest = rest.trim_start().strip_prefix('"').ok_or_else(|| self.error(what))?;
        let (new, rest) = self.quoted(rest, what)?;
        if path.trim().is_empty() || old.is_empty() || !rest.trim().is_empty() {
            return Err(self.error(what));
        }
        Ok(Step::Edit { path: path.trim().to_owned(), old, new })
    }

    /// The text up to the closing quote and what follows it.
    fn quoted<'t>(&self, text: &'t str, what: &str) -> Result<(String, &'t str), Mistake> {
        let mut inner = String::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match char {
                '"' => return Ok((inner, chars.as_str())),
                '\\' => inner.push(match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(char @ ('"' | '\\')) => char,
                    _ => return Err(self.error("only \\n, \\t, \\\" and \\\\ can be escaped")),
                }),
                char => inner.push(char),
            }
        }
        Err(self.error(what))
    }

    fn ask(&self, rest: &str) -> Result<Step, Mistake> {
        let what = "`ask` needs a question and two options or more, with `|` before each";
        let mut parts = rest.split('|').map(str::trim);
        let question = parts.next().unwrap_or_default().to_owned();
        let options: Vec<Choice> = parts
            .map(|part| {
                let (label, description) = part.split_once(':').unwrap_or((part, ""));
                let (label, description) = (label.trim(), description.trim());
                Choice { label: label.to_owned(), description: description.to_owned() }
            })
            .collect();
        if question.is_empty() || options.len() < 2 || options.iter().any(|it| it.label.is_empty())
        {
            return Err(self.error(what));
        }
        Ok(Step::Ask { question, options })
    }

    fn plan(&self, rest: &str) -> Result<Step, Mistake> {
        let steps: Vec<String> =
            rest.split(';').map(|step| step.trim().to_owned()).filter(|s| !s.is_empty()).collect();
        if steps.is_empty() {
            return Err(self.error("`plan` needs steps, with `;` between them"));
        }
        Ok(Step::Plan(steps))
    }

    fn mark(&self, rest: &str) -> Result<Step, Mistake> {
        let what = "`step` needs a number from 1 and `doing` or `done`";
        let (number, status) =
            rest.split_once(char::is_whitespace).ok_or_else(|| self.error(what))?;
        let status = match status.trim() {
            "doing" => Progress::Doing,
            "done" => Progress::Done,
            _ => return Err(self.error(what)),
        };
        match self.number(number, what)? {
            0 => Err(self.error(what)),
            step => Ok(Step::Mark { step, status }),
        }
    }

    fn call(&self, rest: &str) -> Result<Step, Mistake> {
        let what = "`call` needs a tool and a JSON object";
        let (tool, input) = rest.split_once(char::is_whitespace).ok_or_else(|| self.error(what))?;
        let input = input.trim();
        match serde_json::from_str::<&RawValue>(input) {
            Ok(_) if input.starts_with('{') => {
                Ok(Step::Call { tool: tool.to_owned(), input: input.to_owned() })
            }
            _ => Err(self.error(what)),
        }
    }

    fn fail(&mut self, rest: &str) -> Result<Step, Mistake> {
        let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match first.parse::<u16>() {
            Ok(status @ 400..=599) => {
                Ok(Step::Fail { status: Some(status), text: self.text("fail", after.trim())? })
            }
            _ => Ok(Step::Fail { status: None, text: self.text("fail", rest)? }),
        }
    }

    /// The text of a verb: the rest of its line, or the lines that follow.
    fn text(&mut self, verb: &str, rest: &str) -> Result<String, Mistake> {
        let text = match rest.strip_prefix("<<") {
            Some(word) if !word.is_empty() && !word.contains(char::is_whitespace) => {
                self.lines_up_to(word)?
            }
            _ => rest.to_owned(),
        };
        match text.is_empty() {
            true => Err(self.error(format!("`{verb}` needs a text"))),
            false => Ok(text),
        }
    }

    fn lines_up_to(&mut self, word: &str) -> Result<String, Mistake> {
        let opened_at = self.line;
        let mut lines = Vec::new();
        while let Some(line) = self.next_line() {
            if line.trim_end() == word {
                return Ok(lines.join("\n"));
            }
            lines.push(line);
        }
        self.line = opened_at;
        Err(self.error(format!("no line {word:?} ends this text")))
    }

    fn number<N: std::str::FromStr>(&self, text: &str, what: &str) -> Result<N, Mistake> {
        text.trim().parse().map_err(|_| self.error(what))
    }

    fn next_line(&mut self) -> Option<&'a str> {
        let (index, line) = self.lines.next()?;
        self.line = index + 1;
        Some(line)
    }

    fn error(&self, reason: impl Into<String>) -> Mistake {
        Mistake { line: self.line, reason: reason.into() }
    }
}
