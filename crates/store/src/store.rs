//! The handle everybody holds.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tieline_event::{ConversationKey, FrameNo, RequestId, Seq};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::batch::Batch;
use crate::check::{self, Stats};
use crate::commit::{Commit, block_on};
use crate::conversation::{self, Conversation, Filter, NewConversation};
use crate::error::{Error, Rejected};
use crate::files::{self, DATABASE, Identity};
use crate::frame::FrameRef;
use crate::lease::{self, Claim, Lease, Leases};
use crate::mail::{self, LetterId};
use crate::owner::{self, Owner, Probe, Registration};
use crate::packer::Packer;
use crate::prune::{self, GcOptions, GcReport};
use crate::read::{self, Readers, Sight, StoredEvent, StoredRequest};
use crate::remove::{self, Deleted};
use crate::upkeep::{Capped, Upkeep};
use crate::writer::{self, Append, Desk, Job};
use crate::{Options, gate, private, schema, segment};

/// The store. Clones share one writer; dropping the last one writes what is queued and waits for
/// it.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    database: PathBuf,
    readers: Readers,
    /// The queue is bounded by the bytes in it: a sender takes its share of `room` first, and
    /// waits while there is none. Work that is not a batch has a caller who waits for it.
    jobs: Option<Sender<Job>>,
    room: Arc<Semaphore>,
    room_units: u32,
    writer: Option<JoinHandle<()>>,
    registration: Mutex<Option<Registration>>,
    leases: Leases,
}

/// The queue's room is counted in units of this many bytes; a batch takes at least one.
const ROOM_UNIT: usize = 1024;

/// Two threads that made the database at the same time could unlock each other's; see
/// [`files::prepare_database`].
static OPENING: Mutex<()> = Mutex::new(());

