//! Tools of servers.
use super::{Outcome, Scene};
use crate::calls::Call;

pub(super) async fn call(_scene: &Scene, _call: &Call, name: &str, _json: &str) -> Outcome {
    Outcome::failed(format!("unsupported call: {name}"))
}
