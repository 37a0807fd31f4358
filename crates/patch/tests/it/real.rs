//! Side by side with the real program: the same patches, the same files, the same words.
//!
//! Three differences are meant: a last line without an end keeps it so while the patch does not touch
//! it, moving a file onto itself does not delete it, and errors name files as the patch does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tieline_patch::{apply_in_order, parse};

use crate::dice::Dice;
use crate::yard::{QUICK, Thing, Yard, things};

const N_CASES: u64 = 500;

/// How the real program ended, and what it said.
// The tests stand outside the program: what they start is the program to compare with.
#[allow(clippy::disallowed_methods)]
fn codex(directory: &Path, patch: &str) -> (bool, String) {
    let program = tieline_testkit::agents::program("codex").unwrap();
    let output = Command::new(program)
        .args(["--codex-run-as-apply-patch", patch])
        .current_dir(directory)
        .env_clear()
        .env("HOME", directory.parent().unwrap())
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

fn ours(yard: &Yard, text: &str) -> (bool, String) {
    let patch = match parse(text) {
        Ok(patch) => patch,
        Err(err) => return (false, format!("{err}\n")),
    };
    match apply_in_order(&patch, &yard.roots(), QUICK) {
        (applied, Ok(())) => (true, applied.summary()),
        (_, Err(err)) => (false, format!("{err}\n")),
    }
}

const LINES: [&str; 14] =
    ["a", "b", "c", "a ", " b", "\tc", "", "  ", "x - y", "x – y", "“q”", "\"q\"", "@@", "-"];
const NAMES: [&str; 8] = ["f", "g", "d/h", "f", "g", "d/h", "new", "d/e/new"];
const NOISE: [&str; 11] = [
    "",
    " ",
    "*** End of File",
    "*** End of File ",
    " *** End of File",
    "*** Foo",
    "bad",
    "@@",
    "@@ a",
    "*** Move to: g",
    "\t",
];

fn content(dice: &mut Dice) -> String {
    let ends = match dice.roll(4) {
        0 => ["\r\n", "\r\n"],
        1 => ["\n", "\r\n"],
        _ => ["\n", "\n"],
    };
    let mut text = String::new();
    for _ in 0..dice.roll(9) {
        text.push_str(dice.pick(&LINES));
        text.push_str(dice.pick(&ends));
    }
    if dice.is_one_in(4) {
        text.push_str(dice.pick(&LINES));
    }
    text
}

fn patch(dice: &mut Dice, files: &BTreeMap<&str, String>) -> String {
    let mut text = "*** Begin Patch\n".to_owned();
    for _ in 0..1 + dice.roll(2) {
        let name = dice.pick(&NAMES);
        match dice.roll(6) {
            0 => {
                text.push_str(&format!("*** Add File: {name}\n"));
                (0..dice.roll(4)).for_each(|_| text.push_str(&format!("+{}\n", dice.pick(&LINES))));
            }
            1 => text.push_str(&format!("*** Delete File: {name}\n")),
            _ => update(dice, &mut text, name, files),
        }
        if dice.is_one_in(12) {
            text.push_str(&format!("{}\n", dice.pick(&NOISE)));
        }
    }
    text.push_str("*** End Patch");
    text
}

/// Chunks that mostly fit: lines of the file, copied with small mistakes.
fn update(dice: &mut Dice, text: &mut String, name: &str, files: &BTreeMap<&str, String>) {
    text.push_str(&format!("*** Update File: {name}\n"));
    if dice.is_one_in(5) {
        let to = NAMES.iter().filter(|it| **it != name).copied().collect::<Vec<_>>();
        text.push_str(&format!("*** Move to: {}\n", dice.pick(&to)));
    }
    let lines: Vec<&str> = files.get(name).map(|it| it.lines().collect()).unwrap_or_default();
    let mut at = 0;
    for index in 0..1 + dice.roll(2) {
        match dice.roll(4) {
            0 if index == 0 => {}
            1 => text.push_str(&format!("@@ {}\n", lines.get(at).unwrap_or(&"a"))),
            _ => text.push_str("@@\n"),
        }
        at += dice.roll(3);
        let n_old = dice.roll(4);
        for _ in 0..n_old {
            let line = lines.get(at).unwrap_or(&"").to_string();
            let line = match dice.roll(20) {
                0 => line.trim().to_owned(),
                1 => format!("{line} "),
                2 => line.replace('–', "-").replace(['“', '”'], "\""),
                3 => dice.pick(&LINES).to_string(),
                _ => line,
            };
            text.push_str(&format!("{}{line}\n", dice.pick(&[" ", " ", "-"])));
            at += 1;
        }
        (0..dice.roll(3)).for_each(|_| text.push_str(&format!("+{}\n", dice.pick(&LINES))));
        // The real program takes an update of nothing but this marker for nothing to do, unless it
        // is the last; we say that it is empty. And a single empty line that is not there is the
        // beginning of the file for it, also with this marker.
        if dice.is_one_in(5) && n_old != 1 && !ends_with_header(text) {
            text.push_str("*** End of File\n");
        }
        if dice.is_one_in(12) && !ends_with_header(text) {
            text.push_str(&format!("{}\n", dice.pick(&NOISE)));
        }
    }
}

fn ends_with_header(text: &str) -> bool {
    text.lines().last().is_some_and(|line| line.starts_with("*** "))
}

/// Contents without the end of their last line.
fn unended(things: BTreeMap<PathBuf, Thing>) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = things.into_iter().filter_map(|(path, thing)| match thing {
        Thing::File(_, content) => {
            let bare = content.strip_suffix(b"\n").unwrap_or(&content);
            Some((path, bare.strip_suffix(b"\r").unwrap_or(bare).to_vec()))
        }
        _ => None,
    });
    files.collect()
}

#[test]
fn random_patches_do_what_the_real_program_does() {
    let mut n_applied = 0;
    for seed in 1..=N_CASES {
        let mut dice = Dice::new(seed);
        let mut files = BTreeMap::new();
        for name in ["f", "g", "d/h"] {
            files.insert(name, content(&mut dice));
        }
        let text = patch(&mut dice, &files);
        let yards = [Yard::new(), Yard::new()]
            .map(|yard| files.iter().fold(yard, |yard, (name, content)| yard.with(name, content)));
        let real = codex(&yards[0].work(), &text);
        let real = (real.0, real.1.replace(&format!("{}/", yards[0].work().display()), ""));
        let own = ours(&yards[1], &text);
        assert_eq!(own, real, "seed {seed}:\n{text}\n{files:#?}");
        let left = yards.each_ref().map(|yard| unended(things(&yard.work())));
        assert_eq!(left[1], left[0], "seed {seed}:\n{text}\n{files:#?}");
        n_applied += u64::from(own.0);
    }
    assert!(n_applied > N_CASES / 5, "only {n_applied} fit");
}
