//! What Codex says when something went wrong, and what a user can do about it.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tieline_event::{Failure, FailureCode};

use crate::driver::ExitInfo;

/// The key of a provider of the user's own is not there.
const MISSING: &str = "Missing environment variable";

/// How to log in. In recent versions a key in a variable alone is not enough for the app server.
pub(crate) const LOG_IN: &str = "log in with `codex login`, or with a key: \
                                 printenv OPENAI_API_KEY | codex login --with-api-key";

/// Secrets of others are kept from agents, and so may be the key of such a provider.
fn pass_it(message: &str) -> String {
    let name = message.split('`').nth(1).unwrap_or("NAME");
    format!(
        "set {name}, and let it through to Codex: pass = [\"{name}\"] in the agent's table of \
         tieline's configuration"
    )
}

/// A failure of a turn: the message, and the wire's own classification where it has one.
///
/// The words of `info` are `snake_case` on one wire and `camelCase` on another, alone or as the key
/// of an object with the HTTP status.
pub(crate) fn failure(message: &str, info: Option<&RawValue>) -> Failure {
    let (word, status) = info.map(classification).unwrap_or_default();
    let status = status.or_else(|| status_in(message));
    let text = plain(message);
    let code = match (word.as_str(), status) {
        ("unauthorized", _) | (_, Some(401 | 403)) => FailureCode::NotLoggedIn,
        ("usagelimitexceeded", _) | (_, Some(429)) => FailureCode::RateLimited,
        ("sessionbudgetexceeded", _) => FailureCode::Budget,
        ("serveroverloaded" | "internalservererror", _) | (_, Some(500..)) => {
            FailureCode::ProviderUnavailable
        }
        ("badrequest" | "contextwindowexceeded" | "cyberpolicy", _) | (_, Some(400..)) => {
            FailureCode::BadRequest
        }
        _ => match by_words(message) {
            FailureCode::Agent => by_class(&word),
            code => code,
        },
    };
    let failure = Failure { http_status: status, ..Failure::new(code, text) };
    match code {
        FailureCode::NotLoggedIn if message.contains(MISSING) => failure.hint(pass_it(message)),
        FailureCode::NotLoggedIn => failure.hint(LOG_IN),
        FailureCode::RateLimited => failure.hint("wait, or use another account or model"),
        FailureCode::ProviderUnavailable => failure.hint("try again in a while"),
        FailureCode::StreamLost => failure.hint("check the network, then say it again"),
        FailureCode::MaxTokens => failure.hint("say \"go on\", or ask for a shorter answer"),
        FailureCode::BadRequest if is_about_model(message) => {
            failure.hint("choose another --model; `codex` lists those of your account")
        }
        _ => failure,
    }
}

/// A message that announces another try, on wires that mark it in no other way.
pub(crate) fn is_retry(message: &str) -> bool {
    ["Reconnecting...", "Re-connecting..."].iter().any(|word| message.starts_with(word))
        || message.contains("; retrying ")
}

/// The native session is gone.
pub(crate) fn session_unknown() -> Failure {
    Failure::new(FailureCode::SessionUnknown, "Codex does not know this session any more")
        .hint("begin afresh with --fresh, or with `tieline reset KEY`; the history stays")
}

/// What a process that ended by itself means for the turn it left open. `spoke` says that it had
/// begun to speak its wire.
pub(crate) fn explain_exit(exit: &ExitInfo, spoke: bool) -> Failure {
    let stderr = exit.stderr.trim();
    let failure = |code, message: &str| Failure::new(code, message).detail(stderr);
    if stderr.contains("no rollout found") || stderr.contains("No saved session found") {
        return session_unknown().detail(stderr);
    }
    if stderr.contains("Not inside a trusted directory") {
        return failure(FailureCode::AgentCannotStart, "Codex wants a git repository to work in")
            .hint("run `git init` in the workspace, or add \"--skip-git-repo-check\" to args");
    }
    if stderr.contains("unexpected argument") || stderr.contains("unrecognized subcommand") {
        return failure(
            FailureCode::AgentCannotStart,
            "this version of Codex does not know a flag it was given",
        )
        .hint(
            "update it: npm install -g @openai/codex@latest; `tieline doctor` shows the version",
        );
    }
    if stderr.contains("Error loading config") || stderr.contains("error loading config") {
        return failure(FailureCode::AgentCannotStart, "Codex cannot read its configuration")
            .hint("correct ~/.codex/config.toml, or what args in our configuration say");
    }
    if stderr.contains("waiting for state db backfill") {
        return failure(
            FailureCode::AgentCannotStart,
            "an earlier start of Codex was cut off, and this one waited for it in vain",
        )
        .hint("try again in a while: Codex gives it up 15 minutes after that start");
    }
    if stderr.contains("failed to initialize state runtime") {
        return failure(FailureCode::AgentCannotStart, "two of Codex began at the same moment")
            .hint("try again");
    }
    if stderr.contains(MISSING) {
        return failure(FailureCode::NotLoggedIn, "Codex misses the key of its model provider")
            .hint(pass_it(stderr));
    }
    let message = format!("Codex {} during the turn", exit.describe());
    let going_on = "the conversation goes on with the next message";
    match (exit.signal, spoke) {
        (Some(_), _) => failure(FailureCode::AgentKilled, &message).hint(going_on),
        (None, true) => failure(FailureCode::AgentExited, &message).hint(going_on),
        (None, false) => failure(
            FailureCode::AgentCannotStart,
            &format!("Codex {} before its first message", exit.describe()),
        )
        .hint("run `tieline doctor` to see what is wrong with it"),
    }
}

