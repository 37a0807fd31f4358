use std::path::PathBuf;

use super::resolve_dir;

#[track_caller]
fn check(variables: &[(&str, &str)], expected: Option<&str>) {
    let found = resolve_dir(|name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, path)| PathBuf::from(path))
    });
    assert_eq!(found.ok(), expected.map(PathBuf::from));
}

#[test]
fn directory_is_the_first_absolute_one_the_environment_names() {
    let all = [("TIELINE_HOME", "/t"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
    check(&all, Some("/t"));
    check(&all[1..], Some("/x/tieline"));
    check(&all[2..], Some("/h/.local/share/tieline"));
    check(&[], None);
    check(&[("TIELINE_HOME", "here"), ("HOME", "/h")], None);
    check(
        &[("TIELINE_HOME", ""), ("XDG_DATA_HOME", "data"), ("HOME", "/h")],
        Some("/h/.local/share/tieline"),
    );
}
