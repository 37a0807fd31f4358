//! The library in three calls: `run_turn`, `start_new_session`, `close_all`.
//!
//! It talks to the built-in demo agent, which is this very program started once more, and keeps
//! everything in a temporary directory: `cargo run -p tieline-hub --example three_calls`.

use std::{error::Error, io::Write, path::Path, process::ExitCode, sync::Arc};

use tieline_agent::{Agent, scripted};
use tieline_event::{ConversationKey, Failure};
use tieline_hub::{Hub, Limits, OnRequest, OpenOptions, Registry, TurnContext};
use tieline_store::Store;

/// The agents this program knows by name: one.
struct OnlyDemo(scripted::Demo);

impl Registry for OnlyDemo {
    fn agent(&self, _name: &str, _workspace: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::new(self.0.clone()))
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // Between us and every agent stands a small process of this same program.
    tieline_proc::init();
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == scripted::FIRST_ARGUMENT) {
        return Ok(scripted::main(args));
    }
    tokio::runtime::Runtime::new()?.block_on(talk())?;
    Ok(ExitCode::SUCCESS)
}

async fn talk() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(&dir.path().join("store"), tieline_store::Options::default())?;
    let env = tieline_proc::Env::inherited(&[], &[]);
    let demo = scripted::Demo { program: std::env::current_exe()?, env, script: None };
    let hub = Hub::new(store, Arc::new(OnlyDemo(demo)), Limits::default());

    let key = ConversationKey::new("example")?;
    let workspace = Some(dir.path().to_owned());
    let open = OpenOptions { agent: Some("demo".into()), workspace, ..Default::default() };
    let context = TurnContext { open, on_request: OnRequest::Allow, timeout: None };

    let outcome = hub.run_turn(&key, "Write me a file.", context).await?;
    writeln!(std::io::stdout(), "{}: {}", outcome.turn, outcome.text)?;
    hub.start_new_session(&key).await?; // the next turn begins afresh, the history stays
    hub.close_all().await; // no agent is left, nor anything it started
    Ok(())
}
