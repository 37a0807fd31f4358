//! What the client asks for.

use tieline_event::{Answer, Origin, Prompt, RequestId, TurnOptions};
use tieline_hub::OpenOptions;
use tieline_wire::sqeq::{AbortReason, ConversationPath, EventMsg};

use super::super::Compat;
use super::super::order::{Context, Incoming, Order, Say, Work};
use super::super::to_sqeq::rollback_failed;
use super::{Done, Session, Task};

/// The one log of input lines.
pub(super) const HISTORY_LOG: u64 = 0;

impl Session {
    pub(super) async fn obey(&mut self, Incoming { id, order }: Incoming) {
        let order = match order {
            Order::Configure(_) if self.compat() == Compat::Upstream => {
                return self.warn(&id, "unknown op \"configure_session\"");
            }
            Order::Configure(configure) => return self.configure(id, *configure).await,
            Order::Shutdown => return self.shut_down(id),
            Order::Nothing(why) => return self.warn(&id, why),
            Order::Refused(why) if self.compat() == Compat::Upstream => {
                return self.warn(&id, why);
            }
            Order::Refused(why) => return self.fail(&id, why),
            Order::Authenticate(_) => return self.warn(&id, "no token is asked for here"),
            order => order,
        };
        if self.open.is_none() {
            let first = "configure the session first: \
                         {\"id\":\"1\",\"op\":{\"type\":\"configure_session\"}}";
            return self.fail(&id, first);
        }
        if self.shutdown.is_some() {
            return self.warn(&id, "the session is being shut down");
        }
        match order {
            Order::Say(say) => self.say(id, *say),
            Order::Work(work) => self.begin_work(id, work),
            Order::Interrupt => {
                if !self.stop_tasks(AbortReason::Interrupted) {
                    self.warn(&id, "no task is running");
                }
            }
            Order::Decide { id: about, what, verdict } => {
                let open = self.open.as_mut();
                let found = open.and_then(|open| open.asked.decide(&about, what, verdict));
                self.answer(id, &about, found);
            }
            Order::Answer { id: about, answers } => {
                let open = self.open.as_mut();
                let found = open.and_then(|open| open.asked.answer(&about, answers));
                self.answer(id, &about, found);
            }
            Order::Override(context) => {
                self.change(&id, &context);
            }
            order => self.look_up(id, order),
        }
    }

    /// What takes no task.
    fn look_up(&mut self, id: String, order: Order) {
        let Some(open) = &mut self.open else { return };
        match order {
            Order::Remember(text) => {
                let (hub, key) = (self.hub.clone(), open.key.clone());
                self.act(async move { Done::Remembered(id, hub.remember_line(&key, text).await) });
            }
            Order::Recall { offset, log_id } => {
                let hub = self.hub.clone();
                self.act(async move {
                    let line = match log_id {
                        HISTORY_LOG => hub.typed_line(offset).await,
                        _ => Ok(None),
                    };
                    Done::Recalled { id, offset, log_id, line }
                });
            }
            Order::Inquire(inquiry) => {
                let told = open.conversation.inquire(inquiry.clone());
                self.act(async move { Done::Told(id, inquiry, told.await) });
            }
            Order::Rename(title) => {
                open.mapper.is_named_by(&id);
                let renamed = open.conversation.rename(title);
                self.act(async move { Done::Set(id, renamed.await) });
            }
            Order::Path => {
                let path = ConversationPath {
                    conversation_id: open.key.as_str().to_owned().into(),
                    path: self.hub.store().dir().display().to_string().into(),
                };
                self.out.tell(&id, EventMsg::ConversationPath(path));
            }
            _ => {}
        }
    }

    fn shut_down(&mut self, id: String) {
        self.shutdown.get_or_insert(id);
        self.mark(AbortReason::Interrupted);
        if let Some(open) = &self.open {
            let closed = open.conversation.close();
            self.act(async move { Done::Closed(closed.await) });
        }
    }

