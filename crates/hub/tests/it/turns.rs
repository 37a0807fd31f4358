//! What a conversation does when nothing goes wrong.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use tieline_event::{
    Answer, Command, Content, EndSignal, Event, FrameNo, ImageSource, ItemStatus, Kind, Mode,
    Origin, Prompt, Seq, TurnStatus,
};
use tieline_hub::{Error, Hub, Limits, OnRequest, TurnContext, TurnError};
use tieline_store::{Direction, Options};

use crate::bench::{Bench, Wire, is_message, key, quick, until, until_end};

#[tokio::test]
async fn a_prompt_gives_an_answer_and_the_session_is_kept() {
    let bench = Bench::new("say Hello there.");
    let hub = bench.hub();
    let context = TurnContext { open: bench.open_options(), ..TurnContext::default() };
    let outcome = hub.run_turn(&key(), "Hi", context).await.unwrap();
    assert_eq!(outcome.text, "Hello there.");
    let row = hub.store().conversation(&key()).unwrap().unwrap();
    assert!(row.native_session.is_some());
    assert_eq!((row.n_turns(), row.title.as_deref()), (1, Some("Hi")));
    hub.close_all().await;
    bench.nobody_is_left().await;
    assert!(hub.store().holder(&key()).unwrap().is_none(), "the lease is given up");
}

#[tokio::test]
async fn pictures_are_files_for_as_long_as_their_process_is_there() {
    let bench = Bench::on(Wire::Exec, "say Hi.\nsilence");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let picture = |data: &str| Content::Image {
        mime: "image/png".to_owned(),
        source: ImageSource::Base64(data.into()),
    };
    let content = vec![Content::text("what is this?"), picture("b25l"), picture("dHdv")];
    conversation.start_turn(Prompt { content, ..Prompt::text("") }).await.unwrap();
    let args = until(&mut live, |event| match &event.kind {
        Kind::ProcessSpawned(it) => Some(it.args.clone()),
        _ => None,
    })
    .await;
    let after_flag = |pair: &[String]| (pair[0] == "-i").then(|| PathBuf::from(&pair[1]));
    let files: Vec<PathBuf> = args.windows(2).filter_map(after_flag).collect();
    let contents: Vec<_> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert_eq!(contents, [b"one", b"two"]);
    until(&mut live, |event| is_message(event).then_some(())).await;
    hub.close_all().await;
    assert!(!files.iter().any(|file| file.exists()));
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn events_have_no_gap_and_deltas_are_the_text() {
    let bench = Bench::new("deltas 50 8");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    // Deltas are for those who keep up.
    let opened = until(&mut live, |event| Some(event.clone())).await;
    let command = Command::StartTurn { prompt: Prompt::text("go") };
    let turn = conversation.command(command).await.unwrap().unwrap();
    let (events, streamed, end) = until_end(&mut live, &turn).await;
    let events: Vec<Event> = std::iter::once(opened).chain(events).collect();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(end.text.preview(), streamed);
    // Whoever comes later sees the same events.
    let (again, ..) = until_end(&mut conversation.subscribe(Seq(0)), &turn).await;
    assert_eq!(again, events);
    hub.close_all().await;
}

/// The mode in which a conversation is, as its events tell it.
fn told_mode(hub: &Hub) -> Option<Mode> {
    let stored = hub.store().events(&key(), Seq(0), 1_000).unwrap();
    let mut told =
        stored.iter().rev().filter_map(|it| match Event::from_json(&it.json).unwrap().kind {
            Kind::ConversationConfigured(told) => told.mode,
            _ => None,
        });
    told.next()
}

#[tokio::test]
async fn a_mode_that_needs_a_new_process_is_told_and_the_old_one_does_not_take_it_back() {
    let bench = Bench::new("say One.\nsleep 300\nsay Two.").one_process_per_turn();
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    for (mode, at_work) in [(Mode::Plan, true), (Mode::AcceptEdits, false), (Mode::Default, true)] {
        let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
        if at_work {
            until(&mut live, |event| is_message(event).then_some(())).await;
            conversation.set_mode(mode).await.unwrap();
        }
        until_end(&mut live, &turn).await;
        conversation.set_mode(mode).await.unwrap();
        assert_eq!(told_mode(&hub), Some(mode));
        assert_eq!(hub.store().conversation(&key()).unwrap().unwrap().mode, mode);
    }
    hub.close_all().await;
}

#[tokio::test]
async fn frames_in_the_store_are_what_was_read_and_written() {
    let bench = Bench::new("say one\ngarbage not json\nbytes fffe000d0a");
    let hub = bench.hub();
    let context = TurnContext { open: bench.open_options(), ..TurnContext::default() };
    hub.run_turn(&key(), "Hi", context).await.unwrap();
    hub.close_all().await;
    let mut out = Vec::new();
    let mut written = Vec::new();
    let mut numbers = Vec::new();
    let shown = hub.store().frames(&key(), FrameNo(0), &mut |frame| {
        numbers.push(frame.no.0);
        match frame.dir {
            Direction::Out => out.extend_from_slice(frame.bytes),
            Direction::In => written.extend_from_slice(frame.bytes),
            Direction::Stderr => {}
        }
        ControlFlow::Continue(())
    });
    assert!(shown.unwrap() > 4);
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    let text = String::from_utf8_lossy(&out);
    assert!(text.contains("not json\n"), "{text}");
    assert!(out.windows(5).any(|bytes| bytes == b"\xff\xfe\x00\r\n"));
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains("\"initialize\"") && written.contains("\"Hi\""), "{written}");
}

