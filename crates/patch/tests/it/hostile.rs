//! Paths that want out.

use std::fs;
use std::os::unix::fs::symlink;

use tieline_patch::{Error, Refusal, apply, parse};

use crate::dice::Dice;
use crate::yard::{QUICK, Thing, Yard, things};

const N_PATHS: usize = 100_000;

/// They are many, so they are divided among as many yards.
const N_YARDS: usize = 4;

/// Pieces of paths, most of them with something up their sleeve.
const PIECES: [&str; 34] = [
    "a",
    "b",
    "src",
    "..",
    "..",
    ".",
    "",
    "/",
    "out",
    "abs",
    "up",
    "lib",
    "hooks",
    "harmless",
    ".git",
    ".GIT",
    ".gi\u{200c}t",
    ".git ",
    ".codex",
    ".Agents",
    ".tieline",
    "config",
    "secret",
    "outside",
    "work",
    "~",
    "\\..\\",
    "a\\b",
    "\u{ff0e}\u{ff0e}",
    "..\u{200b}",
    "\u{2024}\u{2024}",
    "...",
    "proc",
    "%2e%2e",
];

fn hostile(dice: &mut Dice, yard: &Yard) -> String {
    let mut path = match dice.roll(8) {
        0 => "/".to_owned(),
        1 => format!("{}/", yard.work().display()),
        2 => format!("{}/", yard.outside().display()),
        3 => "../".repeat(dice.roll(6)),
        _ => String::new(),
    };
    for _ in 0..1 + dice.roll(5) {
        path.push_str(dice.pick(&PIECES));
        path.push_str(dice.pick(&["/", "/", "/", "//", "/./", ""]));
    }
    match dice.roll(40) {
        0 => path.push_str(&"n".repeat(200 + dice.roll(100))),
        1 => path = "d/".repeat(1000 + dice.roll(2000)),
        2 => path.push('\0'),
        3 => path.push_str("x\0/../../outside/secret"),
        _ => path.push_str(dice.pick(&["x", "y", "config", "secret", "new"])),
    }
    path
}

fn patch(dice: &mut Dice, path: &str) -> String {
    let hunk = match dice.roll(5) {
        0 => format!("*** Update File: {path}\n@@\n+pwned"),
        1 => format!("*** Delete File: {path}"),
        2 => format!("*** Update File: seed\n*** Move to: {path}\n+pwned"),
        3 => format!("*** Update File: {path}\n*** Move to: moved\n+pwned"),
        _ => format!("*** Add File: {path}\n+pwned"),
    };
    format!("*** Begin Patch\n{hunk}\n*** End Patch")
}

/// A hundred thousand of them, on a real disk full of links: nothing is written outside, nothing
/// that is protected is touched, and no link is replaced.
#[test]
fn no_path_writes_outside_or_to_what_is_protected() {
    std::thread::scope(|scope| {
        (1..=N_YARDS as u64).for_each(|seed| drop(scope.spawn(move || besiege(seed))));
    });
}

fn besiege(seed: u64) {
    let yard = Yard::new().with("src/main.rs", "x\n").with(".git/config", "[core]\n");
    let yard = yard.with(".git/hooks/pre-commit", "#!/bin/sh\n").with("a/b/c", "c\n");
    symlink("../outside", yard.path("out")).unwrap();
    symlink(yard.outside(), yard.path("abs")).unwrap();
    symlink("..", yard.path("up")).unwrap();
    symlink("src", yard.path("lib")).unwrap();
    symlink(".git/hooks", yard.path("hooks")).unwrap();
    symlink("../.git", yard.path("src/harmless")).unwrap();
    let guarded = |yard: &Yard| {
        let mut all = yard.all();
        all.retain(|path, thing| {
            !path.starts_with("work")
                || path.starts_with("work/.git")
                || matches!(thing, Thing::Link(_))
        });
        all
    };
    let before = guarded(&yard);
    assert_eq!(before.len(), 12, "{before:?}");
    let roots = yard.roots();
    let mut dice = Dice::new(seed);
    let (mut n_applied, mut n_outside, mut n_protected) = (0, 0, 0);
    for round in 0..N_PATHS / N_YARDS {
        let path = hostile(&mut dice, &yard);
        let text = patch(&mut dice, &path);
        if round % 64 == 0 {
            fs::write(yard.path("seed"), "seed\n").unwrap();
        }
        match parse(&text).map(|patch| apply(&patch, &roots, QUICK)) {
            Ok(Ok(_)) => n_applied += 1,
            Ok(Err(Error::Refused { why: Refusal::Outside, .. })) => n_outside += 1,
            Ok(Err(Error::Refused { why: Refusal::Protected, .. })) => n_protected += 1,
            _ => {}
        }
        // Often enough to name the culprit, seldom enough to get through.
        if round % 4096 == 0 {
            assert_eq!(guarded(&yard), before, "by {path:?} or one before it");
        }
    }
    assert_eq!(guarded(&yard), before);
    for path in things(&yard.work()).into_keys().filter(|path| !path.starts_with(".git")) {
        let name = path.to_str().unwrap().to_lowercase().replace('\u{200c}', "");
        let is_protected = |part: &str| [".git", ".codex", ".agents", ".tieline"].contains(&part);
        assert!(!name.split('/').any(is_protected), "{path:?}");
        assert!(!name.ends_with(".tmp"), "{path:?} is left over");
    }
    assert!(
        n_applied > 1_000 && n_outside > 5_000 && n_protected > 2_500,
        "{n_applied} applied, {n_outside} outside, {n_protected} protected"
    );
}

#[test]
fn the_kernels_own_files_are_nobodys() {
    let roots = tieline_patch::Roots::here(std::path::Path::new("/")).unwrap();
    for path in ["proc/self/environ", "/proc/self/comm", "sys/kernel/notes", "proc/self/cwd/x"] {
        let text = format!("*** Begin Patch\n*** Update File: {path}\n@@\n+x\n*** End Patch");
        let err = apply(&parse(&text).unwrap(), &roots, QUICK).unwrap_err();
        assert!(matches!(err, Error::Refused { .. } | Error::Read { .. }), "{path}: {err}");
    }
}
