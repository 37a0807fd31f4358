//! Where the engine's model is, where its key comes from, and whether somebody is there.

use std::time::Duration;

use tieline_engine::Settings;
use tieline_engine::model::{Client, Key, ModelError, Presence};
use tieline_event::Failure;

use super::{Check, State};
use crate::config::Config;
use crate::engine;

const AREA: &str = "engine";

/// How long the endpoint may take to answer.
const LIMIT: Duration = Duration::from_secs(5);

/// How many models are named to choose from.
const SHOWN: usize = 8;

pub(super) async fn check(config: &Config, online: bool, checks: &mut Vec<Check>) {
    // What nobody asked for is not wrong.
    let is_named = engine::named_by(config).is_some();
    let trouble = if is_named { State::Bad } else { State::Missing };
    let settings = match engine::settings(config, None) {
        Ok(settings) => settings,
        Err(failure) => return checks.push(told("model", State::Bad, failure)),
    };
    let model = format!(
        "{} by {} at {}",
        settings.model,
        settings.provider.name,
        settings.provider.endpoint()
    );
    let client = match Client::new(settings.provider.clone()) {
        Ok(client) => client,
        Err(error) => {
            checks.push(Check::new(AREA, "model", State::Missing, model));
            return checks.push(explained("endpoint", State::Bad, &error, &settings));
        }
    };
    // Its place is before the key, and what is said of it is known when the server was asked.
    let place_of_model = checks.len();
    let has_key = match settings.provider.key.fetch(|name| std::env::var_os(name)) {
        Ok(_) => {
            checks.push(Check::new(AREA, "key", State::Good, place(&settings.provider.key)));
            true
        }
        Err(why) => {
            let error = ModelError::NoKey(why);
            let mut check = explained("key", trouble, &error, &settings);
            if !is_named {
                check = check.advice(
                    "set OPENAI_API_KEY, or OPENAI_BASE_URL to a server of your own; docs/engine.md \
                     says more",
                );
            }
            checks.push(check);
            false
        }
    };
    let not_asked = |detail: &str| Check::new(AREA, "endpoint", State::Missing, detail);
    let (check, presence) = match (has_key, online || client.is_local()) {
        (false, _) => (not_asked("not asked without a key"), None),
        (true, false) => (not_asked("not asked; --online does"), None),
        (true, true) => match client.knock(LIMIT).await {
            Ok(presence) => (endpoint(&presence), Some(presence)),
            Err(error) => (explained("endpoint", trouble, &error, &settings), None),
        },
    };
    checks.insert(place_of_model, named(&settings.model, model, presence.as_ref()));
    checks.push(check);
}

/// Whether the server has what the engine speaks.
fn endpoint(presence: &Presence) -> Check {
    if presence.has_responses {
        return Check::new(AREA, "endpoint", State::Good, "it answers, and has /responses");
    }
    Check::new(AREA, "endpoint", State::Bad, "it answers, but has no /responses").advice(
        "the engine needs the Responses API; a server with /chat/completions alone does not do: \
         update it, or put one in front that has both",
    )
}

/// Whether the server has the model.
fn named(model: &str, shown: String, presence: Option<&Presence>) -> Check {
    let Some(presence) = presence else {
        return Check::new(AREA, "model", State::Missing, format!("{shown}; not asked for"));
    };
    let Some(models) = &presence.models else {
        let detail = format!("{shown}; the server lists no models");
        return Check::new(AREA, "model", State::Missing, detail);
    };
    // Some servers take a name without its tag.
    let is_it = |listed: &String| listed.strip_suffix(":latest").unwrap_or(listed) == model;
    if models.iter().any(|listed| listed == model) || models.iter().any(is_it) {
        return Check::new(AREA, "model", State::Good, format!("{shown}; the server lists it"));
    }
    let some: Vec<&str> = models.iter().take(SHOWN).map(String::as_str).collect();
    let more = if models.len() > SHOWN { ", …" } else { "" };
    Check::new(AREA, "model", State::Bad, format!("{shown}; the server does not list it"))
        .advice(format!("name one that it lists with engine.model: {}{more}", some.join(", ")))
}

fn explained(name: &str, state: State, error: &ModelError, settings: &Settings) -> Check {
    told(name, state, error.explain(&settings.provider, &settings.model))
}

fn told(name: &str, state: State, failure: Failure) -> Check {
    let mut check = Check::new(AREA, name, state, failure.message);
    check.advice = failure.hint;
    check
}

/// Where the key comes from; never what it is.
fn place(key: &Key) -> String {
    match key {
        Key::None => "none is needed".to_owned(),
        Key::Env(name) => format!("{name} is set"),
        Key::File(path) => format!("{} is there", path.display()),
        Key::Given(_) => "given".to_owned(),
    }
}
