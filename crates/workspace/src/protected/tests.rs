use super::*;

fn obeyed(guard: &Guard, root: &str, path: &str) -> Option<Obeyed> {
    guard.obeyed_by(Path::new(root), Path::new(path))
}

#[test]
fn names_are_protected_at_any_depth_and_in_any_spelling() {
    let guard = Guard::by_name();
    for (path, by) in [
        (".git/hooks/pre-commit", Obeyed::Git),
        ("sub/deeper/.git", Obeyed::Git),
        (".GIT/config", Obeyed::Git),
        (".git. /config", Obeyed::Git),
        (".g\u{200c}it/config", Obeyed::Git),
        (".v\u{17f}code/tasks.json", Obeyed::Editors),
        ("con\u{fb01}g/.con\u{fb01}g/.husky", Obeyed::Git),
        (".claude/settings.local.json", Obeyed::Agents),
        ("sub/.mcp.json", Obeyed::Agents),
        (".envrc", Obeyed::Shells),
        ("crate/.cargo/config.toml", Obeyed::Tools),
        (".tieline/x", Obeyed::Tieline),
    ] {
        assert_eq!(obeyed(&guard, "/work", path), Some(by), "{path}");
    }
    for path in [
        ".gitignore",
        ".github/workflows/ci.yml",
        ".editorconfig",
        "src/git/hooks",
        ".cargo/registry/x",
        "config.toml",
        ".claudex",
        ".bashrc",
    ] {
        assert_eq!(obeyed(&guard, "/work", path), None, "{path}");
    }
    assert_eq!(obeyed(&Guard::none(), "/work", ".git/config"), None);
}

#[test]
fn a_home_in_a_root_keeps_what_others_obey_there() {
    let homes = Homes { homes: vec!["/h/me".into()], config: Some("/h/me/settings".into()) };
    let guard = Guard::by_name().at(&homes);
    for (root, path, by) in [
        ("/h/me", ".bashrc", Obeyed::Shells),
        ("/h/me", ".SSH/authorized_keys", Obeyed::Tools),
        ("/h", "me/.config/tieline/rules.toml", Obeyed::Tieline),
        ("/", "h/me/.local/bin/ls", Obeyed::Shells),
        ("/h/me", "settings/git/config", Obeyed::Git),
        ("/h/me", ".con\u{fb01}g/git/config", Obeyed::Git),
    ] {
        assert_eq!(obeyed(&guard, root, path), Some(by), "{path}");
    }
    for (root, path) in [
        ("/h/me", "work/.bashrc"),
        ("/h/me", ".config/other/x"),
        ("/h/you", ".bashrc"),
        // Who names such a directory as the workspace means it.
        ("/h/me/.config/nvim", "init.lua"),
        ("/h/me/.local/bin", "tool"),
    ] {
        assert_eq!(obeyed(&guard, root, path), None, "{path}");
    }
}

#[test]
fn our_own_places_are_protected_also_behind_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    let guard = Guard::by_name().ours([root.join("link/tieline").as_path()]);
    for path in ["link/tieline", "real/tieline/config.toml"] {
        assert_eq!(guard.obeyed_by(&root, Path::new(path)), Some(Obeyed::Tieline), "{path}");
    }
    assert_eq!(guard.obeyed_by(&root, Path::new("real/other")), None);
}

#[test]
fn no_name_stands_in_the_table_twice() {
    let mut names: Vec<&str> = IN_WORKSPACE.iter().chain(AT_HOME).map(|(name, _)| *name).collect();
    let n_names = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), n_names);
    // The table is compared with folded names.
    assert!(names.iter().all(|name| name.split('/').all(|part| folded(part.as_ref()) == part)));
}
