//! How a session is configured, and what the client is told of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tieline_event::{ConversationKey, Kind, Mode, Policy, Seq};
use tieline_hub::{Conversation, Entry, Error, Hub, OpenOptions};
use tieline_wire::raw::Raw;
use tieline_wire::sqeq::{AbortReason, Effort, EventMsg, SessionConfigured};
use tieline_wire::text::Str;
use tokio::time::Instant;

use super::super::Compat;
use super::super::ask::Asked;
use super::super::context::Standing;
use super::super::order::{Configure, Context};
use super::super::to_sqeq::{Mapper, aborted};
use super::news::fetching;
use super::orders::HISTORY_LOG;
use super::{Done, INTRODUCTION, Open, Session};

/// How long a client waits for the end of what ran before, at most.
const FAREWELL: Duration = Duration::from_secs(10);

/// The most of the history that a client is given.
const HISTORY: usize = 4 * 1024 * 1024;

impl Session {
    /// Configures the session, or does it again: then whatever runs is stopped.
    pub(super) async fn configure(&mut self, id: String, configure: Configure) {
        let Configure { context, resume, left_out } = configure;
        if !self.is_place(&id, &context) {
            return;
        }
        let is_same = |open: &Open| resume.as_ref().is_none_or(|key| *key == *open.key.as_str());
        if self.open.as_ref().is_some_and(is_same) {
            self.tell_left_out(&id, &left_out);
            return self.reconfigure(id, &context);
        }
        self.leave().await;
        match self.open_conversation(&context, resume).await {
            Ok(open) => {
                let woken = open.model.is_none().then(|| open.conversation.wake());
                self.open = Some(open);
                self.tell_left_out(&id, &left_out);
                self.opening = Some((id, Instant::now() + INTRODUCTION));
                match woken {
                    // The agent says which it has.
                    Some(woken) => self.act(async move { Done::Woken(woken.await) }),
                    None => self.announce(),
                }
            }
            Err(why) => {
                self.fail(&id, why);
                // There a session is configured once.
                self.is_over |= self.compat() == Compat::Upstream;
            }
        }
    }

    fn reconfigure(&mut self, id: String, context: &Context) {
        let stops = self.stop_tasks(AbortReason::Interrupted);
        let Some(open) = &mut self.open else { return };
        let options = open.standing.change(context);
        open.mapper.plans = open.standing.plans;
        open.model = context.model.clone().or(open.model.take());
        open.effort = context.effort.clone().or(open.effort.take());
        if let Some(cwd) = &context.cwd {
            open.cwd = cwd.display().to_string();
        }
        let (sub, set) = (id.clone(), open.conversation.configure(options));
        self.act(async move { Done::Set(sub, set.await.map(|_| ())) });
        self.opening = Some((id, Instant::now() + FAREWELL));
        // What ran is told to its end first.
        match stops {
            true => self.is_leaving = true,
            false => self.announce(),
        }
    }

    /// Everything that ran before the session was configured anew has ended.
    pub(super) fn left_old_tasks(&mut self) {
        let is_over = self.open.as_ref().is_none_or(|open| open.tasks.is_empty());
        if self.is_leaving && is_over {
            self.announce();
        }
    }

    /// Whether a directory, where one is named, is one.
    pub(super) fn is_place(&mut self, id: &str, context: &Context) -> bool {
        match &context.cwd {
            Some(cwd) if !(cwd.is_absolute() && cwd.is_dir()) => {
                self.fail(id, format!("cwd {} is no absolute directory", cwd.display()));
                false
            }
            _ => true,
        }
    }

    fn tell_left_out(&mut self, id: &str, left_out: &[&str]) {
        if !left_out.is_empty() {
            let fields = left_out.join(", ");
            self.warn(id, format!("configure_session: no effect here has {fields}"));
        }
    }

    /// Another session is wanted: the one there is ends.
    async fn leave(&mut self) {
        let Some(open) = self.open.take() else { return };
        for task in open.tasks {
            for msg in aborted(self.options.compat, AbortReason::Interrupted) {
                self.out.tell(&task.sub, msg);
            }
        }
        self.acts.abort_all();
        if let Err(error) = open.conversation.close().await {
            tracing::debug!(%error, "closing a session");
        }
    }

    async fn open_conversation(
        &mut self,
        context: &Context,
        resume: Option<String>,
    ) -> Result<Open, String> {
        let text = |error: Error| error.to_string();
        let is_new = resume.is_none();
        let key = match resume {
            Some(key) => ConversationKey::new(&key).map_err(|err| err.to_string())?,
            None => (self.options.new_key)(),
        };
        let mode = self.options.mode.unwrap_or_default();
        let (mut standing, agent) = match row(&self.hub, &key).await? {
            Some(row) => (Standing::of(row.mode, row.policy), None),
            None if is_new => {
                let cwd = context.cwd.clone().unwrap_or_else(|| self.options.workspace.clone());
                let choose = Arc::clone(&self.options.choose);
                let chosen = tokio::task::spawn_blocking(move || choose(&cwd)).await;
                let chosen = chosen.map_err(|_| "no agent could be chosen".to_owned())?;
                (Standing::of(mode, None), Some(chosen.map_err(|failure| failure.to_string())?))
            }
            None => {
                return Err(format!(
                    "there is no conversation {key} to resume; `tieline list` shows them"
                ));
            }
        };
        let mut options = standing.change(context);
        if is_new {
            options = OpenOptions {
                agent,
                workspace: options.workspace.or_else(|| Some(self.options.workspace.clone())),
                mode: options.mode.or(Some(mode)),
                model: options.model.or_else(|| self.options.model.clone()),
                ..options
            };
        }
        let conversation = self.hub.conversation(&key, options).await.map_err(text)?;
        let row = row(&self.hub, &key).await?.ok_or("the conversation is gone")?;
        let lived = conversation.last_seq();
        let history = match is_new {
            true => None,
            false => Some(self.history(&conversation, lived, &row.workspace).await.map_err(text)?),
        };
        let mut mapper = Mapper::new(self.compat(), key.as_str(), &row.workspace);
        mapper.plans = standing.plans;
        mapper.is_called(row.title.clone());
        Ok(Open {
            key,
            subscription: conversation.subscribe(lived),
            conversation,
            mapper,
            standing,
            asked: Asked::default(),
            tasks: VecDeque::new(),
            entries: VecDeque::new(),
            model: row.model,
            effort: row.effort,
            title: row.title,
            cwd: row.workspace,
            history,
            is_closed: false,
        })
    }

