//! Its lines, with the keys in the order of the recordings.

use std::process;

use serde_json::Value;

use crate::options::Options;
use crate::script::Outcome;
use crate::voice::{self, text, uuid};

const TIMESTAMP: &str = "2026-01-01T00:00:00.000Z";
const USAGE: &str = r#"{"input_tokens":1000,"cache_creation_input_tokens":20,"cache_read_input_tokens":400,"output_tokens":1,"service_tier":"standard"}"#;

/// What every line of one session carries, and the numbers of its ids.
pub(crate) struct Session {
    id: String,
    model: String,
    permission_mode: String,
    cwd: String,
    n_ids: u64,
}

impl Session {
    pub(crate) fn new(options: &Options) -> Session {
        let or = |value: &Option<String>, default: &str| {
            value.clone().filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        let own_id = voice::session_id(0);
        Session {
            id: or(&options.session_id, &own_id),
            model: or(&options.model, "claude-opus-5-5"),
            permission_mode: or(&options.permission_mode, "default"),
            cwd: voice::current_dir(),
            n_ids: 0,
        }
    }

    /// A fresh id such as `msg_0001`.
    pub(crate) fn next_id(&mut self, prefix: &str) -> String {
        self.n_ids += 1;
        format!("{prefix}_{:04}", self.n_ids)
    }

    pub(crate) fn next_uuid(&mut self) -> String {
        self.n_ids += 1;
        uuid(self.n_ids)
    }

    /// The part that closes most lines.
    fn tail(&mut self) -> String {
        let uuid = self.next_uuid();
        format!(r#""session_id":"{}","uuid":"{uuid}"}}"#, self.id)
    }

    pub(crate) fn init(&mut self) -> String {
        let (cwd, id, uuid) = (text(&self.cwd), self.id.clone(), self.next_uuid());
        let (model, mode) = (text(&self.model), text(&self.permission_mode));
        format!(
            r#"{{"type":"system","subtype":"init","cwd":{cwd},"session_id":"{id}","tools":["Task","AskUserQuestion","Bash","Edit","ExitPlanMode","Read","WebSearch","Write"],"mcp_servers":[],"model":{model},"permissionMode":{mode},"slash_commands":["clear","compact","init"],"apiKeySource":"ANTHROPIC_API_KEY","claude_code_version":"2.1.325","output_style":"default","agents":["general-purpose"],"skills":[],"plugins":[],"capabilities":["interrupt_receipt_v1"],"uuid":"{uuid}"}}"#
        )
    }

    pub(crate) fn assistant(&mut self, message_id: &str, block: &str, aborted: bool) -> String {
        let (head, tail) = self.assistant_around(message_id, aborted);
        format!("{head}{block}{tail}")
    }

    /// An `assistant` line without its content block.
    pub(crate) fn assistant_around(&mut self, message_id: &str, aborted: bool) -> (String, String) {
        let (model, id, uuid) = (text(&self.model), self.id.clone(), self.next_uuid());
        let mark = if aborted { r#","aborted":true"# } else { "" };
        (
            format!(
                r#"{{"type":"assistant","message":{{"id":"{message_id}","type":"message","role":"assistant","model":{model},"content":["#
            ),
            format!(
                r#"],"stop_reason":null,"stop_sequence":null,"usage":{USAGE},"context_management":null}},"parent_tool_use_id":null,"session_id":"{id}","uuid":"{uuid}","timestamp":"{TIMESTAMP}","request_id":"req_0001"{mark}}}"#
            ),
        )
    }

    pub(crate) fn stream_event(&mut self, message_id: &str, event: &str) -> String {
        let (id, uuid) = (self.id.clone(), self.next_uuid());
        format!(
            r#"{{"type":"stream_event","event":{event},"session_id":"{id}","parent_tool_use_id":null,"uuid":"{uuid}","api_message_id":"{message_id}"}}"#
        )
    }

    pub(crate) fn message_start(&mut self, message_id: &str) -> String {
        let model = text(&self.model);
        let event = format!(
            r#"{{"type":"message_start","message":{{"id":"{message_id}","type":"message","role":"assistant","model":{model},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{USAGE}}}}}"#
        );
        self.stream_event(message_id, &event)
    }

    pub(crate) fn status(&mut self) -> String {
        let tail = self.tail();
        format!(r#"{{"type":"system","subtype":"status","status":"requesting",{tail}"#)
    }

    pub(crate) fn user(&mut self, content: &str) -> String {
        let (id, uuid) = (self.id.clone(), self.next_uuid());
        format!(
            r#"{{"type":"user","message":{{"role":"user","content":{content}}},"parent_tool_use_id":null,"session_id":"{id}","uuid":"{uuid}","timestamp":"{TIMESTAMP}"}}"#
        )
    }

    /// The user message as `--replay-user-messages` gives it back.
    pub(crate) fn replay(&mut self, message: &Value) -> String {
        let own = self.next_uuid();
        let uuid = text(message["uuid"].as_str().unwrap_or(&own));
        let (id, message) = (&self.id, &message["message"]);
        format!(
            r#"{{"type":"user","message":{message},"session_id":"{id}","parent_tool_use_id":null,"uuid":{uuid},"timestamp":"{TIMESTAMP}","isReplay":true}}"#
        )
    }

    pub(crate) fn tool_result(&mut self, tool_id: &str, content: &str, is_error: bool) -> String {
        let (id, uuid, content) = (self.id.clone(), self.next_uuid(), text(content));
        let result = match is_error {
            true => content.clone(),
            false => format!(
                r#"{{"stdout":{content},"stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}}"#
            ),
        };
        format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"{tool_id}","type":"tool_result","content":{content},"is_error":{is_error}}}]}},"parent_tool_use_id":null,"session_id":"{id}","uuid":"{uuid}","timestamp":"{TIMESTAMP}","tool_use_result":{result}}}"#
        )
    }

    /// The end of a turn. The real one writes `type` as a late key, so does this.
    pub(crate) fn result(&mut self, outcome: Outcome, reason: &str, said: &str) -> String {
        let (id, uuid) = (self.id.clone(), self.next_uuid());
        let is_error = outcome != Outcome::Success;
        let stop = if is_error { "null" } else { r#""end_turn""# };
        let (subtype, body) = match outcome {
            Outcome::Error => ("error_during_execution", r#""errors":["fake failure"]"#.to_owned()),
            Outcome::Success => {
                ("success", format!(r#""api_error_status":null,"result":{}"#, text(said)))
            }
            Outcome::ApiError => (
                "success",
                r#""api_error_status":500,"result":"API Error: 500 fake failure""#.to_owned(),
            ),
        };
        format!(
            r#"{{"duration_api_ms":1,"stop_reason":{stop},"session_id":"{id}","total_cost_usd":0.00518,"usage":{{"input_tokens":1000,"cache_creation_input_tokens":20,"cache_read_input_tokens":400,"output_tokens":50,"server_tool_use":{{"web_search_requests":0,"web_fetch_requests":0}},"service_tier":"standard"}},"modelUsage":{{"claude-opus-5-5":{{"inputTokens":1000,"outputTokens":50,"cacheReadInputTokens":400,"cacheCreationInputTokens":20,"webSearchRequests":0,"costUSD":0.00518,"contextWindow":1000000,"maxOutputTokens":128000}}}},"permission_denials":[],"terminal_reason":"{reason}","fast_mode_state":"off","safety_stops":0,"is_error":{is_error},"num_turns":1,"subtype":"{subtype}",{body},"type":"result","duration_ms":2,"uuid":"{uuid}","queued_turn_count":0,"result_index":0,"model_usage_since_last_result":{{}}}}"#
        )
    }
}

pub(crate) fn control_response(request_id: &Value, answer: &str) -> String {
    format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{request_id},"response":{answer}}}}}"#
    )
}

