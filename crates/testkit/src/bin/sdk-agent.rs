//! A small agent of the Agent Client Protocol, made with the protocol's own SDK: a peer that nobody
//! here wrote. The first word of a prompt says what it does; it never does anything else.

use std::sync::Arc;

use agent_client_protocol::on_receive_request;
use agent_client_protocol::v1::{ConnectionTo, schema};
use agent_client_protocol::{Agent, Client, Error, Result, Stdio, on_receive_notification};
use tokio::sync::Notify;

const SESSION: &str = "sdk-session";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let cancelled = Arc::new(Notify::new());
    let cancels = Arc::clone(&cancelled);
    Agent
        .v1()
        .name("sdk-agent")
        .on_receive_request(
            async move |hello: schema::InitializeRequest, responder, _| {
                let can = schema::AgentCapabilities::new().load_session(true);
                let who = schema::Implementation::new("sdk-agent", "5.0.0");
                let answer = schema::InitializeResponse::new(hello.protocol_version);
                responder.respond(answer.agent_capabilities(can).agent_info(who))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: schema::NewSessionRequest, responder, _| {
                let mode = |id: &'static str| schema::SessionMode::new(id, id);
                let modes = schema::SessionModeState::new("ask", vec![mode("ask"), mode("code")]);
                responder.respond(schema::NewSessionResponse::new(SESSION).modes(modes))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |load: schema::LoadSessionRequest, responder, cx| {
                if &*load.session_id.0 != SESSION {
                    return responder.respond_with_error(Error::new(-32002, "no such session"));
                }
                // The history comes before the answer.
                say(&cx, "what was said before")?;
                responder.respond(schema::LoadSessionResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: schema::SetSessionModeRequest, responder, _| {
                responder.respond(schema::SetSessionModeResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |prompt: schema::PromptRequest, responder, cx: ConnectionTo<Client>| {
                let cancelled = Arc::clone(&cancelled);
                cx.clone().spawn(async move {
                    match work(&cx, &prompt, &cancelled).await {
                        Ok(reason) => responder.respond(schema::PromptResponse::new(reason)),
                        Err(error) => responder.respond_with_error(error),
                    }
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |_: schema::CancelNotification, _| {
                cancels.notify_one();
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(Stdio::new())
        .await
}

async fn work(
    cx: &ConnectionTo<Client>,
    prompt: &schema::PromptRequest,
    cancelled: &Notify,
) -> Result<schema::StopReason> {
    let text = match prompt.prompt.first() {
        Some(schema::ContentBlock::Text(text)) => text.text.as_str(),
        _ => "",
    };
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "speak" => {
            think(cx, "Let me see.")?;
            say(cx, "Hello ")?;
            say(cx, "there.")?;
        }
        "plan" => plan(cx)?,
        "permission" => return permission(cx, cancelled).await,
        "read" => match read(cx, rest).await {
            Ok(content) => say(cx, &content)?,
            Err(error) => say(cx, &format!("refused: {}", error.message))?,
        },
        "write" => {
            let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
            let write = schema::WriteTextFileRequest::new(SESSION, path, content);
            match cx.send_request(write).block_task().await {
                Ok(_) => say(cx, "written")?,
                Err(error) => say(cx, &format!("refused: {}", error.message))?,
            }
        }
        "run" => match run(cx, rest).await {
            Ok(said) => say(cx, &said)?,
            Err(error) => say(cx, &format!("refused: {}", error.message))?,
        },
        "hang" => {
            // Left running: it is the client's to end with us.
            let sleep = schema::CreateTerminalRequest::new(SESSION, rest);
            cx.send_request(sleep).block_task().await?;
            say(cx, "started")?;
            cancelled.notified().await;
            return Ok(schema::StopReason::Cancelled);
        }
        "die" => std::process::exit(3),
        _ => {
            say(cx, "waiting")?;
            cancelled.notified().await;
            return Ok(schema::StopReason::Cancelled);
        }
    }
    Ok(schema::StopReason::EndTurn)
}

fn update(cx: &ConnectionTo<Client>, update: schema::SessionUpdate) -> Result<()> {
    cx.send_notification(schema::SessionNotification::new(SESSION, update))
}

fn chunk(text: &str) -> schema::ContentChunk {
    schema::ContentChunk::new(schema::ContentBlock::Text(schema::TextContent::new(text)))
}

fn say(cx: &ConnectionTo<Client>, text: &str) -> Result<()> {
    update(cx, schema::SessionUpdate::AgentMessageChunk(chunk(text)))
}

fn think(cx: &ConnectionTo<Client>, text: &str) -> Result<()> {
    update(cx, schema::SessionUpdate::AgentThoughtChunk(chunk(text)))
}

fn plan(cx: &ConnectionTo<Client>) -> Result<()> {
    let step = |text: &str, status| {
        schema::PlanEntry::new(text, schema::PlanEntryPriority::Medium, status)
    };
    let steps = vec![
        step("look", schema::PlanEntryStatus::Completed),
        step("act", schema::PlanEntryStatus::Pending),
    ];
    update(cx, schema::SessionUpdate::Plan(schema::Plan::new(steps)))?;
    say(cx, "planned")
}

async fn permission(cx: &ConnectionTo<Client>, cancelled: &Notify) -> Result<schema::StopReason> {
    let call = schema::ToolCall::new("call-1", "Paint it black")
        .kind(schema::ToolKind::Other)
        .status(schema::ToolCallStatus::Pending)
        .raw_input(serde_json::json!({"colour": "black"}));
    update(cx, schema::SessionUpdate::ToolCall(call))?;
    let option = |id: &'static str, name: &str, kind| schema::PermissionOption::new(id, name, kind);
    let options = vec![
        option("yes", "Yes", schema::PermissionOptionKind::AllowOnce),
        option("all", "All", schema::PermissionOptionKind::AllowAlways),
        option("half", "Half of it", schema::PermissionOptionKind::AllowAlways),
        option("no", "No", schema::PermissionOptionKind::RejectOnce),
    ];
    let fields = schema::ToolCallUpdateFields::new();
    let about = schema::ToolCallUpdate::new("call-1", fields);
    let ask = schema::RequestPermissionRequest::new(SESSION, about, options);
    let answer = cx.send_request(ask).block_task().await?;
    let (said, status) = match answer.outcome {
        schema::RequestPermissionOutcome::Selected(it) => {
            let status = match &*it.option_id.0 {
                "no" => schema::ToolCallStatus::Failed,
                _ => schema::ToolCallStatus::Completed,
            };
            (it.option_id.0.to_string(), status)
        }
        _ => {
            cancelled.notified().await;
            return Ok(schema::StopReason::Cancelled);
        }
    };
    let done = schema::ToolCallUpdateFields::new().status(status);
    let done = schema::ToolCallUpdate::new("call-1", done);
    update(cx, schema::SessionUpdate::ToolCallUpdate(done))?;
    say(cx, &said)?;
    Ok(schema::StopReason::EndTurn)
}

async fn read(cx: &ConnectionTo<Client>, path: &str) -> Result<String> {
    let read = schema::ReadTextFileRequest::new(SESSION, path);
    Ok(cx.send_request(read).block_task().await?.content)
}

async fn run(cx: &ConnectionTo<Client>, line: &str) -> Result<String> {
    let create = schema::CreateTerminalRequest::new(SESSION, line).output_byte_limit(64);
    let terminal = cx.send_request(create).block_task().await?.terminal_id;
    let shown = schema::ToolCallContent::Terminal(schema::Terminal::new(terminal.clone()));
    let call = schema::ToolCall::new("call-2", line)
        .kind(schema::ToolKind::Execute)
        .status(schema::ToolCallStatus::InProgress)
        .content(vec![shown]);
    update(cx, schema::SessionUpdate::ToolCall(call))?;
    let wait = schema::WaitForTerminalExitRequest::new(SESSION, terminal.clone());
    let exit = cx.send_request(wait).block_task().await?.exit_status;
    let output = schema::TerminalOutputRequest::new(SESSION, terminal.clone());
    let output = cx.send_request(output).block_task().await?;
    let release = schema::ReleaseTerminalRequest::new(SESSION, terminal);
    cx.send_request(release).block_task().await?;
    let status = match exit.exit_code {
        Some(0) => schema::ToolCallStatus::Completed,
        _ => schema::ToolCallStatus::Failed,
    };
    let done = schema::ToolCallUpdateFields::new().status(status);
    let done = schema::ToolCallUpdate::new("call-2", done);
    update(cx, schema::SessionUpdate::ToolCallUpdate(done))?;
    Ok(format!("exit {:?}, cut {}: {}", exit.exit_code, output.truncated, output.output))
}
