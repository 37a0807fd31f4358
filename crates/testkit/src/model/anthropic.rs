//! The answers in the form of the Anthropic Messages API.

use serde_json::{Value, json};

use super::prompt::Prompt;
use super::script::{Block, Step};
use super::{Frame, Ids};

/// The answer as one JSON document.
pub(crate) fn message(prompt: &Prompt, step: &Step, index: usize, ids: &Ids) -> Value {
    let mut message = start(prompt, index, ids);
    let mut content = Vec::new();
    for block in step.blocks() {
        content.extend(whole_block(prompt, block, ids));
    }
    message["content"] = content.into();
    message["stop_reason"] = stop_reason(step).into();
    message["usage"]["output_tokens"] = output_tokens(index).into();
    message
}

/// The answer as a stream.
pub(crate) fn frames(prompt: &Prompt, step: &Step, index: usize, ids: &Ids) -> Vec<Frame> {
    let mut stream = Stream { frames: Vec::new(), index: 0 };
    stream.push("message_start", json!({"message": start(prompt, index, ids)}));
    for block in step.blocks() {
        stream.block(prompt, block, ids);
    }
    match step {
        Step::Drop { after, .. } => {
            cut_after(&mut stream.frames, *after);
            return stream.frames;
        }
        Step::ErrorEvent { message, .. } => {
            // The failure comes inside the last block: an agent keeps a closed one.
            stream.frames.pop_if(|last| is_event(last, "content_block_stop"));
            stream
                .push("error", json!({"error": {"type": "overloaded_error", "message": message}}));
            return stream.frames;
        }
        _ => {}
    }
    stream.push(
        "message_delta",
        json!({
            "delta": {"stop_reason": stop_reason(step), "stop_sequence": null},
            "usage": {"output_tokens": output_tokens(index)},
        }),
    );
    stream.push("message_stop", json!({}));
    stream.frames
}

struct Stream {
    frames: Vec<Frame>,
    /// The index of the next content block.
    index: usize,
}

impl Stream {
    fn push(&mut self, name: &'static str, mut data: Value) {
        data["type"] = name.into();
        self.frames.push(Frame::Event { name, data });
    }

    fn delta(&mut self, delta: Value) {
        let index = self.index;
        self.push("content_block_delta", json!({"index": index, "delta": delta}));
    }

    fn block(&mut self, prompt: &Prompt, block: &Block, ids: &Ids) {
        for mut whole in whole_block(prompt, block, ids) {
            let deltas = match block {
                Block::ToolUse { .. } => {
                    let input = std::mem::replace(&mut whole["input"], json!({})).to_string();
                    pieces(&input, 24)
                }
                Block::ServerSearch { .. } => vec![],
                Block::Think(_) => {
                    whole["thinking"] = "".into();
                    whole["signature"] = "".into();
                    vec![]
                }
                _ => {
                    whole["text"] = "".into();
                    vec![]
                }
            };
            let index = self.index;
            self.push("content_block_start", json!({"index": index, "content_block": whole}));
            for piece in deltas {
                self.delta(json!({"type": "input_json_delta", "partial_json": piece}));
            }
            self.chunks(block);
            self.push("content_block_stop", json!({"index": index}));
            self.index += 1;
        }
    }

    fn chunks(&mut self, block: &Block) {
        let text = |chunk: &str| json!({"type": "text_delta", "text": chunk});
        match block {
            Block::Text(chunks) => chunks.iter().for_each(|chunk| self.delta(text(chunk))),
            Block::Paced { chunks, pause } => {
                for chunk in chunks {
                    self.frames.push(Frame::Pause(*pause));
                    self.delta(text(chunk));
                }
            }
            Block::Gated { gate, chunks } => {
                for chunk in chunks {
                    self.frames.push(Frame::Await(gate.clone()));
                    self.delta(text(chunk));
                    self.frames.push(Frame::Passed(gate.clone()));
                }
            }
            Block::Think(chunks) => {
                for chunk in chunks {
                    self.delta(json!({"type": "thinking_delta", "thinking": chunk}));
                }
                self.delta(json!({"type": "signature_delta", "signature": "ZmFrZQ=="}));
            }
            Block::ToolUse { .. } | Block::ServerSearch { .. } => {}
        }
    }
}

/// The content blocks of one script block; a search is a call and its result.
fn whole_block(prompt: &Prompt, block: &Block, ids: &Ids) -> Vec<Value> {
    match block {
        Block::Text(chunks) | Block::Paced { chunks, .. } | Block::Gated { chunks, .. } => {
            vec![json!({"type": "text", "text": chunks.concat()})]
        }
        Block::Think(chunks) => {
            let signature = "ZmFrZQ==";
            vec![json!({"type": "thinking", "thinking": chunks.concat(), "signature": signature})]
        }
        Block::ToolUse { name, input } => {
            let (id, input) = (ids.next("toolu"), prompt.fill(input));
            vec![json!({"type": "tool_use", "id": id, "name": name, "input": input})]
        }
        Block::ServerSearch { query } => {
            let id = ids.next("srvtoolu");
            let hit = json!({
                "type": "web_search_result", "title": "A page", "url": "http://127.0.0.1/page",
                "encrypted_content": "ZmFrZQ==", "page_age": null,
            });
            vec![
                json!({
                    "type": "server_tool_use", "id": id, "name": "web_search",
                    "input": {"query": query},
                }),
                json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [hit]}),
            ]
        }
    }
}

fn start(prompt: &Prompt, index: usize, ids: &Ids) -> Value {
    json!({
        "id": ids.next("msg"), "type": "message", "role": "assistant", "model": prompt.model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": 1000 + 10 * index, "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 400, "output_tokens": 1, "service_tier": "standard",
        },
    })
}

fn stop_reason(step: &Step) -> &'static str {
    let calls = step.blocks().iter().any(|block| matches!(block, Block::ToolUse { .. }));
    match step {
        Step::MaxTokens(_) => "max_tokens",
        _ if calls => "tool_use",
        _ => "end_turn",
    }
}

fn output_tokens(index: usize) -> usize {
    50 + index
}

fn is_event(frame: &Frame, wanted: &str) -> bool {
    matches!(frame, Frame::Event { name, .. } if *name == wanted)
}

/// Cuts the stream after `n` deltas.
fn cut_after(frames: &mut Vec<Frame>, n: usize) {
    let deltas = frames.iter().enumerate().filter(
        |(_, frame)| matches!(frame, Frame::Event { name, .. } if *name == "content_block_delta"),
    );
    let end = match n.checked_sub(1) {
        Some(last) => deltas.map(|(at, _)| at + 1).nth(last).unwrap_or(frames.len()),
        None => 1,
    };
    frames.truncate(end);
    frames.push(Frame::Cut);
}

/// `text` in pieces of `n` characters.
fn pieces(text: &str, n: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(n).map(|piece| piece.iter().collect()).collect()
}
