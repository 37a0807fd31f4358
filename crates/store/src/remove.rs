//! Deleting a conversation, a slice at a time so that others' commits come in between.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use tieline_event::ConversationKey;

use crate::conversation;
use crate::error::Error;
use crate::number::{from_sql, place};
use crate::owner;
use crate::store::Store;

/// What a deletion freed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Events.
    pub n_events: u64,
    /// Raw frames.
    pub n_frames: u64,
    /// Bytes of raw frames, as they lay on disk.
    pub frame_bytes: u64,
    /// Blobs nobody else refers to.
    pub n_blobs: u64,
    /// Bytes of those blobs, as they lay on disk.
    pub blob_bytes: u64,
}

impl std::ops::AddAssign for Deleted {
    fn add_assign(&mut self, other: Self) {
        self.n_events += other.n_events;
        self.n_frames += other.n_frames;
        self.frame_bytes += other.frame_bytes;
        self.n_blobs += other.n_blobs;
        self.blob_bytes += other.blob_bytes;
    }
}

/// Events deleted in one transaction.
const EVENTS: i64 = 2000;

/// Segments or blobs deleted in one transaction.
const LARGE: i64 = 32;

pub(crate) fn delete(store: &Store, key: &ConversationKey) -> Result<Deleted, Error> {
    let (dir, key) = (store.dir().to_owned(), key.clone());
    let (own_id, leases) = (store.registered_id(), store.leases().clone());
    let id = store.run(move |desk| {
        let step = desk.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let stored =
            conversation::find(&step, &key)?.ok_or_else(|| Error::NoConversation(key.clone()))?;
        // What this process holds on record without a lease was dropped or could not be released.
        let is_void = stored.owner.as_deref() == own_id.as_deref() && !leases.has(&key);
        if let Some(owner) = stored.owner.as_ref().filter(|_| !is_void)
            && let Some(living) = owner::living(&dir, owner)?
        {
            return Err(Error::Busy { key, owner: Box::new(living) });
        }
        // Without a key nobody finds it any more, and `gc` goes on should we not come to the end.
        step.execute(
            "UPDATE conversations SET key = NULL, lease_owner = NULL, epoch = epoch + 1
             WHERE id = ?1",
            [stored.id],
        )?;
        step.commit()?;
        Ok(stored.id)
    })?;
    delete_rows(store, id)
}

/// Deletes what belongs to a conversation without a key, and at last its row.
pub(crate) fn delete_rows(store: &Store, id: i64) -> Result<Deleted, Error> {
    let mut deleted = Deleted::default();
    loop {
        let slice = store.run(move |desk| {
            let step = desk.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let slice = delete_slice(&step, id)?;
            step.commit()?;
            Ok(slice)
        })?;
        match slice {
            Some(slice) => deleted += slice,
            None => return Ok(deleted),
        }
    }
}

/// Deletes a part; `None` when that was the last one.
fn delete_slice(connection: &Connection, id: i64) -> Result<Option<Deleted>, Error> {
    let mut deleted = Deleted::default();
    let n_events = connection.execute(
        "DELETE FROM events WHERE id IN
         (SELECT id FROM events WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3)",
        (place(id, 0), place(id + 1, 0), EVENTS),
    )?;
    deleted.n_events = n_events as u64;
    (deleted.n_frames, deleted.frame_bytes) = delete_segments(connection, id, i64::MAX)?;
    (deleted.n_blobs, deleted.blob_bytes) = delete_blobs(connection, id)?;
    let n_refs_left: i64 = connection.query_row(
        "SELECT count(*) FROM blob_refs WHERE conversation = ?1",
        [id],
        |row| row.get(0),
    )?;
    if deleted != Deleted::default() || n_refs_left > 0 {
        return Ok(Some(deleted));
    }
    connection.execute("DELETE FROM requests WHERE conversation = ?1", [id])?;
    connection.execute("DELETE FROM mail WHERE conversation = ?1", [id])?;
    connection.execute("DELETE FROM journal WHERE conversation = ?1", [id])?;
    connection.execute("DELETE FROM conversations WHERE id = ?1", [id])?;
    Ok(None)
}

/// Deletes a few of the segments up to one that begins at `through`. Says how many frames and how
/// many bytes on disk that were.
pub(crate) fn delete_segments(
    connection: &Connection,
    id: i64,
    through: i64,
) -> Result<(u64, u64), Error> {
    let last: Option<i64> = connection
        .query_row(
            "SELECT max(first) FROM (SELECT first FROM segments
             WHERE conversation = ?1 AND first <= ?2 ORDER BY first LIMIT ?3)",
            (id, through, LARGE),
            |row| row.get(0),
        )
        .optional()?
        .flatten();
    let Some(last) = last else { return Ok((0, 0)) };
    let freed = connection.query_row(
        "SELECT coalesce(sum(n_frames), 0), coalesce(sum(length(data)), 0) FROM segments
         WHERE conversation = ?1 AND first <= ?2",
        (id, last),
        |row| Ok((from_sql(row.get(0)?), from_sql(row.get(1)?))),
    )?;
    connection
        .execute("DELETE FROM segments WHERE conversation = ?1 AND first <= ?2", (id, last))?;
    Ok(freed)
}

/// Takes back a few references, and deletes the blobs nobody refers to any more.
fn delete_blobs(connection: &Connection, id: i64) -> Result<(u64, u64), Error> {
    let mut statement =
        connection.prepare_cached("SELECT blob FROM blob_refs WHERE conversation = ?1 LIMIT ?2")?;
    let blobs =
        statement.query_map((id, LARGE), |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    let mut freed = (0, 0);
    for blob in blobs {
        connection
            .execute("DELETE FROM blob_refs WHERE conversation = ?1 AND blob = ?2", (id, blob))?;
        let bytes: Option<i64> = connection
            .query_row(
                "SELECT length(data) FROM blobs WHERE id = ?1
                 AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = ?1)",
                [blob],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(bytes) = bytes {
            connection.execute("DELETE FROM blobs WHERE id = ?1", [blob])?;
            freed = (freed.0 + 1, freed.1 + from_sql(bytes));
        }
    }
    Ok(freed)
}
