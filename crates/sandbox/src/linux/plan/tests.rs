use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A plan for a workspace in a fresh directory, without the temporary directories of the machine.
struct Case {
    dir: TempDir,
}

impl Case {
    fn new(dirs: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in dirs {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn plan(&self, roots: &[&str], homes: &[&str]) -> Result<Plan, Refusal> {
        let roots = roots.iter().map(|name| self.dir.path().join(name)).collect();
        let files = Files::WorkspaceWrite { roots, exclude_tmp: true, exclude_tmpdir: true };
        let policy = Policy { files, ..Policy::read_only() };
        let homes = homes.iter().map(|name| self.path(name)).collect();
        let homes = Homes { homes, config: None };
        Plan::new(&policy, &Surroundings { tmpdir: None, homes })
    }
}

fn kind(plan: &Plan, path: &Path) -> Option<Kind> {
    plan.mounts.iter().find(|(mounted, _)| mounted == path).map(|(_, kind)| *kind)
}

#[test]
fn a_read_only_plan_has_nothing_in_it() {
    let homes = Homes { homes: vec!["/".into()], config: None };
    let here = Surroundings { tmpdir: None, homes };
    let plan = Plan::new(&Policy::read_only(), &here).unwrap();
    assert!(plan.mounts.is_empty() && plan.roots.is_empty() && plan.guards.is_empty());
}

#[test]
fn what_exists_is_mounted_and_what_does_not_is_guarded() {
    let case = Case::new(&["work/.git"]);
    let plan = case.plan(&["work"], &[]).unwrap();
    assert_eq!(kind(&plan, &case.path("work")), Some(Kind::Writable));
    assert_eq!(kind(&plan, &case.path("work/.git")), Some(Kind::ReadOnly));
    assert_eq!(kind(&plan, &case.path("work/.claude")), None);
    // Of a name with several parts the first one is missing here.
    let first = |(name, _): &(&'static str, _)| name.split('/').next();
    let names: std::collections::BTreeSet<_> = IN_WORKSPACE.iter().map(first).collect();
    assert_eq!(plan.guards[&case.path("work")].len(), names.len());
    assert!(!plan.guards_removal);
}

#[test]
fn outer_mounts_come_before_inner_ones() {
    let case = Case::new(&["work/a/b/.git", "work/.git/x"]);
    let plan = case.plan(&["work/a/b", "work"], &[]).unwrap();
    let depths: Vec<usize> =
        plan.mounts.iter().map(|(path, _)| path.components().count()).collect();
    assert!(depths.is_sorted(), "{:?}", plan.mounts);
    // What lies between the two roots cannot be renamed.
    assert_eq!(kind(&plan, &case.path("work/a")), Some(Kind::Writable));
}

#[test]
fn a_link_is_guarded_and_so_is_where_it_leads() {
    let case = Case::new(&["work/real"]);
    symlink("real", case.path("work/.git")).unwrap();
    symlink("one", case.path("work/.claude")).unwrap();
    symlink("two", case.path("work/one")).unwrap();
    symlink("loop", case.path("work/.codex")).unwrap();
    symlink(".codex", case.path("work/loop")).unwrap();
    let plan = case.plan(&["work"], &[]).unwrap();
    assert!(plan.guards_removal);
    assert_eq!(kind(&plan, &case.path("work/real")), Some(Kind::ReadOnly));
    let names = &plan.guards[&case.path("work")];
    for name in ["real", "one", "two"] {
        assert!(names.iter().any(|it| it == name), "{name} in {names:?}");
    }
}

#[test]
fn start_up_files_are_guarded_in_a_home_that_can_be_written_to() {
    let case = Case::new(&["home/.config/git", "home/work"]);
    let inside = case.plan(&["home/work"], &["home"]).unwrap();
    assert!(!inside.guards.contains_key(&case.path("home")));
    let plan = case.plan(&["home"], &["home"]).unwrap();
    assert!(plan.guards[&case.path("home")].iter().any(|it| it == ".bashrc"));
    assert!(plan.guards[&case.path("home/.config")].iter().any(|it| it == "fish"));
    assert_eq!(kind(&plan, &case.path("home/.config")), Some(Kind::Writable));
    assert_eq!(kind(&plan, &case.path("home/.config/git")), Some(Kind::ReadOnly));
}

#[test]
fn settings_that_are_not_in_the_home_are_guarded_too() {
    let case = Case::new(&["work/settings"]);
    let files = Files::WorkspaceWrite {
        roots: vec![case.path("work")],
        exclude_tmp: true,
        exclude_tmpdir: true,
    };
    let policy = Policy { files, ..Policy::read_only() };
    let homes = Homes { homes: vec![], config: Some(case.path("work/settings")) };
    let plan = Plan::new(&policy, &Surroundings { tmpdir: None, homes }).unwrap();
    let names = &plan.guards[&case.path("work/settings")];
    assert!(names.iter().any(|it| it == "tieline") && names.iter().any(|it| it == "git"));
}

#[test]
fn what_git_reads_as_a_path_is_protected_and_nothing_else_is_waited_for() {
    let case = Case::new(&["work", "work/repo /worktrees/x"]);
    let link = case.path("work/.git");
    let protects = |path: &str| {
        let plan = case.plan(&["work"], &[]).unwrap();
        kind(&plan, &case.path(path)) == Some(Kind::ReadOnly)
    };
    std::fs::write(&link, "gitdir: repo /worktrees/x\n\n").unwrap();
    assert!(protects("work/repo /worktrees/x"));
    std::fs::write(case.path("work/repo /worktrees/x/commondir"), "../..\r\n").unwrap();
    assert!(protects("work/repo "));
    // A name that is no text.
    let odd = case.path("work").join(OsStr::from_bytes(b"\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(&link, b"gitdir: \xff\n").unwrap();
    assert_eq!(kind(&case.plan(&["work"], &[]).unwrap(), &odd), Some(Kind::ReadOnly));
    // Nobody writes to the pipe, and the other two have no end.
    let make_pipe = || {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &link, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    let make_sparse = || std::fs::File::create(&link).unwrap().set_len(1 << 40).unwrap();
    for make in [&make_pipe as &dyn Fn(), &|| symlink("/dev/zero", &link).unwrap(), &make_sparse] {
        std::fs::remove_file(&link).unwrap();
        make();
        assert!(case.plan(&["work"], &[]).unwrap().guards_removal == link.is_symlink());
    }
}

#[test]
fn roots_that_cannot_be_are_refused() {
    let case = Case::new(&["work"]);
    for root in ["missing", "/", "/proc/self", "/sys"] {
        assert!(case.plan(&[root], &[]).is_err(), "{root}");
    }
}
