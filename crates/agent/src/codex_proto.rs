//! Codex by `codex proto`: submissions in, events out, one process for the conversation.
//!
//! The command was in the releases up to 0.42. What later releases and other programs say on the
//! same wire ([`sqeq`](tieline_wire::sqeq)) is understood too.

mod driver;
mod setup;

pub use driver::{EngineOffer, ProtoDriver, engine_policy};
pub use setup::CodexProto;
