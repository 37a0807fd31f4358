use expect_test::expect;
use tieline_event::{ChangeKind, Content, ItemStatus, Mode, Opened};

use super::*;
use crate::testing::{command, completed, event, item, message, started};

#[test]
fn a_conversation_is_a_document() {
    let opened = Opened {
        effort: None,
        agent: "demo".into(),
        workspace: "/w".into(),
        mode: Mode::Default,
        policy: None,
        model: None,
        resumes: None,
        forked_from: None,
    };
    let prompt = ItemBody::UserMessage { content: vec![Content::text("Do\n\nit")] };
    let change = FileChange {
        path: "a.md".into(),
        kind: ChangeKind::Update,
        moved_to: None,
        old_text: Some("```\nold\n".into()),
        new_text: Some("```\nnew\n".into()),
        diff: None,
    };
    let kinds = [
        Kind::ConversationOpened(opened),
        started(),
        Kind::ItemCompleted(item("u", ItemStatus::Ok, prompt)),
        Kind::ItemStarted(command("c", ItemStatus::InProgress, "ls", "")),
        Kind::ItemCompleted(command("c", ItemStatus::Failed, "ls\u{1b}[2J", "no\n")),
        Kind::ItemCompleted(item(
            "f",
            ItemStatus::Ok,
            ItemBody::FileChange { changes: vec![change] },
        )),
        Kind::ItemCompleted(message("m", "It is **done**.\n")),
        completed("It is **done**."),
    ];
    let mut document = Document::new();
    let text: String =
        kinds.into_iter().map(|kind| document.event(&event(0, kind), &mut |_| None)).collect();
    expect![[r#"
        # demo

        *Opened 2026-11-15T23:14:45.000Z with demo in `/w`, mode default.*

        ## Turn t1 · 2026-11-15T23:14:45.000Z

        **User:**

        > Do
        >
        > it

        **Command** ✗ failed, exit 3

        ```sh
        ls\x1b[2J
        ```

        ```
        no
        ```

        **Files** ✓

        - edit a.md +1 -1

        ````diff
        -```
        -old
        +```
        +new
        ````

        It is **done**.

        *completed in 4.2 s · 1200 tokens in, 34 out, $0.0123*
    "#]]
    .assert_eq(&text);
}

#[test]
fn nothing_in_a_block_ends_it() {
    assert_eq!(fenced("", "a\n`````\nb"), "\n``````\na\n`````\nb\n``````\n");
    assert_eq!(code("`x`"), "`` `x` ``");
    assert_eq!(code("a`b"), "``a`b``");
}
