//! Many sessions in one process, each with a history of its own.

use tieline_event::{Mode, TurnStatus};
use tokio::task::JoinSet;

use crate::stage::Stage;

const N_SESSIONS: usize = 20;
const N_TURNS: usize = 3;

fn word(session: usize, turn: usize) -> String {
    format!("word-{session}-{turn}.")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_at_once_hear_only_their_own() {
    let stage = Stage::new().await;
    let hub = stage.hub();
    let mut talks = JoinSet::new();
    for session in 0..N_SESSIONS {
        let mut talk = stage.open_as(&hub, Mode::Yolo, &format!("talk-{session}")).await;
        talks.spawn(async move {
            for turn in 0..N_TURNS {
                let prompt = format!("{} SCENARIO:slow-echo:1", word(session, turn));
                let end = talk.say(&prompt).await;
                assert_eq!(end.status, TurnStatus::Completed, "{:#?}", talk.names());
                assert_eq!(end.text.preview(), format!("You said: {prompt}"));
            }
        });
    }
    talks.join_all().await;
    let asked = stage.asked();
    assert_eq!(asked.len(), N_SESSIONS * N_TURNS);
    for session in 0..N_SESSIONS {
        let of_session = |input: &String| input.contains(&word(session, 0));
        let inputs: Vec<String> =
            asked.iter().map(|body| body["input"].to_string()).filter(of_session).collect();
        assert_eq!(inputs.len(), N_TURNS, "each request has the session's first word");
        for (turn, input) in inputs.iter().enumerate() {
            // What was said and what came back, for each turn before; of this one what was said.
            assert_eq!(input.matches("word-").count(), 2 * turn + 1, "{input}");
            assert_eq!(input.matches(&format!("word-{session}-")).count(), 2 * turn + 1);
        }
    }
}
