//! Rules of the user's own: what commands that begin with certain words may do.
//!
//! ```toml
//! [[rule]]
//! prefix = ["git", "push"]
//! decision = "prompt"
//! reason = "others see it"
//! ```

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use serde::Deserialize;

use super::danger::{is_dangerous, started};
use super::known::{Safety, safety_of};
use super::script::is_shell;
use super::{base_name, shown, system_name};

#[cfg(test)]
mod tests;

/// A larger file is none of ours.
const LARGEST: u64 = 1024 * 1024;

/// What is done with a command that a rule is about, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleDecision {
    /// It runs, outside of the sandbox.
    Allow,
    /// Somebody is asked.
    Prompt,
    /// It does not run.
    Forbid,
}

/// What is done with commands that begin with certain words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The words.
    pub prefix: Vec<String>,
    /// What is done.
    pub decision: RuleDecision,
    /// Why, for whoever is asked or refused.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Why there are no rules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file cannot be read or written.
    #[error("cannot {what} the rules at {path}")]
    Io {
        /// `read` or `write`.
        what: &'static str,
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The file has no rules in it.
    #[error("the rules at {path} are not understood: {reason}; mend or remove the file")]
    Form {
        /// The file.
        path: String,
        /// Where and why.
        reason: String,
    },
}

/// What the rules say of a command as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It must not run.
    Forbid(String),
    /// Somebody is to be asked.
    Prompt(String),
    /// Every part of it may run, outside of the sandbox.
    AllowAll,
    /// These parts of it are left to be judged otherwise.
    Open(Vec<Vec<String>>),
}

/// Rules, in the order they stand in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Each.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
}

impl Rules {
    /// Reads the rules of a text.
    ///
    /// # Errors
    /// Where and why it is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rules: Self = toml::from_str(text).map_err(|err| err.to_string())?;
        match rules.rules.iter().position(|rule| rule.prefix.is_empty()) {
            Some(at) => Err(format!("the prefix of rule {} has no words", at + 1)),
            None => Ok(rules),
        }
    }

    /// Reads the rules of a file. No file means no rules. It blocks.
    ///
    /// # Errors
    /// A file that cannot be read, or is not understood: somebody's `forbid` may be in it.
    pub fn load(path: &Path) -> Result<Self, RulesError> {
        let shown = || path.display().to_string();
        let read = || {
            let mut text = String::new();
            let file = File::open(path)?;
            if !file.metadata()?.is_file() {
                return Err(std::io::Error::other("not a file"));
            }
            file.take(LARGEST + 1).read_to_string(&mut text)?;
            Ok(text)
        };
        match read() {
            Ok(text) if text.len() as u64 > LARGEST => {
                Err(RulesError::Form { path: shown(), reason: "too large".to_owned() })
            }
            Ok(text) => {
                Self::parse(&text).map_err(|reason| RulesError::Form { path: shown(), reason })
            }
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(RulesError::Io { what: "read", path: shown(), source }),
        }
    }

    /// Adds a rule to the end of a file, and leaves the rest of it, comments too, as it is. It
    /// blocks.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn append(path: &Path, rule: &Rule) -> Result<(), RulesError> {
        let write = || {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            // One write, so that two sessions that add a rule at a time both do.
            file.write_all(rule.to_toml().as_bytes())?;
            file.sync_data()
        };
        write().map_err(|source| RulesError::Io {
            what: "write",
            path: path.display().to_string(),
            source,
        })
    }

    /// What they say of a command that consists of these. The strictest word counts, and a rule
    /// that is not about allowing also sees what `sudo` or `env` would start.
    pub fn judge(&self, segments: &[Vec<String>]) -> Verdict {
        let mut strictest: Option<&Rule> = None;
        let mut open = Vec::new();
        for segment in segments {
            let found = self.strictest(segment);
            match found {
                Some(rule) if rule.decision > RuleDecision::Allow => {
                    strictest = strictest.filter(|it| it.decision >= rule.decision).or(found);
                }
                Some(_) => {}
                None => open.push(segment.clone()),
            }
        }
        match strictest {
            Some(rule) if rule.decision == RuleDecision::Forbid => Verdict::Forbid(rule.words()),
            Some(rule) => Verdict::Prompt(rule.words()),
            None if open.is_empty() && !segments.is_empty() => Verdict::AllowAll,
            None => Verdict::Open(open),
        }
    }

    fn strictest(&self, segment: &[String]) -> Option<&Rule> {
        let behind: Vec<Vec<String>> =
            std::iter::successors(started(segment), |argv| started(argv)).take(8).collect();
        self.rules
            .iter()
            .filter(|rule| match rule.decision {
                RuleDecision::Allow => {
                    rule.is_about(segment, system_name) && rule.covers_danger_of(segment)
                }
                _ => std::iter::once(segment)
                    .chain(behind.iter().map(Vec::as_slice))
                    .any(|argv| rule.is_about(argv, |program| Some(base_name(program)))),
            })
            .max_by_key(|rule| rule.decision)
    }
}

impl Rule {
    /// A rule that lets commands run.
    pub fn allow(prefix: Vec<String>) -> Self {
        Self { prefix, decision: RuleDecision::Allow, reason: None }
    }

