use std::path::Path;
use std::sync::Arc;

use expect_test::{Expect, expect};
use tieline_event::{
    AskWhen, Extras, Failure, FailureCode, McpServer, McpTransport, Mode, Policy, Reach,
};
use tieline_proc::Env;

use super::{arguments, caveat, left_out};
use crate::codex::{Codex, Version, Versions};
use crate::driver::{Launch, Resume};

const SESSION: &str = "01a1e17d-2c64-7b33-9553-29b3812e2fb8";
const NEW: Version = Version(0, 166, 0);

fn codex(args: &[&str]) -> Codex {
    Codex {
        program: "/opt/codex".into(),
        args: args.iter().map(|word| (*word).to_owned()).collect(),
        env: Env::default(),
        preamble: false,
        notify: None,
        versions: Arc::new(Versions::default()),
    }
}

fn launch(mode: Mode) -> Launch<'static> {
    Launch::new(Path::new("/w"), mode)
}

fn line(codex: &Codex, version: Version, launch: &Launch<'_>) -> Result<String, Failure> {
    let words = arguments(codex, version, launch, &[])?;
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
    Ok(words.join(" "))
}

fn check(lines: impl IntoIterator<Item = (String, Result<String, Failure>)>, expected: &Expect) {
    let show = |(name, line): (String, Result<String, Failure>)| match line {
        Ok(line) => format!("{name}: {line}\n"),
        Err(failure) => format!("{name}: {:?} {failure}\n", failure.code),
    };
    expected.assert_eq(&lines.into_iter().map(show).collect::<String>());
}

