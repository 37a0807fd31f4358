//! Which file the name of a command means.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::exec::Error;

/// A name with a slash is a path, seen from the directory the command starts in; any other is looked
/// for in `PATH`, in its absolute entries.
///
/// Unlike an agent, a command may come from the workspace: that is what it is for.
pub(super) fn find(program: &OsStr, cwd: &Path, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    let shown = program.to_string_lossy().into_owned();
    if program.is_empty() {
        return Err(Error::Empty);
    }
    if program.as_encoded_bytes().contains(&b'/') {
        return match runnable(&cwd.join(program)) {
            Runnable::Yes(path) => Ok(path),
            Runnable::No => Err(Error::NotExecutable { program: shown }),
            Runnable::Missing => Err(Error::NotFound { program: shown }),
        };
    }
    let mut found = Err(Error::NotFound { program: shown.clone() });
    for entry in path.map(std::env::split_paths).into_iter().flatten() {
        if !entry.is_absolute() {
            continue;
        }
        match runnable(&entry.join(program)) {
            Runnable::Yes(path) => return Ok(path),
            Runnable::No => found = Err(Error::NotExecutable { program: shown.clone() }),
            Runnable::Missing => {}
        }
    }
    found
}

enum Runnable {
    Yes(PathBuf),
    No,
    Missing,
}

fn runnable(path: &Path) -> Runnable {
    match path.to_str().map(tieline_proc::resolve_explicit) {
        Some(Ok(path)) => Runnable::Yes(path),
        Some(Err(tieline_proc::Error::NotExecutable { .. })) => Runnable::No,
        Some(Err(_)) => Runnable::Missing,
        // Its name is no text; whether it can be run is seen when it is.
        None if path.is_file() => Runnable::Yes(path.to_owned()),
        None => Runnable::Missing,
    }
}
