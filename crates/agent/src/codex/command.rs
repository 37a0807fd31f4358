//! Commands as a person would type them.

/// Codex runs everything as `/bin/bash -lc '…'` and says so; what stands inside is the command.
pub(crate) fn bare_command(command: &str) -> String {
    let words = shlex::split(command);
    match words.as_deref().and_then(inner) {
        Some(inner) => inner.to_owned(),
        None => command.to_owned(),
    }
}

/// The same for a command that comes as a list of words.
pub(crate) fn bare_words(words: &[String]) -> String {
    match inner(words) {
        Some(inner) => inner.to_owned(),
        None => {
            shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
        }
    }
}

fn inner(words: &[String]) -> Option<&str> {
    let [shell, flag, script] = words else { return None };
    // A shell from anywhere else may be any program.
    let places = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"];
    let name = places.iter().find_map(|place| shell.strip_prefix(place)).unwrap_or(shell);
    let is_shell = matches!(name, "bash" | "sh" | "zsh" | "dash" | "ksh" | "fish");
    (is_shell && matches!(flag.as_str(), "-lc" | "-c")).then_some(script)
}

#[test]
fn the_shell_around_a_command_is_taken_off() {
    assert_eq!(bare_command("/bin/bash -lc 'echo hi; ls \"a b\"'"), "echo hi; ls \"a b\"");
    assert_eq!(bare_command("/bin/zsh -lc \"printf '%s' 'x' > y\""), "printf '%s' 'x' > y");
    assert_eq!(bare_command("git push"), "git push");
    assert_eq!(bare_command("./bash -lc ls"), "./bash -lc ls");
    assert_eq!(bare_command("echo 'unbalanced"), "echo 'unbalanced");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(bare_words(&words(&["bash", "-lc", "ls | wc"])), "ls | wc");
    assert_eq!(bare_words(&words(&["grep", "a b", "c"])), "grep 'a b' c");
}
