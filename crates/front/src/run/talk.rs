//! Who answers the agent: the person, in a dialogue, or a rule.

use tieline_event::{Answer, BlobRef, Origin, Request, RequestBody, RequestId};

use super::ask::{self, Dialogue, Input, Screen, Step};
use super::conduct::{Phase, Run};
use super::tty::Listener;
use super::{Format, OnRequest};
use crate::review::{Review, Room, review};

/// A dialogue and the ear for it.
pub(super) struct Talk {
    pub(super) dialogue: Dialogue,
    input: Input,
    listener: Listener,
}

/// What a person did.
pub(super) enum Heard {
    Key(char),
    Line(String),
    Nothing,
}

/// Waits for the person, for ever when nobody is asked.
pub(super) async fn hear(talk: &mut Option<Talk>) -> Heard {
    match talk {
        None => std::future::pending().await,
        Some(Talk { input: Input::Key, listener, .. }) => {
            listener.key().await.map_or(Heard::Nothing, Heard::Key)
        }
        Some(Talk { listener, .. }) => listener.line().await.map_or(Heard::Nothing, Heard::Line),
    }
}

impl Run<'_> {
    pub(super) fn requested(&mut self, request: &Request) {
        let policy = Some(self.options.policy.clone());
        match &self.options.on_request {
            OnRequest::Ask(_) => self.open.push_back(request.clone()),
            OnRequest::Deny => {
                let answer = Answer::deny(format!(
                    "nobody is there to answer, so the rule {} says no",
                    self.options.policy
                ));
                self.answer(request.id.clone(), answer, Origin::Engine, policy);
            }
            OnRequest::Allow => {
                let answer = match &request.body {
                    RequestBody::Approval(_) | RequestBody::ExitPlan { .. } => Answer::allow(),
                    // A yes is no answer to a question, and a made-up one would be a lie.
                    RequestBody::Question { .. } => Answer::deny(
                        "nobody is there to answer; decide yourself and say what you assumed",
                    ),
                };
                self.answer(request.id.clone(), answer, Origin::Engine, policy);
            }
            OnRequest::Fail => {
                self.needs_answer = true;
                if self.options.format != Format::Text {
                    let width = self.options.look.width;
                    let shown = self.review(request).rows(&Room::boundless(width));
                    self.face.rows(&shown.rows);
                }
                self.interrupt();
            }
        }
    }

    /// A request needs no answer any more.
    pub(super) fn settled(&mut self, request: &RequestId) {
        self.open.retain(|open| open.id != *request);
        if self.talk.as_ref().is_some_and(|talk| talk.dialogue.request().id == *request) {
            self.drop_talk();
        }
    }

    pub(super) fn drop_talk(&mut self) {
        if self.talk.take().is_some() {
            if std::mem::take(&mut self.is_prompted) {
                self.face.say("\n", self.options.look);
            }
            self.face.set_asking(false);
        }
    }

    /// Begins the next dialogue, when there is one to begin.
    pub(super) fn talk(&mut self) {
        if self.talk.is_some() {
            return;
        }
        self.release();
        if self.phase != Phase::Running {
            return;
        }
        let Some(request) = self.open.pop_front() else { return };
        self.face.set_asking(true);
        let review = self.review(&request);
        let dialogue = Dialogue::new(request, &review, self.screen());
        self.face.rows(dialogue.opening());
        let prompt = dialogue.prompt();
        self.prompt(dialogue, prompt);
    }

    fn review(&self, request: &Request) -> Review {
        let store = self.hub.store();
        let mut fetch = |blob: &BlobRef| store.blob(&blob.sha256).ok().flatten();
        review(request, self.workspace.as_deref(), &mut fetch)
    }

    fn screen(&self) -> Screen {
        let size = match &self.options.on_request {
            OnRequest::Ask(tty) => tty.size(),
            _ => None,
        };
        match size {
            Some((width, height)) => Screen { width, height: Some(height) },
            None => Screen { width: self.options.look.width, height: None },
        }
    }

    pub(super) fn prompt(&mut self, dialogue: Dialogue, prompt: ask::Prompt) {
        let OnRequest::Ask(tty) = &self.options.on_request else { return };
        match tty.listen(prompt.input) {
            Ok(listener) => {
                self.face.say(&prompt.text, self.options.look);
                self.is_prompted = true;
                self.talk = Some(Talk { dialogue, input: prompt.input, listener });
            }
            Err(err) => {
                self.face.note(&format!("! the terminal cannot be read: {err}"));
                self.needs_answer = true;
                self.interrupt();
            }
        }
    }

    pub(super) fn heard(&mut self, heard: Heard) {
        let Some(Talk { mut dialogue, listener, input }) = self.talk.take() else { return };
        drop(listener);
        self.is_prompted = false;
        let step = match heard {
            Heard::Key(key) => {
                self.face.say(&format!("{key}\n"), self.options.look);
                dialogue.key(key)
            }
            Heard::Line(line) => {
                if input == Input::Secret {
                    self.face.say("\n", self.options.look);
                }
                dialogue.line(&line)
            }
            Heard::Nothing => {
                self.face.note("no more input: the turn is stopped");
                self.needs_answer = true;
                self.interrupt();
                return;
            }
        };
        match step {
            Step::Ask(prompt) => self.prompt(dialogue, prompt),
            Step::Done(answer) => {
                self.face.set_asking(false);
                let request = dialogue.request().id.clone();
                self.answer(request, answer, Origin::Human, None);
            }
        }
    }
}
