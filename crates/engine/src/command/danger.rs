//! Commands that destroy what cannot be brought back, also behind other commands that only start
//! them.

use super::base_name;
use super::script::{plain, plain_script};

/// So many commands in front of the one that matters are looked through.
const DEEPEST: usize = 8;

/// Whether this command, or the one it starts, destroys.
pub(super) fn is_dangerous(argv: &[String]) -> bool {
    within(argv, DEEPEST)
}

fn within(argv: &[String], depth: usize) -> bool {
    let [program, arguments @ ..] = argv else { return false };
    let Some(depth) = depth.checked_sub(1) else { return false };
    let any = |commands: Option<Vec<Vec<String>>>| {
        commands.is_some_and(|commands| commands.iter().any(|argv| within(argv, depth)))
    };
    match base_name(program) {
        "rm" => is_forced(arguments),
        "git" => git_destroys(arguments),
        "eval" => any(plain(&arguments.join(" "))),
        "trap" => any(arguments.first().and_then(|script| plain(script))),
        "find" => find_commands(arguments).any(|argv| within(argv, depth)),
        _ if any(plain_script(argv)) => true,
        _ => started(argv).is_some_and(|inner| within(&inner, depth)),
    }
}

/// The command that another one only starts: what stands behind `sudo`, `env`, `timeout 5`.
pub(super) fn started(argv: &[String]) -> Option<Vec<String>> {
    let [program, rest @ ..] = argv else { return None };
    // Options that have their value in the next word, and how many words stand before the command.
    let (with_value, n_before): (&[&str], usize) = match base_name(program) {
        "sudo" => (
            &[
                "-u",
                "-g",
                "-h",
                "-p",
                "-C",
                "-r",
                "-t",
                "-T",
                "-U",
                "-D",
                "-R",
                "--user",
                "--group",
                "--host",
                "--prompt",
                "--close-from",
                "--role",
                "--type",
                "--command-timeout",
                "--other-user",
                "--chdir",
                "--chroot",
            ],
            0,
        ),
        "doas" => (&["-u", "-C"], 0),
        "env" => (&["-u", "-C", "--unset", "--chdir", "--argv0", "-a"], 0),
        "nice" => (&["-n", "--adjustment"], 0),
        "ionice" => (&["-c", "-n", "--class", "--classdata"], 0),
        "timeout" => (&["-k", "-s", "--kill-after", "--signal"], 1),
        "stdbuf" => (&["-i", "-o", "-e", "--input", "--output", "--error"], 0),
        "exec" => (&["-a"], 0),
        "time" => (&["-f", "-o", "--format", "--output"], 0),
        "xargs" => (
            &[
                "-a",
                "-d",
                "-E",
                "-I",
                "-L",
                "-n",
                "-P",
                "-s",
                "--arg-file",
                "--delimiter",
                "--max-args",
                "--max-chars",
                "--max-lines",
                "--max-procs",
                "--replace",
            ],
            0,
        ),
        "chroot" => (&[], 1),
        "nohup" | "setsid" | "command" | "builtin" | "busybox" | "toybox" | "noglob"
        | "nocorrect" => (&[], 0),
        _ => return None,
    };
    let is_env = base_name(program) == "env";
    let assigns = is_env || base_name(program) == "sudo";
    let mut words = rest;
    let mut options_over = false;
    while let [word, after @ ..] = words {
        let is_option = !options_over && word.starts_with('-') && word.len() > 1;
        words = if is_env
            && is_option
            && let Some((text, after)) = split_string(word, after)
        {
            // `env -S` cuts a string into words as a shell does.
            let mut inner = vec![program.clone()];
            inner.extend(shlex::split(text)?);
            inner.extend_from_slice(after);
            return Some(inner);
        } else if is_option && word == "--" {
            options_over = true;
            after
        } else if is_option && with_value.contains(&word.as_str()) {
            after.get(1..).unwrap_or_default()
        } else if is_option || (assigns && word.contains('=')) {
            after
        } else {
            break;
        };
    }
    let inner = words.get(n_before..).unwrap_or_default();
    (!inner.is_empty()).then(|| inner.to_vec())
}

/// The string of `env -S STRING`, in each of its forms, and the words after it.
fn split_string<'a>(word: &'a str, after: &'a [String]) -> Option<(&'a str, &'a [String])> {
    if matches!(word, "-S" | "--split-string") {
        let [text, after @ ..] = after else { return None };
        return Some((text, after));
    }
    let glued = word.strip_prefix("-S").or_else(|| word.strip_prefix("--split-string="));
    glued.map(|text| (text, after))
}

/// What `find` starts.
fn find_commands(arguments: &[String]) -> impl Iterator<Item = &[String]> {
    let starts = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    (0..arguments.len()).filter_map(move |at| {
        let (word, rest) = arguments.get(at..)?.split_first()?;
        starts(word).then_some(rest)
    })
}

/// Whether `rm` is told not to ask.
fn is_forced(arguments: &[String]) -> bool {
    options(arguments).any(|word| has_letter(word, 'f') || is_long(word, "force"))
}

fn git_destroys(arguments: &[String]) -> bool {
    let mut words = arguments;
    // What stands before the verb.
    while let [word, after @ ..] = words
        && word.starts_with('-')
    {
        let with_value = matches!(
            word.as_str(),
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--exec-path"
                | "--config-env"
                | "--super-prefix"
                | "--attr-source"
        );
        words = if with_value { after.get(1..).unwrap_or_default() } else { after };
    }
    let [verb, rest @ ..] = words else { return false };
    match verb.as_str() {
        "reset" | "rm" => true,
        "branch" => options(rest)
            .any(|word| has_letter(word, 'd') || has_letter(word, 'D') || is_long(word, "delete")),
        "clean" => options(rest).any(|word| has_letter(word, 'f') || is_long(word, "force")),
        "push" => {
            let forced = options(rest).any(|word| {
                has_letter(word, 'f')
                    || has_letter(word, 'd')
                    || ["force", "force-with-lease", "delete", "mirror", "prune"]
                        .iter()
                        .any(|option| is_long(word, option))
            });
            // `+main` is a forced update, `:main` deletes.
            forced || rest.iter().any(|word| word.starts_with(['+', ':']))
        }
        _ => false,
    }
}

/// The words up to `--` that are options.
fn options(words: &[String]) -> impl Iterator<Item = &str> {
    words
        .iter()
        .map(String::as_str)
        .take_while(|word| *word != "--")
        .filter(|word| word.starts_with('-') && word.len() > 1)
}

/// Whether a letter is among those of a short option: `-rf` has `f`.
fn has_letter(word: &str, letter: char) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

/// Whether a word is a long option, or a beginning of it.
fn is_long(word: &str, option: &str) -> bool {
    let Some(long) = word.strip_prefix("--") else { return false };
    let name = long.split_once('=').map_or(long, |(name, _)| name);
    !name.is_empty() && option.starts_with(name)
}
