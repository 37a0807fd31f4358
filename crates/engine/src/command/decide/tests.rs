use expect_test::{Expect, expect};
use tieline_event::{Mode, Policy, Reach};

use super::*;
use crate::command::Rule;

const ASKS: [(&str, Ask); 6] = [
    ("untrusted", Ask::When(AskWhen::Untrusted)),
    ("on-failure", Ask::When(AskWhen::OnFailure)),
    ("on-request", Ask::When(AskWhen::OnRequest)),
    ("never", Ask::When(AskWhen::Never)),
    ("granular+", Ask::Granular(Granular { sandbox_approval: true, rules: true })),
    ("granular-", Ask::Granular(Granular { sandbox_approval: false, rules: false })),
];

const SANDBOXES: [(&str, Sandbox); 4] = [
    ("read-only", Sandbox::ReadOnly),
    ("workspace", Sandbox::WorkspaceWrite),
    ("none", Sandbox::None),
    ("external", Sandbox::External),
];

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn asked(command: &[String], escalate: bool) -> Asked<'_> {
    Asked { command, escalate, justification: None, suggested: None, granted: false }
}

/// A decision in a word, with what holds it: `r` and `w` for our sandboxes, `x` for another's.
fn word(decision: &Decision) -> String {
    let (word, within) = match decision {
        Decision::Run { within } => ("run", within),
        Decision::Ask { within, .. } => ("ask", within),
        Decision::Forbid { .. } => return "forbid".to_owned(),
    };
    match within {
        Sandbox::ReadOnly => format!("{word} (r)"),
        Sandbox::WorkspaceWrite => format!("{word} (w)"),
        Sandbox::None => word.to_owned(),
        Sandbox::External => format!("{word} (x)"),
    }
}

fn row(head: &str, cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut line = format!("{head:<28}");
    for cell in cells {
        line += &format!("{:<12}", cell.as_ref());
    }
    line.trim_end().to_owned() + "\n"
}

/// The whole product: a row for each sandbox, command and wish, a column for each policy.
fn table(rules: &Rules, commands: &[&str]) -> String {
    let mut table = row("", ASKS.map(|(name, _)| name));
    for (name, sandbox) in SANDBOXES {
        for command in commands {
            for escalate in [false, true] {
                let command_words = words(command);
                let head = format!("{name} {command}{}", if escalate { " ↑" } else { "" });
                table += &row(
                    &head,
                    ASKS.map(|(_, ask)| {
                        let terms = Terms::of_policy(ask, sandbox);
                        word(&decide(&terms, &asked(&command_words, escalate), rules))
                    }),
                );
            }
        }
    }
    table
}

#[track_caller]
fn check(found: &str, expected: Expect) {
    expected.assert_eq(found);
}

