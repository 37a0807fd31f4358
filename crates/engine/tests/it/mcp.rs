//! Servers of tools, as processes and over HTTP.

mod http;
mod log;
pub(crate) mod scene;
mod stdio;
mod web;
