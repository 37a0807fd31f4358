//! What is remembered of a task: enough to go on after any end of ours.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tieline_event::{BlobRef, ConversationKey, Epoch, RequestId, TaskMarker, TaskOption};
use tieline_wire::markers;

use super::worktree::Worktree;
use crate::review::short;
use crate::visible;

#[cfg(test)]
mod tests;

/// Characters of a question that are told.
pub(crate) const TEXT: usize = 8000;

/// The name of a task, which is also that of its conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskId(ConversationKey);

impl TaskId {
    /// The conversation.
    pub fn key(&self) -> &ConversationKey {
        &self.0
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TaskId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins_well || text.len() > 64 || !text.chars().all(is_plain) {
            return Err("a task's id has 1 to 64 letters, digits, dots, dashes and underscores, \
                        and begins with a letter or a digit"
                .to_owned());
        }
        ConversationKey::new(text).map(Self).map_err(|err| err.to_string())
    }
}

/// How much a task may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// How often the agent may be set to work.
    pub turns: Option<u64>,
    /// How long it may work.
    pub seconds: Option<u64>,
    /// How many tokens it may read and write; looked at after each turn.
    pub tokens: Option<u64>,
}

impl Budget {
    /// Reads `20turns`, `600s` or `200000tokens` into it.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(end).unwrap_or((text, ""));
        let number: u64 = number.parse().ok().filter(|it| *it > 0).ok_or_else(|| wrong(text))?;
        match unit.trim() {
            "turns" | "turn" => self.turns = Some(number),
            "s" | "seconds" | "sec" => self.seconds = Some(number),
            "m" | "min" | "minutes" => self.seconds = Some(number.saturating_mul(60)),
            "h" | "hours" => self.seconds = Some(number.saturating_mul(3600)),
            "tokens" | "tok" => self.tokens = Some(number),
            _ => return Err(wrong(text)),
        }
        Ok(())
    }
}

fn wrong(text: &str) -> String {
    format!("{text:?} is no budget; write 20turns, 600s, 30min or 200000tokens")
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is to be worked on. Without a living process it was cut off.
    Running,
    /// Somebody must answer first.
    Question,
    /// Somebody must clear something up first.
    Blocked,
    /// It is done.
    Complete,
    /// A turn failed, or the work did not pass its verification.
    Failed,
    /// Its budget is used up.
    Budget,
    /// Somebody stopped it.
    Cancelled,
}

impl Status {
    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Question => "question",
            Self::Blocked => "blocked",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A question without an answer. Its text and context are visible, its options as the agent has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Its name within the task.
    pub id: String,
    /// What is asked.
    pub text: String,
    /// Answers to choose from.
    pub options: Vec<TaskOption>,
    /// Why it is asked.
    pub context: Vec<String>,
    /// The agent waits for it.
    pub waits: Option<Waits>,
    /// The agent asked on its own wire, and asks again if it still needs to know.
    #[serde(default)]
    pub native: bool,
    /// The agent waited for it in the turn that runs, and does so no more.
    #[serde(default)]
    pub lapsed: bool,
    /// The hash of all that is asked: an answer is for this and nothing else.
    #[serde(default)]
    pub hash: String,
    /// The agent asks for leave to do something.
    #[serde(default)]
    pub leave: bool,
    /// Nothing but one of the options is an answer.
    #[serde(default)]
    pub is_fixed: bool,
}

/// Where an agent waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The agent's request.
    pub request: RequestId,
    /// Which of its questions; none for an approval.
    pub question: Option<String>,
    /// The ids of the request's options, in the order of the question's.
    pub options: Vec<String>,
}

impl OpenQuestion {
    /// As a word about the task.
    pub fn marker(&self) -> TaskMarker {
        TaskMarker::Question {
            id: self.id.clone(),
            text: self.text.clone(),
            options: self.options.clone(),
            context: self.context.clone(),
            request: self.waits.as_ref().map(|waits| waits.request.clone()),
        }
    }

