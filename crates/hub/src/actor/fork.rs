//! Where a conversation that branches off begins.

use tieline_event::{ConversationKey, Failure, FailureCode};
use tieline_store::{ForkedAt, Store};

use super::Actor;

/// What a conversation knows of the place it branches off from.
pub(super) struct Place {
    store: Store,
    key: ConversationKey,
    from: ConversationKey,
    at: ForkedAt,
    session: Option<String>,
    position: Option<String>,
}

impl Actor {
    /// Where the next process branches off, if it does.
    pub(super) fn fork_place(&self, session: Option<&str>) -> Option<Place> {
        let (at, position) = self.forked_at.clone().filter(|_| self.forks)?;
        Some(Place {
            store: self.store.clone(),
            key: self.key.clone(),
            from: self.forked_from.clone()?,
            at,
            session: session.map(str::to_owned),
            position,
        })
    }
}

impl Place {
    /// The agent's name for it; none where that is the end of its session.
    pub(super) async fn position(self) -> Result<Option<String>, Failure> {
        let Self { store, key, from, at, session, position } = self;
        let other = from.clone();
        let read = tokio::task::spawn_blocking(move || store.conversation(&other)).await;
        let unread = |error: &dyn std::fmt::Display| {
            let text = format!("conversation {from} cannot be read: {error}");
            Failure::new(FailureCode::Store, text)
        };
        let other = read.map_err(|error| unread(&error))?.map_err(|error| unread(&error))?;
        // One that is gone may have gone on before.
        let Some(other) = other else { return Ok(position) };
        if other.n_events() == at.seq.0 {
            return Ok(None);
        }
        let has_gone_on = other.native_session == session && other.n_turns() > at.turn;
        if position.is_none() && has_gone_on {
            let text = format!(
                "conversation {from} went on after {key} branched off, and its agent has no name for \
                 that place",
            );
            return Err(Failure::new(FailureCode::BadRequest, text)
                .hint(format!("fork {from} again as it is now, or begin anew with --fresh")));
        }
        Ok(position)
    }
}