#[tokio::test]
async fn an_approval_is_answered_once_and_a_late_answer_is_told_by_whom() {
    let bench = Bench::new("ask-permission Bash {\"command\":\"touch x\"}\nsay Done.");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    let request = until(&mut live, |event| match &event.kind {
        Kind::RequestOpened(request) => Some(request.id.clone()),
        _ => None,
    })
    .await;
    assert_eq!(hub.store().open_requests(&key()).unwrap().len(), 1);
    conversation.answer(&request, Answer::allow(), Origin::Human, None).await.unwrap();
    until_end(&mut live, &turn).await;
    let late = conversation.answer(&request, Answer::deny("no"), Origin::Human, None).await;
    let late = late.unwrap_err().to_string();
    assert!(late.contains("already resolved: allowed by human"), "{late}");
    let unknown = conversation.answer(&"nobody".into(), Answer::allow(), Origin::Human, None).await;
    assert!(matches!(unknown, Err(Error::NoRequest(_))));
    assert!(hub.store().open_requests(&key()).unwrap().is_empty());
    hub.close_all().await;
}

#[tokio::test]
async fn policies_answer_when_nobody_is_there() {
    let script = "ask-permission Bash {\"command\":\"touch x\"}\nsay Done.";
    for wire in [Wire::Claude, Wire::App, Wire::Proto] {
        for (policy, expected) in
            [(OnRequest::Deny, ItemStatus::Denied), (OnRequest::Allow, ItemStatus::Ok)]
        {
            let bench = Bench::on(wire, script);
            let hub = bench.hub();
            let context = TurnContext {
                open: bench.open_options(),
                on_request: policy,
                ..TurnContext::default()
            };
            let outcome = hub.run_turn(&key(), "go", context).await.unwrap();
            assert_eq!(outcome.text, "Done.", "{wire:?}");
            let (_conversation, mut live) = bench.open(&hub).await;
            let (events, ..) = until_end(&mut live, &"t1".into()).await;
            let status = events.iter().find_map(|event| match &event.kind {
                Kind::ItemCompleted(item) if item.body.name() == "command" => Some(item.status),
                _ => None,
            });
            assert_eq!(status, Some(expected), "{wire:?}");
            let by_policy = events.iter().any(
                |event| matches!(&event.kind, Kind::RequestResolved(it) if it.policy.is_some()),
            );
            assert!(by_policy, "{wire:?}: the event says so");
            hub.close_all().await;
        }
        let bench = Bench::on(wire, script);
        let hub = bench.hub();
        let context = TurnContext {
            open: bench.open_options(),
            on_request: OnRequest::Fail,
            ..TurnContext::default()
        };
        let error = hub.run_turn(&key(), "go", context).await.unwrap_err();
        assert!(matches!(error, TurnError::AnswerNeeded(_)), "{wire:?}: {error}");
        assert!(hub.store().open_requests(&key()).unwrap().is_empty(), "{wire:?}");
        hub.close_all().await;
        bench.nobody_is_left().await;
    }
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_the_next_one_works() {
    let bench = Bench::new("say Wait.\nsilence\n---\nsay Back again.");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    assert!(matches!(conversation.interrupt().await, Err(Error::NoTurn)));
    let turn = conversation.start_turn(Prompt::text("go")).await.unwrap();
    until(&mut live, |event| is_message(event).then_some(())).await;
    conversation.interrupt().await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!((end.status, end.signal), (TurnStatus::Interrupted, EndSignal::Wire));
    let turn = conversation.start_turn(Prompt::text("and now?")).await.unwrap();
    let (_, _, end) = until_end(&mut live, &turn).await;
    assert_eq!(end.text.preview(), "Back again.");
    hub.close_all().await;
}

#[tokio::test]
async fn turns_wait_for_each_other_and_the_same_key_starts_one_turn() {
    let bench = Bench::new("sleep 100\nsay A.\n---\nsay B.");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let prompt = |text: &str| Prompt { idempotency_key: Some(text.into()), ..Prompt::text(text) };
    let first = conversation.start_turn(prompt("a")).await.unwrap();
    let (second, again) =
        tokio::join!(conversation.start_turn(prompt("b")), conversation.start_turn(prompt("a")));
    assert_eq!(again.unwrap(), first);
    let second = second.unwrap();
    assert_ne!(second, first);
    let (events, _, end) = until_end(&mut live, &second).await;
    assert_eq!(end.text.preview(), "B.");
    let turns: Vec<_> = events
        .iter()
        .filter(|event| matches!(event.kind, Kind::TurnStarted(_) | Kind::TurnCompleted(_)))
        .map(|event| event.turn.as_ref().unwrap().as_str())
        .collect();
    assert_eq!(turns, ["t1", "t1", "t2", "t2"]);
    hub.close_all().await;
}

#[tokio::test]
async fn an_idle_agent_sleeps_and_wakes_with_its_session() {
    let bench = Bench::new("say Hello.");
    let limits = Limits { idle: Duration::from_millis(50), ..quick() };
    let hub = bench.hub_with(limits, Options::default());
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("one")).await.unwrap();
    until_end(&mut live, &turn).await;
    let why = until(&mut live, |event| match &event.kind {
        Kind::ProcessExited(it) => Some(it.stopped.clone()),
        _ => None,
    })
    .await;
    assert_eq!(why.as_deref(), Some("idle"));
    bench.nobody_is_left().await;
    let session = hub.store().conversation(&key()).unwrap().unwrap().native_session.unwrap();
    let turn = conversation.start_turn(Prompt::text("two")).await.unwrap();
    let (events, ..) = until_end(&mut live, &turn).await;
    let args = events.iter().find_map(|event| match &event.kind {
        Kind::ProcessSpawned(it) => Some(it.args.clone()),
        _ => None,
    });
    let args = args.expect("a new process");
    let at = args.iter().position(|arg| arg == "--resume").unwrap();
    assert_eq!(args[at + 1], session);
    hub.close_all().await;
}

