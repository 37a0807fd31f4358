//! The Agent Client Protocol, version 1, between an editor and an agent.
//!
//! The types are those of the protocol's own crate ([`schema`]). They are closed: an update or a
//! content block of a kind they do not know is an error, and unknown fields are lost. So messages are
//! told apart by [`crate::jsonrpc`] first, typed one by one, and what has no type stays a raw line.
//! [`read`] has what an agent sends, read so.

pub mod read;

pub use agent_client_protocol_schema::v1 as schema;
pub use agent_client_protocol_schema::{MaybeUndefined, ProtocolVersion};

pub mod serve;

/// A line that is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON that is no message.
pub const INVALID_REQUEST: i64 = -32600;
/// Nobody here knows the method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The method cannot take these values.
pub const INVALID_PARAMS: i64 = -32602;
/// It went wrong on our side.
pub const INTERNAL_ERROR: i64 = -32603;
/// Somebody has to log in first.
pub const AUTH_REQUIRED: i64 = -32000;
/// There is no such session or resource.
pub const NOT_FOUND: i64 = -32002;
/// The request was cancelled by its sender.
pub const CANCELLED: i64 = -32800;
