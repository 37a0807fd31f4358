use super::*;

#[test]
fn a_variable_is_found_among_others() {
    assert_eq!(told(b"A=1\0TIELINE_TASK_DEPTH=2\0B=\xff\0").unwrap(), 2);
    assert_eq!(told(b"XTIELINE_TASK_DEPTH=2\0TIELINE_TASK_DEPTH=\0").unwrap(), 0);
    assert_eq!(told(b"").unwrap(), 0);
}

#[test]
fn what_is_no_number_does_not_count_as_none() {
    for value in ["much", "-1", "99999999999", " 1"] {
        let environ = format!("A=1\0TIELINE_TASK_DEPTH={value}\0");
        let err = told(environ.as_bytes()).unwrap_err();
        assert!(err.message().contains("no number"), "{}", err.message());
    }
}

#[test]
fn a_program_may_have_any_name() {
    assert_eq!(parent("12 (a) S 1) S 7 12 12 0"), Some(7));
    assert_eq!(parent("12 (sh) R 1 12"), Some(1));
    assert_eq!(parent(""), None);
}
