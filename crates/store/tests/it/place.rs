//! Where a store is opened, and what is left alone there.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tieline_store::{Batch, Error, Options, Store, close_to_others};

use crate::support::{Bench, Probe, event, events, key, new, open};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn refused(dir: &Path) -> Error {
    Store::open(dir, Options::default()).unwrap_err()
}

#[test]
fn what_a_link_in_the_place_of_the_database_leads_to_is_left_alone() {
    for name in ["tieline.db", "tieline.db-wal", "tieline.db-shm"] {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "dear").unwrap();
        set_mode(&target, 0o644);
        let store = dir.path().join("store");
        fs::create_dir(&store).unwrap();
        set_mode(&store, 0o700);
        symlink(&target, store.join(name)).unwrap();
        let err = refused(&store);
        assert!(matches!(&err, Error::NotAFile { path } if path.ends_with(name)), "{err:?}");
        assert_eq!((mode(&target), fs::read(&target).unwrap()), (0o644, b"dear".to_vec()));
    }
}

#[test]
fn a_pipe_in_the_place_of_the_database_is_refused_and_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o700);
    let pipe = dir.path().join("tieline.db");
    let user_only = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, user_only, 0).unwrap();
    assert!(matches!(refused(dir.path()), Error::NotAFile { .. }));
}

#[test]
fn a_file_and_a_device_in_the_place_of_the_store_keep_their_modes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "dear").unwrap();
    set_mode(&file, 0o644);
    for path in [file.as_path(), Path::new("/dev/null")] {
        let before = mode(path);
        assert!(matches!(refused(path), Error::NotADirectory { .. }));
        assert_eq!(mode(path), before);
    }
}

#[test]
fn an_open_directory_is_made_private_only_if_it_is_empty_or_a_store() {
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o1777);
    assert!(matches!(refused(dir.path()), Error::LooseDirectory { .. }), "it is as an empty /tmp");
    set_mode(dir.path(), 0o755);
    fs::create_dir(dir.path().join("owners")).unwrap();
    assert!(matches!(refused(dir.path()), Error::LooseDirectory { .. }), "there is no database");
    fs::write(dir.path().join("tieline.db"), "").unwrap();
    set_mode(dir.path(), 0o1777);
    assert!(matches!(refused(dir.path()), Error::LooseDirectory { .. }), "it is as /tmp");
    assert!(close_to_others(dir.path()).is_empty());
    assert_eq!(mode(dir.path()), 0o1777);
}

#[test]
fn a_store_may_lie_behind_a_link_and_keeps_its_mode_there() {
    let bench = Bench::new();
    let links = tempfile::tempdir().unwrap();
    let link = links.path().join("link");
    symlink(bench.dir.path(), &link).unwrap();
    assert!(open(&link).conversations(&tieline_store::Filter::default()).unwrap().is_empty());
    set_mode(bench.dir.path(), 0o755);
    assert!(matches!(refused(&link), Error::LooseDirectory { .. }));
    assert_eq!(mode(bench.dir.path()), 0o755);
}

#[test]
fn the_database_of_another_program_keeps_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    set_mode(dir.path(), 0o700);
    let database = dir.path().join("tieline.db");
    let other = rusqlite::Connection::open(&database).unwrap();
    other.execute_batch("CREATE TABLE diary (entry TEXT)").unwrap();
    drop(other);
    set_mode(&database, 0o644);
    assert!(matches!(refused(dir.path()), Error::Corrupt { .. }));
    assert_eq!(mode(&database), 0o644);
}

#[test]
fn a_store_that_is_deleted_or_replaced_while_it_is_open_takes_nothing_more() {
    for is_replaced in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("store");
        let store = open(&place);
        let lease = store.acquire(&key("a"), new()).unwrap();
        store.append_blocking(&lease, events([1])).wait().unwrap();
        fs::remove_dir_all(&place).unwrap();
        let _other = is_replaced.then(|| open(&place));
        let batch = Batch { events: vec![event(2, "lost")], ..Batch::default() };
        let rejected = store.append_blocking(&lease, batch).wait().unwrap_err();
        assert!(matches!(rejected.error, Error::Gone { .. }), "{rejected:?}");
        assert!(!rejected.error.is_transient());
        assert!(matches!(store.post(&key("a"), "hello".into()), Err(Error::Gone { .. })));
    }
}

/// Whoever may do anything is not kept from writing by a mode, so the reader is somebody else.
fn read_as_somebody(dir: &Path) -> Vec<String> {
    set_mode(dir, 0o500);
    let mut probe = Probe::spawn_as_nobody(&["read", dir.to_str().unwrap(), "a"], dir);
    let lines = std::iter::from_fn(|| probe.line()).collect();
    set_mode(dir, 0o700);
    lines
}

#[test]
fn a_store_that_cannot_be_written_is_read_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("a store with 100% of everything?");
    set_mode(dir.path(), 0o755);
    let store = open(&place);
    let lease = store.acquire(&key("a"), new()).unwrap();
    store.append_blocking(&lease, events(1..=3)).wait().unwrap();
    drop(store);
    let expected = ["only read", "conversation a", "events 3", "post refused"];
    assert_eq!(read_as_somebody(&place), expected, "closed cleanly");

    let mut writer = Probe::spawn(&["hold", place.to_str().unwrap(), "b"]);
    assert_eq!(writer.line().as_deref(), Some("held 1"));
    writer.kill();
    assert!(place.join("tieline.db-wal").exists());
    let expected = ["only read", "conversation b", "conversation a", "events 3", "post refused"];
    assert_eq!(read_as_somebody(&place), expected, "a killed process left its log");

    fs::remove_file(place.join("tieline.db-shm")).unwrap();
    let lines = read_as_somebody(&place);
    assert!(
        matches!(&lines[..], [line] if line.contains("cannot be written, which reading")),
        "{lines:?}"
    );
}
