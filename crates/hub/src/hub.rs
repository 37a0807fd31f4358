//! All conversations of a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tieline_agent::{Agent, Launch, Resume};
use tieline_event::{ConversationKey, Extras, Failure, FailureCode};
use tieline_store::{Filter, Fork, NewConversation, Store, TypedLine};
use tokio::runtime::Handle;

use crate::actor::Actor;
use crate::conversation::{Conversation, Notification, OpenOptions};
use crate::error::Error;
use crate::limits::Limits;
use crate::owners::{Claim, Entered, Owners};
use crate::shared::Servers;

/// Knows the agents by name.
pub trait Registry: Send + Sync {
    /// The agent of this name for a workspace.
    ///
    /// # Errors
    /// A [`Failure`] that says what to do: unknown, not installed, …
    fn agent(&self, name: &str, workspace: &Path) -> Result<Arc<dyn Agent>, Failure>;
}

/// A conversation in a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its key.
    pub key: ConversationKey,
    /// Where its agent works.
    pub workspace: PathBuf,
    /// A line about it.
    pub title: Option<String>,
    /// When something last happened in it, as ISO 8601.
    pub updated: String,
}

/// All conversations of a process. Clones share them.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    registry: Arc<dyn Registry>,
    limits: Limits,
    servers: Arc<Servers>,
    owners: Arc<Owners>,
}

impl Hub {
    /// A hub on a store.
    pub fn new(store: Store, registry: Arc<dyn Registry>, limits: Limits) -> Self {
        let (servers, owners) = (Arc::default(), Arc::default());
        Self { inner: Arc::new(Inner { store, registry, limits, servers, owners }) }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Does work with the store on a thread that may wait for the disk.
    ///
    /// # Errors
    /// What the store says.
    pub async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, tieline_store::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.inner.store.clone();
        Ok(tokio::task::spawn_blocking(move || work(&store)).await.map_err(|_| Error::Closed)??)
    }

    /// Opens a conversation, or gives the open one and changes what the options say.
    ///
    /// # Errors
    /// When another process holds it, when it belongs to another agent, when a new one lacks agent
    /// or workspace, or when the store fails.
    pub async fn conversation(
        &self,
        key: &ConversationKey,
        options: OpenOptions,
    ) -> Result<Conversation, Error> {
        loop {
            let conversation = match self.inner.owners.enter(key).await {
                Entered::Open(conversation) => conversation,
                Entered::Vacant(claim) => return self.open(claim, options).await,
            };
            same_agent(key, &conversation.agent, &options)?;
            match conversation.configure(options.clone()).await {
                Ok(_) => return Ok(conversation),
                // It was closed in the meantime: the next owner begins where this one ends.
                Err(Error::Closed) => tokio::task::yield_now().await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the lease and starts the owner, which goes on when the caller does not wait for it.
    async fn open(&self, claim: Claim, options: OpenOptions) -> Result<Conversation, Error> {
        let (inner, runtime) = (Arc::clone(&self.inner), Handle::current());
        let open = move || inner.open(claim, &options, &runtime);
        tokio::task::spawn_blocking(open).await.map_err(|_| Error::Closed)?
    }

    /// Forgets the native session of a conversation: its next turn begins afresh, the history
    /// stays.
    ///
    /// # Errors
    /// When there is no such conversation or another process holds it.
    pub async fn start_new_session(&self, key: &ConversationKey) -> Result<(), Error> {
        loop {
            match self.conversation(key, OpenOptions::default()).await?.reset().await {
                // It was closed in the meantime.
                Err(Error::Closed) => tokio::task::yield_now().await,
                result => return result,
            }
        }
    }

    /// Makes a conversation that branches off from another one: same agent, workspace, mode and
    /// model; its first turn begins a native session with the other's memory as it is now. The other
    /// one may go on or be deleted meanwhile.
    ///
    /// # Errors
    /// When the other one does not exist or has no session yet, when its agent cannot fork, or when
    /// the new key is taken.
    pub async fn fork(&self, from: &ConversationKey, to: &ConversationKey) -> Result<(), Error> {
        let (inner, key) = (Arc::clone(&self.inner), from.clone());
        let read = move || inner.store.conversation(&key);
        let row = tokio::task::spawn_blocking(read).await.map_err(|_| Error::Closed)??;
        let row = row.ok_or_else(|| tieline_store::Error::NoConversation(from.clone()))?;
        let Some(session) = row.native_session.clone() else {
            return Err(Error::Refused(format!("conversation {from} has no session to fork yet")));
        };
        let workspace = Path::new(&row.workspace);
        let agent = self.inner.registry.agent(&row.agent, workspace).map_err(Error::Agent)?;
        // An agent that cannot branch off says so now, not when the new conversation begins.
        let launch = Launch {
            workspace,
            mode: row.mode,
            policy: row.policy,
            model: row.model.as_deref(),
            effort: row.effort.as_deref(),
            extras: Extras::NONE,
            pictures: &[],
            resume: Some(Resume { session: &session, fork: true, at: None }),
        };
        let plan = agent.launch(launch).await.map_err(|failure| match failure.code {
            FailureCode::BadRequest => Error::Refused(failure.to_string()),
            _ => Error::Agent(failure),
        })?;
        // An agent within this process has its memory in the store; others keep their own.
        let copies_journal = plan.inside.is_some();
        let claim = self.inner.owners.reserve(to).await;
        let claim = claim.map_err(|_| exists_already(to))?;
        let (inner, from) = (Arc::clone(&self.inner), from.clone());
        let fork = move || inner.fork(row, Fork { session, from, copies_journal }, claim.key());
        tokio::task::spawn_blocking(fork).await.map_err(|_| Error::Closed)?
    }

    /// Conversations that have had a turn, the most recently active first; those of a workspace where
    /// one is named. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(
        &self,
        workspace: Option<&Path>,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Listed>, Error> {
        let workspace = workspace.map(|it| it.display().to_string());
        let filter = Filter { workspace, begun: true, offset, limit, ..Filter::default() };
        let listed = |row: tieline_store::Conversation| Listed {
            key: row.key,
            workspace: row.workspace.into(),
            title: row.title,
            updated: row.updated.to_string(),
        };
        Ok(self.inner.store.conversations(&filter)?.into_iter().map(listed).collect())
    }

    /// Deletes a conversation with its whole history; one that is open is closed first.
    ///
    /// # Errors
    /// When another process holds it, or the store fails.
    pub async fn delete(&self, key: &ConversationKey) -> Result<(), Error> {
        let claim = self.inner.owners.reserve_closed(key).await;
        let inner = Arc::clone(&self.inner);
        let delete = move || inner.store.delete(claim.key());
        tokio::task::spawn_blocking(delete).await.map_err(|_| Error::Closed)??;
        Ok(())
    }

    /// Tells every open conversation what an agent's notify program said; the one whose session it
    /// is takes it. One that names no session counts where there is a single conversation.
    pub async fn notified(&self, notification: &Notification) {
        let open = self.inner.owners.open();
        if notification.session.is_none() && open.len() > 1 {
            tracing::warn!("a notification names no session, and several are open");
            return;
        }
        for conversation in open {
            // One that has just closed needs no news.
            if conversation.notified(notification.clone()).await.is_err() {
                tracing::debug!(conversation = %conversation.key(), "closed before the news");
            }
        }
    }

    /// Remembers a line that a user typed for a conversation.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn remember_line(&self, key: &ConversationKey, text: String) -> Result<(), Error> {
        let key = key.clone();
        self.with_store(move |store| store.remember_line(&key, text)).await
    }

    /// How many lines users have typed.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn n_typed_lines(&self) -> Result<u64, Error> {
        self.with_store(Store::n_typed_lines).await
    }

    /// A line that a user typed, by its place from 0 on.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn typed_line(&self, offset: u64) -> Result<Option<TypedLine>, Error> {
        self.with_store(move |store| store.typed_line(offset)).await
    }

