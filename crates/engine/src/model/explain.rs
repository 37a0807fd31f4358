//! An error for a person, and the same for clients of the queue protocol.

use std::time::Duration;

use tieline_event::{Failure, FailureCode};
use tieline_wire::raw::Raw;

use super::{Key, Missing, ModelError, Provider, Unreachable};

#[cfg(test)]
mod tests;

impl ModelError {
    /// What went wrong in one sentence, and what to do about it.
    pub fn explain(&self, provider: &Provider, model: &str) -> Failure {
        let failure = self.sentence(provider, model);
        let failure = match self.words() {
            Some(words) => {
                let id = words.request_id.as_ref().map(|id| format!("request {id}"));
                // Of a bad request the provider's words are the message already.
                let said = match self {
                    Self::BadRequest(_) => String::new(),
                    _ => words.message.clone(),
                };
                let said: Vec<String> =
                    [said].into_iter().chain(id).filter(|word| !word.is_empty()).collect();
                Failure { http_status: words.status, ..failure }.detail(said.join("; "))
            }
            None => failure,
        };
        match self {
            Self::Connect { detail, .. } => failure.detail(detail.as_str()),
            _ => failure,
        }
    }

    fn sentence(&self, provider: &Provider, model: &str) -> Failure {
        let name = &provider.name;
        let endpoint = provider.endpoint();
        let say = |code, message: String| Failure::new(code, message);
        match self {
            Self::NoKey(trouble) => {
                say(FailureCode::NotLoggedIn, format!("there is no key for {name}: {trouble}"))
                    .hint(trouble.hint())
            }
            Self::Settings(what) if provider.script.is_some() => {
                say(FailureCode::BadRequest, what.clone())
            }
            Self::Settings(what) => {
                say(FailureCode::AgentCannotStart, format!("cannot ask {name}: {what}"))
                    .hint("correct the model provider in the configuration")
            }
            Self::Unauthorized(_) => {
                say(FailureCode::NotLoggedIn, format!("{name} does not accept the key"))
                    .hint(other_key(&provider.key))
            }
            Self::Forbidden(_) => {
                say(FailureCode::NotLoggedIn, format!("{name} does not allow this to the key"))
                    .hint(format!("check at {name} whether the key may use {model}"))
            }
            Self::NotFound { missing: Missing::Model, .. } => {
                say(FailureCode::BadRequest, format!("{name} has no model {model}"))
                    .hint("choose another --model; the provider lists those of your account")
            }
            Self::NotFound { missing: Missing::Endpoint, .. } => {
                say(FailureCode::BadRequest, format!("there is no {endpoint}/responses")).hint(
                    "check base_url; a server that has only /chat/completions has to be updated \
                     to one with the Responses API",
                )
            }
            Self::BadRequest(words) => say(
                FailureCode::BadRequest,
                match words.message.as_str() {
                    "" => format!("{name} refuses the request"),
                    message => message.to_owned(),
                },
            ),
            Self::ContextWindowExceeded(_) => say(
                FailureCode::BadRequest,
                format!("the conversation is longer than {model} can read"),
            )
            .hint("begin afresh, or choose a model with a larger context window"),
            Self::UsageLimit { resets_in, .. } => {
                let failure = say(
                    FailureCode::RateLimited,
                    format!("the usage limit of your account at {name} is reached"),
                );
                match resets_in {
                    Some(time) => {
                        failure.hint(format!("wait {}, or use another account", span(*time)))
                    }
                    None => failure.hint(format!("check plan and billing at {name}")),
                }
            }
            Self::RateLimited { retry_after, .. } => {
                let failure = say(FailureCode::RateLimited, format!("{name} is asked too often"));
                match retry_after {
                    Some(time) => failure.hint(format!("try again in {}", span(*time))),
                    None => failure.hint("try again in a while"),
                }
            }
            Self::Overloaded { .. } => {
                say(FailureCode::ProviderUnavailable, format!("{model} at {name} is overloaded"))
                    .hint("try again in a while, or choose another model")
            }
            Self::Server { words, .. } => {
                let status = words.status.map(|status| format!(" (status {status})"));
                say(
                    FailureCode::ProviderUnavailable,
                    format!("{name} failed{}", status.unwrap_or_default()),
                )
                .hint("try again in a while")
            }
            Self::Connect { why, .. } => unreachable(*why, &endpoint),
            Self::Lost(what) => {
                say(FailureCode::StreamLost, format!("the answer of {name} broke off: {what}"))
                    .hint("check the network, then say it again")
            }
            Self::Idle(time) => {
                say(FailureCode::StreamLost, format!("{name} said nothing for {}", span(*time)))
                    .hint("say it again; a slow model can be given more time in the configuration")
            }
            Self::Incomplete { reason, .. } => match reason.as_str() {
                "max_output_tokens" => {
                    say(FailureCode::MaxTokens, "the model's limit of output is reached".to_owned())
                        .hint("say \"go on\", or ask for a shorter answer")
                }
                "content_filter" => say(
                    FailureCode::BadRequest,
                    format!("{name} stopped the answer by its content filter"),
                )
                .hint("say it in another way"),
                reason => say(FailureCode::Agent, format!("{name} cut the answer short: {reason}")),
            },
            Self::Protocol(what) => say(
                FailureCode::Protocol,
                format!("{endpoint}/responses does not speak the Responses API: {what}"),
            )
            .hint("check base_url"),
        }
    }

