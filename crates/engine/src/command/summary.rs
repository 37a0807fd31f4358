//! What a command amounts to, in the words of the queue protocol: it reads a file, lists files,
//! searches, or does something else.

use serde::{Deserialize, Serialize};

use super::script::plain_script;
use super::{base_name, shown};

#[cfg(test)]
mod tests;

/// What a command amounts to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ParsedCommand {
    /// It shows a file.
    Read {
        /// The command.
        cmd: String,
        /// The file's name.
        name: String,
        /// Its path, as it was written.
        path: String,
    },
    /// It lists files.
    ListFiles {
        /// The command.
        cmd: String,
        /// Where.
        path: Option<String>,
    },
    /// It searches.
    Search {
        /// The command.
        cmd: String,
        /// For what.
        query: Option<String>,
        /// Where.
        path: Option<String>,
    },
    /// It does something else.
    Unknown {
        /// The command.
        cmd: String,
    },
}

/// What a command amounts to, one entry for each of its parts. A script with a part that is
/// something else is something else as a whole.
pub fn parsed_cmd(argv: &[String]) -> Vec<ParsedCommand> {
    let parts = plain_script(argv).unwrap_or_else(|| vec![argv.to_vec()]);
    let found: Option<Vec<_>> =
        parts.iter().enumerate().map(|(at, words)| summary(words, at == 0)).collect();
    let mut found: Vec<ParsedCommand> = found.unwrap_or_default().into_iter().flatten().collect();
    if found.is_empty() {
        found.push(ParsedCommand::Unknown { cmd: whole(argv) });
    }
    found
}

/// The command as a person would type it.
fn whole(argv: &[String]) -> String {
    match argv {
        [shell, flag, script]
            if super::script::is_shell(shell) && matches!(flag.as_str(), "-lc" | "-c") =>
        {
            script.clone()
        }
        _ => shown(argv),
    }
}

/// What one command amounts to: nothing at all when it only shapes what another one printed.
fn summary(words: &[String], is_first: bool) -> Option<Option<ParsedCommand>> {
    let [program, arguments @ ..] = words else { return None };
    let cmd = shown(words);
    let read = |path: &str| {
        let name = base_name(path.trim_end_matches('/')).to_owned();
        ParsedCommand::Read { cmd: cmd.clone(), name, path: path.to_owned() }
    };
    let found = match base_name(program) {
        "cd" => return Some(None),
        "true" | "false" | "pwd" | "echo" | "printf" if !is_first => return Some(None),
        "cat" | "bat" | "nl" | "tac" => match operands(arguments, &[]).as_slice() {
            [path] => read(path),
            _ => return None,
        },
        "head" | "tail" => {
            match operands(arguments, &["-n", "-c", "--lines", "--bytes"]).as_slice() {
                [path] => read(path),
                [] if !is_first => return Some(None),
                _ => return None,
            }
        }
        "sed" => match arguments {
            [flag, script, path] if flag == "-n" && prints(script) => read(path),
            [flag, script] if flag == "-n" && prints(script) && !is_first => return Some(None),
            _ => return None,
        },
        "wc" | "sort" | "uniq" | "cut" | "tr" | "column" if !is_first => {
            return if operands(arguments, &["-f", "-d", "-c", "-k", "-t"]).len() <= 2 {
                Some(None)
            } else {
                None
            };
        }
        "ls" | "eza" | "exa" | "tree" | "du" => ParsedCommand::ListFiles {
            cmd,
            path: operands(arguments, &["-I", "-w", "--ignore", "--width", "--max-depth"])
                .first()
                .map(|path| (*path).to_owned()),
        },
        "find" | "fd" | "fdfind" => return find(base_name(program), arguments, cmd).map(Some),
        "rg" | "grep" | "egrep" | "fgrep" | "ag" | "ack" => {
            return search(base_name(program), arguments, cmd).map(Some);
        }
        "git" => match arguments {
            [verb, rest @ ..] if verb == "grep" => return search("grep", rest, cmd).map(Some),
            [verb, rest @ ..] if verb == "ls-files" => ParsedCommand::ListFiles {
                cmd,
                path: operands(rest, &["-x", "-X"]).first().map(|path| (*path).to_owned()),
            },
            _ => return None,
        },
        _ => return None,
    };
    Some(Some(found))
}

fn find(name: &str, arguments: &[String], cmd: String) -> Option<ParsedCommand> {
    if name != "find" {
        let words = operands(arguments, &["-e", "-E", "-t", "-d", "--extension", "--type"]);
        if arguments
            .iter()
            .any(|word| matches!(word.as_str(), "-x" | "-X") || word.starts_with("--exec"))
        {
            return None;
        }
        return Some(match words.as_slice() {
            [] => ParsedCommand::ListFiles { cmd, path: None },
            [query, rest @ ..] => ParsedCommand::Search {
                cmd,
                query: Some((*query).to_owned()),
                path: rest.first().map(|path| (*path).to_owned()),
            },
        });
    }
    let acts = |word: &String| {
        ["-exec", "-ok", "-delete", "-fls", "-fprint"].iter().any(|act| word.starts_with(act))
    };
    if arguments.iter().any(acts) {
        return None;
    }
    let path = arguments.first().filter(|word| !word.starts_with(['-', '(', '!'])).cloned();
    let is_name = |word: &&[String]| {
        matches!(word.first().map(String::as_str), Some("-name" | "-iname" | "-path" | "-regex"))
    };
    match arguments.windows(2).find(is_name) {
        Some(pair) => Some(ParsedCommand::Search { cmd, query: pair.get(1).cloned(), path }),
        None => Some(ParsedCommand::ListFiles { cmd, path }),
    }
}

fn search(name: &str, arguments: &[String], cmd: String) -> Option<ParsedCommand> {
    const VALUES: [&str; 20] = [
        "-A",
        "-B",
        "-C",
        "-m",
        "-g",
        "-t",
        "-T",
        "-e",
        "-f",
        "-j",
        "-M",
        "-r",
        "-E",
        "--glob",
        "--type",
        "--max-count",
        "--context",
        "--include",
        "--exclude",
        "--max-depth",
    ];
    // For `grep` these are switches.
    let values: Vec<&str> = match name {
        "rg" => VALUES.to_vec(),
        _ => VALUES
            .into_iter()
            .filter(|it| !matches!(*it, "-r" | "-E" | "-T" | "-g" | "-t" | "-M" | "-j"))
            .collect(),
    };
    let found = operands(arguments, &values);
    let mut words = found.iter().map(|word| (*word).to_owned());
    if name == "rg" && arguments.iter().any(|word| word == "--files") {
        return Some(ParsedCommand::ListFiles { cmd, path: words.next() });
    }
    let given = arguments.windows(2).find(|pair| pair.first().is_some_and(|it| it == "-e"));
    let query = match given {
        Some(pair) => pair.get(1).cloned(),
        None => words.next(),
    };
    query.as_ref()?;
    let path = words.next();
    Some(ParsedCommand::Search { cmd, query, path })
}

/// The words that are neither options nor values of such.
fn operands<'a>(arguments: &'a [String], with_value: &[&str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--" {
            found.extend(words);
            break;
        }
        if with_value.contains(&word) {
            words.next();
        } else if !word.starts_with('-') || word == "-" {
            found.push(word);
        }
    }
    found
}

/// `10p` or `10,20p`.
fn prints(script: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    script.strip_suffix('p').is_some_and(|lines| match lines.split_once(',') {
        Some((from, to)) => is_number(from) && is_number(to),
        None => is_number(lines),
    })
}
