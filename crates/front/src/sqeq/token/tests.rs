use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn only_the_token_is_the_token() {
    let token = Token::random().unwrap();
    assert_eq!(token.reveal().len(), 64);
    assert!(token.is(token.reveal()));
    for other in ["", "x", token.reveal().get(1..).unwrap(), &format!("{}0", token.reveal())] {
        assert!(!token.is(other), "{other}");
    }
    assert!(!Token::random().unwrap().is(token.reveal()));
    assert_eq!(format!("{token:?}"), "Token");
}

#[test]
fn a_file_keeps_the_token_for_its_owner_alone() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("token");
    let token = Token::in_file(&path).unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(Token::in_file(&path).unwrap().is(token.reveal()));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    assert!(matches!(Token::in_file(&path), Err(Error::Open(_))));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&path, "short\n").unwrap();
    assert!(matches!(Token::in_file(&path), Err(Error::Short(_))));
    assert!(matches!(
        Token::in_file(dir.path()),
        Err(Error::Short(_) | Error::File(..) | Error::Open(_))
    ));
}
