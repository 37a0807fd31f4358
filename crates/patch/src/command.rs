//! Patches that come as a command: models run `apply_patch` as if it were a program.
//!
//! What is taken for a patch is not run by a shell any more, so nothing may be left over that a shell
//! would have done. The script is read letter by letter, and whatever is not exactly one of the known
//! forms is somebody else's.

#[cfg(test)]
mod tests;

/// A patch that was found in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'a> {
    /// Its text; whether it is a patch is not known yet.
    pub patch: &'a str,
    /// Where it is to be applied, from where the command would have run.
    pub workdir: Option<&'a str>,
}

/// Finds the patch in a command line: `apply_patch PATCH`, or a shell with a script that is nothing
/// but `[cd DIRECTORY &&] apply_patch <<'EOF'` and the patch.
pub fn from_command(argv: &[String]) -> Option<Found<'_>> {
    match argv {
        [program, patch] if is_apply_patch(program) => Some(Found { patch, workdir: None }),
        [shell, flag, script] if is_shell(shell) && matches!(flag.as_str(), "-lc" | "-c") => {
            from_script(script)
        }
        _ => None,
    }
}

fn is_apply_patch(word: &str) -> bool {
    matches!(word, "apply_patch" | "applypatch")
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(name, "bash" | "sh" | "zsh")
}

fn from_script(script: &str) -> Option<Found<'_>> {
    let (first, rest) = script.trim_start_matches(['\n', ' ', '\t']).split_once('\n')?;
    let (workdir, command) = match first.strip_prefix("cd").and_then(blank) {
        Some(after) => {
            let (directory, after) = word(after)?;
            (Some(directory), blanks(blanks(after).strip_prefix("&&")?))
        }
        None => (None, first),
    };
    let end = command.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_'))?;
    let (program, after) = command.split_at_checked(end)?;
    if !is_apply_patch(program) {
        return None;
    }
    let (delimiter, is_quoted) = delimiter(blanks(after).strip_prefix("<<")?)?;
    let patch = document(rest, delimiter)?;
    // A shell would put something else in the place of these.
    let is_plain = is_quoted || !patch.contains(['$', '`', '\\']);
    is_plain.then_some(Found { patch, workdir })
}

/// What comes after at least one space.
fn blank(text: &str) -> Option<&str> {
    text.starts_with([' ', '\t']).then(|| blanks(text))
}

fn blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// A word that means itself, bare or in quotes, and what is behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = match text.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'')?,
        None => match text.strip_prefix('"') {
            Some(quoted) => {
                let (word, rest) = quoted.split_once('"')?;
                (!word.contains(['$', '`', '\\', '!'])).then_some((word, rest))?
            }
            None => {
                let is_plain = |it: char| it.is_alphanumeric() || "/._-+:@%,=".contains(it);
                let end = text.find(|it| !is_plain(it)).unwrap_or(text.len());
                text.split_at_checked(end)?
            }
        },
    };
    // `-` and options of `cd` mean something else, and so does a word that goes on.
    let is_whole = rest.is_empty() || rest.starts_with([' ', '\t', '&']);
    (is_whole && !word.is_empty() && !word.starts_with('-')).then_some((word, rest))
}

/// The delimiter of a here-document, which ends its line, and whether it is quoted.
fn delimiter(text: &str) -> Option<(&str, bool)> {
    let text = blanks(text).trim_end_matches([' ', '\t']);
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|it| it.strip_suffix(quote));
    let (name, is_quoted) = match quoted('\'').or_else(|| quoted('"')) {
        Some(name) => (name, true),
        None => (text, false),
    };
    let is_plain = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    (is_plain && !name.is_empty()).then_some((name, is_quoted))
}

/// What stands before the line that is the delimiter, if nothing but space is behind it.
fn document<'a>(text: &'a str, delimiter: &str) -> Option<&'a str> {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        if line.strip_suffix('\n').unwrap_or(line) == delimiter {
            let (patch, rest) = text.split_at_checked(length)?;
            let rest = rest.strip_prefix(delimiter)?;
            return rest.trim().is_empty().then_some(patch);
        }
        length += line.len();
    }
    None
}