impl Store {
    /// Opens the store in a directory, making both if need be.
    ///
    /// # Errors
    /// [`Error::Corrupt`] and [`Error::Newer`] leave everything as it is; see
    /// [`set_aside`](Self::set_aside). [`Error::Outdated`] while an older program holds
    /// a conversation of it.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        let database = dir.join(DATABASE);
        let connection = {
            let _inside = gate::enter();
            let _opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
            private::make_dir(dir)?;
            if let Some(source) = files::read_only(dir, &database) {
                return Err(Error::ReadOnly { path: dir.to_owned(), source });
            }
            // Nor two processes: they would find each other's database half made.
            let _alone = files::alone_in(dir, options.busy_timeout);
            private::make_owners(dir)?;
            files::prepare_database(&database)?;
            let connection =
                schema::open_writer(&database, &options).map_err(|err| err.at(&database))?;
            // Only now is it known to be ours.
            files::make_database_private(&database)?;
            connection
        };
        let identity =
            Identity::of(&database).map_err(|_| Error::Gone { path: database.clone() })?;
        let room_units = u32::try_from(options.queue_bytes / ROOM_UNIT).unwrap_or(u32::MAX).max(1);
        let (jobs, queue) = mpsc::channel();
        let readers = Readers::new(database.clone(), options.clone(), Sight::Live);
        let desk = Desk {
            database: database.clone(),
            identity,
            connection,
            packer: Packer::default(),
            segment_bytes: options.segment_bytes,
        };
        let writer = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || writer::run(desk, &queue, &options))
            .map_err(|source| Error::Thread { source })?;
        let inner = Inner {
            dir: dir.to_owned(),
            database,
            readers,
            jobs: Some(jobs),
            room: Arc::new(Semaphore::new(room_units as usize)),
            room_units,
            writer: Some(writer),
            registration: Mutex::default(),
            leases: Leases::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens a store that is only read, where nothing can be written or the disk is full; elsewhere the same as
    /// [`open`](Self::open). Whatever writes is then refused with [`Error::ReadOnly`].
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Error::Unreadable`] when it cannot be read as it is.
    pub fn open_to_read(dir: &Path, options: Options) -> Result<Self, Error> {
        match Self::open(dir, options.clone()) {
            // Opening needs room on the disk, too.
            Err(Error::ReadOnly { .. } | Error::Full { .. }) if dir.join(DATABASE).exists() => {}
            result => return result,
        }
        let database = dir.join(DATABASE);
        let sight = schema::sight(&database)?;
        let readers = Readers::new(database.clone(), options, sight);
        readers.with(|connection| schema::check_readable(connection, &database))?;
        let inner = Inner {
            dir: dir.to_owned(),
            database,
            readers,
            jobs: None,
            room: Arc::new(Semaphore::new(1)),
            room_units: 1,
            writer: None,
            registration: Mutex::default(),
            leases: Leases::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Whether nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.inner.jobs.is_none()
    }

    /// Renames a database that [`open`](Self::open) refused, with its log, so that the next `open`
    /// makes a new one. Says what it is called now.
    ///
    /// # Errors
    /// When there is none or it cannot be renamed.
    pub fn set_aside(dir: &Path) -> Result<PathBuf, Error> {
        files::set_aside(dir)
    }

    /// The directory of the store.
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// Takes the lease of a conversation, making the conversation if there is none. What `new` says
    /// holds only then.
    ///
    /// # Errors
    /// [`Error::Busy`] when a living process holds it, or this one has its lease.
    pub fn acquire(&self, key: &ConversationKey, new: NewConversation) -> Result<Lease, Error> {
        let owner = self.owner_id()?;
        let (dir, key, leases) = (self.inner.dir.clone(), key.clone(), self.inner.leases.clone());
        self.inner.run(move |desk| {
            lease::acquire(&mut desk.connection, &dir, (owner, &leases), &key, &new)
        })
    }

    /// Gives a lease up, after everything that was queued before.
    ///
    /// # Errors
    /// When the database cannot be written. The lease then ends with the process.
    pub fn release(&self, lease: Lease) -> Result<(), Error> {
        self.inner.run(move |desk| lease::release(&desk.connection, &lease.claim))
    }

    /// The living process that holds a conversation, this one included.
    ///
    /// # Errors
    /// When the database or the owner's file cannot be read.
    pub fn holder(&self, key: &ConversationKey) -> Result<Option<Owner>, Error> {
        let stored = self.inner.readers.with(|connection| conversation::find(connection, key))?;
        match stored.and_then(|stored| stored.owner) {
            Some(id) => owner::living(&self.inner.dir, &id),
            None => Ok(None),
        }
    }

    /// A conversation as it stands.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn conversation(&self, key: &ConversationKey) -> Result<Option<Conversation>, Error> {
        let stored = self.inner.readers.with(|connection| conversation::find(connection, key))?;
        Ok(stored.map(|stored| stored.conversation))
    }

    /// Conversations, the most recently active first.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn conversations(&self, filter: &Filter) -> Result<Vec<Conversation>, Error> {
        self.inner.readers.with(|connection| conversation::list(connection, filter))
    }

    /// Queues a batch. Waits while the queue is full; dropped while it waits, it queues nothing.
    /// Batches are written in the order in which this returns.
    pub async fn append(&self, lease: &Lease, batch: Batch) -> Commit {
        self.append_claimed(&lease.claim, batch).await
    }

    /// As [`append`](Self::append), for somebody who keeps the future: it borrows nothing.
    #[expect(clippy::async_yields_async, reason = "the commit is waited for later than its place")]
    pub fn append_later(
        &self,
        lease: &Lease,
        batch: Batch,
    ) -> impl Future<Output = Commit> + Send + use<> {
        let (store, claim) = (self.clone(), lease.claim.clone());
        async move { store.append_claimed(&claim, batch).await }
    }

    pub(crate) async fn append_claimed(&self, claim: &Claim, batch: Batch) -> Commit {
        let units = self.inner.units(&batch);
        match Arc::clone(&self.inner.room).acquire_many_owned(units).await {
            Ok(room) => self.inner.queue(claim, batch, room),
            Err(_) => refused(batch, Error::Closed),
        }
    }

    /// As [`append`](Self::append), for a thread without a runtime.
    pub fn append_blocking(&self, lease: &Lease, batch: Batch) -> Commit {
        block_on(self.append(lease, batch))
    }

    /// Queues a batch if the queue has room for it.
    ///
    /// # Errors
    /// Gives the batch back when the queue is full.
    pub fn try_append(&self, lease: &Lease, batch: Batch) -> Result<Commit, Box<Batch>> {
        let units = self.inner.units(&batch);
        match Arc::clone(&self.inner.room).try_acquire_many_owned(units) {
            Ok(room) => Ok(self.inner.queue(&lease.claim, batch, room)),
            Err(_) => Err(Box::new(batch)),
        }
    }

    /// Compresses the frames so far, and keeps at most so many bytes of them on disk; the oldest go.
    /// Events stay. For the end of a turn: it is done within [`Options::upkeep_wait`], after
    /// everything that was queued before, and before what [`flush`](Self::flush) waits for.
    pub fn keep_up(
        &self,
        lease: &Lease,
        most: Option<u64>,
    ) -> oneshot::Receiver<Result<Capped, Error>> {
        let (reply, capped) = oneshot::channel();
        let upkeep = Upkeep { claim: lease.claim.clone(), most, reply };
        // A writer that is gone drops the sender: the receiver says so.
        if self.inner.send(Job::Upkeep(upkeep)).is_err() {
            tracing::warn!("raw frames were not looked after: the store is closed");
        }
        capped
    }

    /// Events after a number, at most `limit`, in order.
    ///
    /// # Errors
    /// [`Error::NoConversation`], or when the database cannot be read.
    pub fn events(
        &self,
        key: &ConversationKey,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, Error> {
        self.inner.readers.with(|connection| read::events(connection, key, after, limit))
    }

    /// Shows frames from a number on, in order, until there are no more or the visitor breaks.
    /// Pruned ones are passed over. Says how many were shown.
    ///
    /// # Errors
    /// [`Error::NoConversation`], or when the database cannot be read.
    pub fn frames(
        &self,
        key: &ConversationKey,
        from: FrameNo,
        visit: &mut dyn FnMut(FrameRef<'_>) -> ControlFlow<()>,
    ) -> Result<u64, Error> {
        self.inner.readers.with(|connection| {
            let id = conversation::id_of(connection, key)?;
            segment::visit(connection, id, from, visit)
        })
    }

    /// The bytes behind a hash.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn blob(&self, sha256: &str) -> Result<Option<Vec<u8>>, Error> {
        self.inner.readers.with(|connection| read::blob(connection, sha256))
    }

    /// Requests that wait for an answer, the oldest first.
    ///
    /// # Errors
    /// [`Error::NoConversation`], or when the database cannot be read.
    pub fn open_requests(&self, key: &ConversationKey) -> Result<Vec<StoredRequest>, Error> {
        self.inner.readers.with(|connection| read::open_requests(connection, key))
    }

    /// A request in whatever state.
    ///
    /// # Errors
    /// [`Error::NoConversation`], or when the database cannot be read.
    pub fn request(
        &self,
        key: &ConversationKey,
        request: &RequestId,
    ) -> Result<Option<StoredRequest>, Error> {
        self.inner.readers.with(|connection| read::request(connection, key, request))
    }

    /// Says something to whoever owns a conversation, now or later.
    ///
    /// # Errors
    /// [`Error::NoConversation`], or when the database cannot be written.
    pub fn post(&self, key: &ConversationKey, body: String) -> Result<LetterId, Error> {
        let key = key.clone();
        self.inner.run(move |desk| mail::post(&desk.connection, &key, &body))
    }

    /// Whether nobody has done yet what a letter says.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn is_waiting(&self, letter: LetterId) -> Result<bool, Error> {
        self.inner.readers.with(|connection| mail::is_waiting(connection, letter))
    }

    /// Whether something lies there for the owner.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn has_mail(&self, key: &ConversationKey) -> Result<bool, Error> {
        self.inner.readers.with(|connection| mail::has_any(connection, key))
    }

    /// What others have to say, the oldest first, after a letter that is known already. A letter goes
    /// with the [change](ConversationChange::letters) that does what it says.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn mail(
        &self,
        key: &ConversationKey,
        after: Option<LetterId>,
    ) -> Result<Vec<(LetterId, String)>, Error> {
        self.inner.readers.with(|connection| mail::after(connection, key, after))
    }

    /// Deletes a conversation and everything only it refers to.
    ///
    /// # Errors
    /// [`Error::Busy`] while a living process holds it, this one included.
    pub fn delete(&self, key: &ConversationKey) -> Result<Deleted, Error> {
        remove::delete(self, key)
    }

    /// Prunes raw frames, clears up what crashes left behind, and gives space back.
    ///
    /// # Errors
    /// When the database cannot be read or written. What was freed before stays freed.
    pub fn gc(&self, options: &GcOptions) -> Result<GcReport, Error> {
        prune::gc(self, options)
    }

    /// Reads everything and says what is wrong with it. Nothing is the good answer.
    ///
    /// # Errors
    /// When the database cannot be read at all.
    pub fn integrity(&self) -> Result<Vec<String>, Error> {
        self.inner.readers.with(check::integrity)
    }

    /// How much there is of everything.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.inner.readers.with(|connection| check::stats(connection, &self.inner.database))
    }

    /// Waits until everything that was queued before is written or refused.
    ///
    /// # Errors
    /// [`Error::Closed`] when the writer is gone.
    pub fn flush(&self) -> Result<(), Error> {
        self.inner.run(|_| Ok(()))
    }

    /// Runs work on the writer's thread and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.inner.run(work)
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.inner.readers
    }

    pub(crate) fn leases(&self) -> &Leases {
        &self.inner.leases
    }

    /// This process as an owner, if it has ever been one.
    pub(crate) fn registered_id(&self) -> Option<Arc<str>> {
        let slot = self.inner.registration.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().map(|registration| Arc::clone(&registration.id))
    }

    /// This process as an owner, registered at first need: who only reads is no owner.
    fn owner_id(&self) -> Result<Arc<str>, Error> {
        let mut slot = self.inner.registration.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(registration) = &*slot {
            return Ok(Arc::clone(&registration.id));
        }
        owner::sweep(&self.inner.dir, Probe::Remove)?;
        let mut tries = 3;
        loop {
            let id: String = self.inner.readers.with(|connection| {
                let random = "SELECT lower(hex(randomblob(16)))";
                Ok(connection.query_row(random, [], |row| row.get(0))?)
            })?;
            tries -= 1;
            match Registration::new(&self.inner.dir, &id) {
                Ok(registration) => {
                    return Ok(Arc::clone(&slot.insert(registration).id));
                }
                Err(err) if tries == 0 => return Err(err),
                Err(err) => tracing::debug!(%err, "registering as an owner once more"),
            }
        }
    }
}

impl Inner {
    fn units(&self, batch: &Batch) -> u32 {
        let units = batch.weight() / ROOM_UNIT + 1;
        // A batch larger than the queue has the queue for itself.
        u32::try_from(units).unwrap_or(u32::MAX).min(self.room_units)
    }

    fn queue(&self, claim: &Claim, batch: Batch, room: OwnedSemaphorePermit) -> Commit {
        let (reply, commit) = Commit::channel();
        let append = Append { claim: claim.clone(), batch: Box::new(batch), reply, room };
        match self.send(Job::Append(append)) {
            Ok(()) => commit,
            Err(Job::Append(append)) => refused(*append.batch, self.no_writer()),
            Err(Job::Run(_) | Job::Upkeep(_)) => commit,
        }
    }

    /// Gives the job back when the writer is gone.
    fn send(&self, job: Job) -> Result<(), Job> {
        match &self.jobs {
            Some(jobs) => jobs.send(job).map_err(|mpsc::SendError(job)| job),
            None => Err(job),
        }
    }

    /// Why a job has nobody to do it.
    fn no_writer(&self) -> Error {
        match self.jobs {
            Some(_) => Error::Closed,
            None => Error::ReadOnly {
                path: self.dir.clone(),
                source: std::io::ErrorKind::ReadOnlyFilesystem.into(),
            },
        }
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, result) = oneshot::channel();
        let work = move |desk: &mut Desk| {
            let result = desk.is_in_place().and_then(|()| work(desk));
            // The caller is on the other end until it has its answer.
            drop(reply.send(result));
        };
        self.send(Job::Run(Box::new(work))).map_err(|_| self.no_writer())?;
        block_on(result).unwrap_or(Err(Error::Closed)).map_err(|err| err.at(&self.database))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The last connection to close empties and removes the log, and one that only reads cannot.
        self.readers.close();
        self.jobs = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the store's writer ended in a panic");
        }
    }
}

fn refused(batch: Batch, error: Error) -> Commit {
    let (reply, commit) = Commit::channel();
    drop(reply.send(Err(Rejected { error, batch: Some(Box::new(batch)) })));
    commit
}
