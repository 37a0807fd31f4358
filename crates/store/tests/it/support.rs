//! What the tests share.

use std::io::{BufRead, BufReader, Lines};
use std::ops::ControlFlow;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;
use tieline_event::{ConversationKey, FrameNo, Mode, Seq, Timestamp};
use tieline_store::{
    Batch, Capped, Direction, Error, FrameBuf, Lease, NewConversation, NewEvent, Options, Store,
};

/// A store in a directory of its own.
pub(crate) struct Bench {
    pub(crate) store: Store,
    pub(crate) dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { store: Store::open(dir.path(), options).unwrap(), dir }
    }

    pub(crate) fn lease(&self, name: &str) -> Lease {
        self.store.acquire(&key(name), new()).unwrap()
    }

    /// Looks after the frames at once.
    pub(crate) fn keep_up(&self, lease: &Lease, most: Option<u64>) -> Capped {
        keep_up(&self.store, lease, most).unwrap()
    }
}

pub(crate) fn keep_up(store: &Store, lease: &Lease, most: Option<u64>) -> Result<Capped, Error> {
    let capped = store.keep_up(lease, most);
    store.flush().unwrap();
    capped.blocking_recv().unwrap()
}

pub(crate) fn open(dir: &Path) -> Store {
    Store::open(dir, Options::default()).unwrap()
}

pub(crate) fn key(name: &str) -> ConversationKey {
    ConversationKey::new(name).unwrap()
}

pub(crate) fn new() -> NewConversation {
    NewConversation {
        agent: "scripted".into(),
        workspace: "/work".into(),
        mode: Mode::Plan,
        model: Some("small".into()),
        ..NewConversation::default()
    }
}

pub(crate) fn event(seq: u64, text: &str) -> NewEvent {
    NewEvent {
        seq: Seq(seq),
        ts: Timestamp::from_millis(1000 + seq as i64),
        kind: "notice",
        turn: None,
        json: format!("{{\"seq\":{seq},\"text\":{text:?}}}").into_bytes().into(),
    }
}

pub(crate) fn events(seqs: impl IntoIterator<Item = u64>) -> Batch {
    let events = seqs.into_iter().map(|seq| event(seq, "hello")).collect();
    Batch { events, ..Batch::default() }
}

pub(crate) fn frames(first: FrameNo, all: &[&[u8]]) -> Batch {
    let mut frames = FrameBuf::new(first);
    for (bytes, n) in all.iter().zip(0..) {
        frames.append(Direction::Out, Timestamp::from_millis(n), *bytes);
    }
    Batch { frames, ..Batch::default() }
}

pub(crate) fn seqs(store: &Store, name: &str) -> Vec<u64> {
    let events = store.events(&key(name), Seq(0), usize::MAX).unwrap();
    events.iter().map(|event| event.seq.0).collect()
}

/// Every frame: number and bytes.
pub(crate) fn all_frames(store: &Store, name: &str) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    store
        .frames(&key(name), FrameNo(0), &mut |frame| {
            all.push((frame.no.0, frame.bytes.to_vec()));
            ControlFlow::Continue(())
        })
        .unwrap();
    all
}

pub(crate) fn assert_whole(store: &Store) {
    assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
}

/// A process that uses the store. Killed with `SIGKILL` when dropped.
pub(crate) struct Probe {
    pub(crate) child: Child,
    pub(crate) lines: Lines<BufReader<ChildStdout>>,
}

impl Probe {
    pub(crate) fn spawn(args: &[&str]) -> Self {
        Self::start(Path::new(env!("CARGO_BIN_EXE_store-probe")), args, None)
    }

    /// As somebody without privileges, whose files lie in `dir`.
    pub(crate) fn spawn_as_nobody(args: &[&str], dir: &Path) -> Self {
        const NOBODY: u32 = 65534;
        if !rustix::process::geteuid().is_root() {
            return Self::spawn(args);
        }
        give(dir, NOBODY);
        // Where anybody can execute it, wherever this checkout lies.
        let place = dir.parent().unwrap().join("probe");
        if !place.exists() {
            std::fs::copy(env!("CARGO_BIN_EXE_store-probe"), &place).unwrap();
        }
        Self::start(&place, args, Some(NOBODY))
    }

    #[expect(clippy::disallowed_methods, reason = "a probe is killed and never leaves children")]
    fn start(program: &Path, args: &[&str], user: Option<u32>) -> Self {
        let mut command = Command::new(program);
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let mut child =
            command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line it says.
    pub(crate) fn line(&mut self) -> Option<String> {
        self.lines.next().map(|line| line.unwrap())
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Gives a directory and what is in it to somebody.
fn give(path: &Path, user: u32) {
    std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        path.read_dir().unwrap().for_each(|entry| give(&entry.unwrap().path(), user));
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.kill();
    }
}
