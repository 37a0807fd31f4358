use std::os::unix::fs::symlink;

use tempfile::TempDir;
use tieline_workspace::{Guard, Obeyed};

use super::*;

struct Yard {
    dir: TempDir,
}

impl Yard {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["work/src", "work/.git/hooks", "other", "outside"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("work/src/main.rs"), "x\n").unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn roots(&self) -> Roots {
        Roots::here(&self.path("work")).unwrap()
    }

    #[track_caller]
    fn leads_to(&self, name: &str, below: &str) {
        let spot = self.roots().locate(name);
        assert_eq!(spot.map(|spot| spot.below), Ok(PathBuf::from(below)), "{name}");
    }

    #[track_caller]
    fn refused(&self, name: &str, why: Refusal) {
        assert_eq!(self.roots().check(name), Err(why), "{name}");
    }
}

#[test]
fn names_are_read_from_where_we_are() {
    let yard = Yard::new();
    yard.leads_to("a", "a");
    yard.leads_to("./src//./main.rs", "src/main.rs");
    yard.leads_to("new/deep/file", "new/deep/file");
    yard.leads_to(&yard.path("work/src/main.rs").display().to_string(), "src/main.rs");
    yard.leads_to("..a/...", "..a/...");
    yard.leads_to("~/x", "~/x");
    yard.leads_to("a b\u{fc}", "a b\u{fc}");
}

#[test]
fn names_that_mean_no_file_below_the_root_are_refused() {
    let yard = Yard::new();
    for name in ["../x", "../../x", "../work2/x", "/etc/passwd", "/", "../../../../../../../../x"] {
        yard.refused(name, Refusal::Outside);
    }
    yard.refused(&format!("{}2/x", yard.path("work").display()), Refusal::Outside);
    for name in ["a/../b", "src/../../x", "/etc/../x", "a/.."] {
        yard.refused(name, Refusal::DotDot);
    }
    yard.refused("a\0b", Refusal::Nul);
    yard.refused("a\\b", Refusal::Backslash);
    yard.refused("..\\x", Refusal::Backslash);
    yard.refused("", Refusal::Empty);
    for name in [".", "./", "src/", "src/.", "../work"] {
        yard.refused(name, Refusal::NotAFile);
    }
    yard.refused(&"n".repeat(256), Refusal::TooLong);
    yard.refused(&"n/".repeat(2100), Refusal::TooLong);
}

#[test]
fn protected_names_are_refused_at_any_depth_and_in_any_spelling() {
    let yard = Yard::new();
    for name in [
        ".git/config",
        ".git",
        ".GIT/hooks/x",
        ".gi\u{200d}t/x",
        ".git./x",
        "./.git/x",
        "sub/.git/hooks/post-checkout",
        ".codex/config.toml",
        ".agents/x",
        ".Tieline",
        ".claude/settings.json",
        ".mcp.json",
        ".vscode/tasks.json",
        "sub/.cargo/config.toml",
        ".envrc",
    ] {
        yard.refused(name, Refusal::Protected);
    }
    for name in [".gitignore", ".github/x", "git/x", "a.git/x"] {
        yard.leads_to(name, name);
    }
    let roots = yard.roots().guarded_by(Guard::none());
    assert_eq!(roots.check(".git/config"), Ok(()));
    let locked = yard.path("work/locked");
    let roots = yard.roots().guarded_by(Guard::none().ours([locked.as_path()]));
    assert_eq!(roots.check("locked/x"), Err(Refusal::Protected));
    assert_eq!(roots.check("sub/locked/x"), Ok(()));
}

#[test]
fn a_protected_file_is_named_by_where_it_is_and_who_obeys_it() {
    let yard = Yard::new();
    symlink(".git", yard.path("work/harmless")).unwrap();
    let real = std::fs::canonicalize(yard.path("work")).unwrap();
    let named = yard.roots().protected("harmless/hooks/pre-commit");
    assert_eq!(named, Some((real.join(".git/hooks/pre-commit"), Obeyed::Git)));
    assert_eq!(yard.roots().protected("src/main.rs"), None);
}

#[test]
fn links_are_followed_inside_and_nowhere_else() {
    let yard = Yard::new();
    symlink("src", yard.path("work/lib")).unwrap();
    symlink("src/main.rs", yard.path("work/main")).unwrap();
    symlink("../outside", yard.path("work/out")).unwrap();
    symlink(yard.path("outside"), yard.path("work/absolute")).unwrap();
    symlink(".git", yard.path("work/harmless")).unwrap();
    symlink("nothing", yard.path("work/dangling")).unwrap();
    symlink("../outside/new", yard.path("work/dangling-out")).unwrap();
    symlink("loop", yard.path("work/loop")).unwrap();
    symlink("/proc/self/cwd", yard.path("work/magic")).unwrap();
    yard.leads_to("lib/main.rs", "src/main.rs");
    yard.leads_to("lib/new/file", "src/new/file");
    yard.leads_to("main", "src/main.rs");
    assert!(yard.roots().locate("main").unwrap().is_link);
    assert!(!yard.roots().locate("lib/main.rs").unwrap().is_link);
    yard.refused("out/x", Refusal::Outside);
    yard.refused("out", Refusal::Outside);
    yard.refused("absolute/x", Refusal::Outside);
    yard.refused("magic/x", Refusal::Outside);
    yard.refused("harmless/config", Refusal::Protected);
    yard.refused("harmless/new/hook", Refusal::Protected);
    yard.refused("dangling", Refusal::Link);
    yard.refused("dangling-out", Refusal::Outside);
    yard.refused("loop/x", Refusal::Outside);
}

#[test]
fn of_several_roots_the_innermost_is_meant() {
    let yard = Yard::new();
    let all = ["work", "work/src", "other"].map(|it| yard.path(it));
    let roots = Roots::open(&yard.path("work"), &all).unwrap();
    let path = |name: &str| roots.locate(name).map(|spot| (roots.path(&spot), spot.below));
    let real = std::fs::canonicalize(yard.dir.path()).unwrap();
    assert_eq!(path("src/a"), Ok((real.join("work/src/a"), "a".into())));
    assert_eq!(path("a"), Ok((real.join("work/a"), "a".into())));
    assert_eq!(path("../other/a"), Ok((real.join("other/a"), "a".into())));
    assert_eq!(path("../outside/a"), Err(Refusal::Outside));
    let elsewhere = Roots::open(&yard.path("outside"), &all).unwrap();
    assert_eq!(elsewhere.check("a"), Err(Refusal::Outside));
    assert_eq!(elsewhere.check(&yard.path("other/a").display().to_string()), Ok(()));
}

#[test]
fn a_root_may_be_named_by_a_link() {
    let yard = Yard::new();
    symlink(yard.path("work"), yard.path("link")).unwrap();
    let roots = Roots::here(&yard.path("link")).unwrap();
    for path in ["link/src/main.rs", "work/src/main.rs"] {
        let spot = roots.locate(&yard.path(path).display().to_string()).unwrap();
        assert_eq!(spot.below, Path::new("src/main.rs"));
    }
    assert!(matches!(Root::open(&yard.path("nope")), Err(Error::Root { .. })));
}
