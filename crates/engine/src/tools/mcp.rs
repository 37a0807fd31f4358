//! Tools of servers.

use std::time::Instant;

use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    self, EventMsg, ExecApprovalRequest, McpInvocation, McpOutput, McpResult, McpToolCallBegin, McpToolCallEnd,
};
use tieline_wire::text::Str;

use super::{Outcome, Scene};
use crate::calls::Call;
use crate::mcp::{Leave, leave};
use crate::order::Verdict;
use crate::truncate::Limit;

/// What a model is shown of an output.
const SHOWN: Limit = Limit::Tokens(10_000);

/// Calls a tool of a server.
pub(super) async fn call(scene: &Scene, call: &Call, name: &str, arguments: &str) -> Outcome {
    let shared = &scene.shared;
    if let Some(given) = shared.mcp.call_ours(name, arguments).await {
        return Outcome::said(given.unwrap_or_else(|why| why));
    }
    let Some(found) = shared.mcp.find(name) else {
        return Outcome::failed(format!("unsupported call: {name}"));
    };
    let words = vec!["mcp".to_owned(), found.server.clone(), found.tool.clone()];
    let granted = shared.granted().has_command(&words, &scene.context.cwd, false);
    match leave(&scene.context.terms(), found.hint, granted) {
        Leave::Run => {}
        Leave::Forbid(reason) => return Outcome::failed(format!("rejected: {reason}")),
        Leave::Ask(reason) => match ask(scene, call, &words, reason).await {
            Verdict::Yes => {}
            Verdict::ForSession | Verdict::Always(_) => {
                shared.granted().command(&words, &scene.context.cwd, false);
            }
            Verdict::No(Some(why)) => return Outcome::failed(format!("rejected by user: {why}")),
            Verdict::No(None) => return Outcome::failed("rejected by user"),
            Verdict::Abort => return Outcome::aborted(),
        },
    }
    let invocation = || McpInvocation {
        server: Str::Borrowed(&found.server),
        tool: Str::Borrowed(&found.tool),
        arguments: raw(arguments),
    };
    let call_id = || Str::Borrowed(call.id.as_str());
    let begin = McpToolCallBegin { call_id: call_id(), invocation: invocation() };
    shared.out.send(&scene.task, EventMsg::McpToolCallBegin(begin)).await;
    let began = Instant::now();
    let given = shared.mcp.call(name, arguments).await;
    let took = began.elapsed();
    let result = match &given {
        Ok(given) => McpResult::Ok(McpOutput {
            content: given.content.iter().cloned().map(Raw::Owned).collect(),
            structured_content: given.structured.clone().map(Raw::Owned),
            is_error: Some(given.is_error),
        }),
        Err(why) => McpResult::Err(Str::Borrowed(why)),
    };
    let end = McpToolCallEnd {
        call_id: call_id(),
        invocation: invocation(),
        duration: sqeq::Duration { secs: took.as_secs(), nanos: took.subsec_nanos() },
        result,
    };
    shared.out.send(&scene.task, EventMsg::McpToolCallEnd(Box::new(end))).await;
    match given {
        Ok(given) => {
            let sees = shared.settings.sees(&scene.context.model);
            Outcome { output: given.to_model(SHOWN, sees), aborts: false, undo: None }
        }
        Err(why) => Outcome::failed(why),
    }
}

async fn ask(scene: &Scene, call: &Call, words: &[String], reason: &str) -> Verdict {
    let event = ExecApprovalRequest {
        call_id: Str::Borrowed(&call.id),
        command: words.iter().map(|word| Str::Borrowed(word.as_str())).collect(),
        cwd: Str::Owned(scene.context.cwd.display().to_string()),
        reason: Some(Str::Borrowed(reason)),
        turn_id: Some(Str::Borrowed(&scene.task)),
        ..ExecApprovalRequest::default()
    };
    let answer = scene.shared.asked.leave(&scene.task, &call.id);
    let event = EventMsg::ExecApprovalRequest(Box::new(event));
    scene.shared.out.send(&scene.task, event).await;
    answer.get().await.unwrap_or(Verdict::Abort)
}

fn raw(arguments: &str) -> Option<Raw<'static>> {
    serde_json::value::RawValue::from_string(arguments.to_owned()).ok().map(Raw::Owned)
}
