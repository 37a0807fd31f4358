//! What other processes have to say to the owner of a conversation.
//!
//! A letter lies in the database until the owner takes it: it survives the death of either, and an
//! owner that comes later finds it.

use rusqlite::{Connection, OptionalExtension};
use tieline_event::ConversationKey;

use crate::conversation::id_of;
use crate::error::Error;

/// A letter that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LetterId(i64);

pub(crate) fn post(
    connection: &Connection,
    key: &ConversationKey,
    body: &str,
) -> Result<LetterId, Error> {
    let id = id_of(connection, key)?;
    connection.execute("INSERT INTO mail (conversation, body) VALUES (?1, ?2)", (id, body))?;
    Ok(LetterId(connection.last_insert_rowid()))
}

/// Takes every letter, the oldest first.
pub(crate) fn take(connection: &Connection, key: &ConversationKey) -> Result<Vec<String>, Error> {
    let id = id_of(connection, key)?;
    let sql = "DELETE FROM mail WHERE conversation = ?1 RETURNING id, body";
    let mut statement = connection.prepare_cached(sql)?;
    let letters = statement.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut letters = letters.collect::<Result<Vec<(i64, String)>, _>>()?;
    letters.sort_by_key(|(id, _)| *id);
    Ok(letters.into_iter().map(|(_, body)| body).collect())
}

pub(crate) fn is_waiting(connection: &Connection, letter: LetterId) -> Result<bool, Error> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM mail WHERE id = ?1")?;
    Ok(statement.query_row([letter.0], |_| Ok(())).optional()?.is_some())
}

pub(crate) fn has_any(connection: &Connection, key: &ConversationKey) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM mail JOIN conversations ON conversations.id = mail.conversation
               WHERE key = ?1 LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([key.as_str()], |_| Ok(())).optional()?.is_some())
}
