//! Scripts: what the model answers, as data.

use std::time::Duration;

use serde_json::Value;

/// The answers to one prompt, one step per request.
///
/// A step with tool calls is over when all their results have come back; the last
/// step answers everything after it.
#[derive(Clone, Debug)]
pub struct Script {
    steps: Vec<Step>,
}

/// One answer of the model.
#[derive(Clone, Debug)]
pub enum Step {
    /// A whole message; it stops for tools if it has any.
    Message(Vec<Block>),
    /// A message that ends because the output limit is reached.
    MaxTokens(Vec<Block>),
    /// No stream at all.
    HttpError { status: u16, message: String, retry_after: Option<u32> },
    /// The connection breaks after this many chunks.
    Drop { blocks: Vec<Block>, after: usize },
    /// The stream ends with an error event after these blocks.
    ErrorEvent { blocks: Vec<Block>, message: String },
    /// One step per attempt of the same request; the last one repeats.
    Attempts(Vec<Step>),
}

/// A content block of a message.
#[derive(Clone, Debug)]
pub enum Block {
    /// Text, a delta per chunk.
    Text(Vec<String>),
    /// Reasoning, a delta per chunk.
    Think(Vec<String>),
    /// Text with a pause before each chunk.
    Paced { chunks: Vec<String>, pause: Duration },
    /// Text whose chunks each wait for a permit of the gate.
    Gated { gate: String, chunks: Vec<String> },
    /// A tool call. A string as input makes a freeform call of the Responses API.
    ToolUse { name: String, input: Value },
    /// A search that the model's own side runs.
    ServerSearch { query: String },
}

impl Block {
    /// Text with a chunk per word.
    pub fn text(text: &str) -> Block {
        Block::Text(words(text))
    }

    /// Reasoning with a chunk per word.
    pub fn think(text: &str) -> Block {
        Block::Think(words(text))
    }

    pub fn tool(name: &str, input: Value) -> Block {
        Block::ToolUse { name: name.to_owned(), input }
    }

    fn waits_for_result(&self) -> bool {
        matches!(self, Block::ToolUse { .. })
    }
}

impl Step {
    pub fn say(text: &str) -> Step {
        Step::Message(vec![Block::text(text)])
    }

    pub fn tool(name: &str, input: Value) -> Step {
        Step::Message(vec![Block::tool(name, input)])
    }

    /// The content that a stream starts to send.
    pub(crate) fn blocks(&self) -> &[Block] {
        match self {
            Step::Message(blocks)
            | Step::MaxTokens(blocks)
            | Step::Drop { blocks, .. }
            | Step::ErrorEvent { blocks, .. } => blocks,
            Step::HttpError { .. } | Step::Attempts(_) => &[],
        }
    }

    fn n_results(&self) -> usize {
        match self {
            Step::Message(blocks) => blocks.iter().filter(|block| block.waits_for_result()).count(),
            Step::Attempts(steps) => steps.last().map_or(0, Step::n_results),
            _ => 0,
        }
    }
}

impl Script {
    /// A script of these steps.
    pub fn new(steps: impl Into<Vec<Step>>) -> Script {
        let steps = steps.into();
        assert!(!steps.is_empty(), "a script needs a step");
        Script { steps }
    }

    /// One message of text.
    pub fn say(text: &str) -> Script {
        Script::new([Step::say(text)])
    }

    /// One tool call, then text.
    pub fn tool_then_say(tool: Block, text: &str) -> Script {
        Script::new([Step::Message(vec![tool]), Step::say(text)])
    }

    /// The step after `results` tool results, and its place in the script.
    pub(crate) fn step(&self, results: usize, attempt: usize) -> (Step, usize) {
        let mut left = results;
        let mut index = 0;
        while index + 1 < self.steps.len() {
            let needed = self.steps[index].n_results();
            if needed == 0 || left < needed {
                break;
            }
            left -= needed;
            index += 1;
        }
        let step = match &self.steps[index] {
            Step::Attempts(steps) => &steps[attempt.min(steps.len() - 1)],
            step => step,
        };
        (step.clone(), index)
    }
}

/// Splits before each space, so that the chunks join to the text again.
fn words(text: &str) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let space = if chunks.is_empty() { "" } else { " " };
        chunks.push(format!("{space}{word}"));
    }
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}
