//! The Agent Client Protocol, from both ends.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_wire::acp::{read as theirs, schema, serve};
use tieline_wire::jsonrpc::{Message, classify};

use super::lines;

pub(super) fn check(input: &[u8]) {
    for line in lines(input) {
        match classify(line) {
            Message::Notification { params: Some(params), .. } => {
                read::<theirs::SessionUpdate<'_>>(params);
                read::<theirs::Cancelled>(params);
                read::<theirs::ElicitationDone>(params);
                read::<theirs::Notice>(params);
            }
            Message::Request { params: Some(params), .. } => {
                read::<theirs::Permission<'_>>(params);
                read::<theirs::Elicitation<'_>>(params);
                read::<theirs::Whose>(params);
            }
            Message::Response { result, .. } => {
                read::<theirs::Initialized>(result);
                read::<theirs::Opened>(result);
                read::<theirs::ConfigOptions>(result);
                read::<theirs::Prompted>(result);
                read::<theirs::Steered>(result);
            }
            _ => {}
        }
        match serve::read(line) {
            serve::Incoming::Request { params: Some(params), .. } => {
                read::<schema::InitializeRequest>(params);
                read::<schema::NewSessionRequest>(params);
                read::<schema::LoadSessionRequest>(params);
                read::<schema::PromptRequest>(params);
            }
            serve::Incoming::Response { outcome: Ok(result), .. } => {
                read::<schema::RequestPermissionResponse>(result);
            }
            serve::Incoming::Bad { message, .. } => assert!(!message.is_empty()),
            _ => {}
        }
    }
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) {
    drop(serde_json::from_str::<T>(raw.get()));
}
