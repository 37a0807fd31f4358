use expect_test::{Expect, expect};
use tieline_event::Bounds;

use super::*;
use crate::testing::tricks::{self, unwrapped};

fn request(approval: Approval) -> Request {
    let choice = |label: &str, kind| Choice { id: label.into(), label: label.into(), kind };
    Request {
        id: "r1".into(),
        item: None,
        title: "Run ls src".into(),
        reason: Some("List the source files".into()),
        body: RequestBody::Approval(approval),
        options: vec![choice("Yes", ChoiceKind::AllowOnce), choice("No", ChoiceKind::Deny)],
    }
}

#[track_caller]
fn check(request: &Request, expected: Expect) {
    let review = review(request, Some("/w"), &mut |_| None);
    expected.assert_eq(&review.rows(&Room::boundless(80)).rows.join("\n"));
}

#[test]
fn where_a_command_runs_and_how_far_it_reaches_is_said_in_our_words() {
    let approval = Approval {
        tool: "command".into(),
        command: Some("ls src\u{1b}]x; touch /tmp/x\n# in the sandbox".into()),
        cwd: Some("/var/tmp".into()),
        bounds: Bounds { held: Some(Held::Nothing), network: Some(true), ..Bounds::default() }
            .into(),
        why: Some("it is to run outside of the sandbox".into()),
        ..Approval::default()
    };
    check(
        &request(approval.clone()),
        expect![[r#"
            ? Run ls src
              $ ls src\x1b]x; touch /tmp/x
              > # in the sandbox
              the agent says:
              | List the source files
              in /var/tmp, which is NOT the workspace
              runs OUTSIDE of the sandbox, WITH the network
              asked because it is to run outside of the sandbox"#]],
    );
    let bounds =
        Bounds { is_retry: true, network: Some(false), ..(*approval.bounds).clone() }.into();
    check(
        &request(Approval { cwd: Some("/w".into()), bounds, why: None, ..approval }),
        expect![[r#"
            ? Run ls src
              $ ls src\x1b]x; touch /tmp/x
              > # in the sandbox
              the agent says:
              | List the source files
              in the workspace
              runs AGAIN, OUTSIDE of the sandbox, without the network"#]],
    );
}

#[test]
fn every_file_of_a_patch_is_named_and_every_line_of_it_shown() {
    let change = |path: &str, kind| FileChange {
        path: path.into(),
        kind,
        moved_to: None,
        old_text: None,
        new_text: None,
        diff: None,
    };
    let changes = vec![
        FileChange { new_text: Some("a\n\tb".into()), ..change("a b.rs", ChangeKind::Add) },
        FileChange {
            old_text: Some("1\n2\n3\n4\n".into()),
            new_text: Some("1\nX\n3\n4\n".into()),
            ..change("c.rs", ChangeKind::Update)
        },
        FileChange {
            diff: Some("@@ -1 +1 @@\n-x\n+y\n".into()),
            moved_to: Some("e.rs".into()),
            ..change("d.rs", ChangeKind::Update)
        },
        change("/etc/\u{202e}x", ChangeKind::Delete),
    ];
    let bounds = Bounds { opens: Some("/etc".into()), ..Bounds::default() }.into();
    check(
        &request(Approval { tool: "patch".into(), changes, bounds, ..Approval::default() }),
        expect![[r#"
            ? Run ls src
              add "a b.rs"
              | +a
              | +\tb
              | \ no line end here
              edit c.rs
              | (1 lines stay as they are)
              | -2
              | +X
              | (2 lines stay as they are)
              edit d.rs and move it to e.rs
              | @@ -1 +1 @@
              | -x
              | +y
              delete /etc/\u{202e}x
              the agent says:
              | List the source files
              a yes lets it write in /etc from then on"#]],
    );
}

#[test]
fn what_a_tool_is_given_is_shown_whole_and_cannot_pass_for_words_of_ours() {
    let input = serde_json::json!({
        "command": "ls",
        "runs in the sandbox": "yes",
        "dangerouslyDisableSandbox": true,
        "text": "one\ntwo",
        "list": [1, {"a": "\u{1b}"}],
    });
    let approval = Approval {
        tool: "Bash".into(),
        command: Some("ls".into()),
        input: Some(Json::from_value(&input).unwrap()),
        suggestions: vec![Json::from_text(r#"{"rule":"Bash(*)"}"#.into()).unwrap()],
        bounds: Bounds {
            permissions: Json::from_text(r#"{"fs":"all"}"#.into()).ok(),
            ..Bounds::default()
        }
        .into(),
        ..Approval::default()
    };
    let lasting =
        Choice { id: "a".into(), label: "Yes, always".into(), kind: ChoiceKind::AllowAlways };
    let mut request = request(approval);
    request.options.push(lasting);
    check(
        &request,
        expect![[r#"
            ? Run ls src
              $ ls
              it is given:
              | "runs in the sandbox": yes
              | dangerouslyDisableSandbox: true
              | text:
              |   one
              |   two
              | list: [1,{"a":"\u001b"}]
              and with these permissions besides:
              | {"fs":"all"}
              a yes that lasts may add these rules:
              | {"rule":"Bash(*)"}
              the agent says:
              | List the source files
              runs as the agent's own rules allow; tieline does not hold it"#]],
    );
}

#[test]
fn a_tool_with_a_command_in_its_input_does_not_pass_for_a_shell() {
    let approval = Approval {
        tool: "mcp__evil__run".into(),
        command: Some("ls".into()),
        input: Some(Json::from_text(r#"{"command":"ls"}"#.into()).unwrap()),
        ..Approval::default()
    };
    let review = review(&request(approval), Some("/w"), &mut |_| None);
    let rows = review.rows(&Room::boundless(80)).rows;
    assert!(rows.contains(&"  with the tool mcp__evil__run".to_owned()), "{rows:?}");
}

#[test]
fn of_a_title_that_is_long_all_is_shown_below() {
    let title = format!("Run {}; evil", "x".repeat(300));
    let review = review(
        &Request { title: title.clone(), ..request(Approval::default()) },
        None,
        &mut |_| None,
    );
    let shown = review.rows(&Room::boundless(1000)).rows.join("\n");
    assert!(shown.contains(&format!("  all of this line:\n  | {title}\n")), "{shown}");
}

#[test]
fn everything_of_every_trick_is_seen_in_every_field_on_every_screen() {
    for trick in tricks::all() {
        for (field, request) in tricks::requests(&trick.text) {
            // The fronts show these themselves.
            if matches!(field, "option" | "option of a question") {
                continue;
            }
            let review = review(&request, Some("/w"), &mut |_| None);
            for width in [24, 80, 400] {
                let shown = review.rows(&Room::boundless(width)).rows;
                for row in &shown {
                    let n: usize = row.chars().map(visible::columns).sum();
                    assert!(n <= width, "{field}: {n} columns in {row:?}");
                }
                let rows = shown.join("\n");
                trick.is_seen_in(&unwrapped(&rows), field);
                is_marked(&rows, field);
            }
        }
    }
}

/// Nothing of an agent's looks like a line of ours: those begin with two spaces and a word, and each
/// of them is one of ours.
#[track_caller]
fn is_marked(rows: &str, field: &str) {
    const OURS: [&str; 11] = [
        "in ",
        "runs as",
        "edit ",
        "add ",
        "delete ",
        "file ",
        "at ",
        "with the tool ",
        "it is given:",
        "the agent says:",
        "all of this line:",
    ];
    for row in rows.lines().skip(1) {
        let Some(row) = row.strip_prefix("  ") else { panic!("{field}: {row:?} is not marked") };
        let is_marked =
            ["$ ", "> ", "| ", "… ", "$", ">", "|"].iter().any(|it| row.starts_with(it));
        let is_ours = OURS.iter().any(|it| row.starts_with(it));
        assert!(is_marked || is_ours, "{field}: {row:?}");
        assert!(!row.starts_with("in the workspace"), "{field}: {row:?}");
        assert!(!row.starts_with("runs in"), "{field}: {row:?}");
    }
}

#[test]
fn what_has_no_room_is_counted_and_nothing_of_ours_is_left_out() {
    let lines: Vec<String> = (0..500).map(|n| format!("line {n}")).collect();
    let approval = Approval {
        tool: "command".into(),
        command: Some(lines.join("\n")),
        cwd: Some("/var/tmp".into()),
        bounds: Bounds { held: Some(Held::Nothing), ..Bounds::default() }.into(),
        ..Approval::default()
    };
    let review = review(&request(approval), Some("/w"), &mut |_| None);
    let room = Room { width: 80, rows: 9, bytes: 10_000, how: "press v" };
    let shown = review.rows(&room);
    assert_eq!(shown.n_left_out, 493);
    let rows = shown.rows.join("\n");
    assert!(rows.contains("⟨493 lines with"), "{rows}");
    assert!(rows.contains("are NOT shown here; press v⟩"), "{rows}");
    assert!(rows.ends_with("which is NOT the workspace\n  runs OUTSIDE of the sandbox"), "{rows}");
    let few_bytes = Room { rows: 1000, bytes: 90, ..room };
    assert!(review.rows(&few_bytes).n_left_out > 400);
}

#[test]
fn a_label_says_what_it_means_where_it_says_something_else() {
    let choice = |label: &str, kind| Choice { id: "o".into(), label: label.into(), kind };
    for (text, kind, expected) in [
        ("Yes", ChoiceKind::AllowOnce, "Yes"),
        ("Allow", ChoiceKind::AllowOnce, "Allow"),
        ("Yes, for this session", ChoiceKind::AllowSession, "Yes, for this session"),
        ("Yes, always for cargo test", ChoiceKind::AllowAlways, "Yes, always for cargo test"),
        ("Always Allow", ChoiceKind::AllowAlways, "Always Allow"),
        ("Reject", ChoiceKind::Deny, "Reject"),
        ("No, and stop", ChoiceKind::DenyAndStop, "No, and stop"),
        ("Don't", ChoiceKind::AllowOnce, "Don't (that is: yes)"),
        ("Yes", ChoiceKind::AllowAlways, "Yes (that is: yes, always)"),
        ("Allow", ChoiceKind::Deny, "Allow (that is: no)"),
    ] {
        assert_eq!(label(&choice(text, kind)), expected);
    }
}
