//! What the client sends, in our terms.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tieline_event::{Content, Extras, ImageSource, McpServer, McpTransport, Mode};
use tieline_wire::acp::schema::{self, ContentBlock, EmbeddedResourceResource};
use tieline_wire::acp::{INVALID_PARAMS, NOT_FOUND};

use super::offer::Offer;

#[cfg(test)]
mod tests;

/// An error in the protocol's own form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Refusal {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The same about a session: what is not found there names it.
    pub(super) fn in_session(mut self, session: &str) -> Self {
        if self.code == NOT_FOUND {
            self.message.push_str("; in an editor, say /fresh");
            let data = self.data.get_or_insert_with(|| json!({}));
            data["sessionId"] = json!(session);
        }
        self
    }

    pub(super) fn no_session(session: &str) -> Self {
        let message = format!("there is no session {session}; `session/list` names them");
        Self { data: Some(json!({"sessionId": session})), ..Self::new(NOT_FOUND, message) }
    }
}

/// The parameters of a method.
pub(super) fn params<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<T, Refusal> {
    serde_json::from_str(raw.map_or("{}", RawValue::get))
        .map_err(|error| Refusal::params(format!("wrong parameters: {error}")))
}

/// Where a session works. Looks at the disk.
pub(super) fn workspace(cwd: &Path) -> Result<PathBuf, Refusal> {
    match cwd.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(Refusal::params(format!("cwd {} is not a directory", cwd.display()))),
        Err(error) => Err(Refusal::params(format!("cwd {}: {error}", cwd.display()))),
    }
}

/// A directory by its whole path.
pub(super) fn absolute(cwd: PathBuf) -> Result<PathBuf, Refusal> {
    match cwd.is_absolute() {
        true => Ok(cwd),
        false => Err(Refusal::params(format!("cwd {} is not absolute", cwd.display()))),
    }
}

/// What the client brings along.
pub(super) fn extras(
    servers: Vec<schema::McpServer>,
    directories: Vec<PathBuf>,
) -> Result<Extras, Refusal> {
    let mut extras = Extras::default();
    for directory in directories {
        if !directory.is_absolute() {
            let directory = directory.display();
            return Err(Refusal::params(format!("directory {directory} is not absolute")));
        }
        extras.directories.push(directory);
    }
    for server in servers {
        let headers = |headers: Vec<schema::HttpHeader>| -> BTreeMap<String, String> {
            headers.into_iter().map(|it| (it.name, it.value)).collect()
        };
        let (name, transport) = match server {
            schema::McpServer::Stdio(it) => {
                let env = it.env.into_iter().map(|it| (it.name, it.value)).collect();
                let command = it.command.display().to_string();
                (it.name, McpTransport::Stdio { command, args: it.args, env })
            }
            schema::McpServer::Http(it) => {
                (it.name, McpTransport::Http { url: it.url, headers: headers(it.headers) })
            }
            schema::McpServer::Sse(it) => {
                (it.name, McpTransport::Sse { url: it.url, headers: headers(it.headers) })
            }
            _ => return Err(Refusal::params("an MCP server of an unknown kind")),
        };
        extras.mcp_servers.push(McpServer { name, transport });
    }
    Ok(extras)
}

/// A mode by any of its names.
pub(super) fn mode(name: &str) -> Result<Mode, Refusal> {
    name.parse().map_err(|error: tieline_event::UnknownMode| Refusal::params(error.to_string()))
}

/// What becomes of a message for the running turn where none runs, or it takes none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// It is a turn of its own.
    StartsTurn,
    /// It is left to the client, which prompts.
    IsLeft,
}

/// What the client wants of that.
pub(super) fn idle(meta: Option<&schema::Meta>) -> Result<Idle, Refusal> {
    let named = meta.and_then(|meta| meta.get("steering")?.get("idleBehavior"));
    match named.map(|named| named.as_str()) {
        None => Ok(Idle::StartsTurn),
        Some(Some("promptRequired")) => Ok(Idle::IsLeft),
        Some(_) => Err(Refusal::params("the only idleBehavior is promptRequired")),
    }
}

/// What the user says.
pub(super) fn prompt(blocks: Vec<ContentBlock>, offer: &Offer) -> Result<Vec<Content>, Refusal> {
    let mut content = Vec::with_capacity(blocks.len());
    for block in blocks {
        content.push(match block {
            ContentBlock::Text(it) => Content::text(it.text),
            ContentBlock::Image(it) => {
                picture(offer)?;
                let source = match it.uri.filter(|_| it.data.is_empty()) {
                    Some(url) => ImageSource::Url(url),
                    None => ImageSource::Base64(it.data.into()),
                };
                Content::Image { mime: it.mime_type, source }
            }
            ContentBlock::ResourceLink(it) => Content::Link { uri: it.uri, name: Some(it.name) },
            ContentBlock::Resource(it) => match it.resource {
                EmbeddedResourceResource::TextResourceContents(it) => {
                    Content::Resource { uri: it.uri, text: it.text.into() }
                }
                EmbeddedResourceResource::BlobResourceContents(it) => blob(it, offer)?,
                _ => return Err(Refusal::params("a resource of an unknown kind")),
            },
            ContentBlock::Audio(_) => {
                return Err(Refusal::params("audio is not supported; send text or pictures"));
            }
            _ => return Err(Refusal::params("a piece of the prompt is of an unknown kind")),
        });
    }
    if content.is_empty() {
        return Err(Refusal::params("the prompt is empty"));
    }
    call_skill(&mut content, offer);
    Ok(content)
}

fn picture(offer: &Offer) -> Result<(), Refusal> {
    match offer.images {
        Some(false) => Err(Refusal::params("this agent takes no pictures")),
        _ => Ok(()),
    }
}

/// Bytes that came with the prompt: a picture, a text after all, or something only its name can
/// stand for.
fn blob(it: schema::BlobResourceContents, offer: &Offer) -> Result<Content, Refusal> {
    let mime = it.mime_type.unwrap_or_default();
    if mime.starts_with("image/") {
        picture(offer)?;
        return Ok(Content::Image { mime, source: ImageSource::Base64(it.blob.into()) });
    }
    let bytes = STANDARD.decode(it.blob.as_bytes()).map_err(|error| {
        Refusal::params(format!("the blob of {} is not base64: {error}", it.uri))
    })?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Content::Resource { uri: it.uri, text: text.into() },
        Err(_) => Content::Link { uri: it.uri, name: None },
    })
}

/// `/name rest` calls a skill where the agent has one of that name and no command.
fn call_skill(content: &mut Vec<Content>, offer: &Offer) {
    let Some((name, rest)) = slash_command(content) else { return };
    if offer.is_skill(name) {
        let (name, rest) = (name.to_owned(), rest.to_owned());
        content.splice(0..1, [Content::Skill { name, path: None }, Content::text(rest)]);
    }
}

/// The name and the rest of a prompt that begins with `/name`.
pub(super) fn slash_command(content: &[Content]) -> Option<(&str, &str)> {
    let Some(Content::Text { text }) = content.first() else { return None };
    let line = text.preview().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((name, rest.trim()))
}
