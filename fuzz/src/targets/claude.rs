//! Claude Code's stream-json.

use tieline_wire::claude;

use super::lines;

pub(super) fn check(input: &[u8]) {
    for line in lines(input) {
        let frame = claude::parse(line);
        let is_broken = frame.is_err();
        drop(frame);
        if let Some(repaired) = claude::repair_surrogates(line) {
            assert_eq!(repaired.len(), line.len());
            assert_eq!(claude::repair_surrogates(&repaired), None, "not all of it was repaired");
            drop(claude::parse(&repaired));
        }
        if is_broken {
            claude::sniff(line);
        }
    }
}
