//! A client of the Agent Client Protocol for tests, and what it can say about an agent.
//!
//! [`Client`] speaks raw JSON lines with a child process, so that a test can also say what no
//! library would. Every line of both directions is kept as a [`Frame`]. [`Seen`] folds frames into
//! what a person would see and notes each broken rule of the protocol; [`Schema`] holds frames
//! against the official JSON schema.

mod accumulate;
mod adapters;
mod client;
mod frame;
mod policy;
mod schema;

pub use self::accumulate::{Entry, Message, Permission, Role, Seen, Tool, Turn, View};
pub use self::adapters::{Adapter, node};
pub use self::client::{Client, Ended, Pending, Program};
pub use self::frame::{Direction, Fault, Frame};
pub use self::policy::{Answer, Policy};
pub use self::schema::{Schema, Strictness};
