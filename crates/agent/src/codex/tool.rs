//! What tools are given and give back, in the forms of every wire.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{Content, ImageSource, PlanStatus, Usage};
use tieline_wire::codex::{SearchAction, Tokens};

/// What a search looks for, or which page it looks at.
pub(crate) fn search_query(query: &str, action: Option<&RawValue>) -> String {
    if !query.is_empty() {
        return query.to_owned();
    }
    let action: SearchAction =
        action.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    match (action.query, action.pattern, action.url) {
        (Some(query), ..) => query,
        (None, Some(pattern), Some(url)) => format!("{pattern} in {url}"),
        (None, pattern, url) => url.or(pattern).unwrap_or_default(),
    }
}

/// What a tool of an MCP server gave back, or why it could not be called.
pub(crate) fn mcp_output(result: Option<&RawValue>, error: Option<&RawValue>) -> Vec<Content> {
    #[derive(Deserialize)]
    struct Outcome<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Trouble {
        Object { message: String },
        Text(String),
    }
    let is_there = |raw: &&RawValue| raw.get() != "null";
    let mut output = match result.filter(is_there) {
        None => Vec::new(),
        Some(result) => match serde_json::from_str::<Outcome<'_>>(result.get()) {
            Ok(outcome) => contents(outcome.content),
            Err(_) => vec![Content::text(result.get())],
        },
    };
    output.extend(error.filter(is_there).map(|error| match serde_json::from_str(error.get()) {
        Ok(Trouble::Object { message } | Trouble::Text(message)) => Content::text(message),
        Err(_) => Content::text(error.get()),
    }));
    output
}

/// Pieces of output: a text, a list of pieces, or something else, which stays JSON.
pub(crate) fn contents(raw: &RawValue) -> Vec<Content> {
    if raw.get() == "null" {
        return Vec::new();
    }
    if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        return vec![Content::text(text)];
    }
    match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        Ok(pieces) => pieces.into_iter().map(content).collect(),
        Err(_) => vec![Content::text(raw.get())],
    }
}

/// One piece of output, by what it holds; what is not known stays JSON.
pub(crate) fn content(raw: &RawValue) -> Content {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Piece {
        Text {
            text: String,
        },
        Image {
            data: String,
            #[serde(rename = "mimeType")]
            mime: String,
        },
        Picture {
            #[serde(rename = "imageUrl", alias = "image_url")]
            url: String,
        },
        Resource {
            resource: Resource,
        },
        Link {
            uri: String,
            name: Option<String>,
        },
    }
    #[derive(Deserialize)]
    struct Resource {
        uri: String,
        text: String,
    }
    match serde_json::from_str(raw.get()) {
        Ok(Piece::Text { text }) => Content::text(text),
        Ok(Piece::Image { data, mime }) => {
            Content::Image { mime, source: ImageSource::Base64(data.into()) }
        }
        Ok(Piece::Picture { url }) => {
            Content::Image { mime: "image/*".to_owned(), source: ImageSource::Url(url) }
        }
        Ok(Piece::Resource { resource: Resource { uri, text } }) => {
            Content::Resource { uri, text: text.into() }
        }
        Ok(Piece::Link { uri, name }) => Content::Link { uri, name },
        Err(_) => Content::text(raw.get()),
    }
}

/// How far a step of a plan is, in either spelling.
pub(crate) fn plan_status(word: &str) -> PlanStatus {
    match word {
        "completed" => PlanStatus::Completed,
        "inProgress" | "in_progress" => PlanStatus::InProgress,
        _ => PlanStatus::Pending,
    }
}

/// Codex counts what came from the cache, and what went there, as input too; here each token is
/// counted once.
pub(crate) fn usage(tokens: Tokens, context_window: Option<u64>) -> Usage {
    let cached = tokens.cached_input_tokens;
    let written = tokens.cache_write_input_tokens;
    Usage {
        input_tokens: tokens.input_tokens.saturating_sub(cached).saturating_sub(written),
        cached_input_tokens: cached,
        cache_write_tokens: written,
        output_tokens: tokens.output_tokens,
        reasoning_tokens: tokens.reasoning_output_tokens,
        context_window,
        cost_usd: None,
        context_used: None,
    }
}

#[test]
fn each_wire_s_pieces_are_known() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let output = |text: &str| contents(&raw(text));
    assert_eq!(output("null"), []);
    assert_eq!(output(r#""hi""#), [Content::text("hi")]);
    assert_eq!(output(r#"[{"type":"inputText","text":"a"}]"#), [Content::text("a")]);
    assert_eq!(output(r#"[{"type":"odd"}]"#), [Content::text(r#"{"type":"odd"}"#)]);
    let link = Content::Link { uri: "file:///x".to_owned(), name: None };
    assert_eq!(output(r#"[{"type":"resource_link","uri":"file:///x"}]"#), [link]);
    let failed = mcp_output(Some(&raw("null")), Some(&raw(r#"{"message":"no"}"#)));
    assert_eq!(failed, [Content::text("no")]);
    let page = raw(r#"{"type":"find_in_page","url":"u","pattern":"p"}"#);
    assert_eq!(search_query("", Some(&page)), "p in u");
}
