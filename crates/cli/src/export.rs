//! `tieline export`.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tieline_front::json::Escaping;
use tieline_front::markdown::Document;
use tieline_store::{Direction, Store};

use crate::args::{DirectionArg, ExportArgs, ExportFormat, Global};
use crate::error::Error;
use crate::exit::Exit;
use crate::print::{stdout, tell};
use crate::run::open_store_to_read;
use crate::show::each_event;

/// Writes a conversation to a file or the standard output.
pub(crate) fn export(global: &Global, args: &ExportArgs) -> Result<Exit, Error> {
    let store = open_store_to_read(global)?;
    // An unknown key must not leave an empty file behind.
    store
        .conversation(&args.key)?
        .ok_or_else(|| tieline_store::Error::NoConversation(args.key.clone()))?;
    match &args.output {
        None => write(&store, args, &mut stdout())?,
        Some(path) => {
            let mut file = create(path, args.force)?;
            write(&store, args, &mut file)?;
            tell(&format!("tieline: {} written to {}", args.key, path.display()));
        }
    }
    Ok(Exit::Completed)
}

/// A file for the user alone: it may hold anything that was said.
fn create(path: &Path, force: bool) -> Result<impl Write, Error> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let file = options.open(path).map_err(|err| match err.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::usage(format!("{} exists; add --force to overwrite it", path.display()))
        }
        _ => Error::usage(format!("cannot write {}: {err}", path.display())),
    })?;
    Ok(BufWriter::new(file))
}

fn write(store: &Store, args: &ExportArgs, out: &mut dyn Write) -> Result<(), Error> {
    match args.format {
        ExportFormat::Jsonl => {
            store.export_events(&args.key, &mut Escaping(&mut *out))?;
        }
        ExportFormat::Raw => {
            let directions: &[Direction] = match args.direction {
                DirectionArg::In => &[Direction::In],
                DirectionArg::Out => &[Direction::Out],
                DirectionArg::Err => &[Direction::Stderr],
                DirectionArg::All => &[Direction::In, Direction::Out, Direction::Stderr],
            };
            store.export_frames(&args.key, directions, out)?;
        }
        ExportFormat::Markdown => {
            let mut document = Document::new();
            let mut fetch = |blob: &tieline_event::BlobRef| store.blob(&blob.sha256).ok().flatten();
            each_event(store, &args.key, |event| {
                let text = document.event(&event, &mut fetch);
                out.write_all(text.as_bytes()).map_err(|err| Error::output(&err))
            })?;
        }
    }
    out.flush().map_err(|err| Error::output(&err))
}
