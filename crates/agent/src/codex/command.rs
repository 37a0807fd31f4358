//! Commands as a person would type them, and what they amount to.

use serde::Deserialize;
use serde_json::value::RawValue;
use tieline_event::{Gist, Place, ToolKind};

use crate::words::first_line;

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

/// What a command amounts to, as Codex read it. One that does several things, or anything that is
/// not plain, is a command and nothing else.
pub(crate) fn gist(actions: Option<&RawValue>) -> Option<Gist> {
    #[derive(Deserialize)]
    struct Action {
        #[serde(rename = "type")]
        kind: String,
        name: Option<String>,
        query: Option<String>,
        path: Option<String>,
    }
    let actions: Vec<Action> = serde_json::from_str(actions?.get()).ok()?;
    let [Action { kind, name, query, path }] = actions.as_slice() else { return None };
    let place = path.as_deref().map(|path| format!(" in '{path}'")).unwrap_or_default();
    let (kind, title) = match kind.as_str() {
        "read" => {
            let file = path.as_deref().or(name.as_deref())?;
            (ToolKind::Read, format!("Read file '{file}'"))
        }
        "search" => {
            let query = query.as_deref().map(|query| format!(" for '{query}'"));
            (ToolKind::Search, format!("Search{}{place}", query.unwrap_or_default()))
        }
        "listFiles" | "list_files" => (ToolKind::Read, format!("List files{place}")),
        _ => return None,
    };
    let places = path.iter().map(|path| Place { path: path.clone(), line: None }).collect();
    Some(Gist { kind, title: Some(first_line(&title)), places })
}

#[test]
fn a_command_that_does_one_plain_thing_is_told_as_that() {
    let gist = |text: &str| gist(Some(&RawValue::from_string(text.to_owned()).unwrap()));
    let title = |text: &str| gist(text).and_then(|gist| gist.title);
    let read = r#"{"type":"read","command":"cat a","name":"a","path":"/w/a"}"#;
    let told = gist(&format!("[{read}]")).unwrap();
    assert_eq!((told.kind, told.title.as_deref()), (ToolKind::Read, Some("Read file '/w/a'")));
    assert_eq!(told.places, [Place { path: "/w/a".to_owned(), line: None }]);
    assert_eq!(gist(&format!("[{read},{read}]")), None, "two things");
    assert_eq!(gist(r#"[{"type":"unknown","command":"make"}]"#), None);
    assert_eq!(gist("[]"), None);
    let search = r#"[{"type":"search","command":"rg x","query":"x","path":"src"}]"#;
    assert_eq!(title(search).unwrap(), "Search for 'x' in 'src'");
    let list = r#"[{"type":"list_files","cmd":"ls","path":null}]"#;
    assert_eq!(title(list).unwrap(), "List files");
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
