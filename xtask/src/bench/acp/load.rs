//! Time to show a long conversation again.

use std::fs;
use std::time::Instant;

use anyhow::{Context, ensure};
use memchr::memmem;
use tieline_event::{ConversationKey, Seq};
use tieline_store::{Options, Store};

use super::bridge;
use super::opening::micros;
use super::talk::Pace;
use crate::bench::driver::Driver;
use crate::bench::median;
use crate::bench::scene::Scene;
use crate::bench::table::{Goal, Judgement, Line, Quantity};

pub(super) fn measure(scene: &Scene) -> anyhow::Result<Vec<Line>> {
    let n_events: usize = scene.choose(10_000, 2000);
    let n_rounds = scene.choose(7, 3);
    // A message with its usage and a tool call make six events.
    let n_pairs = n_events.div_ceil(6);
    let dir = scene.fresh_dir()?;
    let script = dir.path().join("script");
    let pair =
        |number: usize| format!("say {number:08}\ntool Bash {{\"command\":\"ls {number}\"}}\n");
    fs::write(&script, (0..n_pairs).map(pair).collect::<String>())?;
    let said: String = (0..n_pairs).map(|number| format!("{number:08}")).collect();
    let home = dir.path().join("store");

    let script = script.display().to_string();
    let start = || bridge::tieline(scene, Driver::Claude, &home, &script);
    let mut client = start()?;
    client.initialize()?;
    let session = client.new_session()?;
    client.prompt(&session, "go", Pace::Full)?;
    client.check_text(&said)?;
    client.finish()?;
    let store = Store::open(&home, Options::default())?;
    let key = ConversationKey::new(&session)?;
    let n_stored = store.events(&key, Seq(0), usize::MAX)?.len();
    drop(store);
    ensure!(n_stored >= n_events, "the conversation has {n_stored} events");

    let mut times = Vec::new();
    for _ in 0..n_rounds {
        let mut client = start()?;
        client.initialize()?;
        let began = Instant::now();
        client.load(&session)?;
        times.push(micros(began));
        client.check_text(&said).context("the history")?;
        let n_calls = memmem::find_iter(client.talk().heard(), br#""tool_call""#).count();
        ensure!(n_calls == n_pairs, "{n_calls} of {n_pairs} tool calls came");
        client.finish()?;
    }
    let value = Quantity::Micros(median(&times));
    Ok(vec![Line {
        what: "acp-load".to_owned(),
        value,
        beside: None,
        judgement: Some(Judgement::new("", value, Goal::Below(Quantity::Micros(1e6)))),
        note: format!(
            "session/load of {n_stored} events in a fresh process, from the request to its answer; \
             {n_pairs} messages and as many tool calls came, all exact; median of {n_rounds}. The \
             adapters read the history of their agent, and the fake one keeps none"
        ),
    }])
}
