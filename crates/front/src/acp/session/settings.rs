//! What the user chooses.

use tieline_event::{Configured, Mode};
use tieline_hub::Answering;
use tieline_wire::acp::schema::{SetSessionConfigOptionResponse, SetSessionModeResponse};
use tieline_wire::jsonrpc::Id;

use super::super::from_acp::{self, Refusal};
use super::super::offer::{EFFORT, MODE, MODEL};
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
                let set = self.conversation.set_model(value.clone());
                let choice = Configured { model: Some(value), ..Configured::default() };
                self.choose(id, Setting::Option, choice, set);
            }
            EFFORT if offer.has_effort(&value) => {
                let set = self.conversation.set_effort(value.clone());
                let choice = Configured { effort: Some(value), ..Configured::default() };
                self.choose(id, Setting::Option, choice, set);
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
        let set = self.conversation.set_mode(mode);
        let choice = Configured { mode: Some(mode), ..Configured::default() };
        self.choose(id, form, choice, set);
    }

    fn choose(&mut self, id: Id, form: Setting, choice: Configured, set: Answering<()>) {
        let chosen = Chosen { id, form, choice: Box::new(choice) };
        self.act(async move { Done::Chosen(chosen, set.await) });
    }

    /// Answers choices behind everything that was told before them: what the agent said before it
    /// heard of a choice must not look like a change of it.
    pub(super) fn confirm(&mut self) {
        // A history that is told again has its own settings on the way.
        if self.opening.is_some() {
            return;
        }
        let lived = self.lived;
        while let Some((_, chosen)) = self.chosen.pop_front_if(|(until, _)| *until <= lived) {
            self.take_over(&chosen);
        }
    }

    /// A choice is made. A client that knows one of the two forms is told in the other as well.
    pub(super) fn take_over(&mut self, chosen: &Chosen) {
        self.mapper.configured(&chosen.choice, &mut self.page);
        match chosen.form {
            Setting::Mode => self.answer(&chosen.id, &SetSessionModeResponse::new()),
            Setting::Option => {
                let settings = self.mapper.offer.settings();
                self.answer(&chosen.id, &SetSessionConfigOptionResponse::new(settings));
            }
        }
    }
}
