use super::*;

fn read(format: Format, reading: Reading, bytes: &[u8], size: usize) -> String {
    let mut foreign = Foreign::new(format, reading);
    let mut text = String::new();
    for chunk in bytes.chunks(size) {
        foreign.feed(chunk);
        text.push_str(&foreign.take());
    }
    foreign.finish();
    text + &foreign.take()
}

#[test]
fn a_log_becomes_events_in_order_with_its_text_between_them() {
    let log = "Starting é\nmore\n[PROGRESS] one\n[QUESTION] Which?\n1. a - b\n2. c\n\n\nDone.[CODEX_COMPLETE] \
               Task completed in 4 iterations\n";
    for size in [1, 3, 4096] {
        let lines = read(Format::Jsonl, Reading::Lenient, log.as_bytes(), size);
        let events: Vec<Event> =
            lines.lines().map(|line| Event::from_json(line.as_bytes()).unwrap()).collect();
        let names: Vec<String> = events
            .iter()
            .map(|event| match &event.kind {
                Kind::ItemCompleted(item) => match &item.body {
                    ItemBody::AgentMessage { text } => text.preview().to_owned(),
                    other => panic!("{other:?}"),
                },
                Kind::TaskMarker(marker) => crate::summary::task_marker(marker),
                other => panic!("{other:?}"),
            })
            .collect();
        let expected = [
            "Starting é\nmore",
            "one",
            "question q1: Which?",
            "Done.",
            "task completed in 4 iterations",
        ];
        assert_eq!(names, expected);
        let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5]);
    }
}

#[test]
fn bytes_that_are_no_text_hold_nothing_up() {
    let log = b"\xff\xfe bad\n[PROGRESS] fine\n\xe2\x82";
    for size in [1, 5, 100] {
        let text = read(Format::Markers, Reading::Spec, log, size);
        assert!(text.contains("\n[PROGRESS] fine\n"), "{text:?}");
    }
}

#[test]
fn strictly_only_the_start_of_a_line_counts() {
    let log = b"  [PROGRESS] indented\nglued[PROGRESS] text\n";
    assert!(!read(Format::Jsonl, Reading::Spec, log, 100).contains("task.marker"));
    let lenient = read(Format::Jsonl, Reading::Lenient, log, 100);
    assert_eq!(lenient.matches("task.marker").count(), 2);
}

#[test]
fn a_question_is_told_after_a_pause_and_names_no_task() {
    for format in [Format::Text, Format::Markers, Format::Jsonl] {
        let mut foreign = Foreign::new(format, Reading::Lenient);
        foreign.feed(b"[QUESTION] Which?\n1. a\n2. b\n");
        assert_eq!(foreign.take(), "", "more options may come");
        foreign.pause();
        let told = foreign.take();
        assert!(told.contains("Which?"), "{told}");
        assert!(!told.contains("task answer"), "{told}");
        // In the middle of a line nothing is whole.
        foreign.feed(b"[QUESTION] Again?\n1. c");
        foreign.pause();
        assert_eq!(foreign.take(), "");
        foreign.finish();
        assert!(foreign.take().contains("Again?"));
    }
}

#[test]
fn of_a_file_of_which_nothing_is_said_nothing_is_told() {
    let log = b"[FILES_MODIFIED]\n- a.rs\n- b.rs (deleted)\n";
    let lines = read(Format::Jsonl, Reading::Spec, log, 100);
    let event = Event::from_json(lines.lines().next().unwrap().as_bytes()).unwrap();
    let Kind::TaskMarker(TaskMarker::FilesModified { files, .. }) = event.kind else { panic!() };
    let fates: Vec<FileFate> = files.iter().map(|file| file.change).collect();
    assert_eq!(fates, [FileFate::Unknown, FileFate::Deleted]);
    assert!(read(Format::Markers, Reading::Spec, log, 100).contains("- a.rs\n"));
}
