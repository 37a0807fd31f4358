//! The right to write to a conversation.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, TransactionBehavior};
use tieline_event::{ConversationKey, Epoch, FrameNo, Seq, Timestamp};

use crate::conversation::{self, Conversation, Fork, ForkedAt, NewConversation, Stored};
use crate::error::Error;
use crate::journal;
use crate::number::to_sql;
use crate::owner::{self, Owner};

/// The right to write to a conversation, until another process finds this one dead.
///
/// There is one at a time, also within a process. [`Store::release`](crate::Store::release) gives it
/// up. Dropping it keeps other processes out as long as this one lives; this one may acquire again,
/// with a new epoch.
#[derive(Debug)]
pub struct Lease {
    /// Which conversation.
    pub key: ConversationKey,
    /// The generation of owner; part of every event.
    pub epoch: Epoch,
    /// The number of the next event, when the lease was taken.
    pub next_seq: Seq,
    /// The number of the next frame, when the lease was taken.
    pub next_frame: FrameNo,
    /// The conversation as it was when the lease was taken.
    pub conversation: Conversation,
    pub(crate) claim: Claim,
    _held: Held,
}

/// The conversations whose leases exist in this process. The database knows only the process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<HashSet<ConversationKey>>>);

impl Leases {
    /// Notes a lease, unless there is one.
    fn hold(&self, key: &ConversationKey) -> Option<Held> {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key.clone()).then(|| Held { leases: self.clone(), key: key.clone() })
    }

    /// Whether the lease of a conversation exists in this process.
    pub(crate) fn has(&self, key: &ConversationKey) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }
}

/// A place in [`Leases`], free again when this is dropped.
#[derive(Debug)]
struct Held {
    leases: Leases,
    key: ConversationKey,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.leases.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// What every owned write must prove within its transaction.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) conversation: i64,
    pub(crate) key: ConversationKey,
    pub(crate) owner: Arc<str>,
    pub(crate) epoch: Epoch,
}

impl Claim {
    pub(crate) fn lost(&self) -> Error {
        Error::LostLease { key: self.key.clone(), epoch: self.epoch }
    }
}

/// Takes the lease, making the conversation if there is none.
pub(crate) fn acquire(
    connection: &mut Connection,
    dir: &Path,
    (owner, leases): (Arc<str>, &Leases),
    key: &ConversationKey,
    new: &NewConversation,
) -> Result<Lease, Error> {
    let busy = |owner| Error::Busy { key: key.clone(), owner: Box::new(owner) };
    let held = leases.hold(key).ok_or_else(|| busy(Owner::me()))?;
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match conversation::find(&step, key)? {
        None => create(&step, &owner, key, new)?,
        Some(Stored { id, owner: holder, .. }) => {
            // A lease of this process that was dropped and not released is void with the new epoch.
            if let Some(holder) = holder.filter(|holder| **holder != *owner)
                && let Some(living) = owner::living(dir, &holder)?
            {
                return Err(busy(living));
            }
            step.execute(
                "UPDATE conversations SET epoch = epoch + 1, lease_owner = ?2, lease_since = ?3
                 WHERE id = ?1",
                (id, &*owner, Timestamp::now().as_millis()),
            )?;
        }
    }
    let stored =
        conversation::find(&step, key)?.ok_or_else(|| Error::NoConversation(key.clone()))?;
    step.commit()?;
    Ok(Lease {
        key: key.clone(),
        epoch: stored.conversation.epoch,
        next_seq: stored.conversation.next_seq,
        next_frame: stored.conversation.next_frame,
        claim: Claim {
            conversation: stored.id,
            key: key.clone(),
            owner,
            epoch: stored.conversation.epoch,
        },
        conversation: stored.conversation,
        _held: held,
    })
}

fn create(
    connection: &Connection,
    owner: &str,
    key: &ConversationKey,
    new: &NewConversation,
) -> Result<(), Error> {
    let NewConversation { agent, workspace, mode, policy, model, effort, fork } = new;
    let policy = policy.map(|policy| serde_json::to_string(&policy)).transpose();
    let policy = policy.map_err(Error::json("policy"))?;
    let branch = fork.as_ref().map(|fork| Branch::of(connection, fork)).transpose()?;
    let now = Timestamp::now().as_millis();
    connection.execute(
        "INSERT INTO conversations
         (key, agent, workspace, mode, model, created, updated, epoch, lease_owner, lease_since,
          policy, native_session, fork, forked_from, effort, position, forked_at_turn, forked_at_seq)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 1, ?7, ?6, ?8, ?9, ?9 IS NOT NULL, ?10, ?11, ?12, ?13,
          ?14)",
        (
            key.as_str(),
            agent,
            workspace,
            mode.name(),
            model,
            now,
            owner,
            policy,
            branch.as_ref().map(|it| &it.session),
            branch.as_ref().map(|it| it.from.as_str()),
            effort,
            branch.as_ref().and_then(|it| it.position.as_ref()),
            branch.as_ref().map(|it| to_sql(it.at.turn)),
            branch.as_ref().map(|it| to_sql(it.at.seq.0)),
        ),
    )?;
    if let Some(Fork { session, copies_journal: true, .. }) = fork {
        let id = connection.last_insert_rowid();
        // A name that no other session has, for as long as there are entries under it.
        let copy = format!("{session}#{id}");
        journal::copy(connection, session, id, &copy)?;
        let sql = "UPDATE conversations SET native_session = ?2 WHERE id = ?1";
        connection.execute(sql, (id, copy))?;
    }
    Ok(())
}

/// Where a new conversation begins, in what another one has within this transaction.
struct Branch {
    session: String,
    position: Option<String>,
    from: ConversationKey,
    at: ForkedAt,
}

impl Branch {
    fn of(connection: &Connection, fork: &Fork) -> Result<Self, Error> {
        let other = conversation::find(connection, &fork.from)?;
        let Stored { conversation: other, .. } =
            other.ok_or_else(|| Error::NoConversation(fork.from.clone()))?;
        let at = ForkedAt { turn: other.n_turns(), seq: Seq(other.n_events()) };
        let is_same = other.native_session.as_deref() == Some(&*fork.session);
        let position = other.position.clone().filter(|_| is_same);
        let session = fork.session.clone();
        // One that has had no turn branches off at the same place.
        match (other.forks && is_same, other.forked_from, other.forked_at) {
            (true, Some(from), Some(at)) => Ok(Self { session, position, from, at }),
            _ => Ok(Self { session, position, from: fork.from.clone(), at }),
        }
    }
}

/// Gives the lease up, if it is still held.
pub(crate) fn release(connection: &Connection, claim: &Claim) -> Result<(), Error> {
    connection.execute(
        "UPDATE conversations SET lease_owner = NULL, lease_since = NULL
         WHERE id = ?1 AND lease_owner = ?2 AND epoch = ?3",
        (claim.conversation, &*claim.owner, to_sql(claim.epoch.0)),
    )?;
    Ok(())
}
