//! What other processes have to say to the owner of a conversation.
//!
//! A letter lies in the database until the owner has done what it says and that is on disk: it
//! survives the death of either, and an owner that comes later finds it.

use rusqlite::{Connection, OptionalExtension};
use tieline_event::ConversationKey;

use crate::conversation::id_of;
use crate::error::Error;

/// A letter that was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

/// The letters after one, the oldest first.
pub(crate) fn after(
    connection: &Connection,
    key: &ConversationKey,
    after: Option<LetterId>,
) -> Result<Vec<(LetterId, String)>, Error> {
    let sql = "SELECT mail.id, body FROM mail
               JOIN conversations ON conversations.id = mail.conversation
               WHERE key = ?1 AND mail.id > ?2 ORDER BY mail.id";
    let mut statement = connection.prepare_cached(sql)?;
    let after = after.map_or(0, |id| id.0);
    let letters = statement
        .query_map((key.as_str(), after), |row| Ok((LetterId(row.get(0)?), row.get(1)?)))?;
    Ok(letters.collect::<Result<_, _>>()?)
}

/// The owner has done what a letter says.
pub(crate) fn remove(
    connection: &Connection,
    conversation: i64,
    letter: LetterId,
) -> Result<(), Error> {
    let sql = "DELETE FROM mail WHERE id = ?1 AND conversation = ?2";
    connection.prepare_cached(sql)?.execute((letter.0, conversation))?;
    Ok(())
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
