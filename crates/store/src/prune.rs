//! Giving space back.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};
use tieline_event::Timestamp;

use crate::error::Error;
use crate::number::from_sql;
use crate::owner::{self, Probe};
use crate::remove::{delete_rows, delete_segments};
use crate::store::Store;

/// What may go. By default nothing that anybody could miss.
#[derive(Debug, Clone, Default)]
pub struct GcOptions {
    /// Raw frames older than this go.
    pub max_frame_age: Option<Duration>,
    /// Of the raw frames, the oldest go until no more than this lies on disk.
    pub max_frame_bytes: Option<u64>,
    /// Only say what would be freed.
    pub dry_run: bool,
}

/// What was freed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Raw frames.
    pub n_frames: u64,
    /// Bytes of raw frames, as they lay on disk.
    pub frame_bytes: u64,
    /// Conversations whose deletion was cut off.
    pub n_conversations: u64,
    /// Blobs nobody refers to.
    pub n_blobs: u64,
    /// Bytes of those blobs, as they lay on disk.
    pub blob_bytes: u64,
    /// Lock files of dead processes.
    pub n_owner_files: u64,
    /// Size of the database and its log before.
    pub disk_bytes_before: u64,
    /// Size of the database and its log after.
    pub disk_bytes_after: u64,
}

/// Pages given back to the file system in one transaction. They pass through the log, and where the disk is
/// almost full there is little room for it.
const VACUUM_PAGES: i64 = 128;

/// By conversation, the first frame of the last segment to go. Whole prefixes go, so that what is
/// left has no hole.
type Plan = BTreeMap<i64, i64>;

pub(crate) fn gc(store: &Store, options: &GcOptions) -> Result<GcReport, Error> {
    let disk_bytes_before = store.stats()?.disk_bytes;
    let plan = store.readers().with(|connection| plan(connection, options))?;
    let probe = if options.dry_run { Probe::Keep } else { Probe::Remove };
    let n_owner_files = owner::sweep(store.dir(), probe)?;
    let mut report = if options.dry_run {
        store.readers().with(|connection| foresee(connection, &plan))?
    } else {
        empty_log(store)?;
        let report = carry_out(store, plan)?;
        vacuum(store)?;
        report
    };
    report.n_owner_files = n_owner_files;
    report.disk_bytes_before = disk_bytes_before;
    report.disk_bytes_after = store.stats()?.disk_bytes;
    Ok(report)
}

fn plan(connection: &Connection, options: &GcOptions) -> Result<Plan, Error> {
    let mut plan = Plan::new();
    let mut doom = |conversation: i64, first: i64| {
        plan.entry(conversation).and_modify(|last| *last = first.max(*last)).or_insert(first);
    };
    if let Some(age) = options.max_frame_age {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let oldest = Timestamp::now().as_millis().saturating_sub(age);
        let mut statement = connection.prepare(
            "SELECT conversation, max(first) FROM segments WHERE newest < ?1
             GROUP BY conversation",
        )?;
        let mut rows = statement.query([oldest])?;
        while let Some(row) = rows.next()? {
            doom(row.get(0)?, row.get(1)?);
        }
    }
    if let Some(most) = options.max_frame_bytes {
        let mut kept = 0u64;
        let mut statement = connection.prepare(
            "SELECT conversation, first, length(data) FROM segments
             ORDER BY newest DESC, id DESC",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            kept += from_sql(row.get(2)?);
            if kept > most {
                doom(row.get(0)?, row.get(1)?);
            }
        }
    }
    Ok(plan)
}

