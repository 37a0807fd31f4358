//! Any agent that speaks the Agent Client Protocol, version 1, over stdin and stdout.
//!
//! We are its client: it is greeted as soon as it runs, so that it tells its modes, models and
//! commands before the first turn; a turn is one `session/prompt`, whose answer ends it. What the
//! agent leaves to its client, files and terminals, is done for it within the workspace and by the
//! mode's policy, and so is the mode itself where the agent has none like it: then its questions are
//! answered for the user where the mode says so, and the user is asked where it does not.
//!
//! The protocol's own types are closed, so what the agent sends is read field by field
//! ([`tieline_wire::acp::read`]) and what is not known becomes an event that points at its line.

mod ask;
mod driver;
mod failure;
mod known;
mod mode;
mod news;
mod offer;
mod open;
mod say;
mod serve;
mod setup;
mod speech;
mod terminal;
mod tool;

pub use driver::AcpDriver;
pub use known::{KNOWN, Known, PREFIX, find, words};
pub use setup::AcpAgent;
