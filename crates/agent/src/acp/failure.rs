//! What an agent says when something went wrong, and what a user can do about it.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{Failure, FailureCode};
use tieline_wire::jsonrpc::ErrorObject;

use crate::driver::ExitInfo;

/// Somebody must log in first.
pub(super) const AUTH_REQUIRED: i64 = -32000;

/// No such session or file.
pub(super) const NOT_FOUND: i64 = -32002;

/// The request is not one.
pub(super) const INVALID_REQUEST: i64 = -32600;

/// No such request.
pub(super) const UNKNOWN_METHOD: i64 = -32601;

/// The request's parameters are not right.
pub(super) const INVALID_PARAMS: i64 = -32602;

/// It could not be done.
pub(super) const INTERNAL: i64 = -32603;

/// The request was taken back.
pub(super) const CANCELLED: i64 = -32800;

/// A request of ours that the agent refuses. `methods` are its ways to log in.
pub(super) fn refusal(agent: &str, error: &ErrorObject, methods: &[String]) -> Failure {
    if let Some(failure) = of_tieline(error.data.as_deref()) {
        return failure;
    }
    let detail = detail(error.data.as_deref());
    // What the protocol's libraries put before the agent's own words.
    let message = error.message.trim().trim_start_matches("Internal error: ");
    let message = match message {
        "" => format!("{agent} failed with code {}", error.code),
        message => message.to_owned(),
    };
    let failure = match error.code {
        AUTH_REQUIRED => not_logged_in(agent, methods).detail(message),
        NOT_FOUND => session_unknown(agent).detail(message),
        INVALID_PARAMS | INVALID_REQUEST => Failure::new(FailureCode::BadRequest, message),
        UNKNOWN_METHOD => Failure::new(FailureCode::Protocol, message),
        _ => of_provider(&message, error.data.as_deref(), agent, methods)
            .unwrap_or_else(|| by_words(&message, &detail, agent, methods)),
    };
    match failure.detail {
        Some(_) => failure,
        None => failure.detail(detail),
    }
}

/// A failure as tieline itself tells it.
fn of_tieline(data: Option<&RawValue>) -> Option<Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        code: FailureCode,
        message: String,
        hint: Option<String>,
        http_status: Option<u16>,
        detail: Option<String>,
    }
    let Data { code, message, hint, http_status, detail } =
        serde_json::from_str(data?.get()).ok()?;
    Some(Failure { code, message, hint, http_status, detail })
}

/// Nobody is logged in.
pub(super) fn not_logged_in(agent: &str, methods: &[String]) -> Failure {
    let ways = match methods {
        [] => String::new(),
        methods => format!("; it offers: {}", methods.join(", ")),
    };
    Failure::new(FailureCode::NotLoggedIn, format!("{agent} wants somebody to log in first"))
        .hint(format!("log in with the agent's own program, or give it its key{ways}"))
}

/// The native session is gone.
pub(super) fn session_unknown(agent: &str) -> Failure {
    Failure::new(
        FailureCode::SessionUnknown,
        format!("{agent} does not know this session any more"),
    )
    .hint("begin afresh with --fresh, or with `tieline reset KEY`; the history stays")
}

/// Whether a refusal to open a session says that there is none; not every agent has the code for it.
pub(super) fn says_unknown_session(error: &ErrorObject) -> bool {
    let text = format!("{} {}", error.message, detail(error.data.as_deref())).to_lowercase();
    let is_gone = ["not found", "unknown session", "no such", "not exist", "no conversation found"];
    error.code == NOT_FOUND || is_gone.iter().any(|words| text.contains(words))
}

/// The agent's word for why, where its message says only that.
fn detail(data: Option<&RawValue>) -> String {
    let data = data.map_or("", RawValue::get);
    if data == "null" {
        return String::new();
    }
    serde_json::from_str(data).unwrap_or_else(|_| data.to_owned())
}

