//! What the agent asks and the client answers.

use serde_json::Value;
use tieline_event::{Answer, Origin, Request, RequestBody, RequestId};
use tieline_wire::jsonrpc::{ErrorObject, Id};

use super::super::Rule;
use super::super::ask::{Asked, Next};
use super::{Done, Session};

impl Session {
    pub(super) fn ask(&mut self, method: &'static str, params: &Value, asked: Box<Asked>) {
        let own = self.own.clone();
        let call = self.shared.ask(method, params, own, &mut self.page.bytes);
        self.asked.insert(call, asked);
    }

    pub(super) fn answered(&mut self, call: i64, outcome: Result<Value, ErrorObject>) {
        self.withdrawn.remove(&call);
        let Some(asked) = self.asked.remove(&call) else { return };
        if self.running.as_ref().is_some_and(|running| running.is_cancelled) {
            // Stopping the turn takes back what it asked; that a client says so too is no answer.
            return;
        }
        let (request, is_question) = (asked.request.clone(), asked.is_question());
        match asked.answered(self.key.as_str(), outcome.as_ref()) {
            Next::Answer(answer) => self.resolve(request, answer, Origin::Client, None),
            Next::Ask(method, params, asked) => self.ask(method, &params, asked),
            Next::Rule => self.rule_for(&request, is_question),
        }
    }

    /// A request needs no answer of the client any more.
    pub(super) fn settled(&mut self, request: &RequestId) {
        let open = self.asked.iter().find(|(_, asked)| asked.request == *request);
        if let Some(call) = open.map(|(call, _)| *call) {
            self.asked.remove(&call);
            match self.withdrawn.remove(&call) {
                // It was told so before.
                true => drop(self.shared.asker(&Id::Number(call))),
                false => self.shared.withdraw(call, &mut self.page.bytes),
            }
        }
    }

    pub(super) fn rule(&mut self, request: &Request) {
        let is_question = matches!(request.body, RequestBody::Question { .. });
        self.rule_for(&request.id, is_question);
    }

    /// Nobody can be asked, so the rule answers.
    pub(super) fn rule_for(&mut self, request: &RequestId, is_question: bool) {
        let rule = self.shared.options.on_request;
        let policy = Some(format!("--on-request {}", rule.name()));
        let answer = match rule {
            Rule::Allow if !is_question => Answer::allow(),
            Rule::Allow | Rule::Deny => {
                Answer::deny("Nobody is there to answer; go on without it.")
            }
            Rule::Fail => Answer::Deny { message: None, stop: true },
        };
        self.resolve(request.clone(), answer, Origin::Engine, policy);
    }

    pub(super) fn resolve(
        &mut self,
        request: RequestId,
        answer: Answer,
        by: Origin,
        policy: Option<String>,
    ) {
        let answered = self.conversation.answer(&request, answer, by, policy);
        self.act(async move { Done::Answered(answered.await) });
    }
}
