//! What the parts of one connection have in common.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tieline_event::ConversationKey;
use tieline_hub::Hub;
use tieline_wire::jsonrpc::write::{self, Form};
use tieline_wire::jsonrpc::{Calls, Id};
use tokio::sync::mpsc;

use super::Options;
use super::client::Client;
use super::from_acp::Refusal;
use super::known::Known;
use super::session::Message;
use crate::outbox::Outbox;

/// What the parts of one connection have in common. No lock is held across a wait.
pub(super) struct Shared {
    pub(super) hub: Hub,
    pub(super) options: Options,
    pub(super) outbox: Outbox,
    client: Mutex<Client>,
    /// What we asked the client, and who waits for the answer.
    calls: Mutex<Calls<mpsc::Sender<Message>>>,
    /// Open sessions.
    sessions: Mutex<HashMap<ConversationKey, mpsc::Sender<Message>>>,
    /// Prompts that wait for their end, and in which session.
    prompts: Mutex<HashMap<Id, mpsc::Sender<Message>>>,
    /// What each agent could do when it last told.
    pub(super) known: Known,
    n_prompts: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(hub: Hub, options: Options, outbox: Outbox) -> Self {
        let known = Known::in_file(options.known.clone());
        Self {
            hub,
            options,
            outbox,
            client: Mutex::default(),
            calls: Mutex::default(),
            sessions: Mutex::default(),
            prompts: Mutex::default(),
            known,
            n_prompts: AtomicU64::new(1),
        }
    }

    pub(super) fn client(&self) -> Client {
        *lock(&self.client)
    }

    pub(super) fn introduce(&self, client: Client) {
        *lock(&self.client) = client;
    }

    pub(super) fn send(&self, mut line: Vec<u8>) {
        self.outbox.push(&mut line);
    }

    pub(super) fn answer(&self, id: &Id, result: &impl Serialize) {
        self.send(write::response(Form::Versioned, id, result));
    }

    pub(super) fn refuse(&self, id: &Id, refusal: &Refusal) {
        let Refusal { code, message, data } = refusal;
        let refusal = write::Refusal { code: *code, message, data: data.as_ref() };
        self.send(write::refusal(Form::Versioned, id, refusal));
    }

    /// Asks the client. The line goes to `page`, so that it comes after what was written there.
    pub(super) fn ask(
        &self,
        method: &str,
        params: &impl Serialize,
        asker: mpsc::Sender<Message>,
        page: &mut Vec<u8>,
    ) -> i64 {
        let id = lock(&self.calls).open(asker);
        page.extend(write::request(Form::Versioned, &Id::Number(id), method, params));
        id
    }

    /// Who waits for an answer of the client; none when it is late or about nothing.
    pub(super) fn asker(&self, id: &Id) -> Option<mpsc::Sender<Message>> {
        lock(&self.calls).close(id)
    }

    /// The answer to what we asked is not needed any more.
    pub(super) fn withdraw(&self, id: i64, page: &mut Vec<u8>) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancel {
            request_id: i64,
        }
        if lock(&self.calls).close(&Id::Number(id)).is_some() {
            let cancel = Cancel { request_id: id };
            page.extend(write::notification(Form::Versioned, "$/cancel_request", Some(&cancel)));
        }
    }

    pub(super) fn session(&self, key: &ConversationKey) -> Option<mpsc::Sender<Message>> {
        lock(&self.sessions).get(key).cloned()
    }

    /// Makes a session known, unless there is one already, which is given.
    pub(super) fn open(
        &self,
        key: &ConversationKey,
        inbox: &mpsc::Sender<Message>,
    ) -> Option<mpsc::Sender<Message>> {
        let mut sessions = lock(&self.sessions);
        let open = sessions.get(key).filter(|open| !open.is_closed()).cloned();
        if open.is_none() {
            sessions.insert(key.clone(), inbox.clone());
        }
        open
    }

    /// A name for a prompt that no other one has.
    pub(super) fn next_prompt_key(&self) -> String {
        let n = self.n_prompts.fetch_add(1, Ordering::Relaxed);
        format!("acp:{}:{n}", self.options.nonce)
    }

    /// A session is over.
    pub(super) fn close(&self, key: &ConversationKey, inbox: &mpsc::Sender<Message>) {
        let mut sessions = lock(&self.sessions);
        if sessions.get(key).is_some_and(|known| known.same_channel(inbox)) {
            sessions.remove(key);
        }
    }

    pub(super) fn note_prompt(&self, id: Id, session: mpsc::Sender<Message>) {
        lock(&self.prompts).insert(id, session);
    }

    pub(super) fn forget_prompt(&self, id: &Id) {
        lock(&self.prompts).remove(id);
    }

    pub(super) fn session_of_prompt(&self, id: &Id) -> Option<mpsc::Sender<Message>> {
        lock(&self.prompts).get(id).cloned()
    }
}
