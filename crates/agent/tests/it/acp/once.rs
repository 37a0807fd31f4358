//! Whatever comes in whatever order: each request of the agent is answered exactly once.

use proptest::prelude::*;
use serde_json::{Value, json};
use tieline_agent::{Chore, ChoreNews};
use tieline_event::{Answer, Mode, Origin};

use super::{Stage, running};

#[derive(Debug, Clone)]
enum Step {
    /// The agent asks for one of these.
    Ask(usize),
    /// The user answers one of the open requests.
    Answer(usize, bool),
    /// The agent takes one of its requests back.
    TakeBack(usize),
    /// Something comes of one of the chores.
    News(usize, u8),
    /// The user interrupts.
    Interrupt,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..9usize).prop_map(Step::Ask),
        3 => (0..8usize, any::<bool>()).prop_map(|(at, yes)| Step::Answer(at, yes)),
        1 => (0..40usize).prop_map(Step::TakeBack),
        4 => (0..12usize, 0..5u8).prop_map(|(at, news)| Step::News(at, news)),
        1 => Just(Step::Interrupt),
    ]
}

fn request(kind: usize, id: i64) -> (&'static str, Value) {
    let path = "/workspace/a";
    let terminal = json!({"terminalId": format!("term{}", id % 4)});
    match kind {
        0 => {
            let call = json!({"toolCallId": format!("t{id}"), "title": "x", "kind": "execute"});
            let options = json!([{"optionId": "y", "name": "Y", "kind": "allow_once"},
                                 {"optionId": "n", "name": "N", "kind": "reject_once"}]);
            ("session/request_permission", json!({"toolCall": call, "options": options}))
        }
        1 => {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            let form = json!({"mode": "form", "message": "?", "requestedSchema": schema});
            ("elicitation/create", form)
        }
        2 => ("fs/read_text_file", json!({"path": path})),
        3 => ("fs/write_text_file", json!({"path": path, "content": "x"})),
        4 => ("terminal/create", json!({"command": "x"})),
        5 => ("terminal/output", terminal),
        6 => ("terminal/wait_for_exit", terminal),
        7 => ("terminal/kill", terminal),
        _ => ("terminal/release", terminal),
    }
}

/// News that fit the chore, mostly.
fn news(chore: &Chore, which: u8) -> ChoreNews {
    match (chore, which) {
        (Chore::Run { .. }, 0) => ChoreNews::Printed(b"text".to_vec()),
        (Chore::Run { .. }, 1 | 2) => ChoreNews::Ended { code: Some(0), signal: None },
        (Chore::ReadText { .. }, 0..3) => ChoreNews::Text("text".to_owned()),
        (Chore::WriteText { .. }, 0 | 1) => ChoreNews::Written,
        (Chore::WriteText { path, content, .. }, 2) => ChoreNews::Protected {
            path: path.clone(),
            by: "git".to_owned(),
            content: content.clone(),
        },
        _ => ChoreNews::failed("no"),
    }
}

fn perform(stage: &mut Stage, steps: &[Step]) -> i64 {
    let mut n_asked = 0;
    for step in steps {
        match step {
            Step::Ask(kind) => {
                n_asked += 1;
                let (method, params) = request(*kind, 1000 + n_asked);
                stage.ask(1000 + n_asked, method, params);
            }
            Step::Answer(at, yes) => {
                let open: Vec<_> = stage.session.ledger().open_requests().cloned().collect();
                let Some(request) = open.get(*at) else { continue };
                let answer = match yes {
                    true => Answer::allow(),
                    false => Answer::Deny { message: None, stop: false },
                };
                stage.session.answer(request, &answer, Origin::Human, None).unwrap();
            }
            Step::TakeBack(at) => {
                let params = json!({"requestId": 1001 + i64::try_from(*at).unwrap()});
                let method = "$/cancel_request";
                stage.tell(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
            }
            Step::News(at, which) => {
                let Some((id, chore)) = stage.chores.get(*at).cloned() else { continue };
                stage.session.chore_news(id, news(&chore, *which));
            }
            Step::Interrupt => assert!(stage.session.interrupt()),
        }
        stage.settle();
    }
    n_asked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_exactly_once(
        mode in prop::sample::select(Mode::ALL.to_vec()),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut stage = running(mode);
        let n_asked = perform(&mut stage, &steps);
        // Everything ends: the turn, and what is done for the agent.
        stage.end_turn("end_turn");
        for (id, chore) in stage.chores.clone() {
            stage.session.chore_news(id, news(&chore, 2));
        }
        stage.settle();
        for id in 1001..=1000 + n_asked {
            let answers: Vec<_> = stage
                .written
                .iter()
                .filter(|line| line["id"] == id && line.get("method").is_none())
                .collect();
            prop_assert_eq!(answers.len(), 1, "{}: {:?}", id, answers);
            let both = answers[0].get("result").is_some() && answers[0].get("error").is_some();
            prop_assert!(!both);
        }
        prop_assert_eq!(stage.session.ledger().open_requests().count(), 0);
        prop_assert_eq!(stage.shown().matches("turn.completed").count(), 1);
    }
}