pub(crate) fn can_use_tool(request_id: &str, tool_id: &str, name: &str, input: &Value) -> String {
    let name = text(name);
    format!(
        r#"{{"type":"control_request","request_id":"{request_id}","request":{{"subtype":"can_use_tool","tool_name":{name},"display_name":{name},"input":{input},"permission_suggestions":[{{"type":"setMode","mode":"acceptEdits","destination":"session"}}],"tool_use_id":"{tool_id}"}}}}"#
    )
}

pub(crate) fn cancel_request(request_id: &str) -> String {
    format!(r#"{{"type":"control_cancel_request","request_id":"{request_id}"}}"#)
}

pub(crate) fn initialize_answer() -> String {
    let pid = process::id();
    format!(
        r#"{{"commands":[{{"name":"compact","description":"Shorten the conversation","argumentHint":"","builtin":true}},{{"name":"init","description":"Describe the project","argumentHint":"","builtin":true}}],"agents":[{{"name":"general-purpose","description":"For any task"}}],"output_style":"default","available_output_styles":["default"],"models":[{{"value":"default","resolvedModel":"claude-opus-5-5","displayName":"Default (recommended)","description":"The default model"}},{{"value":"sonnet","resolvedModel":"claude-sonnet-4-5","displayName":"Sonnet","description":"For everyday tasks"}}],"account":{{"tokenSource":"none","apiKeySource":"ANTHROPIC_API_KEY","apiProvider":"firstParty"}},"pid":{pid},"claude_code_version":"2.1.325","current_permission_mode":"default","session_state":"idle"}}"#
    )
}

pub(crate) fn text_block(content: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, text(content))
}

pub(crate) fn thinking_block(content: &str) -> String {
    format!(r#"{{"type":"thinking","thinking":{},"signature":"ZmFrZQ=="}}"#, text(content))
}

pub(crate) fn tool_block(id: &str, name: &str, input: &Value) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":{},"input":{input}}}"#, text(name))
}

pub(crate) fn delta(kind: &str, key: &str, content: &str) -> String {
    let content = text(content);
    format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"{kind}","{key}":{content}}}}}"#
    )
}