    /// What was said before, as far as it fits: the end of it.
    async fn history(
        &self,
        conversation: &Conversation,
        until: Seq,
        workspace: &str,
    ) -> Result<Vec<EventMsg<'static>>, Error> {
        let mut mapper = Mapper::new(self.compat(), conversation.key().as_str(), workspace);
        mapper.replays();
        let mut subscription = conversation.subscribe(Seq(0));
        let mut kept: VecDeque<(usize, EventMsg<'static>)> = VecDeque::new();
        let mut n_bytes = 0;
        while subscription.cursor() < until {
            let entries = subscription.next().await?;
            if entries.is_empty() {
                break;
            }
            let mut told = Vec::new();
            for entry in &entries {
                let Entry::Event(shown) = entry else { continue };
                if let (Kind::TurnStarted(_), Some(turn)) = (&shown.event.kind, &shown.event.turn) {
                    mapper.names(turn, turn.as_str(), None);
                }
                mapper.event(&shown.event, &mut fetching(&self.hub), &mut told);
            }
            for (_, msg) in told.into_iter().filter(|(_, msg)| is_history(msg)) {
                let bytes = serde_json::to_vec(&msg).map_or(0, |json| json.len());
                n_bytes += bytes;
                kept.push_back((bytes, msg));
                while n_bytes > HISTORY
                    && let Some((bytes, _)) = kept.pop_front()
                {
                    n_bytes -= bytes;
                }
            }
        }
        Ok(kept.into_iter().map(|(_, msg)| msg).collect())
    }

    /// Says that the session is configured, once.
    pub(super) fn announce(&mut self) {
        let Some((id, _)) = self.opening.take() else { return };
        self.is_leaving = false;
        let (hub, compat) = (self.hub.clone(), self.compat());
        let Some(open) = &mut self.open else { return };
        let is_seed = compat == Compat::Seed;
        let history = open.history.take();
        // Counted by the database in no time.
        let n_lines = hub.store().n_typed_lines().unwrap_or_else(|error| {
            tracing::warn!(%error, "the lines of input cannot be counted");
            0
        });
        let configured = SessionConfigured {
            session_id: open.key.as_str().to_owned().into(),
            model: open.model.clone().unwrap_or_default().into(),
            history_log_id: HISTORY_LOG,
            history_entry_count: n_lines,
            thread_name: open.title.clone().filter(|_| is_seed).map(Str::Owned),
            approval_policy: is_seed.then(|| open.standing.approval_policy()),
            sandbox_policy: is_seed.then(|| open.standing.sandbox_policy()),
            cwd: is_seed.then(|| open.cwd.clone().into()),
            reasoning_effort: open.effort.as_deref().map(Effort::from),
            initial_messages: history.and_then(|history| Raw::of(&history).ok()),
            // Old clients need one; the whole record is there.
            rollout_path: (!is_seed).then(|| hub.store().dir().display().to_string().into()),
            ..SessionConfigured::default()
        };
        self.out.tell(&id, EventMsg::SessionConfigured(Box::new(configured)));
    }
}

/// What of a history is worth telling: no beginnings, and nothing that was of the moment.
fn is_history(msg: &EventMsg<'_>) -> bool {
    !matches!(
        msg,
        EventMsg::ItemStarted(_)
            | EventMsg::ExecCommandBegin(_)
            | EventMsg::PatchApplyBegin(_)
            | EventMsg::McpToolCallBegin(_)
            | EventMsg::WebSearchBegin(_)
            | EventMsg::TurnDiff(_)
            | EventMsg::TokenCount(_)
            | EventMsg::BackgroundEvent(_)
            | EventMsg::StreamError(_)
            | EventMsg::Warning(_)
            | EventMsg::ThreadNameUpdated(_)
            | EventMsg::AgentReasoningSectionBreak(_)
    )
}

/// What is known of a conversation.
struct Row {
    mode: Mode,
    policy: Option<Policy>,
    model: Option<String>,
    effort: Option<String>,
    title: Option<String>,
    workspace: String,
}

async fn row(hub: &Hub, key: &ConversationKey) -> Result<Option<Row>, String> {
    let (store, key) = (hub.store().clone(), key.clone());
    let read = tokio::task::spawn_blocking(move || store.conversation(&key)).await;
    let row = read.map_err(|_| "the store cannot be read".to_owned())?;
    let row = row.map_err(|err| err.to_string())?;
    Ok(row.map(|row| Row {
        mode: row.mode,
        policy: row.policy,
        model: row.model,
        effort: row.effort,
        title: row.title,
        workspace: row.workspace,
    }))
}
