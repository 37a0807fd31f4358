//! Test support: a scripted model, the pinned real agents, a fake agent and probes.
//!
//! # How it works
//!
//! [`model::ModelServer`] is a loopback HTTP server that plays scripts in place of
//! a model, for the Anthropic Messages and the OpenAI Responses API. A real agent
//! started with the environment of [`real::AgentEnv`] talks to it and to nothing
//! else. [`agents`] knows where `cargo xtask agents` put those agents. [`acp`] is a
//! client of the Agent Client Protocol that sees every line and judges it. [`probe`]
//! looks at living processes from outside. The `fake-agent` program looks like
//! Claude Code on its pipes and misbehaves on command; `fake-mcp` is an MCP server
//! with one tool.
//!
//! # Invariants
//!
//! Nothing here reaches past the loopback interface, and no script depends on the
//! clock unless its name says so (`slow`, `sleep`, `background`).

pub mod acp;
pub mod agents;
pub mod model;
pub mod probe;
pub mod real;
mod sys;
