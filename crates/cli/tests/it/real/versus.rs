//! The engine beside the program it stands in for: `tieline run --agent engine` and `codex exec`, on
//! the same scripted server, each a process with an emptied environment and a home of its own.
//!
//! What must be the same is what a script would rely on: whether it succeeded, the final text, the
//! files. Where they differ, a verdict has to say why; `docs/engine-and-codex.md` is written from the
//! run, so it cannot drift.

mod run;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::json;
use tieline_testkit::model::{Block, ModelServer, Script};
use tieline_testkit::real;

use self::run::{Outcome, Reach, Scenario, Side, play};

const fn scenario(name: &'static str, reach: Reach, turns: &'static [&'static str]) -> Scenario {
    Scenario { name, reach, turns }
}

const SCENARIOS: &[Scenario] = &[
    scenario("a short answer", Reach::Read, &["Go. SCENARIO:hello"]),
    scenario(
        "three turns, resumed",
        Reach::Read,
        &["First. SCENARIO:echo", "Second. SCENARIO:echo", "Third. SCENARIO:echo"],
    ),
    scenario("a thought before the answer", Reach::Read, &["Go. SCENARIO:think"]),
    scenario("characters of all kinds", Reach::Read, &["Go. SCENARIO:unicode"]),
    scenario("a command", Reach::Read, &["Go. SCENARIO:shell"]),
    scenario("two commands at once", Reach::Read, &["Go. SCENARIO:parallel"]),
    scenario("a command that fails", Reach::Read, &["Go. SCENARIO:fail-command"]),
    scenario("a command with much output", Reach::Read, &["Go. SCENARIO:bigout:20000"]),
    scenario("a file is read", Reach::Read, &["Go. SCENARIO:read"]),
    scenario("a command writes", Reach::Workspace, &["Go. SCENARIO:touch"]),
    scenario("a command may not write", Reach::Read, &["Go. SCENARIO:touch"]),
    scenario("a command wants out of the sandbox", Reach::Workspace, &["Go. SCENARIO:write"]),
    scenario("the same where nothing is written", Reach::Read, &["Go. SCENARIO:write"]),
    scenario("the same where there is none", Reach::Everything, &["Go. SCENARIO:write"]),
    scenario("a patch", Reach::Workspace, &["Go. SCENARIO:patch"]),
    scenario("a patch that deletes", Reach::Workspace, &["Go. SCENARIO:patch-delete"]),
    scenario("a patch that may not", Reach::Read, &["Go. SCENARIO:patch"]),
    scenario("a plan", Reach::Read, &["Go. SCENARIO:plan"]),
    scenario("a tool that does not exist", Reach::Read, &["Go. SCENARIO:unknown-tool"]),
    scenario("a connection that breaks off", Reach::Read, &["Go. SCENARIO:drop"]),
    scenario("a server that fails", Reach::Read, &["Go. SCENARIO:http500"]),
    scenario("an answer that fails", Reach::Read, &["Go. SCENARIO:failed"]),
    scenario("an answer that is cut short", Reach::Read, &["Go. SCENARIO:maxtokens"]),
];

/// What differs and may: the scenario, what of it, why.
const VERDICTS: &[(&str, &str, &str)] = &[
    (
        "a command wants out of the sandbox",
        "files",
        "Codex refuses the wish where nobody is asked. The engine runs the command in its sandbox, \
         where this one needs no more; the row below shows that it is held",
    ),
    (
        "the same where there is none",
        "files",
        "Codex refuses the wish here too. There is no sandbox to leave, so the engine runs the \
         command as any other",
    ),
];

const PAGE: &str = "\
# The engine beside `codex exec`

`tieline run --agent engine` and `codex exec` 0.166.0 on the same scripted model, each a process with
an emptied environment and a home of its own, with nobody to ask (`never`) and the same sandbox. Compared
is what a script relies on: whether each turn succeeded, its final text, and the files of the workspace,
byte by byte. One entry means that both had it; a difference without a verdict fails the suite.

`UPDATE_EXPECT=1 cargo xtask test --real versus` writes this page anew from a run. Wall time and memory of
both are the rows `engine-hello` and `engine-memory` of `cargo xtask bench`.

| scenario | sandbox | succeeds | final text | files |
|---|---|---|---|---|
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_ends_where_codex_exec_does() {
    assert!(real::loopback_only(), "run this suite with `cargo xtask test`");
    let model = ModelServer::start().await;
    let touch = Block::tool("exec_command", json!({"cmd": "touch made-by-a-command.txt; ls -1"}));
    model.scenario("touch", Script::tool_then_say(touch, "That was it."));
    let mut page = PAGE.to_owned();
    let (mut without, mut used) = (Vec::new(), BTreeSet::new());
    for scenario in SCENARIOS {
        let (codex, engine) = tokio::join!(
            play(&model, Side::Codex, scenario),
            play(&model, Side::Engine, scenario),
        );
        write!(page, "| {} | {}", scenario.name, scenario.reach.word()).unwrap();
        let (theirs, ours) = (features(&codex), features(&engine));
        for ((feature, theirs), (_, ours)) in theirs.into_iter().zip(ours) {
            if theirs == ours {
                // What is in the files would fill the page.
                let named = codex.files.keys().map(|path| format!("`{}`", path.display()));
                let named = named.collect::<Vec<_>>().join(", ");
                write!(page, " | {}", if feature == "files" { &named } else { &theirs }).unwrap();
                continue;
            }
            let about = |row: &&(&str, &str, &str)| row.0 == scenario.name && row.1 == feature;
            match VERDICTS.iter().find(about) {
                Some(row) => {
                    used.insert(*row);
                    write!(page, " | codex: {theirs}; engine: {ours}. {}", row.2).unwrap();
                }
                None => without.push(format!(
                    "{}, {feature}: {theirs} / {ours}\n{}\n{}",
                    scenario.name, codex.complaint, engine.complaint
                )),
            }
        }
        page.push_str(" |\n");
    }
    assert!(without.is_empty(), "without a verdict:\n{}", without.join("\n"));
    let idle: Vec<_> = VERDICTS.iter().filter(|row| !used.contains(*row)).collect();
    assert!(idle.is_empty(), "nothing differs any more: {idle:#?}");
    expect_test::expect_file!["../../../../../docs/engine-and-codex.md"].assert_eq(&page);
}

/// What is compared, in the order of the table.
fn features(outcome: &Outcome) -> [(&'static str, String); 3] {
    let told = |of: fn(&(bool, String)) -> String| {
        outcome.turns.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let files = outcome.files.iter().map(|(path, content)| {
        format!("`{}` {:?}", path.display(), String::from_utf8_lossy(content))
    });
    [
        ("succeeds", told(|(succeeded, _)| if *succeeded { "yes" } else { "no" }.to_owned())),
        ("final text", told(|(_, text)| format!("{text:?}"))),
        ("files", files.collect::<Vec<_>>().join(", ")),
    ]
}
