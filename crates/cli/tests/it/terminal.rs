use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::tieline::Tieline;

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    fn new(tieline: &Tieline, args: &[&str]) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave: OwnedFd = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let size = Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).unwrap();
        let child = tieline
            .command(args)
            .env("TERM", "xterm")
            .stdin(Stdio::from(slave.try_clone().unwrap()))
            .stdout(Stdio::from(slave.try_clone().unwrap()))
            .stderr(Stdio::from(slave))
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let (tx, rx) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when nobody has the other end open any more.
            while let Ok(n) = screen.read(&mut buffer) {
                if n == 0 || tx.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, screen: rx, shown: String::new() }
    }

    /// Waits until this is on the screen, and forgets everything up to it.
    #[track_caller]
    fn sees(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.shown.find(text) {
                let rest = self.shown.split_off(at + text.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            match self.screen.recv_timeout(Duration::from_secs(30)) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(err) => panic!("{err}: {text:?} is not in {:?}", self.shown),
            }
        }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the end: the rest of the screen and the exit code.
    fn ends(mut self) -> (String, Option<i32>) {
        loop {
            match self.screen.recv_timeout(Duration::from_secs(30)) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(err) => panic!("{err} after {:?}", self.shown),
            }
        }
        (self.shown, self.child.wait().unwrap().code())
    }
}

#[test]
fn approvals_are_asked_in_place() {
    let tieline = Tieline::new();
    let mut terminal = Terminal::new(&tieline, &["run", "--agent", "demo", "-c", "k", "hi"]);
    let before = terminal.sees("your choice: ");
    assert!(before.contains("\u{1b}[2m"), "thoughts are dimmed: {before:?}");
    assert!(before.contains("? Change") && before.contains("1 y) Yes"), "{before:?}");
    terminal.types("x");
    terminal.sees("your choice: ");
    terminal.types("s");
    terminal.sees("→ allowed for the session");
    let (rest, code) = terminal.ends();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("— completed") && rest.contains("--conversation k"), "{rest}");
    assert!(tieline.work().join("hello.md").exists());
    let events = tieline.events("k");
    let resolved = events.iter().find(|it| it["kind"] == "request.resolved").unwrap();
    assert_eq!(resolved["data"]["by"], "human");
    assert!(resolved["data"]["policy"].is_null());
}

#[test]
fn a_key_pressed_before_the_question_is_no_answer() {
    let tieline = Tieline::new();
    let mut terminal = Terminal::new(&tieline, &["run", "--agent", "demo", "hi"]);
    terminal.types("y");
    terminal.sees("your choice: ");
    terminal.types("n");
    terminal.sees("→ denied");
    let (rest, code) = terminal.ends();
    assert_eq!(code, Some(0), "{rest}");
    assert!(!tieline.work().join("hello.md").exists());
}

#[test]
fn no_and_stop_ends_the_turn_as_interrupted() {
    let tieline = Tieline::new();
    let mut terminal = Terminal::new(&tieline, &["run", "--agent", "demo", "hi"]);
    terminal.sees("your choice: ");
    terminal.types("q");
    let (rest, code) = terminal.ends();
    assert_eq!(code, Some(4), "{rest}");
    assert!(!tieline.work().join("hello.md").exists());
}

#[test]
fn a_live_line_shows_what_runs_and_goes_away() {
    let tieline = Tieline::new().with_claude("cat > /dev/null & sleep 0.7; exit 9");
    let mut terminal = Terminal::new(&tieline, &["run", "--agent", "claude", "hi"]);
    terminal.sees("working · 0 s");
    terminal.sees("\r\u{1b}[2K");
    let (rest, code) = terminal.ends();
    assert_eq!(code, Some(3), "{rest}");
    let last = rest.rsplit("working").next().unwrap();
    assert!(last.contains("\r\u{1b}[2K"), "the last live line was erased: {rest:?}");
}

#[test]
fn a_wait_for_another_process_is_a_live_line() {
    let tieline = Tieline::new();
    let mut first = Terminal::new(&tieline, &["run", "--agent", "demo", "-c", "k", "hi"]);
    first.sees("your choice: ");
    let mut second = Terminal::new(&tieline, &["run", "-c", "k", "--queue", "hi again"]);
    second.sees("is held by process");
    second.sees(" · 1 s");
    first.types("n");
    assert_eq!(first.ends().1, Some(0));
    let before = second.sees("You said: hi again");
    assert!(before.contains("\r\u{1b}[2K"), "the line is erased: {before:?}");
    assert_eq!(second.ends().1, Some(0));
}