#[tokio::test]
async fn a_reset_forgets_the_session_and_keeps_the_history() {
    let bench = Bench::new("say Hello.");
    let hub = bench.hub();
    let context = || TurnContext { open: bench.open_options(), ..TurnContext::default() };
    hub.run_turn(&key(), "one", context()).await.unwrap();
    hub.start_new_session(&key()).await.unwrap();
    let row = hub.store().conversation(&key()).unwrap().unwrap();
    assert_eq!((row.native_session, row.next_turn), (None, 2));
    assert!(row.next_seq > Seq(5));
    let outcome = hub.run_turn(&key(), "two", context()).await.unwrap();
    assert_eq!(outcome.turn.as_str(), "t2");
    hub.close_all().await;
}

#[tokio::test]
async fn mode_and_model_are_kept_for_the_next_owner() {
    let bench = Bench::new("say Hello.");
    let hub = bench.hub();
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("one")).await.unwrap();
    until_end(&mut live, &turn).await;
    conversation.set_mode(Mode::Plan).await.unwrap();
    conversation.set_model("opus".into()).await.unwrap();
    hub.close_all().await;
    let row = hub.store().conversation(&key()).unwrap().unwrap();
    assert_eq!((row.mode, row.model.as_deref()), (Mode::Plan, Some("opus")));
    let (conversation, mut live) = bench.open(&hub).await;
    let turn = conversation.start_turn(Prompt::text("two")).await.unwrap();
    let (events, ..) = until_end(&mut live, &turn).await;
    let args = events.iter().rev().find_map(|event| match &event.kind {
        Kind::ProcessSpawned(it) => Some(it.args.join(" ")),
        _ => None,
    });
    let args = args.unwrap();
    assert!(args.contains("--permission-mode plan --model opus --resume"), "{args}");
    hub.close_all().await;
}

