//! The right to write to a conversation.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, TransactionBehavior};
use tieline_event::{ConversationKey, Epoch, FrameNo, Seq, Timestamp};

use crate::conversation::{self, Conversation, Fork, NewConversation, Stored};
use crate::error::Error;
use crate::number::to_sql;
use crate::owner;

/// The right to write to a conversation, until another process finds this one dead.
///
/// Dropping it changes nothing: the process still owns the conversation and gets the same epoch
/// when it acquires again. [`Store::release`](crate::Store::release) gives it up.
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
    owner: Arc<str>,
    key: &ConversationKey,
    new: &NewConversation,
) -> Result<Lease, Error> {
    let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match conversation::find(&step, key)? {
        None => create(&step, &owner, key, new)?,
        Some(Stored { owner: Some(holder), .. }) if *holder == *owner => {}
        Some(Stored { id, owner: holder, .. }) => {
            if let Some(holder) = holder
                && let Some(living) = owner::living(dir, &holder)?
            {
                return Err(Error::Busy { key: key.clone(), owner: Box::new(living) });
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
    let (session, from) = match fork {
        Some(Fork { session, from }) => (Some(session), Some(from.as_str())),
        None => (None, None),
    };
    let now = Timestamp::now().as_millis();
    connection.execute(
        "INSERT INTO conversations
         (key, agent, workspace, mode, model, created, updated, epoch, lease_owner, lease_since,
          policy, native_session, fork, forked_from, effort)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 1, ?7, ?6, ?8, ?9, ?9 IS NOT NULL, ?10, ?11)",
        (
            key.as_str(),
            agent,
            workspace,
            mode.name(),
            model,
            now,
            owner,
            policy,
            session,
            from,
            effort,
        ),
    )?;
    Ok(())
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
