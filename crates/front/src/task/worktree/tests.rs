use super::*;

#[test]
fn worktrees_are_read_with_and_without_a_branch() {
    let text = "worktree /repo\nHEAD 1\nbranch refs/heads/main\n\n\
                worktree /a b\nHEAD 2\ndetached\nprunable gone\n\nworktree /bare\nbare\n";
    let listed = |path: &str, branch: Option<&str>| Listed {
        path: path.into(),
        branch: branch.map(str::to_owned),
    };
    assert_eq!(
        list(text),
        [listed("/repo", Some("refs/heads/main")), listed("/a b", None), listed("/bare", None)]
    );
}

#[test]
fn without_git_it_says_what_to_do() {
    let empty = tempfile::tempdir().unwrap();
    let err = find(Path::new("/"), Some(empty.path().as_os_str())).unwrap_err();
    assert!(matches!(err, Error::NoGit), "{err:?}");
    assert_eq!(err.to_string(), "cannot find git; install it, or run the task without a worktree");
}

#[test]
fn a_place_that_is_yet_to_be_made_has_a_path_without_links() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    assert_eq!(real(&root.join("link/a/b")).unwrap(), root.join("real/a/b"));
    assert_eq!(real(&root.join("link")).unwrap(), root.join("real"));
}
