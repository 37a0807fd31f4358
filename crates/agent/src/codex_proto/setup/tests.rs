use std::sync::Arc;

use tieline_event::{FailureCode, Mode};

use super::*;
use crate::codex::Versions;

const ID: &str = "01a1e183-6d93-7092-a37e-2a5a39c3accb";

fn agent(env: Env) -> CodexProto {
    CodexProto {
        codex: Codex {
            program: "/bin/codex".into(),
            args: vec!["-p".to_owned(), "work".to_owned()],
            env,
            preamble: false,
            notify: Some(vec!["/bin/tell".to_owned(), "a \"b\"".to_owned()]),
            versions: Arc::new(Versions::default()),
        },
    }
}

fn launch(resume: Option<Resume<'_>>) -> Launch<'_> {
    let launch = Launch::new(Path::new("/workspace"), Mode::Default);
    Launch { model: Some("gpt-5"), resume, ..launch }
}

fn words(version: Version, resume: Option<Resume<'_>>, env: Env) -> Result<String, Failure> {
    let args = agent(env).args(&launch(resume), version)?;
    let args: Vec<_> = args.iter().map(|word| word.to_str().unwrap()).collect();
    Ok(args.join(" "))
}

#[test]
fn the_command_line_has_settings_and_no_prompt() {
    assert_eq!(
        words(Version(0, 42, 0), None, Env::empty()).unwrap(),
        r#"-p work proto -c model="gpt-5" -c notify=["/bin/tell","a \"b\""]"#
    );
}

#[test]
fn a_version_that_would_take_the_command_for_a_prompt_is_not_started() {
    let failure = words(Version(0, 43, 0), None, Env::empty()).unwrap_err();
    assert_eq!(failure.code, FailureCode::AgentCannotStart);
    assert!(failure.to_string().contains("last in 0.42"), "{failure}");
    assert!(failure.to_string().contains("--agent codex"), "{failure}");
}

#[test]
fn a_version_that_cannot_resume_never_begins_a_new_session_unasked() {
    let resume = Resume { session: ID, fork: false, at: None };
    for version in [Version(0, 42, 0), Version(0, 36, 0)] {
        let failure = words(version, Some(resume), Env::empty()).unwrap_err();
        assert_eq!(failure.code, FailureCode::SessionUnknown);
        assert!(failure.to_string().contains("--fresh"), "{failure}");
    }
    let fork = Resume { session: ID, fork: true, at: None };
    let failure = words(Version(0, 34, 0), Some(fork), Env::empty()).unwrap_err();
    assert_eq!(failure.code, FailureCode::BadRequest);
}

#[test]
fn an_older_version_is_told_the_file_of_the_session() {
    let home = tempfile::tempdir().unwrap();
    let day = home.path().join("sessions/2026/11/15");
    std::fs::create_dir_all(&day).unwrap();
    std::fs::create_dir_all(home.path().join("sessions/2026/11/16")).unwrap();
    std::fs::write(day.join(format!("rollout-2026-11-15T23-20-49-{ID}.jsonl")), "").unwrap();
    let mut env = Env::empty();
    env.set("CODEX_HOME", home.path());
    let known = Resume { session: ID, fork: false, at: None };
    let line = words(Version(0, 34, 0), Some(known), env.clone()).unwrap();
    let end = format!("15/rollout-2026-11-15T23-20-49-{ID}.jsonl\"");
    assert!(line.contains("-c experimental_resume=\"/") && line.ends_with(&end), "{line}");
    let gone = Resume { session: "01a1e183-0000", fork: false, at: None };
    let failure = words(Version(0, 34, 0), Some(gone), env).unwrap_err();
    assert_eq!(failure.code, FailureCode::SessionUnknown);
}
