//! `tieline apply-patch`: a patch of a model, applied here.

use std::io::{self, IsTerminal};
use std::path::Path;

use tieline_front::sanitize::sanitize;
use tieline_patch::{
    Change, Error as PatchError, Kind, Options, Prepared, Roots, apply, apply_in_order, parse,
    recover,
};

use crate::args::ApplyPatchArgs;
use crate::error::{Error, chain};
use crate::exit::Exit;
use crate::print::{print, tell};
use crate::prompt::stdin_text;

/// Applies a patch in the current directory.
pub(crate) fn apply_patch(args: &ApplyPatchArgs) -> Result<Exit, Error> {
    if args.recover {
        let roots = Roots::here(Path::new(".")).map_err(|err| Error::usage(chain(&err)))?;
        return Ok(end_what_was_cut_off(&roots));
    }
    let text = match args.patch.as_deref() {
        Some(text) if text != "-" => text.to_owned(),
        None if io::stdin().is_terminal() => {
            return Err(Error::usage(
                "a patch is needed: pipe it in, or give it as the argument; see tieline apply-patch \
                 --help",
            ));
        }
        _ => stdin_text("patch", "make several of it")?,
    };
    let roots = Roots::here(Path::new(".")).map_err(|err| Error::usage(chain(&err)))?;
    let patch = match parse(&text) {
        Ok(patch) => patch,
        Err(err) => return Ok(failed(&err.into())),
    };
    let options = Options::default();
    if args.dry_run {
        return match Prepared::new(&patch, &roots, options) {
            Ok(prepared) => show(&diff(prepared.changes())),
            Err(err) => Ok(failed(&err)),
        };
    }
    // What it could not put right is said, and the patch is held against what is there.
    end_what_was_cut_off(&roots);
    let (applied, done) = match args.partial {
        true => apply_in_order(&patch, &roots, options),
        false => match apply(&patch, &roots, options) {
            Ok(applied) => (applied, Ok(())),
            Err(err) => return Ok(failed(&err)),
        },
    };
    for path in &applied.left_behind {
        tell(&format!("tieline: {} could not be removed; remove it", path.display()));
    }
    let exit = done.map_or_else(|err| failed(&err), |()| Exit::Completed);
    match applied.changes.is_empty() {
        true => Ok(exit),
        false => show(&applied.summary()).map(|_| exit),
    }
}

/// Ends patches whose process was killed, and tells what became of them.
fn end_what_was_cut_off(roots: &Roots) -> Exit {
    let mut exit = Exit::Completed;
    for recovered in recover(roots) {
        tell(&sanitize(&format!("tieline: {}", recovered.words())));
        if !recovered.trouble.is_empty() {
            exit = Exit::Failed;
        }
    }
    exit
}

/// Tells why, in the words that models know: no name before them, all of their lines.
fn failed(err: &PatchError) -> Exit {
    tell(&sanitize(&chain(err)));
    Exit::Failed
}

/// Prints what came from a patch: as it is for programs, harmless for a terminal.
fn show(text: &str) -> Result<Exit, Error> {
    match io::stdout().is_terminal() {
        true => print(&sanitize(text))?,
        false => print(text)?,
    }
    Ok(Exit::Completed)
}

/// Changes in the form that other tools read.
fn diff(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let name = &change.file.name;
        let (old, new) = match &change.kind {
            Kind::Delete => (format!("a/{name}"), "/dev/null".to_owned()),
            Kind::Move { to, .. } => (format!("a/{name}"), format!("b/{}", to.name)),
            _ if change.old.is_none() => ("/dev/null".to_owned(), format!("b/{name}")),
            _ => (format!("a/{name}"), format!("b/{name}")),
        };
        text.push_str(&format!("--- {old}\n+++ {new}\n{}", change.unified_diff));
    }
    text
}