    /// Whether a command begins with its words. A program may also be written with its path, as far
    /// as `name` makes a name of that.
    fn is_about(&self, argv: &[String], name: impl Fn(&str) -> Option<&str>) -> bool {
        let (Some((first, rest)), Some((program, arguments))) =
            (self.prefix.split_first(), argv.split_first())
        else {
            return false;
        };
        (program == first || name(program) == Some(first)) && arguments.starts_with(rest)
    }

    /// Whoever allowed `git push` did not mean `git push --force`: what is dangerous is allowed only
    /// by a rule whose own words are.
    fn covers_danger_of(&self, argv: &[String]) -> bool {
        !is_dangerous(argv) || is_dangerous(&self.prefix)
    }

    fn words(&self) -> String {
        let prefix = shown(&self.prefix);
        match (&self.reason, self.decision) {
            (Some(reason), _) => format!("a rule about `{prefix}`: {reason}"),
            (None, RuleDecision::Forbid) => format!("a rule forbids `{prefix}`"),
            (None, _) => format!("a rule wants to be asked about `{prefix}`"),
        }
    }

    fn to_toml(&self) -> String {
        let string = |text: &String| toml::Value::String(text.clone()).to_string();
        let words: Vec<String> = self.prefix.iter().map(string).collect();
        let decision = match self.decision {
            RuleDecision::Allow => "allow",
            RuleDecision::Prompt => "prompt",
            RuleDecision::Forbid => "forbid",
        };
        let reason = self.reason.iter().map(|reason| format!("reason = {}\n", string(reason)));
        format!(
            "\n[[rule]]\nprefix = [{}]\ndecision = \"{decision}\"\n{}",
            words.join(", "),
            reason.collect::<String>()
        )
    }
}

/// The words of a rule that would allow this command from now on, if such a rule is sensible: not
/// for a command that can start any other, and not for one that is dangerous.
///
/// `suggested` is what the model would have as a prefix. It counts when it fits the command.
pub fn proposed_rule(
    segments: &[Vec<String>],
    suggested: Option<&[String]>,
) -> Option<Vec<String>> {
    let mut unknown =
        segments.iter().filter(|argv| safety_of(std::slice::from_ref(*argv)) != Safety::Safe);
    let (Some(argv), None) = (unknown.next(), unknown.next()) else { return None };
    let is_fit =
        |prefix: &[String]| !prefix.is_empty() && argv.starts_with(prefix) && !is_too_broad(prefix);
    if safety_of(std::slice::from_ref(argv)) == Safety::Dangerous {
        return None;
    }
    suggested
        .filter(|prefix| is_fit(prefix))
        .or_else(|| is_fit(argv).then_some(argv.as_slice()))
        .map(<[String]>::to_vec)
}

/// Whether a prefix would let nearly everything pass.
fn is_too_broad(prefix: &[String]) -> bool {
    const STARTERS: [&str; 26] = [
        "sudo", "doas", "su", "env", "nohup", "nice", "ionice", "timeout", "time", "xargs",
        "command", "builtin", "exec", "eval", "source", ".", "busybox", "toybox", "parallel",
        "setsid", "stdbuf", "chroot", "ssh", "watch", "trap", "script",
    ];
    const DESTROYERS: [&str; 6] = ["rm", "rmdir", "shred", "dd", "mkfs", "find"];
    const INTERPRETERS: [&str; 14] = [
        "python",
        "node",
        "nodejs",
        "deno",
        "bun",
        "ruby",
        "perl",
        "php",
        "lua",
        "osascript",
        "awk",
        "gawk",
        "tclsh",
        "Rscript",
    ];
    const MANY_IN_ONE: [&str; 22] = [
        "git",
        "npm",
        "npx",
        "pnpm",
        "yarn",
        "cargo",
        "go",
        "pip",
        "pip3",
        "uv",
        "uvx",
        "poetry",
        "docker",
        "podman",
        "kubectl",
        "make",
        "just",
        "gh",
        "apt",
        "brew",
        "systemctl",
        "tsx",
    ];
    const ANY_SCRIPT: [&str; 6] = ["run", "exec", "x", "run-script", "dlx", "compose"];
    let [program, rest @ ..] = prefix else { return true };
    // The words are shown to somebody, and must be what they look like.
    if prefix.iter().any(|word| word.chars().any(char::is_control)) {
        return true;
    }
    let name = base_name(program);
    // `python3.12` is a python.
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if is_shell(program) || STARTERS.contains(&name) || DESTROYERS.contains(&name) {
        return true;
    }
    if INTERPRETERS.contains(&bare) || INTERPRETERS.contains(&name) {
        return match rest {
            [] => true,
            [flag, module, ..] if flag == "-m" => module.starts_with('-'),
            [first, ..] => first.starts_with('-'),
        };
    }
    if MANY_IN_ONE.contains(&name) {
        return match rest {
            [] => true,
            [verb] => verb.starts_with('-') || ANY_SCRIPT.contains(&verb.as_str()),
            // `git -c alias.x='!…' x` is any program.
            [verb, ..] => verb.starts_with('-'),
        };
    }
    false
}
