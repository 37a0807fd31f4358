//! Providers that do not answer.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::server::{Reply, Server, Then, open_ended, refusal};
use super::{KEY, ask, drain, provider, request};
use crate::model::{Client, Missing, ModelError, Provider, Retry, Unreachable};

const COMPLETED: &[u8] = b"data: {\"type\":\"response.completed\"}\n\n";

async fn refused(status: u16, headers: &str, body: &str) -> (ModelError, usize) {
    let server = Server::start(vec![refusal(status, headers, body)]).await;
    let error = ask(&server.url).await.unwrap_err();
    (error, server.requests().len())
}

fn body(code: &str, message: &str) -> String {
    let code = if code.is_empty() { "null".to_owned() } else { format!("\"{code}\"") };
    format!(r#"{{"error":{{"message":"{message}","type":"x","param":null,"code":{code}}}}}"#)
}

#[tokio::test]
async fn a_failing_server_is_asked_again() {
    let replies = vec![
        refusal(500, "", "{}"),
        refusal(502, "", "<html>"),
        refusal(503, "retry-after-ms: 1\r\n", ""),
        open_ended(COMPLETED),
    ];
    let server = Server::start(replies).await;
    let mut stream = ask(&server.url).await.unwrap();
    assert_eq!(drain(&mut stream).await, (1, Ok(())));
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request.1 == requests[0].1 && !request.1.is_empty()));
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_given_up_after_four_more_tries() {
    let (error, requests) = refused(500, "x-request-id: req_7\r\n", &body("", "oops")).await;
    assert_eq!(requests, 5);
    let words = error.words().unwrap();
    assert_eq!((words.status, words.message.as_str()), (Some(500), "oops"));
    assert_eq!(words.request_id.as_deref(), Some("req_7"));
    assert_eq!(error.retry(), Retry::Request(None));
    assert!(matches!(refused(529, "", "").await, (ModelError::Overloaded { .. }, 5)));
}

#[tokio::test]
async fn too_many_requests_are_the_caller_s_to_repeat() {
    let (error, requests) = refused(429, "retry-after: 3\r\n", &body("", "slow down")).await;
    assert_eq!((error.retry(), requests), (Retry::Stream(Some(Duration::from_secs(3))), 1));
    let (error, _) = refused(429, "retry-after-ms: 250\r\nretry-after: 3\r\n", "").await;
    assert_eq!(error.retry(), Retry::Stream(Some(Duration::from_millis(250))));
    let (error, _) = refused(429, "", &body("rate_limit_exceeded", "try again in 28ms")).await;
    assert_eq!(error.retry(), Retry::Stream(Some(Duration::from_millis(28))));
    let (error, _) = refused(429, "retry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\n", "").await;
    assert_eq!(error.retry(), Retry::Stream(None));
}

#[tokio::test]
async fn used_up_is_not_too_often() {
    let limit = r#"{"error":{"type":"usage_limit_reached","message":"m","resets_in_seconds":60}}"#;
    let (error, requests) = refused(429, "", limit).await;
    let ModelError::UsageLimit { resets_in, .. } = error else { panic!("{error}") };
    assert_eq!((resets_in, requests), (Some(Duration::from_secs(60)), 1));
    let (error, _) = refused(429, "", &body("insufficient_quota", "m")).await;
    assert!(matches!(error, ModelError::UsageLimit { .. }));
    let (error, _) = refused(402, "", "").await;
    assert!(matches!(error, ModelError::UsageLimit { .. }));
}

#[tokio::test]
async fn a_wrong_key_and_a_weak_one_are_told_apart() {
    let (error, requests) = refused(401, "", &body("invalid_api_key", "wrong")).await;
    assert!(matches!(error, ModelError::Unauthorized(_)));
    assert_eq!((error.retry(), requests), (Retry::Never, 1));
    let (error, _) = refused(400, "", &body("", "API key not valid. Please pass one.")).await;
    assert!(matches!(error, ModelError::Unauthorized(_)));
    let (error, requests) = refused(403, "", &body("", "no access")).await;
    assert!(matches!(error, ModelError::Forbidden(_)) && requests == 1);
}

