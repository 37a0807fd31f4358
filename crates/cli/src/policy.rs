//! What the flags about approvals and sandboxes mean: a mode where there is one, else a policy.

use tieline_agent::codex_proto::engine_policy;
use tieline_event::{Mode, Policy};

use crate::agents::{is_engine, takes_pairs};
use crate::args::RunArgs;
use crate::error::Error;

#[cfg(test)]
mod tests;

/// What holds without a word from the user.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Standing {
    pub(crate) mode: Mode,
    pub(crate) policy: Option<Policy>,
}

/// What to change; none stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) mode: Option<Mode>,
    pub(crate) policy: Option<Policy>,
}

impl Change {
    fn mode(mode: Mode) -> Self {
        Self { mode: Some(mode), policy: None }
    }
}

/// What the flags of a run say for an agent.
pub(crate) fn decide(args: &RunArgs, standing: Standing, agent: &str) -> Result<Change, Error> {
    if args.full_auto {
        return Ok(Change::mode(Mode::AcceptEdits));
    }
    if args.yolo {
        return Ok(Change::mode(Mode::Yolo));
    }
    let (ask, reach) = (args.ask_for_approval, args.sandbox);
    if ask.is_none() && reach.is_none() {
        return Ok(Change { mode: args.mode, policy: None });
    }
    let means = |mode| meaning(agent, mode);
    let mode = args.mode.unwrap_or(standing.mode);
    let kept = standing.policy.filter(|_| args.mode.is_none());
    let is_whole = ask.is_some() && reach.is_some();
    let with =
        |half: Policy| Policy { ask: ask.unwrap_or(half.ask), reach: reach.unwrap_or(half.reach) };
    let policy = with(kept.unwrap_or(means(mode)));
    // Who says nothing of asking leaves that to a mode, if the rest is one.
    let plain = with(Policy::of(mode));
    let leaves = ask.is_none() && kept.is_none();
    let is_mode = |mode| policy == means(mode) || leaves && plain == Policy::of(mode);
    // Said twice in two ways.
    if args.mode.is_some() && is_mode(mode) {
        return Ok(Change::mode(mode));
    }
    if args.mode.is_some() && is_whole {
        return Err(Error::usage(format!(
            "--mode {mode} is {}, --ask-for-approval and --sandbox say {policy}; leave one of the \
             two out",
            means(mode)
        )));
    }
    // A half that changes nothing leaves the mode as it is, with what is more to it than the pair.
    let stays = !is_whole && standing.policy.is_none() && is_mode(mode);
    if stays {
        return Ok(Change::default());
    }
    if mode == Mode::Plan && !is_whole {
        return Err(Error::usage(format!(
            "the mode is plan, which is {}; {policy} would be no plan mode: choose another --mode \
             with it, or give both --ask-for-approval and --sandbox",
            means(mode)
        )));
    }
    let modes = [Mode::Default, Mode::AcceptEdits, Mode::Yolo];
    if let Some(mode) = modes.into_iter().find(|mode| is_mode(*mode)) {
        return Ok(Change::mode(mode));
    }
    if !takes_pairs(agent) {
        return Err(Error::usage(format!(
            "the agent {agent} knows only modes, and {policy} is none; the nearest: {}",
            nearest(policy)
        )));
    }
    // The policy goes before the mode; plan would only be a wrong name for it.
    let mode = if mode == Mode::Plan { Mode::Default } else { mode };
    Ok(Change { mode: Some(mode), policy: Some(policy) })
}

/// What a mode means to an agent.
fn meaning(agent: &str, mode: Mode) -> Policy {
    match is_engine(agent) {
        true => engine_policy(mode, None),
        false => Policy::of(mode),
    }
}

/// The modes that share most with a policy.
fn nearest(policy: Policy) -> String {
    let modes = [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions, Mode::Yolo];
    let shared = |mode: &Mode| {
        let pair = Policy::of(*mode);
        usize::from(pair.ask == policy.ask) + usize::from(pair.reach == policy.reach)
    };
    let most = modes.iter().map(shared).max().unwrap_or(0);
    let near = modes.iter().filter(|mode| shared(mode) == most);
    let near: Vec<String> = near.map(|mode| format!("--mode {mode} ({})", named(*mode))).collect();
    near.join(", ")
}

fn named(mode: Mode) -> String {
    match mode {
        Mode::BypassPermissions => format!("{}, with a network", Policy::of(mode)),
        _ => Policy::of(mode).to_string(),
    }
}
