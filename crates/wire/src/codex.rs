//! What the wires of Codex have in common, in both spellings.

use serde::Deserialize;

/// Tokens as Codex counts them: what came from the cache is part of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Read, from the cache or not.
    #[serde(alias = "inputTokens", deserialize_with = "or_zero")]
    pub input_tokens: u64,
    /// Read from the cache.
    #[serde(alias = "cachedInputTokens", deserialize_with = "or_zero")]
    pub cached_input_tokens: u64,
    /// Written to the cache.
    #[serde(alias = "cacheWriteInputTokens", deserialize_with = "or_zero")]
    pub cache_write_input_tokens: u64,
    /// Written, reasoning included.
    #[serde(alias = "outputTokens", deserialize_with = "or_zero")]
    pub output_tokens: u64,
    /// Of them, reasoning.
    #[serde(alias = "reasoningOutputTokens", deserialize_with = "or_zero")]
    pub reasoning_output_tokens: u64,
    /// All.
    #[serde(alias = "totalTokens", deserialize_with = "or_zero")]
    pub total_tokens: u64,
}

/// What a search of the web does.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SearchAction {
    /// A search: what for.
    pub query: Option<String>,
    /// A page: where.
    pub url: Option<String>,
    /// Something on a page: what.
    pub pattern: Option<String>,
}

/// A figure that is missing, `null` or no figure at all counts nothing.
fn or_zero<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Figure {
        Number(u64),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Figure::deserialize(deserializer)? {
        Figure::Number(number) => number,
        Figure::Other(_) => 0,
    })
}

#[test]
fn both_spellings_and_odd_figures_are_read() {
    let read = |text: &str| serde_json::from_str::<Tokens>(text).unwrap();
    let snake = read(r#"{"input_tokens":5,"output_tokens":2,"cached_input_tokens":null}"#);
    assert_eq!(snake, read(r#"{"inputTokens":5,"outputTokens":2,"totalTokens":"x"}"#));
    assert_eq!(snake.input_tokens, 5);
}
