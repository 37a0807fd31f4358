//! Recorded traffic of the real agents goes through the store and comes out as it went in.

use std::path::Path;

use tempfile::TempDir;
use tieline_event::{ConversationKey, Timestamp};
use tieline_store::{Batch, Direction, FrameBuf, NewConversation, Options, Store};

#[test]
fn every_recording_comes_out_of_the_store_byte_for_byte() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/fixtures");
    let dir = TempDir::new().unwrap();
    let store = Store::open(&dir.path().join("store"), Options::default()).unwrap();
    let mut n_recordings = 0;
    for agent in std::fs::read_dir(root).unwrap() {
        for version in std::fs::read_dir(agent.unwrap().path()).unwrap() {
            for file in std::fs::read_dir(version.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.to_str().unwrap().ends_with(".out.jsonl") {
                    check(&store, n_recordings, &std::fs::read(path).unwrap());
                    n_recordings += 1;
                }
            }
        }
    }
    assert!(n_recordings > 60, "only {n_recordings} recordings");
}

fn check(store: &Store, n: usize, recorded: &[u8]) {
    let key = ConversationKey::new(&format!("recording {n}")).unwrap();
    let lease = store.acquire(&key, NewConversation::default()).unwrap();
    let mut frames = FrameBuf::new(lease.next_frame);
    for line in recorded.split_inclusive(|byte| *byte == b'\n') {
        frames.append(Direction::Out, Timestamp::now(), line);
    }
    let batch = Batch { frames, ..Batch::default() };
    store.append_blocking(&lease, batch).wait().unwrap();
    let kept_up = store.keep_up(&lease, None);
    store.flush().unwrap();
    kept_up.blocking_recv().unwrap().unwrap();
    let mut out = Vec::new();
    store.export_frames(&key, &[Direction::Out], &mut out).unwrap();
    assert!(out == recorded, "recording {n} changed");
}
