use super::*;
use crate::command::segments;

fn argv(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

fn script(text: &str) -> Vec<Vec<String>> {
    segments(&["bash".to_owned(), "-lc".to_owned(), text.to_owned()])
}

const RULES: &str = r#"
# Ours.
[[rule]]
prefix = ["git", "push"]
decision = "allow"

[[rule]]
prefix = ["git", "push", "origin"]
decision = "prompt"
reason = "others see it"

[[rule]]
prefix = ["git", "push", "origin", "main"]
decision = "forbid"

[[rule]]
prefix = ["make"]
decision = "allow"

[[rule]]
prefix = ["curl"]
decision = "forbid"
"#;

#[test]
fn the_strictest_word_over_all_parts_counts() {
    let rules = Rules::parse(RULES).unwrap();
    let forbid = |words: &str| Verdict::Forbid(format!("a rule forbids `{words}`"));
    let prompt = Verdict::Prompt("a rule about `git push origin`: others see it".to_owned());
    let open = |words: &[&str]| Verdict::Open(words.iter().map(|it| argv(it)).collect());
    for (text, expected) in [
        ("git push", Verdict::AllowAll),
        ("git push fork", Verdict::AllowAll),
        ("/usr/bin/git push fork", Verdict::AllowAll),
        ("./git push fork", open(&["./git push fork"])),
        ("git push origin x", prompt.clone()),
        ("git push origin main", forbid("git push origin main")),
        ("./git push origin main", forbid("git push origin main")),
        ("sudo git push origin main", forbid("git push origin main")),
        ("sudo -n env X=1 curl x", forbid("curl")),
        ("sudo make", open(&["sudo make"])),
        ("make && git push", Verdict::AllowAll),
        ("make && git push origin x", prompt.clone()),
        ("git push origin x && curl x", forbid("curl")),
        ("curl x && git push origin x", forbid("curl")),
        ("make && ls", open(&["ls"])),
        ("ls && pwd", open(&["ls", "pwd"])),
        ("git -c a=b push", open(&["git -c a=b push"])),
        ("gi't' push", Verdict::AllowAll),
        ("makefile", open(&["makefile"])),
    ] {
        assert_eq!(rules.judge(&script(text)), expected, "{text}");
    }
    assert_eq!(rules.judge(&[]), Verdict::Open(Vec::new()));
    // What is not plain is a shell's business, and no rule here is about shells.
    let hidden = script("make > x");
    assert_eq!(rules.judge(&hidden), Verdict::Open(hidden.clone()));
}

#[test]
fn what_is_dangerous_is_allowed_only_by_its_own_words() {
    let rules = |prefix: &str| Rules { rules: vec![Rule::allow(argv(prefix))] };
    let judge = |prefix: &str, text: &str| rules(prefix).judge(&script(text));
    let forced = "git push --force origin x";
    assert_eq!(judge("git push", "git push origin x"), Verdict::AllowAll);
    assert_eq!(judge("git push", forced), Verdict::Open(script(forced)));
    assert_eq!(judge("git push --force", forced), Verdict::AllowAll);
    assert_eq!(judge("rm", "rm -rf x"), Verdict::Open(script("rm -rf x")));
    assert_eq!(judge("rm -rf", "rm -rf x"), Verdict::AllowAll);
}

#[test]
fn a_file_that_is_not_understood_is_no_file_without_rules() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rules.toml");
    assert_eq!(Rules::load(&path).unwrap(), Rules::default());
    for text in ["[[rule]]\n", "[[rules]]\n", "[[rule]]\nprefix=[]\ndecision='allow'", "x"] {
        std::fs::write(&path, text).unwrap();
        let err = Rules::load(&path).unwrap_err().to_string();
        assert!(err.contains("mend or remove"), "{err}");
    }
    std::fs::write(&path, "[[rule]]\nprefix=['a']\ndecision='maybe'\n").unwrap();
    assert!(Rules::load(&path).is_err());
    std::fs::write(&path, b"\xff").unwrap();
    assert!(Rules::load(&path).is_err());
    assert!(Rules::load(directory.path()).is_err());
}

#[test]
fn an_added_rule_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/rules.toml");
    let odd = vec!["echo".to_owned(), "a \"b\"\\ 'c' é\n".to_owned(), String::new()];
    let first = Rule::allow(odd);
    Rules::append(&path, &first).unwrap();
    // A line that has no end yet, as an editor may leave it.
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"# mine").unwrap();
    let reason = Some("it's \"so\"".to_owned());
    let second = Rule { prefix: argv("x y"), decision: RuleDecision::Forbid, reason };
    Rules::append(&path, &second).unwrap();
    assert_eq!(Rules::load(&path).unwrap().rules, [first, second]);
    assert!(std::fs::read_to_string(&path).unwrap().contains("# mine\n"));
}

#[test]
fn a_rule_is_proposed_where_it_is_sensible() {
    let proposed = |text: &str| proposed_rule(&script(text), None).map(|words| words.join(" "));
    for text in [
        "cargo test",
        "git push origin main",
        "npm run build",
        "npm test",
        "python3 x.py",
        "python3 -m pytest",
        "mv a b",
        "curl example.com",
    ] {
        assert_eq!(proposed(text).as_deref(), Some(text));
    }
    assert_eq!(proposed("ls && cargo test | head").as_deref(), Some("cargo test"));
    for text in [
        "ls",
        "cargo test && make all",
        "bash x.sh",
        "/bin/zsh x",
        "cargo test > x",
        "git",
        "git -c a=b push",
        "rm x",
        "rm -rf x",
        "sudo ls",
        "env X=1 ls",
        "npm run",
        "npm",
        "yarn run",
        "cargo run",
        "docker exec",
        "make",
        "python",
        "python3",
        "python3.12 -c x",
        "python3 -m",
        "node -e x",
        "perl -e x",
        "ruby",
        "find . -delete",
        "git reset --hard",
        "xargs cat",
    ] {
        assert_eq!(proposed(text), None, "{text}");
    }
}

#[test]
fn what_the_model_suggests_must_fit_the_command() {
    let with = |text: &str, prefix: &str| proposed_rule(&script(text), Some(&argv(prefix)));
    assert_eq!(with("cargo test --all", "cargo test"), Some(argv("cargo test")));
    assert_eq!(with("cargo test --all", "cargo build"), Some(argv("cargo test --all")));
    assert_eq!(with("cargo test --all", "cargo"), Some(argv("cargo test --all")));
    assert_eq!(with("cargo test --all", ""), Some(argv("cargo test --all")));
    assert_eq!(with("python3 -c x", "python3"), None);
    let hidden = vec![vec!["mv".to_owned(), "a\u{1b}[2K".to_owned()]];
    assert_eq!(proposed_rule(&hidden, None), None);
}
