//! What a tool of a server gave back, for the model.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tieline_wire::responses::{Content, ImageUrl, Output, Part};
use tieline_wire::text::Str;

use crate::truncate::{Limit, truncated};

#[cfg(test)]
mod tests;

/// What a tool of a server gave back.
#[derive(Debug, Clone, Default)]
pub struct CallResult {
    /// Texts, pictures, documents, each as JSON.
    pub content: Vec<Box<RawValue>>,
    /// The answer as one value.
    pub structured: Option<Box<RawValue>>,
    /// The tool says that it failed.
    pub is_error: bool,
}

impl CallResult {
    /// Reads an answer; one of another shape is an error.
    pub(super) fn read(answer: &Value) -> Result<Self, String> {
        let raw = |value: &Value| to_raw_value(value).map_err(|error| error.to_string());
        let content = match answer.get("content") {
            Some(Value::Array(parts)) => parts.iter().map(raw).collect::<Result<_, _>>()?,
            _ if answer.get("structuredContent").is_some() => Vec::new(),
            _ => return Err("the answer has no content".to_owned()),
        };
        let structured = answer.get("structuredContent").filter(|value| !value.is_null());
        Ok(Self {
            content,
            structured: structured.map(raw).transpose()?,
            is_error: answer.get("isError").and_then(Value::as_bool).unwrap_or(false),
        })
    }

    /// For the model: its texts as one, within the limit, and its pictures if the model `sees`.
    pub fn to_model(&self, limit: Limit, sees: bool) -> Output<'static> {
        let mut texts = Vec::new();
        let mut pictures = Vec::new();
        for part in &self.content {
            let part: Value = serde_json::from_str(part.get()).unwrap_or_default();
            match shown(&part) {
                Shown::Text(text) => texts.push(text),
                Shown::Picture(url) if sees => pictures.push(url),
                Shown::Picture(_) => {
                    texts.push("[a picture, which this model cannot see]".to_owned());
                }
            }
        }
        if let Some(structured) = &self.structured
            && !texts.iter().any(|text| is_same(text, structured.get()))
        {
            texts.push(structured.get().to_owned());
        }
        let mut text = truncated(&texts.join("\n"), limit);
        if self.is_error {
            text = format!("the tool reports an error:\n{text}");
        }
        if pictures.is_empty() {
            return Output::Text(Str::Owned(text));
        }
        let picture = |url| Part::InputImage(ImageUrl { image_url: Str::Owned(url), detail: None });
        let has_text = !text.is_empty();
        let text = has_text.then_some(Part::InputText(Content { text: Str::Owned(text) }));
        Output::Parts(text.into_iter().chain(pictures.into_iter().map(picture)).collect())
    }
}

enum Shown {
    Text(String),
    /// As a `data:` URL.
    Picture(String),
}

fn shown(part: &Value) -> Shown {
    let field = |name: &str| part.get(name).and_then(Value::as_str);
    let text = match (field("type"), field("text"), field("data")) {
        (Some("text"), Some(text), _) => text.to_owned(),
        (Some("image"), _, Some(data)) => {
            let kind = field("mimeType").unwrap_or("image/png");
            return Shown::Picture(format!("data:{kind};base64,{data}"));
        }
        (Some("audio"), _, Some(data)) => format!("[a sound, {} bytes as base64]", data.len()),
        (Some("resource"), ..) => {
            let document = part.get("resource").unwrap_or(&Value::Null);
            let field = |name: &str| document.get(name).and_then(Value::as_str);
            match (field("text"), field("uri").unwrap_or_default()) {
                (Some(text), _) => text.to_owned(),
                (None, uri) => format!("[the document {uri}, which is no text]"),
            }
        }
        (Some("resource_link"), ..) => {
            let name = field("name").unwrap_or("a document");
            format!("[{name}: {}]", field("uri").unwrap_or_default())
        }
        // What is not known is shown as it is.
        _ => part.to_string(),
    };
    Shown::Text(text)
}

/// Whether a text is that JSON, in whatever spelling: servers say structured answers twice.
fn is_same(text: &str, json: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    text == json || value(text).is_some_and(|it| Some(it) == value(json))
}
