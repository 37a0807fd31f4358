//! Commands that go on between calls, most of them on a terminal.

use tieline_engine::exec::{Cause, Error, Limits};

use super::*;

#[tokio::test]
async fn a_command_that_ends_in_time_gives_its_code_and_no_number() {
    let yielded = commands().exec(shell("echo hi; exit 7"), Some(LIMIT)).await.unwrap();
    let State::Ended(ran) = yielded.state else { panic!("{:?}", yielded.state) };
    assert_text(&yielded.output, "hi\n");
    assert_eq!(ran.ended.code(), 7);
}

#[tokio::test]
async fn a_terminal_is_one_and_has_the_size_it_was_given() {
    let commands = commands();
    let line = "python3 -c 'import sys; print([f.isatty() for f in \
                (sys.stdin, sys.stdout, sys.stderr)])'; stty size";
    let yielded = commands.exec(on_terminal(line), Some(LIMIT)).await.unwrap();
    assert_text(&yielded.output, "[True, True, True]\r\n33 111\r\n");
    let line = "test -t 0 || test -t 1 || test -t 2 || echo none";
    assert_text(&commands.run(shell(line)).await.unwrap().output, "none\n");
}

#[tokio::test]
async fn a_repl_is_fed_line_by_line() {
    let commands = commands();
    let mut start = on_terminal("exec python3 -q -i");
    // Its newer versions paint their prompt on a terminal that can be painted on.
    start.env.set("TERM", "dumb").set("PYTHON_BASIC_REPL", "1");
    let id = background(&commands, start).await;
    assert_eq!(say(&commands, id, "", ">>> ").await, ">>> ");
    assert_eq!(say(&commands, id, "x = 6 * 7\n", ">>> ").await, "x = 6 * 7\r\n>>> ");
    assert_eq!(say(&commands, id, "x\n", ">>> ").await, "x\r\n42\r\n>>> ");
    assert_eq!(finish(&commands, id, "exit(3)\n").await.1.code(), 3);
    let again = commands.write(id, b"", None).await.unwrap_err();
    assert_eq!(again, Error::UnknownSession { id });
}

#[tokio::test]
async fn control_characters_end_input_and_programs() {
    let commands = commands();
    let id = background(&commands, on_terminal("stty -echo; echo on; cat; echo end")).await;
    say(&commands, id, "", "on\r\n").await;
    assert_eq!(say(&commands, id, "line\n", "line\r\n").await, "line\r\n");
    let (said, ended) = finish(&commands, id, "\x04").await;
    assert_eq!((said.as_str(), ended.code()), ("end\r\n", 0));

    let id = background(&commands, on_terminal("stty -echo; echo on; exec cat")).await;
    say(&commands, id, "", "on\r\n").await;
    let (_, ended) = finish(&commands, id, "\x03").await;
    assert_eq!((ended.code(), ended.cause), (128 + 2, Cause::Itself));
}

#[tokio::test]
async fn a_terminal_can_be_resized() {
    let commands = commands();
    let id = background(&commands, on_terminal("echo on; read line; stty size")).await;
    say(&commands, id, "", "on\r\n").await;
    commands.resize(id, TerminalSize { rows: 5, columns: 6 }).await.unwrap();
    assert_eq!(say(&commands, id, "\n", "5 6\r\n").await, "\r\n5 6\r\n");
}

#[tokio::test]
async fn a_pipe_can_be_written_to_and_ended_and_no_input_cannot() {
    let commands = commands();
    let mut start = shell("cat; echo end");
    start.input = Input::Pipe;
    let id = background(&commands, start).await;
    assert_eq!(say(&commands, id, "hello\n", "hello\n").await, "hello\n");
    commands.end_input(id).await.unwrap();
    assert_eq!(finish(&commands, id, "").await.0, "end\n");

    let id = background(&commands, shell("sleep 1000")).await;
    let refused = commands.write(id, b"x", None).await.unwrap_err();
    assert_eq!(refused, Error::NoInput { id });
}

