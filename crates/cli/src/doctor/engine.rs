//! Where the engine's model is, where its key comes from, and whether somebody is there.

use std::time::Duration;

use tieline_engine::Settings;
use tieline_engine::model::{Client, Key, ModelError};
use tieline_event::Failure;

use super::{Check, State};
use crate::config::Config;
use crate::engine;

const AREA: &str = "engine";

/// How long the endpoint may take to answer.
const LIMIT: Duration = Duration::from_secs(5);

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
    checks.push(Check::new(AREA, "model", State::Good, model));
    let client = match Client::new(settings.provider.clone()) {
        Ok(client) => client,
        Err(error) => return checks.push(explained("endpoint", State::Bad, &error, &settings)),
    };
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
    checks.push(match (has_key, online || client.is_local()) {
        (false, _) => Check::new(AREA, "endpoint", State::Missing, "not asked without a key"),
        (true, false) => Check::new(AREA, "endpoint", State::Good, "not asked; --online does"),
        (true, true) => match client.knock(LIMIT).await {
            Ok(()) => Check::new(AREA, "endpoint", State::Good, "it answers"),
            Err(error) => explained("endpoint", trouble, &error, &settings),
        },
    });
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
