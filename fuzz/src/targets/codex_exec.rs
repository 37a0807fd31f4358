//! The events of `codex exec`.

use tieline_wire::codex_exec;

use super::lines;

pub(super) fn check(input: &[u8]) {
    for line in lines(input) {
        // All but a JSON object is refused, and every object is something.
        let is_object =
            serde_json::from_slice::<serde_json::Map<_, serde_json::Value>>(line).is_ok();
        let frame = codex_exec::parse(line);
        assert!(frame.is_ok() || !is_object, "{:?}", frame.err());
    }
}
