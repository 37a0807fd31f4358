//! The queue protocol: what was read and is written again says the same.

use tieline_wire::sqeq::{Event, Submission, sniff};

use super::lines;

pub(super) fn check(input: &[u8]) {
    for line in lines(input) {
        if let Ok(submission) = Submission::parse(line) {
            let written = submission.to_line();
            let again = Submission::parse(&written).map(|it| it.to_line());
            assert_eq!(again.ok().as_deref().map(text), Some(text(&written)));
            assert_eq!(written.iter().position(|byte| *byte == b'\n'), Some(written.len() - 1));
        }
        if let Ok(event) = Event::parse(line) {
            let written = event.to_line();
            let again = Event::parse(&written).map(|it| it.to_line());
            assert_eq!(again.ok().as_deref().map(text), Some(text(&written)));
            assert_eq!(written.iter().position(|byte| *byte == b'\n'), Some(written.len() - 1));
        }
        sniff(line);
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}
