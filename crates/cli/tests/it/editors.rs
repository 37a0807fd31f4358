//! `tieline acp` with many sessions, long histories and impatient users.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tieline_testkit::acp::{
    Answer, Client, Direction, Entry, Message, Policy, Program, Role, Tool, View,
};
use tieline_testkit::{probe, real};

use crate::tieline::Tieline;

/// A user whose Claude Code plays this script.
fn user(script: &str) -> Tieline {
    let fake = real::fake_agent_program();
    let user = Tieline::new().with("TIELINE_CLAUDE", fake.to_str().unwrap());
    let file = user.path("script");
    std::fs::write(&file, script).unwrap();
    user.with("FAKE_AGENT_SCRIPT", file.to_str().unwrap())
}

/// `tieline acp --agent claude` as this user's editor starts it.
async fn editor(user: &Tieline) -> Client {
    editor_with(user, "claude").await
}

async fn editor_with(user: &Tieline, agent: &str) -> Client {
    let command = user.command(&["acp", "--agent", agent]);
    let text = |it: &std::ffi::OsStr| it.to_str().unwrap().to_owned();
    let env = command.get_envs().map(|(name, value)| (text(name), text(value.unwrap_or_default())));
    let client = Client::start(Program {
        path: command.get_program().into(),
        args: command.get_args().map(Into::into).collect(),
        env: env.collect(),
        cwd: user.work(),
    })
    .await;
    client.request("initialize", json!({"protocolVersion": 1})).await.unwrap();
    client
}

