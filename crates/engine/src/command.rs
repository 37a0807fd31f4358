//! Commands before they run: what they say, what they may do, and whether somebody is asked.
//!
//! Everything here looks at the words of a command as the shell would cut them, never at a piece of
//! its text. Where the words are not plain, the answer is that nothing is known of it.

mod danger;
mod decide;
mod known;
mod rules;
mod script;
mod summary;
mod terms;

pub use decide::{
    Asked, Decision, Granted, Touched, decide, decide_patch, looks_denied, retry_outside,
};
pub use known::{Safety, safety};
pub use rules::{Rule, RuleDecision, Rules, RulesError, Verdict, proposed_rule};
pub use script::{plain_script, segments};
pub use summary::{ParsedCommand, parsed_cmd};
pub use terms::{Ask, Granular, Sandbox, Terms};

/// Where the system's own programs are.
const PLACES: [&str; 4] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"];

/// The name of a program that is found by its name alone or in a place of the system's own. One
/// from anywhere else may be any program.
fn system_name(program: &str) -> Option<&str> {
    let name = PLACES.iter().find_map(|place| program.strip_prefix(place)).unwrap_or(program);
    (!name.contains('/')).then_some(name)
}

/// The last part of a program's path, wherever it is.
fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The words of a command in a form that a shell would take.
fn shown(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}
