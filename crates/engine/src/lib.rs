//! A coding agent of our own: it needs no other program, only a model behind the Responses API.
//!
//! It speaks the queue protocol ([`tieline_wire::sqeq`]) like any other agent: submissions come in
//! as lines, events go out as lines.
#![warn(missing_docs)]

pub mod command;
pub mod docs;
pub mod history;
pub mod model;
pub mod persona;
pub mod plan;
pub mod prompts;
pub mod review;
pub mod skills;
pub mod tools;
pub mod truncate;
