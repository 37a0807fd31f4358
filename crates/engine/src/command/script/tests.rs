use proptest::prelude::*;

use super::*;

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[track_caller]
fn plain_is(script: &str, expected: &[&[&str]]) {
    let found = plain_script(&argv(&["bash", "-lc", script]));
    let expected: Vec<Vec<String>> = expected.iter().map(|words| argv(words)).collect();
    assert_eq!(found, Some(expected), "{script:?}");
}

#[test]
fn plain_words_are_cut_as_a_shell_cuts_them() {
    plain_is("ls", &[&["ls"]]);
    plain_is("  ls\t-la  ", &[&["ls", "-la"]]);
    plain_is("ls && pwd", &[&["ls"], &["pwd"]]);
    plain_is("a&&b||c;d|e", &[&["a"], &["b"], &["c"], &["d"], &["e"]]);
    plain_is("ls;", &[&["ls"]]);
    plain_is("ls ; ", &[&["ls"]]);
    plain_is("echo 'a b' \"c d\"", &[&["echo", "a b", "c d"]]);
    plain_is("echo 'a && b; c | d > e $f `g` *'", &[&["echo", "a && b; c | d > e $f `g` *"]]);
    plain_is("echo \"a && b; c | d > e *\"", &[&["echo", "a && b; c | d > e *"]]);
    plain_is("c\"a\"t 'f'ile", &[&["cat", "file"]]);
    plain_is("r'm' -\"rf\" /", &[&["rm", "-rf", "/"]]);
    plain_is("echo ''", &[&["echo", ""]]);
    plain_is("echo \"\"a", &[&["echo", "a"]]);
    plain_is("'' a", &[&["", "a"]]);
    plain_is("grep \"foo\\.bar\" x", &[&["grep", "foo\\.bar", "x"]]);
    plain_is("grep \"a\\\"b\\\\c\\$d\\`e\" x", &[&["grep", "a\"b\\c$d`e", "x"]]);
    plain_is("grep 'a\\b' x", &[&["grep", "a\\b", "x"]]);
    plain_is("echo 'a\nb'", &[&["echo", "a\nb"]]);
    plain_is("sed -n 1,5p a.rs", &[&["sed", "-n", "1,5p", "a.rs"]]);
    plain_is("git log --format=%h -n5", &[&["git", "log", "--format=%h", "-n5"]]);
    plain_is("cat größe.txt 日本.md", &[&["cat", "größe.txt", "日本.md"]]);
    plain_is("'if' x", &[&["if", "x"]]);
    plain_is("echo if then", &[&["echo", "if", "then"]]);
    plain_is("make CFLAGS=-O2", &[&["make", "CFLAGS=-O2"]]);
}

