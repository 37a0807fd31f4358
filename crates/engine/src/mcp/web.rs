//! A server behind HTTP.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// How many times a server may send us on.
const REDIRECTS: usize = 5;

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Our HTTP client under rmcp's interface. Addresses may hold secrets, and rmcp logs its errors: they
/// leave here without the address.
#[derive(Clone)]
pub(super) struct Web(reqwest::Client);

/// The way to a server.
pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<Web>, String> {
    let mut sent = Headers::new();
    for (name, value) in headers {
        let known = HeaderName::try_from(name)
            .map_err(|_| format!("{name:?} is not a name of a header"))?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| format!("the value of the header {name} is not a header's value"))?;
        value.set_sensitive(true);
        sent.insert(known, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(sent);
    Ok(StreamableHttpClientTransport::with_client(Web(client()?), config))
}

fn client() -> Result<reqwest::Client, String> {
    // Whoever was first chose; a second choice is refused, and that is fine.
    rustls::crypto::ring::default_provider().install_default().ok();
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .redirect(Policy::custom(same_origin))
        .build()
        .map_err(|error| super::words::told(&error.without_url()))
}

/// Headers of ours may be secrets for that server alone, so another one does not get them.
fn same_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_same =
        attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if is_same && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
}

fn without_address(error: Failed) -> Failed {
    match error {
        Failed::Client(error) => Failed::Client(error.without_url()),
        other => other,
    }
}

impl StreamableHttpClient for Web {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let post = self.0.post_message(uri, message, session_id, auth_header, custom_headers);
        post.await.map_err(without_address)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failed> {
        let delete = self.0.delete_session(uri, session_id, auth_header, custom_headers);
        delete.await.map_err(without_address)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failed> {
        let get = self.0.get_stream(uri, session_id, last_event_id, auth_header, custom_headers);
        get.await.map_err(without_address)
    }
}
