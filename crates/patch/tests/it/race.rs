//! Somebody swaps directories and files for links while patches are applied.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tieline_patch::{apply, parse};

use crate::yard::{QUICK, Thing, Yard, things};

const N_PATCHES: usize = 10_000;

/// Swaps two names until it is told to stop; says how often.
fn swap(one: &Path, other: &Path, is_over: &AtomicBool, n_swaps: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        // A name may be away for a moment; then the next try counts.
        if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
            n_swaps.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What is outside and what is protected.
fn guarded(yard: &Yard) -> Vec<(std::path::PathBuf, Thing)> {
    let outside = things(&yard.outside()).into_iter();
    outside.chain(things(&yard.path(".git"))).collect()
}

/// Applies patches to `target` while `one` and `other` change places.
#[track_caller]
fn race(yard: &Yard, one: &str, other: &str, hunks: &[&str]) {
    let before = guarded(yard);
    let (is_over, n_swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut n_applied, mut n_failed) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| swap(&yard.path(one), &yard.path(other), &is_over, &n_swaps));
        let roots = yard.roots();
        for round in 0..N_PATCHES {
            let text = format!("*** Begin Patch\n{}\n*** End Patch", hunks[round % hunks.len()]);
            let text = text.replace("ROUND", &round.to_string());
            match apply(&parse(&text).unwrap(), &roots, QUICK) {
                Ok(_) => n_applied += 1,
                Err(_) => n_failed += 1,
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(guarded(yard), before, "{n_applied} applied, {n_failed} failed");
    // It was a race: both sides got their turns.
    let n_swaps = n_swaps.into_inner();
    assert!(n_swaps > 100 && n_applied > 100, "{n_swaps} swaps, {n_applied} applied");
}

#[test]
fn a_directory_that_becomes_a_link_leads_nowhere_else() {
    let yard = Yard::new().with("dir/f", "a\n").with(".git/config", "[core]\n");
    let yard = yard.with("safe/f", "a\n");
    fs::write(yard.outside().join("f"), "a\n").unwrap();
    fs::write(yard.path(".git/f"), "a\n").unwrap();
    symlink("../outside", yard.path("link")).unwrap();
    let hunks = [
        "*** Add File: dir/f\n+a",
        "*** Update File: dir/f\n@@\n+ROUND",
        "*** Add File: dir/new/ROUND\n+x",
        "*** Add File: dir/g\n+x\n*** Delete File: dir/g",
        "*** Delete File: dir/f",
        "*** Add File: safe/f\n+x",
    ];
    race(&yard, "dir", "link", &hunks);
    fs::remove_file(yard.path("link")).or_else(|_| fs::remove_file(yard.path("dir"))).unwrap();
    let (free, dir) = match yard.path("dir").exists() {
        true => ("link", "dir"),
        false => ("dir", "link"),
    };
    symlink(".git", yard.path(free)).unwrap();
    assert!(yard.path(dir).is_dir());
    race(&yard, dir, free, &hunks);
}

#[test]
fn a_file_that_becomes_a_link_leads_nowhere_else() {
    let yard = Yard::new().with("f", "a\n").with(".git/config", "[core]\n").with("safe", "a\n");
    symlink("../outside/secret", yard.path("link")).unwrap();
    let hunks = [
        "*** Add File: f\n+a",
        "*** Update File: f\n@@\n+ROUND",
        "*** Update File: safe\n@@\n-a\n+a\n*** Update File: f\n*** Move to: f2\n@@\n+x",
        "*** Add File: f\n+hunter2",
        "*** Add File: link\n+x",
    ];
    race(&yard, "f", "link", &hunks);
}
