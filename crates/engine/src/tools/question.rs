//! Questions of the model to the user.

use serde::Deserialize;
use tieline_wire::sqeq::{self, EventMsg, RequestUserInput};
use tieline_wire::text::Str;

use super::{Outcome, Scene};
use crate::calls::Call;

/// More at once is more than a person wants to see.
const MOST: usize = 3;

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    questions: Vec<Question>,
}

#[derive(Debug, Deserialize)]
struct Question {
    id: String,
    #[serde(default)]
    header: String,
    question: String,
    #[serde(default)]
    options: Vec<Choice>,
    #[serde(default, rename = "isSecret", alias = "is_secret")]
    is_secret: bool,
}

#[derive(Debug, Deserialize)]
struct Choice {
    label: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    value: Option<String>,
}

/// Asks, and waits for the answers.
pub(super) async fn ask(scene: &Scene, call: &Call, args: Args) -> Outcome {
    if args.questions.is_empty() || args.questions.len() > MOST {
        return Outcome::failed(format!("request_user_input takes 1 to {MOST} questions"));
    }
    let question = |it: &Question| {
        let option = |it: &Choice| sqeq::QuestionOption {
            label: Str::Owned(it.label.clone()),
            description: Str::Owned(it.description.clone()),
            value: it.value.clone().map(Str::Owned),
        };
        sqeq::Question {
            id: Str::Owned(it.id.clone()),
            header: Str::Owned(it.header.clone()),
            question: Str::Owned(it.question.clone()),
            // A person may always answer in their own words.
            is_other: true,
            is_secret: it.is_secret,
            options: (!it.options.is_empty()).then(|| it.options.iter().map(option).collect()),
        }
    };
    let event = RequestUserInput {
        call_id: Str::Borrowed(&call.id),
        questions: args.questions.iter().map(question).collect(),
        // The answer is found by the call; several may be open.
        turn_id: Some(Str::Borrowed(&call.id)),
    };
    let answers = scene.shared.asked.answers(&scene.task, &call.id);
    scene.shared.out.send(&scene.task, EventMsg::RequestUserInput(event)).await;
    match answers.get().await {
        Some(answers) => {
            let answers: serde_json::Map<_, _> = answers
                .into_iter()
                .map(|(id, given)| (id, serde_json::json!({ "answers": given })))
                .collect();
            Outcome::said(serde_json::json!({ "answers": answers }).to_string())
        }
        None => Outcome::failed("request_user_input was cancelled before receiving a response"),
    }
}
