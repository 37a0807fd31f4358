//! Which file a program's name means, and which files we refuse to run.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;

use crate::Error;

/// How many links may lead from one to the next, as in the kernel.
const MAX_LINKS: usize = 40;

/// Finds the absolute path of an executable file: a bare name in the directories of `path_var`, or
/// an absolute path as it is.
///
/// A file in the workspace is refused, and so is a link that passes through it: a repository must not
/// be able to bring its own `claude`. Relative entries of `PATH` depend on where we happen to stand
/// and are refused too. If a later entry of `PATH` has an acceptable file, that one is used.
pub fn resolve(
    program: &str,
    workspace: &Path,
    path_var: Option<&OsStr>,
) -> Result<PathBuf, Error> {
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    if program.contains('/') {
        let path = resolve_explicit(program)?;
        refuse_inside(&path, &workspace)?;
        return Ok(path);
    }
    let mut refused = None;
    for entry in path_var.map(std::env::split_paths).into_iter().flatten() {
        let candidate = entry.join(program);
        if program.is_empty() || check_executable(&candidate).is_err() {
            continue;
        }
        let verdict = if entry.is_absolute() {
            refuse_inside(&candidate, &workspace)
        } else {
            Err(Error::RelativePathEntry { program: program.to_owned(), entry })
        };
        match verdict {
            Ok(()) => return Ok(candidate),
            Err(err) => {
                tracing::warn!(%err, "a program was passed over");
                refused.get_or_insert(err);
            }
        }
    }
    Err(refused.unwrap_or_else(|| Error::NotFound { program: program.to_owned() }))
}

/// Checks an absolute path that the user named explicitly: it may lie anywhere.
pub fn resolve_explicit(program: &str) -> Result<PathBuf, Error> {
    let path = PathBuf::from(program);
    if !path.is_absolute() {
        return Err(Error::NotAbsolute { path });
    }
    check_executable(&path)?;
    Ok(path)
}

fn check_executable(path: &Path) -> Result<(), Error> {
    let metadata =
        path.metadata().map_err(|_| Error::NotFound { program: path.display().to_string() })?;
    if metadata.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok() {
        Ok(())
    } else {
        Err(Error::NotExecutable { path: path.to_owned() })
    }
}

/// Follows the links from `path` one by one and refuses if any of them, or the file itself, lies in
/// the workspace.
fn refuse_inside(path: &Path, workspace: &Path) -> Result<(), Error> {
    let inside =
        || Error::InsideWorkspace { path: path.to_owned(), workspace: workspace.to_owned() };
    let not_found = || Error::NotFound { program: path.display().to_string() };
    let mut place = path.to_owned();
    for _ in 0..MAX_LINKS {
        let directory = place.parent().and_then(|parent| parent.canonicalize().ok());
        let (Some(directory), Some(name)) = (directory, place.file_name()) else {
            return Err(not_found());
        };
        if directory.starts_with(workspace) || passes_through(&place, workspace) {
            return Err(inside());
        }
        match directory.join(name).read_link() {
            Ok(target) => place = directory.join(target),
            Err(_) => return Ok(()),
        }
    }
    Err(not_found())
}

/// Whether the path as it is written leads through the workspace, even if a link leads out again.
fn passes_through(path: &Path, workspace: &Path) -> bool {
    let mut walked = PathBuf::new();
    path.components().any(|component| {
        walked.push(component);
        component != Component::RootDir
            && walked.canonicalize().is_ok_and(|real| real.starts_with(workspace))
    })
}

#[cfg(test)]
mod tests;
