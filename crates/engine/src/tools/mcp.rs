//! Tools of servers: asked for where that is wanted, called, told.

use std::path::Path;
use std::time::Instant;

use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{
    self, ElicitationRequest, EventMsg, ExecApprovalRequest, McpInvocation, McpOutput, McpResult,
    McpToolCallBegin, McpToolCallEnd,
};
use tieline_wire::text::Str;

use super::{Outcome, Scene, leave as terms};
use crate::calls::Call;
use crate::command::Sandbox;
use crate::mcp::{CallResult, Elicitation, Found, Leave, leave};
use crate::order::Verdict;
use crate::truncate::{self, Limit};

/// How much of an answer the model gets.
const SHOWN: Limit = Limit::Tokens(10_000);

/// Calls a tool of a server, or one of ours that looks at servers.
pub(super) async fn call(scene: &Scene, call: &Call, name: &str, arguments: &str) -> Outcome {
    let shared = &scene.shared;
    if let Some(told) = shared.mcp.call_ours(name, arguments).await {
        return match told {
            Ok(json) => Outcome::said(truncate::truncated(&json, SHOWN)),
            Err(why) => Outcome::failed(why),
        };
    }
    let Some(found) = shared.mcp.find(name) else {
        return Outcome::failed(format!("unsupported call: {name}"));
    };
    if let Some(refused) = refusal(scene, call, &found, arguments).await {
        return refused;
    }
    let event = McpToolCallBegin {
        call_id: Str::Borrowed(&call.id),
        invocation: invocation(&found, arguments),
    };
    shared.out.send(&scene.task, EventMsg::McpToolCallBegin(event)).await;
    let begun = Instant::now();
    let result = shared.mcp.call(name, arguments).await;
    let took = begun.elapsed();
    let event = McpToolCallEnd {
        call_id: Str::Borrowed(&call.id),
        invocation: invocation(&found, arguments),
        duration: sqeq::Duration { secs: took.as_secs(), nanos: took.subsec_nanos() },
        result: match &result {
            Ok(result) => McpResult::Ok(output(result)),
            Err(why) => McpResult::Err(Str::Borrowed(why)),
        },
    };
    shared.out.send(&scene.task, EventMsg::McpToolCallEnd(Box::new(event))).await;
    match result {
        Ok(result) => {
            let sees = shared.settings.sees(&scene.context.model);
            Outcome { output: result.to_model(SHOWN, sees), aborts: false }
        }
        Err(why) => Outcome::failed(why),
    }
}

/// Asks for leave if that is wanted; what to say to the model where there is none.
async fn refusal(scene: &Scene, call: &Call, found: &Found, given: &str) -> Option<Outcome> {
    let shared = &scene.shared;
    let words = ["mcp", &found.server, &found.tool].map(str::to_owned);
    // It is the tool that is allowed, wherever the work is done.
    let anywhere = Path::new("");
    let granted = shared.granted().has_command(&words, anywhere, false);
    let reason = match leave(&scene.context.terms(), found.hint, granted) {
        Leave::Run => return None,
        Leave::Forbid(why) => return Some(Outcome::forbidden(why)),
        Leave::Ask(reason) => reason,
    };
    let terms = terms::Terms {
        why: reason.to_owned(),
        held: Some(Sandbox::None),
        ..terms::Terms::default()
    };
    // Whoever says yes has seen what the tool is given.
    let shown = words.iter().map(String::as_str).chain([given]);
    let event = ExecApprovalRequest {
        call_id: Str::Borrowed(&call.id),
        command: shown.map(Str::Borrowed).collect(),
        cwd: Str::Owned(scene.context.cwd.display().to_string()),
        reason: Some(terms.sentence()),
        tieline: Some(terms.besides()),
        turn_id: Some(Str::Borrowed(&scene.task)),
        ..ExecApprovalRequest::default()
    };
    let answer = shared.asked.leave(&scene.task, &call.id);
    shared.out.send(&scene.task, EventMsg::ExecApprovalRequest(Box::new(event))).await;
    match answer.get().await.unwrap_or(Verdict::Abort) {
        Verdict::Yes => None,
        // Rules are about commands; for a tool a yes for ever is one for the session.
        Verdict::ForSession | Verdict::Always(_) => {
            shared.granted().command(&words, anywhere, false);
            None
        }
        Verdict::No(why) => Some(Outcome::rejected(why)),
        Verdict::Abort => Some(Outcome::aborted()),
    }
}

/// A server asks the user.
pub(crate) fn question(it: &Elicitation) -> EventMsg<'_> {
    let raw = |json: &str| serde_json::value::RawValue::from_string(json.to_owned()).ok();
    EventMsg::ElicitationRequest(ElicitationRequest {
        server_name: Str::Borrowed(&it.server),
        id: raw(&it.id).map(Raw::Owned).unwrap_or_default(),
        message: Some(Str::Borrowed(&it.message)),
        request: raw(&it.request).map(Raw::Owned),
    })
}

fn invocation<'a>(found: &'a Found, arguments: &'a str) -> McpInvocation<'a> {
    McpInvocation {
        server: Str::Borrowed(&found.server),
        tool: Str::Borrowed(&found.tool),
        arguments: serde_json::from_str(arguments).ok().map(Raw::Borrowed),
    }
}

fn output(result: &CallResult) -> McpOutput<'_> {
    McpOutput {
        content: result.content.iter().map(|part| Raw::Borrowed(part)).collect(),
        structured_content: result.structured.as_deref().map(Raw::Borrowed),
        is_error: Some(result.is_error),
    }
}
