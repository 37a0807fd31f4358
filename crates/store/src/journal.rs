//! What an agent within this process writes down to go on from, and what users typed.

use rusqlite::{Connection, OptionalExtension};
use tieline_event::{ConversationKey, Timestamp};

use crate::batch::Batch;
use crate::commit::Commit;
use crate::error::Error;
use crate::lease::{Claim, Lease};
use crate::number::{from_sql, to_sql};
use crate::store::Store;

/// Writes a conversation's journal beside whoever writes its events. Holds as long as the lease.
#[derive(Debug, Clone)]
pub struct Scribe {
    store: Store,
    claim: Claim,
}

/// An entry of a journal.
pub struct JournalEntry {
    /// The native session it belongs to.
    pub session: String,
    /// The entry.
    pub body: Vec<u8>,
}

/// A line that a user typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedLine {
    /// In which conversation.
    pub conversation: String,
    /// When.
    pub ts: Timestamp,
    /// The line.
    pub text: String,
}

impl Scribe {
    /// Queues entries; they are on disk together, in order, when the commit resolves.
    pub async fn append(&self, session: &str, entries: Vec<Vec<u8>>) -> Commit {
        let journal = entries
            .into_iter()
            .map(|body| JournalEntry { session: session.to_owned(), body })
            .collect();
        self.store.append_claimed(&self.claim, Batch { journal, ..Batch::default() }).await
    }

    /// The store it writes to.
    pub fn store(&self) -> &Store {
        &self.store
    }
}

impl Store {
    /// A hand that writes the journal of a conversation.
    pub fn scribe(&self, lease: &Lease) -> Scribe {
        Scribe { store: self.clone(), claim: lease.claim.clone() }
    }

    /// Everything in the journal of a native session, in order. The session names it, whichever
    /// conversation it began in.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn journal(&self, session: &str) -> Result<Vec<Vec<u8>>, Error> {
        self.readers().with(|connection| {
            let sql = "SELECT body FROM journal WHERE session = ?1 ORDER BY id";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([session], |row| row.get(0))?;
            Ok(rows.collect::<Result<Vec<_>, _>>()?)
        })
    }

    /// Remembers a line that a user typed.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn remember_line(&self, key: &ConversationKey, text: String) -> Result<(), Error> {
        let key = key.clone();
        self.run(move |desk| {
            desk.connection.execute(
                "INSERT INTO history (conversation, ts, text) VALUES (?1, ?2, ?3)",
                (key.as_str(), Timestamp::now().as_millis(), text),
            )?;
            Ok(())
        })
    }

    /// How many lines users have typed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn n_typed_lines(&self) -> Result<u64, Error> {
        self.readers().with(|connection| {
            let sql = "SELECT count(*) FROM history";
            Ok(from_sql(connection.query_row(sql, [], |row| row.get(0))?))
        })
    }

    /// The line at a place, from 0 for the first that was ever typed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn typed_line(&self, offset: u64) -> Result<Option<TypedLine>, Error> {
        self.readers().with(|connection| {
            let sql = "SELECT conversation, ts, text FROM history ORDER BY id LIMIT 1 OFFSET ?1";
            let line = connection
                .query_row(sql, [to_sql(offset)], |row| {
                    let ts = Timestamp::from_millis(row.get(1)?);
                    Ok(TypedLine { conversation: row.get(0)?, ts, text: row.get(2)? })
                })
                .optional()?;
            Ok(line)
        })
    }
}

/// Copies what a session has so far to another name, within the writer's transaction.
pub(crate) fn copy(connection: &Connection, from: &str, id: i64, to: &str) -> Result<(), Error> {
    connection.execute(
        "INSERT INTO journal (conversation, session, body)
         SELECT ?2, ?3, body FROM journal WHERE session = ?1 ORDER BY id",
        (from, id, to),
    )?;
    Ok(())
}

/// Writes an entry within the writer's transaction.
pub(crate) fn insert(connection: &Connection, id: i64, entry: &JournalEntry) -> Result<(), Error> {
    connection
        .prepare_cached("INSERT INTO journal (conversation, session, body) VALUES (?1, ?2, ?3)")?
        .execute((id, &entry.session, &entry.body))?;
    Ok(())
}
