use super::*;
use crate::{ChangeKind, Text};

fn request() -> Request {
    let change = FileChange {
        path: "a".into(),
        kind: ChangeKind::Add,
        moved_to: None,
        old_text: None,
        new_text: Some("text".into()),
        diff: None,
    };
    let approval = Approval {
        tool: "Bash".into(),
        command: Some("rm -rf build".into()),
        cwd: Some("/work".into()),
        changes: vec![change],
        given: Some(Json::from_text(r#"{"a":1}"#.into()).unwrap()),
        ..Approval::default()
    };
    let yes = Choice { id: "y".into(), label: "Yes".into(), kind: ChoiceKind::AllowOnce };
    Request {
        id: "r1".into(),
        item: Some("i1".into()),
        title: "Run rm -rf build".into(),
        reason: Some("Clean up".into()),
        body: RequestBody::Approval(approval),
        options: vec![yes],
    }
}

#[test]
fn the_same_request_has_the_same_hash_whatever_its_id() {
    let mut again = request();
    (again.id, again.item) = ("r2".into(), None);
    assert_eq!(again.fingerprint(), request().fingerprint());
    // What was stored and read again is the same.
    let json = serde_json::to_string(&request()).unwrap();
    let read: Request = serde_json::from_str(&json).unwrap();
    assert_eq!(read.fingerprint(), request().fingerprint());
}

#[test]
fn whatever_is_different_makes_another_hash() {
    type Change = fn(&mut Request, &mut Approval);
    let changes: [(&str, Change); 17] = [
        ("title", |it, _| it.title.push(' ')),
        ("reason", |it, _| it.reason = None),
        ("option", |it, _| it.options[0].kind = ChoiceKind::AllowAlways),
        ("label", |it, _| it.options[0].label.push('!')),
        ("tool", |_, it| it.tool.push('!')),
        ("command", |_, it| it.command = Some("rm -rf  build".into())),
        ("path", |_, it| it.path = Some("/".into())),
        ("cwd", |_, it| it.cwd = Some("/precious".into())),
        ("no cwd", |_, it| it.cwd = None),
        ("file", |_, it| it.changes[0].path.push('b')),
        ("text of a file", |_, it| it.changes[0].new_text = Some(Text::from("texts"))),
        ("input", |_, it| it.input = it.given.take()),
        ("given", |_, it| it.given = Json::from_text(r#"{"a":2}"#.into()).ok()),
        ("sandbox", |_, it| it.bounds.held = Some(Held::Nothing)),
        ("network", |_, it| it.bounds.network = Some(true)),
        ("retry", |_, it| it.bounds.is_retry = true),
        ("rule", |_, it| it.suggestions = vec![Json::from_text("1".into()).unwrap()]),
    ];
    let mut seen = vec![request().fingerprint()];
    for (what, change) in changes {
        let mut other = request();
        let RequestBody::Approval(mut approval) = other.body.clone() else { unreachable!() };
        change(&mut other, &mut approval);
        other.body = RequestBody::Approval(approval);
        let hash = other.fingerprint();
        assert!(!seen.contains(&hash), "another {what} makes no difference");
        seen.push(hash);
    }
}
