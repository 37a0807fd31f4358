use clap::Parser;

use super::*;
use crate::args::{Cli, Command};

fn args(flags: &str) -> RunArgs {
    let words = ["tieline", "run"].into_iter().chain(flags.split_whitespace());
    match Cli::try_parse_from(words.chain(["hi"])).unwrap().command {
        Command::Run(args) => args,
        other => panic!("{other:?}"),
    }
}

/// What flags make of a mode and a policy: `mode` or `mode: ask + reach`, `-` if nothing changes.
fn decided(flags: &str, standing: Standing, agent: &str) -> Result<String, String> {
    let change = decide(&args(flags), standing, agent).map_err(|err| err.message().to_owned())?;
    Ok(match (change.mode, change.policy) {
        (None, None) => "-".to_owned(),
        (Some(mode), None) => mode.to_string(),
        (Some(mode), Some(policy)) => format!("{mode}: {policy}"),
        (None, Some(policy)) => format!("?: {policy}"),
    })
}

#[track_caller]
fn check(flags: &str, standing: Standing, expected: &str) {
    assert_eq!(decided(flags, standing, "codex").unwrap(), expected, "{flags}");
}

fn in_mode(mode: Mode) -> Standing {
    Standing { mode, policy: None }
}

#[test]
fn aliases_are_modes() {
    for agent in ["claude", "codex", "codex-exec", "codex-proto"] {
        let check = |flags: &str, expected: &str| {
            assert_eq!(decided(flags, Standing::default(), agent).unwrap(), expected, "{flags}");
        };
        check("", "-");
        check("--mode plan", "plan");
        check("--full-auto", "acceptEdits");
        check("--yolo", "yolo");
        check("--dangerously-bypass-approvals-and-sandbox", "yolo");
        check("-a on-request -s read-only", "default");
        check("--ask-for-approval on-request --sandbox workspace-write", "acceptEdits");
        check("-s workspace-write", "acceptEdits");
        check("-a never -s danger-full-access", "yolo");
    }
}

#[test]
fn a_pair_that_is_no_mode_is_a_policy_for_codex() {
    let default = Standing::default();
    check("-a untrusted -s workspace-write", default, "default: untrusted + workspace-write");
    check("-a on-failure", default, "default: on-failure + read-only");
    check("-a never", default, "default: never + read-only");
    check("-s danger-full-access", default, "default: on-request + danger-full-access");
    // The mode has a network, the pair has none.
    let bypass = in_mode(Mode::BypassPermissions);
    check("-a never -s workspace-write", bypass, "bypassPermissions: never + workspace-write");
}

#[test]
fn the_other_half_is_what_holds() {
    check(
        "--mode acceptEdits -a untrusted",
        in_mode(Mode::Plan),
        "acceptEdits: untrusted + workspace-write",
    );
    check("-a never", in_mode(Mode::AcceptEdits), "acceptEdits: never + workspace-write");
    check("-a on-request", in_mode(Mode::Yolo), "yolo: on-request + danger-full-access");
    let policy = "on-failure".parse().ok().zip("workspace-write".parse().ok());
    let policy = policy.map(|(ask, reach)| Policy { ask, reach });
    let standing = Standing { mode: Mode::Default, policy };
    check("-s danger-full-access", standing, "default: on-failure + danger-full-access");
    check("-a on-request", standing, "acceptEdits");
    // A mode that is named goes before the conversation's policy.
    check("--mode default -a untrusted", standing, "default: untrusted + read-only");
    check("", standing, "-");
}

#[test]
fn a_half_that_changes_nothing_keeps_the_mode() {
    check("-s read-only", in_mode(Mode::Plan), "-");
    check("-a never", in_mode(Mode::BypassPermissions), "-");
    check("--mode plan -a on-request", Standing::default(), "plan");
    check(
        "--mode bypassPermissions -a never -s workspace-write",
        Standing::default(),
        "bypassPermissions",
    );
}

#[test]
fn plan_mode_is_not_left_by_half() {
    for standing in [in_mode(Mode::Plan), Standing::default()] {
        let flags = if standing.mode == Mode::Plan { "-a never" } else { "--mode plan -a never" };
        let told = decided(flags, standing, "codex").unwrap_err();
        assert!(told.contains("plan") && told.contains("never + read-only"), "{told}");
    }
    check("-a never -s read-only", in_mode(Mode::Plan), "default: never + read-only");
}

#[test]
fn a_mode_that_both_flags_contradict_is_refused() {
    let told = decided("--mode yolo -a untrusted -s read-only", Standing::default(), "codex");
    let told = told.unwrap_err();
    assert!(told.contains("--mode yolo is never + danger-full-access"), "{told}");
}

#[test]
fn the_engine_takes_every_pair() {
    for agent in ["engine", "demo"] {
        let check = |flags: &str, expected: &str| {
            assert_eq!(decided(flags, Standing::default(), agent).unwrap(), expected, "{flags}");
        };
        check("-a never -s read-only", "default: never + read-only");
        check("-s workspace-write", "acceptEdits");
        check("--full-auto", "acceptEdits");
        check("-a never -s danger-full-access", "yolo");
        // It asks more in this mode than others do.
        check("-a untrusted -s read-only", "default");
        check("--mode default -a untrusted", "default");
        check("-s read-only", "-");
        check("-a untrusted", "-");
        check("-a on-request", "default: on-request + read-only");
        check("-a on-request -s read-only", "default: on-request + read-only");
        // A wider sandbox is no leave not to ask.
        check("-s danger-full-access", "default: untrusted + danger-full-access");
        let policy = Policy::of(Mode::Default);
        let standing = Standing { mode: Mode::Default, policy: Some(policy) };
        let kept = decided("-s read-only", standing, agent).unwrap();
        assert_eq!(kept, "default: on-request + read-only", "a policy is not dropped for a mode");
    }
}

#[test]
fn other_agents_are_told_the_nearest_modes() {
    let agent = "claude";
    let told = |flags: &str| decided(flags, Standing::default(), agent).unwrap_err();
    let near = |flags: &str| told(flags).split_once("nearest: ").unwrap().1.to_owned();
    assert!(told("-a never").contains(&format!("the agent {agent} knows only modes")));
    assert_eq!(
        near("-a never -s workspace-write"),
        "--mode bypassPermissions (never + workspace-write, with a network)"
    );
    assert_eq!(near("-a untrusted"), "--mode default (on-request + read-only)");
    assert_eq!(
        near("-s danger-full-access"),
        "--mode default (on-request + read-only), --mode acceptEdits (on-request + workspace-write), \
         --mode yolo (never + danger-full-access)"
    );
}

#[test]
fn flags_that_say_two_things_are_refused() {
    for flags in [
        "--yolo --mode plan",
        "--yolo --full-auto",
        "--yolo -a never",
        "--yolo -s read-only",
        "--full-auto --mode acceptEdits",
        "--full-auto -a never",
        "--full-auto -s workspace-write",
        "-a sometimes",
        "-s nowhere",
    ] {
        let words = ["tieline", "run"].into_iter().chain(flags.split_whitespace()).chain(["hi"]);
        assert!(Cli::try_parse_from(words).is_err(), "{flags}");
    }
}
