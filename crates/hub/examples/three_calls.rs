//! The library in three calls, with two agents: `run_turn`, `start_new_session`, `close_all`.
//!
//! `cargo run -p tieline-hub --example three_calls` asks Claude Code and Codex, if they are
//! installed; other agents can be named after `--`.

use std::{error::Error, io::Write, sync::Arc};

use tieline_event::ConversationKey;
use tieline_hub::{Hub, Installed, Limits, OpenOptions, TurnContext};
use tieline_store::{Options, Store};

fn main() -> Result<(), Box<dyn Error>> {
    tieline_proc::init(); // between us and every agent stands a small process of this same program
    tokio::runtime::Runtime::new()?.block_on(talk())
}

async fn talk() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path(), Options::default())?;
    let hub = Hub::new(store, Arc::new(Installed::default()), Limits::default());
    let named: Vec<String> = std::env::args().skip(1).collect();
    let agents = if named.is_empty() { vec!["claude".into(), "codex".into()] } else { named };
    for agent in agents {
        let key = ConversationKey::new(&format!("hello-{agent}"))?;
        let workspace = Some(std::env::current_dir()?);
        let open = OpenOptions { agent: Some(agent.clone()), workspace, ..Default::default() };
        let context = TurnContext { open, ..Default::default() };
        match hub.run_turn(&key, "What is in this directory?", context).await {
            Ok(outcome) => writeln!(std::io::stdout(), "{agent}: {}", outcome.text)?,
            Err(error) => writeln!(std::io::stderr(), "{agent}: {error}")?,
        }
        hub.start_new_session(&key).await?; // the next turn begins afresh, the history stays
    }
    hub.close_all().await; // no agent is left, nor anything it started
    Ok(())
}
