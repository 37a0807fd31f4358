//! How turns and tools ended.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{EndSignal, Failure, FailureCode, ItemStatus, TurnStatus, Usage};
use tieline_wire::claude::{Block, ModelUsage, ResultFrame};

use super::setup;
use super::tool;
use crate::ledger::TurnEnd;

/// The end of a turn. A failed call of the provider comes as subtype `success` with `is_error`.
pub(super) fn of_turn(
    frame: &ResultFrame<'_>,
    last_error: Option<&str>,
    interrupted: bool,
    usage: Option<Usage>,
    open_tasks: u32,
) -> TurnEnd {
    let terminal = frame.terminal_reason.as_deref();
    let aborted = terminal.is_some_and(|reason| reason.starts_with("aborted"))
        || (interrupted && frame.subtype == "error_during_execution");
    let failed = frame.is_error || frame.subtype.starts_with("error");
    let (status, error) = if failed && aborted {
        (TurnStatus::Interrupted, None)
    } else if !failed {
        (TurnStatus::Completed, None)
    } else {
        (TurnStatus::Failed, Some(failure(frame, last_error)))
    };
    TurnEnd {
        // An interrupted turn may end as a success when it was almost done.
        status,
        error,
        signal: EndSignal::Wire,
        stop_reason: frame.stop_reason.as_deref().or(terminal).map(str::to_owned),
        text: if failed { None } else { frame.result.as_deref().map(str::to_owned) },
        usage,
        duration_ms: frame.duration_ms.map(|millis| millis as u64),
        open_tasks,
        bookmark: None,
    }
}

fn failure(frame: &ResultFrame<'_>, last_error: Option<&str>) -> Failure {
    let errors: Vec<String> =
        frame.errors.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let message = frame
        .result
        .as_deref()
        .map(str::to_owned)
        .filter(|text| !text.is_empty())
        .or_else(|| errors.first().cloned())
        .unwrap_or_else(|| format!("the agent ended the turn with {:?}", &*frame.subtype));
    if message.contains("No conversation found with session ID") {
        return setup::session_unknown().detail(message);
    }
    let http_status =
        frame.api_error_status.and_then(|raw| serde_json::from_str::<u16>(raw.get()).ok());
    // Older versions name the status in their text only.
    let http_status = http_status.or_else(|| status_in(&message));
    let says_login = message.contains("/login") || message.contains("Invalid API key");
    let last_error = if says_login { Some("authentication_failed") } else { last_error };
    let mut failure = match (&*frame.subtype, http_status, last_error) {
        ("error_max_turns", ..) => {
            Failure::new(FailureCode::MaxTurns, message).hint("say \"go on\" to let it continue")
        }
        ("error_max_budget_usd", ..) => Failure::new(FailureCode::Budget, message),
        (_, _, Some("max_output_tokens")) => Failure::new(FailureCode::MaxTokens, message)
            .hint("ask for a shorter answer, or for the work in smaller steps"),
        (_, Some(401 | 403), _)
        | (_, _, Some("authentication_failed" | "oauth_org_not_allowed")) => {
            Failure::new(FailureCode::NotLoggedIn, message)
                .hint("run `claude` once and log in with /login, or set ANTHROPIC_API_KEY")
        }
        (_, Some(429), _) | (_, _, Some("rate_limit" | "billing_error")) => {
            Failure::new(FailureCode::RateLimited, message)
                .hint("wait for the limit to start anew, or choose another model with --model")
        }
        (_, Some(400 | 404 | 413 | 422), _) | (_, _, Some("invalid_request")) => {
            Failure::new(FailureCode::BadRequest, message)
                .hint("check the model's name; `tieline reset KEY` begins afresh if it persists")
        }
        (_, None, last) if last == Some("unknown") || message.contains("Connection dropped") => {
            Failure::new(FailureCode::StreamLost, message)
                .hint("check the network and try again; the conversation goes on")
        }
        (_, Some(500..), _) | (_, _, Some("server_error" | "overloaded")) => {
            Failure::new(FailureCode::ProviderUnavailable, message)
                .hint("the provider's trouble usually passes: try again in a minute")
        }
        _ => Failure::new(FailureCode::Agent, message),
    };
    failure.http_status = http_status;
    let detail = errors.join("\n");
    if detail == failure.message { failure } else { failure.detail(detail) }
}

/// The status in a text like `API Error: 529 overloaded`.
fn status_in(message: &str) -> Option<u16> {
    let (_, rest) = message.split_once("API Error: ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok().filter(|it| *it >= 400)
}

/// What this turn used. The agent's money is a running total, also across a resume, so only what
/// was added counts; `spent` is the total so far.
pub(super) fn usage(frame: &ResultFrame<'_>, spent: &mut Option<f64>) -> Option<Usage> {
    let by_model = |raw: Option<&RawValue>| -> HashMap<String, ModelUsage> {
        raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    };
    let total = frame.total_cost_usd;
    let this_turn = by_model(frame.model_usage_since_last_result);
    let cost_usd = match (frame.model_usage_since_last_result, *spent, total) {
        (Some(_), ..) => Some(this_turn.values().fold(0.0, |sum, usage| sum + usage.cost_usd)),
        (None, Some(before), Some(total)) => Some((total - before).max(0.0)),
        (None, None, total) => total,
        (None, Some(_), None) => None,
    };
    if total.is_some() {
        *spent = total;
    }
    let tokens = frame.usage.as_ref()?;
    Some(Usage {
        input_tokens: tokens.input_tokens,
        cached_input_tokens: tokens.cache_read_input_tokens,
        cache_write_tokens: tokens.cache_creation_input_tokens,
        output_tokens: tokens.output_tokens,
        reasoning_tokens: tokens.output_tokens_details.thinking_tokens,
        cost_usd,
        ..Usage::default()
    })
}

/// How a tool ended whose result says it is an error.
pub(super) fn of_failed_tool(
    id: &str,
    block: &Block<'_>,
    meta: Option<&RawValue>,
    refused: Option<ItemStatus>,
    interrupted: bool,
) -> ItemStatus {
    #[derive(Deserialize)]
    struct Meta {
        id: String,
        #[serde(default)]
        non_execution_kind: Option<String>,
    }
    let metas: Vec<Meta> =
        meta.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let kind =
        metas.into_iter().find(|meta| meta.id == id).and_then(|meta| meta.non_execution_kind);
    if let Some(refused) = refused {
        return refused;
    }
    match kind.as_deref() {
        Some("user-rejected") if interrupted => ItemStatus::Cancelled,
        Some("user-rejected") => ItemStatus::Declined,
        Some(_) => ItemStatus::Denied,
        None if interrupted => ItemStatus::Cancelled,
        None if tool::result_text(block).contains("Command timed out after") => {
            ItemStatus::TimedOut
        }
        None => ItemStatus::Failed,
    }
}
