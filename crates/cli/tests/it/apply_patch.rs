use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use crate::tieline::{Outcome, Tieline, modes};

const PATCH: &str = "*** Begin Patch\n*** Add File: sub/new.txt\n+hi\n*** Update File: m.txt\n@@\n-old\n\
    +new\n*** Delete File: d.txt\n*** End Patch\n";

fn yard() -> Tieline {
    let tieline = Tieline::new();
    fs::write(tieline.work().join("m.txt"), "old\n").unwrap();
    fs::write(tieline.work().join("d.txt"), "gone\n").unwrap();
    tieline
}

#[track_caller]
fn unchanged(tieline: &Tieline) {
    let mut names: Vec<_> =
        fs::read_dir(tieline.work()).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["d.txt", "m.txt"]);
    assert_eq!(fs::read_to_string(tieline.work().join("m.txt")).unwrap(), "old\n");
    assert_eq!(fs::read_to_string(tieline.work().join("d.txt")).unwrap(), "gone\n");
}

#[test]
fn a_patch_is_applied_from_an_argument_and_from_stdin() {
    let said = "Success. Updated the following files:\nA sub/new.txt\nM m.txt\nD d.txt\n";
    type Way = fn(&Tieline) -> Outcome;
    let ways: [Way; 3] = [
        |it| it.run(&["apply-patch", PATCH]),
        |it| it.feed(&["apply-patch", "-"], PATCH.as_bytes()),
        |it| it.feed(&["apply-patch"], PATCH.as_bytes()),
    ];
    for way in ways {
        let tieline = yard();
        let outcome = way(&tieline).succeeds();
        assert_eq!((outcome.out.as_str(), outcome.err.as_str()), (said, ""));
        let read = |name| fs::read_to_string(tieline.work().join(name)).unwrap();
        assert_eq!((read("sub/new.txt"), read("m.txt")), ("hi\n".into(), "new\n".into()));
        assert!(!tieline.work().join("d.txt").exists());
        assert!(!tieline.store().exists(), "it needs no store");
    }
}

#[test]
fn what_does_not_apply_is_said_in_the_known_words_and_changes_nothing() {
    let tieline = yard();
    let add = "*** Begin Patch\n*** Add File: x\n+1\n";
    for (patch, said) in [
        (
            "bad".to_owned(),
            "Invalid patch: The first line of the patch must be '*** Begin Patch'\n",
        ),
        ("*** Begin Patch\n*** End Patch".to_owned(), "No files were modified.\n"),
        (
            format!("{add}*** Update File: m.txt\n-q\n-r\n*** End Patch"),
            "Failed to find expected lines in m.txt:\nq\nr\n",
        ),
        (
            format!("{add}*** Delete File: nope\n*** End Patch"),
            "Failed to delete file nope: No such file or directory (os error 2)\n",
        ),
        (
            format!("{add}*** Add File: ../x\n+1\n*** End Patch"),
            "patch rejected: ../x is outside of the directories that may be written\n",
        ),
        (
            format!("{add}*** Add File: .git/hooks/pre-commit\n+1\n*** End Patch"),
            "patch rejected: .git/hooks/pre-commit is protected\n",
        ),
        (
            format!("{add}*** Delete File: \u{1b}[2Jx\n*** End Patch"),
            "Failed to delete file x: No such file or directory (os error 2)\n",
        ),
    ] {
        let outcome = tieline.run(&["apply-patch", &patch]).ends_with(1);
        assert_eq!((outcome.out.as_str(), outcome.err.as_str()), ("", said));
        unchanged(&tieline);
    }
}

#[test]
fn wrong_usage_and_input_that_cannot_be_read_are_2() {
    let tieline = yard();
    tieline.run(&["apply-patch", "--dance"]).ends_with(2);
    tieline.run(&["apply-patch", "--partial", "--dry-run", PATCH]).ends_with(2);
    let outcome = tieline.feed(&["apply-patch"], b"\xff\xfe").ends_with(2);
    assert!(outcome.err.contains("the patch is not UTF-8 text"), "{}", outcome.err);
    let long = vec![b'x'; (16 << 20) + 1];
    let outcome = tieline.feed(&["apply-patch", "-"], &long).ends_with(2);
    assert!(outcome.err.contains("longer than 16 MiB"), "{}", outcome.err);
    unchanged(&tieline);
}

