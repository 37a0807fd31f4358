//! What the messages of Codex's app server carry.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_wire::codex_app as app;
use tieline_wire::jsonrpc::{Message, classify};

use super::lines;

pub(super) fn check(input: &[u8]) {
    for line in lines(input) {
        match classify(line) {
            Message::Notification { method, params: Some(params) } => {
                app::is_silent(&method);
                news(params);
            }
            Message::Request { params: Some(params), .. } => asks(params),
            Message::Response { result, .. } => answers(result),
            _ => {}
        }
    }
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) {
    drop(serde_json::from_str::<T>(raw.get()));
}

fn news(params: &RawValue) {
    read::<app::Delta<'_>>(params);
    read::<app::ItemNews<'_>>(params);
    read::<app::ThreadNews<'_>>(params);
    read::<app::NameNews<'_>>(params);
    read::<app::TurnNews<'_>>(params);
    read::<app::ErrorNews<'_>>(params);
    read::<app::UsageNews<'_>>(params);
    read::<app::PlanNews<'_>>(params);
    read::<app::Remark<'_>>(params);
    read::<app::ServerNews<'_>>(params);
    read::<app::Rerouted<'_>>(params);
    read::<app::RequestResolved>(params);
    read::<app::RateLimitNews<'_>>(params);
    read::<app::Whose<'_>>(params);
}

fn asks(params: &RawValue) {
    read::<app::ApprovalRequest<'_>>(params);
    read::<app::UserInputRequest<'_>>(params);
    read::<app::Elicitation<'_>>(params);
    read::<app::Whose<'_>>(params);
}

fn answers(result: &RawValue) {
    read::<app::Initialized<'_>>(result);
    read::<app::Opened<'_>>(result);
    read::<app::TurnNews<'_>>(result);
    read::<app::Models>(result);
    read::<app::Skills>(result);
    read::<app::ServerStatuses>(result);
    read::<app::GoalAnswer>(result);
    read::<app::Cleared>(result);
    read::<app::Account<'_>>(result);
}
