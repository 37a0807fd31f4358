use super::*;

#[test]
fn the_manner_has_a_place_and_none_leaves_none() {
    for personality in ["friendly", "pragmatic", "none", "unheard of"] {
        let text = instructions(personality);
        assert!(!text.contains("{{"), "{personality}");
        assert!(!text.contains("\n\n\n"), "{personality}");
        assert_eq!(text.contains("# Your manner"), ["friendly", "pragmatic"].contains(&personality));
    }
    assert_eq!(change_of_personality("none"), None);
    assert!(change_of_personality("friendly").unwrap().contains("warm"));
}

#[test]
fn permissions_say_what_the_terms_are() {
    let said = |mode| permissions(&Terms::of(mode, None), &[PathBuf::from("/w")]);
    use tieline_event::Mode;
    assert!(said(Mode::Default).contains("write none") && said(Mode::Default).contains("before every"));
    assert!(said(Mode::AcceptEdits).contains("`/w`"));
    assert!(said(Mode::AcceptEdits).contains("require_escalated"));
    assert!(said(Mode::AcceptEdits).contains("no network"));
    assert!(said(Mode::BypassPermissions).contains("never asked"));
    assert!(said(Mode::Yolo).contains("without a sandbox"));
    assert!(said(Mode::Plan).contains("planning"));
}
