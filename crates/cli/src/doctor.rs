//! `tieline doctor`: what is there, what is wrong, what to do about it.

mod agent;
mod codex;
mod engine;
mod sandbox;
mod store;

use std::path::{Path, PathBuf};

use serde::Serialize;
use tieline_front::json::escaped;
use tieline_front::sanitize::one_line;
use tieline_proc::Env;

use crate::agents::Agents;
use crate::args::{DoctorArgs, Global};
use crate::config::{self, Config};
use crate::error::Error;
use crate::exit::Exit;
use crate::print::print;
use crate::run::store_dir;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    area: &'static str,
    name: String,
    state: State,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// As it should be.
    Good,
    /// Not there, and nothing breaks without it.
    Missing,
    /// Needs attention.
    Bad,
}

#[derive(Debug, Serialize)]
struct Report {
    tieline: &'static str,
    ok: bool,
    checks: Vec<Check>,
}

impl Check {
    fn new(area: &'static str, name: &str, state: State, detail: impl Into<String>) -> Self {
        Self {
            area,
            name: name.to_owned(),
            state,
            detail: detail.into(),
            program: None,
            version: None,
            advice: None,
        }
    }

    fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// Looks at everything.
pub(crate) fn doctor(global: &Global, args: &DoctorArgs) -> Result<Exit, Error> {
    if args.set_aside {
        return store::set_aside(&store_dir(global)?);
    }
    let mut checks = Vec::new();
    let config = check_config(global, &mut checks);
    let dir = store_dir(global);
    let agents = match &dir {
        Ok(dir) => Agents::new(&config).remembered_in(dir),
        Err(_) => Agents::new(&config),
    };
    let runtime = crate::run::runtime()?;
    runtime.block_on(async {
        agent::check(&agents, &mut checks).await;
        engine::check(agents.config(), args.online, &mut checks).await;
        sandbox::check(&mut checks).await;
    });
    match dir {
        Ok(dir) => store::check(&dir, &mut checks),
        Err(err) => checks.push(Check::new("store", "directory", State::Bad, err.message())),
    }
    let ok = checks.iter().all(|check| check.state != State::Bad);
    let report = Report { tieline: env!("CARGO_PKG_VERSION"), ok, checks };
    match args.json {
        true => {
            let json = serde_json::to_string_pretty(&report)
                .map_err(|err| Error::new(Exit::Failed, err.to_string()))?;
            print(&format!("{}\n", escaped(&json)))?;
        }
        false => print(&text(&report))?,
    }
    Ok(if ok { Exit::Completed } else { Exit::Failed })
}

fn check_config(global: &Global, checks: &mut Vec<Check>) -> Config {
    let place = global.config.clone().or_else(config::usual_place);
    let shown = place.as_ref().map_or("no place for it".to_owned(), |it| it.display().to_string());
    match config::load(global.config.as_deref()) {
        Ok(config) => {
            let check = match place.is_some_and(|place| place.exists()) {
                true => Check::new("config", "file", State::Good, shown),
                false => {
                    Check::new("config", "file", State::Missing, format!("{shown} (none needed)"))
                }
            };
            checks.push(check);
            config
        }
        Err(err) => {
            let check = Check::new("config", "file", State::Bad, err.message())
                .advice("correct the line; `tieline run` refuses to start until then");
            checks.push(check);
            Config::default()
        }
    }
}

/// The first of these variables that says something. Its value is not looked at.
fn is_set<'a>(env: &Env, names: &[&'a str]) -> Option<&'a str> {
    names.iter().copied().find(|name| env.get(name).is_some_and(|it| !it.is_empty()))
}

/// A file in an agent's own directory, if it is there. It is not read.
fn config_file(env: &Env, variable: &str, below_home: &str, name: &str) -> Option<PathBuf> {
    let named = env.get(variable).filter(|it| !it.is_empty()).map(PathBuf::from);
    let dir = named.or_else(|| env.get("HOME").map(|home| Path::new(home).join(below_home)))?;
    Some(dir.join(name)).filter(|file| file.exists())
}

fn text(report: &Report) -> String {
    let mut text = format!("tieline {}\n", report.tieline);
    let mut area = "";
    for check in &report.checks {
        if check.area != area {
            area = check.area;
            text.push_str(&format!("\n{area}\n"));
        }
        let sign = match check.state {
            State::Good => '✓',
            State::Missing => '–',
            State::Bad => '✗',
        };
        text.push_str(&format!("  {sign} {}: {}\n", check.name, one_line(&check.detail)));
        if let Some(advice) = &check.advice {
            text.push_str(&format!("      {}\n", one_line(advice)));
        }
    }
    let has_agent =
        report.checks.iter().all(|it| it.name != agent::AUTO || it.state == State::Good);
    text.push_str(match report.ok {
        true if has_agent => "\nEverything is in order.\n",
        true => "\nNothing is broken, but there is no agent yet: the line `auto`.\n",
        false => "\nSomething needs attention: the lines with ✗.\n",
    });
    text
}
