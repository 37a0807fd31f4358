//! How much there is, and whether it is whole.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::Connection;
use tieline_event::{BlobRef, FrameNo};

use crate::error::Error;
use crate::files::with_suffix;
use crate::number::{SEQ_BITS, from_sql, place, seq_at};
use crate::packer::unpack;
use crate::segment;

/// How much there is of everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Conversations.
    pub n_conversations: u64,
    /// Events.
    pub n_events: u64,
    /// Requests that wait for an answer.
    pub n_open_requests: u64,
    /// Segments of raw frames.
    pub n_segments: u64,
    /// Raw frames that are kept.
    pub n_frames: u64,
    /// Bytes of raw frames, with their headers.
    pub frame_raw_bytes: u64,
    /// Bytes of raw frames on disk.
    pub frame_bytes: u64,
    /// Blobs.
    pub n_blobs: u64,
    /// Bytes of blobs on disk.
    pub blob_bytes: u64,
    /// Size of the database and its log.
    pub disk_bytes: u64,
}

pub(crate) fn stats(connection: &Connection, database: &Path) -> Result<Stats, Error> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut stats = Stats {
        disk_bytes: size(database) + size(&with_suffix(database, "-wal")),
        ..Stats::default()
    };
    connection.query_row(
        "SELECT count(*), coalesce(sum(next_seq - 1), 0) FROM conversations
         WHERE key IS NOT NULL",
        [],
        |row| {
            stats.n_conversations = from_sql(row.get(0)?);
            stats.n_events = from_sql(row.get(1)?);
            Ok(())
        },
    )?;
    connection.query_row(
        "SELECT count(*), coalesce(sum(n_frames), 0), coalesce(sum(raw_bytes), 0),
         coalesce(sum(length(data)), 0) FROM segments",
        [],
        |row| {
            stats.n_segments = from_sql(row.get(0)?);
            stats.n_frames = from_sql(row.get(1)?);
            stats.frame_raw_bytes = from_sql(row.get(2)?);
            stats.frame_bytes = from_sql(row.get(3)?);
            Ok(())
        },
    )?;
    connection.query_row(
        "SELECT count(*), coalesce(sum(length(data)), 0) FROM blobs",
        [],
        |row| {
            stats.n_blobs = from_sql(row.get(0)?);
            stats.blob_bytes = from_sql(row.get(1)?);
            Ok(())
        },
    )?;
    stats.n_open_requests = from_sql(connection.query_row(
        "SELECT count(*) FROM requests WHERE state = 'open'",
        [],
        |row| row.get(0),
    )?);
    Ok(stats)
}

/// Everything that is wrong: with the file, with our numbers, with what is compressed.
pub(crate) fn integrity(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    check_file(connection, &mut problems)?;
    // What follows reads what the file says, so it must be readable first.
    if problems.is_empty() {
        check_numbers(connection, &mut problems)?;
        check_frames(connection, &mut problems)?;
        check_blobs(connection, &mut problems)?;
    }
    Ok(problems)
}

fn check_file(connection: &Connection, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            problems.push(line);
        }
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        problems.push(format!("a row of {table} refers to a missing row of {parent}"));
    }
    Ok(())
}

fn check_numbers(connection: &Connection, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut statement =
        connection.prepare("SELECT id, key, next_seq FROM conversations WHERE key IS NOT NULL")?;
    let mut events = connection
        .prepare("SELECT count(*), coalesce(max(id), 0) FROM events WHERE id >= ?1 AND id < ?2")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, key): (i64, String) = (row.get(0)?, row.get(1)?);
        let due = from_sql(row.get(2)?).saturating_sub(1);
        let range = (place(id, 0), place(id + 1, 0));
        let (n_events, last) =
            events.query_row(range, |row| Ok((from_sql(row.get(0)?), seq_at(row.get(1)?))))?;
        if n_events != due || last != due {
            problems.push(format!(
                "conversation {key} has {n_events} events up to {last} where {due} are due"
            ));
        }
    }
    let n_lost: i64 = connection.query_row(
        "SELECT count(*) FROM events WHERE id >> ?1 NOT IN (SELECT id FROM conversations)",
        [SEQ_BITS],
        |row| row.get(0),
    )?;
    if n_lost > 0 {
        problems.push(format!("{n_lost} events belong to no conversation"));
    }
    Ok(())
}

fn check_frames(connection: &Connection, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut statement = connection.prepare(
        "SELECT c.id, c.key, c.next_frame, (SELECT min(first) FROM segments WHERE conversation = c.id)
         FROM conversations AS c WHERE key IS NOT NULL",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, key): (i64, String) = (row.get(0)?, row.get(1)?);
        let next = from_sql(row.get(2)?);
        let mut expected = row.get::<_, Option<i64>>(3)?.map_or(next, from_sql);
        let mut gap = None;
        let result = segment::visit(connection, id, FrameNo(0), &mut |frame| {
            if frame.no.0 != expected && gap.is_none() {
                gap = Some((expected, frame.no));
            }
            expected = frame.no.0 + 1;
            ControlFlow::Continue(())
        });
        match result {
            Ok(_) => {}
            Err(Error::Corrupt { detail, .. }) => {
                problems.push(format!("frames of conversation {key}: {detail}"));
                continue;
            }
            Err(err) => return Err(err),
        }
        if let Some((expected, found)) = gap {
            problems.push(format!("conversation {key} has frame {found} where {expected} is due"));
        }
        if expected != next {
            problems.push(format!("frames of conversation {key} end at {expected}, not {next}"));
        }
    }
    Ok(())
}

fn check_blobs(connection: &Connection, problems: &mut Vec<String>) -> Result<(), Error> {
    let mut statement = connection.prepare("SELECT sha256, raw_bytes, codec, data FROM blobs")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let sha256: String = row.get(0)?;
        let raw_bytes = usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0);
        let data = row.get_ref(3)?.as_blob().map_err(rusqlite::Error::from)?;
        match unpack(row.get(2)?, data, raw_bytes) {
            Ok(raw) if BlobRef::of(&raw).sha256 == sha256 => {}
            Ok(_) => problems.push(format!("blob {sha256} holds other bytes")),
            Err(err) => problems.push(format!("blob {sha256}: {err}")),
        }
    }
    Ok(())
}
