use tieline_testkit::model::ModelServer;
use tokio::runtime::Runtime;

use crate::tieline::Tieline;

/// A Claude Code that notes its arguments and plays a recording.
fn with_session() -> Tieline {
    let recording =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../agent/fixtures/claude/2.1.325/hello.out.jsonl");
    let play = format!("read -r line; cat '{recording}'; cat > /dev/null");
    // The recording is of a mode that Claude Code refuses for root anywhere else.
    Tieline::new()
        .with("IS_SANDBOX", "1")
        .with_claude(&format!("echo \"$@\" >> \"$HOME/args\"; {play}"))
}

#[track_caller]
fn refused(tieline: &Tieline, key: &str, new: &str, told: &[&str]) {
    let before = tieline.rows();
    let outcome = tieline.run(&["fork", key, new]).ends_with(2);
    for word in told {
        assert!(outcome.err.contains(word), "{word:?} in {}", outcome.err);
    }
    assert_eq!((outcome.out.as_str(), outcome.err.lines().count()), ("", 1));
    assert_eq!(tieline.rows(), before, "nothing was made");
}

#[test]
fn a_fork_goes_on_from_the_session_of_the_other() {
    let tieline = with_session();
    tieline.run(&["run", "--agent", "claude", "-c", "old", "--model", "opus", "hi"]).succeeds();
    let outcome = tieline.run(&["fork", "old", "a new one"]).succeeds();
    assert!(outcome.out.contains("run --conversation 'a new one'"), "{}", outcome.out);
    let rows = tieline.rows();
    let row = |key: &str| rows.as_array().unwrap().iter().find(|row| row["key"] == key).unwrap();
    assert_eq!(row("a new one")["forked_from"], "old");
    assert_eq!(
        (&row("a new one")["model"], &row("a new one")["turns"]),
        (&"opus".into(), &0.into())
    );
    assert!(row("old")["forked_from"].is_null());
    tieline.run(&["run", "-c", "a new one", "and now?"]).succeeds();
    let args = std::fs::read_to_string(tieline.path("args")).unwrap();
    let (first, second) = args.trim_end().split_once('\n').unwrap();
    assert!(!first.contains("--fork-session") && second.contains("--fork-session"), "{args}");
    let session = row("old")["native_session"].as_str().unwrap();
    assert!(second.contains(session), "{session} in {second}");
}

#[test]
fn a_fork_that_cannot_be_is_told_with_what_to_do() {
    let tieline = with_session();
    tieline.run(&["run", "--agent", "claude", "-c", "old", "hi"]).succeeds();
    refused(&tieline, "nope", "new", &["there is no conversation nope", "tieline list"]);
    refused(&tieline, "old", "old", &["old exists already", "another key"]);
    tieline.run(&["run", "--agent", "demo", "-c", "demo", "hi"]).succeeds();
    refused(&tieline, "old", "demo", &["demo exists already", "another key"]);
    let tieline = tieline.with_claude("exit 3");
    tieline.run(&["run", "--agent", "claude", "-c", "none", "hi"]).ends_with(3);
    refused(&tieline, "none", "new", &["no session to fork yet", "run --conversation none"]);
}

#[test]
fn a_fork_of_the_demo_goes_on_in_its_script() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "old", "hi"]).succeeds();
    tieline.run(&["fork", "old", "new"]).succeeds();
    let went_on = tieline.run(&["run", "-c", "new", "and now?"]).succeeds();
    assert!(went_on.out.contains("You said: and now?"), "{}", went_on.out);
}

#[test]
fn a_fork_of_the_demo_outlives_the_other() {
    let tieline = Tieline::new();
    tieline.run(&["run", "--agent", "demo", "-c", "old", "hi"]).succeeds();
    tieline.run(&["fork", "old", "new"]).succeeds();
    tieline.run(&["delete", "-y", "old"]).succeeds();
    let went_on = tieline.run(&["run", "-c", "new", "and now?"]).succeeds();
    assert!(went_on.out.contains("You said: and now?"), "{}", went_on.out);
}

#[test]
fn a_fork_of_the_engine_has_nothing_of_what_is_said_later() {
    let runtime = Runtime::new().unwrap();
    let model = runtime.block_on(ModelServer::start());
    let tieline = Tieline::new().with("OPENAI_BASE_URL", format!("{}/v1", model.url()));
    let run = |key: &str, prompt: &str| {
        let args = ["run", "--agent", "engine", "--model", "qwen3", "-c", key, prompt];
        tieline.run(&args).succeeds();
    };
    run("old", "FIRST SCENARIO:hello");
    tieline.run(&["fork", "old", "new"]).succeeds();
    tieline.run(&["fork", "old", "other"]).succeeds();
    run("old", "SECOND SCENARIO:hello");
    run("new", "CHILD SCENARIO:hello");
    let heard = || model.requests().last().unwrap().body.to_string();
    assert!(heard().contains("FIRST") && heard().contains("CHILD"), "{}", heard());
    assert!(!heard().contains("SECOND"), "{}", heard());
    tieline.run(&["delete", "-y", "old"]).succeeds();
    run("other", "SIBLING SCENARIO:hello");
    assert!(heard().contains("FIRST") && !heard().contains("SECOND"), "{}", heard());
}
