//! The official library for Rust: its types must understand everything we write.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, McpServer, NewSessionRequest,
    PermissionOptionKind, PromptRequest, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification, TextContent,
};
use agent_client_protocol::{Agent, Client, Lines};
use tieline_proc::{Child, Spec};
use tieline_testkit::acp::{Direction, Frame};
use tokio::io::AsyncWriteExt;

use super::play::{Say, Scenario, runs_a_command};
use super::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn play(stage: &Stage, scenario: &Scenario) -> Vec<Frame> {
    let program = stage.tieline();
    let mut spec = Spec::new(program.path, program.cwd);
    spec.args = program.args;
    for (name, value) in program.env {
        spec.env.set(name, value);
    }
    let mut child = tieline_proc::spawn(spec).await.unwrap();
    let stdin = child.stdin.take().unwrap();
    let (child, tape) = (Arc::new(child), Tape::new());
    let outgoing = futures::sink::unfold((stdin, tape.clone()), async |(mut stdin, tape), line| {
        let line: String = line;
        tape.push(Direction::ToAgent, line.as_bytes());
        stdin.write_all(format!("{}\n", line.trim_end()).as_bytes()).await?;
        Ok::<_, std::io::Error>((stdin, tape))
    });
    let incoming = (Arc::clone(&child), Vec::new(), tape.clone());
    let incoming = futures::stream::unfold(incoming, async |(child, mut buffer, tape)| {
        let line = next_line(&child, &mut buffer).await?;
        tape.push(Direction::ToClient, line.as_bytes());
        Some((Ok(line), (child, buffer, tape)))
    });
    let understood = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&understood);
    let talk = Client
        .v1()
        .on_receive_notification(
            async move |_: SessionNotification, _cx| {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _cx| {
                responder.respond(RequestPermissionResponse::new(allow(&request)))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(
            Lines::new(Box::pin(outgoing), Box::pin(incoming)),
            async |connection: ConnectionTo<Agent>| {
                converse(&connection, stage, scenario, &tape).await
            },
        );
    tokio::time::timeout(PATIENCE, talk).await.expect("it ends in time").unwrap();
    let frames = tape.frames();
    // What comes after the last answer may find the connection closed.
    let is_answer =
        |frame: &Frame| frame.direction == Direction::ToClient && frame.method().is_none();
    let last = frames.iter().rposition(is_answer).unwrap_or_default();
    let updates = frames[..last].iter().filter(|frame| frame.update().is_some()).count();
    assert!(understood.load(Ordering::Relaxed) >= updates, "every update was understood");
    frames
}

async fn converse(
    connection: &ConnectionTo<Agent>,
    stage: &Stage,
    scenario: &Scenario,
    tape: &Tape,
) -> Result<(), agent_client_protocol::Error> {
    connection.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
    let servers: Vec<McpServer> =
        serde_json::from_value(stage.servers(scenario.mcp)).expect("servers are as they say");
    let request = NewSessionRequest::new(stage.workspace()).mcp_servers(servers);
    let session = connection.send_request(request).block_task().await?;
    for Say { prompt, cancel } in scenario.turns {
        let prompt = vec![ContentBlock::Text(TextContent::new(*prompt))];
        let turn = connection.send_request(PromptRequest::new(session.session_id.clone(), prompt));
        if *cancel {
            tape.wait_for(runs_a_command).await;
            connection.send_notification(CancelNotification::new(session.session_id.clone()))?;
        }
        // Some turns are to fail; what became of it is in the frames.
        turn.block_task().await.ok();
    }
    Ok(())
}

fn allow(request: &RequestPermissionRequest) -> RequestPermissionOutcome {
    let is_once = |kind: &PermissionOptionKind| *kind == PermissionOptionKind::AllowOnce;
    match request.options.iter().find(|option| is_once(&option.kind)) {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
            option.option_id.clone(),
        )),
        None => RequestPermissionOutcome::Cancelled,
    }
}

async fn next_line(child: &Child, buffer: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
        }
        let mut piece = [0; 16 * 1024];
        match child.read_stdout(&mut piece).await {
            Ok(n @ 1..) => buffer.extend_from_slice(&piece[..n]),
            _ => return None,
        }
    }
}

/// Every line of both directions.
#[derive(Clone)]
struct Tape {
    began: Instant,
    frames: Arc<Mutex<Vec<Frame>>>,
}

impl Tape {
    fn new() -> Tape {
        Tape { began: Instant::now(), frames: Arc::default() }
    }

    fn push(&self, direction: Direction, line: &[u8]) {
        let frame = Frame::new(self.began.elapsed(), direction, line.trim_ascii_end().to_vec());
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
    }

    fn frames(&self) -> Vec<Frame> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn wait_for(&self, find: impl Fn(&Frame) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !self.frames().iter().any(&find) {
            assert!(Instant::now() < deadline, "{:?}", self.frames());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
