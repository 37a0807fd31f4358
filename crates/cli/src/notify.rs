//! `tieline notify`: the program for Codex's setting of this name.

use std::path::PathBuf;

use tieline_front::notify::{Notice, sockets};

use crate::agents::NOTIFY_SOCKET;
use crate::args::{Global, NotifyArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::{runtime, store_dir};

/// Delivers a notification.
pub(crate) fn notify(global: &Global, args: &NotifyArgs) -> Result<Exit, Error> {
    let notice = Notice::new(&args.json)?;
    if let Some(file) = &args.file {
        notice.append_to(file)?;
        return Ok(Exit::Completed);
    }
    if let Some(fifo) = &args.fifo {
        notice.write_to_fifo(fifo)?;
        return Ok(Exit::Completed);
    }
    let variable = std::env::var_os(NOTIFY_SOCKET).filter(|it| !it.is_empty()).map(PathBuf::from);
    let sockets = match args.socket.clone().or(variable) {
        Some(socket) => vec![socket],
        None => sockets(&store_dir(global)?),
    };
    runtime()?.block_on(notice.send(&sockets))?;
    Ok(Exit::Completed)
}
