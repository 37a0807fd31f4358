//! Whether a command or a patch goes ahead, waits for an answer, or does not happen.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tieline_event::AskWhen;

use super::known::{Safety, is_git, safety_of};
use super::rules::{Rules, Verdict, proposed_rule};
use super::script::segments;
use super::terms::{Ask, Granular, Sandbox, Terms};

#[cfg(test)]
mod tests;

/// A command that the model wants to run.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its words.
    pub command: &'a [String],
    /// The model wants it outside of the sandbox.
    pub escalate: bool,
    /// The model's own words on why.
    pub justification: Option<&'a str>,
    /// What the model would have as the prefix of a rule.
    pub suggested: Option<&'a [String]>,
    /// Somebody said yes to exactly this for the rest of the session.
    pub granted: bool,
}

/// What becomes of a command or a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It goes ahead.
    Run {
        /// Held by this.
        within: Sandbox,
    },
    /// Somebody is asked.
    Ask {
        /// Why, in our own words.
        why: String,
        /// Why, in the model's.
        said: Option<String>,
        /// The words of a rule that would make the question needless.
        proposed_rule: Option<Vec<String>>,
        /// Held by this, once it is approved.
        within: Sandbox,
    },
    /// It does not happen, and the model is told.
    Forbid {
        /// Why, and what to do instead.
        reason: String,
    },
}

/// What becomes of a command.
///
/// A harmless command stays in the sandbox even if the model wants it outside: it can read there.
/// Where nobody is asked, a wish to leave the sandbox has no effect.
pub fn decide(terms: &Terms, asked: &Asked<'_>, rules: &Rules) -> Decision {
    let parts = segments(asked.command);
    let (open, ruled) = match rules.judge(&parts) {
        Verdict::Forbid(reason) => return Decision::Forbid { reason },
        Verdict::Prompt(reason) => (Vec::new(), Some(reason)),
        Verdict::AllowAll if !terms.plan => return Decision::Run { within: terms.outside() },
        Verdict::AllowAll => (parts.clone(), None),
        Verdict::Open(open) => (open, None),
    };
    let leaves = asked.escalate && terms.sandbox.is_ours();
    if asked.granted && !terms.plan {
        return Decision::Run { within: if leaves { terms.outside() } else { terms.approved } };
    }
    let question = Question { terms, asked, parts: &parts, leaves };
    if let Some(reason) = ruled {
        return question.ask(Sort::Rule, reason);
    }
    let inside = Decision::Run { within: terms.sandbox };
    // Git runs what a repository's own configuration names: monitors, filters, programs that show a
    // difference. That is harmless where the sandbox holds it.
    let is_held = terms.sandbox.is_ours() || !open.iter().any(|words| is_git(words));
    match (safety_of(&open), terms.ask) {
        (Safety::Safe, _) if is_held => inside,
        (Safety::Dangerous, _) => {
            question.ask(Sort::Sandbox, "it can destroy what cannot be brought back".to_owned())
        }
        (_, Ask::When(AskWhen::Untrusted)) => {
            question.ask(Sort::Sandbox, "it is not known to be harmless".to_owned())
        }
        (_, Ask::When(AskWhen::OnRequest) | Ask::Granular(_)) if leaves => {
            question.ask(Sort::Sandbox, "it is to run outside of the sandbox".to_owned())
        }
        _ => inside,
    }
}

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Rule,
    Sandbox,
}

/// A question that comes up, if questions are asked.
struct Question<'a> {
    terms: &'a Terms,
    asked: &'a Asked<'a>,
    parts: &'a [Vec<String>],
    leaves: bool,
}

impl Question<'_> {
    fn ask(&self, sort: Sort, reason: String) -> Decision {
        if self.terms.plan {
            return Decision::Forbid {
                reason: format!("{reason}, and nothing is changed while planning"),
            };
        }
        let is_asked = match self.terms.ask {
            Ask::When(AskWhen::Never) => false,
            Ask::When(_) => true,
            Ask::Granular(sorts) => match sort {
                Sort::Rule => sorts.rules,
                Sort::Sandbox => sorts.sandbox_approval,
            },
        };
        if !is_asked {
            return Decision::Forbid {
                reason: format!("{reason}, and nobody is asked here; find another way"),
            };
        }
        // With a rule of the user's own in the way, another one would not help.
        let proposed = match sort {
            Sort::Rule => None,
            Sort::Sandbox => proposed_rule(self.parts, self.asked.suggested),
        };
        let said = self.asked.justification.map(str::trim).filter(|words| !words.is_empty());
        Decision::Ask {
            why: reason,
            said: said.map(str::to_owned),
            proposed_rule: proposed,
            within: if self.leaves { self.terms.outside() } else { self.terms.approved },
        }
    }
}

