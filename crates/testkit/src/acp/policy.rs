//! How a client answers what an agent asks.

use serde_json::{Value, json};

/// What becomes of one request of the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// The test answers later, with [`Client::answer`](super::Client::answer).
    LeaveOpen,
}

/// Decides about requests by their parameters.
pub struct Policy(Box<dyn FnMut(&Value) -> Answer + Send>);

impl Policy {
    /// Whatever this function says.
    pub fn by(decide: impl FnMut(&Value) -> Answer + Send + 'static) -> Policy {
        Policy(Box::new(decide))
    }

    /// Selects the first permission option of this kind (`allow_once`, `reject_once` and so on); a
    /// request without one is cancelled.
    pub fn select(kind: &'static str) -> Policy {
        Policy::by(move |params| {
            let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
            let option = options.iter().find(|option| option["kind"] == kind);
            Answer::Result(match option {
                Some(option) => {
                    json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}})
                }
                None => cancelled(),
            })
        })
    }

    /// Always this result.
    pub fn result(result: Value) -> Policy {
        Policy::by(move |_| Answer::Result(result.clone()))
    }

    /// Leaves every request open.
    pub fn leave_open() -> Policy {
        Policy::by(|_| Answer::LeaveOpen)
    }

    /// As a client does that does not know the method.
    pub(crate) fn unknown() -> Policy {
        Policy::by(|_| Answer::Error { code: -32601, message: "Method not found".to_owned() })
    }

    pub(crate) fn decide(&mut self, params: &Value) -> Answer {
        (self.0)(params)
    }
}

/// The outcome of a permission request whose turn was cancelled.
pub(crate) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}
