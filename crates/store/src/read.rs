//! Connections that only read, and the queries of the reading side.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row};
use tieline_event::{ConversationKey, Expired, Request, RequestId, Resolved, Seq};

use crate::Options;
use crate::conversation::id_of;
use crate::error::Error;
use crate::number::{from_sql, place, seq_at, to_sql};
use crate::packer::unpack;
use crate::schema;

/// An event as it was stored.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its place in the conversation.
    pub seq: Seq,
    /// Its JSON, byte for byte.
    pub json: Arc<[u8]>,
}

impl fmt::Debug for StoredEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} ({} bytes)", self.seq, self.json.len())
    }
}

/// A request and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRequest {
    /// What the agent asked.
    pub request: Request,
    /// The agent's own id of it.
    pub native: Option<String>,
    /// The event that opened it.
    pub opened: Seq,
    /// What became of it.
    pub state: RequestState,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestState {
    /// It waits for an answer.
    Open,
    /// It has its answer.
    Resolved(Resolved),
    /// It needs none any more.
    Expired(Expired),
}

/// How many idle connections are kept.
const IDLE: usize = 4;

/// Whether others may write what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Readers and writers heed each other's locks.
    Live,
    /// Nobody can write, and locks cannot be taken.
    Still,
}

/// Connections that only read. They see what is committed and never hold up the writer.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    options: Options,
    sight: Sight,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, options: Options, sight: Sight) -> Self {
        Self { path, options, sight, idle: Mutex::default() }
    }

    /// Closes the idle connections.
    pub(crate) fn close(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => schema::open_reader(&self.path, &self.options, self.sight)
                .map_err(|err| err.at(&self.path))?,
        };
        let result = read(&connection).map_err(|err| err.at(&self.path));
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE {
            idle.push(connection);
        }
        result
    }
}

pub(crate) fn events(
    connection: &Connection,
    key: &ConversationKey,
    after: Seq,
    limit: usize,
) -> Result<Vec<StoredEvent>, Error> {
    let id = id_of(connection, key)?;
    let mut statement = connection.prepare_cached(
        "SELECT id, json FROM events WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3",
    )?;
    let range = (place(id, after.0), place(id + 1, 0), to_sql(limit as u64));
    let rows = statement.query_map(range, |row| {
        Ok(StoredEvent { seq: Seq(seq_at(row.get(0)?)), json: row.get_ref(1)?.as_blob()?.into() })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn blob(connection: &Connection, sha256: &str) -> Result<Option<Vec<u8>>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT raw_bytes, codec, data FROM blobs WHERE sha256 = ?1")?;
    let read = |row: &Row<'_>| {
        let raw_bytes = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
        let raw = unpack(row.get(1)?, row.get_ref(2)?.as_blob()?, raw_bytes);
        Ok(raw.map(std::borrow::Cow::into_owned))
    };
    statement.query_row([sha256], read).optional()?.transpose()
}

const REQUEST: &str = "SELECT json, native, opened, state, resolution FROM requests";

pub(crate) fn open_requests(
    connection: &Connection,
    key: &ConversationKey,
) -> Result<Vec<StoredRequest>, Error> {
    let id = id_of(connection, key)?;
    let mut statement = connection.prepare_cached(&format!(
        "{REQUEST} WHERE conversation = ?1 AND state = 'open' ORDER BY opened"
    ))?;
    let rows = statement.query_map([id], |row| Ok(request_of(row)))?;
    rows.map(|row| row?).collect()
}

pub(crate) fn request(
    connection: &Connection,
    key: &ConversationKey,
    request: &RequestId,
) -> Result<Option<StoredRequest>, Error> {
    let id = id_of(connection, key)?;
    let mut statement =
        connection.prepare_cached(&format!("{REQUEST} WHERE conversation = ?1 AND id = ?2"))?;
    statement.query_row((id, request.as_str()), |row| Ok(request_of(row))).optional()?.transpose()
}

fn request_of(row: &Row<'_>) -> Result<StoredRequest, Error> {
    let json: String = row.get(0)?;
    let resolution: Option<String> = row.get(4)?;
    let resolution = resolution.unwrap_or_default();
    let state = match row.get::<_, String>(3)?.as_str() {
        "open" => RequestState::Open,
        "resolved" => RequestState::Resolved(
            serde_json::from_str(&resolution).map_err(Error::json("resolution"))?,
        ),
        "expired" => RequestState::Expired(
            serde_json::from_str(&resolution).map_err(Error::json("resolution"))?,
        ),
        other => return Err(Error::Unknown { what: "request state", found: other.to_owned() }),
    };
    Ok(StoredRequest {
        request: serde_json::from_str(&json).map_err(Error::json("request"))?,
        native: row.get(1)?,
        opened: Seq(from_sql(row.get(2)?)),
        state,
    })
}
