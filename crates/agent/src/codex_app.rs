//! Codex by its app server: `codex app-server`, JSON-RPC lines over stdin and stdout.
//!
//! The server keeps threads; a conversation is one of them. Requests go both ways and both sides
//! count from zero, so the books are kept apart. Two things the server leaves undone are done here:
//! items that an interrupt or a lost connection cut off are closed with their turn, and a request
//! we do not know is refused at once, because an unanswered one stalls the turn for ever.

mod ask;
mod driver;
mod errand;
mod inquiry;
mod item;
mod news;
mod order;
mod review;
mod say;
mod setup;
mod switchboard;

pub use driver::AppDriver;
pub use setup::CodexApp;
pub use switchboard::AppSwitchboard;
