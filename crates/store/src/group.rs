//! One transaction of the writer: batches of any number of conversations.

use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use tieline_event::{BlobRef, RequestId, Timestamp};

use crate::batch::{Batch, ConversationChange, NewEvent, RequestChange};
use crate::error::Error;
use crate::frame::FrameBuf;
use crate::journal;
use crate::lease::Claim;
use crate::mail;
use crate::number::{from_sql, place, to_sql};
use crate::packer::Packer;
use crate::remove::delete_segments;
use crate::segment::Tail;
use crate::upkeep::{Capped, KeptUp, Upkeep};

/// What became of one batch. A refused one has written nothing.
pub(crate) enum Verdict {
    Accepted,
    Refused(Error),
}

/// The open transaction. Each conversation's row is read once and written once.
pub(crate) struct Group<'a> {
    connection: &'a Connection,
    packer: &'a mut Packer,
    segment_bytes: usize,
    touched: Vec<Touched<'a>>,
}

struct Touched<'a> {
    owner: Option<String>,
    epoch: u64,
    next_seq: u64,
    next_frame: u64,
    tail: Tail,
    buffers: Vec<&'a FrameBuf>,
}

impl<'a> Group<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        packer: &'a mut Packer,
        segment_bytes: usize,
    ) -> Self {
        Self { connection, packer, segment_bytes, touched: Vec::new() }
    }

    /// Writes a batch, all but its frames.
    ///
    /// # Errors
    /// The transaction is to be rolled back.
    pub(crate) fn add(&mut self, claim: &Claim, batch: &'a Batch) -> Result<Verdict, Error> {
        let connection = self.connection;
        let Some(touched) = self.touch(claim)? else { return Ok(Verdict::Refused(claim.lost())) };
        if let Err(refusal) = check_numbers(touched, claim, batch) {
            return Ok(Verdict::Refused(refusal));
        }
        touched.next_seq += batch.events.len() as u64;
        if !batch.frames.is_empty() {
            touched.next_frame = batch.frames.next().0;
            touched.buffers.push(&batch.frames);
        }
        let id = claim.conversation;
        for event in &batch.events {
            insert_event(connection, id, event)?;
        }
        for (blob, bytes) in &batch.blobs {
            insert_blob(connection, self.packer, id, blob, bytes)?;
        }
        for change in &batch.requests {
            write_request(connection, claim, change)?;
        }
        if let Some(change) = &batch.conversation {
            write_change(connection, id, change)?;
        }
        for entry in &batch.journal {
            journal::insert(connection, id, entry)?;
        }
        Ok(Verdict::Accepted)
    }

    /// Makes one compressed segment of the frames that lay there before this transaction, and drops
    /// the oldest of them if they are too many.
    ///
    /// # Errors
    /// The transaction is to be rolled back; what only this conversation cannot have is in the
    /// inner one.
    pub(crate) fn keep_up(&mut self, upkeep: &Upkeep) -> Result<KeptUp, Error> {
        let connection = self.connection;
        let Some(touched) = self.touch(&upkeep.claim)? else {
            return Ok(Err(upkeep.claim.lost()));
        };
        let tail = touched.tail;
        tail.compact(connection, self.packer)?;
        match upkeep.most {
            Some(most) => cap(connection, &tail, most).map(Ok),
            None => Ok(Ok(Capped::default())),
        }
    }

    /// Writes the frames and the conversations' rows.
    pub(crate) fn finish(self) -> Result<(), Error> {
        let now = Timestamp::now().as_millis();
        for Touched { mut tail, buffers, next_seq, next_frame, .. } in self.touched {
            tail.append(self.connection, self.packer, &buffers, self.segment_bytes)?;
            self.connection
                .prepare_cached(
                    "UPDATE conversations SET next_seq = ?2, next_frame = ?3, tail_first = ?4,
                     tail_bytes = ?5, updated = ?6 WHERE id = ?1",
                )?
                .execute((
                    tail.conversation,
                    to_sql(next_seq),
                    to_sql(next_frame),
                    to_sql(tail.first),
                    to_sql(tail.bytes),
                    now,
                ))?;
        }
        Ok(())
    }

    /// The conversation's row, if the claim to it holds.
    fn touch(&mut self, claim: &Claim) -> Result<Option<&mut Touched<'a>>, Error> {
        let id = claim.conversation;
        let position = match self.touched.iter().position(|row| row.tail.conversation == id) {
            Some(position) => position,
            None => {
                let Some(row) = load(self.connection, id)? else { return Ok(None) };
                self.touched.push(row);
                self.touched.len() - 1
            }
        };
        let row = self.touched.get_mut(position);
        Ok(row.filter(|row| {
            row.owner.as_deref() == Some(&*claim.owner) && row.epoch == claim.epoch.0
        }))
    }
}

