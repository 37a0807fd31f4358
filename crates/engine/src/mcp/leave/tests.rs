use super::*;

#[test]
fn a_tool_needs_leave_by_the_terms() {
    let when = |ask| Ask::When(ask);
    let granular = |sandbox_approval| Ask::Granular(Granular { sandbox_approval, rules: false });
    let rows = [
        (when(AskWhen::Untrusted), Sandbox::ReadOnly, "ask"),
        (when(AskWhen::Untrusted), Sandbox::WorkspaceWrite, "ask"),
        (when(AskWhen::Untrusted), Sandbox::None, "ask"),
        (when(AskWhen::OnRequest), Sandbox::ReadOnly, "ask"),
        (when(AskWhen::OnRequest), Sandbox::WorkspaceWrite, "run"),
        (when(AskWhen::OnRequest), Sandbox::None, "run"),
        (when(AskWhen::OnRequest), Sandbox::External, "run"),
        (when(AskWhen::OnFailure), Sandbox::ReadOnly, "ask"),
        (when(AskWhen::OnFailure), Sandbox::WorkspaceWrite, "run"),
        (when(AskWhen::Never), Sandbox::ReadOnly, "run"),
        (when(AskWhen::Never), Sandbox::None, "run"),
        (granular(true), Sandbox::ReadOnly, "ask"),
        (granular(false), Sandbox::ReadOnly, "forbid"),
        (granular(false), Sandbox::WorkspaceWrite, "run"),
    ];
    let told = |leave| match leave {
        Leave::Run => "run",
        Leave::Ask(_) => "ask",
        Leave::Forbid(_) => "forbid",
    };
    for (ask, sandbox, expected) in rows {
        let terms = Terms::of_policy(ask, sandbox);
        assert_eq!(told(leave(&terms, Hint::None, false)), expected, "{ask:?} {sandbox:?}");
        assert_eq!(leave(&terms, Hint::None, true), Leave::Run, "granted: {ask:?} {sandbox:?}");
        assert_eq!(leave(&terms, Hint::ReadOnly, false), Leave::Run, "{ask:?} {sandbox:?}");
        let plan = Terms { plan: true, ..terms };
        assert_eq!(told(leave(&plan, Hint::None, true)), "forbid", "plan: {ask:?} {sandbox:?}");
        assert_eq!(leave(&plan, Hint::ReadOnly, false), Leave::Run, "plan: {ask:?} {sandbox:?}");
    }
}
