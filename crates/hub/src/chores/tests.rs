//! What a chore may touch, and what it may not.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

struct Yard {
    dir: TempDir,
    roots: Vec<PathBuf>,
}

impl Yard {
    /// A workspace with a file, and a secret beside it.
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("work");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::fs::write(root.join("src/main.rs"), "one\ntwo\nthree\n").unwrap();
        std::fs::write(dir.path().join("secret"), "hunter2").unwrap();
        Self { roots: vec![root], dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.roots[0].join(name)
    }

    fn secret(&self) -> PathBuf {
        self.dir.path().join("secret")
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        match read_text(&self.roots, path, None, None) {
            Ok(ChoreNews::Text(text)) => Ok(text),
            Err(ChoreNews::Failed { why, .. }) => Err(why),
            other => panic!("{other:?}"),
        }
    }

    fn write(&self, path: &Path) -> Result<(), String> {
        self.write_with(path, &Leave::None)
    }

    fn write_with(&self, path: &Path, leave: &Leave) -> Result<(), String> {
        match write_text(&self.roots, path, "new".to_owned(), leave) {
            Ok(ChoreNews::Written) => Ok(()),
            Err(ChoreNews::Failed { why, .. }) => Err(why),
            Err(ChoreNews::Protected { path, by, content }) => {
                assert_eq!(content, "new");
                let path = path.strip_prefix(&self.roots[0]).unwrap();
                Err(format!("{} is protected: {by}", path.display()))
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn no_spelling_of_a_path_leaves_the_roots() {
    let yard = Yard::new();
    let root = yard.roots[0].display().to_string();
    for path in [
        yard.secret(),
        PathBuf::from("/etc/passwd"),
        PathBuf::from(format!("{root}/../secret")),
        PathBuf::from(format!("{root}/src/../../secret")),
        PathBuf::from(format!("{root}-not/x")),
        PathBuf::from("secret"),
        PathBuf::from("../secret"),
        PathBuf::from(&root),
        PathBuf::from("/proc/self/environ"),
    ] {
        assert!(yard.read(&path).is_err(), "{path:?}");
        assert!(yard.write(&path).is_err(), "{path:?}");
    }
    assert_eq!(std::fs::read_to_string(yard.secret()).unwrap(), "hunter2");
}

#[test]
fn no_link_leaves_the_roots() {
    let yard = Yard::new();
    symlink(yard.secret(), yard.path("absolute")).unwrap();
    symlink("../secret", yard.path("relative")).unwrap();
    symlink(yard.dir.path(), yard.path("parent")).unwrap();
    symlink("..", yard.path("src/up")).unwrap();
    symlink("missing/../../../secret2", yard.path("dangling")).unwrap();
    for name in ["absolute", "relative", "parent/secret", "src/up/../secret", "dangling"] {
        assert!(yard.read(&yard.path(name)).is_err(), "{name}");
        assert!(yard.write(&yard.path(name)).is_err(), "{name}");
    }
    assert!(yard.write(&yard.path("parent/new/file")).is_err());
    assert!(!yard.dir.path().join("new").exists(), "no directory is made outside");
    assert!(!yard.dir.path().join("secret2").exists());
    assert_eq!(std::fs::read_to_string(yard.secret()).unwrap(), "hunter2");
}

#[test]
fn a_link_that_stays_inside_is_followed() {
    let yard = Yard::new();
    symlink("src/main.rs", yard.path("link")).unwrap();
    assert_eq!(yard.read(&yard.path("link")).unwrap(), "one\ntwo\nthree\n");
    yard.write(&yard.path("link")).unwrap();
    assert_eq!(std::fs::read_to_string(yard.path("src/main.rs")).unwrap(), "new");
}

#[test]
fn a_new_file_gets_its_directories_and_only_files_are_touched() {
    let yard = Yard::new();
    yard.write(&yard.path("a/b/c.txt")).unwrap();
    assert_eq!(yard.read(&yard.path("a/b/c.txt")).unwrap(), "new");
    assert!(yard.write(&yard.path("src")).is_err(), "a directory");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        yard.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(yard.read(&yard.path("pipe")).is_err(), "a pipe does not hold us up");
    std::fs::write(yard.path("binary"), [0xff, 0xfe]).unwrap();
    assert!(yard.read(&yard.path("binary")).unwrap_err().contains("not text"));
    let big = std::fs::File::create(yard.path("big")).unwrap();
    big.set_len(LARGEST_FILE + 1).unwrap();
    assert!(yard.read(&yard.path("big")).unwrap_err().contains("MiB"));
    let missing = read_text(&yard.roots, &yard.path("nothing"), None, None);
    assert!(matches!(missing, Err(ChoreNews::Failed { missing: true, .. })));
}

#[test]
fn lines_are_counted_from_one() {
    let cut = |line, limit| lines("one\ntwo\nthree\n".to_owned(), line, limit);
    assert_eq!(cut(Some(2), None), "two\nthree\n");
    assert_eq!(cut(Some(2), Some(1)), "two\n");
    assert_eq!(cut(None, Some(2)), "one\ntwo\n");
    assert_eq!(cut(Some(0), Some(1)), "one\n");
    assert_eq!(cut(Some(9), None), "");
}

#[test]
fn a_command_runs_below_the_roots_only() {
    let yard = Yard::new();
    symlink(yard.dir.path(), yard.path("out")).unwrap();
    let spec = || Spec::new("/bin/sh", "/");
    let at = |path: &Path| in_directory(spec(), path, &yard.roots).map(|spec| spec.cwd);
    let real = std::fs::canonicalize(yard.path("src")).unwrap();
    assert_eq!(at(&yard.path("src")), Ok(real));
    assert!(at(yard.dir.path()).is_err());
    assert!(at(&yard.path("out")).is_err());
    assert!(at(&yard.path("src/../..")).is_err());
}

#[test]
fn what_other_programs_obey_is_written_with_leave_for_this_very_file() {
    let yard = Yard::new();
    std::fs::create_dir_all(yard.path(".git/hooks")).unwrap();
    symlink(".git/hooks", yard.path("docs")).unwrap();
    symlink(".vscode/tasks.json", yard.path("tasks.json")).unwrap();
    std::fs::create_dir(yard.path(".vscode")).unwrap();
    std::fs::write(yard.path(".vscode/tasks.json"), "old").unwrap();
    for (path, said) in [
        (".git/hooks/pre-commit", ".git/hooks/pre-commit is protected: git"),
        ("docs/pre-commit", ".git/hooks/pre-commit is protected: git"),
        (".GIT/config", ".GIT/config is protected: git"),
        ("src/../src/x", "is not in the workspace"),
        ("tasks.json", ".vscode/tasks.json is protected: editors"),
        ("sub/.claude/settings.json", "sub/.claude/settings.json is protected: coding agents"),
    ] {
        let why = yard.write(&yard.path(path)).unwrap_err();
        assert!(why.ends_with(said), "{why}");
        // Leave for another file is none.
        let other = Leave::File(yard.path("src/main.rs"));
        assert!(yard.write_with(&yard.path(path), &other).is_err());
    }
    assert_eq!(std::fs::read_to_string(yard.path(".vscode/tasks.json")).unwrap(), "old");
    assert!(!yard.path(".git/hooks/pre-commit").exists() && !yard.path("sub").exists());
    let leave = Leave::File(yard.path(".git/hooks/pre-commit"));
    yard.write_with(&yard.path("docs/pre-commit"), &leave).unwrap();
    yard.write_with(&yard.path(".mcp.json"), &Leave::All).unwrap();
    assert_eq!(std::fs::read_to_string(yard.path(".git/hooks/pre-commit")).unwrap(), "new");
}
