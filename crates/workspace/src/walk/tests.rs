use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

fn tree(files: &[(&str, &str)]) -> (TempDir, Tree) {
    let dir = TempDir::new().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let tree = Tree::open(dir.path()).unwrap();
    (dir, tree)
}

fn walked(tree: &Tree, options: Options) -> Vec<String> {
    let choose = |path: &Path, _: &Seen| match path.ends_with(".git") {
        true => Choice::PassOver,
        false => Choice::Rules,
    };
    let files = Walk::new(tree, options, choose).filter(|it| it.seen.sort != Sort::Directory);
    files.map(|found| found.path.display().to_string()).collect()
}

#[test]
fn rules_are_those_of_git() {
    let (_dir, tree) = tree(&[
        (".git/info/exclude", "secret\n"),
        (".gitignore", "*.o\n!keep.o\n/top\nbuild/\n# no rule\n\\#odd\n"),
        (".ignore", "own\n"),
        ("a.o", ""),
        ("keep.o", ""),
        ("own", ""),
        ("secret", ""),
        ("top", ""),
        ("#odd", ""),
        ("build/x", ""),
        ("sub/top", ""),
        ("sub/build", "a file"),
        ("sub/.gitignore", "!*.o\nlocal\n"),
        ("sub/b.o", ""),
        ("sub/local", ""),
        ("inner/.git/HEAD", ""),
        ("inner/a.o", ""),
        ("zz/local", ""),
    ]);
    let seen = walked(&tree, Options::default());
    let expected = [
        ".gitignore",
        ".ignore",
        "inner/a.o",
        "keep.o",
        "own",
        "sub/.gitignore",
        "sub/b.o",
        "sub/build",
        "sub/top",
        "zz/local",
    ];
    assert_eq!(seen, expected);
    let below = Tree::open(&tree.path().join("sub")).unwrap();
    assert_eq!(walked(&below, Options::default()), [".gitignore", "b.o", "build", "top"]);
}

#[test]
fn what_is_walked_to_can_be_chosen() {
    let (_dir, tree) = tree(&[
        (".gitignore", "*.o\n"),
        (".ignore", "own\n"),
        ("a.o", ""),
        ("own", ""),
        ("d/e/f", ""),
        (".dot/x", ""),
    ]);
    // Without a repository there are no rules, unless they count anyway.
    let without = walked(&tree, Options::default());
    assert_eq!(without, [".dot/x", ".gitignore", ".ignore", "a.o", "d/e/f", "own"]);
    let options = Options { rules_without_git: true, passes_over_dots: true, ..Options::default() };
    assert_eq!(walked(&tree, options), ["d/e/f"]);
    let all =
        Walk::new(&tree, Options { deepest: Some(2), ..Options::default() }, |_, _| Choice::Rules);
    let all: Vec<_> = all.map(|found| found.path.display().to_string()).collect();
    assert_eq!(all, [".dot", ".dot/x", ".gitignore", ".ignore", "a.o", "d", "d/e", "own"]);
    let shown = Walk::new(&tree, Options::default(), |path, seen| match seen.sort {
        Sort::Directory => Choice::PassOver,
        _ if path.ends_with("a.o") => Choice::Show,
        _ => Choice::PassOver,
    });
    assert_eq!(shown.count(), 1);
}

#[test]
fn rules_that_are_no_plain_file_are_as_if_they_were_not_there() {
    let pipe = |path: &Path| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    let files = [(".git/HEAD", ""), ("real", "a\n"), ("a", ""), ("s/a", ""), ("s/b", "")];
    for make in [
        &pipe as &dyn Fn(&Path),
        &|path| symlink("/dev/zero", path).unwrap(),
        &|path| symlink("real", path).unwrap(),
        &|path| symlink("/proc/self/environ", path).unwrap(),
    ] {
        let (_dir, tree) = tree(&files);
        std::fs::create_dir_all(tree.path().join(".git/info")).unwrap();
        for name in [".gitignore", ".ignore", "s/.gitignore", ".git/info/exclude"] {
            make(&tree.path().join(name));
        }
        let options = Options { passes_over_dots: true, ..Options::default() };
        assert_eq!(walked(&tree, options.clone()), ["a", "real", "s/a", "s/b"]);
        // And above the directory.
        let below = Tree::open(&tree.path().join("s")).unwrap();
        let options = Options { rules_without_git: true, ..options };
        assert_eq!(walked(&below, options), ["a", "b"]);
    }
}

#[test]
fn rules_have_a_bound_for_a_file_and_for_all_of_them() {
    let long = format!("a\n{}\nb", "#".repeat(1 << 20));
    let (_dir, wide) = tree(&[(".git/HEAD", ""), (".gitignore", &long), ("a", ""), ("b", "")]);
    assert_eq!(walked(&wide, Options::default()), [".gitignore", "b"]);

    // Deeper than all rules together may be long: what is over the bound hides nothing.
    let rules = format!("x\n{}\n", "#".repeat(60_000));
    let mut files = vec![(".git/HEAD".to_owned(), String::new())];
    let mut path = String::new();
    for _ in 0..20 {
        files.push((format!("{path}.gitignore"), rules.clone()));
        path.push_str("d/");
    }
    files.push((format!("{path}x"), String::new()));
    let files: Vec<_> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let (_dir, deep) = tree(&files);
    let mut walk = Walk::new(&deep, Options::default(), |_, _| Choice::Rules);
    assert_eq!(walk.by_ref().filter(|it| it.path.ends_with(".gitignore")).count(), 20);
    assert!(walk.rules.room() > 200 * 1024, "nothing is held when the walk is over");
}

#[test]
fn a_worktree_has_the_private_rules_of_its_repository() {
    let (_dir, whole) = tree(&[
        ("main/info/exclude", "private\n"),
        ("main/worktrees/w/commondir", "../..\n"),
        ("w/.git", "gitdir: ../main/worktrees/w\n"),
        ("w/private", ""),
        ("w/public", ""),
    ]);
    let tree = Tree::open(&whole.path().join("w")).unwrap();
    assert_eq!(walked(&tree, Options::default()), ["public"]);
}

#[test]
fn a_tree_deeper_than_any_path_is_walked_as_far_as_it_goes() {
    let (_dir, tree) = tree(&[]);
    let name = "n".repeat(200);
    let mut at =
        rustix::fs::openat(&tree, ".", rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())
            .unwrap();
    for _ in 0..40 {
        rustix::fs::mkdirat(&at, &name, rustix::fs::Mode::from_raw_mode(0o700)).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        at = rustix::fs::openat(&at, &name, flags, rustix::fs::Mode::empty()).unwrap();
    }
    let mut walk = Walk::new(&tree, Options::default(), |_, _| Choice::Rules);
    let n_found = walk.by_ref().count();
    assert!(n_found > 10 && n_found < 40, "{n_found}");
    assert_eq!(walk.n_skipped(), 1);
}
