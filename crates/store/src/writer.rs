//! The thread that writes.
//!
//! It takes what is queued, writes it in one transaction and answers after the `fsync`. A batch
//! somebody waits for is committed as soon as nothing else is queued. What nobody waits for waits for
//! company: events up to [`Options::event_wait`], frames alone up to [`Options::group_wait`]. Upkeep
//! waits up to [`Options::upkeep_wait`] and then goes along with whatever is committed, so that no
//! batch waits for the disk because of it.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Instant;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::batch::Batch;
use crate::error::{Error, Rejected};
use crate::files::Identity;
use crate::group::{Group, Verdict};
use crate::lease::Claim;
use crate::packer::Packer;
use crate::upkeep::{KeptUp, Upkeep, Waiting};
use crate::wait::wait_for_others;
use crate::{Options, gate};

/// Work for the writer, done in the order it comes.
pub(crate) enum Job {
    Append(Append),
    Upkeep(Upkeep),
    /// Done alone, after everything that came before it, upkeep included.
    Run(Work),
}

type Work = Box<dyn FnOnce(&mut Desk) + Send>;

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
    pub(crate) database: PathBuf,
    /// The file that was opened under that name.
    pub(crate) identity: Identity,
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
    if let Err(err) = wait_for_others(&mut desk.connection, &desk.database, options.busy_timeout) {
        tracing::error!(%err, "the store does not wait for others");
    }
    let mut waiting = Waiting::new(options.upkeep_wait);
    let mut log_bytes = 0;
    loop {
        let first = match waiting.left() {
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => jobs.recv_timeout(left),
        };
        let gathered = match first {
            Ok(job) => gather(job, jobs, options),
            Err(RecvTimeoutError::Timeout) => Gathered::default(),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let due = waiting.take_due();
        let Gathered { group, upkeep, then } = gathered;
        log_bytes += desk.commit(group, due);
        waiting.add(upkeep);
        if let Some(work) = then {
            log_bytes += desk.commit(Vec::new(), waiting.take());
            let _inside = gate::enter();
            work(&mut desk);
        }
        if log_bytes >= CHECKPOINT {
            log_bytes = 0;
            desk.checkpoint();
        }
    }
    desk.commit(Vec::new(), waiting.take());
    // The last connection to close empties the log.
    let _inside = gate::enter();
    drop(desk);
}

/// What was taken from the queue at once.
#[derive(Default)]
struct Gathered {
    /// What is to be committed together.
    group: Vec<Append>,
    /// What can wait.
    upkeep: Vec<Upkeep>,
    /// What comes right after it.
    then: Option<Work>,
}

fn gather(first: Job, jobs: &Receiver<Job>, options: &Options) -> Gathered {
    let began = Instant::now();
    let mut patience = options.group_wait;
    let mut gathered = Gathered::default();
    let (mut n_events, mut n_bytes) = (0, 0);
    let mut job = first;
    loop {
        match job {
            Job::Run(work) => {
                gathered.then = Some(work);
                return gathered;
            }
            Job::Upkeep(upkeep) => gathered.upkeep.push(upkeep),
            Job::Append(append) => {
                n_events += append.batch.events.len();
                n_bytes += append.batch.weight();
                patience = patience.min(append.batch.patience(options));
                gathered.group.push(append);
            }
        }
        if n_bytes >= options.group_max_bytes || n_events >= options.group_max_events {
            return gathered;
        }
        let left = patience.saturating_sub(began.elapsed());
        let may_wait =
            !gathered.group.is_empty() && !left.is_zero() && n_bytes < options.group_bytes;
        job = match jobs.try_recv() {
            Ok(job) => job,
            Err(TryRecvError::Empty) if may_wait => match jobs.recv_timeout(left) {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return gathered;
                }
            },
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return gathered,
        };
    }
}

impl Desk {
    /// Commits the batches together, or, when that fails, one by one: the trouble of one
    /// conversation is not the others'. Says about how many bytes the log grew.
    fn commit(&mut self, group: Vec<Append>, mut upkeep: Vec<Upkeep>) -> usize {
        if group.is_empty() && upkeep.is_empty() {
            return 0;
        }
        let n_bytes = group.iter().map(|append| append.batch.weight()).sum::<usize>()
            + upkeep.len() * LOG_PER_COMMIT;
        let is_alone = group.len() + upkeep.len() == 1;
        match self.write(&group, &upkeep).map_err(|err| err.at(&self.database)) {
            Ok((verdicts, capped)) => {
                answer_all(group, verdicts);
                upkeep.into_iter().zip(capped).for_each(|(upkeep, capped)| upkeep.answer(capped));
            }
            Err(error) if is_alone => match upkeep.pop() {
                Some(upkeep) => upkeep.answer(Err(error)),
                None => answer_all(group, vec![Verdict::Refused(error)]),
            },
            Err(error) => {
                tracing::debug!(n_batches = group.len(), %error, "group failed, going one by one");
                for append in group {
                    self.commit(vec![append], Vec::new());
                }
                for upkeep in upkeep {
                    self.commit(Vec::new(), vec![upkeep]);
                }
            }
        }
        n_bytes + LOG_PER_COMMIT
    }

    /// A database that was deleted or replaced takes everything, and keeps it from everybody.
    pub(crate) fn is_in_place(&self) -> Result<(), Error> {
        match Identity::of(&self.database) {
            Ok(identity) if identity == self.identity => Ok(()),
            _ => Err(Error::Gone { path: self.database.clone() }),
        }
    }

    fn write(
        &mut self,
        group: &[Append],
        upkeep: &[Upkeep],
    ) -> Result<(Vec<Verdict>, Vec<KeptUp>), Error> {
        let _inside = gate::enter();
        self.is_in_place()?;
        let step = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut open = Group::new(&step, &mut self.packer, self.segment_bytes);
        let verdicts = group
            .iter()
            .map(|append| open.add(&append.claim, &append.batch))
            .collect::<Result<Vec<_>, _>>()?;
        let capped =
            upkeep.iter().map(|upkeep| open.keep_up(upkeep)).collect::<Result<Vec<_>, _>>()?;
        open.finish()?;
        step.commit()?;
        Ok((verdicts, capped))
    }

    fn checkpoint(&mut self) {
        let _inside = gate::enter();
        let result = self
            .connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(0));
        if let Err(err) = result {
            // Whole all the same: the log has everything.
            tracing::warn!(%err, "cannot copy the log into the database");
        }
    }
}

/// The last one first: who waits for several in their order wakes once and finds them all answered.
fn answer_all(group: Vec<Append>, verdicts: Vec<Verdict>) {
    for (Append { batch, reply, room, .. }, verdict) in group.into_iter().zip(verdicts).rev() {
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