    /// Takes a change of the context over; `false` when it cannot be.
    fn change(&mut self, id: &str, context: &Context) -> bool {
        if !self.is_place(id, context) {
            return false;
        }
        let Some(open) = &mut self.open else { return false };
        let options = open.standing.change(context);
        open.mapper.plans = open.standing.plans;
        if has_effect(&options) {
            let (id, set) = (id.to_owned(), open.conversation.configure(options));
            self.act(async move { Done::Set(id, set.await.map(|_| ())) });
        }
        true
    }

    fn say(&mut self, id: String, say: Say) {
        let is_busy = self.open.as_ref().is_some_and(|open| !open.tasks.is_empty());
        let steers = is_busy && self.compat() == Compat::Upstream;
        if !self.is_place(&id, &say.context) {
            return;
        }
        if is_busy && !steers {
            self.stop_tasks(AbortReason::Replaced);
        }
        self.change(&id, &say.context);
        let Some(open) = &mut self.open else { return };
        let prompt = Prompt {
            content: say.content,
            options: TurnOptions {
                after: say.after,
                output_schema: say.schema,
                personality: open.standing.personality.take(),
                summary: open.standing.summary.take(),
            },
            ..Prompt::default()
        };
        self.begin(id, None, prompt, steers);
    }

    fn begin_work(&mut self, id: String, work: Work) {
        let is_busy = self.open.as_ref().is_some_and(|open| !open.tasks.is_empty());
        if is_busy {
            if let Work::Rollback(_) = work {
                let why = "a task is running; interrupt it first".to_owned();
                return self.out.tell(&id, rollback_failed(why));
            }
            self.stop_tasks(AbortReason::Replaced);
        }
        let prompt = Prompt::errand(work.errand());
        self.begin(id, Some(work), prompt, false);
    }

    /// Begins a task, or adds to the running one.
    fn begin(&mut self, sub: String, work: Option<Work>, prompt: Prompt, steers: bool) {
        self.n_tasks += 1;
        let Some(open) = &mut self.open else { return };
        let key = format!("sqeq:{}:{}:{}", open.key, self.began, self.n_tasks);
        let idempotency_key = Some(key.clone());
        let prompt = Prompt { origin: Origin::Client, idempotency_key, ..prompt };
        open.tasks.push_back(Task { sub, key: key.clone(), turn: None, work, abort: None });
        if steers {
            let steered = open.conversation.steer_or_queue(prompt);
            self.act(async move { Done::Steered(key, steered.await) });
        } else {
            let started = open.conversation.start_turn(prompt);
            self.act(async move { Done::Started(key, started.await) });
        }
    }

    /// Notes why the tasks there are will end; whether there are any.
    fn mark(&mut self, reason: AbortReason) -> bool {
        let Some(open) = &mut self.open else { return false };
        for task in &mut open.tasks {
            task.abort.get_or_insert(reason.clone());
            if let Some(turn) = &task.turn {
                open.mapper.aborts(turn, reason.clone());
            }
        }
        !open.tasks.is_empty()
    }

    /// Stops what runs and what waits; whether there was something.
    pub(super) fn stop_tasks(&mut self, reason: AbortReason) -> bool {
        if !self.mark(reason) {
            return false;
        }
        let Some(open) = &self.open else { return false };
        let cancelled = open.conversation.cancel();
        self.act(async move { Done::Cancelled(cancelled.await) });
        true
    }

    fn answer(&mut self, id: String, about: &str, found: Option<(RequestId, Answer)>) {
        let (Some((request, answer)), Some(open)) = (found, &self.open) else {
            return self.warn(&id, format!("no request waits for an answer to {about:?}"));
        };
        let answered = open.conversation.answer(&request, answer, Origin::Client, None);
        self.act(async move { Done::Answered(Some(id), answered.await) });
    }
}

fn has_effect(options: &OpenOptions) -> bool {
    let OpenOptions { agent, workspace, mode, policy, model, effort, extras } = options;
    agent.is_some()
        || workspace.is_some()
        || mode.is_some()
        || policy.is_some()
        || model.is_some()
        || effort.is_some()
        || extras.is_some()
}