#[tokio::test]
async fn input_that_nobody_reads_is_refused_in_the_end() {
    let commands = commands();
    let mut start = shell("sleep 1000");
    start.input = Input::Pipe;
    let id = background(&commands, start).await;
    let block = vec![b'x'; 1024 * 1024];
    let mut refused = None;
    for _ in 0..100 {
        if let Err(error) = commands.write(id, &block, Some(Duration::from_millis(5))).await {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused, Some(Error::InputFull { id }));
}

#[tokio::test]
async fn a_session_that_ended_between_calls_tells_its_end() {
    let commands = commands();
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    // It ends after the call that lets it go on, however long that takes.
    let script = format!(
        "read line; until [ -e {} ]; do sleep 0.01; done; echo late; exit 4",
        gate.display()
    );
    let (start, mut updates) = listened(on_terminal(&script), 64);
    let id = background(&commands, start).await;
    commands.write(id, b"\n", Some(Duration::ZERO)).await.unwrap();
    std::fs::write(&gate, "").unwrap();
    while !matches!(updates.recv().await.unwrap(), Update::Ended(_)) {}
    let yielded = commands.write(id, b"too late\n", Some(LIMIT)).await.unwrap();
    let State::Ended(ran) = yielded.state else { panic!("{:?}", yielded.state) };
    assert_eq!(ran.ended.code(), 4);
    assert!(ran.output.text.ends_with("late\r\n"));
}

#[tokio::test]
async fn sixty_four_run_and_the_next_is_refused_until_one_has_ended() {
    let mark = Mark::new();
    let commands = commands();
    let mut ids = Vec::new();
    for n in 0..64 {
        let start = mark.on(on_terminal("stty -echo; read line; echo \"<$line>\""));
        let id = background(&commands, start).await;
        assert_eq!(id, SessionId(n + 1));
        ids.push(id);
    }
    mark.assert_living(64).await;
    assert_eq!(commands.sessions().len(), 64);
    let error = commands.run(shell("true")).await.unwrap_err();
    assert_eq!(error, Error::TooMany { max: 64 });
    assert!(error.to_string().starts_with("64 commands are still running"));
    // The last word of each comes from its own command.
    for id in &ids[1..] {
        let (said, ended) = finish(&commands, *id, &format!("{id}\n")).await;
        assert!(said.ends_with(&format!("<{id}>\r\n")), "{id}: {said:?}");
        assert_eq!(ended.code(), 0);
    }
    assert_eq!(commands.run(shell("true")).await.unwrap().ended.code(), 0);
    commands.close().await;
    mark.assert_none();
}

#[tokio::test]
async fn the_oldest_that_has_ended_makes_room() {
    let commands = with(Limits { max_commands: 2, min_yield: Duration::ZERO, ..Limits::default() });
    let (start, mut updates) = listened(on_terminal("read line"), 64);
    let first = background(&commands, start).await;
    let second = background(&commands, shell("sleep 1000")).await;
    commands.write(first, b"\n", Some(Duration::ZERO)).await.unwrap();
    while !matches!(updates.recv().await.unwrap(), Update::Ended(_)) {}
    let third = background(&commands, shell("sleep 1000")).await;
    assert_eq!([first, second, third], [1, 2, 3].map(SessionId));
    let lost = commands.write(first, b"", None).await.unwrap_err();
    assert_eq!(lost, Error::UnknownSession { id: first });
    let full = commands.exec(shell("true"), None).await.unwrap_err();
    assert_eq!(full, Error::TooMany { max: 2 });
}

#[tokio::test]
async fn the_wait_of_a_call_is_neither_too_short_nor_too_long() {
    let limits = Limits {
        min_yield: Duration::from_millis(30),
        max_yield: Duration::from_millis(60),
        ..Limits::default()
    };
    let commands = with(limits);
    let short = commands.exec(shell("sleep 1000"), Some(Duration::ZERO)).await.unwrap();
    assert!(short.waited >= Duration::from_millis(30), "{:?}", short.waited);
    // It would otherwise wait for ever.
    let long = commands.exec(shell("sleep 1000"), Some(Duration::MAX / 4));
    let long = tokio::time::timeout(LIMIT, long).await.unwrap().unwrap();
    assert!(matches!(long.state, State::Running(_)));
}
