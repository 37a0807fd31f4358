//! How commands are ended, and that nobody is left.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::Arc;

use tieline_engine::exec::{Cause, Error, Limits};

use super::*;

/// Leaves processes in every way a shell can.
const TREE: &str = "trap '' TERM; (setsid sh -c 'trap \"\" TERM HUP; sleep 1000' &); \
                    nohup sleep 1000 >/dev/null 2>&1 & sleep 1000 & echo ready; sleep 1000";

/// How many processes that is: two shells and four sleeps.
const N_TREE: usize = 6;

async fn ready(updates: &mut mpsc::Receiver<Update>) {
    let mut said = Vec::new();
    while !said.windows(5).any(|it| it == b"ready") {
        match updates.recv().await.unwrap() {
            Update::Output { bytes, .. } => said.extend(bytes),
            Update::Ended(ended) => panic!("{ended:?}"),
        }
    }
}

#[tokio::test]
async fn a_command_whose_time_is_over_is_ended_with_what_it_printed() {
    let mark = Mark::new();
    let commands = with(Limits { stop_grace: Duration::from_millis(50), ..Limits::default() });
    let mut start = mark.on(shell("echo early; sleep 1000"));
    start.timeout = Some(Duration::from_millis(300));
    let ran = commands.run(start).await.unwrap();
    assert_eq!(ran.ended.code(), 124);
    assert_eq!(ran.ended.cause, Cause::TimedOut { limit: Duration::from_millis(300) });
    assert_text(&ran.output, "early\n");
    let told = ran.to_model(1000);
    assert!(told.starts_with("Exit code: 124\nWall time: "), "{told}");
    assert!(told.ends_with("Output:\ncommand timed out after 300 milliseconds\nearly\n"), "{told}");
    mark.assert_none();
}

#[tokio::test]
async fn an_interrupt_ends_what_calls_wait_for_and_gives_what_was_printed() {
    let mark = Mark::new();
    let commands = Arc::new(commands());
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..4 {
        let (mut start, mut updates) = listened(mark.on(shell(TREE)), 64);
        start.timeout = Some(LIMIT);
        let commands = Arc::clone(&commands);
        let (sender, is_ready) = tokio::sync::oneshot::channel();
        calls.spawn(async move {
            match n % 2 {
                0 => commands.run(start).await.unwrap(),
                _ => match commands.exec(start, Some(LIMIT)).await.unwrap().state {
                    State::Ended(ran) => *ran,
                    state => panic!("{state:?}"),
                },
            }
        });
        tokio::spawn(async move {
            ready(&mut updates).await;
            sender.send(()).unwrap();
            while updates.recv().await.is_some() {}
        });
        is_ready.await.unwrap();
    }
    mark.assert_living(4 * N_TREE).await;
    commands.interrupt();
    while let Some(ran) = calls.join_next().await {
        let ran = ran.unwrap();
        assert_eq!(ran.ended.cause, Cause::Interrupted);
        assert_text(&ran.output, "ready\n");
        assert!(ran.ended.elapsed < LIMIT);
    }
    // Each call returns only when nobody is left of its command.
    mark.assert_none();
}

#[tokio::test]
async fn a_command_in_the_background_survives_an_interrupt_but_its_call_returns() {
    let mark = Mark::new();
    let commands = Arc::new(commands());
    let id = background(&commands, mark.on(on_terminal("echo on; read line; echo $line"))).await;
    say(&commands, id, "", "on\r\n").await;
    let waiting = {
        let commands = Arc::clone(&commands);
        tokio::spawn(async move { commands.write(id, b"", Some(LIMIT)).await })
    };
    // Until the call waits, an interrupt is none of its business.
    let yielded = loop {
        commands.interrupt();
        tokio::task::yield_now().await;
        if waiting.is_finished() {
            break waiting.await.unwrap().unwrap();
        }
    };
    assert!(matches!(yielded.state, State::Interrupted(it) if it == id));
    mark.assert_living(1).await;
    assert!(say(&commands, id, "still\n", "still\r\n").await.ends_with("still\r\n"));
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_its_command() {
    let mark = Mark::new();
    let commands = commands();
    let (start, mut updates) = listened(mark.on(shell(TREE)), 64);
    tokio::select! {
        _ = commands.exec(start, Some(LIMIT)) => panic!("it does not end"),
        () = ready(&mut updates) => {}
    }
    mark.assert_living(0).await;
    // Given up at any moment of the start, too.
    for step in 0..20 {
        let start = commands.run(mark.on(shell("sleep 1000")));
        drop(tokio::time::timeout(Duration::from_micros(step * 300), start).await);
    }
    mark.assert_living(0).await;
    assert_eq!(commands.sessions(), []);
}

#[tokio::test]
async fn clean_ends_the_background_and_nothing_else() {
    let mark = Mark::new();
    let commands = Arc::new(commands());
    let id = background(&commands, mark.on(shell(TREE))).await;
    background(&commands, mark.on(on_terminal(TREE))).await;
    commands.run(mark.on(shell("setsid sleep 1000 >/dev/null 2>&1 &"))).await.unwrap();
    mark.assert_living(2 * N_TREE + 1).await;
    let kept = Mark::new();
    let (mut start, mut updates) = listened(kept.on(shell("echo ready; read line")), 64);
    start.input = Input::Pipe;
    let call = {
        let commands = Arc::clone(&commands);
        tokio::spawn(async move { commands.exec(start, Some(LIMIT)).await })
    };
    ready(&mut updates).await;
    commands.clean().await;
    mark.assert_none();
    assert_eq!(kept.living().len(), 1);
    let error = commands.write(id, b"", None).await.unwrap_err();
    assert_eq!(error, Error::UnknownSession { id });
    commands.interrupt();
    call.await.unwrap().unwrap();
    kept.assert_none();
}

#[tokio::test]
async fn the_end_of_the_session_is_the_end_of_everybody() {
    let mark = Mark::new();
    for how in ["close", "drop"] {
        let commands = commands();
        for start in [shell(TREE), on_terminal(TREE)] {
            background(&commands, mark.on(start)).await;
        }
        let daemon = "(setsid sleep 1000 &) >/dev/null 2>&1";
        commands.run(mark.on(shell(daemon))).await.unwrap();
        mark.assert_living(2 * N_TREE + 1).await;
        if how == "close" {
            commands.close().await;
            mark.assert_none();
        } else {
            drop(commands);
            mark.assert_living(0).await;
        }
    }
}

#[tokio::test]
async fn nobody_is_alive_after_the_owner_was_killed() {
    let mark = Mark::new();
    #[expect(clippy::disallowed_methods, reason = "this one must not be ours, it is killed")]
    let mut owner = std::process::Command::new(probe())
        .args(["own", &mark.0])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let stderr = owner.stderr.take().map(|mut it| it.read_to_string(&mut String::new()));
    assert_eq!(line, "ready\n", "{stderr:?}");
    mark.assert_living(3 * 3 + 1).await;
    owner.kill().unwrap();
    owner.wait().unwrap();
    mark.assert_living(0).await;
}

#[tokio::test]
async fn many_short_commands_leave_nothing_in_the_table() {
    let commands = commands();
    for n in 0..100 {
        let ran = commands.run(shell(&format!("echo {n}"))).await.unwrap();
        assert_text(&ran.output, &format!("{n}\n"));
    }
    assert_eq!(commands.sessions(), []);
}
