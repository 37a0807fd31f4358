//! What is on the disk after each step, also when one of them fails.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::parse::parse;

const OPTIONS: Options = Options { n_context: 1, is_synced: false, largest_file: 1 << 20 };

const PATCH: &str = "*** Begin Patch\n*** Add File: a/b/new\n+new\n*** Update File: change\n-old\n\
    +changed\n*** Delete File: gone\n*** Update File: move\n*** Move to: moved\n-old\n+moved\n\
    *** Add File: over\n+over\n*** End Patch";

fn yard() -> TempDir {
    let dir = TempDir::new().unwrap();
    for name in ["change", "gone", "move", "over"] {
        std::fs::write(dir.path().join(name), "old\n").unwrap();
    }
    dir
}

/// Where the file of a step is to be.
fn place_of(stage: &Stage<'_>, step: usize) -> PathBuf {
    let item = &stage.items[step];
    stage.places.path(item.place).join(&item.leaf)
}

/// Paths, modes and contents.
fn all(base: &Path) -> BTreeMap<PathBuf, (u32, String)> {
    let mut all = BTreeMap::new();
    let mut open = vec![base.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            let mut content = String::new();
            if metadata.is_dir() {
                open.push(path.clone());
            } else {
                content = std::fs::read_to_string(&path).unwrap_or_default();
            }
            all.insert(path, (metadata.permissions().mode(), content));
        }
    }
    all
}

fn stage<'r>(roots: &'r Roots, text: &str) -> (Prepared<'r>, Stage<'r>) {
    let prepared = Prepared::new(&parse(text).unwrap(), roots, OPTIONS).unwrap();
    let stage = Stage::new(roots, OPTIONS, prepared.targets.values()).unwrap();
    (prepared, stage)
}

#[test]
fn what_is_staged_is_private_and_changes_nothing_yet() {
    let dir = yard();
    let before = all(dir.path());
    let roots = Roots::here(dir.path()).unwrap();
    let (_, stage) = stage(&roots, PATCH);
    let now = all(dir.path());
    assert!(before.iter().all(|(path, it)| now.get(path) == Some(it)));
    let new: Vec<_> = now.iter().filter(|(path, _)| !before.contains_key(*path)).collect();
    let names: Vec<_> = new.iter().filter(|(_, it)| !it.1.is_empty()).map(|it| it.0).collect();
    let unique: BTreeSet<_> = names.iter().map(|it| it.file_name()).collect();
    // The new contents and the record.
    assert_eq!((names.len(), unique.len()), (5, 5), "{new:?}");
    drop(stage.give_up(Error::Empty));
    assert_eq!(all(dir.path()), before);
}

#[test]
fn a_step_that_fails_takes_back_all_before_it() {
    // What is in the way at each step: at the place of a new file, of one to change, to delete.
    for step in 0..6 {
        let dir = yard();
        let roots = Roots::here(dir.path()).unwrap();
        let (prepared, stage) = stage(&roots, PATCH);
        assert_eq!(stage.items.len(), 6);
        let leaf = place_of(&stage, step);
        let mut meanwhile = BTreeMap::new();
        let failed = stage.commit_watched(&mut |at| {
            if at == step {
                std::fs::remove_file(&leaf).ok();
                std::fs::write(&leaf, "somebody else's\n").unwrap();
                meanwhile.insert(leaf.clone(), "somebody else's\n");
            }
        });
        let err = failed.unwrap_err();
        assert!(matches!(err, Error::Changed { .. }), "{err}");
        for name in ["change", "gone", "move", "over"] {
            let path = dir.path().join(name);
            let expected = meanwhile.get(&path).unwrap_or(&"old\n");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), *expected, "{step} {name}");
        }
        let n_left = all(dir.path()).len();
        let in_new = if leaf.ends_with("a/b/new") { 3 } else { 0 };
        let in_moved = usize::from(leaf.ends_with("moved"));
        assert_eq!(n_left, 4 + in_new + in_moved, "step {step}: {:?}", all(dir.path()));
        drop(prepared);
    }
}

#[test]
fn a_place_that_became_a_link_or_a_directory_is_left_alone() {
    for kind in 0..2 {
        let (dir, outside) = (yard(), TempDir::new().unwrap());
        std::fs::write(outside.path().join("secret"), "hunter2").unwrap();
        let roots = Roots::here(dir.path()).unwrap();
        let (_, stage) = stage(&roots, PATCH);
        let path = dir.path().join("change");
        std::fs::remove_file(&path).unwrap();
        match kind {
            0 => symlink(outside.path().join("secret"), &path).unwrap(),
            _ => std::fs::create_dir(&path).unwrap(),
        }
        let before = std::fs::symlink_metadata(&path).unwrap().file_type();
        assert!(matches!(stage.commit().unwrap_err(), Error::Changed { .. }));
        assert_eq!(std::fs::symlink_metadata(&path).unwrap().file_type(), before);
        assert_eq!(std::fs::read_to_string(outside.path().join("secret")).unwrap(), "hunter2");
        assert_eq!(all(dir.path()).len(), 4);
    }
}

#[test]
fn what_cannot_be_put_back_is_said() {
    let dir = yard();
    let roots = Roots::here(dir.path()).unwrap();
    let (_, stage) = stage(&roots, PATCH);
    let last = stage.items.len() - 1;
    let changed = dir.path().join("change");
    let over = place_of(&stage, last);
    let err = stage.commit_watched(&mut |at| {
        if at == last {
            // Somebody replaces what we have just written, and is in our way further on.
            std::fs::remove_file(&changed).unwrap();
            std::fs::write(&changed, "theirs\n").unwrap();
            std::fs::remove_file(&over).unwrap();
        }
    });
    let err = err.unwrap_err();
    let Error::Torn { cause, state } = &err else { panic!("{err}") };
    assert!(matches!(**cause, Error::Changed { .. }), "{cause}");
    assert_eq!(state.len(), 1, "{state:?}");
    let (_, kept) = state[0].split_once("what was in change is in ").unwrap();
    let (kept, _) = kept.split_once(": ").unwrap();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "old\n");
    assert_eq!(std::fs::read_to_string(&changed).unwrap(), "theirs\n", "theirs stays");
    assert_eq!(std::fs::read_to_string(dir.path().join("gone")).unwrap(), "old\n");
    assert!(!dir.path().join("a").exists());
}

#[test]
fn nothing_of_ours_is_left_after_it_is_done() {
    let dir = yard();
    let roots = Roots::here(dir.path()).unwrap();
    let (prepared, stage) = stage(&roots, PATCH);
    let applied = stage.commit().unwrap().done(prepared);
    assert_eq!(applied.left_behind, Vec::<PathBuf>::new());
    let names: Vec<_> = all(dir.path()).into_keys().collect();
    let expected = ["a", "a/b", "a/b/new", "change", "moved", "over"];
    assert_eq!(names, expected.map(|name| dir.path().join(name)));
    applied.undo(&roots).unwrap();
    assert_eq!(
        all(dir.path()),
        all(yard().path())
            .into_iter()
            .map(|(path, it)| { (dir.path().join(path.file_name().unwrap()), it) })
            .collect()
    );
}
