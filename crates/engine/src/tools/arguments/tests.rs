use super::*;

#[test]
fn a_call_is_read_as_far_as_it_can_be_understood() {
    let exec: ExecCommand = read(r#"{"cmd":"ls","more":1}"#).unwrap();
    assert_eq!((exec.cmd.as_str(), exec.yield_time()), ("ls", Duration::from_secs(10)));
    assert!(!exec.wish.escalates());
    let exec: ExecCommand = read(
        r#"{"cmd":"ls","yield_time_ms":1.0,"max_output_tokens":"20","login":null,"tty":true,
            "sandbox_permissions":"require_escalated","justification":"why","prefix_rule":["ls"]}"#,
    )
    .unwrap();
    assert_eq!(exec.yield_time(), Duration::from_millis(250));
    assert_eq!(exec.limit(Limit::default()), Limit::Tokens(20));
    assert_eq!(exec.limit(Limit::Bytes(10)), Limit::Bytes(10));
    assert!(exec.wish.escalates());
    assert_eq!(exec.wish.prefix_rule, Some(vec!["ls".to_owned()]));
    let exec: ExecCommand = read(r#"{"cmd":"ls","yield_time_ms":999999}"#).unwrap();
    assert_eq!(exec.yield_time(), Duration::from_secs(30));

    let write: WriteStdin = read(r#"{"session_id":7}"#).unwrap();
    assert_eq!((write.session_id, write.input()), (7, ""));
    assert_eq!(write.yield_time(), Duration::from_secs(5));
    let write: WriteStdin = read(r#"{"session_id":"7","chars":"x"}"#).unwrap();
    assert_eq!(write.yield_time(), Duration::from_millis(250));

    let shell: Shell = read(r#"{"command":["ls"],"timeout":5}"#).unwrap();
    assert_eq!(shell.timeout(), Duration::from_millis(5));
    let shell: Shell = read(r#"{"command":["ls"]}"#).unwrap();
    assert_eq!(shell.timeout(), Duration::from_secs(10));
    let file: ReadFile = read(r#"{"path":"a"}"#).unwrap();
    assert_eq!(file.file_path, "a");
}

#[test]
fn what_cannot_is_told() {
    fn fails<T: for<'a> Deserialize<'a> + std::fmt::Debug>(arguments: &str) {
        let message = read::<T>(arguments).unwrap_err();
        assert!(message.starts_with("failed to parse function arguments: "), "{message}");
    }
    fails::<ExecCommand>("");
    fails::<ExecCommand>("{");
    fails::<ExecCommand>(r#"{"cmd":["ls"]}"#);
    fails::<ExecCommand>(r#"{"cmd":"ls","yield_time_ms":-1}"#);
    fails::<ExecCommand>(r#"{"cmd":"ls","yield_time_ms":1.5}"#);
    fails::<ExecCommand>(r#"{"cmd":"ls","sandbox_permissions":"all"}"#);
    fails::<WriteStdin>(r#"{"session_id":"x"}"#);
    fails::<WriteStdin>(r#"{"session_id":null}"#);
    fails::<Shell>(r#"{"command":"ls"}"#);
    fails::<UpdatePlan>(r#"{"plan":[{"step":"a","status":"later"}]}"#);
    assert_eq!(unsupported("x"), "unsupported call: x");
}

#[test]
fn a_plan_is_read() {
    let plan: UpdatePlan =
        read(r#"{"plan":[{"step":"a","status":"in_progress"}],"explanation":"b"}"#).unwrap();
    assert_eq!(plan.plan[0].status.as_str(), "in_progress");
}

#[test]
fn questions_must_be_answerable() {
    let ask = |questions: &str| {
        read::<RequestUserInput>(&format!("{{\"questions\":[{questions}]}}")).unwrap().check()
    };
    let question =
        |id: &str| format!(r#"{{"id":"{id}","question":"?","options":[{{"label":"yes"}}]}}"#);
    assert_eq!(ask(&question("a")), Ok(()));
    let three = ["a", "b", "c"].map(question).join(",");
    assert_eq!(ask(&three), Ok(()));
    for (questions, words) in [
        (String::new(), "one to three"),
        (["a", "b", "c", "d"].map(question).join(","), "one to three"),
        (r#"{"id":"a","question":"?"}"#.to_owned(), "non-empty options"),
        (r#"{"id":"a","question":"?","options":[]}"#.to_owned(), "non-empty options"),
        (["a", "a"].map(question).join(","), "an id of its own"),
        (question(""), "an id of its own"),
    ] {
        assert!(ask(&questions).unwrap_err().contains(words), "{questions}");
    }
}
