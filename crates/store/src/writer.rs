//! The thread that writes.
//!
//! It takes what is queued, writes it in one transaction and answers after the `fsync`. A batch
//! somebody waits for is committed as soon as nothing else is queued; frames alone wait up to
//! [`Options::group_wait`] for company.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Instant;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::Options;
use crate::batch::Batch;
use crate::error::{Error, Rejected};
use crate::group::{Group, Verdict};
use crate::lease::Claim;
use crate::packer::Packer;

/// Work for the writer, done in the order it comes.
pub(crate) enum Job {
    Append(Append),
    Run(Box<dyn FnOnce(&mut Desk) + Send>),
}

/// A batch to be written.
pub(crate) struct Append {
    pub(crate) claim: Claim,
    pub(crate) batch: Box<Batch>,
    pub(crate) reply: oneshot::Sender<Result<(), Rejected>>,
    /// Its share of the queue, free again once it is on disk.
    pub(crate) room: OwnedSemaphorePermit,
}

/// What the writer works with.
pub(crate) struct Desk {
    pub(crate) connection: Connection,
    pub(crate) packer: Packer,
    pub(crate) segment_bytes: usize,
}

/// A commit changes at least a few pages, however little it writes.
const LOG_PER_COMMIT: usize = 16 * 1024;

/// The log is copied into the database when it is about this long.
const CHECKPOINT: usize = 4 << 20;

/// Works until every sender is gone and the queue is empty.
pub(crate) fn run(mut desk: Desk, jobs: &Receiver<Job>, options: &Options) {
    let mut log_bytes = 0;
    while let Ok(job) = jobs.recv() {
        let (group, then) = gather(job, jobs, options);
        if !group.is_empty() {
            log_bytes += LOG_PER_COMMIT + group.iter().map(|job| job.batch.weight()).sum::<usize>();
            desk.commit(group);
        }
        if let Some(work) = then {
            work(&mut desk);
        }
        if log_bytes >= CHECKPOINT {
            log_bytes = 0;
            desk.checkpoint();
        }
    }
}

type Work = Box<dyn FnOnce(&mut Desk) + Send>;

/// Collects what is to be committed together, and the work that comes right after it.
fn gather(first: Job, jobs: &Receiver<Job>, options: &Options) -> (Vec<Append>, Option<Work>) {
    let deadline = Instant::now() + options.group_wait;
    let mut group = Vec::new();
    let (mut n_events, mut n_bytes, mut is_durable) = (0, 0, false);
    let mut job = first;
    loop {
        match job {
            Job::Run(work) => return (group, Some(work)),
            Job::Append(append) => {
                n_events += append.batch.events.len();
                n_bytes += append.batch.weight();
                is_durable |= append.batch.is_durable();
                group.push(append);
            }
        }
        if n_bytes >= options.group_max_bytes || n_events >= options.group_max_events {
            return (group, None);
        }
        let may_wait = !is_durable && n_bytes < options.group_bytes;
        job = match jobs.try_recv() {
            Ok(job) => job,
            Err(TryRecvError::Empty) if may_wait => {
                let left = deadline.saturating_duration_since(Instant::now());
                match jobs.recv_timeout(left) {
                    Ok(job) => job,
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                        return (group, None);
                    }
                }
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return (group, None),
        };
    }
}

impl Desk {
    /// Runs work in a transaction of its own.
    pub(crate) fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Group<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let step = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut group = Group::new(&step, &mut self.packer, self.segment_bytes);
        let value = work(&mut group)?;
        group.finish()?;
        step.commit()?;
        Ok(value)
    }

    /// Commits the batches together, or, when that fails, one by one: the trouble of one
    /// conversation is not the others'.
    fn commit(&mut self, group: Vec<Append>) {
        match self.write(&group) {
            Ok(verdicts) => answer_all(group, verdicts),
            Err(error) if group.len() == 1 => answer_all(group, vec![Verdict::Refused(error)]),
            Err(error) => {
                tracing::debug!(n_batches = group.len(), %error, "group failed, going one by one");
                for append in group {
                    self.commit(vec![append]);
                }
            }
        }
    }

    fn write(&mut self, group: &[Append]) -> Result<Vec<Verdict>, Error> {
        let step = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut open = Group::new(&step, &mut self.packer, self.segment_bytes);
        let verdicts = group
            .iter()
            .map(|append| open.add(&append.claim, &append.batch))
            .collect::<Result<Vec<_>, _>>()?;
        open.finish()?;
        step.commit()?;
        Ok(verdicts)
    }

    fn checkpoint(&mut self) {
        let result = self
            .connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0));
        if let Err(err) = result {
            // Whole all the same: the log has everything.
            tracing::warn!(%err, "cannot copy the log into the database");
        }
    }
}

fn answer_all(group: Vec<Append>, verdicts: Vec<Verdict>) {
    for (Append { batch, reply, room, .. }, verdict) in group.into_iter().zip(verdicts) {
        drop(room);
        let answer = match verdict {
            Verdict::Accepted => Ok(()),
            Verdict::Refused(error) => Err(Rejected { error, batch: Some(batch) }),
        };
        if let Err(Err(rejected)) = reply.send(answer) {
            // Nobody waits. The writer's own next batch will not continue and be refused too.
            tracing::error!(error = %rejected.error, "a batch nobody waits for was not written");
        }
    }
}
