use std::fs;

use super::*;

/// A directory with files in it.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn text(dir: &tempfile::TempDir, cwd: &str) -> String {
    collect(&dir.path().join(cwd), None, &DocOptions::default()).text
}

#[test]
fn files_are_read_from_the_root_down() {
    let dir = tree(&[
        ("AGENTS.md", "above"),
        ("p/.git/HEAD", ""),
        ("p/AGENTS.md", "root\n"),
        ("p/a/AGENTS.md", "not this"),
        ("p/a/AGENTS.override.md", "\na\n\n"),
        ("p/a/b/other", ""),
        ("p/a/b/c/AGENTS.md", "c"),
        ("p/x/AGENTS.md", "aside"),
    ]);
    assert_eq!(text(&dir, "p/a/b/c"), "root\n\na\n\nc");
    assert_eq!(text(&dir, "p/a/b"), "root\n\na");
    assert_eq!(text(&dir, "p"), "root");
    // No root: only the directory itself.
    assert_eq!(text(&dir, ""), "above");
}

#[test]
fn a_root_is_what_has_a_marker() {
    let dir = tree(&[("AGENTS.md", "1"), ("go.mod", ""), ("a/AGENTS.md", "2"), ("a/DOC.md", "3")]);
    let cwd = dir.path().join("a");
    let options = DocOptions { root_markers: vec!["go.mod".to_owned()], ..DocOptions::default() };
    assert_eq!(collect(&cwd, None, &options).text, "1\n\n2");
    let none = DocOptions { root_markers: vec![String::new()], ..DocOptions::default() };
    assert_eq!(collect(&cwd, None, &none).text, "2");
    // `.git` is a file in a work tree of git.
    fs::write(dir.path().join(".git"), "gitdir: x").unwrap();
    assert_eq!(text(&dir, "a"), "1\n\n2");
}

#[test]
fn other_names_come_last() {
    let dir = tree(&[("DOC.md", "doc"), ("a/AGENTS.md", "agents"), ("a/DOC.md", "doc")]);
    let names = ["", "../DOC.md", "DOC.md"].map(str::to_owned).to_vec();
    let options = DocOptions { fallback_names: names, ..DocOptions::default() };
    assert_eq!(collect(dir.path(), None, &options).text, "doc");
    assert_eq!(collect(&dir.path().join("a"), None, &options).text, "agents");
}

#[test]
fn the_users_own_come_first() {
    let dir = tree(&[("config/AGENTS.md", "mine"), ("p/AGENTS.md", "theirs"), ("q/x", "")]);
    let config = dir.path().join("config");
    let all = |cwd: &str| collect(&dir.path().join(cwd), Some(&config), &DocOptions::default());
    let docs = all("p");
    assert_eq!(docs.text, "mine\n\n--- project-doc ---\n\ntheirs");
    assert_eq!(docs.files, [config.join("AGENTS.md"), dir.path().join("p/AGENTS.md")]);
    assert_eq!(all("q").text, "mine");
    assert_eq!(
        all("q").message(Path::new("/p")).unwrap(),
        "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nmine\n</INSTRUCTIONS>"
    );
    assert_eq!(Docs::default().message(Path::new("/p")), None);
}

#[test]
fn too_long_files_are_cut_not_skipped() {
    let dir = tree(&[
        (".git/x", ""),
        ("AGENTS.md", "12345"),
        ("a/AGENTS.md", "é€é€"),
        ("a/b/AGENTS.md", "z"),
    ]);
    let at = |cwd: &str, most_bytes| {
        collect(&dir.path().join(cwd), None, &DocOptions { most_bytes, ..DocOptions::default() })
    };
    assert_eq!(at("a/b", 16).text, "12345\n\né€é€\n\nz");
    assert_eq!(at("a", 9).text, "12345\n\né");
    assert_eq!(at("a/b", 9).files.len(), 2);
    assert_eq!(at("a/b", 9).notes[0].1, "cut: together they are too long");
    assert_eq!(at("a", 5).text, "12345");
    assert_eq!(at("a", 0), Docs::default());
}

#[test]
fn what_is_no_text_does_not_stop_it() {
    let dir = tree(&[(".git/x", ""), ("a/AGENTS.md", "a")]);
    fs::create_dir(dir.path().join("AGENTS.md")).unwrap();
    assert_eq!(text(&dir, "a"), "a");
    fs::write(dir.path().join("a/AGENTS.md"), b"a\xffb").unwrap();
    assert_eq!(text(&dir, "a"), "a\u{fffd}b");
    fs::write(dir.path().join("a/AGENTS.md"), " \n\t\n").unwrap();
    assert_eq!(text(&dir, "a"), "");
}

#[cfg(unix)]
#[test]
fn no_link_leads_out_of_the_project() {
    use std::os::unix::fs::symlink;
    let dir = tree(&[("secret", "s"), ("p/.git/x", ""), ("p/CLAUDE.md", "same"), ("p/a/x", "")]);
    symlink("CLAUDE.md", dir.path().join("p/AGENTS.md")).unwrap();
    symlink(dir.path().join("secret"), dir.path().join("p/a/AGENTS.md")).unwrap();
    let docs = collect(&dir.path().join("p/a"), None, &DocOptions::default());
    assert_eq!(docs.text, "same");
    assert_eq!(docs.notes[0].1, "left out: it leads out of the project");
}
