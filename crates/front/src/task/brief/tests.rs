//! What the files of a project may do to whoever reads its guidelines: nothing.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

fn look(dir: &TempDir) -> Surroundings {
    Surroundings::look(&dir.path().join("p/sub"), None).unwrap()
}

/// A repository with a directory in it, beside a secret.
fn project() -> TempDir {
    let dir = TempDir::new().unwrap();
    for name in ["p/.git", "p/sub/.claude"] {
        std::fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    std::fs::write(dir.path().join("secret"), "hunter2").unwrap();
    dir
}

fn texts(around: &Surroundings) -> Vec<&str> {
    around.guidelines.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn no_guideline_leads_out_of_the_directory_it_is_in() {
    let dir = project();
    let at = |name: &str| dir.path().join("p").join(name);
    symlink("/proc/self/environ", at("AGENTS.md")).unwrap();
    symlink("../secret", at("CLAUDE.md")).unwrap();
    symlink(dir.path().join("secret"), at("sub/CLAUDE.md")).unwrap();
    symlink("../../../secret", at("sub/.claude/CLAUDE.md")).unwrap();
    std::fs::write(at("sub/real.md"), "be kind").unwrap();
    symlink("real.md", at("sub/AGENTS.md")).unwrap();
    let around = look(&dir);
    assert_eq!(texts(&around), ["be kind"]);
    assert_eq!(around.left_out.len(), 4);
    let text = around.text();
    assert!(!text.contains("hunter2") && text.contains("not shown"), "{text}");
}

#[test]
fn a_guideline_that_is_no_file_or_has_no_end_holds_nobody_up() {
    let dir = project();
    let at = |name: &str| dir.path().join("p").join(name);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, at("AGENTS.md"), fifo, mode, 0).unwrap();
    symlink("/dev/zero", at("CLAUDE.md")).unwrap();
    std::fs::File::create(at("sub/AGENTS.md")).unwrap().set_len(1 << 40).unwrap();
    let around = look(&dir);
    assert_eq!(around.left_out.len(), 2);
    assert!(texts(&around)[0].ends_with(&format!("only the first {MOST} bytes are shown)")));
}
