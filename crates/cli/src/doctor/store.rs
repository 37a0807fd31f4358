//! Whether the store is whole and private.

use std::io;
use std::path::{Path, PathBuf};

use tieline_store::{Options, Store, close_to_others};

use super::{Check, State};
use crate::error::{Error, chain};
use crate::exit::Exit;
use crate::keep::size;
use crate::print::print;

const AREA: &str = "store";

/// The log of the database alone grows to a few megabytes before it is copied.
const LITTLE_ROOM: u64 = 16 << 20;

pub(super) fn check(dir: &Path, checks: &mut Vec<Check>) {
    if !dir.exists() {
        let detail = format!("{} does not exist yet", dir.display());
        checks.push(Check::new(AREA, "directory", State::Missing, detail));
        return;
    }
    let loose = close_to_others(dir);
    let store = match Store::open_to_read(dir, Options::default()) {
        Ok(store) => store,
        Err(err) => {
            let text = chain(&err);
            let advice = match err {
                tieline_store::Error::Corrupt { .. } => {
                    "`tieline doctor --set-aside` renames it and begins a new one; nothing is deleted"
                }
                tieline_store::Error::Newer { .. } => "update tieline",
                tieline_store::Error::Outdated { .. } => "end that process",
                _ => "make the directory usable, or choose another with --store",
            };
            checks.push(Check::new(AREA, "database", State::Bad, text).advice(advice));
            return;
        }
    };
    checks.push(directory(dir, store.is_read_only()));
    checks.push(room(dir));
    checks.push(modes(&loose));
    match store.integrity() {
        Ok(problems) if problems.is_empty() => {
            checks.push(Check::new(AREA, "database", State::Good, "whole, numbers without a gap"));
        }
        Ok(problems) => checks.push(
            Check::new(AREA, "database", State::Bad, problems.join("; "))
                .advice("export what you need; `tieline doctor --set-aside` begins a new one"),
        ),
        Err(err) => checks.push(Check::new(AREA, "database", State::Bad, chain(&err))),
    }
    if let Ok(stats) = store.stats() {
        let detail = format!(
            "{} conversations, {} events, {} frames, {} on disk",
            stats.n_conversations,
            stats.n_events,
            stats.n_frames,
            size(stats.disk_bytes)
        );
        checks.push(Check::new(AREA, "size", State::Good, detail));
    }
}

fn directory(dir: &Path, is_read_only: bool) -> Check {
    let shown = dir.display().to_string();
    match is_read_only {
        false => Check::new(AREA, "directory", State::Good, shown),
        true => Check::new(AREA, "directory", State::Bad, format!("{shown} can only be read"))
            .advice("make it writable, or choose another with --store; list, show and export work"),
    }
}

/// Whether there is room for a turn.
fn room(dir: &Path) -> Check {
    let name = "room";
    let free = rustix::fs::statvfs(dir).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free {
        Ok(free) if free < LITTLE_ROOM => {
            let detail = format!("only {} are free on its disk", size(free));
            Check::new(AREA, name, State::Bad, detail).advice(
                "make room there; `tieline gc --max-size 0` drops the raw frames, and needs about a \
                 megabyte itself",
            )
        }
        Ok(free) => Check::new(AREA, name, State::Good, format!("{} are free", size(free))),
        Err(err) => Check::new(AREA, name, State::Missing, format!("not known: {err}")),
    }
}

/// Renames a store that cannot be opened.
pub(super) fn set_aside(dir: &Path) -> Result<Exit, Error> {
    match Store::open(dir, Options::default()).and_then(|store| store.integrity()) {
        Ok(problems) if problems.is_empty() => {
            Err(Error::usage("the store is whole; there is nothing to set aside"))
        }
        Err(err @ (tieline_store::Error::Busy { .. } | tieline_store::Error::Locked { .. })) => {
            Err(err.into())
        }
        Ok(_) | Err(_) => {
            let aside = Store::set_aside(dir)?;
            print(&format!(
                "The damaged store is now {}.\nThe next command begins a new one.\n",
                aside.display()
            ))?;
            Ok(Exit::Completed)
        }
    }
}

fn modes(loose: &[(PathBuf, io::Result<()>)]) -> Check {
    let failed: Vec<String> = loose
        .iter()
        .filter_map(|(path, result)| {
            let err = result.as_ref().err()?;
            Some(format!("{}: {err}", path.display()))
        })
        .collect();
    let name = "privacy";
    match (loose.len(), failed.is_empty()) {
        (0, _) => Check::new(AREA, name, State::Good, "readable by you alone"),
        (n, true) => {
            Check::new(AREA, name, State::Good, format!("{n} files were open to others; repaired"))
        }
        (_, false) => Check::new(AREA, name, State::Bad, failed.join("; "))
            .advice("run chmod -R go-rwx on the store"),
    }
}