#[test]
fn a_dry_run_shows_a_diff_and_writes_nothing() {
    let tieline = yard();
    let outcome = tieline.run(&["apply-patch", "--dry-run", PATCH]).succeeds();
    let expected = "--- /dev/null\n+++ b/sub/new.txt\n@@ -0,0 +1 @@\n+hi\n--- a/m.txt\n+++ b/m.txt\n\
                    @@ -1 +1 @@\n-old\n+new\n--- a/d.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    assert_eq!(outcome.out, expected);
    unchanged(&tieline);
    let bad = PATCH.replace("-old", "-other");
    tieline.run(&["apply-patch", "--dry-run", &bad]).ends_with(1);
}

#[test]
fn partial_keeps_what_came_before_the_error() {
    let tieline = yard();
    let bad = PATCH.replace("-old", "-other");
    let outcome = tieline.run(&["apply-patch", "--partial", &bad]).ends_with(1);
    assert_eq!(outcome.out, "Success. Updated the following files:\nA sub/new.txt\n");
    assert_eq!(outcome.err, "Failed to find expected lines in m.txt:\nother\n");
    assert!(tieline.work().join("sub/new.txt").exists() && tieline.work().join("d.txt").exists());
}

#[test]
fn links_out_of_the_directory_are_not_followed() {
    let tieline = yard();
    fs::write(tieline.path("secret"), "s\n").unwrap();
    symlink("../secret", tieline.work().join("link")).unwrap();
    symlink("..", tieline.work().join("up")).unwrap();
    for name in ["link", "up/secret"] {
        let patch = format!("*** Begin Patch\n*** Update File: {name}\n-s\n+x\n*** End Patch");
        let outcome = tieline.run(&["apply-patch", &patch]).ends_with(1);
        assert!(outcome.err.contains("is outside"), "{}", outcome.err);
    }
    assert_eq!(fs::read_to_string(tieline.path("secret")).unwrap(), "s\n");
}

/// Runs the command in a shell that has prepared something first.
// The tests stand outside the program: what they start is the program itself.
#[allow(clippy::disallowed_methods)]
fn after(tieline: &Tieline, first: &str, patch: &str) -> Outcome {
    let script = format!("{first}; exec \"$0\" apply-patch \"$1\"");
    Command::new("/bin/sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_tieline"), patch])
        .current_dir(tieline.work())
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into()
}

#[test]
fn a_disk_that_takes_no_more_leaves_everything_as_it_was() {
    let tieline = yard();
    let lines = "+a line of some length that fills the disk\n".repeat(100);
    let patch = PATCH.replace("+hi\n", &lines);
    // The limit is 1 or 2 blocks of 512 bytes or of a kilobyte, by shell; files end there.
    let outcome = after(&tieline, "trap '' XFSZ; ulimit -f 1", &patch).ends_with(1);
    assert_eq!(outcome.err, "Failed to write file sub/new.txt: File too large (os error 27)\n");
    unchanged(&tieline);
}

#[test]
fn under_any_umask_modes_are_as_they_should_be() {
    for (umask, file, directory) in [("000", 0o666, 0o777), ("077", 0o600, 0o700)] {
        let tieline = yard();
        fs::set_permissions(tieline.work().join("m.txt"), fs::Permissions::from_mode(0o640))
            .unwrap();
        after(&tieline, &format!("umask {umask}"), PATCH).succeeds();
        let all = modes(&tieline.work());
        let mode = |name: &str| {
            let path = tieline.work().join(name);
            all.iter().find(|(it, _)| *it == path).map(|(_, mode)| *mode)
        };
        assert_eq!(mode("sub/new.txt"), Some(file));
        assert_eq!(mode("sub"), Some(directory));
        assert_eq!(mode("m.txt"), Some(0o640), "the old mode stays");
        assert_eq!(all.len(), 4, "nothing else is there: {all:?}");
    }
}

