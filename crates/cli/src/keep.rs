//! Keeping house: `reset`, `delete` and `gc`.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use tieline_hub::{Hub, Limits};
use tieline_store::GcOptions;

use crate::agents::Agents;
use crate::args::{DeleteArgs, GcArgs, Global, KeyArgs};
use crate::config;
use crate::error::Error;
use crate::exit::Exit;
use crate::print::{print, tell};
use crate::run::{open_store, runtime};

/// Forgets an agent's session.
pub(crate) fn reset(global: &Global, args: &KeyArgs) -> Result<Exit, Error> {
    let config = config::load(global.config.as_deref())?;
    let store = open_store(global)?;
    store
        .conversation(&args.key)?
        .ok_or_else(|| tieline_store::Error::NoConversation(args.key.clone()))?;
    let agents = Arc::new(Agents::new(&config).remembered_in(store.dir()));
    runtime()?.block_on(async {
        let hub = Hub::new(store, agents, Limits::default());
        let result = hub.start_new_session(&args.key).await;
        hub.close_all().await;
        result
    })?;
    print(&format!("The next turn of {} begins afresh; its history stays.\n", args.key))?;
    Ok(Exit::Completed)
}

/// Deletes a conversation.
pub(crate) fn delete(global: &Global, args: &DeleteArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let row = store
        .conversation(&args.key)?
        .ok_or_else(|| tieline_store::Error::NoConversation(args.key.clone()))?;
    if !args.yes {
        if !io::stdin().is_terminal() {
            return Err(Error::usage("nobody can be asked here; add --yes to delete it"));
        }
        tell(&format!(
            "Delete {} with its {} turns and {} events for good? [y/N]",
            args.key,
            row.n_turns(),
            row.n_events()
        ));
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(|err| Error::usage(err.to_string()))?;
        if !matches!(line.trim(), "y" | "Y" | "yes") {
            print("Nothing was deleted.\n")?;
            return Ok(Exit::Interrupted);
        }
    }
    let deleted = store.delete(&args.key)?;
    print(&format!(
        "Deleted {}: {} events, {} frames, {}.\n",
        args.key,
        deleted.n_events,
        deleted.n_frames,
        size(deleted.frame_bytes + deleted.blob_bytes)
    ))?;
    Ok(Exit::Completed)
}

/// Gives disk space back.
pub(crate) fn gc(global: &Global, args: &GcArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let options = GcOptions {
        max_frame_age: args.max_age.map(|days| Duration::from_secs(days.saturating_mul(86_400))),
        max_frame_bytes: args.max_size.map(|megabytes| megabytes.saturating_mul(1_000_000)),
        dry_run: args.dry_run,
    };
    let report = store.gc(&options)?;
    let verb = if args.dry_run { "Would free" } else { "Freed" };
    let mut text = format!(
        "{verb} {} frames ({}), {} loose blobs ({}), {} unfinished deletions, {} lock files of dead \
         processes.\n",
        report.n_frames,
        size(report.frame_bytes),
        report.n_blobs,
        size(report.blob_bytes),
        report.n_conversations,
        report.n_owner_files,
    );
    if !args.dry_run {
        text.push_str(&format!(
            "The store has {}, before it had {}.\n",
            size(report.disk_bytes_after),
            size(report.disk_bytes_before)
        ));
    }
    print(&text)?;
    Ok(Exit::Completed)
}

/// `12 bytes`, `3.4 kB`, `5.6 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} bytes"),
        1000..1_000_000 => format!("{}.{} kB", bytes / 1000, bytes % 1000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}
