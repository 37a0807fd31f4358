//! What is in a file, and how to know it again.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The bytes of a file. As JSON it is `{"text": …}`, or `{"base64": …}` if it is no text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct Content(Arc<[u8]>);

impl Content {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        str::from_utf8(&self.0).ok()
    }

    /// SHA-256, in hexadecimal.
    pub fn sha256(&self) -> String {
        Sha256::digest(&self.0).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

/// Sizes, not bodies: contents end up in logs otherwise.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Content({} bytes)", self.0.len())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    Text(String),
    Base64(String),
}

impl From<Content> for Form {
    fn from(content: Content) -> Self {
        match content.text() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Base64(STANDARD.encode(content.bytes())),
        }
    }
}

impl TryFrom<Form> for Content {
    type Error = base64::DecodeError;

    fn try_from(form: Form) -> Result<Self, Self::Error> {
        Ok(match form {
            Form::Text(text) => text.into(),
            Form::Base64(text) => STANDARD.decode(text)?.into(),
        })
    }
}