    /// Why this is no answer to it, if it is none.
    pub fn refuses(&self, answer: &str) -> Option<String> {
        if !self.is_fixed || self.chosen(answer).is_some() {
            return None;
        }
        let options = self.options.iter().map(|it| format!("{} {}", it.number, it.label));
        let options = options.collect::<Vec<_>>().join(", ");
        Some(format!("{:?} is no answer to {}; it has: {options}", answer.trim(), self.id))
    }

    /// The option that an answer names by number or label.
    pub fn chosen(&self, answer: &str) -> Option<&TaskOption> {
        let answer = answer.trim();
        let number = answer.trim_end_matches('.').parse().ok();
        let by_number = self.options.iter().find(|it| Some(it.number) == number);
        by_number.or_else(|| {
            let mut named = self.options.iter().filter(|it| it.label.eq_ignore_ascii_case(answer));
            // A label that two of them have names none.
            named.next().filter(|_| named.next().is_none())
        })
    }

    /// Whether an answer that was given for this hash, or for none, may be given to it. One that was
    /// given before anything was asked is leave for nothing.
    pub fn takes(&self, hash: Option<&str>) -> bool {
        match hash {
            Some(hash) => self.hash == hash,
            None => !self.leave,
        }
    }
}

/// An answer to one of several questions of a request, which waits for the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partly {
    /// What was asked.
    pub question: OpenQuestion,
    /// The answer, in words.
    pub answer: String,
}

/// An answer to a request of an agent that was gone when it came, for when it asks the same again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The hash of what was asked.
    pub hash: String,
    /// The answer: the number of an option, or words.
    pub answer: String,
}

/// An answer that the agent has not been told yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// What was asked.
    pub question: String,
    /// The answer, in words.
    pub answer: String,
}

/// What somebody has to say about a task, from whichever process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Letter {
    /// An answer, to the question of this id or to the oldest one.
    Answer {
        /// Which question.
        question: Option<String>,
        /// The answer: a number, a label, or any text.
        text: String,
        /// The hash of what was asked when it was given; none where nothing was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
    /// The task is to stop, as far as the owner of this epoch or a later one works on it. An earlier
    /// one is gone, and what was meant for it with it.
    Cancel {
        /// The owner's epoch when it was said.
        epoch: Epoch,
    },
}

impl Letter {
    /// Reads `q2=1`, or an answer to the oldest question.
    pub fn answer(text: &str) -> Self {
        let is_id = |id: &str| id.strip_prefix('q').is_some_and(|n| n.parse::<u64>().is_ok());
        match text.split_once('=') {
            Some((id, answer)) if is_id(id.trim()) => Self::Answer {
                question: Some(id.trim().to_owned()),
                text: answer.trim().to_owned(),
                hash: None,
            },
            _ => Self::Answer { question: None, text: text.trim().to_owned(), hash: None },
        }
    }
}

/// Gives each answer the question that is open now: those that name none are for the open ones, the
/// oldest first, unless one of several asks for leave. Gives those back that are for none.
pub fn bound(letters: Vec<Letter>, questions: &[OpenQuestion]) -> (Vec<Letter>, Vec<Letter>) {
    let names = |letter: &Letter, id: &str| matches!(letter, Letter::Answer { question: Some(it), .. } if it == id);
    let is_named = |it: &&OpenQuestion| letters.iter().any(|letter| names(letter, &it.id));
    let mut unnamed: Vec<&OpenQuestion> = questions.iter().filter(|it| !is_named(it)).collect();
    // Nobody can tell which of several a yes without a name was meant for.
    if unnamed.len() > 1 && unnamed.iter().any(|it| it.leave) {
        unnamed.clear();
    }
    let mut unnamed = unnamed.into_iter();
    let (mut given, mut left) = (Vec::new(), Vec::new());
    for letter in letters {
        let Letter::Answer { question, text, .. } = &letter else { continue };
        let open = match question {
            Some(id) => questions.iter().find(|it| it.id == *id),
            None => unnamed.next(),
        };
        match open {
            Some(OpenQuestion { id, hash, .. }) => given.push(Letter::Answer {
                question: Some(id.clone()),
                text: text.clone(),
                hash: Some(hash.clone()),
            }),
            None => left.push(letter),
        }
    }
    (given, left)
}