#[test]
fn an_interrupt_while_a_question_is_open_ends_the_turn() {
    let tieline = Tieline::new();
    let mut terminal = Terminal::new(&tieline, &["run", "--agent", "demo", "-c", "k", "hi"]);
    terminal.sees("your choice: ");
    kill_process(Pid::from_child(&terminal.child), Signal::INT).unwrap();
    terminal.sees("interrupting");
    let (rest, code) = terminal.ends();
    assert_eq!(code, Some(4), "{rest}");
    assert!(rest.contains("— interrupted"), "{rest}");
}

#[test]
fn a_task_is_live_and_is_answered_where_it_is_asked() {
    let tieline = Tieline::new();
    let script = tieline.path("task.script");
    std::fs::write(&script, "run sleep 1\nask Which? | a: x | b: y\nsay You said {answer}.\n")
        .unwrap();
    let config = format!("[agents.demo]\nscript = {script:?}\n");
    let tieline = tieline.with_config(&config);
    let words = ["task", "run", "t", "x", "--agent", "demo", "--mode", "bypass"];
    let mut terminal = Terminal::new(&tieline, &words);
    terminal.sees("t · Running sleep 1 · 0:00");
    terminal.sees("? q1: Which?");
    terminal.sees("2. b – y");
    terminal.types("2\n");
    terminal.sees("answer to q1: b");
    terminal.sees("You said b.");
    let (rest, code) = terminal.ends();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("task completed in 1 iterations"), "{rest}");
}

#[test]
fn an_approval_shows_all_that_runs_where_and_how_far_it_reaches() {
    let tieline = Tieline::new();
    let (script, pwned) = (tieline.path("script"), tieline.path("PWNED"));
    let call = serde_json::json!({
        "cmd": format!("ls src\u{1b}]x; touch {}", pwned.display()),
        "workdir": "/var/tmp",
        "sandbox_permissions": "require_escalated",
        "justification": "List the files\n  runs in the sandbox",
    });
    std::fs::write(&script, format!("call exec_command {call}\nsay ok\n")).unwrap();
    let config = format!("[agents.demo]\nscript = {script:?}\n");
    let tieline = tieline.with_config(&config);
    let mut terminal = Terminal::new(&tieline, &["run", "--agent", "demo", "hi"]);
    let shown = terminal.sees("your choice: ");
    assert!(shown.contains("  $ ls src\\x1b]x; touch /"), "{shown}");
    assert!(!shown.contains("\u{1b}]"), "{shown:?}");
    for row in [
        "the agent says:",
        "| List the files",
        "|   runs in the sandbox",
        "  in /var/tmp, which is NOT the workspace",
        "  runs OUTSIDE of the sandbox",
        "  asked because ",
    ] {
        assert!(shown.contains(row), "{row:?} is not in {shown}");
    }
    terminal.types("n");
    let (rest, code) = terminal.ends();
    assert_eq!(code, Some(0), "{rest}");
    assert!(!pwned.exists());
}

#[test]
fn what_is_longer_than_the_screen_needs_a_look_before_a_yes() {
    let tieline = Tieline::new();
    let (script, file) = (tieline.path("script"), tieline.path("file"));
    let cmd = format!("{}touch {}", "true\n".repeat(500), file.display());
    let call = serde_json::json!({ "cmd": cmd });
    std::fs::write(&script, format!("call exec_command {call}\nsay ok\n")).unwrap();
    let config = format!("[agents.demo]\nscript = {script:?}\n");
    let tieline = tieline.with_config(&config);
    let mut terminal = Terminal::new(&tieline, &["run", "--agent", "demo", "hi"]);
    let shown = terminal.sees("your choice: ");
    assert!(shown.contains("are NOT shown here; press v to see all of it"), "{shown}");
    terminal.types("y");
    let again = terminal.sees("your choice: ");
    assert!(again.contains("not all of it was shown: press v first"), "{again}");
    terminal.types("v");
    let whole = terminal.sees("your choice: ");
    assert_eq!(whole.matches("> true").count(), 499, "{whole}");
    terminal.types("n");
    assert_eq!(terminal.ends().1, Some(0));
}