#[test]
fn commands_that_no_rule_is_about() {
    check(
        &table(&Rules::default(), &["ls", "make all", "rm -rf x"]),
        expect![[r#"
                                    untrusted   on-failure  on-request  never       granular+   granular-
        read-only ls                run (r)     run (r)     run (r)     run (r)     run (r)     run (r)
        read-only ls ↑              run (r)     run (r)     run (r)     run (r)     run (r)     run (r)
        read-only make all          ask (r)     run (r)     run (r)     run (r)     run (r)     run (r)
        read-only make all ↑        ask         run (r)     ask         run (r)     ask         forbid
        read-only rm -rf x          ask (r)     ask (r)     ask (r)     forbid      ask (r)     forbid
        read-only rm -rf x ↑        ask         ask         ask         forbid      ask         forbid
        workspace ls                run (w)     run (w)     run (w)     run (w)     run (w)     run (w)
        workspace ls ↑              run (w)     run (w)     run (w)     run (w)     run (w)     run (w)
        workspace make all          ask (w)     run (w)     run (w)     run (w)     run (w)     run (w)
        workspace make all ↑        ask         run (w)     ask         run (w)     ask         forbid
        workspace rm -rf x          ask (w)     ask (w)     ask (w)     forbid      ask (w)     forbid
        workspace rm -rf x ↑        ask         ask         ask         forbid      ask         forbid
        none ls                     run         run         run         run         run         run
        none ls ↑                   run         run         run         run         run         run
        none make all               ask         run         run         run         run         run
        none make all ↑             ask         run         run         run         run         run
        none rm -rf x               ask         ask         ask         forbid      ask         forbid
        none rm -rf x ↑             ask         ask         ask         forbid      ask         forbid
        external ls                 run (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external ls ↑               run (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external make all           ask (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external make all ↑         ask (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external rm -rf x           ask (x)     ask (x)     ask (x)     forbid      ask (x)     forbid
        external rm -rf x ↑         ask (x)     ask (x)     ask (x)     forbid      ask (x)     forbid
    "#]],
    );
}

#[test]
fn commands_that_a_rule_is_about() {
    let rule = |prefix: &str, decision: &str| {
        let prefix: Vec<String> = words(prefix).iter().map(|word| format!("'{word}'")).collect();
        format!("[[rule]]\nprefix=[{}]\ndecision='{decision}'\n", prefix.join(","))
    };
    let rules = rule("make", "allow") + &rule("ls", "prompt") + &rule("cat", "forbid");
    check(
        &table(&Rules::parse(&rules).unwrap(), &["make all", "ls", "cat x"]),
        expect![[r#"
                                    untrusted   on-failure  on-request  never       granular+   granular-
        read-only make all          run         run         run         run         run         run
        read-only make all ↑        run         run         run         run         run         run
        read-only ls                ask (r)     ask (r)     ask (r)     forbid      ask (r)     forbid
        read-only ls ↑              ask         ask         ask         forbid      ask         forbid
        read-only cat x             forbid      forbid      forbid      forbid      forbid      forbid
        read-only cat x ↑           forbid      forbid      forbid      forbid      forbid      forbid
        workspace make all          run         run         run         run         run         run
        workspace make all ↑        run         run         run         run         run         run
        workspace ls                ask (w)     ask (w)     ask (w)     forbid      ask (w)     forbid
        workspace ls ↑              ask         ask         ask         forbid      ask         forbid
        workspace cat x             forbid      forbid      forbid      forbid      forbid      forbid
        workspace cat x ↑           forbid      forbid      forbid      forbid      forbid      forbid
        none make all               run         run         run         run         run         run
        none make all ↑             run         run         run         run         run         run
        none ls                     ask         ask         ask         forbid      ask         forbid
        none ls ↑                   ask         ask         ask         forbid      ask         forbid
        none cat x                  forbid      forbid      forbid      forbid      forbid      forbid
        none cat x ↑                forbid      forbid      forbid      forbid      forbid      forbid
        external make all           run (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external make all ↑         run (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external ls                 ask (x)     ask (x)     ask (x)     forbid      ask (x)     forbid
        external ls ↑               ask (x)     ask (x)     ask (x)     forbid      ask (x)     forbid
        external cat x              forbid      forbid      forbid      forbid      forbid      forbid
        external cat x ↑            forbid      forbid      forbid      forbid      forbid      forbid
    "#]],
    );
}

#[test]
fn patches() {
    let mut table = row("", ASKS.map(|(name, _)| name));
    for (name, sandbox) in SANDBOXES {
        for inside in [true, false] {
            for granted in [false, true] {
                let head = format!(
                    "{name} {}{}",
                    if inside { "inside" } else { "outside" },
                    if granted { " granted" } else { "" }
                );
                table += &row(
                    &head,
                    ASKS.map(|(_, ask)| {
                        word(&decide_patch(&Terms::of_policy(ask, sandbox), place(inside), granted))
                    }),
                );
            }
        }
    }
    check(
        &table,
        expect![[r#"
                                    untrusted   on-failure  on-request  never       granular+   granular-
        read-only inside            ask (w)     ask (w)     ask (w)     forbid      ask (w)     forbid
        read-only inside granted    run (w)     run (w)     run (w)     run (w)     run (w)     run (w)
        read-only outside           ask         ask         ask         forbid      ask         forbid
        read-only outside granted   run         run         run         run         run         run
        workspace inside            ask (w)     run (w)     run (w)     run (w)     run (w)     run (w)
        workspace inside granted    run (w)     run (w)     run (w)     run (w)     run (w)     run (w)
        workspace outside           ask         ask         ask         forbid      ask         forbid
        workspace outside granted   run         run         run         run         run         run
        none inside                 ask         run         run         run         run         run
        none inside granted         run         run         run         run         run         run
        none outside                ask         run         run         run         run         run
        none outside granted        run         run         run         run         run         run
        external inside             ask (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external inside granted     run (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external outside            ask (x)     run (x)     run (x)     run (x)     run (x)     run (x)
        external outside granted    run (x)     run (x)     run (x)     run (x)     run (x)     run (x)
    "#]],
    );
}

#[test]
fn modes() {
    let rules = Rules { rules: vec![Rule::allow(words("make"))] };
    let short = |mode: Mode| mode.name().trim_end_matches("Permissions");
    let mut table = row("", Mode::ALL.map(short));
    for command in ["ls", "touch x", "make all", "rm -rf x"] {
        for escalate in [false, true] {
            let command_words = words(command);
            let head = format!("{command}{}", if escalate { " ↑" } else { "" });
            table += &row(
                &head,
                Mode::ALL.map(|mode| {
                    let asked = asked(&command_words, escalate);
                    word(&decide(&Terms::of(mode, None), &asked, &rules))
                }),
            );
        }
    }
    for (head, inside) in [("patch inside", true), ("patch outside", false)] {
        let cells =
            Mode::ALL.map(|mode| word(&decide_patch(&Terms::of(mode, None), place(inside), false)));
        table += &row(head, cells);
    }
    check(
        &table,
        expect![[r#"
                                    plan        default     acceptEdits auto        bypass      yolo
        ls                          run (r)     run (r)     run (w)     run (w)     run (w)     run
        ls ↑                        run (r)     run (r)     run (w)     run (w)     run (w)     run
        touch x                     run (r)     ask (w)     run (w)     run (w)     run (w)     run
        touch x ↑                   forbid      ask         ask         ask         run (w)     run
        make all                    run (r)     run         run         run         run         run
        make all ↑                  forbid      run         run         run         run         run
        rm -rf x                    forbid      ask (w)     ask (w)     ask (w)     forbid      forbid
        rm -rf x ↑                  forbid      ask         ask         ask         forbid      forbid
        patch inside                forbid      ask (w)     run (w)     run (w)     run (w)     run
        patch outside               forbid      ask         ask         ask         forbid      run
    "#]],
    );
}

#[test]
fn a_policy_goes_before_the_mode() {
    let policy = Policy { ask: AskWhen::Never, reach: Reach::WorkspaceWrite };
    for mode in Mode::ALL {
        let terms = Terms::of(mode, Some(policy));
        assert_eq!(
            terms,
            Terms::of_policy(Ask::When(AskWhen::Never), Sandbox::WorkspaceWrite),
            "{mode}"
        );
        assert!(!terms.network && !terms.plan);
    }
    assert!(Terms::of(Mode::BypassPermissions, None).network);
    assert!(!Terms::of(Mode::AcceptEdits, None).network);
}

#[test]
fn where_nobody_is_to_be_asked_nobody_is() {
    let policies = [Ask::When(AskWhen::Never), ASKS[5].1];
    for (_, sandbox) in SANDBOXES {
        for ask in policies {
            for command in ["ls", "make", "rm -rf x", "git push", "sudo rm -f x"] {
                for escalate in [false, true] {
                    let command = words(command);
                    let terms = Terms::of_policy(ask, sandbox);
                    let found = decide(&terms, &asked(&command, escalate), &Rules::default());
                    assert!(!matches!(found, Decision::Ask { .. }), "{command:?}");
                }
            }
        }
    }
}

#[test]
fn what_was_granted_is_not_asked_again() {
    let command = words("touch x");
    let terms = Terms::of(Mode::Default, None);
    let granted = |escalate| Asked { granted: true, ..asked(&command, escalate) };
    let rules = Rules::default();
    assert_eq!(word(&decide(&terms, &granted(false), &rules)), "run (w)");
    assert_eq!(word(&decide(&terms, &granted(true), &rules)), "run");
    let forbidding = Rules::parse("[[rule]]\nprefix=['touch']\ndecision='forbid'").unwrap();
    assert_eq!(word(&decide(&terms, &granted(false), &forbidding)), "forbid");

    let mut book = Granted::default();
    let here = Path::new("/here");
    book.command(&command, here, false);
    assert!(book.has_command(&command, here, false));
    assert!(!book.has_command(&command, here, true));
    assert!(!book.has_command(&command, Path::new("/there"), false));
    assert!(!book.has_command(&words("touch y"), here, false));
    book.files([Path::new("/a"), Path::new("/b")]);
    assert!(book.has_files([Path::new("/b")]));
    assert!(!book.has_files([Path::new("/b"), Path::new("/c")]));
}

#[test]
fn a_question_says_why_and_how_it_could_be_spared() {
    let terms = Terms::of(Mode::AcceptEdits, None);
    let command = words("cargo test --all");
    let suggested = words("cargo test");
    let mut asked = asked(&command, true);
    asked.suggested = Some(&suggested);
    let Decision::Ask { why, said, proposed_rule, .. } = decide(&terms, &asked, &Rules::default())
    else {
        panic!("asked")
    };
    assert_eq!((why.as_str(), said), ("it is to run outside of the sandbox", None));
    assert_eq!(proposed_rule, Some(suggested.clone()));
    asked.justification = Some(" needs the network ");
    let Decision::Ask { why, said, .. } = decide(&terms, &asked, &Rules::default()) else {
        panic!("asked")
    };
    // The model's words stand beside ours, never in their place.
    assert_eq!(why, "it is to run outside of the sandbox");
    assert_eq!(said.as_deref(), Some("needs the network"));
}

#[test]
fn a_finer_policy_is_read() {
    let read = Granular::read(r#"{"granular":{"rules":true,"mcp_elicitations":true}}"#);
    assert_eq!(read, Some(Granular { sandbox_approval: false, rules: true }));
    assert_eq!(Granular::read(r#""sometimes""#), None);
}

#[test]
fn a_denial_of_the_sandbox_is_guessed() {
    assert!(looks_denied(1, "touch: x: Read-only file system"));
    assert!(looks_denied(1, "Permission denied (os error 13)"));
    assert!(looks_denied(159, ""));
    assert!(!looks_denied(0, "permission denied"));
    assert!(!looks_denied(2, "permission denied"));
    assert!(!looks_denied(127, "permission denied"));
    assert!(!looks_denied(1, "test failed"));
    let retry = |ask, sandbox| retry_outside(&Terms::of_policy(Ask::When(ask), sandbox)).is_some();
    assert!(retry(AskWhen::OnFailure, Sandbox::WorkspaceWrite));
    assert!(retry(AskWhen::Untrusted, Sandbox::ReadOnly));
    assert!(!retry(AskWhen::OnRequest, Sandbox::WorkspaceWrite));
    assert!(!retry(AskWhen::Never, Sandbox::WorkspaceWrite));
    assert!(!retry(AskWhen::OnFailure, Sandbox::None));
}

fn place(inside: bool) -> Touched<'static> {
    if inside { Touched::Inside } else { Touched::Outside }
}

#[test]
fn what_others_obey_is_asked_for_by_name_in_every_mode_that_asks() {
    let names = ".git/hooks/pre-commit (git)";
    let decided = |mode| decide_patch(&Terms::of(mode, None), Touched::Protected(names), false);
    let reason = format!("it changes what other programs run or obey: {names}");
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Auto] {
        let Decision::Ask { why: asked, .. } = decided(mode) else { panic!("{mode}") };
        assert_eq!(asked, reason);
    }
    let Decision::Forbid { reason: why } = decided(Mode::BypassPermissions) else { panic!() };
    assert!(why.starts_with(&reason), "{why}");
    assert!(matches!(decided(Mode::Plan), Decision::Forbid { .. }));
    assert!(matches!(decided(Mode::Yolo), Decision::Run { .. }));
}

#[test]
fn git_is_harmless_only_where_the_sandbox_holds_what_a_repository_names() {
    let decided = |sandbox, words: &[&str]| {
        let command: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let terms = Terms::of_policy(Ask::When(AskWhen::Untrusted), sandbox);
        let (escalate, granted) = (false, false);
        let asked =
            Asked { command: &command, escalate, justification: None, suggested: None, granted };
        decide(&terms, &asked, &Rules::default())
    };
    for verb in ["status", "diff", "log", "show"] {
        for sandbox in [Sandbox::ReadOnly, Sandbox::WorkspaceWrite] {
            assert_eq!(decided(sandbox, &["git", verb]), Decision::Run { within: sandbox });
        }
        for sandbox in [Sandbox::None, Sandbox::External] {
            for words in [vec!["git", verb], vec!["bash", "-c", &format!("ls && git {verb}")]] {
                let decision = decided(sandbox, &words);
                assert!(matches!(decision, Decision::Ask { .. }), "{words:?}: {decision:?}");
            }
        }
    }
    assert_eq!(decided(Sandbox::None, &["ls"]), Decision::Run { within: Sandbox::None });
}
