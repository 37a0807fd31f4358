use super::*;

const PATCH: &str = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[track_caller]
fn found(script: &str, workdir: Option<&str>) {
    for (shell, flag) in [("bash", "-lc"), ("/bin/sh", "-c"), ("/usr/bin/zsh", "-lc")] {
        let argv = argv(&[shell, flag, script]);
        assert_eq!(from_command(&argv), Some(Found { patch: PATCH, workdir }), "{script}");
    }
}

#[track_caller]
fn missed(words: &[&str]) {
    assert_eq!(from_command(&argv(words)), None, "{words:?}");
}

#[test]
fn a_patch_is_found_as_an_argument() {
    for program in ["apply_patch", "applypatch"] {
        let argv = argv(&[program, PATCH]);
        assert_eq!(from_command(&argv), Some(Found { patch: PATCH, workdir: None }));
    }
    missed(&["apply_patch"]);
    missed(&["apply_patch", PATCH, "x"]);
    missed(&["/bin/apply_patch", PATCH]);
    missed(&["git", PATCH]);
    missed(&[]);
}

#[test]
fn a_patch_is_found_in_a_here_document() {
    found(&format!("apply_patch <<'EOF'\n{PATCH}EOF\n"), None);
    found(&format!("apply_patch <<'EOF'\n{PATCH}EOF"), None);
    found(&format!("applypatch <<\"PATCH\"\n{PATCH}PATCH\n\n"), None);
    found(&format!("apply_patch <<EOF\n{PATCH}EOF\n"), None);
    found(&format!("\n  apply_patch<< 'EOF' \n{PATCH}EOF\n"), None);
}

#[test]
fn a_directory_may_come_first() {
    found(&format!("cd sub && apply_patch <<'EOF'\n{PATCH}EOF\n"), Some("sub"));
    found(&format!("cd /a/b-c.d && apply_patch <<'EOF'\n{PATCH}EOF\n"), Some("/a/b-c.d"));
    found(&format!("cd 'a $b'&&apply_patch <<'EOF'\n{PATCH}EOF\n"), Some("a $b"));
    found(&format!("cd \"a && b\" && apply_patch <<'EOF'\n{PATCH}EOF\n"), Some("a && b"));
}

#[test]
fn whatever_else_a_shell_would_do_is_left_to_it() {
    let misses = [
        "apply_patch <<'EOF'\nPEOF\nls\n",
        "apply_patch <<'EOF'\nPEOF\n&& ls",
        "apply_patch <<'EOF' && ls\nPEOF\n",
        "apply_patch <<'EOF' | cat\nPEOF\n",
        "apply_patch <<'EOF' > out\nPEOF\n",
        "apply_patch <<'EOF'; ls\nPEOF\n",
        "apply_patch <<'EOF' # so\nPEOF\n",
        "apply_patch <<-'EOF'\nPEOF\n",
        "apply_patch <<<'EOF'\nPEOF\n",
        "apply_patch <'EOF'\nPEOF\n",
        "apply_patch -v <<'EOF'\nPEOF\n",
        "apply_patch <<'EOF'\nP EOF\n",
        "apply_patch <<'EOF'\nPEOF \n",
        "apply_patch <<'EOF'\nPEND\n",
        "apply_patch <<'E OF'\nPE OF\n",
        "apply_patch <<'EOF\"\nPEOF\n",
        "apply_patch <<''\nP\n",
        "apply_patch <<$X\nP$X\n",
        "apply_patch <<\\EOF\nPEOF\n",
        "apply_patches <<'EOF'\nPEOF\n",
        "./apply_patch <<'EOF'\nPEOF\n",
        "echo x; apply_patch <<'EOF'\nPEOF\n",
        "X=1 apply_patch <<'EOF'\nPEOF\n",
        "(apply_patch <<'EOF'\nPEOF\n)",
        "! apply_patch <<'EOF'\nPEOF\n",
        "apply_patch\n<<'EOF'\nPEOF\n",
        "cd a; apply_patch <<'EOF'\nPEOF\n",
        "cd a || apply_patch <<'EOF'\nPEOF\n",
        "cd a & apply_patch <<'EOF'\nPEOF\n",
        "cd a b && apply_patch <<'EOF'\nPEOF\n",
        "cd -L a && apply_patch <<'EOF'\nPEOF\n",
        "cd - && apply_patch <<'EOF'\nPEOF\n",
        "cd && apply_patch <<'EOF'\nPEOF\n",
        "cd ~ && apply_patch <<'EOF'\nPEOF\n",
        "cd ~/x && apply_patch <<'EOF'\nPEOF\n",
        "cd $HOME && apply_patch <<'EOF'\nPEOF\n",
        "cd \"$HOME\" && apply_patch <<'EOF'\nPEOF\n",
        "cd `pwd` && apply_patch <<'EOF'\nPEOF\n",
        "cd a*b && apply_patch <<'EOF'\nPEOF\n",
        "cd {a,b} && apply_patch <<'EOF'\nPEOF\n",
        "cd a\\ b && apply_patch <<'EOF'\nPEOF\n",
        "cd 'a'b && apply_patch <<'EOF'\nPEOF\n",
        "cd 'a && apply_patch <<'EOF'\nPEOF\n",
        "cda && apply_patch <<'EOF'\nPEOF\n",
        "cd a && cd b && apply_patch <<'EOF'\nPEOF\n",
        "cd a && ls && apply_patch <<'EOF'\nPEOF\n",
        "cd a && apply_patch <<'EOF'\nPEOF\nls",
        "apply_patch <<'EOF'\r\nPEOF\r\n",
        "apply_patch 'P'",
        "apply_patch",
        "",
    ];
    for script in misses {
        missed(&["bash", "-lc", &script.replace('P', PATCH)]);
    }
    for (shell, flag) in [("bash", "-x"), ("bash", "-lic"), ("fish", "-c"), ("basher", "-c")] {
        missed(&[shell, flag, &format!("apply_patch <<'EOF'\n{PATCH}EOF\n")]);
    }
    missed(&["bash", "-c", &format!("apply_patch <<'EOF'\n{PATCH}EOF\n"), "x"]);
}

#[test]
fn an_open_document_is_one_only_if_the_shell_would_change_nothing() {
    for line in ["+$HOME", "+`ls`", "+a\\", "+\\$x"] {
        let patch = format!("*** Begin Patch\n*** Add File: a\n{line}\n*** End Patch\n");
        missed(&["bash", "-lc", &format!("apply_patch <<EOF\n{patch}EOF\n")]);
        let argv = argv(&["bash", "-lc", &format!("apply_patch <<'EOF'\n{patch}EOF\n")]);
        assert_eq!(from_command(&argv).map(|found| found.patch), Some(patch.as_str()));
    }
}

/// As Codex told it of a model's call.
#[test]
fn recorded_calls_are_found() {
    let calls = include_str!("../../fixtures/codex-proto-0.42.0-calls.jsonl");
    let mut n_found = 0;
    for line in calls.lines() {
        let call: serde_json::Value = serde_json::from_str(line).unwrap();
        let words: Vec<String> = serde_json::from_value(call["command"].clone()).unwrap();
        let found = from_command(&words).unwrap();
        assert_eq!(crate::parse(found.patch).unwrap().hunks.len(), 1);
        n_found += 1;
    }
    assert_eq!(n_found, 2);
}
