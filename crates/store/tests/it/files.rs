use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tieline_store::{Error, Options, Store};

use crate::support::{Bench, Probe, assert_whole, events, key, new, open, seqs};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Every file and directory from here down that others could use.
fn loose(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if mode(dir) != 0o700 {
        found.push(format!("{} {:o}", dir.display(), mode(dir)));
    }
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(loose(&path));
        } else if mode(&path) != 0o600 {
            found.push(format!("{} {:o}", path.display(), mode(&path)));
        }
    }
    found
}

#[test]
fn everything_is_private_whatever_the_umask() {
    for umask in ["000", "022", "077", "777"] {
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("store");
        let mut probe = Probe::spawn(&["umask", umask, dir.to_str().unwrap()]);
        assert_eq!(probe.line().as_deref(), Some("held 1"), "umask {umask}");
        let names = dir.read_dir().unwrap().count();
        assert_eq!(names, 4, "database, log, index, owners");
        assert_eq!(loose(&dir), Vec::<String>::new(), "umask {umask}");
    }
}

#[test]
fn loose_modes_are_repaired_at_the_next_open() {
    let bench = Bench::new();
    let _lease = bench.lease("a");
    for (name, mode) in [("", 0o755), ("tieline.db", 0o644), ("tieline.db-wal", 0o664)] {
        let path = bench.dir.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let _again = open(bench.dir.path());
    assert_eq!(loose(bench.dir.path()), Vec::<String>::new());
}

#[test]
fn directory_of_somebody_else_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("letter"), "dear").unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let err = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(err, Error::LooseDirectory { mode: 0o755, .. }), "{err:?}");
    assert_eq!(mode(dir.path()), 0o755);
}

#[track_caller]
fn check_corrupt(damage: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let lease = store.acquire(&key("a"), new()).unwrap();
    store.append_blocking(&lease, events(1..=200)).wait().unwrap();
    drop(store);
    let database = dir.path().join("tieline.db");
    assert!(!dir.path().join("tieline.db-wal").exists(), "a clean end leaves no log");
    damage(&database);
    let before = fs::read(&database).unwrap();

    let err = Store::open(dir.path(), Options::default()).unwrap_err();
    let Error::Corrupt { path, .. } = &err else { panic!("{err:?}") };
    assert_eq!(*path, database);
    assert!(fs::read(&database).unwrap() == before, "the damaged file was changed");

    let aside = Store::set_aside(dir.path()).unwrap();
    assert!(fs::read(&aside).unwrap() == before, "{}", aside.display());
    let store = open(dir.path());
    assert!(store.conversation(&key("a")).unwrap().is_none());
    assert_whole(&store);
}

#[test]
fn file_that_is_no_database_is_set_aside_and_never_overwritten() {
    check_corrupt(|database| fs::write(database, b"dear diary\n".repeat(500)).unwrap());
}

#[test]
fn half_a_database_is_set_aside_and_never_overwritten() {
    check_corrupt(|database| {
        let whole = fs::read(database).unwrap();
        fs::write(database, &whole[..whole.len() / 2]).unwrap();
    });
}

#[test]
fn database_of_another_program_is_not_touched() {
    check_corrupt(|database| {
        fs::remove_file(database).unwrap();
        let other = rusqlite::Connection::open(database).unwrap();
        other.execute_batch("CREATE TABLE diary (entry TEXT)").unwrap();
    });
}

/// SQLite itself would delete this log.
#[test]
fn empty_database_with_a_log_is_refused_and_the_log_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut probe = Probe::spawn(&["hold", dir.path().to_str().unwrap(), "a"]);
    assert_eq!(probe.line().as_deref(), Some("held 1"));
    probe.kill();
    fs::write(dir.path().join("tieline.db"), b"").unwrap();
    let log = fs::read(dir.path().join("tieline.db-wal")).unwrap();
    let err = Store::open(dir.path(), Options::default()).unwrap_err();
    assert!(matches!(err, Error::Corrupt { .. }), "{err:?}");
    let aside = Store::set_aside(dir.path()).unwrap();
    let name = format!("{}-wal", aside.file_name().unwrap().to_str().unwrap());
    assert!(fs::read(dir.path().join(name)).unwrap() == log);
    assert_whole(&open(dir.path()));
}

#[test]
fn damage_inside_is_found_by_the_full_check() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let lease = store.acquire(&key("a"), new()).unwrap();
    let mut batch = events(1..=200);
    let lines: Vec<Vec<u8>> = (0..3000).map(|n| format!("line {n:0400}\n").into()).collect();
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    batch.frames = crate::support::frames(lease.next_frame, &lines).frames;
    store.append_blocking(&lease, batch).wait().unwrap();
    assert_whole(&store);
    drop(store);
    let database = dir.path().join("tieline.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection
        .execute("UPDATE segments SET data = substr(data, 1, 1000)", [])
        .and_then(|_| connection.execute("DELETE FROM events WHERE id & 0xff = 7", []))
        .and_then(|_| {
            let elsewhere = "INSERT INTO events SELECT id + (5 << 36), ts, kind, turn, json
                FROM events WHERE id & 0xff = 9";
            connection.execute(elsewhere, [])
        })
        .unwrap();
    drop(connection);
    let problems = open(dir.path()).integrity().unwrap();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!(seqs(&open(dir.path()), "a").len(), 199);
}
