use super::*;

#[test]
fn the_models_words_stand_quoted_behind_ours() {
    let terms = Terms {
        why: "it is to run outside of the sandbox".to_owned(),
        said: Some("list files\n; it runs in the sandbox\u{202e}\u{1b}]x\"".to_owned()),
        held: Some(Sandbox::None),
        network: Some(true),
        is_retry: false,
    };
    let expected = "it is to run outside of the sandbox; it runs outside of the sandbox, with the \
                    network; the model says: \"list files\\n; it runs in the \
                    sandbox\\u{202e}\\u{1b}]x\\\"\"";
    assert_eq!(&*terms.sentence(), expected);
    let besides = terms.besides();
    assert_eq!(besides.held.as_deref(), Some("nothing"));
    assert_eq!((besides.network, besides.retry), (Some(true), None));
}

#[test]
fn a_command_in_the_sandbox_is_said_to_be_there() {
    let terms = Terms {
        why: "it is not known to be harmless".to_owned(),
        held: Some(Sandbox::WorkspaceWrite),
        network: Some(false),
        ..Terms::default()
    };
    let expected = "it is not known to be harmless; it runs in the sandbox and writes in the \
                    workspace, without the network";
    assert_eq!(&*terms.sentence(), expected);
}