#[test]
fn whatever_else_a_shell_knows_is_not_plain() {
    let scripts = [
        // Nothing, or half of something.
        "",
        "   ",
        ";",
        ";ls",
        "&& ls",
        "ls &&",
        "ls && ",
        "ls |",
        "ls ||",
        "ls | | wc",
        "ls ;; pwd",
        "ls; ; pwd",
        "ls && ; pwd",
        "echo 'a",
        "echo \"a",
        "echo \"a\\",
        "echo a\\",
        // Redirects.
        "ls > x",
        "ls >x",
        "ls>x",
        "ls >> x",
        "ls 2>&1",
        "ls 2>/dev/null",
        "ls &> x",
        "ls >| x",
        "ls >& x",
        "cat < x",
        "cat<x",
        "cat <<EOF\na\nEOF",
        "cat <<'EOF'\na\nEOF",
        "cat <<< x",
        "diff <(a) <(b)",
        "tee >(cat)",
        // Substitution and variables.
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "echo \"`rm x`\"",
        "echo $HOME",
        "echo ${HOME}",
        "echo \"$HOME\"",
        "echo $((1+1))",
        "echo $'a\\nb'",
        "echo $\"a\"",
        "echo $",
        "echo \"$\"",
        "ls $IFS-la",
        "X=1",
        "X=1 ls",
        "X= ls",
        "X+=1 ls",
        "PATH=. ls",
        "'X'=1 ls",
        "ls && X=1 ls",
        // Globs, braces, tildes.
        "ls *",
        "ls ?",
        "ls [a]",
        "ls a]",
        "ls {a,b}",
        "ls ~",
        "ls ~root",
        "cat a:~",
        "ls ^a",
        "ls a#b",
        "=ls",
        "ls =ls",
        // Subshells, groups, background, negation, keywords.
        "(ls)",
        "{ ls; }",
        "ls &",
        "ls & pwd",
        "ls&pwd",
        "ls |& wc",
        "ls |&",
        "ls &&& pwd",
        "ls ||| wc",
        "ls ;& pwd",
        "! ls",
        "!ls",
        "echo !!",
        "echo \"!!\"",
        "echo \"a\\!\"",
        "if true; then ls; fi",
        "for x in a; do ls; done",
        "while true; do ls; done",
        "case a in b) ls;; esac",
        "function f { ls; }",
        "f() { ls; }",
        "f () ls",
        "time ls",
        "coproc ls",
        "repeat 3 ls",
        "[[ a ]]",
        "[ a ]",
        "((a))",
        "noglob ls",
        "- ls",
        // Comments and lines.
        "ls # rm",
        "#ls",
        "ls\nrm x",
        "ls \\\nrm",
        "ls\\\n-la",
        "ls \"a\\\nb\"",
        "ls\r",
        "ls\r\nrm",
        // Escapes and jobs.
        "ls a\\ b",
        "\\ls",
        "l\\s",
        "%1",
        "%ls",
        // What only looks like something else.
        "ls\u{a0}-la",
        "ls\u{2003}-la",
        "ls\u{ff1b}rm",
        "ls \u{201c}a\u{201d}",
        "ls \u{200b}",
        "ls \u{202e}x",
        "echo '\u{1b}[2J'",
        "echo \"\u{7}\"",
        "ls\0",
        "echo '\0'",
    ];
    for script in scripts {
        for shell in ["bash", "sh", "zsh", "/bin/bash", "/usr/bin/zsh"] {
            for flag in ["-c", "-lc"] {
                assert_eq!(plain_script(&argv(&[shell, flag, script])), None, "{script:?}");
            }
        }
    }
    assert_eq!(plain_script(&argv(&["bash", "-c", &"a ".repeat(LONGEST)])), None);
}

#[test]
fn only_a_shell_of_the_system_with_one_script_is_looked_into() {
    for words in [
        &["bash"][..],
        &["bash", "-c"],
        &["bash", "ls"],
        &["bash", "-c", "ls", "x"],
        &["bash", "-x", "ls"],
        &["bash", "-ic", "ls"],
        &["bash", "-lc", "-c", "ls"],
        &["./bash", "-c", "ls"],
        &["/tmp/bash", "-c", "ls"],
        &["/usr/bin/../../tmp/bash", "-c", "ls"],
        &["fish", "-c", "ls"],
        &["BASH", "-c", "ls"],
        &["bаsh", "-c", "ls"],
        &["ls"],
        &[],
    ] {
        assert_eq!(plain_script(&argv(words)), None, "{words:?}");
    }
    assert!(plain_script(&argv(&["/usr/local/bin/bash", "-c", "ls"])).is_some());
}

#[test]
fn scripts_within_scripts_are_looked_through() {
    let found = segments(&argv(&["bash", "-lc", "ls && sh -c 'pwd; bash -c \"rm x\"'"]));
    assert_eq!(found, [argv(&["ls"]), argv(&["pwd"]), argv(&["rm", "x"])]);
    let found = segments(&argv(&["bash", "-lc", "ls && sh -c 'ls > x'"]));
    assert_eq!(found, [argv(&["ls"]), argv(&["sh", "-c", "ls > x"])]);
    assert_eq!(segments(&argv(&["ls", "-la"])), [argv(&["ls", "-la"])]);
}

proptest! {
    #[test]
    fn nothing_makes_it_fail(script in "[ -~\n\té“]{0,64}") {
        if let Some(commands) = plain(&script) {
            prop_assert!(commands.iter().all(|words| !words.is_empty()));
        }
    }

    #[test]
    fn quoted_words_come_back(words in proptest::collection::vec("[ -~]{1,12}", 1..6)) {
        // Single quotes say everything but a single quote.
        let words: Vec<String> = words.iter().map(|word| word.replace('\'', "_")).collect();
        let script: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        prop_assert_eq!(plain(&script.join(" ")), Some(vec![words]));
    }
}
