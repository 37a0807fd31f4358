use std::fmt::Write;
use std::time::Duration;

use expect_test::expect;

use crate::model::{Key, KeyTrouble, Missing, ModelError, Provider, Unreachable, Words};

fn errors() -> Vec<ModelError> {
    let words = |status, message: &str| Words {
        message: message.to_owned(),
        status,
        request_id: status.map(|_| "req_1".to_owned()),
    };
    let connect = |why| ModelError::Connect { why, detail: "the system's words".to_owned() };
    vec![
        ModelError::NoKey(KeyTrouble::Unset { name: "OPENAI_API_KEY".to_owned() }),
        ModelError::NoKey(KeyTrouble::Exposed { path: "/home/me/key".into(), mode: 0o644 }),
        ModelError::Settings("\"x\" is no name of a header".to_owned()),
        ModelError::Unauthorized(words(Some(401), "Incorrect API key provided")),
        ModelError::Forbidden(words(Some(403), "no access")),
        ModelError::NotFound { missing: Missing::Model, words: words(Some(404), "no such model") },
        ModelError::NotFound { missing: Missing::Endpoint, words: words(Some(404), "") },
        ModelError::BadRequest(words(Some(400), "Invalid value: 'x'")),
        ModelError::ContextWindowExceeded(words(None, "too long")),
        ModelError::UsageLimit {
            words: words(Some(429), "used up"),
            resets_in: Some(Duration::from_secs(5000)),
        },
        ModelError::RateLimited {
            words: words(Some(429), "slow"),
            retry_after: Some(Duration::from_secs(7)),
        },
        ModelError::Overloaded { words: words(None, "busy"), retry_after: None },
        ModelError::Server { words: words(Some(502), "a page of HTML"), retry_after: None },
        connect(Unreachable::Name),
        connect(Unreachable::Refused),
        connect(Unreachable::Tls),
        connect(Unreachable::Timeout),
        connect(Unreachable::Closed),
        ModelError::Lost("stream closed before response.completed".to_owned()),
        ModelError::Idle(Duration::from_secs(300)),
        ModelError::Incomplete { reason: "max_output_tokens".to_owned(), usage: None },
        ModelError::Incomplete { reason: "content_filter".to_owned(), usage: None },
        ModelError::Protocol("text/html in place of a stream of events".to_owned()),
    ]
}

#[test]
fn every_error_says_what_to_do() {
    let mut provider = Provider::new("openai", "https://user:pass@host.example/v1/?key=x");
    provider.key = Key::Env("OPENAI_API_KEY".to_owned());
    let mut text = String::new();
    for error in errors() {
        let failure = error.explain(&provider, "gpt-5.5");
        writeln!(text, "{:?}: {failure}", failure.code).unwrap();
        let detail = failure.detail.unwrap_or_default();
        writeln!(text, "  {:?} {detail:?} {:?}", failure.http_status, error.codex_error_info())
            .unwrap();
        assert!(!text.contains("pass@"), "{text}");
    }
    expect![[r#"
        NotLoggedIn: there is no key for openai: OPENAI_API_KEY is not set; set OPENAI_API_KEY to the provider's key, or write the key to a file of mode 0600 and name it in the configuration
          None "" "unauthorized"
        NotLoggedIn: there is no key for openai: the key in /home/me/key can be read by others (mode 0644); run `chmod 600 /home/me/key`
          None "" "unauthorized"
        AgentCannotStart: cannot ask openai: "x" is no name of a header; correct the model provider in the configuration
          None "" "other"
        NotLoggedIn: openai does not accept the key; put a valid key into OPENAI_API_KEY
          Some(401) "Incorrect API key provided; request req_1" "unauthorized"
        NotLoggedIn: openai does not allow this to the key; check at openai whether the key may use gpt-5.5
          Some(403) "no access; request req_1" {"http_connection_failed":{"http_status_code":403}}
        BadRequest: openai has no model gpt-5.5; choose another --model; the provider lists those of your account
          Some(404) "no such model; request req_1" {"http_connection_failed":{"http_status_code":404}}
        BadRequest: there is no https://host.example/v1/responses; check base_url; a server that has only /chat/completions has to be updated to one with the Responses API
          Some(404) "request req_1" {"http_connection_failed":{"http_status_code":404}}
        BadRequest: Invalid value: 'x'
          Some(400) "request req_1" "bad_request"
        BadRequest: the conversation is longer than gpt-5.5 can read; begin afresh, or choose a model with a larger context window
          None "too long" "context_window_exceeded"
        RateLimited: the usage limit of your account at openai is reached; wait 84 minutes, or use another account
          Some(429) "used up; request req_1" "usage_limit_exceeded"
        RateLimited: openai is asked too often; try again in 7 s
          Some(429) "slow; request req_1" {"response_too_many_failed_attempts":{"http_status_code":429}}
        ProviderUnavailable: gpt-5.5 at openai is overloaded; try again in a while, or choose another model
          None "busy" "server_overloaded"
        ProviderUnavailable: openai failed (status 502); try again in a while
          Some(502) "a page of HTML; request req_1" "internal_server_error"
        ProviderUnavailable: the host of https://host.example/v1 is not known; check base_url, and whether this machine is online
          None "the system's words" {"http_connection_failed":{"http_status_code":null}}
        ProviderUnavailable: nothing listens at https://host.example/v1; start the server, or correct base_url
          None "the system's words" {"http_connection_failed":{"http_status_code":null}}
        ProviderUnavailable: there is no secure connection to https://host.example/v1; check base_url (http:// or https://) and the certificate; SSL_CERT_FILE names others
          None "the system's words" {"http_connection_failed":{"http_status_code":null}}
        ProviderUnavailable: https://host.example/v1 does not answer; check the network, a proxy (HTTPS_PROXY) and base_url
          None "the system's words" {"http_connection_failed":{"http_status_code":null}}
        ProviderUnavailable: the connection to https://host.example/v1 failed; check the network, a proxy (HTTPS_PROXY) and base_url
          None "the system's words" {"http_connection_failed":{"http_status_code":null}}
        StreamLost: the answer of openai broke off: stream closed before response.completed; check the network, then say it again
          None "" {"response_stream_disconnected":{"http_status_code":null}}
        StreamLost: openai said nothing for 5 minutes; say it again; a slow model can be given more time in the configuration
          None "" {"response_stream_disconnected":{"http_status_code":null}}
        MaxTokens: the model's limit of output is reached; say "go on", or ask for a shorter answer
          None "" "max_output_tokens"
        BadRequest: openai stopped the answer by its content filter; say it in another way
          None "" "other"
        Protocol: https://host.example/v1/responses does not speak the Responses API: text/html in place of a stream of events; check base_url
          None "" "protocol"
    "#]].assert_eq(&text);
}
