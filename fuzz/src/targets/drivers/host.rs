//! What the host of an agent does, as the hub would: nothing that it refuses by itself.

use std::collections::BTreeMap;

use tieline_agent::{Chore, ChoreNews};
use tieline_event::{Answer, Mode, Origin, Prompt, RequestId, Scope};

use super::scene::{Scene, Stdin};

impl Scene {
    /// Does what a line after its `!` says; an unknown word is nothing.
    pub(super) fn act(&mut self, word: &[u8]) {
        match word {
            b"turn" => self.turn(),
            b"interrupt" if self.session.ledger().current_turn().is_some() => {
                self.session.interrupt();
            }
            b"allow" => self.answer(|_| Answer::allow()),
            b"allow-session" => {
                self.answer(|_| Answer::Allow { scope: Scope::Session, input: None, mode: None })
            }
            b"deny" => self.answer(|_| Answer::deny("no")),
            b"stop" => self.answer(|_| Answer::Deny { message: None, stop: true }),
            b"answers" => self.answer(|question| Answer::Answers {
                answers: BTreeMap::from([(question.to_owned(), vec!["yes".to_owned()])]),
            }),
            b"choose" => self.answer(|option| Answer::Choose { option: option.to_owned() }),
            b"chore" => self.chore(),
            b"wake" if !self.alarms.is_empty() => {
                let alarm = self.alarms.remove(0);
                self.session.wake(alarm);
            }
            b"mode" => drop(self.session.set_mode(Mode::Plan, None)),
            b"model" => drop(self.session.set_model(Some("m"))),
            b"effort" => drop(self.session.set_effort(Some("high"))),
            b"leave" => self.session.leaving(),
            _ => {}
        }
    }

    fn turn(&mut self) {
        let prompt = Prompt::text("do it");
        if self.session.ledger().current_turn().is_some() {
            // An agent may take no message now; that is its word.
            self.session.steer(&prompt).ok();
        } else if self.stdin == Stdin::Json || self.turns.is_empty() {
            self.session.start_turn(&prompt);
        }
    }

    /// Answers the oldest request. The first name in it is as good as any.
    fn answer(&mut self, answer: impl FnOnce(&str) -> Answer) {
        let Some(request) = self.session.ledger().open_requests().next().cloned() else { return };
        let name = self.name_in(&request);
        // It may be gone on the wire already.
        self.session.answer(&request, &answer(&name), Origin::Human, None).ok();
    }

    fn name_in(&self, request: &RequestId) -> String {
        self.names.get(request).cloned().unwrap_or_default()
    }

    /// Something comes of the oldest chore.
    fn chore(&mut self) {
        if self.chores.is_empty() {
            return;
        }
        let (id, chore) = self.chores.remove(0);
        let news = match chore {
            Chore::ReadText { .. } => ChoreNews::Text("text\n".to_owned()),
            Chore::WriteText { .. } => ChoreNews::Written,
            Chore::Run { .. } => {
                self.session.chore_news(id, ChoreNews::Printed(b"out \xff put".to_vec()));
                ChoreNews::Ended { code: Some(0), signal: None }
            }
            Chore::Kill(_) => return,
        };
        self.session.chore_news(id, news);
    }
}
