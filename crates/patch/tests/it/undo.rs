//! Taking patches back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tieline_patch::{Error, Undo};

use crate::yard::{QUICK, Yard};

const HUNKS: &str = "*** Add File: made/here/new\n+1\n*** Update File: m\n-a\n+b\n\
    *** Delete File: bin\n*** Update File: m\n*** Move to: to\n-b\n+c\n*** Add File: over\n+2";

fn yard() -> Yard {
    let yard =
        Yard::new().with("m", "a\n").with("bin", b"\xff\0").with("over", "old").with("to", "x");
    fs::set_permissions(yard.path("bin"), fs::Permissions::from_mode(0o750)).unwrap();
    yard
}

#[test]
fn everything_is_as_it_was() {
    let yard = yard();
    let before = yard.all();
    let applied = yard.apply(HUNKS).unwrap();
    assert_ne!(yard.all(), before);
    applied.undo(&yard.roots()).unwrap();
    assert_eq!(yard.all(), before);
}

#[test]
fn it_can_be_kept_as_json() {
    let yard = yard();
    let before = yard.all();
    let undo = yard.apply(HUNKS).unwrap().undo;
    let json = serde_json::to_string(&undo).unwrap();
    assert!(json.contains(r#"{"base64":"/wA="}"#) && json.contains(r#"{"text":"a\n"}"#), "{json}");
    let again: Undo = serde_json::from_str(&json).unwrap();
    assert_eq!(again, undo);
    again.carry_out(&yard.roots(), QUICK).unwrap();
    assert_eq!(yard.all(), before);
}

#[test]
fn what_was_changed_since_is_not_lost() {
    for (name, content) in [("to", Some("user\n")), ("over", None), ("m", Some("new\n"))] {
        let yard = yard();
        let applied = yard.apply(HUNKS).unwrap();
        match content {
            Some(content) => fs::write(yard.path(name), content).unwrap(),
            None => fs::remove_file(yard.path(name)).unwrap(),
        }
        let now = yard.all();
        let err = applied.undo(&yard.roots()).unwrap_err();
        assert!(matches!(err, Error::Changed { .. }), "{err}");
        assert_eq!(yard.all(), now, "none is restored if not all are");
    }
}

#[test]
fn several_patches_are_taken_back_at_once() {
    let yard = yard();
    let before = yard.all();
    let mut undo = yard.apply(HUNKS).unwrap().undo;
    undo.append(yard.apply("*** Update File: to\n-c\n+d\n*** Delete File: over").unwrap().undo);
    undo.append(yard.apply("*** Add File: made/too\n+1").unwrap().undo);
    undo.carry_out(&yard.roots(), QUICK).unwrap();
    assert_eq!(yard.all(), before);
}

#[test]
fn directories_that_others_use_stay() {
    let yard = yard();
    let applied = yard.apply(HUNKS).unwrap();
    fs::write(yard.path("made/theirs"), "x").unwrap();
    applied.undo(&yard.roots()).unwrap();
    assert!(yard.path("made/theirs").exists() && !yard.path("made/here").exists());
}