/// `"other"`, or `{"http_connection_failed": {"http_status_code": 401}}`: the word without its
/// spelling, and the status.
fn classification(info: &RawValue) -> (String, Option<u16>) {
    #[derive(Deserialize, Default)]
    struct Status {
        #[serde(alias = "http_status_code", rename = "httpStatusCode")]
        status: Option<u16>,
    }
    let spelled = |word: &str| -> String {
        word.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
    };
    match serde_json::from_str(info.get()) {
        Ok(Value::String(word)) => (spelled(&word), None),
        Ok(Value::Object(map)) => match map.into_iter().next() {
            Some((word, body)) => {
                let status: Status = serde_json::from_value(body).unwrap_or_default();
                (spelled(&word), status.status)
            }
            None => Default::default(),
        },
        _ => Default::default(),
    }
}

/// The status in `unexpected status 401 Unauthorized` or `last status: 429 Too Many Requests`.
fn status_in(message: &str) -> Option<u16> {
    let (_, rest) = message.split_once("status")?;
    let number = rest.trim_start_matches([':', ' ']).split_whitespace().next()?;
    number.parse().ok().filter(|status| (100..600).contains(status))
}

fn by_words(message: &str) -> FailureCode {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(&["max_output_tokens"]) {
        FailureCode::MaxTokens
    } else if has(&["high demand", "overloaded"]) {
        FailureCode::ProviderUnavailable
    } else if has(&["usage limit", "rate limit", "quota"]) {
        FailureCode::RateLimited
    } else if has(&["stream disconnected", "error sending request", "connection"]) {
        FailureCode::StreamLost
    } else if has(&["invalid_request_error", "context window", "Bad Request"]) {
        FailureCode::BadRequest
    } else if has(&[MISSING, "not logged in", "Not logged in"]) {
        FailureCode::NotLoggedIn
    } else {
        FailureCode::Agent
    }
}

/// By the wire's own word, where the message says nothing; some of them only our engine knows.
fn by_class(word: &str) -> FailureCode {
    match word {
        "responsestreamdisconnected" | "responsestreamconnectionfailed" => FailureCode::StreamLost,
        "httpconnectionfailed" => FailureCode::ProviderUnavailable,
        "maxoutputtokens" => FailureCode::MaxTokens,
        "protocol" => FailureCode::Protocol,
        _ => FailureCode::Agent,
    }
}

fn is_about_model(message: &str) -> bool {
    message.contains("model")
        && ["not found", "not exist", "not supported", "does not"]
            .iter()
            .any(|word| message.contains(word))
}

/// Some messages are the provider's JSON body as text; its own message is what a person wants.
fn plain(message: &str) -> String {
    let inner = serde_json::from_str::<Value>(message).ok().and_then(|body| {
        let text = body.pointer("/error/message").or_else(|| body.pointer("/detail"))?;
        text.as_str().map(str::to_owned)
    });
    inner.unwrap_or_else(|| message.to_owned())
}

#[test]
fn each_wire_s_words_give_the_same_failure() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let of = |message: &str, info: &str| {
        let failure = failure(message, Some(&raw(info)));
        (failure.code, failure.http_status)
    };
    let unauthorized = "unexpected status 401 Unauthorized: nope, url: http://127.0.0.1/v1";
    let expected = (FailureCode::NotLoggedIn, Some(401));
    assert_eq!(of(unauthorized, "null"), expected);
    assert_eq!(of("x", r#"{"httpConnectionFailed":{"httpStatusCode":401}}"#), expected);
    assert_eq!(of("x", r#"{"http_connection_failed":{"http_status_code":401}}"#), expected);
    assert_eq!(of("x", r#""usage_limit_exceeded""#).0, FailureCode::RateLimited);
    assert_eq!(of("x", r#""usageLimitExceeded""#).0, FailureCode::RateLimited);
    assert_eq!(of("exceeded retry limit, last status: 429 Too Many Requests", "null").1, Some(429));
    assert_eq!(
        of("stream disconnected before completion: x", r#""other""#).0,
        FailureCode::StreamLost
    );
    let body = r#"{"error": {"message": "no such thing", "type": "invalid_request_error"}}"#;
    let failure = failure(body, None);
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (FailureCode::BadRequest, "no such thing")
    );
}
