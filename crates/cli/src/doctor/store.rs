//! Whether the store is whole and private.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tieline_store::{Options, Store};

use super::{Check, State};
use crate::error::{Error, chain};
use crate::exit::Exit;
use crate::keep::size;
use crate::print::print;

const AREA: &str = "store";

pub(super) fn check(dir: &Path, checks: &mut Vec<Check>) {
    if !dir.exists() {
        let detail = format!("{} does not exist yet", dir.display());
        checks.push(Check::new(AREA, "directory", State::Missing, detail));
        return;
    }
    let loose = repair_modes(dir);
    let store = match Store::open(dir, Options::default()) {
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
    checks.push(Check::new(AREA, "directory", State::Good, dir.display().to_string()));
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

fn modes(loose: &[(PathBuf, Result<(), String>)]) -> Check {
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

/// Makes everything in the store private, and says what was not. Links are left alone.
fn repair_modes(dir: &Path) -> Vec<(PathBuf, Result<(), String>)> {
    let mut loose = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    // Only a directory that holds a store is ours to change.
    if !dir.join("tieline.db").exists() {
        return loose;
    }
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_symlink() {
            continue;
        }
        if metadata.mode() & 0o077 != 0 {
            let mode = metadata.mode() & 0o700;
            let result = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode));
            loose.push((path.clone(), result.map_err(|err| err.to_string())));
        }
        if metadata.is_dir()
            && let Ok(entries) = path.read_dir()
        {
            waiting.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    loose
}
