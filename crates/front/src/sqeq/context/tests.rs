use super::*;

fn standing(ask: AskWhen, reach: Reach) -> Standing {
    Standing::of(Mode::Default, Some(Policy { ask, reach }))
}

#[test]
fn policies_are_the_nearest_mode_and_more_only_where_they_are_more() {
    use AskWhen::{Never, OnFailure, OnRequest, Untrusted};
    use Reach::{DangerFullAccess, ReadOnly, WorkspaceWrite};
    for (ask, reach, mode, is_exact) in [
        (OnRequest, ReadOnly, Mode::Default, false),
        (OnRequest, WorkspaceWrite, Mode::AcceptEdits, true),
        (Never, DangerFullAccess, Mode::Yolo, true),
        (Never, WorkspaceWrite, Mode::BypassPermissions, false),
        (Never, ReadOnly, Mode::Default, false),
        (Untrusted, WorkspaceWrite, Mode::Default, false),
        (OnFailure, WorkspaceWrite, Mode::AcceptEdits, false),
        (OnRequest, DangerFullAccess, Mode::AcceptEdits, false),
    ] {
        let (near, policy) = standing(ask, reach).mode();
        assert_eq!((near, policy.is_none()), (mode, is_exact), "{ask} {reach}");
    }
}

#[test]
fn a_policy_that_was_chosen_is_told_apart_from_what_the_mode_means() {
    let mut standing = Standing::of(Mode::Default, None);
    assert_eq!(standing.mode(), (Mode::Default, None));
    let chosen = Context { ask: Some(AskWhen::OnRequest), ..Context::default() };
    let policy = Policy { ask: AskWhen::OnRequest, reach: Reach::ReadOnly };
    let options = standing.change(&chosen);
    assert_eq!((options.mode, options.policy), (Some(Mode::Default), Some(policy)));
    assert!(standing.change(&chosen).mode.is_none(), "the same again is no change");
}

#[test]
fn only_what_changes_is_told_the_conversation() {
    let mut standing = Standing::of(Mode::Default, None);
    let options = standing.change(&Context::default());
    assert!(options.mode.is_none() && options.extras.is_none() && options.workspace.is_none());
    let sandbox = Sandbox { reach: Reach::WorkspaceWrite, network: true, roots: vec!["/r".into()] };
    let context =
        Context { ask: Some(AskWhen::Never), sandbox: Some(sandbox), ..Context::default() };
    let options = standing.change(&context);
    assert_eq!((options.mode, options.policy), (Some(Mode::BypassPermissions), None));
    assert_eq!(options.extras.unwrap().directories, [PathBuf::from("/r")]);
    assert!(standing.never_asks());
    let options = standing.change(&context);
    assert!(options.mode.is_none() && options.extras.is_none(), "the same again is no change");
    let options = standing.change(&Context { plan: Some(true), ..Context::default() });
    assert_eq!(options.mode, Some(Mode::Plan));
    assert!(!standing.never_asks(), "a plan is shown");
}
