//! The answers in the form of the OpenAI Responses API.

use serde_json::{Value, json};

use super::prompt::Prompt;
use super::script::{Block, Step};
use super::{Frame, Ids};

/// The answer as one JSON document.
pub(crate) fn response(prompt: &Prompt, step: &Step, index: usize, ids: &Ids) -> Value {
    let output: Vec<Value> =
        step.blocks().iter().map(|block| whole_item(prompt, block, ids)).collect();
    finished(&ids.next("resp"), prompt, step, index, output)
}

/// The answer as a stream.
pub(crate) fn frames(prompt: &Prompt, step: &Step, index: usize, ids: &Ids) -> Vec<Frame> {
    let id = ids.next("resp");
    let mut stream = Stream { frames: Vec::new(), sequence: 0, deltas: 0, limit: None };
    if let Step::Drop { after, .. } = step {
        stream.limit = Some(*after);
    }
    let created = json!({
        "id": id, "object": "response", "status": "in_progress", "model": prompt.model, "output": [],
    });
    stream.push("response.created", json!({"response": created}));
    let mut output = Vec::new();
    for (at, block) in step.blocks().iter().enumerate() {
        let item = whole_item(prompt, block, ids);
        // A failing stream leaves its last item open.
        let closed = !matches!(step, Step::ErrorEvent { .. });
        stream.item(at, block, &item, closed);
        output.push(item);
    }
    match step {
        Step::Drop { .. } => stream.frames.push(Frame::Cut),
        Step::ErrorEvent { message, .. } => stream.push(
            "response.failed",
            json!({"response": {
                "id": id, "object": "response", "status": "failed",
                "error": {"code": "server_error", "message": message},
            }}),
        ),
        Step::MaxTokens(_) => {
            let response = finished(&id, prompt, step, index, output);
            stream.push("response.incomplete", json!({"response": response}));
        }
        _ => {
            let response = finished(&id, prompt, step, index, output);
            stream.push("response.completed", json!({"response": response}));
        }
    }
    stream.frames
}

struct Stream {
    frames: Vec<Frame>,
    sequence: u64,
    deltas: usize,
    /// Nothing is sent after this many deltas.
    limit: Option<usize>,
}

impl Stream {
    fn push(&mut self, name: &'static str, mut data: Value) {
        if self.limit.is_some_and(|limit| self.deltas >= limit) && self.sequence > 0 {
            return;
        }
        data["type"] = name.into();
        data["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        self.deltas += usize::from(name.ends_with(".delta"));
        self.frames.push(Frame::Event { name, data });
    }

    fn item(&mut self, at: usize, block: &Block, item: &Value, closed: bool) {
        let mut opened = item.clone();
        opened["status"] = "in_progress".into();
        match item["type"].as_str() {
            Some("message") => opened["content"] = json!([]),
            Some("reasoning") => opened["summary"] = json!([]),
            Some("function_call") => opened["arguments"] = "".into(),
            Some("custom_tool_call") => opened["input"] = "".into(),
            _ => {}
        }
        self.push("response.output_item.added", json!({"output_index": at, "item": opened}));
        let id = &item["id"];
        let place = json!({"item_id": id, "output_index": at});
        match block {
            Block::Text(chunks) => {
                chunks.iter().for_each(|chunk| self.text(&place, chunk));
            }
            Block::Paced { chunks, pause } => {
                for chunk in chunks {
                    self.frames.push(Frame::Pause(*pause));
                    self.text(&place, chunk);
                }
            }
            Block::Gated { gate, chunks } => {
                for chunk in chunks {
                    self.frames.push(Frame::Await(gate.clone()));
                    self.text(&place, chunk);
                    self.frames.push(Frame::Passed(gate.clone()));
                }
            }
            Block::Think(chunks) => self.thought(&place, chunks),
            Block::ToolUse { .. } => self.arguments(&place, item),
            Block::ServerSearch { .. } => {}
        }
        if closed {
            self.push("response.output_item.done", json!({"output_index": at, "item": item}));
        }
    }

    fn text(&mut self, place: &Value, chunk: &str) {
        let mut data = place.clone();
        data["content_index"] = 0.into();
        data["delta"] = chunk.into();
        self.push("response.output_text.delta", data);
    }

    fn thought(&mut self, place: &Value, chunks: &[String]) {
        let mut data = place.clone();
        data["summary_index"] = 0.into();
        let mut part = data.clone();
        part["part"] = json!({"type": "summary_text", "text": ""});
        self.push("response.reasoning_summary_part.added", part);
        for chunk in chunks {
            data["delta"] = chunk.as_str().into();
            self.push("response.reasoning_summary_text.delta", data.clone());
        }
    }

    fn arguments(&mut self, place: &Value, item: &Value) {
        let mut data = place.clone();
        if item["type"] == "custom_tool_call" {
            data["delta"] = item["input"].clone();
            self.push("response.custom_tool_call_input.delta", data);
        } else {
            data["delta"] = item["arguments"].clone();
            self.push("response.function_call_arguments.delta", data);
        }
    }
}

fn whole_item(prompt: &Prompt, block: &Block, ids: &Ids) -> Value {
    match block {
        Block::Text(chunks) | Block::Paced { chunks, .. } | Block::Gated { chunks, .. } => json!({
            "type": "message", "id": ids.next("msg"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": chunks.concat(), "annotations": []}],
        }),
        Block::Think(chunks) => json!({
            "type": "reasoning", "id": ids.next("rs"), "status": "completed",
            "summary": [{"type": "summary_text", "text": chunks.concat()}],
            "encrypted_content": "ZmFrZQ==",
        }),
        Block::ToolUse { name, input } => call(prompt, name, &prompt.fill(input), ids),
        Block::ServerSearch { query } => json!({
            "type": "web_search_call", "id": ids.next("ws"), "status": "completed",
            "action": {"type": "search", "query": query},
        }),
    }
}

fn call(prompt: &Prompt, name: &str, input: &Value, ids: &Ids) -> Value {
    let (id, call_id) = (ids.next("item"), ids.next("call"));
    let custom = |name: &str, input: &str| {
        json!({
            "type": "custom_tool_call", "id": id, "call_id": call_id, "name": name,
            "input": input, "status": "completed",
        })
    };
    // The default models of Codex run everything as JavaScript in one tool.
    let code_mode = prompt.tools.iter().any(|tool| tool.name == "exec" && tool.kind == "custom");
    if code_mode {
        return custom("exec", &format!("const r = await tools.{name}({input}); text(r);"));
    }
    if let Value::String(text) = input {
        return custom(name, text);
    }
    let mut call = json!({
        "type": "function_call", "id": id, "call_id": call_id, "name": name,
        "arguments": input.to_string(), "status": "completed",
    });
    // Codex may hide MCP tools behind a search; it finds them by server and name.
    if let Some((server, tool)) = name.rsplit_once("__").filter(|_| !prompt.has_tool(name)) {
        call["namespace"] = server.into();
        call["name"] = tool.into();
    }
    call
}

fn finished(id: &str, prompt: &Prompt, step: &Step, index: usize, output: Vec<Value>) -> Value {
    let (input, made) = (1000 + 10 * index, 50 + index);
    let mut response = json!({
        "id": id, "object": "response", "status": "completed", "model": prompt.model,
        "output": output,
        "usage": {
            "input_tokens": input, "input_tokens_details": {"cached_tokens": 400},
            "output_tokens": made, "output_tokens_details": {"reasoning_tokens": 7},
            "total_tokens": input + made,
        },
    });
    if matches!(step, Step::MaxTokens(_)) {
        response["status"] = "incomplete".into();
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    response
}
