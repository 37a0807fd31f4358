//! One interface over every coding agent.
//!
//! # How it works
//!
//! An [`Agent`] knows how to start a program ([`Agent::launch`]) and gives a [`Driver`]: the sans-IO
//! core that reads the program's lines and writes its own. A driver keeps no books of its own about
//! turns, items and requests; it tells them to the [`Ledger`], which holds every driver to the same
//! rules. [`Session`] joins framer, driver and ledger: bytes in, events and bytes out. Whoever
//! owns a session moves the bytes; nothing here waits or reads a clock.
//!
//! # Invariants
//!
//! * A turn that began ends exactly once, whatever the agent does.
//! * When a turn ends, its items are closed and its requests expired.
//! * What a driver does not understand becomes an `unparsed` event; it never ends the reading.
//! * A prompt never becomes part of a command line.
#![warn(missing_docs)]

pub mod acp;
mod alarm;
mod chore;
pub mod claude;
pub mod codex;
pub mod codex_app;
pub mod codex_exec;
pub mod codex_proto;
mod driver;
mod exchange;
mod files;
mod form;
mod inside;
mod ledger;
mod servers;
mod session;
mod sqeq;
mod words;

pub use alarm::{Alarm, AlarmWish};
pub use chore::{Chore, ChoreId, ChoreNews, Leave, Roots};
pub use driver::{
    Agent, Destination, Driver, ExitInfo, Launch, Launching, Plan, Refused, Resume, Routed, Share,
    Switchboard, Takes, checked_argument,
};
pub use exchange::Exchange;
pub use files::PrivateFiles;
pub use inside::{Inside, Journal, Journaled, Pipe, Running};
pub use ledger::{Draft, Growing, Growth, Ledger, Meta, OpenItem, OpenItems, Output, TurnEnd};
pub use session::{Direction, Session};
