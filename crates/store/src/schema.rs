//! Connections and the schema.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::Options;
use crate::error::Error;
use crate::owner::{self, Owner};
use crate::wait::wait_for_others;

#[cfg(test)]
mod tests;

/// One step for each version, from 1 on. A step that was released is never changed again.
const MIGRATIONS: &[&str] = &[
    include_str!("schema/v1.sql"),
    include_str!("schema/v2.sql"),
    include_str!("schema/v3.sql"),
    include_str!("schema/v4.sql"),
    include_str!("schema/v5.sql"),
    include_str!("schema/v6.sql"),
    include_str!("schema/v7.sql"),
];

/// The newest schema known here.
pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// `tiel`, so that `file` and a careful reader can tell whose database it is.
const APPLICATION: i64 = 0x7469_656c;

/// Opens the connection that writes, and brings the schema up to date.
pub(crate) fn open_writer(path: &Path, options: &Options) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    configure(&connection, options, options.cache_kib)?;
    wait_for_others(&mut connection, path, options.busy_timeout)?;
    let version = check(&connection, path)?;
    if version == 0 {
        // Takes effect only before the first table is made.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Error::Unknown { what: "journal mode", found: mode });
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain fsync leaves the data in the drive's cache. Nothing elsewhere.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // The writer makes its own checkpoints, after the acknowledgements. This one is for a log that
    // grew all the same.
    connection.pragma_update(None, "wal_autocheckpoint", 8000)?;
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    if let Some(pages) = options.max_pages {
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    // What is up to date is only read: opening must not wait for others who write.
    if version < VERSION {
        migrate(&mut connection, path)?;
    }
    Ok(connection)
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Path, options: &Options) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection, options, options.cache_kib / 4)?;
    Ok(connection)
}

fn configure(connection: &Connection, options: &Options, cache_kib: u32) -> Result<(), Error> {
    connection.busy_timeout(options.busy_timeout)?;
    // Negative is in KiB, positive would be in pages.
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

/// A quick look: is it a database, is it ours, do we know its schema, can its tables be read?
fn check(connection: &Connection, path: &Path) -> Result<i64, Error> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let mut names = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let tables = names.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    let is_new = version == 0 && application == 0 && tables.is_empty();
    if !is_new && application != APPLICATION {
        return Err(Error::corrupt("it is not a database of this program"));
    }
    if version > VERSION {
        return Err(Error::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    for table in tables {
        let first_row = format!("SELECT 1 FROM \"{table}\" LIMIT 1");
        connection.prepare(&first_row)?.query([])?.next()?;
    }
    Ok(version)
}

/// Somebody who holds a conversation, and whose program knows the schema as it is now.
fn living_owner(connection: &Connection, path: &Path) -> Result<Option<Owner>, Error> {
    let Some(dir) = path.parent() else { return Ok(None) };
    let mut owners = connection
        .prepare("SELECT DISTINCT lease_owner FROM conversations WHERE lease_owner IS NOT NULL")?;
    let mut rows = owners.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(owner) = owner::living(dir, &row.get::<_, String>(0)?)? {
            return Ok(Some(owner));
        }
    }
    Ok(None)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    loop {
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Read again under the lock: another process may have been first.
        let version: i64 = step.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version > VERSION {
            return Err(Error::Newer { path: path.to_owned(), found: version, known: VERSION });
        }
        let next = usize::try_from(version).ok().and_then(|done| MIGRATIONS.get(done));
        let Some(migration) = next else { return Ok(()) };
        if version > 0
            && let Some(owner) = living_owner(&step, path)?
        {
            return Err(Error::Outdated { path: path.to_owned(), owner: Box::new(owner) });
        }
        step.execute_batch(migration)?;
        step.pragma_update(None, "application_id", APPLICATION)?;
        step.pragma_update(None, "user_version", version + 1)?;
        step.commit()?;
    }
}