#[tokio::test]
async fn a_missing_model_and_a_missing_api_are_told_apart() {
    let missing = async |status, text: &str| match refused(status, "", text).await {
        (ModelError::NotFound { missing, .. }, 1) => missing,
        other => panic!("{other:?}"),
    };
    let openai = body("model_not_found", "The model `x` does not exist or you do not have access");
    assert_eq!(missing(404, &openai).await, Missing::Model);
    assert_eq!(missing(400, &openai).await, Missing::Model);
    assert_eq!(missing(404, r#"{"error":"model 'x' not found"}"#).await, Missing::Model);
    let azure = r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment"}}"#;
    assert_eq!(missing(404, azure).await, Missing::Model);
    for text in [
        "404 page not found",
        "",
        "<html><body>model</body></html>",
        r#"{"detail":"Not Found"}"#,
        r#"{"error":{"message":"File Not Found","type":"not_found_error","code":404}}"#,
        r#"{"error":{"message":"Invalid URL (POST /v1/responses)","code":null}}"#,
    ] {
        assert_eq!(missing(404, text).await, Missing::Endpoint, "{text}");
    }
    assert_eq!(missing(405, "Method Not Allowed").await, Missing::Endpoint);
}

#[tokio::test]
async fn a_bad_request_keeps_the_provider_s_words() {
    let (error, requests) = refused(400, "", &body("", "Unknown parameter: 'x'")).await;
    assert_eq!(error.to_string(), "Unknown parameter: 'x' (status 400)");
    assert!(matches!(error, ModelError::BadRequest(_)) && requests == 1);
    let (error, _) = refused(400, "", &body("context_length_exceeded", "long")).await;
    assert!(matches!(error, ModelError::ContextWindowExceeded(_)));
    let (error, _) = refused(413, "", "Payload Too Large\nmore").await;
    assert_eq!(error.to_string(), "Payload Too Large (status 413)");
}

#[tokio::test]
async fn what_is_no_stream_is_said_to_be_none() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    let reply = Reply { bytes: page.as_bytes().to_vec(), then: Then::Stay };
    let server = Server::start(vec![reply]).await;
    let error = ask(&server.url).await.unwrap_err();
    assert!(matches!(error, ModelError::Protocol(_)), "{error}");
    let (error, requests) = refused(302, "location: http://elsewhere.invalid/\r\n", "").await;
    assert!(error.to_string().contains("http://elsewhere.invalid/"), "{error}");
    assert_eq!(requests, 1);
}

async fn unreachable(provider: Provider) -> Unreachable {
    match Client::new(provider).unwrap().stream(&request()).await.unwrap_err() {
        ModelError::Connect { why, detail } => {
            assert!(!detail.is_empty() && !detail.contains(KEY));
            why
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(unreachable(provider(&url)).await, Unreachable::Refused);
}

#[tokio::test]
async fn a_name_without_an_address() {
    let mut provider = provider("http://nowhere.invalid/v1");
    provider.request_max_retries = 0;
    assert_eq!(unreachable(provider).await, Unreachable::Name);
}

#[tokio::test]
async fn a_port_that_speaks_no_tls() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut connections = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            connections += 1;
            let _read = stream.read(&mut [0; 1024]).await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            if connections > 1 {
                panic!("this does not heal");
            }
        }
    });
    assert_eq!(unreachable(provider(&url)).await, Unreachable::Tls);
    server.abort();
    assert!(server.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_is_tried_again() {
    let closed = Reply { bytes: Vec::new(), then: Then::Close };
    let server = Server::start(vec![closed.clone(), closed, open_ended(COMPLETED)]).await;
    assert_eq!(drain(&mut ask(&server.url).await.unwrap()).await, (1, Ok(())));
    let closed = Reply { bytes: b"HTTP/1.1 2".to_vec(), then: Then::Close };
    let server = Server::start(vec![closed]).await;
    assert_eq!(unreachable(provider(&server.url)).await, Unreachable::Closed);
    assert_eq!(server.requests().len(), 5);
}
