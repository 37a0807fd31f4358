use super::*;

#[track_caller]
fn check(script: &str, expected: &str) {
    let argv = ["bash", "-lc", script].map(str::to_owned);
    let found: Vec<String> = parsed_cmd(&argv)
        .into_iter()
        .map(|part| match part {
            ParsedCommand::Read { name, path, .. } => format!("read {name} at {path}"),
            ParsedCommand::ListFiles { path, .. } => format!("list {}", path.unwrap_or_default()),
            ParsedCommand::Search { query, path, .. } => {
                format!("search {} in {}", query.unwrap_or_default(), path.unwrap_or_default())
            }
            ParsedCommand::Unknown { cmd } => format!("unknown {cmd}"),
        })
        .collect();
    assert_eq!(found.join("; "), expected, "{script}");
}

#[test]
fn plain_commands_are_told_by_what_they_do() {
    for (script, expected) in [
        ("cat src/lib.rs", "read lib.rs at src/lib.rs"),
        ("cat -- -x", "read -x at -x"),
        ("nl -ba a.rs", "read a.rs at a.rs"),
        ("nl -ba a.rs | sed -n 1,50p", "read a.rs at a.rs"),
        ("sed -n 1,200p a/b.rs", "read b.rs at a/b.rs"),
        ("head -n 50 a.rs", "read a.rs at a.rs"),
        ("head -50 a.rs", "read a.rs at a.rs"),
        ("tail a.rs", "read a.rs at a.rs"),
        ("cd x && cat y", "read y at y"),
        ("cat a | head -n 5 | wc -l", "read a at a"),
        ("cat a; cat b", "read a at a; read b at b"),
        ("ls", "list "),
        ("ls -la src", "list src"),
        ("tree src", "list src"),
        ("git ls-files src", "list src"),
        ("rg --files src", "list src"),
        ("rg --files | head -n 20", "list "),
        ("find . -type f", "list ."),
        ("find src -name 'x.rs'", "search x.rs in src"),
        ("fd x src", "search x in src"),
        ("rg -n TODO src", "search TODO in src"),
        ("rg -A 3 -g '!x' 'a b' src", "search a b in src"),
        ("rg -e x src", "search x in src"),
        ("grep -rn TODO .", "search TODO in ."),
        ("grep -E -r 'a|b' src", "search a|b in src"),
        ("git grep x", "search x in "),
        ("rg x | sort | uniq -c | head", "search x in "),
        ("/usr/bin/ls x", "list x"),
    ] {
        check(script, expected);
    }
}

#[test]
fn whatever_else_is_told_as_it_was_written() {
    for script in [
        "make",
        "echo hi",
        "cd x",
        "cat a b",
        "cat a && make",
        "cat a > b",
        "ls *.rs",
        "git status",
        "sed -i s/a/b/ x",
        "sed -n 's/a/b/p' x",
        "find . -delete",
        "find . -exec rm x",
        "fd -x rm",
        "rg",
        "head -n 5",
        "cat",
        "",
    ] {
        check(script, &format!("unknown {script}"));
    }
    let argv = ["rm", "a b"].map(str::to_owned);
    assert_eq!(parsed_cmd(&argv), [ParsedCommand::Unknown { cmd: "rm 'a b'".to_owned() }]);
    assert_eq!(parsed_cmd(&[]), [ParsedCommand::Unknown { cmd: String::new() }]);
}

#[test]
fn the_wire_has_every_field() {
    let argv = ["bash", "-lc", "ls && cat a && rg x"].map(str::to_owned);
    assert_eq!(
        serde_json::to_string(&parsed_cmd(&argv)).unwrap(),
        r#"[{"type":"list_files","cmd":"ls","path":null},{"type":"read","cmd":"cat a","name":"a","path":"a"},{"type":"search","cmd":"rg x","query":"x","path":null}]"#
    );
}
