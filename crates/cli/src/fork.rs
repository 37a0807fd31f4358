//! `tieline fork`: a conversation that branches off from another.

use std::sync::Arc;

use tieline_event::ConversationKey;
use tieline_hub::{Hub, Limits};
use tieline_store::Store;

use crate::agents::Agents;
use crate::args::{ForkArgs, Global};
use crate::config;
use crate::error::Error;
use crate::exit::Exit;
use crate::print::print;
use crate::run::{open_store, program_name, quoted, runtime};

/// Makes the new conversation.
pub(crate) fn fork(global: &Global, args: &ForkArgs) -> Result<Exit, Error> {
    let config = config::load(global.config.as_deref())?;
    let store = open_store(global)?;
    let agents = Arc::new(Agents::new(&config).remembered_in(store.dir()));
    let hub = Hub::new(store.clone(), agents, Limits::default());
    runtime()?.block_on(hub.fork(&args.key, &args.new)).map_err(|err| match err {
        tieline_hub::Error::Refused(why) => {
            Error::usage(format!("{why}; {}", advice(&store, &args.key, &args.new)))
        }
        err => err.into(),
    })?;
    print(&format!(
        "{} branches off from {}, which stays as it is.\nGo on with: {} run --conversation {} \"…\"\n",
        args.new,
        args.key,
        program_name(),
        quoted(args.new.as_str()),
    ))?;
    Ok(Exit::Completed)
}

/// What to do about a fork that was refused.
fn advice(store: &Store, key: &ConversationKey, new: &ConversationKey) -> String {
    let row = |key| store.conversation(key).ok().flatten();
    if row(new).is_some() {
        "choose another key for the new one".to_owned()
    } else if row(key).is_some_and(|row| row.native_session.is_none()) {
        format!("let it have a turn first: tieline run --conversation {}", quoted(key.as_str()))
    } else {
        format!("begin a new one: tieline run --conversation {}", quoted(new.as_str()))
    }
}