/// What carrying out the plan would free.
fn foresee(connection: &Connection, plan: &Plan) -> Result<GcReport, Error> {
    let mut report = GcReport::default();
    let mut segments = connection.prepare(
        "SELECT coalesce(sum(n_frames), 0), coalesce(sum(length(data)), 0) FROM segments
         WHERE conversation = ?1 AND first <= ?2",
    )?;
    for doomed in plan {
        let (n_frames, bytes): (i64, i64) =
            segments.query_row(doomed, |row| Ok((row.get(0)?, row.get(1)?)))?;
        report.n_frames += from_sql(n_frames);
        report.frame_bytes += from_sql(bytes);
    }
    report.n_conversations = unfinished(connection)?.len() as u64;
    (report.n_blobs, report.blob_bytes) = loose_blobs(connection)?;
    Ok(report)
}

fn carry_out(store: &Store, plan: Plan) -> Result<GcReport, Error> {
    let mut report = GcReport::default();
    for (conversation, through) in plan {
        loop {
            let (n_frames, bytes) = store.run(move |desk| {
                let step =
                    desk.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let freed = prune_segments(&step, conversation, through)?;
                step.commit()?;
                Ok(freed)
            })?;
            report.n_frames += n_frames;
            report.frame_bytes += bytes;
            if n_frames == 0 {
                break;
            }
        }
    }
    for conversation in store.readers().with(unfinished)? {
        let deleted = delete_rows(store, conversation)?;
        report.n_conversations += 1;
        report.n_frames += deleted.n_frames;
        report.frame_bytes += deleted.frame_bytes;
        report.n_blobs += deleted.n_blobs;
        report.blob_bytes += deleted.blob_bytes;
    }
    let (n_blobs, blob_bytes) = store.run(|desk| {
        let step = desk.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let freed = loose_blobs(&step)?;
        step.execute(&format!("DELETE FROM blobs {LOOSE}"), [])?;
        step.commit()?;
        Ok(freed)
    })?;
    report.n_blobs += n_blobs;
    report.blob_bytes += blob_bytes;
    Ok(report)
}

/// Deletes a few segments and lets the tail begin behind them.
fn prune_segments(
    connection: &Connection,
    conversation: i64,
    through: i64,
) -> Result<(u64, u64), Error> {
    let freed = delete_segments(connection, conversation, through)?;
    connection.execute(
        "UPDATE conversations SET
         tail_first = max(tail_first, coalesce(
             (SELECT min(first) FROM segments WHERE conversation = ?1), next_frame))
         WHERE id = ?1",
        [conversation],
    )?;
    connection.execute(
        "UPDATE conversations SET
         tail_bytes = (SELECT coalesce(sum(raw_bytes), 0) FROM segments
                       WHERE conversation = ?1 AND first >= tail_first)
         WHERE id = ?1",
        [conversation],
    )?;
    Ok(freed)
}

/// Conversations whose deletion was cut off.
fn unfinished(connection: &Connection) -> Result<Vec<i64>, Error> {
    let mut statement = connection.prepare("SELECT id FROM conversations WHERE key IS NULL")?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

const LOOSE: &str = "WHERE NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = blobs.id)";

fn loose_blobs(connection: &Connection) -> Result<(u64, u64), Error> {
    let sql = format!("SELECT count(*), coalesce(sum(length(data)), 0) FROM blobs {LOOSE}");
    let counts =
        connection.query_row(&sql, [], |row| Ok((from_sql(row.get(0)?), from_sql(row.get(1)?))))?;
    Ok(counts)
}

/// Shortens the file by the pages that are free, emptying the log as it grows.
fn vacuum(store: &Store) -> Result<(), Error> {
    loop {
        let n_free = store.run(|desk| {
            let connection = &desk.connection;
            let mut statement =
                connection.prepare(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
            let mut rows = statement.query([])?;
            while rows.next()?.is_some() {}
            drop(rows);
            let n_free: i64 =
                connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
            Ok(n_free)
        })?;
        empty_log(store)?;
        if n_free == 0 {
            return Ok(());
        }
    }
}

fn empty_log(store: &Store) -> Result<(), Error> {
    store.run(|desk| {
        // Busy readers keep the log from being emptied; the next checkpoint will do it.
        desk.connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))?;
        Ok(())
    })
}
