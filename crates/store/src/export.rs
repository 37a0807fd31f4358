//! Histories as files.

use std::io::Write;
use std::ops::ControlFlow;

use tieline_event::{ConversationKey, FrameNo, Seq};

use crate::error::Error;
use crate::frame::Direction;
use crate::store::Store;

/// How many events are read at once.
const PAGE: usize = 256;

impl Store {
    /// Writes every event as a line of JSON. Says how many there were.
    ///
    /// # Errors
    /// [`Error::NoConversation`], or when reading or writing fails.
    pub fn export_events(&self, key: &ConversationKey, out: &mut dyn Write) -> Result<u64, Error> {
        let mut after = Seq(0);
        let mut n_events = 0;
        loop {
            let page = self.events(key, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(n_events) };
            after = last.seq;
            n_events += page.len() as u64;
            for event in &page {
                out.write_all(&event.json)
                    .and_then(|()| out.write_all(b"\n"))
                    .map_err(|source| Error::Export { source })?;
            }
        }
    }

    /// Writes the bytes of every frame that went one of these ways, as they were. Says how many
    /// frames there were.
    ///
    /// # Errors
    /// [`Error::NoConversation`], or when reading or writing fails.
    pub fn export_frames(
        &self,
        key: &ConversationKey,
        directions: &[Direction],
        out: &mut dyn Write,
    ) -> Result<u64, Error> {
        let mut n_frames = 0;
        let mut failure = None;
        self.frames(key, FrameNo(0), &mut |frame| {
            if !directions.contains(&frame.dir) {
                return ControlFlow::Continue(());
            }
            n_frames += 1;
            match out.write_all(frame.bytes) {
                Ok(()) => ControlFlow::Continue(()),
                Err(err) => {
                    failure = Some(err);
                    ControlFlow::Break(())
                }
            }
        })?;
        match failure {
            None => Ok(n_frames),
            Some(source) => Err(Error::Export { source }),
        }
    }
}