/// Who said with which commands a task is verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyBy {
    /// The user. They run as the user's own.
    #[default]
    User,
    /// A model. They run in the sandbox of the task's mode, or not at all.
    Model,
}

/// Everything that is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// What is to be done, and what was added later.
    pub description: String,
    /// The file with the plan.
    pub plan: Option<PathBuf>,
    /// What the agent was told of plan and guidelines, so that a change is told again.
    #[serde(default)]
    pub told: Option<String>,
    /// Commands that must pass before the task is done.
    #[serde(default)]
    pub verify: Vec<String>,
    /// Whose commands they are.
    #[serde(default)]
    pub verify_by: VerifyBy,
    /// How often a failed verification goes back to the agent.
    pub tries: u32,
    /// How much it may use.
    #[serde(default)]
    pub budget: Budget,
    /// For how many seconds an answer is waited for.
    #[serde(default)]
    pub wait: u64,
    /// How it stands.
    pub status: Status,
    /// Questions without an answer.
    #[serde(default)]
    pub questions: Vec<OpenQuestion>,
    /// How many there have been.
    #[serde(default)]
    pub n_questions: u64,
    /// Answers that the agent has not been told yet.
    #[serde(default)]
    pub given: Vec<Given>,
    /// Answers that wait for others to the same request.
    #[serde(default)]
    pub partly: Vec<Partly>,
    /// Answers to questions that an agent will ask again, because it was gone when they came.
    #[serde(default)]
    pub kept_answers: Vec<Kept>,
    /// Why the agent cannot go on.
    #[serde(default)]
    pub blocked: Option<String>,
    /// The last failed verification that the agent has not been told yet.
    #[serde(default)]
    pub failed_check: Option<String>,
    /// How often the work did not pass.
    #[serde(default)]
    pub n_failed: u32,
    /// What the agent said of files: path and word.
    #[serde(default)]
    pub claims: Vec<(String, String)>,
    /// How often the agent was set to work.
    #[serde(default)]
    pub iterations: u64,
    /// Milliseconds it has worked.
    #[serde(default)]
    pub millis: u64,
    /// Tokens it has used.
    #[serde(default)]
    pub tokens: u64,
    /// Its last step, for a list.
    #[serde(default)]
    pub step: String,
    /// The hash of what the directory held when it began.
    #[serde(default)]
    pub baseline: Option<String>,
    /// Its own working tree.
    #[serde(default)]
    pub worktree: Option<Worktree>,
}

impl State {
    /// A task that has not begun.
    pub fn new(description: String) -> Self {
        Self {
            description,
            plan: None,
            told: None,
            verify: Vec::new(),
            verify_by: VerifyBy::User,
            tries: 3,
            budget: Budget::default(),
            wait: 0,
            status: Status::Running,
            questions: Vec::new(),
            n_questions: 0,
            given: Vec::new(),
            partly: Vec::new(),
            kept_answers: Vec::new(),
            blocked: None,
            failed_check: None,
            n_failed: 0,
            claims: Vec::new(),
            iterations: 0,
            millis: 0,
            tokens: 0,
            step: String::new(),
            baseline: None,
            worktree: None,
        }
    }

