//! What went wrong, in words for a person and for the model.

use std::error::Error;
use std::io;

use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// An error with its causes.
pub(super) fn told(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// Whether a message found nobody at the other end of a pipe.
pub(super) fn is_closed(error: &DynamicTransportError) -> bool {
    let io = error.error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Why a server and we did not come together.
pub(super) fn not_begun(error: &ClientInitializeError) -> String {
    const ENDED: &str = "it ended before it answered";
    match error {
        ClientInitializeError::ConnectionClosed(_) => ENDED.to_owned(),
        ClientInitializeError::TransportError { error, .. } if is_closed(error) => ENDED.to_owned(),
        ClientInitializeError::TransportError { error, .. } => not_sent(error),
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused to begin: {} ({})", error.message, error.code.0)
        }
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to `initialize` is none".to_owned()
        }
        other => told(other),
    }
}

/// Why a message did not reach a server.
pub(super) fn not_sent(error: &DynamicTransportError) -> String {
    type Http = StreamableHttpError<reqwest::Error>;
    const DENIED: &str = "it does not accept our authorization; check its headers";
    // Its own words have the names of Rust types in them; the cause is what counts.
    let cause: &(dyn Error + 'static) = error.error.as_ref();
    match cause.downcast_ref::<Http>() {
        Some(Http::Client(error)) => told(error),
        Some(Http::AuthRequired(_) | Http::InsufficientScope(_)) => DENIED.to_owned(),
        Some(Http::UnexpectedServerResponse(said))
            if said.contains("HTTP 401") || said.contains("HTTP 403") =>
        {
            format!("{DENIED} ({said})")
        }
        Some(Http::UnexpectedServerResponse(said)) => format!("it answered: {said}"),
        Some(Http::HttpStatus(error)) => format!("it answered HTTP {}", error.status),
        Some(other) => told(other),
        None => told(cause),
    }
}
