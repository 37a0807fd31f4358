//! Who may speak on a socket.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use tieline_front::sqeq::token::Token;
use tieline_front::sqeq::{Address, Compat, Error, Listener};

use super::client::{Client, Transport, options, socket};
use super::play::Stage;

#[tokio::test]
async fn a_port_speaks_with_nobody_who_does_not_show_the_token() {
    let stage = Stage::new();
    let token = Token::random().unwrap();
    let secret = token.reveal().to_owned();
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), token, false).await.unwrap();
    let address = listener.address();
    let stop = std::future::pending();
    let serving =
        tokio::spawn(listener.serve_until(stage.hub.clone(), options(&stage, Compat::Seed), stop));
    let wrong = [
        json!({"id": "7", "op": {"type": "authenticate", "token": "wrong"}}).to_string(),
        json!({"id": "7", "op": {"type": "authenticate", "token": ""}}).to_string(),
        json!({"id": "7", "op": {"type": "authenticate", "token": secret.get(1..).unwrap()}})
            .to_string(),
        json!({"id": "7", "op": {"type": "configure_session"}}).to_string(),
        "nothing".to_owned(),
        "x".repeat(20 * 1024),
    ];
    for line in wrong {
        let mut client = Client::tcp(&address).await;
        client.send(&line).await;
        let told = client.rest().await;
        assert_eq!(told.len(), 1, "{line}: {told:?}");
        assert_eq!(told[0]["msg"]["type"], "error", "{told:?}");
        assert!(!told[0].to_string().contains(&secret));
    }
    let mut client = Client::tcp(&address).await;
    client.submit("7", json!({"type": "authenticate", "token": secret})).await;
    client.configure().await;
    assert_eq!(client.kinds(), ["session_configured"]);
    serving.abort();
}

#[tokio::test]
async fn clients_without_the_token_take_no_place_of_one_that_has_it() {
    let stage = Stage::new();
    let token = Token::random().unwrap();
    let secret = token.reveal().to_owned();
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), token, false).await.unwrap();
    let address = listener.address();
    let stop = std::future::pending();
    let serving =
        tokio::spawn(listener.serve_until(stage.hub.clone(), options(&stage, Compat::Seed), stop));
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(Client::tcp(&address).await);
    }
    let mut client = Client::tcp(&address).await;
    client.submit("7", json!({"type": "authenticate", "token": secret})).await;
    client.configure().await;
    assert_eq!(client.kinds(), ["session_configured"]);
    // The first went because others came, and not because their time was over.
    let told = silent.remove(0).rest().await;
    assert!(told[0]["msg"]["message"].as_str().unwrap().contains("others wait"), "{told:?}");
    serving.abort();
}

#[tokio::test]
async fn an_address_that_others_can_reach_must_be_wanted() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused =
            Listener::tcp(address.parse().unwrap(), Token::random().unwrap(), false).await;
        assert!(matches!(refused, Err(Error::Remote(_))), "{address}");
    }
    let any = "0.0.0.0:0".parse().unwrap();
    Listener::tcp(any, Token::random().unwrap(), true).await.unwrap();
}

#[tokio::test]
async fn a_socket_is_for_its_user_alone_and_goes_with_its_server() {
    let stage = Stage::new();
    let path = socket(&stage);
    let mut client = Client::new(&stage, Transport::Unix, Compat::Seed).await;
    client.configure().await;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(Listener::unix(&path), Err(Error::InUse(_))));
    client.end().await;
    assert!(!path.exists());
    // What a dead server left behind is replaced, anything else is not.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Listener::unix(&path).unwrap());
    std::fs::write(&path, "mine").unwrap();
    assert!(matches!(Listener::unix(&path), Err(Error::NoSocket(_))));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    let left: Vec<_> =
        stage.dir.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "nothing else is left behind: {left:?}");
}

#[tokio::test]
async fn each_connection_has_a_session_of_its_own() {
    let stage = Stage::new();
    let mut one = Client::new(&stage, Transport::Unix, Compat::Seed).await;
    let mut other = Client::unix(&socket(&stage)).await;
    one.configure().await;
    other.configure().await;
    assert_ne!(one.heard[0]["msg"]["session_id"], other.heard[0]["msg"]["session_id"]);
    one.say("1", "hold").await;
    one.until("task_started").await;
    other.say("1", "say I am not held up.").await;
    let end = other.until_done("1").await;
    assert_eq!(end["msg"]["last_agent_message"], "I am not held up.");
    // A client that goes takes its session with it, and no other.
    drop(other);
    one.submit("2", json!({"type": "interrupt"})).await;
    one.until_done("1").await;
    one.end().await;
}

#[test]
fn places_to_listen_on_are_read() {
    let read = |text: &str| text.parse::<Address>();
    assert_eq!(read("stdio"), Ok(Address::Stdio));
    assert_eq!(read("unix:/a:b"), Ok(Address::Unix("/a:b".into())));
    assert_eq!(read("tcp:[::1]:7"), Ok(Address::Tcp("[::1]:7".parse().unwrap())));
    for bad in ["", "unix:", "tcp:", "tcp:localhost:1", "tcp:127.0.0.1", "http:x"] {
        assert!(read(bad).unwrap_err().to_string().contains("tcp:127.0.0.1:0"), "{bad}");
    }
}