    /// Reads what was stored.
    ///
    /// # Errors
    /// When another version wrote it.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// To be stored.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a state has no map whose keys are not strings")
    }

    /// What is left of the time it may work.
    pub fn time_left(&self) -> Option<Duration> {
        let seconds = self.budget.seconds?;
        Some(Duration::from_secs(seconds).saturating_sub(Duration::from_millis(self.millis)))
    }

    /// Which part of its budget is used up.
    pub fn overspent(&self) -> Option<String> {
        let Budget { turns, seconds, tokens } = self.budget;
        let over = |limit: Option<u64>, used: u64| limit.filter(|limit| used >= *limit);
        over(turns, self.iterations)
            .map(|limit| format!("{limit} turns are used up"))
            .or_else(|| {
                over(seconds, self.millis / 1000).map(|it| format!("{it} seconds are over"))
            })
            .or_else(|| over(tokens, self.tokens).map(|it| format!("{it} tokens are used up")))
    }

    /// A new question gets its name.
    pub(super) fn ask(&mut self, question: OpenQuestion) -> TaskMarker {
        self.n_questions += 1;
        let id = format!("q{}", self.n_questions);
        let question = OpenQuestion { id, native: question.waits.is_some(), ..question };
        let marker = question.marker();
        self.questions.push(question);
        marker
    }

    /// A question in a marker.
    pub(super) fn asked_in_marker(&mut self, question: markers::Question) -> TaskMarker {
        let options = question.options.iter().map(|it| TaskOption {
            number: it.number,
            label: it.label.clone(),
            description: it.description.clone(),
        });
        let hash = BlobRef::of(format!("{question:?}").as_bytes()).sha256;
        self.ask(OpenQuestion {
            text: short(&question.text, TEXT),
            options: options.collect(),
            context: question.context.iter().flat_map(|it| visible::lines(it)).collect(),
            hash,
            ..OpenQuestion::default()
        })
    }

    /// The question that an answer is for.
    pub(super) fn question_for(&self, id: Option<&str>) -> Option<usize> {
        match id {
            None => (!self.questions.is_empty()).then_some(0),
            Some(id) => self.questions.iter().position(|question| question.id == id),
        }
    }

    /// Nobody waits for this answer: it goes into the next message, and is kept for an agent that asks
    /// again.
    pub(super) fn leave(&mut self, question: OpenQuestion, answer: String) {
        if question.native && !question.hash.is_empty() {
            let chosen = question.chosen(&answer).map(|it| it.number.to_string());
            let kept = chosen.unwrap_or_else(|| answer.clone());
            self.kept_answers.push(Kept { hash: question.hash, answer: kept });
        }
        self.given.push(Given { question: question.text, answer });
    }

    /// A request is gone: answers to some of its questions are left for later.
    pub(super) fn leave_partly(&mut self, is_gone: impl Fn(&RequestId) -> bool) {
        for Partly { question, answer } in std::mem::take(&mut self.partly) {
            match &question.waits {
                Some(waits) if !is_gone(&waits.request) => {
                    self.partly.push(Partly { question, answer });
                }
                _ => self.leave(question, answer),
            }
        }
    }

    /// No request outlives the process it was asked of.
    pub(super) fn nobody_waits(&mut self) {
        self.questions.iter_mut().for_each(|question| question.waits = None);
        self.leave_partly(|_| true);
    }

    /// A question that is asked again, and the answer that was kept for it: for the very same
    /// request and no other, however alike they look.
    pub(super) fn take_kept(&mut self) -> Option<(String, String)> {
        let open = self.questions.iter().filter(|question| question.waits.is_some());
        let found = open.into_iter().find_map(|question| {
            let at = self.kept_answers.iter().position(|kept| kept.hash == question.hash)?;
            Some((question.id.clone(), at))
        });
        found.map(|(id, at)| (id, self.kept_answers.remove(at).answer))
    }

    /// What the agent said of files.
    pub(super) fn claimed(&self) -> Vec<markers::FileChange> {
        let claims = self.claims.iter().map(|(path, word)| markers::FileChange {
            path: path.clone(),
            change: match word.as_str() {
                "created" => markers::Change::Created,
                "modified" => markers::Change::Modified,
                "deleted" => markers::Change::Deleted,
                word => match word.strip_prefix("renamed from ") {
                    Some(from) => markers::Change::Renamed { from: from.to_owned() },
                    None => markers::Change::Unknown,
                },
            },
        });
        claims.collect()
    }

    pub(super) fn claim(&mut self, file: &markers::FileChange) {
        let word = match &file.change {
            markers::Change::Created => "created".to_owned(),
            markers::Change::Modified => "modified".to_owned(),
            markers::Change::Deleted => "deleted".to_owned(),
            markers::Change::Renamed { from } => format!("renamed from {from}"),
            markers::Change::Unknown => String::new(),
        };
        self.claims.retain(|(path, _)| *path != file.path);
        self.claims.push((file.path.clone(), word));
    }
}