#[test]
fn each_mode_and_policy_has_its_sandbox_and_never_asks() {
    let codex = codex(&[]);
    let modes = Mode::ALL.map(|mode| (mode.to_string(), line(&codex, NEW, &launch(mode))));
    let policies = Reach::ALL.iter().flat_map(|reach| {
        [AskWhen::Untrusted, AskWhen::Never].map(|ask| Policy { ask, reach: *reach })
    });
    let policies = policies.map(|policy| {
        let launch = Launch { policy: Some(policy), ..launch(Mode::Yolo) };
        (policy.to_string(), line(&codex, NEW, &launch))
    });
    let lines: Vec<_> = modes.into_iter().chain(policies).collect();
    check(
        lines,
        &expect![[r#"
            plan: exec --json --skip-git-repo-check -s read-only -c approval_policy="never" -
            default: exec --json --skip-git-repo-check -s read-only -c approval_policy="never" -
            acceptEdits: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" -
            auto: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" -
            bypassPermissions: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=true -c approval_policy="never" -
            yolo: exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -
            untrusted + read-only: exec --json --skip-git-repo-check -s read-only -c approval_policy="never" -
            never + read-only: exec --json --skip-git-repo-check -s read-only -c approval_policy="never" -
            untrusted + workspace-write: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" -
            never + workspace-write: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" -
            untrusted + danger-full-access: exec --json --skip-git-repo-check -s danger-full-access -c approval_policy="never" -
            never + danger-full-access: exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -
        "#]],
    );
}

#[test]
fn each_version_goes_on_and_branches_off_in_its_own_words() {
    let codex = codex(&[]);
    let versions = [
        Version(0, 36, 0),
        Version(0, 42, 0),
        Version(0, 43, 0),
        Version(0, 50, 0),
        Version(0, 80, 0),
        Version(0, 110, 0),
        Version(0, 140, 0),
        Version(0, 149, 0),
        Version(0, 150, 0),
        NEW,
    ];
    let lines = versions.into_iter().flat_map(|version| {
        [false, true].map(|fork| {
            let resume = Some(Resume { session: SESSION, fork, at: None });
            let launch = Launch { resume, ..launch(Mode::AcceptEdits) };
            (format!("{version} fork {fork}"), line(&codex, version, &launch))
        })
    });
    check(
        lines.collect::<Vec<_>>(),
        &expect![[r#"
        0.36.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.36.0 fork true: BadRequest `codex exec` 0.36.0 cannot branch off from a session; update Codex: npm install -g @openai/codex@latest; or use --agent codex
        0.42.0 fork false: exec --experimental-json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.42.0 fork true: BadRequest `codex exec` 0.42.0 cannot branch off from a session; update Codex: npm install -g @openai/codex@latest; or use --agent codex
        0.43.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.43.0 fork true: BadRequest `codex exec` 0.43.0 cannot branch off from a session; update Codex: npm install -g @openai/codex@latest; or use --agent codex
        0.50.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.50.0 fork true: BadRequest `codex exec` 0.50.0 cannot branch off from a session; update Codex: npm install -g @openai/codex@latest; or use --agent codex
        0.80.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.80.0 fork true: BadRequest `codex exec` 0.80.0 cannot branch off from a session; update Codex: npm install -g @openai/codex@latest; or use --agent codex
        0.110.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.110.0 fork true: BadRequest `codex exec` 0.110.0 cannot branch off from a session; update Codex: npm install -g @openai/codex@latest; or use --agent codex
        0.140.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.140.0 fork true: BadRequest `codex exec` 0.140.0 cannot branch off from a session; update Codex: npm install -g @openai/codex@latest; or use --agent codex
        0.149.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.149.0 fork true: BadRequest `codex exec` 0.149.0 cannot branch off from a session; update Codex: npm install -g @openai/codex@latest; or use --agent codex
        0.150.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.150.0 fork true: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" fork 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.166.0 fork false: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" resume 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
        0.166.0 fork true: exec --json --skip-git-repo-check -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" fork 01a1e17d-2c64-7b33-9553-29b3812e2fb8 -
    "#]],
    );
}

#[test]
fn the_user_s_own_arguments_stand_first_and_are_not_repeated() {
    let codex = Codex {
        notify: Some(vec!["/opt/tie line".to_owned(), "notify".to_owned(), "a\"b".to_owned()]),
        ..codex(&[
            "-p",
            "work",
            "--skip-git-repo-check",
            "--json",
            "-c",
            "model_reasoning_effort=low",
        ])
    };
    let launch = Launch { model: Some("gpt-5.5"), ..launch(Mode::Plan) };
    let lines = [("0.166.0".to_owned(), line(&codex, NEW, &launch))];
    check(
        lines,
        &expect![[r#"
        0.166.0: exec -p work --skip-git-repo-check --json -c model_reasoning_effort=low -m gpt-5.5 -s read-only -c approval_policy="never" -c notify=["/opt/tie line","notify","a\"b"] -
    "#]],
    );
}

#[test]
fn pictures_are_files_before_another_flag() {
    let pictures = ["/tmp/p/1.png".into(), "/tmp/p/2.jpg".into()];
    let resume = Some(Resume { session: SESSION, fork: false, at: None });
    let launch = Launch { resume, ..launch(Mode::Yolo) };
    let words = arguments(&codex(&[]), NEW, &launch, &pictures).unwrap();
    let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(
        words.join(" "),
        format!(
            "exec --json --skip-git-repo-check -i /tmp/p/1.png -i /tmp/p/2.jpg \
             --dangerously-bypass-approvals-and-sandbox resume {SESSION} -"
        )
    );
}

#[test]
fn arguments_that_contradict_the_conversation_are_refused() {
    let refused = |args: &[&str], launch: &Launch<'_>| {
        let failure = line(&codex(args), NEW, launch).unwrap_err();
        assert_eq!(failure.code, FailureCode::BadRequest, "{args:?}");
        assert!(failure.hint.is_some(), "{args:?}");
    };
    for args in [
        &["-s", "danger-full-access"][..],
        &["-sdanger-full-access"],
        &["--sandbox=danger-full-access"],
        &["--full-auto"],
        &["--yolo"],
        &["--dangerously-bypass-approvals-and-sandbox"],
    ] {
        refused(args, &launch(Mode::Default));
    }
    let with_model = Launch { model: Some("m"), ..launch(Mode::Default) };
    refused(&["--model", "n"], &with_model);
    refused(&["-mn"], &with_model);
    assert!(line(&codex(&["-m", "n"]), NEW, &launch(Mode::Default)).is_ok());
    // Flags that only look alike.
    assert!(line(&codex(&["--strict-config"]), NEW, &launch(Mode::Default)).is_ok());
    assert!(line(&codex(&["--model-x"]), NEW, &with_model).is_ok());
    assert!(line(&codex(&["--skip-git-repo-check"]), NEW, &launch(Mode::Default)).is_ok());
    refused(&[], &Launch { model: Some("--yolo"), ..launch(Mode::Default) });
    let resume = Some(Resume { session: "--last", fork: false, at: None });
    refused(&[], &Launch { resume, ..launch(Mode::Default) });
}

#[test]
fn what_cannot_be_asked_is_said_before_it_starts() {
    let mut lines: Vec<String> = Vec::new();
    for mode in Mode::ALL {
        lines.push(format!("{mode}: {:?}", caveat(mode, None)));
    }
    for (ask, reach) in [
        (AskWhen::Untrusted, Reach::WorkspaceWrite),
        (AskWhen::OnFailure, Reach::DangerFullAccess),
        (AskWhen::Never, Reach::ReadOnly),
    ] {
        let policy = Policy { ask, reach };
        lines.push(format!("{policy}: {:?}", caveat(Mode::Plan, Some(policy))));
    }
    expect![[r#"
        plan: Some(("plan_mode_off", "`codex exec` has no plan mode: the agent can change nothing, but nobody tells it to plan; --agent codex has one"))
        default: Some(("approvals_off", "`codex exec` cannot ask, as the mode default would: what the sandbox read-only forbids is refused; --agent codex can ask"))
        acceptEdits: Some(("approvals_off", "`codex exec` cannot ask, as the mode acceptEdits would: what the sandbox workspace-write forbids is refused; --agent codex can ask"))
        auto: Some(("approvals_off", "`codex exec` cannot ask, as the mode auto would: what the sandbox workspace-write forbids is refused; --agent codex can ask"))
        bypassPermissions: None
        yolo: None
        untrusted + workspace-write: Some(("approvals_off", "`codex exec` cannot ask, as the policy untrusted + workspace-write would: what the sandbox workspace-write forbids is refused; --agent codex can ask"))
        on-failure + danger-full-access: Some(("approvals_off", "`codex exec` cannot ask, as the policy on-failure + danger-full-access would: nothing is asked and nothing is refused; --agent codex can ask"))
        never + read-only: None"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn effort_servers_and_directories_of_a_client_are_taken_or_said_to_be_left_out() {
    let server = |name: &str, env: &[(&str, &str)]| McpServer {
        name: name.to_owned(),
        transport: McpTransport::Stdio {
            command: "/bin/srv".to_owned(),
            args: Vec::new(),
            env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        },
    };
    let extras = Extras {
        mcp_servers: vec![server("files", &[]), server("web", &[("TOKEN", "hunter2")])],
        directories: vec!["/other".into()],
    };
    let codex = codex(&[]);
    let launch = Launch { effort: Some("high"), extras: &extras, ..launch(Mode::AcceptEdits) };
    let versions = [NEW, Version(0, 50, 0)];
    let lines = versions.map(|version| (version.to_string(), line(&codex, version, &launch)));
    check(
        lines,
        &expect![[r#"
        0.166.0: exec --json --skip-git-repo-check -c model_reasoning_effort="high" -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" -c mcp_servers.files={command="/bin/srv",args=[]} --add-dir /other -
        0.50.0: exec --json --skip-git-repo-check -c model_reasoning_effort="high" -s workspace-write -c sandbox_workspace_write.network_access=false -c approval_policy="never" -c mcp_servers.files={command="/bin/srv",args=[]} -
    "#]],
    );
    let told = |version| left_out(version, &launch).into_iter().map(|(code, _)| code);
    assert_eq!(told(NEW).collect::<Vec<_>>(), ["mcp_not_used"]);
    let old = told(Version(0, 50, 0)).collect::<Vec<_>>();
    assert_eq!(old, ["mcp_not_used", "directories_not_used"]);
}
