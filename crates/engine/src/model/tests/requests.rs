//! What is sent, and what is never shown.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tieline_wire::responses::{Item, Request};

use super::server::{Server, chunked, refusal};
use super::{KEY, ask, client, drain, provider, request};
use crate::model::{Client, Key, ModelError, Provider, Secret};

const COMPLETED: &[u8] = b"data: {\"type\":\"response.completed\"}\n\n";

async fn server() -> Server {
    Server::start(vec![chunked([COMPLETED], true, "")]).await
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}

#[tokio::test]
async fn a_request_has_its_headers_and_no_compression() {
    let server = server().await;
    let mut provider = provider(&format!("{}/", server.url));
    provider.query_params = vec![("api-version".to_owned(), "1 &2".to_owned())];
    provider.headers = vec![("X-Team".to_owned(), "blue".to_owned())];
    provider.env_headers = vec![
        ("X-Org".to_owned(), "ORG".to_owned()),
        ("X-Not-Set".to_owned(), "NOT_SET".to_owned()),
    ];
    provider.user_agent = "tieline/1".to_owned();
    let env = |name: &str| (name == "ORG").then(|| "acme".into());
    let client = Client::with_env(provider, env).unwrap();
    let mut request = request();
    request.prompt_cache_key = Some("thread-1".to_owned());
    drain(&mut client.stream(&request).await.unwrap()).await.1.unwrap();
    let (head, body) = server.requests().remove(0);
    assert!(head.starts_with("POST /v1/responses?api-version=1+%262 HTTP/1.1"), "{head}");
    let expected = [
        ("authorization", Some("Bearer sk-very-secret-123")),
        ("accept", Some("text/event-stream")),
        ("content-type", Some("application/json")),
        ("user-agent", Some("tieline/1")),
        ("session_id", Some("thread-1")),
        ("x-team", Some("blue")),
        ("x-org", Some("acme")),
        ("x-not-set", None),
        ("accept-encoding", None),
        ("cookie", None),
    ];
    for (name, value) in expected {
        assert_eq!(header(&head, name), value, "{name}");
    }
    assert_eq!(body, request.to_json());
}

#[tokio::test]
async fn azure_has_a_header_of_its_own() {
    let server = server().await;
    let mut provider = provider(&server.url);
    provider.azure = true;
    drain(&mut Client::new(provider).unwrap().stream(&request()).await.unwrap()).await.1.unwrap();
    let (head, _) = server.requests().remove(0);
    assert_eq!(header(&head, "api-key"), Some(KEY));
    assert_eq!(header(&head, "authorization"), None);
    let azure = Provider::new("azure", "https://me.openai.azure.com/openai/v1");
    assert!(azure.azure && azure.stores_responses);
    assert!(!Provider::new("x", "https://example.com/?x=me.openai.azure.com").azure);
}