/// Drops the oldest frames until no more than `most` bytes of them lie on disk.
fn cap(connection: &Connection, tail: &Tail, most: u64) -> Result<Capped, Error> {
    let id = tail.conversation;
    let mut statement = connection.prepare_cached(
        "SELECT first, length(data) FROM segments WHERE conversation = ?1 ORDER BY first DESC",
    )?;
    let mut rows = statement.query([id])?;
    let mut kept = 0;
    let mut through = None;
    while let Some(row) = rows.next()? {
        let first: i64 = row.get(0)?;
        kept += from_sql(row.get(1)?);
        // What is still being merged stays.
        if kept > most && from_sql(first) < tail.first {
            through = Some(first);
            break;
        }
    }
    let mut dropped = Capped::default();
    while let Some(through) = through {
        match delete_segments(connection, id, through)? {
            (0, _) => break,
            (n_frames, bytes) => {
                dropped.n_frames += n_frames;
                dropped.bytes += bytes;
            }
        }
    }
    Ok(dropped)
}

fn load<'a>(connection: &Connection, id: i64) -> Result<Option<Touched<'a>>, Error> {
    let mut statement = connection.prepare_cached(
        "SELECT lease_owner, epoch, next_seq, next_frame, tail_first, tail_bytes
         FROM conversations WHERE id = ?1",
    )?;
    let row = statement.query_row([id], |row| {
        Ok(Touched {
            owner: row.get(0)?,
            epoch: from_sql(row.get(1)?),
            next_seq: from_sql(row.get(2)?),
            next_frame: from_sql(row.get(3)?),
            tail: Tail {
                conversation: id,
                first: from_sql(row.get(4)?),
                bytes: from_sql(row.get(5)?),
            },
            buffers: Vec::new(),
        })
    });
    Ok(row.optional()?)
}

/// Numbers must go on where they stopped.
fn check_numbers(touched: &Touched<'_>, claim: &Claim, batch: &Batch) -> Result<(), Error> {
    let gap = |what, expected, got| Error::Gap { what, key: claim.key.clone(), expected, got };
    for (expected, event) in (touched.next_seq..).zip(&batch.events) {
        if event.seq.0 != expected {
            return Err(gap("seq", expected, event.seq.0));
        }
    }
    if !batch.frames.is_empty() && batch.frames.first().0 != touched.next_frame {
        return Err(gap("frame", touched.next_frame, batch.frames.first().0));
    }
    Ok(())
}

fn insert_event(connection: &Connection, id: i64, event: &NewEvent) -> Result<(), Error> {
    connection
        .prepare_cached(
            "INSERT INTO events (id, ts, kind, turn, json) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((
            place(id, event.seq.0),
            event.ts.as_millis(),
            event.kind,
            event.turn.as_ref().map(|turn| turn.as_str()),
            &*event.json,
        ))?;
    Ok(())
}

fn insert_blob(
    connection: &Connection,
    packer: &mut Packer,
    id: i64,
    blob: &BlobRef,
    bytes: &[u8],
) -> Result<(), Error> {
    let known: Option<i64> = connection
        .prepare_cached("SELECT id FROM blobs WHERE sha256 = ?1")?
        .query_row([&blob.sha256], |row| row.get(0))
        .optional()?;
    let blob_id = match known {
        Some(blob_id) => blob_id,
        None => {
            let packed = packer.pack(bytes)?;
            let blob_id = connection
                .prepare_cached(
                    "INSERT INTO blobs (sha256, raw_bytes, codec, data) VALUES (?1, ?2, ?3, ?4)",
                )?
                .insert((&blob.sha256, to_sql(bytes.len() as u64), packed.codec, packed.data))?;
            packer.shrink();
            blob_id
        }
    };
    connection
        .prepare_cached("INSERT OR IGNORE INTO blob_refs (conversation, blob) VALUES (?1, ?2)")?
        .execute((id, blob_id))?;
    Ok(())
}

