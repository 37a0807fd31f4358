//! Conversations on one server.

use super::*;

/// Two recorded threads on one server, each with a driver that knows nothing of the other.
#[test]
fn a_switchboard_gives_each_conversation_its_own_lines() {
    let recording = load(&fixtures("codex_app").join("0.166.0/two-threads-concurrent"));
    let mut board = AppSwitchboard::default();
    let mut seats: Vec<Replay> = Vec::new();
    for seat in 0..2 {
        let driver = Box::new(AppDriver::new(&launch(Mode::Default), VERSION, (seat << 32) + 1));
        let mut session = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
        session.started();
        session.start_turn(&Prompt::text(format!("prompt {seat}")));
        let mut replay = Replay {
            session,
            clock: Clock::default(),
            outputs: vec![],
            kept: vec![],
            requests: BTreeMap::new(),
            written: vec![],
            recorded: HashMap::new(),
        };
        replay.settle();
        seats.push(replay);
    }
    let recorded: HashMap<String, String> = recording
        .said
        .iter()
        .filter_map(|(_, line)| Some((line["id"].to_string(), line["method"].as_str()?.to_owned())))
        .collect();
    // Requests of the drivers that the server has, in the order it got them.
    let mut sent: Vec<Value> = Vec::new();
    let mut lines: Vec<Vec<u8>> =
        recording.out.split_inclusive(|byte| *byte == b'\n').rev().map(<[u8]>::to_vec).collect();
    while !lines.is_empty() {
        for seat in 0..2 {
            for line in std::mem::take(&mut seats[seat].written) {
                for routed in board.outgoing(seat, line.to_string().as_bytes()) {
                    let line: Value = serde_json::from_slice(&routed.line).unwrap();
                    match routed.to {
                        Destination::Process => sent.push(line),
                        Destination::Seat(seat) => seats[seat].tell(&line),
                        Destination::Everybody => panic!("nothing goes out to everybody"),
                    }
                }
            }
        }
        let mut line: Value = serde_json::from_slice(&lines.pop().unwrap()).unwrap();
        if line.get("method").is_none() {
            let method = &recorded[&line["id"].to_string()];
            let at = sent.iter().position(|sent| sent["method"] == method.as_str());
            let at = at.unwrap_or_else(|| panic!("{method} in {sent:?}"));
            line["id"] = sent.remove(at)["id"].clone();
        }
        for routed in board.incoming(line.to_string().as_bytes()) {
            let line: Value = serde_json::from_slice(&routed.line).unwrap();
            match routed.to {
                Destination::Seat(seat) => seats[seat].tell(&line),
                Destination::Everybody => seats.iter_mut().for_each(|seat| seat.tell(&line)),
                Destination::Process => assert_eq!(line["method"], "initialized"),
            }
        }
    }
    let mut threads = Vec::new();
    for seat in &seats {
        let text = shown(seat);
        assert_eq!(text.matches("turn.completed: Completed").count(), 1, "{text}");
        assert!(!text.contains("unparsed"), "{text}");
        threads.push(seat.session.ledger().session().unwrap().to_owned());
    }
    assert_ne!(threads[0], threads[1]);
    assert_eq!(board.left(0).len(), 1, "its thread is given up");
    let end = |seat: &Replay| {
        seat.outputs.iter().any(|output| {
            matches!(output, Output::Event(draft) if matches!(&draft.kind,
                Kind::TurnCompleted(end) if end.status == TurnStatus::Completed))
        })
    };
    assert!(seats.iter().all(end));
}

#[test]
fn who_leaves_a_shared_server_leaves_nothing_running() {
    let mut board = AppSwitchboard::default();
    let say = |board: &mut AppSwitchboard, seat, line: Value| {
        board.outgoing(seat, line.to_string().as_bytes()).len()
    };
    say(&mut board, 0, json!({"id": 1, "method": "thread/start", "params": {}}));
    board.incoming(json!({"id": 1, "result": {"thread": {"id": "a"}}}).to_string().as_bytes());
    say(&mut board, 0, json!({"id": 2, "method": "turn/start", "params": {"threadId": "a"}}));
    board.incoming(json!({"id": 2, "result": {"turn": {"id": "t"}}}).to_string().as_bytes());
    // Another thread is being opened when it leaves.
    say(&mut board, 0, json!({"id": 3, "method": "thread/start", "params": {}}));
    let methods = |routed: Vec<tieline_agent::Routed>| -> Vec<String> {
        let method = |it: &tieline_agent::Routed| {
            let line: Value = serde_json::from_slice(&it.line).unwrap();
            line["method"].as_str().unwrap().to_owned()
        };
        routed.iter().map(method).collect()
    };
    assert_eq!(methods(board.left(0)), ["turn/interrupt", "thread/unsubscribe"]);
    let late = json!({"id": 3, "result": {"thread": {"id": "b"}}});
    assert_eq!(methods(board.incoming(late.to_string().as_bytes())), ["thread/unsubscribe"]);
    // What it still says is nobody's.
    let news = json!({"method": "error", "params": {"threadId": "a"}});
    assert!(board.incoming(news.to_string().as_bytes()).is_empty());
}
