//! Connections and the schema.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::Options;
use crate::error::Error;
use crate::files::{is_empty, with_suffix};
use crate::owner::{self, Owner};
use crate::read::Sight;
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
pub(crate) fn open_reader(
    path: &Path,
    options: &Options,
    sight: Sight,
) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match sight {
        Sight::Live => Connection::open_with_flags(path, flags)?,
        Sight::Still => {
            Connection::open_with_flags(still(path), flags | OpenFlags::SQLITE_OPEN_URI)?
        }
    };
    configure(&connection, options, options.cache_kib / 4)?;
    Ok(connection)
}

/// How a database can be read where nothing can be written.
pub(crate) fn sight(database: &Path) -> Result<Sight, Error> {
    let log = with_suffix(database, "-wal");
    if !log.exists() || is_empty(&log) {
        return Ok(Sight::Still);
    }
    if with_suffix(database, "-shm").exists() {
        return Ok(Sight::Live);
    }
    let why = "a process that was killed left a log without an index; copy the store to where it can \
               be written, and use --store";
    Err(Error::Unreadable { path: dir_of(database), why })
}

/// Whether a database that cannot be written is ours, and of a schema that can be read as it is.
pub(crate) fn check_readable(connection: &Connection, path: &Path) -> Result<(), Error> {
    if check(connection, path)? == VERSION {
        return Ok(());
    }
    let why = "an older version wrote it, and its database must be brought up to date first; copy the \
               store to where it can be written, and use --store";
    Err(Error::Unreadable { path: dir_of(path), why })
}

fn dir_of(database: &Path) -> PathBuf {
    database.parent().unwrap_or(database).to_owned()
}

/// The address of a database that does not change, as SQLite reads it.
fn still(path: &Path) -> String {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                address.push(char::from(*byte));
            }
            _ => address.push_str(&format!("%{byte:02x}")),
        }
    }
    address.push_str("?immutable=1");
    address
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
