//! Who owns the conversations of this process: at most one actor each.
//!
//! The rules are in [`states`]; here callers wait for their turn. Nothing is done while the table is
//! locked but to look at it and to change it.

mod states;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tieline_event::ConversationKey;
use tokio::sync::watch;

use self::states::{Beginning, Found, State, States, Tenure};
use crate::conversation::Conversation;
use crate::error::Error;

/// The owners of a process's conversations.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    states: Mutex<States<ConversationKey, Conversation>>,
    /// Counts changes; its value means nothing else.
    changed: watch::Sender<u64>,
}

/// What somebody finds who wants a conversation open.
pub(crate) enum Entered {
    /// It is open.
    Open(Conversation),
    /// It is not, and nobody else can open it now.
    Vacant(Claim),
}

/// The exclusive right to a conversation within this process. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    owners: Weak<Owners>,
    key: ConversationKey,
    tenure: Tenure,
}

impl Owners {
    /// The open conversation, or the right to open it. Waits while somebody else opens, closes, makes
    /// or deletes it.
    pub(crate) async fn enter(self: &Arc<Self>, key: &ConversationKey) -> Entered {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            match self.begin(key, Beginning::Opening) {
                Ok(claim) => return Entered::Vacant(claim),
                Err(Some(open)) if !open.is_closed() => return Entered::Open(open),
                Err(_) => next(&mut changed).await,
            }
        }
    }

    /// The right to make or to delete a conversation that is not open. Waits as [`Self::enter`] does.
    ///
    /// # Errors
    /// The conversation, when it is open.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        key: &ConversationKey,
    ) -> Result<Claim, Conversation> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            match self.begin(key, Beginning::Reserved) {
                Ok(claim) => return Ok(claim),
                Err(Some(open)) if !open.is_closed() => return Err(open),
                Err(_) => next(&mut changed).await,
            }
        }
    }

    /// As [`Self::reserve`]; one that is open is closed first.
    pub(crate) async fn reserve_closed(self: &Arc<Self>, key: &ConversationKey) -> Claim {
        loop {
            match self.reserve(key).await {
                Ok(claim) => return claim,
                Err(open) => close(&open).await,
            }
        }
    }

    /// Conversations that are open now.
    pub(crate) fn open(&self) -> Vec<Conversation> {
        let states = self.lock();
        let open = states.all().filter_map(|(_, _, state)| match state {
            State::Open(open) if !open.is_closed() => Some(open.clone()),
            _ => None,
        });
        open.collect()
    }

    /// Closes every conversation that is open or being opened, and waits until all are gone.
    pub(crate) async fn close_all(self: &Arc<Self>) {
        let all: Vec<_> = self.lock().all().map(|(key, tenure, _)| (key.clone(), tenure)).collect();
        let closing = all.into_iter().map(|(key, tenure)| {
            let owners = Arc::clone(self);
            tokio::spawn(async move { owners.close(&key, tenure).await })
        });
        for closed in closing.collect::<Vec<_>>() {
            if let Err(error) = closed.await {
                tracing::error!(%error, "closing a conversation failed");
            }
        }
    }

    /// Ends a tenure, once it is far enough for that.
    async fn close(&self, key: &ConversationKey, tenure: Tenure) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let open = match self.lock().of(key, tenure) {
                None => return,
                Some(State::Open(open)) => Some(open.clone()),
                Some(_) => None,
            };
            if let Some(open) = open {
                close(&open).await;
            }
            next(&mut changed).await;
        }
    }

    fn begin(
        self: &Arc<Self>,
        key: &ConversationKey,
        how: Beginning,
    ) -> Result<Claim, Option<Conversation>> {
        match self.lock().begin(key, how) {
            Found::Nobody(tenure) => {
                Ok(Claim { owners: Arc::downgrade(self), key: key.clone(), tenure })
            }
            Found::Open(open) => Err(Some(open)),
            Found::Busy => Err(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, States<ConversationKey, Conversation>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

impl Claim {
    /// Whose it is.
    pub(crate) fn key(&self) -> &ConversationKey {
        &self.key
    }

    /// The conversation has an owner, who speaks through this handle and keeps the claim.
    pub(crate) fn opened(&self, conversation: Conversation) {
        self.change(|states| states.opened(&self.key, self.tenure, conversation));
    }

    /// The owner is ending and takes no more commands.
    pub(crate) fn closing(&self) {
        self.change(|states| states.closing(&self.key, self.tenure));
    }

    fn change(&self, change: impl FnOnce(&mut States<ConversationKey, Conversation>) -> bool) {
        // Without a hub nobody asks any more.
        let Some(owners) = self.owners.upgrade() else { return };
        if change(&mut owners.lock()) {
            owners.tell();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.change(|states| states.ended(&self.key, self.tenure));
    }
}

/// The sender lives as long as the table, so this always comes.
async fn next(changed: &mut watch::Receiver<u64>) {
    if changed.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn close(conversation: &Conversation) {
    match conversation.close().await {
        // Closed by itself, or by somebody else, in the meantime.
        Ok(()) | Err(Error::Closed) => {}
        Err(error) => tracing::warn!(%error, "a conversation did not close cleanly"),
    }
}