/// Where the paths of a patch are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touched<'a> {
    /// All of them in the workspace or in another place that could be written.
    Inside,
    /// Some of them elsewhere.
    Outside,
    /// Some of them where other programs run or obey what they find; these, by name.
    Protected(&'a str),
}

/// What becomes of a patch. `granted` says that somebody said yes to all of its paths for the rest of
/// the session.
pub fn decide_patch(terms: &Terms, touched: Touched<'_>, granted: bool) -> Decision {
    let within = match touched {
        Touched::Inside if terms.sandbox.is_ours() => Sandbox::WorkspaceWrite,
        _ => terms.outside(),
    };
    let run = Decision::Run { within };
    let forbid = |reason: &str| Decision::Forbid { reason: reason.to_owned() };
    let ask = |why: &str| {
        let (why, said) = (why.to_owned(), None);
        Decision::Ask { why, said, proposed_rule: None, within }
    };
    if terms.plan {
        return forbid("nothing is changed while planning; put the change into the plan");
    }
    if granted {
        return run;
    }
    let is_held = match terms.sandbox {
        Sandbox::ReadOnly => false,
        Sandbox::WorkspaceWrite => touched == Touched::Inside,
        Sandbox::None | Sandbox::External => true,
    };
    let reason = match touched {
        Touched::Protected(names) => {
            format!("it changes what other programs run or obey: {names}")
        }
        _ => "it writes outside of what may be written".to_owned(),
    };
    match (terms.ask, touched) {
        (Ask::When(AskWhen::Untrusted), Touched::Protected(_)) => ask(&reason),
        (Ask::When(AskWhen::Untrusted), _) => ask("every change is asked for"),
        _ if is_held => run,
        (Ask::When(AskWhen::Never), _)
        | (Ask::Granular(Granular { sandbox_approval: false, .. }), _) => {
            forbid(&format!("{reason}, and nobody is asked here"))
        }
        (Ask::When(AskWhen::OnRequest | AskWhen::OnFailure) | Ask::Granular(_), _) => ask(&reason),
    }
}

/// What somebody said yes to for the rest of a session.
#[derive(Debug, Clone, Default)]
pub struct Granted {
    commands: HashSet<(Vec<String>, PathBuf, bool)>,
    files: HashSet<PathBuf>,
}

impl Granted {
    /// Remembers a command: exactly these words, there, with or without the sandbox.
    pub fn command(&mut self, command: &[String], cwd: &Path, escalate: bool) {
        self.commands.insert((command.to_vec(), cwd.to_owned(), escalate));
    }

    /// Whether exactly this was allowed.
    pub fn has_command(&self, command: &[String], cwd: &Path, escalate: bool) -> bool {
        self.commands.contains(&(command.to_vec(), cwd.to_owned(), escalate))
    }

    /// Remembers the files of a patch.
    pub fn files<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>) {
        self.files.extend(paths.into_iter().map(Path::to_owned));
    }

    /// Whether each of these files was allowed.
    pub fn has_files<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> bool {
        paths.into_iter().all(|path| self.files.contains(path))
    }
}

/// Whether a command looks as if the sandbox had kept it from something. It can only be guessed.
pub fn looks_denied(exit_code: i32, output: &str) -> bool {
    /// 128 and the number of SIGSYS, which the filter of system calls raises.
    const BY_FILTER: i32 = 128 + 31;
    const WORDS: [&str; 7] = [
        "operation not permitted",
        "permission denied",
        "read-only file system",
        "seccomp",
        "sandbox",
        "landlock",
        "failed to write file",
    ];
    match exit_code {
        BY_FILTER => true,
        // Wrong usage, not a program, no such program.
        0 | 2 | 126 | 127 => false,
        _ => {
            let output = output.to_lowercase();
            WORDS.iter().any(|word| output.contains(word))
        }
    }
}

/// Why somebody is asked to let a command run again outside of the sandbox, if they are, after it
/// was kept from something there.
pub fn retry_outside(terms: &Terms) -> Option<&'static str> {
    let asks = matches!(terms.ask, Ask::When(AskWhen::OnFailure | AskWhen::Untrusted));
    (asks && terms.sandbox.is_ours()).then_some(
        "it failed inside of the sandbox, which may have kept it from something; a yes runs it \
         again, outside of the sandbox",
    )
}
