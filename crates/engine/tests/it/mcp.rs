//! Servers of tools, as processes and over HTTP.

mod http;
mod log;
mod scene;
mod stdio;
mod web;
