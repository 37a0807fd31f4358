//! Stores that are taken away, cannot be written, or are none.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tieline_testkit::real;

use crate::tieline::Tieline;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn with_store(place: &str) -> Tieline {
    Tieline::new().with("TIELINE_HOME", place)
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let tieline = Tieline::new();
    let file = tieline.path("file");
    fs::write(&file, "dear").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let dir = tieline.path("linked");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&file, dir.join("tieline.db")).unwrap();
    for place in [file.as_path(), &dir, Path::new("/dev/null")] {
        let place = place.to_str().unwrap();
        let before = mode(Path::new(place));
        for args in [&["list"][..], &["doctor"], &["run", "--agent", "demo", "hi"]] {
            let outcome = with_store(place).run(args);
            assert_ne!(outcome.code, 0, "{place}: {outcome:?}");
        }
        assert_eq!(mode(Path::new(place)), before, "{place}");
    }
    assert_eq!(mode(&file), 0o644);
}

#[test]
fn a_store_of_the_environment_does_not_depend_on_where_one_stands() {
    let outcome = with_store("here").run(&["list"]).ends_with(2);
    assert!(outcome.err.contains("not an absolute path"), "{}", outcome.err);
    let tieline = with_store("");
    tieline.run(&["run", "--agent", "demo", "hi"]).succeeds();
    assert!(tieline.path(".local/share/tieline/tieline.db").exists(), "as if it were not set");
    assert_eq!(tieline.work().read_dir().unwrap().count(), 0);
    // On the command line it is where it was typed.
    tieline.run(&["list", "--store", "typed"]).succeeds();
    assert!(tieline.work().join("typed/tieline.db").exists());
}

#[test]
fn a_store_that_is_deleted_during_a_turn_is_told() {
    let tieline = Tieline::new();
    let fake = real::fake_agent_program();
    let script = format!("rm -rf '{}'; exec '{}'", tieline.store().display(), fake.display());
    let tieline = tieline.with_claude(&script).with("FAKE_AGENT_SCRIPT", "say one\nsay two\n");
    let outcome = tieline.run(&["run", "--agent", "claude", "hi"]).ends_with(6);
    assert!(outcome.err.contains("was deleted or moved"), "{}", outcome.err);
    assert!(!tieline.store().exists());
}

/// Needs a small disk, which only root can make here.
#[test]
fn a_full_disk_is_told_and_what_is_there_is_shown() {
    let tieline = Tieline::new();
    let disk = tieline.path("disk");
    fs::create_dir(&disk).unwrap();
    let Some(_mounted) = Mounted::at(&disk) else {
        println!("no small disk can be made: not tested");
        return;
    };
    let place = disk.join("store");
    let tieline = tieline.with("TIELINE_HOME", place.to_str().unwrap());
    tieline.run(&["run", "--agent", "demo", "-c", "k", "hello there"]).succeeds();
    let ballast = disk.join("ballast");
    // Whatever there is room for, down to the last byte.
    let mut file = fs::File::create(&ballast).unwrap();
    while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|n| n > 0) {}
    for args in [&["list"][..], &["show", "k"], &["export", "k"]] {
        let outcome = tieline.run(args).succeeds();
        assert!(outcome.out.contains("hello there"), "{args:?}: {}", outcome.out);
    }
    for args in [&["run", "--agent", "demo", "hi"][..], &["gc", "--max-size", "0"]] {
        let outcome = tieline.run(args).ends_with(6);
        let is_told = outcome.err.contains("the disk is full") && outcome.err.contains("make room");
        assert!(is_told, "{args:?}: {}", outcome.err);
    }
    let outcome = tieline.run(&["doctor"]).ends_with(1);
    assert!(outcome.out.contains("are free on its disk"), "{}", outcome.out);
    // With the room that is asked for it works.
    file.set_len(file.metadata().unwrap().len() - (1 << 20)).unwrap();
    let outcome = tieline.run(&["gc", "--max-size", "0"]).succeeds();
    assert!(outcome.out.starts_with("Freed "), "{}", outcome.out);
}

/// A disk of four megabytes that goes when this is dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn at(dir: &'a Path) -> Option<Self> {
        let made = system("mount", &["-t", "tmpfs", "-o", "size=4m", "tmpfs"], dir);
        made.then_some(Self(dir))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        system("umount", &["-l"], self.0);
    }
}

#[allow(clippy::disallowed_methods, reason = "a test makes its own disk")]
fn system(program: &str, args: &[&str], dir: &Path) -> bool {
    let mut command = std::process::Command::new(program);
    command.args(args).arg(dir).stderr(std::process::Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
