use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

#[test]
fn the_way_without_the_kernels_help_takes_no_link_at_all() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("work");
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::write(root.join("src/main.rs"), "x").unwrap();
    std::fs::write(dir.path().join("secret"), "hunter2").unwrap();
    symlink("src", root.join("inside")).unwrap();
    symlink(dir.path().join("secret"), root.join("out")).unwrap();
    let root = rustix::fs::open(&root, DIRECTORY, Mode::empty()).unwrap();
    for flags in [OFlags::RDONLY, OFlags::PATH] {
        let open = |path: &str| step_by_step(&root, Path::new(path), flags).map(drop);
        assert_eq!(open("src/main.rs"), Ok(()));
        assert_eq!(open("inside/main.rs"), Err(Errno::LOOP));
        assert_eq!(open("out"), Err(Errno::LOOP));
        assert_eq!(open("../secret"), Err(Errno::XDEV));
        assert_eq!(open("src/nothing"), Err(Errno::NOENT));
    }
    // And the kernel says the same where no link is wanted.
    let open = |path: &str| open(&root, Path::new(path), OFlags::PATH, Links::None).map(drop);
    assert_eq!(open("src/main.rs"), Ok(()));
    assert_eq!(open("inside/main.rs"), Err(Errno::LOOP));
    assert_eq!(open("out"), Err(Errno::LOOP));
    assert_eq!(open("../secret"), Err(Errno::XDEV));
}
