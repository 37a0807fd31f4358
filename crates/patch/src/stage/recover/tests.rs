//! A process is killed before each of its steps; the next one ends what it began.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::prepare::{Options, Prepared};
use crate::stage::Stage;
use crate::{apply, parse};

const OPTIONS: Options = Options { n_context: 1, is_synced: false, largest_file: 1 << 20 };

const PATCH: &str = "*** Begin Patch\n*** Add File: a/b/new\n+new\n*** Update File: change\n-old\n\
    +changed\n*** Delete File: gone\n*** Update File: move\n*** Move to: moved\n-old\n+moved\n\
    *** Add File: over\n+over\n*** End Patch";

/// Files that the patch changes: each is a step, which is followed by the word that all are done and
/// by a step for each that is cleared up.
const FILES: usize = 6;

/// Where the child is told what to do.
const DIRECTORY: &str = "TIELINE_PATCH_TEST_DIRECTORY";
const STEP: &str = "TIELINE_PATCH_TEST_STEP";

fn yard() -> TempDir {
    let dir = TempDir::new().unwrap();
    for name in ["change", "gone", "move", "over"] {
        std::fs::write(dir.path().join(name), "old\n").unwrap();
    }
    dir
}

/// Every file and what is in it; directories end with a slash.
fn all(dir: &TempDir) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.path().to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir.path()).unwrap().display().to_string();
            match path.is_dir() {
                true => {
                    all.insert(format!("{name}/"), String::new());
                    open.push(path);
                }
                false => drop(all.insert(name, std::fs::read_to_string(&path).unwrap())),
            }
        }
    }
    all
}

/// Applies the patch in another process, which kills itself before a step.
// The kill must not hit the process that runs the tests.
#[allow(clippy::disallowed_methods)]
fn killed_at(dir: &TempDir, step: usize) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stage::recover::tests::the_child_kills_itself", "--nocapture"])
        .env(DIRECTORY, dir.path())
        .env(STEP, step.to_string())
        .output()
        .unwrap()
        .status;
    assert_eq!(status.signal(), Some(9), "step {step}");
}

#[test]
fn the_child_kills_itself() {
    let (Ok(directory), Ok(step)) = (std::env::var(DIRECTORY), std::env::var(STEP)) else {
        // Nobody asked for it.
        return;
    };
    let step: usize = step.parse().unwrap();
    let roots = Roots::here(Path::new(&directory)).unwrap();
    let prepared = Prepared::new(&parse(PATCH).unwrap(), &roots, OPTIONS).unwrap();
    let stage = Stage::new(&roots, OPTIONS, prepared.targets.values()).unwrap();
    let committed = stage.commit_watched(&mut |at| {
        if at == step {
            let ours = rustix::process::getpid();
            rustix::process::kill_process(ours, rustix::process::Signal::KILL).unwrap();
            std::thread::park();
        }
    });
    panic!("{committed:?}");
}

#[test]
fn what_was_cut_off_at_any_step_is_ended_by_the_next_process() {
    let before = all(&yard());
    let after = {
        let dir = yard();
        let roots = Roots::here(dir.path()).unwrap();
        apply(&parse(PATCH).unwrap(), &roots, OPTIONS).unwrap();
        all(&dir)
    };
    for step in 0..=2 * FILES {
        let dir = yard();
        killed_at(&dir, step);
        assert!(!all(&dir).is_empty());
        let roots = Roots::here(dir.path()).unwrap();
        let recovered = recover(&roots);
        assert_eq!(recovered.len(), 1, "step {step}: {recovered:?}");
        let Recovered { is_finished, files, trouble } = &recovered[0];
        assert_eq!((files.len(), trouble.len()), (FILES, 0), "step {step}: {recovered:?}");
        assert_eq!(*is_finished, step > FILES, "step {step}");
        let expected = if *is_finished { &after } else { &before };
        assert_eq!(all(&dir), *expected, "step {step}");
        assert_eq!(recover(&roots), []);
    }
}

#[test]
fn what_somebody_wrote_since_is_kept() {
    for step in 1..=FILES {
        let dir = yard();
        killed_at(&dir, step);
        let theirs = ["a/b/new", "change", "gone", "moved"];
        for name in theirs {
            let path = dir.path().join(name);
            if path.parent().unwrap().is_dir() {
                std::fs::remove_file(&path).ok();
                std::fs::write(&path, "theirs\n").unwrap();
            }
        }
        let recovered = recover(&Roots::here(dir.path()).unwrap());
        let now = all(&dir);
        for name in theirs {
            assert_eq!(
                now.get(name).map(String::as_str),
                Some("theirs\n"),
                "{step}: {recovered:?}"
            );
        }
        // What was there before is said to be beside it.
        let said = recovered[0].words();
        let left: Vec<&String> = now.keys().filter(|name| name.starts_with(".tieline-")).collect();
        assert!(left.iter().all(|name| said.contains(*name)), "{step}: {said} {left:?}");
    }
}

#[test]
fn a_patch_under_way_is_left_alone() {
    let dir = yard();
    let roots = Roots::here(dir.path()).unwrap();
    let prepared = Prepared::new(&parse(PATCH).unwrap(), &roots, OPTIONS).unwrap();
    let stage = Stage::new(&roots, OPTIONS, prepared.targets.values()).unwrap();
    assert_eq!(recover(&roots), []);
    stage.commit().unwrap();
}

#[test]
fn a_record_that_somebody_brought_along_does_nothing() {
    let dir = yard();
    killed_at(&dir, 3);
    let before = all(&dir);
    let record = before.keys().find(|name| name.ends_with(".patch")).unwrap();
    let path = dir.path().join(record);
    // A copy is another file.
    let copy = dir.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    let recovered = recover(&Roots::here(dir.path()).unwrap());
    assert_eq!(recovered.len(), 1, "{recovered:?}");
    assert_eq!(recovered[0].trouble.len(), 1, "{recovered:?}");
    assert_eq!(all(&dir), before);
}

#[test]
fn a_record_that_was_not_complete_is_only_removed() {
    for text in ["", "begun\n", "begun\n{\"version\":1,\"fi"] {
        let dir = yard();
        let before = all(&dir);
        let path = dir.path().join(".tieline-0123456789abcdef.patch");
        std::fs::write(&path, text).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, private).unwrap();
        assert_eq!(recover(&Roots::here(dir.path()).unwrap()), []);
        assert_eq!(all(&dir), before);
    }
}
