use expect_test::expect;

use super::*;

fn text(format: Format, markers: &[TaskMarker]) -> String {
    let mut tail = Tail::new(format, Look::plain(), &"t".parse().unwrap());
    tail.line("an open fence:");
    tail.line("```");
    markers.iter().for_each(|marker| tail.marker(marker));
    tail.take()
}

fn ends() -> Vec<TaskMarker> {
    let file = |path: &str, change, from: Option<&str>| TaskFile {
        path: path.to_owned(),
        change,
        from: from.map(str::to_owned),
    };
    vec![
        TaskMarker::Verified {
            command: "make test".to_owned(),
            passed: false,
            exit_code: Some(2),
            output: "one\n\ntwo".to_owned(),
        },
        TaskMarker::FilesModified {
            files: vec![
                file("a", FileFate::Created, None),
                file("b\nc", FileFate::Renamed, Some("d")),
            ],
            mismatches: vec!["said it created x, which is not there".to_owned()],
            partial: true,
        },
        TaskMarker::Stopped { how: TaskStop::Budget, reason: "3 turns are used up".to_owned() },
    ]
}

#[test]
fn the_end_of_a_task_is_markers_that_any_reader_finds() {
    expect![[r#"
        an open fence:
        ```
        ```
        [TEST_RESULTS] make test failed
        one
        two

        [FILES_MODIFIED]
        - a (created)
        - "b\nc" (renamed from d)

        [FILES_MISMATCH] The agent said it created x, which is not there
        [FILES_MISMATCH] There were too many files to look at all of them
        [BLOCKED] Task is out of budget: 3 turns are used up

    "#]]
    .assert_eq(&text(Format::Markers, &ends()));
}

#[test]
fn the_end_of_a_task_is_a_few_lines_for_people() {
    expect![[r#"
        an open fence:
        ```
        ✗ make test failed
          one
          two
          a (created)
          b\nc (renamed from d)
        ! the agent said it created x, which is not there
        — task out of budget: 3 turns are used up
    "#]]
    .assert_eq(&text(Format::Text, &ends()));
}
