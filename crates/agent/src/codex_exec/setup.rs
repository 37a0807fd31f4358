//! Starting `codex exec`: what each version takes and prints.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use tieline_event::{AskWhen, Failure, FailureCode, Mode, Policy, Reach};

use super::usage::Counting;
use crate::codex::{Codex, Rules, Version, effort_setting, notify_override, server_settings};
use crate::driver::{Launch, Resume, checked_argument};

/// What a version takes and prints.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    /// The first version of which this is known.
    since: Version,
    /// The flag that makes it print events.
    events: &'static str,
    /// It says when a turn is over. Before, the turn ends with the process.
    pub(super) tells_end: bool,
    /// What its figures count.
    pub(super) counting: Counting,
    /// It can branch off from a session.
    pub(super) forks: bool,
}

/// Seen with 0.36, 0.42, 0.50, 0.80, 0.110, 0.140 and 0.166. In 0.42 the old events do not name the
/// session, so that it could not be resumed; the draft of the new ones does. `exec fork` is not in
/// 0.140 and came after 0.149.
const DIALECTS: &[Dialect] = &[
    Dialect {
        since: Version(0, 0, 0),
        events: "--json",
        tells_end: false,
        counting: Counting::Process,
        forks: false,
    },
    Dialect {
        since: Version(0, 42, 0),
        events: "--experimental-json",
        tells_end: false,
        counting: Counting::Process,
        forks: false,
    },
    Dialect {
        since: Version(0, 43, 0),
        events: "--json",
        tells_end: true,
        counting: Counting::Process,
        forks: false,
    },
    Dialect {
        since: Version(0, 51, 0),
        events: "--json",
        tells_end: true,
        counting: Counting::Either,
        forks: false,
    },
    Dialect {
        since: Version(0, 110, 0),
        events: "--json",
        tells_end: true,
        counting: Counting::Thread,
        forks: false,
    },
    Dialect {
        since: Version(0, 150, 0),
        events: "--json",
        tells_end: true,
        counting: Counting::Thread,
        forks: true,
    },
];

impl Dialect {
    pub(super) fn of(version: Version) -> Self {
        let [oldest, newer @ ..] = DIALECTS else { unreachable!("the table is not empty") };
        *newer.iter().rev().find(|dialect| version >= dialect.since).unwrap_or(oldest)
    }
}

/// The first version that is known to take further directories to write in.
const FIRST_ADD_DIR: Version = Version(0, 60, 0);

/// Flags of the user that would decide what the mode decides.
const REACH_FLAGS: &[&str] = &[
    "-s",
    "--sandbox",
    "--full-auto",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
    "--approve-for-me",
    "--not-so-yolo",
];

/// The whole command line. Everything stands between `exec` and `resume`: some flags are taken
/// nowhere else, and no version refuses one there.
pub(super) fn arguments(
    codex: &Codex,
    version: Version,
    launch: &Launch<'_>,
    pictures: &[PathBuf],
) -> Result<Vec<OsString>, Failure> {
    let dialect = Dialect::of(version);
    let given = |flags: &[&str]| codex.args.iter().find(|word| is_flag(word, flags));
    if let Some(word) = given(REACH_FLAGS) {
        return Err(Failure::new(
            FailureCode::BadRequest,
            format!("{word} in args would decide what the mode decides"),
        )
        .hint("take it out of args and choose a --mode, or a policy"));
    }
    let mut words: Vec<String> = vec!["exec".to_owned()];
    words.extend(codex.args.iter().cloned());
    let mut add = |new: &[&str]| words.extend(new.iter().map(|word| (*word).to_owned()));
    // A flag given twice is an error there.
    if given(&["--json", "--experimental-json"]).is_none() {
        add(&[dialect.events]);
    }
    if given(&["--skip-git-repo-check"]).is_none() {
        // The workspace was chosen explicitly.
        add(&["--skip-git-repo-check"]);
    }
    if let Some(model) = launch.model {
        if let Some(word) = given(&["-m", "--model"]) {
            return Err(Failure::new(
                FailureCode::BadRequest,
                format!("{word} in args and the model {model:?} contradict each other"),
            )
            .hint("take it out of args; `model` in our configuration does the same"));
        }
        add(&["-m", checked_argument("model", model)?]);
    }
    if let Some(effort) = launch.effort {
        add(&["-c", &effort_setting(checked_argument("effort", effort)?)]);
    }
    // That flag takes every word up to the next flag, and one of these follows.
    for picture in pictures {
        add(&["-i", checked_argument("picture's file", &picture.to_string_lossy())?]);
    }
    let rules = Rules::of(launch.mode, launch.policy);
    add(reach(rules));
    for setting in server_settings(launch.extras).0 {
        add(&["-c", &setting]);
    }
    if rules.policy.reach == Reach::WorkspaceWrite && version >= FIRST_ADD_DIR {
        for directory in &launch.extras.directories {
            add(&["--add-dir", checked_argument("directory", &directory.to_string_lossy())?]);
        }
    }
    if let Some(notify) = &codex.notify {
        add(&["-c", &notify_override(notify)]);
    }
    if let Some(Resume { session, fork, .. }) = launch.resume {
        if fork && !dialect.forks {
            return Err(Failure::new(
                FailureCode::BadRequest,
                format!("`codex exec` {version} cannot branch off from a session"),
            )
            .hint("update Codex: npm install -g @openai/codex@latest; or use --agent codex"));
        }
        let command = if fork { "fork" } else { "resume" };
        add(&[command, checked_argument("session id", session)?]);
    }
    // The prompt comes on stdin.
    add(&["-"]);
    Ok(words.into_iter().map(OsString::from).collect())
}

