//! What the user chooses.

use tieline_event::Mode;
use tieline_wire::jsonrpc::Id;

use super::super::from_acp::{self, Refusal};
use super::super::offer::{EFFORT, MODE, MODEL};
use super::{Done, Session, Setting};

impl Session {
    pub(super) fn set_setting(&mut self, id: Id, name: &str, value: String) {
        let offer = &self.mapper.offer;
        match name {
            MODE => match from_acp::mode(&value) {
                Ok(mode) => self.set_mode(id, mode, Setting::Option),
                Err(refusal) => self.refuse(&id, &refusal),
            },
            MODEL if offer.has_model(&value) => {
                self.mapper.offer.model = Some(value.clone());
                let set = self.conversation.set_model(value);
                self.act(async move { Done::Set(id, Setting::Option, set.await) });
            }
            EFFORT if offer.has_effort(&value) => {
                self.mapper.offer.effort = Some(value.clone());
                let set = self.conversation.set_effort(value);
                self.act(async move { Done::Set(id, Setting::Option, set.await) });
            }
            MODEL | EFFORT => {
                let message = format!("{name} cannot be {value:?}");
                self.refuse(&id, &Refusal::params(message));
            }
            _ => self.refuse(&id, &Refusal::params(format!("there is no setting {name:?}"))),
        }
    }

    pub(super) fn set_mode(&mut self, id: Id, mode: Mode, setting: Setting) {
        if mode == Mode::Yolo && self.shared.options.mode != Some(Mode::Yolo) {
            let message =
                "yolo must be asked for when tieline is started: `tieline acp --mode yolo`";
            return self.refuse(&id, &Refusal::params(message));
        }
        self.mapper.offer.mode = mode;
        let set = self.conversation.set_mode(mode);
        self.act(async move { Done::Set(id, setting, set.await) });
    }
}