    /// Closes every conversation: all agents end, with everything they started.
    pub async fn close_all(&self) {
        self.inner.owners.close_all().await;
    }
}

impl Inner {
    fn fork(
        &self,
        row: tieline_store::Conversation,
        fork: Fork,
        to: &ConversationKey,
    ) -> Result<(), Error> {
        if self.store.conversation(to)?.is_some() {
            return Err(exists_already(to));
        }
        let new = NewConversation {
            agent: row.agent,
            workspace: row.workspace,
            mode: row.mode,
            policy: row.policy,
            model: row.model,
            effort: row.effort,
            fork: Some(fork),
        };
        let lease = self.store.acquire(to, new)?;
        Ok(self.store.release(lease)?)
    }

    fn open(
        &self,
        claim: Claim,
        options: &OpenOptions,
        runtime: &Handle,
    ) -> Result<Conversation, Error> {
        let key = claim.key();
        let new = match self.store.conversation(key)? {
            Some(row) => {
                same_agent(key, &row.agent, options)?;
                NewConversation::default()
            }
            None => {
                let (Some(agent), Some(workspace)) = (&options.agent, &options.workspace) else {
                    return Err(Error::Incomplete(key.clone()));
                };
                NewConversation {
                    agent: agent.clone(),
                    workspace: workspace.display().to_string(),
                    mode: options.mode.unwrap_or_default(),
                    policy: options.policy,
                    model: options.model.clone(),
                    effort: options.effort.clone(),
                    fork: None,
                }
            }
        };
        let lease = self.store.acquire(key, new)?;
        let (conversation, actor) = Actor::new(
            self.store.clone(),
            Arc::clone(&self.registry),
            Arc::clone(&self.servers),
            self.limits.clone(),
            lease,
            options,
        )?;
        claim.opened(conversation.clone());
        runtime.spawn(actor.run(claim));
        Ok(conversation)
    }
}

fn exists_already(key: &ConversationKey) -> Error {
    Error::Refused(format!("conversation {key} exists already"))
}

fn same_agent(key: &ConversationKey, has: &str, options: &OpenOptions) -> Result<(), Error> {
    match &options.agent {
        Some(wants) if wants != has => {
            Err(Error::OtherAgent { key: key.clone(), has: has.to_owned(), wants: wants.clone() })
        }
        _ => Ok(()),
    }
}
