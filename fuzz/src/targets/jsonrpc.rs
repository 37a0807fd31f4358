//! JSON-RPC: what was read and is written again is the same message.

use tieline_wire::jsonrpc::write::{self, Form};
use tieline_wire::jsonrpc::{Message, classify};

use super::{lines, sum};

pub(super) fn check(input: &[u8]) {
    let form = if sum(input).is_multiple_of(2) { Form::Bare } else { Form::Versioned };
    for line in lines(input) {
        let message = classify(line);
        let again = match &message {
            Message::Request { id, method, params: Some(params) } => {
                write::request(form, id, method, params)
            }
            Message::Notification { method, params } => {
                write::notification(form, method, params.as_ref())
            }
            Message::Response { id, result } => write::response(form, id, result),
            Message::Error { id: Some(id), error } if error.data.is_none() => {
                write::error(form, id, error.code, &error.message)
            }
            // Nothing of ours writes a request without parameters.
            Message::Request { .. } | Message::Error { .. } | Message::Garbage { .. } => continue,
        };
        assert_eq!(again.iter().position(|byte| *byte == b'\n'), Some(again.len() - 1));
        assert_eq!(format!("{message:?}"), format!("{:?}", classify(again.trim_ascii_end())));
    }
}
