//! Commands that are known to be harmless, and those known to be not.

use super::danger::is_dangerous;
use super::script::segments;
use super::system_name;

#[cfg(test)]
mod tests;

/// What is known of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Safety {
    /// It reads and prints, and nothing else.
    Safe,
    /// It destroys what cannot be brought back.
    Dangerous,
    /// Nothing.
    Unknown,
}

/// What is known of a command; of a plain script, what is known of the worst of its commands.
pub fn safety(argv: &[String]) -> Safety {
    safety_of(&segments(argv))
}

/// The same for commands that are joined.
pub(super) fn safety_of(segments: &[Vec<String>]) -> Safety {
    if segments.iter().any(|argv| is_dangerous(argv)) {
        return Safety::Dangerous;
    }
    // `git` does what the repository's settings say, and that one may be somebody else's.
    let moves = segments.iter().any(|argv| name_of(argv) == Some("cd"));
    let all_known = segments.iter().all(|argv| match name_of(argv) {
        Some("git") => !moves && git_reads(argv.get(1..).unwrap_or_default()),
        Some(name) => reads_only(name, argv.get(1..).unwrap_or_default()),
        None => false,
    });
    if all_known { Safety::Safe } else { Safety::Unknown }
}

/// Whether a command is `git`.
pub(super) fn is_git(argv: &[String]) -> bool {
    name_of(argv) == Some("git")
}

fn name_of(argv: &[String]) -> Option<&str> {
    system_name(argv.first()?)
}

fn reads_only(name: &str, arguments: &[String]) -> bool {
    match name {
        // None of them writes a file or starts a program, whatever it is told.
        "cat" | "cd" | "cut" | "echo" | "expr" | "false" | "grep" | "head" | "id" | "ls" | "nl"
        | "numfmt" | "paste" | "pwd" | "rev" | "seq" | "sleep" | "stat" | "tac" | "tail" | "tr"
        | "true" | "uname" | "wc" | "which" | "whoami" => true,
        // It can set the clock, and read a file of dates.
        "date" => arguments.iter().all(|word| word == "-u" || word.starts_with('+')),
        // Its second file is written.
        "uniq" => {
            let is_operand = |word: &&String| !word.starts_with('-') || *word == "-";
            arguments.iter().filter(is_operand).count() <= 1
                && !arguments.iter().any(|word| word == "--")
        }
        "base64" => base64_reads(arguments),
        "find" => !arguments.iter().any(|word| {
            const ACTS: [&str; 5] = ["-exec", "-ok", "-delete", "-fls", "-fprint"];
            ACTS.iter().any(|act| word.starts_with(act))
        }),
        "rg" => !arguments.iter().any(|word| match word.strip_prefix("--") {
            Some(long) => {
                ["pre", "hostname-bin", "search-zip"].iter().any(|it| long.starts_with(it))
            }
            // Letters can stand together: `-nz` has `-z`.
            None => word.starts_with('-') && word.contains('z'),
        }),
        "sed" => sed_prints(arguments),
        _ => false,
    }
}

fn base64_reads(arguments: &[String]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let known = match word.as_str() {
            "-d" | "-D" | "-i" | "-di" | "--decode" | "--ignore-garbage" | "--help"
            | "--version" | "-" => true,
            "-w" => words.next().is_some_and(|n| is_number(n)),
            word => match word.strip_prefix("--wrap=").or_else(|| word.strip_prefix("-w")) {
                Some(n) => is_number(n),
                None => !word.starts_with('-'),
            },
        };
        if !known {
            return false;
        }
    }
    true
}

/// `sed -n 3p FILE` and `sed -n 3,7p FILE`, nothing else: its scripts can write and run.
fn sed_prints(arguments: &[String]) -> bool {
    let (script, file) = match arguments {
        [flag, script] if flag == "-n" => (script, None),
        [flag, script, file] if flag == "-n" => (script, Some(file)),
        _ => return false,
    };
    let Some(lines) = script.strip_suffix('p') else { return false };
    let is_range = match lines.split_once(',') {
        Some((from, to)) => is_number(from) && is_number(to),
        None => is_number(lines),
    };
    is_range && file.is_none_or(|file| !file.starts_with('-'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Ways of `git` to look at things. Settings on the command line can name programs to run, and a
/// directory can have settings of its own, so nothing stands before the word but that there is no
/// pager.
fn git_reads(arguments: &[String]) -> bool {
    let mut words = arguments;
    while let [first, rest @ ..] = words
        && matches!(first.as_str(), "--no-pager" | "-P" | "--no-optional-locks")
    {
        words = rest;
    }
    let [verb, options @ ..] = words else { return false };
    match verb.as_str() {
        "status" | "log" | "diff" | "show" => !options.iter().any(|word| acts(word)),
        "branch" => branch_lists(options),
        _ => false,
    }
}

/// An option that writes a file or starts a program. `git` takes every beginning of a long one that
/// can mean only one.
fn acts(word: &str) -> bool {
    const ACTS: [&str; 6] = ["output", "ext-diff", "textconv", "exec", "paginate", "open-files"];
    let Some(long) = word.strip_prefix("--") else { return false };
    let name = long.split_once('=').map_or(long, |(name, _)| name);
    !name.is_empty() && ACTS.iter().any(|act| act.starts_with(name))
}

fn branch_lists(options: &[String]) -> bool {
    const ALONE: [&str; 19] = [
        "-a",
        "--all",
        "-r",
        "--remotes",
        "-v",
        "-vv",
        "-av",
        "-avv",
        "-rv",
        "-rvv",
        "--verbose",
        "-l",
        "--list",
        "--show-current",
        "--color",
        "--no-color",
        "--no-column",
        "-i",
        "--ignore-case",
    ];
    const WITH_VALUE: [&str; 8] = [
        "--sort=",
        "--format=",
        "--color=",
        "--contains=",
        "--merged=",
        "--no-merged=",
        "--points-at=",
        "--abbrev=",
    ];
    // A bare word is the name of a new branch, but with `--list` it is a pattern.
    let lists = options.iter().any(|word| word == "--list");
    options.iter().all(|word| {
        ALONE.contains(&word.as_str())
            || WITH_VALUE.iter().any(|option| word.starts_with(option))
            || (lists && !word.starts_with('-'))
    })
}
