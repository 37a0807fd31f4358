//! What a command prints, who is told, and what is kept of it.

use tieline_engine::exec::{Cause, Error, Limits, Stream, Update};

use super::*;

/// Runs a command and collects what its listener is told.
async fn told(start: Start) -> (tieline_engine::exec::Ran, Vec<Update>) {
    let (start, mut updates) = listened(start, 4);
    let commands = commands();
    let listen = async {
        let mut all = Vec::new();
        while let Some(update) = updates.recv().await {
            all.push(update);
        }
        all
    };
    let (ran, updates) = tokio::join!(commands.run(start), listen);
    (ran.unwrap(), updates)
}

fn bytes_of(updates: &[Update], wanted: Stream) -> Vec<u8> {
    let pieces = updates.iter().filter_map(|update| match update {
        Update::Output { stream, bytes } if *stream == wanted => Some(bytes.clone()),
        _ => None,
    });
    pieces.collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn streams_are_told_apart_and_kept_together() {
    let line = "echo out; echo err >&2; exit 3";
    let (ran, updates) = told(shell(line)).await;
    assert_text(&ran.stdout, "out\n");
    assert_text(&ran.stderr, "err\n");
    assert_eq!(ran.output.total, 8);
    assert_eq!(bytes_of(&updates, Stream::Stdout), b"out\n");
    assert_eq!(bytes_of(&updates, Stream::Stderr), b"err\n");
    assert_eq!(updates.last(), Some(&Update::Ended(ran.ended)));
    assert_eq!((ran.ended.code(), ran.ended.cause, ran.ended.cut), (3, Cause::Itself, false));
}

#[tokio::test]
async fn output_is_told_before_the_command_ends() {
    let (mut start, mut updates) = listened(shell("echo one; read line; echo $line"), 4);
    start.input = Input::Pipe;
    let commands = commands();
    let id = background(&commands, start).await;
    let one = Update::Output { stream: Stream::Stdout, bytes: b"one\n".to_vec() };
    assert_eq!(updates.recv().await.unwrap(), one);
    commands.write(id, b"two\n", Some(Duration::ZERO)).await.unwrap();
    let two = Update::Output { stream: Stream::Stdout, bytes: b"two\n".to_vec() };
    assert_eq!(updates.recv().await.unwrap(), two);
    let Some(Update::Ended(ended)) = updates.recv().await else { panic!("not ended") };
    assert_eq!(ended.code(), 0);
    assert_eq!(updates.recv().await, None);
}

#[tokio::test]
async fn every_byte_is_told_however_slow_the_listener_is() {
    let (ran, updates) = told(shell("seq 1 200000")).await;
    let expected: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(bytes_of(&updates, Stream::Stdout), expected.as_bytes());
    assert_eq!(ran.ended.withheld, 0);
    assert_eq!(ran.output.total, expected.len() as u64);
    assert!(ran.output.left_out > 0 && ran.output.text.ends_with("\n199999\n200000\n"));
    assert!(ran.output.text.starts_with("1\n2\n3\n"));
}

#[tokio::test]
async fn pieces_over_the_limit_are_counted() {
    let limits = Limits { max_deltas: 3, delta: 10, ..Limits::default() };
    let (start, mut updates) = listened(shell("printf %0100d 7"), 16);
    let ran = with(limits).run(start).await.unwrap();
    assert_eq!(ran.output.total, 100);
    assert_eq!(ran.ended.withheld, 70);
    let mut n_pieces = 0;
    while let Some(Update::Output { bytes, .. }) = updates.recv().await {
        assert_eq!(bytes.len(), 10);
        n_pieces += 1;
    }
    assert_eq!(n_pieces, 3);
}

#[tokio::test]
async fn a_listener_that_takes_nothing_does_not_keep_a_command_alive() {
    let mark = Mark::new();
    let (mut start, _updates) = listened(mark.on(shell("yes")), 1);
    start.timeout = Some(Duration::from_millis(200));
    let ran = commands().run(start).await.unwrap();
    assert_eq!(ran.ended.code(), 124);
    assert!(ran.ended.withheld > 0);
    mark.assert_none();
}

#[tokio::test]
async fn a_listener_that_is_gone_does_not_matter() {
    let (start, updates) = listened(shell("seq 1 100000"), 1);
    drop(updates);
    assert_eq!(commands().run(start).await.unwrap().ended.code(), 0);
}

#[test]
fn a_hundred_megabytes_take_little_memory() {
    #[expect(clippy::disallowed_methods, reason = "the memory of another process is measured")]
    let output = std::process::Command::new(probe()).args(["flood", "100000000"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let (counts, peak) = said.split_once("\npeak ").unwrap();
    let counts: Vec<u64> = counts.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [printed, told, withheld, kept] = counts[..] else { panic!("{said}") };
    assert_eq!((printed, told + withheld), (100_000_000, 100_000_000));
    assert!((1 << 20..(1 << 20) + 100).contains(&kept), "{said}");
    let peak: u32 = peak.trim_end_matches(" kB\n").trim().parse().unwrap();
    assert!(peak < 32 * 1024, "{said}");
}

#[tokio::test]
async fn what_is_no_text_is_replaced_and_told_as_it_is() {
    let (ran, updates) = told(shell(r"printf 'a\377b\303\251\342\202'")).await;
    assert_text(&ran.output, "a\u{fffd}bé\u{fffd}");
    assert_eq!(bytes_of(&updates, Stream::Stdout), b"a\xffb\xc3\xa9\xe2\x82");
}

#[tokio::test]
async fn a_character_in_two_parts_comes_whole_to_the_model() {
    let mut start = shell(r"printf 'a\342'; read line; printf '\202\254b'");
    start.input = Input::Pipe;
    let commands = commands();
    let id = background(&commands, start).await;
    assert_eq!(say(&commands, id, "", "a").await, "a");
    assert_eq!(finish(&commands, id, "go\n").await.0, "€b");
}

#[tokio::test]
async fn what_was_printed_before_the_exit_is_there_though_somebody_holds_the_pipe() {
    let mark = Mark::new();
    let limits = Limits { drain: Duration::from_millis(50), ..Limits::default() };
    let commands = with(limits);
    let line = "echo first; sleep 1000 & echo last";
    let ran = commands.run(mark.on(shell(line))).await.unwrap();
    assert_text(&ran.output, "first\nlast\n");
    assert!(ran.ended.cut);
    assert_eq!(ran.ended.code(), 0);
    mark.assert_living(1).await;
    commands.clean().await;
    mark.assert_none();
}

#[tokio::test]
async fn what_a_command_leaves_running_can_go_on_printing() {
    let directory = tempfile::tempdir().unwrap();
    let flag = directory.path().join("flag");
    let limits = Limits { drain: Duration::from_millis(20), ..Limits::default() };
    let commands = with(limits);
    let line = "(while [ ! -e flag ]; do echo more; sleep 0.01; done; echo yes > done) &";
    let mut start = shell(line);
    start.cwd = directory.path().to_owned();
    let ran = commands.run(start).await.unwrap();
    assert!(ran.ended.cut);
    std::fs::write(flag, "").unwrap();
    let end = Instant::now() + LIMIT;
    while !directory.path().join("done").exists() {
        assert!(Instant::now() < end, "it was killed by its output");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn of_three_hundred_planted_variables_none_is_seen() {
    let planted = (0..300).map(|n| (format!("PLANTED_{n}_KEY").into(), "planted".into()));
    let env = Env::for_tools(planted.chain(std::env::vars_os()), &[]);
    let mut start = shell("env");
    start.env = environment(&env, Input::None);
    let ran = commands().run(start).await.unwrap();
    assert!(!ran.output.text.to_lowercase().contains("planted"), "{}", ran.output.text);
    for line in ["NO_COLOR=1", "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat"] {
        assert!(ran.output.text.lines().any(|it| it == line), "{line}: {}", ran.output.text);
    }
}

#[tokio::test]
async fn a_command_that_cannot_start_says_why_and_takes_no_place() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("plain"), "text").unwrap();
    let commands = with(Limits { max_commands: 1, ..Limits::default() });
    let refused = async |start: Start| commands.run(start).await.unwrap_err().to_string();
    let nowhere = refused(start(&["no-such-program", "x"])).await;
    assert_eq!(
        nowhere,
        "cannot find the program no-such-program: check its name, or give its path"
    );
    assert!(refused(start(&["/no/such/program"])).await.starts_with("cannot find the program /no"));
    let plain = Start { cwd: directory.path().to_owned(), ..start(&["./plain"]) };
    assert!(refused(plain).await.starts_with("./plain is not an executable file"));
    let lost = Start { cwd: "/no/such/directory".into(), ..shell("true") };
    assert!(refused(lost).await.starts_with("cannot start in the directory /no/such/directory: "));
    assert_eq!(commands.run(start(&[])).await.unwrap_err(), Error::Empty);
    let mut broken = shell("true");
    broken.wrap = Some(Box::new(|_, _| Err("no kernel support".into())));
    assert!(refused(broken).await.ends_with("the sandbox cannot be set up: no kernel support"));
    assert_eq!(commands.run(shell("true")).await.unwrap().ended.code(), 0);
}

#[tokio::test]
async fn a_wrapper_is_run_in_place_of_the_command() {
    let mut wrapped = start(&["echo", "hello"]);
    wrapped.wrap = Some(Box::new(|program, args| {
        let mut all = vec!["SEEN=1".into(), program.into_os_string()];
        all.extend(args);
        Ok(("/usr/bin/env".into(), all))
    }));
    assert_text(&commands().run(wrapped).await.unwrap().output, "hello\n");
}

#[tokio::test]
async fn a_program_of_the_workspace_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let tool = directory.path().join("tool");
    std::fs::write(&tool, "#!/bin/sh\necho \"$0 $1\"\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let start = Start { cwd: directory.path().to_owned(), ..start(&["./tool", "x"]) };
    let ran = commands().run(start).await.unwrap();
    assert!(ran.output.text.ends_with("tool x\n"), "{}", ran.output.text);
}