async fn new_session(client: &Client, user: &Tieline) -> String {
    let params = json!({"cwd": user.work(), "mcpServers": []});
    let session = client.request("session/new", params).await.unwrap();
    session["sessionId"].as_str().unwrap().to_owned()
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

async fn say(client: &Client, session: &str, text: &str) -> Value {
    client.request("session/prompt", prompt(session, text)).await.unwrap()
}

/// Hangs up, and sees that everything went with it.
async fn hang_up(client: Client, user: &Tieline) {
    let ended = client.close().await;
    assert_eq!(ended.exit.code, Some(0), "{}", ended.stderr);
    let marker = format!("HOME={}", user.path(".").parent().unwrap().display());
    assert_eq!(probe::alive_with(&marker), Vec::<u32>::new(), "no process remains");
}

/// What the agent said and did, without what only one of live and replay has.
fn history(view: &View) -> Vec<Entry> {
    let is_users =
        |entry: &Entry| matches!(entry, Entry::Message(Message { role: Role::User, .. }));
    let mut entries: Vec<Entry> =
        view.entries.iter().filter(|entry| !is_users(entry)).cloned().collect();
    for entry in &mut entries {
        if let Entry::Tool(Tool { statuses, fields, .. }) = entry {
            // A replay does not wait for what is over.
            statuses.retain(|status| status != "in_progress");
            // A permission request names the kind even where it is the one by default.
            fields.entry("kind").or_insert_with(|| json!("other"));
        }
    }
    entries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_shows_ten_thousand_events_as_they_were_seen_live() {
    let mut script = String::new();
    for n in 0..1_400 {
        writeln!(script, "think thought {n}\nsay words {n}").unwrap();
        writeln!(script, "tool Bash {{\"command\":\"run {n}\"}}").unwrap();
        writeln!(script, "tool Write {{\"file_path\":\"f{n}\",\"content\":\"{n}\"}}").unwrap();
    }
    let user = user(&script);
    let client = editor(&user).await;
    let session = new_session(&client, &user).await;
    assert_eq!(say(&client, &session, "work").await["stopReason"], "end_turn");
    let live = client.seen();
    assert_eq!(live.broken, Vec::<String>::new());
    hang_up(client, &user).await;

    let n_events = user.events(&session).len();
    assert!(n_events >= 10_000, "only {n_events} events");

    let client = editor(&user).await;
    let params = json!({"sessionId": session, "cwd": user.work(), "mcpServers": []});
    let began = std::time::Instant::now();
    client.request("session/load", params.clone()).await.unwrap();
    println!("{n_events} events loaded in {:?}", began.elapsed());
    let replayed = client.seen();
    assert_eq!(replayed.broken, Vec::<String>::new());
    assert_eq!(history(replayed.only()), history(live.only()));
    assert_eq!(replayed.only().messages(Role::User).count(), 1);
    // Again, in the same process: the same once more, and no second agent.
    let n_updates = updates(&client);
    client.request("session/load", params.clone()).await.unwrap();
    let again = updates(&client) - n_updates;
    assert!(again > 1_400, "{again} updates");
    hang_up(client, &user).await;

    let client = editor(&user).await;
    client.request("session/resume", params).await.unwrap();
    let shown = client.seen();
    assert!(shown.only().entries.is_empty(), "{:?}", shown.only().entries.first());
    hang_up(client, &user).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_shows_what_was_asked() {
    let user = Tieline::new().with_config("[agents.demo]\nscript = \"~/play.script\"\n");
    let script = "say Hm.\nask Colour? | red | blue\nsay It is {answer}.\nask Size? | S | L\n";
    std::fs::write(user.path("play.script"), script).unwrap();
    let client = editor_with(&user, "demo").await;
    let mut kinds = ["allow_once", "reject_once"].into_iter();
    let answers = Policy::by(move |params| {
        let kind = kinds.next().unwrap();
        let options = params["options"].as_array().unwrap();
        let option = options.iter().find(|option| option["kind"] == kind).unwrap();
        let chosen = json!({"outcome": "selected", "optionId": option["optionId"]});
        Answer::Result(json!({ "outcome": chosen }))
    });
    client.on("session/request_permission", answers);
    let session = new_session(&client, &user).await;
    assert_eq!(say(&client, &session, "ask").await["stopReason"], "end_turn");
    let live = client.seen();
    let ends: Vec<_> = live.only().tools().map(|it| it.statuses.last().cloned()).collect();
    assert_eq!(ends, [Some("completed".to_owned()), Some("failed".to_owned())]);
    hang_up(client, &user).await;

    let client = editor_with(&user, "demo").await;
    let params = json!({"sessionId": session, "cwd": user.work(), "mcpServers": []});
    client.request("session/load", params).await.unwrap();
    let replayed = client.seen();
    assert_eq!(replayed.broken, Vec::<String>::new());
    assert_eq!(history(replayed.only()), history(live.only()));
    assert!(replayed.only().permissions.is_empty(), "nobody is asked again");
    hang_up(client, &user).await;
}

fn updates(client: &Client) -> usize {
    let frames = client.frames();
    let is_update = |value: &Value| value["method"] == "session/update";
    frames.iter().filter_map(|frame| frame.value.as_ref()).filter(|it| is_update(it)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_nine_open_permissions_do_not_hold_up_the_fiftieth_session() {
    let user = user("say hello\n---\nask-permission Bash {\"command\":\"make\"}\nsay done");
    let client = editor(&user).await;
    client.on("session/request_permission", Policy::leave_open());
    let mut asking = BTreeMap::new();
    for _ in 0..49 {
        let session = new_session(&client, &user).await;
        say(&client, &session, "first").await;
        let pending = client.begin("session/prompt", prompt(&session, "second")).await;
        asking.insert(session, pending);
    }
    let mut open = Vec::new();
    let patience = std::time::Instant::now() + Duration::from_secs(60);
    while open.len() < 49 {
        assert!(std::time::Instant::now() < patience, "only {} permissions are open", open.len());
        tokio::time::sleep(Duration::from_millis(10)).await;
        open.extend(client.take_open());
    }
    // None of them has its answer, and none needs one for this.
    let last = new_session(&client, &user).await;
    assert_eq!(say(&client, &last, "first").await["stopReason"], "end_turn");
    for (id, _, params) in open {
        let option = params["options"][0]["optionId"].clone();
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        client.answer(&id, Answer::Result(outcome)).await;
    }
    for (_, pending) in asking {
        assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
    }
    hang_up(client, &user).await;
}

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// What a turn may be doing when it is cancelled. Only the first ends by itself.
const DOINGS: [&str; 5] = [
    "say short",
    "deltas 50\nsilence",
    "think hm\nsilence",
    "ask-permission Bash {\"command\":\"make\"}\nsilence",
    "tool Bash {\"command\":\"make\"}\nsilence",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_cancels_at_random_moments_get_a_thousand_answers() {
    const SESSIONS: usize = 10;
    const CANCELS: usize = 100;
    let mut dice = Dice(2026);
    let doings: Vec<usize> =
        (0..CANCELS).map(|_| dice.below(DOINGS.len() as u64) as usize).collect();
    let sections: Vec<&str> = doings.iter().map(|at| DOINGS[*at]).collect();
    let user = user(&format!("say ready\n---\n{}\n---\nsay still here", sections.join("\n---\n")));
    let client = editor(&user).await;
    client.on("session/request_permission", Policy::leave_open());
    let (mut n_answers, mut n_cancelled) = (0, 0);
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        let session = new_session(&client, &user).await;
        // A turn that is cancelled while its agent starts would leave its section to the next one.
        say(&client, &session, "go").await;
        sessions.push(session);
    }
    for doing in &doings {
        let mut pending = Vec::new();
        for session in &sessions {
            pending.push(client.begin("session/prompt", prompt(session, "go")).await);
        }
        for session in &sessions {
            tokio::time::sleep(Duration::from_micros(dice.below(3_000))).await;
            client.cancel(session).await;
        }
        for pending in pending {
            let answer = pending.answer().await.unwrap();
            let ended_by_itself = *doing == 0 && answer["stopReason"] == "end_turn";
            assert!(ended_by_itself || answer["stopReason"] == "cancelled", "{answer}");
            n_answers += 1;
            n_cancelled += usize::from(!ended_by_itself);
        }
        client.take_open();
    }
    assert_eq!(n_answers, SESSIONS * CANCELS);
    assert!(n_cancelled > n_answers / 2, "{n_cancelled} of {n_answers} were cancelled");
    // At rest a cancel means nothing, and leaves nothing behind.
    for session in &sessions {
        client.cancel(session).await;
        assert_eq!(say(&client, session, "and now").await["stopReason"], "end_turn");
    }
    client.take_open();
    let seen = client.seen();
    assert_eq!(seen.broken, Vec::<String>::new());
    hang_up(client, &user).await;
}

fn line(id: i64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Waits for the answer to a line that was sent raw.
async fn answer(client: &Client, id: i64) -> Value {
    let frame = client
        .wait_for("an answer", |frame| {
            let value = frame.value.as_ref();
            frame.direction == Direction::ToClient
                && value.is_some_and(|it| it["id"] == id && it.get("method").is_none())
        })
        .await;
    frame.value.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_rest_does_not_touch_the_prompt_right_behind_it() {
    let user = user("say hello");
    let client = editor(&user).await;
    let session = new_session(&client, &user).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    for id in 1_000..1_100 {
        let prompt = line(id, "session/prompt", &prompt(&session, "go"));
        client.send_raw(format!("{cancel}\n{prompt}").as_bytes()).await;
        assert_eq!(answer(&client, id).await["result"]["stopReason"], "end_turn");
    }
    hang_up(client, &user).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_asked_of_a_session_at_once_is_answered() {
    let user = user("say hello");
    let client = editor(&user).await;
    for round in 0..20 {
        let session = new_session(&client, &user).await;
        say(&client, &session, "first").await;
        let at = json!({"sessionId": session, "cwd": user.work(), "mcpServers": []});
        let mode = json!({"sessionId": session, "modeId": "plan"});
        let id = 1_000 + 10 * round;
        let lines = [
            line(id, "session/load", &at),
            line(id + 1, "session/load", &at),
            line(id + 2, "session/set_mode", &mode),
            line(id + 3, "session/prompt", &prompt(&session, "second")),
            line(id + 4, "session/close", &json!({"sessionId": session})),
            line(id + 5, "session/resume", &at),
        ];
        client.send_raw(lines.concat().as_bytes()).await;
        for id in id..id + 6 {
            answer(&client, id).await;
        }
    }
    hang_up(client, &user).await;
}

/// The mode that a frame tells of this session, in either form.
fn told_mode<'a>(frame: &'a Value, session: &str) -> Option<&'a str> {
    if frame["params"]["sessionId"] != session {
        return None;
    }
    let update = &frame["params"]["update"];
    let of_options = || {
        let options = update["configOptions"].as_array()?;
        options.iter().find(|it| it["id"] == "mode")?["currentValue"].as_str()
    };
    update["currentModeId"].as_str().or_else(of_options)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_was_chosen_is_not_taken_back_by_what_the_agent_said_before() {
    let user = Tieline::new();
    let client = editor_with(&user, "demo").await;
    let mut chosen = Vec::new();
    // The agent starts when its session is opened, and says which mode it is in.
    for n in 0..50 {
        let session = new_session(&client, &user).await;
        let (method, params) = match n % 2 {
            0 => ("session/set_mode", json!({"sessionId": session, "modeId": "plan"})),
            _ => {
                let params = json!({"sessionId": session, "configId": "mode", "value": "plan"});
                ("session/set_config_option", params)
            }
        };
        client.send_raw(line(1_000 + n, method, &params).as_bytes()).await;
        chosen.push((1_000 + n, session));
    }
    for (id, session) in &chosen {
        let answer = answer(&client, *id).await;
        assert!(answer.get("error").is_none(), "{answer}");
        if let Some(options) = answer["result"]["configOptions"].as_array() {
            let mode = options.iter().find(|it| it["id"] == "mode").unwrap();
            assert_eq!(mode["currentValue"], "plan", "{answer}");
        }
        assert_eq!(say(&client, session, "go").await["stopReason"], "end_turn");
    }
    let frames: Vec<Value> = client
        .frames()
        .into_iter()
        .filter(|it| it.direction == Direction::ToClient)
        .filter_map(|it| it.value)
        .collect();
    for (id, session) in &chosen {
        let answered = frames.iter().position(|it| it["id"] == *id).unwrap();
        let mut before = frames[..answered].iter().filter_map(|it| told_mode(it, session));
        assert_eq!(before.next_back(), Some("plan"), "it is told before the answer");
        let after = frames[answered..].iter().filter_map(|it| told_mode(it, session));
        assert!(after.clone().all(|it| it == "plan"), "{:?}", after.collect::<Vec<_>>());
    }
    hang_up(client, &user).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_for_a_turn_begins_none_where_the_client_says_so() {
    let user = user("say hello");
    let client = editor(&user).await;
    let session = new_session(&client, &user).await;
    let steer = |idle: Value| {
        let mut message = prompt(&session, "and this");
        message["_meta"] = json!({"steering": {"idleBehavior": idle}});
        client.request("_session/steering", message)
    };
    let left = steer(json!("promptRequired")).await.unwrap();
    assert_eq!(left, json!({"outcome": "promptRequired"}));
    assert_eq!(steer(json!("dance")).await.unwrap_err().code, -32602);
    assert!(client.seen().only().entries.is_empty(), "no turn has begun");
    let begun = client.request("_session/steering", prompt(&session, "and this")).await.unwrap();
    assert_eq!(begun, json!({"outcome": "startedNewTurn"}));
    hang_up(client, &user).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn choices_that_come_at_once_are_made_and_answered_in_their_order() {
    const MODES: [&str; 4] = ["plan", "plan", "default", "acceptEdits"];
    let user = Tieline::new();
    let client = editor_with(&user, "demo").await;
    let session = new_session(&client, &user).await;
    for round in 0..50 {
        let id = 1_000 + 10 * round;
        let lines = (0..).zip(MODES).map(|(n, mode)| {
            line(id + n, "session/set_mode", &json!({"sessionId": session, "modeId": mode}))
        });
        client.send_raw(lines.collect::<String>().as_bytes()).await;
        for n in 0..MODES.len() as i64 {
            answer(&client, id + n).await;
        }
    }
    let frames: Vec<Value> = client.frames().into_iter().filter_map(|it| it.value).collect();
    let answers = frames.iter().filter(|it| it.get("result").is_some());
    let ids: Vec<i64> =
        answers.filter_map(|it| it["id"].as_i64()).filter(|id| *id >= 1_000).collect();
    assert!(ids.is_sorted(), "{ids:?}");
    let mut told = frames.iter().rev().filter_map(|it| told_mode(it, &session));
    assert_eq!(told.next(), MODES.last().copied());
    hang_up(client, &user).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_resumed_in_the_middle_of_a_turn_shows_nothing_twice_and_loses_nothing() {
    let user = user("stamped 200 2000\nask-permission Bash {\"command\":\"make\"}\nsay done");
    let client = editor(&user).await;
    client.on("session/request_permission", Policy::select("allow_once"));
    let session = new_session(&client, &user).await;
    let at = json!({"sessionId": session, "cwd": user.work(), "mcpServers": []});
    let pending = client.begin("session/prompt", prompt(&session, "go")).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.request("session/resume", at.clone()).await.unwrap();
    }
    assert_eq!(pending.answer().await.unwrap()["stopReason"], "end_turn");
    let shown = client.seen();
    assert_eq!(shown.broken, Vec::<String>::new());
    let shown: Vec<String> = shown.only().messages(Role::Agent).map(|it| it.text.clone()).collect();
    let events = user.events(&session);
    let is_message =
        |it: &&Value| it["kind"] == "item.completed" && it["data"]["type"] == "agent_message";
    let stored: Vec<&str> =
        events.iter().filter(is_message).map(|it| it["data"]["text"].as_str().unwrap()).collect();
    assert_eq!(shown, stored);
    hang_up(client, &user).await;
}
