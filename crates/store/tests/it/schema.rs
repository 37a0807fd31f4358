use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use tempfile::TempDir;
use tieline_event::{BlobRef, FrameNo, Seq};
use tieline_store::{Batch, ConversationChange, Error, Options, RequestChange, Store};

use crate::requests::request;
use crate::support::{all_frames, assert_whole, events, frames, keep_up, key, new, open, seqs};

#[test]
fn newer_schema_is_refused_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let database = dir.path().join("tieline.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.pragma_update(None, "user_version", 999).unwrap();
    drop(connection);
    let before = fs::read(&database).unwrap();
    let err = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(err, Error::Newer { found: 999, .. }), "{err:?}");
    assert!(err.to_string().contains("schema 999"), "{err}");
    assert!(fs::read(&database).unwrap() == before);
}

#[test]
fn first_open_by_many_threads_makes_one_database() {
    let dir = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for n in 0..8 {
            let dir = dir.path();
            scope.spawn(move || {
                let store = open(dir);
                let lease = store.acquire(&key(&format!("c{n}")), new()).unwrap();
                store.append_blocking(&lease, events([1])).wait().unwrap();
            });
        }
    });
    assert_eq!(open(dir.path()).stats().unwrap().n_events, 8);
}

/// The content of every fixture.
fn fill(store: &Store) {
    let lease = store.acquire(&key("fixture"), new()).unwrap();
    let large = vec![42; 70_000];
    let open =
        RequestChange::Open { request: request("r1"), native: Some("native".into()), seq: Seq(3) };
    let batch = Batch {
        frames: frames(lease.next_frame, &[b"{}\r\n", b"", &[0, 255]]).frames,
        blobs: vec![(BlobRef::of(&large), large)],
        requests: vec![open],
        conversation: Some(ConversationChange {
            native_session: Some(Some("session".into())),
            title: Some("a title".into()),
            next_turn: Some(4),
            ..ConversationChange::default()
        }),
        ..events(1..=3)
    };
    store.append_blocking(&lease, batch).wait().unwrap();
    keep_up(store, &lease, None).unwrap();
    let rest = frames(FrameNo(lease.next_frame.0 + 3), &[b"tail"]);
    store.append_blocking(&lease, rest).wait().unwrap();
    store.release(lease).unwrap();
}

fn check(store: &Store) {
    assert_eq!(seqs(store, "fixture"), [1, 2, 3]);
    let bytes: Vec<_> = all_frames(store, "fixture").into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(bytes, [&b"{}\r\n"[..], b"", &[0, 255], b"tail"]);
    let blob = store.blob(&BlobRef::of(&vec![42; 70_000]).sha256).unwrap();
    assert_eq!(blob, Some(vec![42; 70_000]));
    let waiting = store.open_requests(&key("fixture")).unwrap();
    assert_eq!(waiting[0].request, request("r1"));
    let row = store.conversation(&key("fixture")).unwrap().unwrap();
    assert_eq!(row.native_session.as_deref(), Some("session"));
    assert_eq!((row.agent.as_str(), row.n_turns()), ("scripted", 3));
    assert_whole(store);
}

fn fixture(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/v{version}.db.zst"))
}

/// A store as this version made it, if there is a fixture of it.
fn unpack(version: u32) -> Option<TempDir> {
    let packed = fs::read(fixture(version)).ok()?;
    let dir = tempfile::tempdir().unwrap();
    let database = zstd::bulk::decompress(&packed, 16 << 20).unwrap();
    fs::write(dir.path().join("tieline.db"), database).unwrap();
    Some(dir)
}

/// What an older program is about to write would not fit any more.
#[test]
fn an_older_schema_stays_as_it_is_while_somebody_works_with_it() {
    let dir = unpack(1).unwrap();
    let database = rusqlite::Connection::open(dir.path().join("tieline.db")).unwrap();
    database.execute("UPDATE conversations SET lease_owner = 'older'", []).unwrap();
    let owners = dir.path().join("owners");
    fs::create_dir(&owners).unwrap();
    let older = fs::File::create(owners.join("older.lock")).unwrap();
    (&older).write_all(b"pid 4711\nprogram tieline\n").unwrap();
    older.lock().unwrap();
    let err = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(&err, Error::Outdated { owner, .. } if owner.pid == 4711), "{err:?}");
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
    drop(older);
    check(&open(dir.path()));
}

/// A new schema gets a new fixture, made by `UPDATE_FIXTURE=<version>` while that schema is the
/// newest one. The old ones stay for ever.
#[test]
fn every_schema_ever_released_can_be_opened_and_read() {
    if let Ok(version) = std::env::var("UPDATE_FIXTURE") {
        let dir = tempfile::tempdir().unwrap();
        fill(&open(dir.path()));
        let database = fs::read(dir.path().join("tieline.db")).unwrap();
        let packed = zstd::bulk::compress(&database, 19).unwrap();
        fs::write(fixture(version.parse().unwrap()), packed).unwrap();
    }
    let n_checked = (1..=100)
        .filter_map(unpack)
        .map(|dir| {
            let store = open(dir.path());
            check(&store);
            let lease = store.acquire(&key("fixture"), new()).unwrap();
            store.append_blocking(&lease, events([lease.next_seq.0])).wait().unwrap();
            assert_whole(&store);
        })
        .count();
    assert!(n_checked >= 4);
}