#[tokio::test]
async fn a_process_for_each_turn_gets_its_prompt_on_stdin() {
    let bench = Bench::new("say Hello.").one_process_per_turn();
    let hub = bench.hub();
    let context = || TurnContext { open: bench.open_options(), ..TurnContext::default() };
    for turn in ["t1", "t2"] {
        let outcome = hub.run_turn(&key(), "--help", context()).await.unwrap();
        assert_eq!((outcome.turn.as_str(), outcome.text.as_str()), (turn, "Hello."));
    }
    hub.close_all().await;
    bench.nobody_is_left().await;
}

#[tokio::test]
async fn another_agent_on_the_same_key_is_refused() {
    let bench = Bench::new("say Hello.");
    let hub = bench.hub();
    let (_conversation, _) = bench.open(&hub).await;
    let mut options = bench.open_options();
    options.agent = Some("codex".into());
    let error = hub.conversation(&key(), options).await.unwrap_err().to_string();
    assert!(error.contains("belongs to the agent claude, not codex"), "{error}");
    hub.close_all().await;
}

#[tokio::test]
async fn five_hundred_hostile_prompts_never_change_the_command_line() {
    let dump = tempfile::NamedTempFile::new().unwrap();
    let path = dump.path().display();
    let bench = Bench::new(&format!("dump-argv {path}\nsay ok")).one_process_per_turn();
    let hub = bench.hub();
    let hostile = [
        "--help",
        "-",
        "--",
        "-p",
        "--resume=x",
        "- [ ] todo",
        "\0",
        "a\0b",
        "\n",
        "a\nb\r\n",
        "$(id)",
        "`id`",
        "'; id; '",
        "\"",
        "\\",
        "*",
        "~",
        "%s%n",
        "\u{202e}",
        "\u{1b}[31m",
        "--dangerously-skip-permissions",
        "--model=evil",
        "@/etc/passwd",
        "",
        " ",
    ];
    let mut expected = None;
    for n in 0..500 {
        let prompt = format!("{}{}", hostile[n % hostile.len()], "x".repeat(n / hostile.len()));
        let context = TurnContext { open: bench.open_options(), ..TurnContext::default() };
        hub.run_turn(&key(), prompt.as_str(), context).await.unwrap();
        let argv = std::fs::read(dump.path()).unwrap();
        if n > 0 {
            // From the second turn on the session is resumed, always the same one.
            let expected = expected.get_or_insert_with(|| argv.clone());
            assert_eq!(argv, *expected, "{prompt:?}");
        }
        let needle = prompt.trim();
        if needle.len() > 3 {
            let argv = String::from_utf8_lossy(&argv);
            let mut words = argv.split('\0');
            assert!(!words.any(|word| word == needle), "{prompt:?} is in {argv:?}");
        }
    }
    hub.close_all().await;
}