#[tokio::test]
async fn sessions_share_connections() {
    let server = server().await;
    let client = client(&server.url);
    for _ in 0..5 {
        let clone = client.clone();
        drain(&mut clone.stream(&request()).await.unwrap()).await.1.unwrap();
    }
    assert_eq!((server.requests().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    let server = server().await;
    let mut provider = provider(&server.url);
    provider.key = Key::Env("SOME_KEY".to_owned());
    let client = Client::with_env(provider, |_| None).unwrap();
    let error = client.stream(&request()).await.unwrap_err();
    assert!(matches!(error, ModelError::NoKey(_)), "{error}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_key_file_may_be_corrected_between_two_requests() {
    use std::os::unix::fs::PermissionsExt;
    let server = server().await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let mut provider = provider(&server.url);
    provider.key = Key::File(path.clone());
    let client = Client::new(provider).unwrap();
    assert!(matches!(client.stream(&request()).await, Err(ModelError::NoKey(_))));
    std::fs::write(&path, "sk-from-file\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    drain(&mut client.stream(&request()).await.unwrap()).await.1.unwrap();
    assert_eq!(header(&server.requests()[0].0, "authorization"), Some("Bearer sk-from-file"));
}

#[test]
fn settings_that_cannot_be_used_are_said() {
    let wrong = |provider: Provider| match Client::new(provider) {
        Err(ModelError::Settings(what)) => what,
        other => panic!("{other:?}"),
    };
    for url in ["", "localhost:80/v1", "file:///etc", "http://"] {
        assert!(wrong(Provider::new("x", url)).contains("URL"), "{url}");
    }
    let mut provider = Provider::new("x", "http://127.0.0.1/v1");
    provider.headers = vec![("no name".to_owned(), "v".to_owned())];
    assert!(wrong(provider.clone()).contains("no name"));
    provider.headers = vec![("name".to_owned(), "secret\n".to_owned())];
    assert!(!wrong(provider).contains("secret"));
}

#[tokio::test]
async fn rate_limits_are_read_from_the_headers() {
    let headers = "x-request-id: req_9\r\nx-ratelimit-limit-requests: 500\r\n\
        x-ratelimit-remaining-requests: 499\r\nx-ratelimit-reset-requests: 6m0s\r\n\
        x-ratelimit-remaining-tokens: 1000\r\nx-codex-primary-used-percent: 12.5\r\n\
        x-codex-primary-window-minutes: 300\r\nx-codex-primary-reset-at: 1800000000\r\n\
        x-codex-plan-type: plus\r\n";
    let server = Server::start(vec![chunked([COMPLETED], true, headers)]).await;
    let stream = ask(&server.url).await.unwrap();
    assert_eq!(stream.request_id(), Some("req_9"));
    let limits = stream.rate_limits().unwrap();
    let requests = limits.requests.unwrap();
    assert_eq!((requests.limit, requests.remaining), (Some(500), Some(499)));
    assert_eq!(requests.reset, Some(Duration::from_secs(360)));
    assert_eq!(limits.tokens.unwrap().remaining, Some(1000));
    let told = serde_json::to_string(&limits.to_sqeq().unwrap()).unwrap();
    assert_eq!(
        told,
        r#"{"primary":{"used_percent":12.5,"window_minutes":300,"resets_at":1800000000},"secondary":null,"plan_type":"plus"}"#
    );
    assert!(ask(&self::server().await.url).await.unwrap().rate_limits().is_none());
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_key_is_in_no_log_line_and_no_error() {
    const OTHER: &str = "other-secret-456";
    const QUERY: &str = "query-secret-789";
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    // The provider repeats everything it is told.
    let echo = format!(r#"{{"error":{{"message":"wrong: {KEY} {OTHER} {QUERY}"}}}}"#);
    let failed = format!(
        "data: {{\"type\":\"response.failed\",\"response\":{{\"error\":{{\"message\":\"{KEY}\"}}}}}}\n\n"
    );
    let replies = vec![
        refusal(500, "", &echo),
        refusal(401, "", &echo),
        chunked([failed.as_bytes()], true, ""),
    ];
    let server = Server::start(replies).await;
    let mut provider = provider(&server.url);
    provider.headers = vec![("x-other".to_owned(), OTHER.to_owned())];
    provider.query_params = vec![("key".to_owned(), QUERY.to_owned())];
    let client = Client::new(provider.clone()).unwrap();
    let prompt = Item::message("user", "my private words");
    let request = Request::new("m", vec![prompt]);
    let mut shown = format!("{client:?} {provider:?} {:?}", Secret::new(KEY));
    let mut tell = |error: ModelError| {
        let failure = error.explain(&provider, "m");
        shown.push_str(&format!("{error} {error:?} {failure:?}"));
    };
    tell(client.stream(&request).await.unwrap_err());
    let mut stream = client.stream(&request).await.unwrap();
    let debug = format!("{stream:?}");
    tell(stream.next().await.unwrap_err());
    // Nor when nobody listens.
    let nobody = Provider { base_url: "http://127.0.0.1:1/v1".to_owned(), ..provider.clone() };
    tell(Client::new(nobody).unwrap().stream(&request).await.unwrap_err());
    drop(guard);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("the model is asked again"), "{log}");
    for text in [&shown, &log, &debug] {
        for secret in [KEY, OTHER, QUERY, "my private words"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
