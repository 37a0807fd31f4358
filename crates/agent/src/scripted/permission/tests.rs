use super::*;

#[test]
fn only_plain_commands_of_known_programs_are_harmless() {
    for command in ["uname -sm && date", "echo a; ls", "cat a | wc -l", "false || echo no"] {
        assert!(is_harmless(command), "{command}");
    }
    for command in
        ["", "rm a", "echo a > b", "echo $(rm a)", "echo `rm a`", "ls & rm a", "ls;", "ls\nrm a"]
    {
        assert!(!is_harmless(command), "{command}");
    }
}

#[test]
fn a_process_that_asks_cannot_be_told_to_stop_asking() {
    let mut permissions = Permissions::new(Mode::Default);
    permissions.set_mode("bypassPermissions").unwrap_err();
    permissions.set_mode("acceptEdits").unwrap();
    assert_eq!(permissions.mode(), Mode::AcceptEdits);
    permissions.set_mode("whatever").unwrap_err();
    let mut permissions = Permissions::new(Mode::Yolo);
    permissions.set_mode("default").unwrap();
    permissions.set_mode("bypassPermissions").unwrap();
}
