//! What the user chooses.

use tieline_event::{Configured, Mode, Seq};
use tieline_hub::{Error, OpenOptions};
use tieline_wire::acp::schema::{SetSessionConfigOptionResponse, SetSessionModeResponse};
use tieline_wire::jsonrpc::Id;

use super::super::from_acp::{self, Refusal};
use super::super::offer::{EFFORT, MODE, MODEL};
use super::super::outcome;
use super::{Chosen, Done, Session, Setting};

impl Session {
    pub(super) fn set_setting(&mut self, id: Id, name: &str, value: String) {
        let offer = &self.mapper.offer;
        match name {
            MODE => match from_acp::mode(&value) {
                Ok(mode) => self.set_mode(id, mode, Setting::Option),
                Err(refusal) => self.refuse(&id, &refusal),
            },
            MODEL if offer.has_model(&value) => {
                let choice = Configured { model: Some(value), ..Configured::default() };
                self.choose(id, Setting::Option, choice);
            }
            EFFORT if offer.has_effort(&value) => {
                let choice = Configured { effort: Some(value), ..Configured::default() };
                self.choose(id, Setting::Option, choice);
            }
            MODEL | EFFORT => {
                let message = format!("{name} cannot be {value:?}");
                self.refuse(&id, &Refusal::params(message));
            }
            _ => self.refuse(&id, &Refusal::params(format!("there is no setting {name:?}"))),
        }
    }

    pub(super) fn set_mode(&mut self, id: Id, mode: Mode, form: Setting) {
        if mode == Mode::Yolo && self.shared.options.mode != Some(Mode::Yolo) {
            let message =
                "yolo must be asked for when tieline is started: `tieline acp --mode yolo`";
            return self.refuse(&id, &Refusal::params(message));
        }
        self.choose(id, form, Configured { mode: Some(mode), ..Configured::default() });
    }

    fn choose(&mut self, id: Id, form: Setting, choice: Configured) {
        let set = self.conversation.configure(OpenOptions {
            mode: choice.mode,
            model: choice.model.clone(),
            effort: choice.effort.clone(),
            ..OpenOptions::default()
        });
        self.n_chosen += 1;
        let number = self.n_chosen;
        self.chosen.push_back(Chosen { number, id, form, choice, behind: None });
        self.act(async move { Done::Chosen(number, set.await) });
    }

    /// A choice was made, or could not be.
    pub(super) fn made(&mut self, number: u64, made: Result<Seq, Error>) {
        let Some(at) = self.chosen.iter().position(|it| it.number == number) else { return };
        match made {
            Ok(behind) => {
                self.chosen[at].behind = Some(behind);
                // Some changes need a new process; it is there when the next prompt comes.
                self.wake();
            }
            Err(error) => {
                if let Some(chosen) = self.chosen.remove(at) {
                    self.refuse(&chosen.id, &outcome::refusal(&error));
                }
            }
        }
        self.confirm();
    }

    /// Answers choices in their order, each behind everything that was told before it: what the
    /// agent said before it heard of a choice must not look like a change of it.
    pub(super) fn confirm(&mut self) {
        // A history that is told again has its own settings on the way.
        if self.opening.is_some() {
            return;
        }
        while let Some(behind) = self.chosen.front().and_then(|it| it.behind)
            && behind <= self.lived
            && let Some(chosen) = self.chosen.pop_front()
        {
            self.take_over(&chosen, behind);
        }
    }

    /// A choice is made. A client that knows one of the two forms is told in the other as well.
    pub(super) fn take_over(&mut self, chosen: &Chosen, behind: Seq) {
        let is_latest = self.configured <= behind;
        if is_latest {
            self.mapper.configured(&chosen.choice, &mut self.page);
        }
        match chosen.form {
            Setting::Mode => self.answer(&chosen.id, &SetSessionModeResponse::new()),
            Setting::Option => {
                let settings = self.mapper.offer.settings();
                self.answer(&chosen.id, &SetSessionConfigOptionResponse::new(settings));
            }
        }
        if !is_latest {
            // What was told later is what became of it, and a yes alone would hide that.
            self.mapper.tell_settings(&mut self.page);
        }
    }
}
