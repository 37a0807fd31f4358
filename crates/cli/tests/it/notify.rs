use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tieline_agent::Agent;
use tieline_engine::model::Provider;
use tieline_engine::scripted::{self, Playing};
use tieline_engine::{Engine, Settings};
use tieline_event::{ConversationKey, Failure, Kind, Prompt, Seq, TurnCompleted, TurnStatus};
use tieline_front::notify::Socket;
use tieline_hub::{Conversation, Entry, Hub, Limits, OpenOptions, Registry, Shown};
use tieline_store::{Options, Store};

use crate::tieline::{Outcome, Tieline};

fn end_of_turn(session: &str, text: &str) -> String {
    json!({
        "type": "agent-turn-complete", "thread-id": session, "turn-id": "sub-1", "cwd": "/w",
        "input-messages": ["hi"], "last-assistant-message": text,
    })
    .to_string()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn what_is_no_object_is_wrong_usage() {
    let tieline = Tieline::new();
    let file = tieline.path("turns.jsonl");
    for bad in ["", "7", "[]", "\"x\"", "null", "{", "{}{}", "hello"] {
        for place in [&[][..], &["--file", text(&file)], &["--socket", "/no/such"]] {
            let outcome = tieline.run(&[&["notify"], place, &[bad]].concat()).ends_with(2);
            assert!(outcome.err.contains("must be a JSON object"), "{}", outcome.err);
        }
    }
    assert!(!file.exists());
    tieline.run(&["notify"]).ends_with(2);
    tieline.run(&["notify", "--file", "a", "--fifo", "b", "{}"]).ends_with(2);
    tieline.run(&["notify", "--file", "a", "--socket", "b", "{}"]).ends_with(2);
}

#[test]
fn a_file_gets_one_private_line_for_each() {
    let tieline = Tieline::new();
    let file = tieline.path("turns.jsonl");
    let first = end_of_turn("s", "one\ntwo");
    tieline.run(&["notify", "--file", text(&file), &first]).succeeds();
    let pretty = "{\n  \"type\": \"other\",\r\n  \"n\": 1e2\n}\n";
    tieline.run(&["notify", "--file", text(&file), pretty]).succeeds();
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, format!("{first}\n{{   \"type\": \"other\",    \"n\": 1e2 }}\n"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let lines: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["last-assistant-message"], "one\ntwo");

    for bad in [tieline.work(), tieline.path("no/such/file")] {
        let outcome = tieline.run(&["notify", "--file", text(&bad), "{}"]).ends_with(1);
        assert!(outcome.err.contains(text(&bad)), "{}", outcome.err);
    }
}

#[allow(clippy::disallowed_methods)] // the system's own program makes one on every system
fn fifo(tieline: &Tieline) -> PathBuf {
    let path = tieline.path("turns.fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn the_reader_of_a_fifo_gets_the_line() {
    let tieline = Tieline::new();
    let path = fifo(&tieline);
    // More than the pipe holds, so that the writer has to wait for us.
    let long = end_of_turn("s", &"x".repeat(100_000));
    let child = tieline.spawn(&["notify", "--fifo", text(&path), &long]);
    let mut read = String::new();
    fs::File::open(&path).unwrap().read_to_string(&mut read).unwrap();
    Outcome::from(child.wait_with_output().unwrap()).succeeds();
    assert_eq!(read, format!("{long}\n"));
}

#[test]
fn lines_of_two_writers_of_a_fifo_do_not_mix() {
    let tieline = Tieline::new();
    let path = fifo(&tieline);
    let line = |letter: &str| end_of_turn("s", &letter.repeat(100_000));
    // Held open, so that the end of one writer is not the end of the reading.
    let mut reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let spawn = |letter| tieline.spawn(&["notify", "--fifo", text(&path), &line(letter)]);
    let children = [spawn("a"), spawn("b")];
    let mut read = vec![0; 2 * (line("a").len() + 1)];
    reader.read_exact(&mut read).unwrap();
    for child in children {
        Outcome::from(child.wait_with_output().unwrap()).succeeds();
    }
    let read = String::from_utf8(read).unwrap();
    let mut lines: Vec<&str> = read.lines().collect();
    lines.sort_unstable();
    assert!(lines == [line("a"), line("b")], "mixed");
}

#[test]
fn a_fifo_that_nobody_reads_is_given_up() {
    let tieline = Tieline::new();
    let path = fifo(&tieline);
    let outcome = tieline.run(&["notify", "--fifo", text(&path), "{}"]).ends_with(1);
    assert!(outcome.err.contains("nobody reads"), "{}", outcome.err);
    // Nor does somebody who has it open and does not read hold us up.
    let _reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let long = end_of_turn("s", &"x".repeat(100_000));
    let outcome = tieline.run(&["notify", "--fifo", text(&path), &long]).ends_with(1);
    assert!(outcome.err.contains("nobody reads"), "{}", outcome.err);
    // The two options are not each other's.
    let outcome = tieline.run(&["notify", "--file", text(&path), "{}"]).ends_with(1);
    assert!(outcome.err.contains("--fifo"), "{}", outcome.err);
    let file = tieline.path("file");
    fs::write(&file, "").unwrap();
    let outcome = tieline.run(&["notify", "--fifo", text(&file), "{}"]).ends_with(1);
    assert!(outcome.err.contains("is not a FIFO"), "{}", outcome.err);
    tieline.run(&["notify", "--fifo", "/no/such/fifo", "{}"]).ends_with(1);
}

#[test]
fn nobody_there_is_code_1() {
    let tieline = Tieline::new();
    let outcome = tieline.run(&["notify", "{}"]).ends_with(1);
    assert!(outcome.err.contains("no running tieline"), "{}", outcome.err);
    let outcome = tieline.run(&["notify", "--socket", "/no/such.sock", "{}"]).ends_with(1);
    assert!(outcome.err.contains("/no/such.sock"), "{}", outcome.err);
    let tieline = tieline.with("TIELINE_NOTIFY_SOCKET", "/no/such.sock");
    let outcome = tieline.run(&["notify", "{}"]).ends_with(1);
    assert!(outcome.err.contains("/no/such.sock"), "{}", outcome.err);
    assert_eq!(outcome.err.lines().count(), 1, "{}", outcome.err);
}

#[test]
fn the_socket_of_a_dead_process_is_passed_over_and_removed() {
    let tieline = Tieline::new();
    let dir = tieline.store().join("notify");
    fs::create_dir_all(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let mut dead = tieline.spawn(&["--version"]);
    dead.wait().unwrap();
    let stale = dir.join(format!("{}.sock", dead.id()));
    drop(UnixListener::bind(&stale).unwrap());
    let ours = dir.join(format!("{}.sock", std::process::id()));
    drop(UnixListener::bind(&ours).unwrap());
    let other = dir.join("notes.txt");
    fs::write(&other, "").unwrap();
    let outcome = tieline.run(&["notify", "{}"]).ends_with(1);
    assert!(outcome.err.contains(text(&stale)), "{}", outcome.err);
    assert!(!stale.exists(), "its process is dead");
    assert!(ours.exists(), "its process lives and may be about to listen");
    assert!(other.exists());
}

#[test]
fn who_does_not_answer_did_not_take_it() {
    let tieline = Tieline::new();
    let path = tieline.path("mute.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let hangs_up = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let outcome = tieline.run(&["notify", "--socket", text(&path), "{}"]).ends_with(1);
    assert!(outcome.err.contains("mute.sock"), "{}", outcome.err);
    hangs_up.join().unwrap();
}

/// A demo agent with a script of its own.
struct Scripted(PathBuf);

impl Registry for Scripted {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        let playing = Playing { file: Some(self.0.clone()), fast: true };
        let provider = Provider::scripted("demo", playing);
        let settings = Settings::new(provider, scripted::MODEL);
        Ok(Arc::new(Engine::new("demo", settings)))
    }
}

/// A hub whose agent says something and then nothing for ever, with a turn that has come so far.
async fn silent_turn(tieline: &Tieline) -> (Hub, Conversation, String) {
    tieline_proc::set_host_program(env!("CARGO_BIN_EXE_tieline").into());
    let script = tieline.path("script");
    fs::write(&script, "say Hello.\nsleep 1000000\n").unwrap();
    let store = Store::open(&tieline.store(), Options::default()).unwrap();
    let hub = Hub::new(store, Arc::new(Scripted(script)), Limits::default());
    let options = OpenOptions {
        agent: Some("demo".to_owned()),
        workspace: Some(tieline.work()),
        ..OpenOptions::default()
    };
    let key = ConversationKey::new("k").unwrap();
    let conversation = hub.conversation(&key, options).await.unwrap();
    conversation.start_turn(Prompt::text("hi")).await.unwrap();
    until(&conversation, |kind| matches!(kind, Kind::ItemCompleted(item) if is_message(item)))
        .await;
    let row = hub.store().conversation(&key).unwrap().unwrap();
    (hub, conversation, row.native_session.unwrap())
}

fn is_message(item: &tieline_event::Item) -> bool {
    matches!(item.body, tieline_event::ItemBody::AgentMessage { .. })
}

/// Reads on until an event is there.
async fn until(conversation: &Conversation, wanted: impl Fn(&Kind) -> bool) -> Kind {
    let mut subscription = conversation.subscribe(Seq(0));
    let reading = async {
        loop {
            for entry in subscription.next().await.unwrap() {
                if let Entry::Event(shown) = entry
                    && wanted(&kind_of(&shown))
                {
                    return kind_of(&shown);
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap()
}

fn kind_of(shown: &Shown) -> Kind {
    shown.event.kind.clone()
}

async fn notify(tieline: &Tieline, args: &[&str]) -> Outcome {
    let mut command = tieline.command(&[&["notify"], args].concat());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap().into()
}

#[tokio::test]
async fn a_notification_ends_the_turn_of_its_session_and_of_no_other() {
    let tieline = Tieline::new();
    let (hub, conversation, session) = silent_turn(&tieline).await;
    let socket = Socket::bind(&tieline.store()).unwrap();
    let path = socket.path().to_owned();
    assert!(path.metadata().unwrap().file_type().is_socket());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let listening = socket.listen(hub.clone()).unwrap();

    // These are taken and mean nothing.
    notify(&tieline, &[&end_of_turn("another", "Not mine.")]).await.succeeds();
    notify(&tieline, &[r#"{"type":"approval-requested"}"#]).await.succeeds();
    notify(&tieline, &["{}"]).await.succeeds();
    tokio::time::sleep(Limits::default().notify_grace * 2).await;
    assert!(conversation.last_seq() > Seq(0));
    let row = hub.store().conversation(conversation.key()).unwrap().unwrap();
    let events = hub.store().events(&row.key, Seq(0), 1000).unwrap();
    let ends = events.iter().filter(|event| contains(&event.json, "turn.completed")).count();
    assert_eq!(ends, 0);

    let said = format!("All done.{}", " And more.".repeat(10_000));
    notify(&tieline, &["--socket", text(&path), &end_of_turn(&session, &said)]).await.succeeds();
    let end = until(&conversation, |kind| matches!(kind, Kind::TurnCompleted(_))).await;
    let Kind::TurnCompleted(TurnCompleted { status, .. }) = end else { panic!("{end:?}") };
    assert_eq!(status, TurnStatus::Completed);
    hub.close_all().await;
    drop(listening);
    assert!(!path.exists(), "the socket goes with its owner");
    notify(&tieline, &["{}"]).await.ends_with(1);
}

fn contains(json: &[u8], word: &str) -> bool {
    String::from_utf8_lossy(json).contains(&format!("\"{word}\""))
}

#[tokio::test]
async fn garbage_on_the_socket_is_refused_and_hearing_goes_on() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let tieline = Tieline::new();
    let store = Store::open(&tieline.store(), Options::default()).unwrap();
    let hub = Hub::new(store, Arc::new(Scripted(PathBuf::new())), Limits::default());
    let socket = Socket::bind(&tieline.store()).unwrap();
    let path = socket.path().to_owned();
    let _listening = socket.listen(hub).unwrap();
    let say = async |bytes: &[u8]| -> Value {
        let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        // Who is refused early need not have been read to the end.
        stream.write_all(bytes).await.ok();
        stream.shutdown().await.ok();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok();
        serde_json::from_str(&answer).unwrap_or(Value::Null)
    };
    assert_eq!(say(b"{}\n").await, json!({"taken": true}));
    assert_eq!(say(b"{}").await, json!({"taken": true}), "an end is as good as a newline");
    for bad in [&b"[]\n"[..], b"hello\n", b"", b"\xff\xfe\n"] {
        assert_eq!(say(bad).await["taken"], false);
    }
    let mut long = vec![b' '; (4 << 20) + 10];
    long.push(b'\n');
    assert_ne!(say(&long).await["taken"], true);
    // One that says nothing holds up nobody.
    let _silent = tokio::net::UnixStream::connect(&path).await.unwrap();
    assert_eq!(say(b"{}\n").await, json!({"taken": true}));
}

/// A Codex whose `--version` notes the socket it is told of, and uses it.
fn with_notifying_codex() -> Tieline {
    let tieline = Tieline::new();
    let script = format!(
        "case \"$1\" in --version) ;; *) exit 9;; esac\n\
         echo \"$TIELINE_NOTIFY_SOCKET\" > \"$HOME/socket\"\n\
         '{}' notify '{}' 2> \"$HOME/err\"; echo $? > \"$HOME/code\"\n\
         echo 'codex-cli 0.166.0'",
        env!("CARGO_BIN_EXE_tieline"),
        end_of_turn("s", "x"),
    );
    tieline.with_codex(&script).with_config("[agents.codex]\nnotify = true\n")
}

#[track_caller]
fn noted(tieline: &Tieline, file: &str) -> String {
    fs::read_to_string(tieline.path(file)).unwrap().trim_end().to_owned()
}

#[test]
fn an_agent_of_codex_is_told_our_socket() {
    let tieline = with_notifying_codex().with("TIELINE_NOTIFY_SOCKET", "/somebody/elses.sock");
    let mut child = tieline.spawn(&["run", "--agent", "codex", "hi"]);
    let pid = child.id();
    child.wait().unwrap();
    let socket = noted(&tieline, "socket");
    assert_eq!(socket, text(&tieline.store().join(format!("notify/{pid}.sock"))));
    assert_eq!(noted(&tieline, "code"), "0", "{}", noted(&tieline, "err"));
    assert!(!Path::new(&socket).exists());
}

#[test]
fn a_data_directory_with_a_long_path_has_its_socket_elsewhere() {
    let tieline = with_notifying_codex();
    let store = tieline.path(&"long/".repeat(30));
    let run = ["--store", text(&store), "run", "--agent", "codex", "hi"];
    tieline.run(&run);
    let socket = PathBuf::from(noted(&tieline, "socket"));
    assert_eq!(socket.parent().unwrap().parent().unwrap(), tieline.path(""), "{socket:?}");
    assert_eq!(noted(&tieline, "code"), "0", "{}", noted(&tieline, "err"));
    let dir = socket.parent().unwrap();
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);

    // A directory that others can enter is not ours to use.
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    let tieline = tieline.with_config("[agents.codex]\nnotify = true\n");
    // The version is known by now, unless the program has changed.
    fs::remove_file(store.join("versions.json")).unwrap();
    let outcome = tieline.run(&run);
    assert!(outcome.err.contains("notify is off for this run"), "{}", outcome.err);
    assert!(outcome.err.contains("not private"), "{}", outcome.err);
    assert_eq!(noted(&tieline, "socket"), "");
    assert_eq!(noted(&tieline, "code"), "1");
}
