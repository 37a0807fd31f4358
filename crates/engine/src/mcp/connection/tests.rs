use rmcp::model::{CallToolRequest, CallToolRequestParams};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::super::questions::Questions;
use super::*;

/// The other end of a connection, which a test plays.
struct Server {
    input: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl Server {
    async fn read(&mut self) -> Value {
        serde_json::from_str(&self.input.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn send(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
}

/// A connection without a process.
async fn connected() -> (Arc<Connection>, Server, Arc<Questions>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let mut server = Server { input: BufReader::new(input).lines(), output };
    let questions = Arc::<Questions>::default();
    let root = Arc::new(Mutex::new(PathBuf::from("/")));
    let life = Arc::new(Life::new("one", root, Arc::clone(&questions)));
    let (_, gone) = watch::channel(false);
    let handler = Handler { life: Arc::clone(&life), gone: gone.clone() };
    let shaking = async {
        let hello = server.read().await;
        let result = json!({
            "protocolVersion": hello["params"]["protocolVersion"], "capabilities": {},
            "serverInfo": {"name": "fake", "version": "1"},
        });
        server.send(json!({"jsonrpc": "2.0", "id": hello["id"], "result": result})).await;
        assert_eq!(server.read().await["method"], "notifications/initialized");
    };
    let (running, ()) = tokio::join!(handler.serve(ours), shaking);
    let running = running.unwrap();
    let transport = McpTransport::Http { url: String::new(), headers: Default::default() };
    let connection = Connection {
        peer: running.peer().clone(),
        running: Mutex::new(Some(running)),
        process: None,
        life,
        mask: Mask::of(&transport),
        gone,
        broken: AtomicBool::new(false),
    };
    (Arc::new(connection), server, questions)
}

fn call() -> ClientRequest {
    ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("x")))
}

const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn progress_gives_a_call_more_time() {
    let (connection, mut server, _) = connected().await;
    let slow = async {
        let call = server.read().await;
        let token = &call["params"]["_meta"]["progressToken"];
        for step in 0..5 {
            tokio::time::sleep(Duration::from_secs(50)).await;
            let params = json!({"progressToken": token, "progress": step});
            let method = "notifications/progress";
            server.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
        }
        tokio::time::sleep(Duration::from_secs(50)).await;
        let result = json!({"content": []});
        server.send(json!({"jsonrpc": "2.0", "id": call["id"], "result": result})).await;
    };
    let (answer, ()) = tokio::join!(connection.request(call(), LIMIT), slow);
    answer.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_without_progress_is_given_up_and_cancelled() {
    let (connection, mut server, _) = connected().await;
    let (answer, sent) = tokio::join!(connection.request(call(), LIMIT), server.read());
    assert_eq!(answer.unwrap_err(), "the MCP server one did not answer within 60 seconds");
    let told = server.read().await;
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], sent["id"]);
    assert!(connection.is_alive(), "it may only be slow");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_while_the_user_thinks() {
    let (connection, mut server, questions) = connected().await;
    let mut asked = questions.listen();
    let asking = async {
        let call = server.read().await;
        let schema = json!({"type": "object", "properties": {"deep": {"type": "object"}}});
        let params = json!({"message": "Which?", "requestedSchema": schema});
        let method = "elicitation/create";
        server.send(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await;
        let question = asked.recv().await.unwrap();
        tokio::time::sleep(10 * LIMIT).await;
        assert!(questions.answer("one", &question.id, Some(None)));
        let answer = server.read().await;
        assert_eq!(answer["result"], json!({"action": "accept", "content": {}}));
        let result = json!({"content": []});
        server.send(json!({"jsonrpc": "2.0", "id": call["id"], "result": result})).await;
    };
    let (answer, ()) = tokio::join!(connection.request(call(), LIMIT), asking);
    answer.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_connection_is_told_at_once() {
    let (connection, mut server, _) = connected().await;
    let begun = Instant::now();
    let ending = async {
        server.read().await;
        drop(server);
    };
    let (answer, ()) = tokio::join!(connection.request(call(), LIMIT), ending);
    assert!(answer.unwrap_err().contains("one ended during the call"));
    assert!(begun.elapsed() < LIMIT && !connection.is_alive());
}

#[tokio::test]
async fn a_list_of_tools_without_an_end_is_an_error() {
    for (description, said) in [("short", "64 pages"), (&*"x".repeat(1 << 20), "8 MiB")] {
        let (connection, mut server, _questions) = connected().await;
        let tool =
            json!({"name": "x", "description": description, "inputSchema": {"type": "object"}});
        let serving = async {
            loop {
                let asked = server.read().await;
                assert_eq!(asked["method"], "tools/list");
                let result = json!({"tools": [tool], "nextCursor": "again"});
                server.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
            }
        };
        tokio::select! {
            listed = connection.list_tools() => {
                let why = listed.unwrap_err();
                assert!(why.contains(said), "{why}");
            }
            () = serving => {}
        }
    }
}

#[tokio::test]
async fn pages_of_tools_are_one_list() {
    let (connection, mut server, _questions) = connected().await;
    let serving = async {
        for (name, next) in [("a", json!("1")), ("b", json!("2")), ("c", json!(null))] {
            let asked = server.read().await;
            let tool = json!({"name": name, "inputSchema": {"type": "object"}});
            let mut result = json!({"tools": [tool]});
            if !next.is_null() {
                result["nextCursor"] = next;
            }
            server.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
        }
    };
    let (listed, ()) = tokio::join!(connection.list_tools(), serving);
    let names: Vec<String> = listed.unwrap().into_iter().map(|it| it.name.into_owned()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}
