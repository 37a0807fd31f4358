//! Scripts that are nothing but commands: plain words, joined by `&&`, `||`, `;` and `|`.

use super::{base_name, system_name};

#[cfg(test)]
mod tests;

/// A longer script is not plain.
const LONGEST: usize = 64 * 1024;

/// So many shells within shells are looked through.
const DEEPEST: usize = 4;

/// The commands of `bash -lc SCRIPT`, when the script consists of plain words and quoted strings
/// that are joined by `&&`, `||`, `;` or `|`. Whatever else a shell knows makes it none: nothing
/// here guesses what an expansion would give.
pub fn plain_script(argv: &[String]) -> Option<Vec<Vec<String>>> {
    let [shell, flag, script] = argv else { return None };
    let is_shell = matches!(system_name(shell)?, "bash" | "zsh" | "sh");
    (is_shell && matches!(flag.as_str(), "-lc" | "-c")).then(|| plain(script))?
}

/// The commands a command consists of: those of its script, of scripts within that, or itself.
pub fn segments(argv: &[String]) -> Vec<Vec<String>> {
    fn add(argv: Vec<String>, depth: usize, found: &mut Vec<Vec<String>>) {
        match plain_script(&argv) {
            Some(inner) if depth < DEEPEST => {
                inner.into_iter().for_each(|argv| add(argv, depth + 1, found));
            }
            _ => found.push(argv),
        }
    }
    let mut found = Vec::new();
    add(argv.to_vec(), 0, &mut found);
    found
}

/// Whether this is a shell with something to run.
pub(super) fn is_shell(program: &str) -> bool {
    const SHELLS: [&str; 12] = [
        "bash",
        "sh",
        "zsh",
        "dash",
        "ksh",
        "fish",
        "csh",
        "tcsh",
        "ash",
        "mksh",
        "pwsh",
        "powershell",
    ];
    SHELLS.contains(&base_name(program))
}

/// The commands of a plain script.
pub(super) fn plain(script: &str) -> Option<Vec<Vec<String>>> {
    if script.len() > LONGEST {
        return None;
    }
    let mut commands = Vec::new();
    let mut command = Command::default();
    let mut rest = script.chars().peekable();
    // What stands between the last two commands; a script may end with `;` alone.
    let mut joined_by = None;
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => command.end_word(),
            ';' | '|' | '&' => {
                let doubled = rest.next_if_eq(&c).is_some();
                if (c == '&') != doubled && c != '|' {
                    return None;
                }
                // `|&` takes stderr along, `;&` is of `case`, `&&&` is nothing.
                if rest.peek().is_some_and(|next| matches!(next, '&' | ';' | '|')) {
                    return None;
                }
                commands.push(command.take()?);
                joined_by = Some(c);
            }
            '\'' => {
                command.quoted = true;
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => command.push(may_be_quoted(c)?),
                    }
                }
            }
            '"' => {
                command.quoted = true;
                double_quoted(&mut rest, &mut command)?;
            }
            c => command.push_bare(c)?,
        }
    }
    match command.take() {
        Some(words) => commands.push(words),
        None if command.is_empty() && joined_by == Some(';') => {}
        None => return None,
    }
    Some(commands)
}

fn double_quoted(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    command: &mut Command,
) -> Option<()> {
    loop {
        match rest.next()? {
            '"' => return Some(()),
            // `!` would be history where somebody turned it on.
            '$' | '`' | '!' => return None,
            '\\' => match rest.next()? {
                c @ ('$' | '`' | '"' | '\\') => command.push(c),
                '\n' | '!' => return None,
                c => {
                    command.push('\\');
                    command.push(may_be_quoted(c)?);
                }
            },
            c => command.push(may_be_quoted(c)?),
        }
    }
}

/// Within quotes everything may stand but what a terminal would act on.
fn may_be_quoted(c: char) -> Option<char> {
    (!c.is_control() || matches!(c, '\n' | '\t')).then_some(c)
}

/// A command that is being read.
#[derive(Debug, Default)]
struct Command {
    words: Vec<String>,
    word: String,
    /// The word has quotes, so it is one even when it is empty.
    quoted: bool,
    /// The first word has a `=` outside of quotes, so it is an assignment.
    assigns: bool,
    /// The first word has quotes, so it is no keyword.
    first_quoted: bool,
}

impl Command {
    fn push(&mut self, c: char) {
        self.word.push(c);
    }

    /// Takes a character outside of quotes, if it means nothing to any shell.
    fn push_bare(&mut self, c: char) -> Option<()> {
        let is_first = self.words.is_empty();
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '/' | ',' | ':' | '+' | '@' => {}
            '%' if !is_first => {}
            // `=ls` is the path of `ls` in zsh.
            '=' if self.word.is_empty() && !self.quoted => return None,
            '=' => self.assigns |= is_first,
            c if !c.is_ascii() && c.is_alphanumeric() => {}
            _ => return None,
        }
        self.push(c);
        Some(())
    }

    fn end_word(&mut self) {
        let quoted = std::mem::take(&mut self.quoted);
        if quoted || !self.word.is_empty() {
            if self.words.is_empty() {
                self.first_quoted = quoted;
            }
            self.words.push(std::mem::take(&mut self.word));
        }
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.word.is_empty() && !self.quoted
    }

    /// The words of a command that is whole.
    fn take(&mut self) -> Option<Vec<String>> {
        self.end_word();
        let first = self.words.first()?;
        if self.assigns || (!self.first_quoted && is_keyword(first)) {
            return None;
        }
        Some(std::mem::take(self).words)
    }
}

/// A word that makes something else than a command of what follows, in one shell or another.
fn is_keyword(word: &str) -> bool {
    const KEYWORDS: [&str; 26] = [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "do",
        "done",
        "case",
        "esac",
        "while",
        "until",
        "for",
        "in",
        "function",
        "select",
        "time",
        "coproc",
        "repeat",
        "foreach",
        "end",
        "nocorrect",
        "noglob",
        "always",
        "-",
        "declare",
        "typeset",
    ];
    KEYWORDS.contains(&word)
}
