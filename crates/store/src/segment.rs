//! Raw frames in the database.
//!
//! Each group commit appends one plain row. Rows from `tail_first` on are the tail: once it is
//! [`Options::segment_bytes`](crate::Options::segment_bytes) long it becomes one compressed row and
//! a new tail begins. Compacting makes one compressed row of a shorter tail, which stays the tail,
//! so that many short turns still end up in segments of full size.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, Row};
use tieline_event::FrameNo;

use crate::error::Error;
use crate::frame::{FrameBuf, FrameRef, Frames};
use crate::number::{from_sql, to_sql};
use crate::packer::{Packed, Packer, unpack};

/// Where the frames of a conversation end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    pub(crate) conversation: i64,
    /// The first frame of the tail.
    pub(crate) first: u64,
    /// Length of the tail before compression.
    pub(crate) bytes: u64,
}

/// A row without its data.
struct Extent {
    first: u64,
    n_frames: u64,
    newest: i64,
    raw_bytes: usize,
}

impl Tail {
    /// Appends buffers that follow each other.
    pub(crate) fn append(
        &mut self,
        connection: &Connection,
        packer: &mut Packer,
        buffers: &[&FrameBuf],
        segment_bytes: usize,
    ) -> Result<(), Error> {
        let Some(first) = buffers.first() else { return Ok(()) };
        let raw_bytes: usize = buffers.iter().map(|buffer| buffer.raw_bytes()).sum();
        let extent = Extent {
            first: first.first().0,
            n_frames: buffers.iter().map(|buffer| buffer.len()).sum(),
            newest: buffers.iter().map(|buffer| buffer.newest()).max().unwrap_or(0),
            raw_bytes,
        };
        if self.bytes + raw_bytes as u64 >= segment_bytes as u64 {
            return self.close(connection, packer, buffers, extent, segment_bytes);
        }
        let data = match buffers {
            [only] => Packed { codec: 0, data: only.as_bytes() },
            _ => packer.join(buffers.iter().map(|buffer| buffer.as_bytes())),
        };
        insert(connection, self.conversation, &extent, &data)?;
        self.bytes += raw_bytes as u64;
        Ok(())
    }

    /// Makes one compressed row of the tail.
    pub(crate) fn compact(
        &self,
        connection: &Connection,
        packer: &mut Packer,
    ) -> Result<(), Error> {
        if self.n_rows(connection)? > 0 {
            let nothing = Extent { first: self.first, n_frames: 0, newest: 0, raw_bytes: 0 };
            self.rewrite(connection, packer, &[], nothing)?;
        }
        Ok(())
    }

    /// Makes a segment of the tail and what follows it; a new tail begins behind it.
    fn close(
        &mut self,
        connection: &Connection,
        packer: &mut Packer,
        buffers: &[&FrameBuf],
        extent: Extent,
        segment_bytes: usize,
    ) -> Result<(), Error> {
        let next = extent.first + extent.n_frames;
        match buffers {
            // One that is a segment by itself is not copied to be joined with what lies before it.
            [only] if self.bytes == 0 || extent.raw_bytes >= segment_bytes => {
                self.compact(connection, packer)?;
                let data = packer.pack(only.as_bytes())?;
                insert(connection, self.conversation, &extent, &data)?;
            }
            _ => self.rewrite(connection, packer, buffers, extent)?,
        }
        packer.shrink();
        (self.first, self.bytes) = (next, 0);
        Ok(())
    }

    fn rewrite(
        &self,
        connection: &Connection,
        packer: &mut Packer,
        buffers: &[&FrameBuf],
        mut extent: Extent,
    ) -> Result<(), Error> {
        let (data, raw_bytes) = packer.pack_joined(|joined| {
            let mut statement = connection.prepare_cached(
                "SELECT first, n_frames, newest, raw_bytes, codec, data FROM segments
                 WHERE conversation = ?1 AND first >= ?2 ORDER BY first",
            )?;
            let mut rows = statement.query((self.conversation, to_sql(self.first)))?;
            while let Some(row) = rows.next()? {
                let part = read_extent(row)?;
                joined.extend_from_slice(&unpack(
                    row.get(4)?,
                    row.get_ref(5)?.as_blob().map_err(rusqlite::Error::from)?,
                    part.raw_bytes,
                )?);
                extent.first = extent.first.min(part.first);
                extent.n_frames += part.n_frames;
                extent.newest = extent.newest.max(part.newest);
            }
            buffers.iter().for_each(|buffer| joined.extend_from_slice(buffer.as_bytes()));
            Ok(())
        })?;
        extent.raw_bytes = raw_bytes;
        connection
            .prepare_cached("DELETE FROM segments WHERE conversation = ?1 AND first >= ?2")?
            .execute((self.conversation, to_sql(self.first)))?;
        insert(connection, self.conversation, &extent, &data)
    }

