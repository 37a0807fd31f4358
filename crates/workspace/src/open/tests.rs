use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A directory with a file in it and a secret beside it.
fn yard() -> (TempDir, Tree) {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("work");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("sub/file"), "one\ntwo\n").unwrap();
    std::fs::write(dir.path().join("secret"), "hunter2").unwrap();
    let tree = Tree::open(&root).unwrap();
    (dir, tree)
}

fn read(tree: &Tree, path: &str) -> Result<String, String> {
    let read = tree.read(Path::new(path), Links::Inside, 64);
    read.map(|content| content.text()).map_err(|err| err.to_string())
}

fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn links_are_followed_inside_and_nowhere_else() {
    let (dir, tree) = yard();
    let at = |name: &str| tree.path().join(name);
    symlink("sub/file", at("inside")).unwrap();
    symlink("../secret", at("out")).unwrap();
    symlink(dir.path().join("secret"), at("absolute")).unwrap();
    symlink("/proc/self/environ", at("environ")).unwrap();
    symlink("..", at("up")).unwrap();
    symlink("loop", at("loop")).unwrap();
    assert_eq!(read(&tree, "inside").unwrap(), "one\ntwo\n");
    for path in ["out", "absolute", "environ", "up/secret", "loop", "../secret"] {
        assert_eq!(read(&tree, path).unwrap_err(), "a link in it leads elsewhere", "{path}");
    }
    // What cannot be in a tree is refused where the user names it too.
    assert!(matches!(named(Path::new("/proc/self/environ")), Err(Error::NotAFile)));
    assert!(named(&at("out")).is_ok());
    assert!(matches!(without_links(&at("inside")), Err(Error::LeadsOut)));
    assert!(without_links(&at("sub/file")).is_ok());
}

#[test]
fn only_regular_files_are_read_and_none_is_waited_for() {
    let (_dir, tree) = yard();
    pipe(&tree.path().join("pipe"));
    symlink("pipe", tree.path().join("link")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(tree.path().join("socket")).unwrap();
    for path in ["pipe", "link", "sub"] {
        assert_eq!(read(&tree, path).unwrap_err(), "it is no regular file", "{path}");
    }
    assert!(read(&tree, "socket").is_err());
    drop(socket);
    for path in ["/dev/zero", "/dev/tty", "/dev/null"] {
        assert!(named(Path::new(path)).is_err(), "{path}");
    }
    assert!(tree.read(Path::new("none"), Links::Inside, 1).unwrap_err().is_missing());
    assert!(tree.read(Path::new("sub/file/x"), Links::Inside, 1).unwrap_err().is_missing());
}

#[test]
fn a_read_has_a_bound_and_says_when_it_was_reached() {
    let (_dir, tree) = yard();
    std::fs::write(tree.path().join("text"), "aé").unwrap();
    let file = File::create(tree.path().join("sparse")).unwrap();
    file.set_len(1 << 40).unwrap();
    let cut = tree.read(Path::new("text"), Links::None, 2).unwrap();
    assert_eq!((cut.text().as_str(), cut.is_cut), ("a", true));
    let whole = tree.read(Path::new("text"), Links::None, 3).unwrap();
    assert_eq!((whole.text().as_str(), whole.is_cut), ("aé", false));
    let sparse = tree.read(Path::new("sparse"), Links::None, 100).unwrap();
    assert_eq!((sparse.bytes.len(), sparse.is_cut), (100, true));
}

#[test]
fn what_is_looked_at_is_not_opened() {
    let (_dir, tree) = yard();
    pipe(&tree.path().join("pipe"));
    symlink("sub", tree.path().join("link")).unwrap();
    let sort = |path: &str| tree.look(Path::new(path)).map(|seen| seen.sort);
    assert_eq!(sort("pipe").unwrap(), Sort::Other);
    assert_eq!(sort("link").unwrap(), Sort::Link);
    assert_eq!(sort("sub").unwrap(), Sort::Directory);
    assert_eq!(sort("sub/file").unwrap(), Sort::File);
    assert!(matches!(sort("link/file"), Err(Error::LeadsOut)));
    assert_eq!(tree.link(Path::new("link")).unwrap(), Path::new("sub"));
    let (entries, is_cut) = tree.entries(Path::new(""), 2).unwrap();
    assert_eq!((entries.len(), is_cut), (2, true));
    assert!(tree.entries(Path::new("link"), 2).is_err());
}

#[test]
fn a_directory_that_is_swapped_for_a_link_lets_nobody_out() {
    let (dir, tree) = yard();
    std::fs::create_dir(dir.path().join("outside")).unwrap();
    std::fs::write(dir.path().join("outside/file"), "hunter2").unwrap();
    symlink("../outside", tree.path().join("bait")).unwrap();
    let (sub, bait) = (tree.path().join("sub"), tree.path().join("bait"));
    let swap = || {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(CWD, &sub, CWD, &bait, flags).unwrap();
    };
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                swap();
            }
        });
        let mut n_read = 0;
        for _ in 0..20_000 {
            for links in [Links::Inside, Links::None] {
                if let Ok(content) = tree.read(Path::new("sub/file"), links, 64) {
                    assert_eq!(content.text(), "one\ntwo\n");
                    n_read += 1;
                }
            }
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(n_read > 0);
    });
}
