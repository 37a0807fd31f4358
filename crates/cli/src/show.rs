//! `tieline show`: a conversation as a transcript.

use std::io::{self, IsTerminal, Write};

use tieline_event::{ConversationKey, Event, Seq};
use tieline_front::json::Escaping;
use tieline_front::run::text::Renderer;
use tieline_front::run::{Layout, Look, Voices};
use tieline_store::Store;

use crate::args::{Global, ShowArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::print::stdout;
use crate::run::{has_colors, open_store_to_read, width};

/// How many events are read at once.
const PAGE: usize = 256;

/// Shows a conversation.
pub(crate) fn show(global: &Global, args: &ShowArgs) -> Result<Exit, Error> {
    let store = open_store_to_read(global)?;
    let mut out = stdout();
    if args.json {
        store.export_events(&args.key, &mut Escaping(&mut out))?;
    } else {
        let mut renderer = Renderer::new(Look {
            layout: Layout::Together,
            voices: Voices::Both,
            color: io::stdout().is_terminal() && has_colors(),
            live: false,
            width: if io::stdout().is_terminal() { width() } else { 120 },
        });
        let (mut bytes, mut rest) = (Vec::new(), Vec::new());
        let mut fetch = |blob: &tieline_event::BlobRef| store.blob(&blob.sha256).ok().flatten();
        each_event(&store, &args.key, |event| {
            renderer.event(&event, &mut fetch);
            renderer.take(&mut bytes, &mut rest);
            out.write_all(&bytes).map_err(|err| Error::output(&err))?;
            bytes.clear();
            Ok(())
        })?;
        renderer.finish();
        renderer.take(&mut bytes, &mut rest);
        out.write_all(&bytes).map_err(|err| Error::output(&err))?;
    }
    out.flush().map_err(|err| Error::output(&err))?;
    Ok(Exit::Completed)
}

/// Reads a conversation from its beginning.
pub(crate) fn each_event(
    store: &Store,
    key: &ConversationKey,
    mut visit: impl FnMut(Event) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut after = Seq(0);
    loop {
        let page = store.events(key, after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        for stored in &page {
            let event = Event::from_json(&stored.json).map_err(|err| {
                Error::new(
                    Exit::Store,
                    format!(
                        "event {} of {key} cannot be read: {err}; `tieline export {key}` has it as \
                         it is",
                        stored.seq
                    ),
                )
            })?;
            visit(event)?;
        }
    }
}