/// Files in directories of their own.
const MANY: usize = 1000;

fn many(line: &str) -> String {
    let hunk = |n: usize| match n % 3 {
        0 => format!("*** Update File: old/{n}/f\n@@\n-old\n+{line}\n"),
        1 => format!("*** Delete File: old/{n}/f\n"),
        _ => format!("*** Add File: new/{n}/f\n+{line}\n"),
    };
    format!("*** Begin Patch\n{}*** End Patch\n", (0..MANY).map(hunk).collect::<String>())
}

fn yard_of_many() -> Tieline {
    let tieline = Tieline::new();
    for n in (0..MANY).filter(|n| n % 3 != 2) {
        let directory = tieline.work().join(format!("old/{n}"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("f"), "old\n").unwrap();
    }
    tieline
}

/// The content of each file, by its path.
fn contents(tieline: &Tieline) -> Vec<(String, String)> {
    let all = modes(&tieline.work()).into_iter().filter(|(path, _)| path.is_file());
    let mut all: Vec<_> = all
        .map(|(path, _)| {
            let name = path.strip_prefix(tieline.work()).unwrap().display().to_string();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
#[allow(clippy::disallowed_methods)] // a shell sets the limit for the program under test
fn a_patch_of_a_thousand_files_needs_few_descriptors() {
    let tieline = yard_of_many();
    // The text is longer than an argument may be.
    fs::write(tieline.work().join("patch"), many("new")).unwrap();
    let script = "ulimit -n 64; exec \"$0\" apply-patch < patch";
    let outcome: Outcome = Command::new("/bin/sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_tieline")])
        .current_dir(tieline.work())
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into();
    outcome.succeeds();
    let all = contents(&tieline);
    assert_eq!(all.iter().filter(|(_, content)| content == "new\n").count(), MANY - MANY / 3);
    assert!(!all.iter().any(|(name, _)| name.contains(".tieline-")), "{all:?}");
}

/// Everything below a directory, while somebody else changes it.
fn names_below(base: &std::path::Path) -> Vec<std::path::PathBuf> {
    let (mut all, mut open) = (Vec::new(), vec![base.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|it| it.is_dir()) {
                open.push(entry.path());
            }
            all.push(entry.path());
        }
    }
    all
}

#[test]
#[allow(clippy::disallowed_methods)] // the test kills what it starts
fn a_patch_whose_process_is_killed_is_ended_by_the_next_one() {
    let before = contents(&yard_of_many());
    // Killed when so many of its files are there: the record alone, some contents, changed places.
    for (what, is_it) in [
        ("a record", (|name: &str| name.ends_with(".patch")) as fn(&str) -> bool),
        ("a content", |name| name.ends_with(".tmp")),
        ("a new file", |name| name == "new/500/f"),
    ] {
        let tieline = yard_of_many();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tieline"))
            .arg("apply-patch")
            .current_dir(tieline.work())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, many("new").as_bytes()).unwrap();
        drop(stdin);
        // It may also have ended by itself meanwhile: then everything is new.
        let seen = |tieline: &Tieline| {
            let all = names_below(&tieline.work());
            all.iter().any(|path| {
                is_it(&path.strip_prefix(tieline.work()).unwrap().display().to_string())
            })
        };
        while !seen(&tieline) && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let outcome = tieline.run(&["apply-patch", "--recover"]).succeeds();
        let all = contents(&tieline);
        let n_new = all.iter().filter(|(_, content)| content == "new\n").count();
        let is_whole = n_new == MANY - MANY / 3 && all.len() == n_new;
        assert!(all == before || is_whole, "{what}: {n_new} of {}, {}", all.len(), outcome.err);
        // And there is nothing left to end.
        assert_eq!(tieline.run(&["apply-patch", "--recover"]).succeeds().err, "");
    }
}