    /// The classification of the queue protocol's `error`: a word, or an object with the status.
    pub fn codex_error_info(&self) -> Raw<'static> {
        let status = self.words().and_then(|words| words.status);
        let with =
            |word: &str| format!(r#"{{"{word}":{{"http_status_code":{}}}}}"#, Number(status));
        let word = |word: &str| format!("\"{word}\"");
        let info = match self {
            Self::NoKey(_) | Self::Unauthorized(_) => word("unauthorized"),
            Self::ContextWindowExceeded(_) => word("context_window_exceeded"),
            Self::UsageLimit { .. } => word("usage_limit_exceeded"),
            Self::BadRequest(_) => word("bad_request"),
            Self::Overloaded { .. } => word("server_overloaded"),
            Self::Server { .. } => word("internal_server_error"),
            Self::RateLimited { .. } => with("response_too_many_failed_attempts"),
            Self::Forbidden(_) | Self::NotFound { .. } | Self::Connect { .. } => {
                with("http_connection_failed")
            }
            Self::Lost(_) | Self::Idle(_) => with("response_stream_disconnected"),
            Self::Incomplete { reason, .. } if reason == "max_output_tokens" => word(reason),
            Self::Protocol(_) => word("protocol"),
            Self::Settings(_) | Self::Incomplete { .. } => word("other"),
        };
        serde_json::value::RawValue::from_string(info).map(Raw::Owned).unwrap_or_default()
    }
}

struct Number(Option<u16>);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("null"),
        }
    }
}

fn unreachable(why: Unreachable, endpoint: &str) -> Failure {
    let say = |message: String, hint: &str| {
        Failure::new(FailureCode::ProviderUnavailable, message).hint(hint)
    };
    match why {
        Unreachable::Name => say(
            format!("the host of {endpoint} is not known"),
            "check base_url, and whether this machine is online",
        ),
        Unreachable::Refused => {
            say(format!("nothing listens at {endpoint}"), "start the server, or correct base_url")
        }
        Unreachable::Tls => say(
            format!("there is no secure connection to {endpoint}"),
            "check base_url (http:// or https://) and the certificate; SSL_CERT_FILE names others",
        ),
        Unreachable::Timeout => say(
            format!("{endpoint} does not answer"),
            "check the network, a proxy (HTTPS_PROXY) and base_url",
        ),
        Unreachable::Closed | Unreachable::Other => say(
            format!("the connection to {endpoint} failed"),
            "check the network, a proxy (HTTPS_PROXY) and base_url",
        ),
    }
}

fn other_key(key: &Key) -> String {
    match key {
        Key::None => {
            "it wants a key: name a variable or a file with one in the configuration".into()
        }
        Key::Env(name) => format!("put a valid key into {name}"),
        Key::File(path) => format!("put a valid key into {}", path.display()),
        Key::Given(_) => "use another key".into(),
    }
}

/// A time in words.
fn span(time: Duration) -> String {
    match time.as_secs() {
        0 => "a second".to_owned(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} minutes", seconds.div_ceil(60)),
        seconds => format!("{} hours", seconds.div_ceil(3600)),
    }
}
