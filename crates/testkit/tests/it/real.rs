//! What needs the installed packages of npm: the official schema, and other people's agents.

mod adapters;
mod schema;
