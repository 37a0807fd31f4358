//! The drivers: whatever an agent writes, a turn that began ends exactly once.
//!
//! An input is a scene. A line that begins with `!` is what the host does (`!turn`, `!allow`, …),
//! every other one is the agent's. In the agent's lines `"@METHOD"` stands for the id of the last
//! request of ours with that method, so that answers find their questions.

mod host;
mod scene;

use std::path::Path;

use tieline_agent::acp::AcpDriver;
use tieline_agent::claude::{ClaudeDriver, Lifetime};
use tieline_agent::codex::Version;
use tieline_agent::codex_app::AppDriver;
use tieline_agent::codex_exec::{ExecDriver, Setup};
use tieline_agent::codex_proto::ProtoDriver;
use tieline_agent::{Driver, Launch};
use tieline_event::Mode;

use super::sum;
use scene::{Scene, Stdin};

/// A version of Codex whose wire was seen, by the input.
fn version(input: &[u8], seen: &[Version]) -> Version {
    let at = sum(input) % seen.len().max(1) as u64;
    usize::try_from(at).ok().and_then(|at| seen.get(at)).copied().unwrap_or(Version(0, 166, 0))
}

fn launch<'a>() -> Launch<'a> {
    Launch::new(Path::new("/workspace"), Mode::Default)
}

fn play(driver: impl Driver + 'static, stdin: Stdin, input: &[u8]) {
    Scene::new(Box::new(driver), stdin).play(input);
}

pub(super) fn claude(input: &[u8]) {
    let lifetime =
        if sum(input).is_multiple_of(4) { Lifetime::Turn } else { Lifetime::Conversation };
    let stdin = if lifetime == Lifetime::Turn { Stdin::OnePrompt } else { Stdin::Json };
    play(ClaudeDriver::new(lifetime, Mode::Default), stdin, input);
}

pub(super) fn codex_exec(input: &[u8]) {
    let version = version(
        input,
        &[
            Version(0, 36, 0),
            Version(0, 42, 0),
            Version(0, 50, 0),
            Version(0, 80, 0),
            Version(0, 166, 0),
        ],
    );
    play(ExecDriver::new(Setup::of(version, &launch())), Stdin::OnePrompt, input);
}

pub(super) fn codex_app(input: &[u8]) {
    let version = version(input, &[Version(0, 63, 0), Version(0, 110, 0), Version(0, 166, 0)]);
    play(AppDriver::new(&launch(), version, 1), Stdin::Json, input);
}

pub(super) fn codex_proto(input: &[u8]) {
    let version = version(input, &[Version(0, 36, 0), Version(0, 42, 0)]);
    play(ProtoDriver::new(&launch(), version), Stdin::Json, input);
}

pub(super) fn acp(input: &[u8]) {
    play(AcpDriver::new(&launch(), "acp:fuzz"), Stdin::Json, input);
}