fn write_request(
    connection: &Connection,
    claim: &Claim,
    change: &RequestChange,
) -> Result<(), Error> {
    match change {
        RequestChange::Open { request, native, seq } => {
            let json = to_json("request", request)?;
            connection
                .prepare_cached(
                    "INSERT INTO requests (conversation, id, opened, native, json, state)
                     VALUES (?1, ?2, ?3, ?4, ?5, 'open')",
                )?
                .execute((claim.conversation, request.id.as_str(), to_sql(seq.0), native, json))?;
            Ok(())
        }
        RequestChange::Resolve(resolved) => {
            let json = to_json("resolution", resolved)?;
            let by = to_json("origin", &resolved.by)?;
            let close = Close { state: "resolved", json: &json, by: Some(by.trim_matches('"')) };
            close.write(connection, claim, &resolved.request)
        }
        RequestChange::Expire(expired) => {
            let json = to_json("resolution", expired)?;
            let close = Close { state: "expired", json: &json, by: None };
            close.write(connection, claim, &expired.request)
        }
    }
}

/// The end of a request.
struct Close<'a> {
    state: &'static str,
    json: &'a str,
    by: Option<&'a str>,
}

impl Close<'_> {
    /// A request is closed once: the first answer wins.
    fn write(
        &self,
        connection: &Connection,
        claim: &Claim,
        request: &RequestId,
    ) -> Result<(), Error> {
        let n_closed = connection
            .prepare_cached(
                "UPDATE requests SET state = ?3, resolution = ?4, by = ?5
                 WHERE conversation = ?1 AND id = ?2 AND state = 'open'",
            )?
            .execute((claim.conversation, request.as_str(), self.state, self.json, self.by))?;
        if n_closed == 1 {
            return Ok(());
        }
        Err(Error::RequestNotOpen { key: claim.key.clone(), request: request.clone() })
    }
}

fn write_change(
    connection: &Connection,
    id: i64,
    change: &ConversationChange,
) -> Result<(), Error> {
    let ConversationChange {
        agent,
        workspace,
        mode,
        policy,
        model,
        effort,
        native_session,
        position,
        title,
        next_turn,
        task,
        letters,
    } = change;
    for letter in letters {
        mail::remove(connection, id, *letter)?;
    }
    let policy_json = match policy {
        Some(Some(policy)) => Some(to_json("policy", policy)?),
        _ => None,
    };
    connection
        .prepare_cached(
            "UPDATE conversations SET
             agent = coalesce(?2, agent),
             workspace = coalesce(?3, workspace),
             mode = coalesce(?4, mode),
             model = iif(?5, ?6, model),
             native_session = iif(?7, ?8, native_session),
             fork = iif(?7, 0, fork),
             title = coalesce(?9, title),
             next_turn = coalesce(?10, next_turn),
             policy = iif(?11, ?12, policy),
             effort = iif(?13, ?14, effort),
             task = coalesce(?15, task),
             position = coalesce(?16, iif(?7, NULL, position))
             WHERE id = ?1",
        )?
        .execute((
            id,
            agent,
            workspace,
            mode.map(|mode| mode.name()),
            model.is_some(),
            model.as_ref().and_then(Option::as_ref),
            native_session.is_some(),
            native_session.as_ref().and_then(Option::as_ref),
            title,
            next_turn.map(to_sql),
            policy.is_some(),
            policy_json,
            effort.is_some(),
            effort.as_ref().and_then(Option::as_ref),
            task,
            position,
        ))?;
    Ok(())
}

fn to_json(what: &'static str, value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(Error::json(what))
}
