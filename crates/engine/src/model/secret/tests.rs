use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use super::{Key, KeyTrouble, Secret};

const KEY: &str = "sk-very-secret-123";

fn file(content: &[u8], mode: u32) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    (dir, path)
}

fn fetch(path: PathBuf) -> Result<Option<Secret>, KeyTrouble> {
    Key::File(path).fetch(|_| None)
}

#[test]
fn a_private_file_holds_a_key() {
    for mode in [0o600, 0o400] {
        let (_dir, path) = file(format!("  {KEY}\n").as_bytes(), mode);
        assert_eq!(fetch(path), Ok(Some(Secret::new(KEY))));
    }
}

#[test]
fn a_file_that_others_can_read_is_refused_with_what_to_do() {
    for mode in [0o644, 0o640, 0o604, 0o660, 0o620, 0o601] {
        let (_dir, path) = file(KEY.as_bytes(), mode);
        let trouble = fetch(path.clone()).unwrap_err();
        assert_eq!(trouble, KeyTrouble::Exposed { path: path.clone(), mode });
        assert_eq!(trouble.hint(), format!("run `chmod 600 {}`", path.display()));
        assert!(trouble.to_string().contains(&format!("{mode:04o}")));
    }
}

#[test]
fn a_file_of_somebody_else_is_refused() {
    // Only root can give a file away; everybody has one of root's that others cannot read.
    let (_dir, path) = file(KEY.as_bytes(), 0o600);
    let theirs = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(1), None).unwrap();
        path
    } else {
        PathBuf::from("/etc/shadow")
    };
    let trouble = fetch(theirs).unwrap_err();
    let refused = matches!(
        trouble,
        KeyTrouble::Foreign { owner: 1, .. }
            | KeyTrouble::Unreadable { .. }
            | KeyTrouble::Exposed { .. }
    );
    assert!(refused, "{trouble}");
}

#[test]
fn what_is_no_key_is_refused() {
    for content in [&b""[..], b"\n", b"two\nlines", b"a b", b"\xff\xfe", "schlüssel".as_bytes()] {
        let (_dir, path) = file(content, 0o600);
        assert!(matches!(fetch(path), Err(KeyTrouble::NoKey { .. })), "{content:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(fetch(dir.path().to_owned()), Err(KeyTrouble::NoKey { .. })));
    let missing = fetch(dir.path().join("none")).unwrap_err();
    assert!(matches!(missing, KeyTrouble::Unreadable { .. }), "{missing}");
}

#[test]
fn a_variable_holds_a_key() {
    let key = Key::Env("MY_KEY".to_owned());
    assert_eq!(key.fetch(|_| Some(KEY.into())), Ok(Some(Secret::new(KEY))));
    for value in [None, Some(""), Some("  ")] {
        let trouble = key.fetch(|_| value.map(Into::into)).unwrap_err();
        assert_eq!(trouble.to_string(), "MY_KEY is not set");
        assert!(trouble.hint().starts_with("set MY_KEY "));
    }
    let trouble = key.fetch(|_| Some("two words".into())).unwrap_err();
    assert!(!format!("{trouble} {trouble:?}").contains("two words"));
}

#[test]
fn a_secret_is_not_shown() {
    let secret = Secret::new(KEY);
    assert_eq!(format!("{secret:?} {:?}", Key::Given(secret.clone())), "*** Given(***)");
    assert_eq!(secret.scrub(format!("wrong key {KEY}!")), "wrong key ***!");
}