/// What the provider's answer means, where the agent names its status or its kind.
fn of_provider(
    message: &str,
    data: Option<&RawValue>,
    agent: &str,
    methods: &[String],
) -> Option<Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        error_kind: String,
    }
    let data: Option<Data> = data.and_then(|data| serde_json::from_str(data.get()).ok());
    let kind = data.as_ref().map_or("", |data| data.error_kind.as_str());
    let http_status = status_in(message);
    let failure = |code| Failure::new(code, message);
    let failure = match (http_status, kind) {
        // Nobody answered: the words say more than the kind.
        (None, _) if message.contains("Connection") => return None,
        (_, "max_output_tokens") => failure(FailureCode::MaxTokens).hint(SHORTER),
        (Some(401 | 403), _) | (_, "authentication_failed") => {
            not_logged_in(agent, methods).detail(message)
        }
        (Some(429), _) | (_, "rate_limit" | "billing_error") => {
            failure(FailureCode::RateLimited).hint(WAIT)
        }
        (Some(400..=499), _) | (_, "invalid_request") => failure(FailureCode::BadRequest)
            .hint("check the model's name; `tieline reset KEY` begins afresh if it persists"),
        (Some(_), _) | (_, "server_error" | "overloaded") => {
            failure(FailureCode::ProviderUnavailable).hint(AGAIN)
        }
        (None, _) => return None,
    };
    Some(Failure { http_status, ..failure })
}

/// The status in a text like `API Error: 529 overloaded` or `API Error: rejected (429)`.
fn status_in(message: &str) -> Option<u16> {
    let (_, rest) = message.split_once("API Error")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|it| it.len() == 3);
    numbers.find_map(|number| number.parse().ok().filter(|it| (400..600).contains(it)))
}

const SHORTER: &str = "say \"go on\", or ask for a shorter answer";
const WAIT: &str = "wait, or use another account or model";
const AGAIN: &str = "try again in a while";

fn by_words(message: &str, detail: &str, agent: &str, methods: &[String]) -> Failure {
    let text = format!("{message} {detail}").to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let failure = |code| Failure::new(code, message);
    if has(&["thread not found", "session not found", "no conversation found"]) {
        // Some agents open a session that is gone and find out with the first prompt.
        session_unknown(agent).detail(detail)
    } else if has(&["not logged in", "unauthorized", "invalid api key", "please run /login"]) {
        not_logged_in(agent, methods).detail(message)
    } else if has(&["rate limit", "usage limit", "quota", "too many requests", "429"]) {
        failure(FailureCode::RateLimited).hint(WAIT)
    } else if has(&["overloaded", "high demand", "unavailable", "internal server error"]) {
        failure(FailureCode::ProviderUnavailable).hint(AGAIN)
    } else if has(&["stream disconnected", "connection", "network error", "fetch failed"]) {
        failure(FailureCode::StreamLost).hint("check the network, then say it again")
    } else {
        failure(FailureCode::Agent)
    }
}

/// How a turn failed that the agent ended by itself; none when it ended well.
pub(super) fn of_stop_reason(agent: &str, reason: &str) -> Option<Failure> {
    let (code, message, hint) = match reason {
        "end_turn" | "cancelled" => return None,
        "max_tokens" => (
            FailureCode::MaxTokens,
            format!("{agent} reached the model's limit of output"),
            Some(SHORTER),
        ),
        "max_turn_requests" => (
            FailureCode::MaxTurns,
            format!("{agent} reached its limit of steps in one turn"),
            Some("say \"go on\""),
        ),
        "refusal" => (
            FailureCode::Agent,
            format!("{agent} refuses to go on with this"),
            Some("say it in another way; what was said last may be forgotten"),
        ),
        other => {
            let message = format!("{agent} ended the turn for a reason unknown here: {other:?}");
            (FailureCode::Protocol, message, None)
        }
    };
    let failure = Failure::new(code, message);
    Some(match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    })
}

/// What a process that ended by itself means for the turn it left open.
pub(super) fn of_exit(agent: &str, exit: &ExitInfo, spoke: bool) -> Failure {
    let going_on = "the conversation goes on with the next message";
    let failure = |code, when: &str| {
        Failure::new(code, format!("{agent} {} {when}", exit.describe())).detail(exit.stderr.trim())
    };
    match (exit.signal, spoke) {
        (Some(_), _) => failure(FailureCode::AgentKilled, "during the turn").hint(going_on),
        (None, true) => failure(FailureCode::AgentExited, "during the turn").hint(going_on),
        (None, false) => failure(FailureCode::AgentCannotStart, "before its first message")
            .hint("does this program speak ACP with these arguments? `tieline doctor` shows more"),
    }
}