    /// Plain rows of the tail, or more than one row: something to be merged.
    fn n_rows(&self, connection: &Connection) -> Result<i64, Error> {
        let (n_rows, n_plain): (i64, i64) = connection
            .prepare_cached(
                "SELECT count(*), count(*) FILTER (WHERE codec = 0) FROM segments
                 WHERE conversation = ?1 AND first >= ?2",
            )?
            .query_row((self.conversation, to_sql(self.first)), |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        Ok(if n_rows > 1 { n_rows } else { n_plain })
    }
}

fn insert(
    connection: &Connection,
    conversation: i64,
    extent: &Extent,
    packed: &Packed<'_>,
) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO segments
             (conversation, first, n_frames, newest, raw_bytes, codec, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            conversation,
            to_sql(extent.first),
            to_sql(extent.n_frames),
            extent.newest,
            to_sql(extent.raw_bytes as u64),
            packed.codec,
            packed.data,
        ))?;
    Ok(())
}

fn read_extent(row: &Row<'_>) -> rusqlite::Result<Extent> {
    Ok(Extent {
        first: from_sql(row.get(0)?),
        n_frames: from_sql(row.get(1)?),
        newest: row.get(2)?,
        raw_bytes: usize::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
    })
}

/// Shows frames from a number on. Each segment is a read of its own: a long export holds no
/// snapshot, and rows that are merged meanwhile are found again by their numbers.
pub(crate) fn visit(
    connection: &Connection,
    conversation: i64,
    from: FrameNo,
    visitor: &mut dyn FnMut(FrameRef<'_>) -> ControlFlow<()>,
) -> Result<u64, Error> {
    let mut next = from.0;
    let mut n_visited = 0;
    while let Some((extent, raw)) = load(connection, conversation, next)? {
        let mut frames = Frames::new(FrameNo(extent.first), &raw);
        for frame in frames.by_ref().filter(|frame| frame.no.0 >= next) {
            n_visited += 1;
            if visitor(frame).is_break() {
                return Ok(n_visited);
            }
        }
        if !frames.is_spent() {
            return Err(Error::corrupt(format!(
                "the segment at frame {} ends early",
                extent.first
            )));
        }
        next = extent.first + extent.n_frames;
    }
    Ok(n_visited)
}

/// The segment that holds a frame, or the first one after it.
fn load(
    connection: &Connection,
    conversation: i64,
    frame: u64,
) -> Result<Option<(Extent, Vec<u8>)>, Error> {
    const HOLDING: &str = "SELECT first, n_frames, newest, raw_bytes, codec, data FROM segments
        WHERE conversation = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
    const AFTER: &str = "SELECT first, n_frames, newest, raw_bytes, codec, data FROM segments
        WHERE conversation = ?1 AND first > ?2 ORDER BY first LIMIT 1";
    let one = |sql| -> Result<Option<(Extent, Vec<u8>)>, Error> {
        let mut statement = connection.prepare_cached(sql)?;
        let read = |row: &Row<'_>| {
            let extent = read_extent(row)?;
            if extent.first <= frame && extent.first + extent.n_frames <= frame {
                return Ok(Ok(None));
            }
            let (codec, data) = (row.get(4)?, row.get_ref(5)?.as_blob()?);
            Ok(unpack(codec, data, extent.raw_bytes).map(|raw| Some((extent, raw.into_owned()))))
        };
        let found = statement.query_row((conversation, to_sql(frame)), read).optional()?;
        found.unwrap_or(Ok(None))
    };
    match one(HOLDING)? {
        Some(found) => Ok(Some(found)),
        None => one(AFTER),
    }
}