fn is_flag(word: &str, flags: &[&str]) -> bool {
    flags.iter().any(|flag| match word.strip_prefix(flag) {
        Some("") => true,
        // `--sandbox=x`, `-sx`
        Some(rest) => rest.starts_with('=') || !flag.starts_with("--"),
        None => false,
    })
}

/// The flags for what commands can reach. A resumed session takes it from them alone.
fn reach(rules: Rules) -> &'static [&'static str] {
    const NEVER: &str = "approval_policy=\"never\"";
    match (rules.policy.reach, rules.policy.ask, rules.network) {
        (Reach::ReadOnly, ..) => &["-s", "read-only", "-c", NEVER],
        (Reach::WorkspaceWrite, _, network) => {
            // Said in both cases, because the user's own configuration may say otherwise.
            match network {
                true => &[
                    "-s",
                    "workspace-write",
                    "-c",
                    "sandbox_workspace_write.network_access=true",
                    "-c",
                    NEVER,
                ],
                false => &[
                    "-s",
                    "workspace-write",
                    "-c",
                    "sandbox_workspace_write.network_access=false",
                    "-c",
                    NEVER,
                ],
            }
        }
        (Reach::DangerFullAccess, AskWhen::Never, _) => {
            &["--dangerously-bypass-approvals-and-sandbox"]
        }
        (Reach::DangerFullAccess, ..) => &["-s", "danger-full-access", "-c", NEVER],
    }
}

/// What to say of the plan mode where a wire has none.
pub(crate) fn plan_mode_off(command: &str) -> (&'static str, String) {
    let text = format!(
        "`codex {command}` has no plan mode: the agent can change nothing, but nobody tells it to \
         plan; --agent codex has one"
    );
    ("plan_mode_off", text)
}

/// What of the client's extras is left out: a stable name and a sentence for each.
pub(super) fn left_out(version: Version, launch: &Launch<'_>) -> Vec<(&'static str, String)> {
    let (_, servers) = server_settings(launch.extras);
    let mut left_out: Vec<_> = servers.into_iter().map(|text| ("mcp_not_used", text)).collect();
    let reach = Rules::of(launch.mode, launch.policy).policy.reach;
    let is_needed = reach == Reach::WorkspaceWrite && !launch.extras.directories.is_empty();
    if is_needed && version < FIRST_ADD_DIR {
        let text = format!(
            "`codex exec` {version} writes in the workspace alone, not in the client's other \
             directories; --agent codex does"
        );
        left_out.push(("directories_not_used", text));
    }
    left_out
}

/// What the user has to know before it starts: a stable name and a sentence.
pub(super) fn caveat(mode: Mode, policy: Option<Policy>) -> Option<(&'static str, String)> {
    let rules = Rules::of(mode, policy);
    if rules.plan {
        return Some(plan_mode_off("exec"));
    }
    let Policy { ask, reach } = rules.policy;
    if ask == AskWhen::Never {
        return None;
    }
    let wish = match policy {
        Some(policy) => format!("the policy {policy}"),
        None => format!("the mode {mode}"),
    };
    let refused = match reach {
        Reach::DangerFullAccess => "nothing is asked and nothing is refused".to_owned(),
        _ => format!("what the sandbox {reach} forbids is refused"),
    };
    Some((
        "approvals_off",
        format!("`codex exec` cannot ask, as {wish} would: {refused}; --agent codex can ask"),
    ))
}
