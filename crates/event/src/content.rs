//! Pieces of a message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{BlobRef, BlobSink, Text};

/// One piece of a message to or from an agent, or of a tool's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text or Markdown.
    Text {
        /// The text.
        text: Text,
    },
    /// A picture.
    Image {
        /// For example `image/png`.
        mime: String,
        /// Where its bytes are.
        source: ImageSource,
    },
    /// A document that came with the message.
    Resource {
        /// Where it is from.
        uri: String,
        /// Its text.
        text: Text,
    },
    /// A pointer to a document.
    Link {
        /// Where it is.
        uri: String,
        /// What to call it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A skill to be used, by name.
    Skill {
        /// Its name.
        name: String,
        /// Its file, where several have that name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// A connector to be used, by name.
    Mention {
        /// Its name.
        name: String,
        /// Its address.
        path: String,
    },
}

/// Where the bytes of a picture are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// Here, in base64.
    Base64(Text),
    /// In the store.
    Blob(BlobRef),
    /// At an address.
    Url(String),
}

impl Content {
    /// A piece of text.
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of this piece, where it has one.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::Text { text } | Self::Resource { text, .. } => Some(text),
            _ => None,
        }
    }

    pub(crate) fn externalize(&mut self, sink: &mut dyn BlobSink) {
        match self {
            Self::Text { text }
            | Self::Resource { text, .. }
            | Self::Image { source: ImageSource::Base64(text), .. } => text.externalize(sink),
            _ => {}
        }
    }
}
