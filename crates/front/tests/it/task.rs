//! Worktrees of tasks, with a real git.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

use tempfile::TempDir;
use tieline_front::task::worktree::{Error, Worktree, add, ahead, remove, status};
use tieline_proc::{RunLimits, Spec};

/// A repository and room beside it.
struct Place {
    directory: TempDir,
}

impl Place {
    /// Without a repository.
    fn empty() -> Place {
        static HOST: Once = Once::new();
        HOST.call_once(|| {
            tieline_proc::set_host_program(env!("CARGO_BIN_EXE_front-host").into());
        });
        let place = Place { directory: TempDir::new().unwrap() };
        fs::create_dir(place.repository()).unwrap();
        place
    }

    /// With a repository that has no commit.
    async fn unborn() -> Place {
        let place = Place::empty();
        git(&place.repository(), &["init", "-q", "-b", "main"]).await;
        place
    }

    /// With a repository of one commit.
    async fn new() -> Place {
        let place = Place::unborn().await;
        commit(&place.repository(), "a.txt").await;
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn repository(&self) -> PathBuf {
        self.at("repository")
    }

    async fn add(&self, name: &str, task: &str) -> Result<Worktree, Error> {
        add(&self.repository(), &self.at(name), task).await
    }

    async fn refused(&self, name: &str, task: &str) -> String {
        let message = self.add(name, task).await.unwrap_err().to_string();
        message.replace(self.at("").to_str().unwrap(), "")
    }
}

async fn git(directory: &Path, words: &[&str]) -> String {
    let program = tieline_proc::resolve("git", directory, std::env::var_os("PATH").as_deref());
    let mut spec = Spec::new(program.unwrap(), directory);
    let settings = ["user.name=Test", "user.email=test@example.org", "commit.gpgSign=false"];
    for setting in settings {
        spec = spec.arg("-c").arg(setting);
    }
    spec.args.extend(words.iter().map(Into::into));
    spec.env.set("PATH", std::env::var_os("PATH").unwrap());
    let output = tieline_proc::run(spec, b"", RunLimits::default()).await.unwrap();
    assert!(output.exit.unwrap().is_success(), "{words:?}: {}", output.stderr.to_text());
    output.stdout.to_text()
}

async fn commit(directory: &Path, name: &str) {
    fs::write(directory.join(name), name).unwrap();
    git(directory, &["add", name]).await;
    git(directory, &["commit", "-q", "-m", name]).await;
}

#[tokio::test]
async fn a_worktree_has_a_branch_a_base_and_the_files() {
    let place = Place::new().await;
    let worktree = place.add("deep/er/wt", "fix-1").await.unwrap();
    assert_eq!(worktree.path, place.at("deep/er/wt"));
    assert_eq!(worktree.branch, "tieline/fix-1");
    assert_eq!(worktree.base, git(&place.repository(), &["rev-parse", "HEAD"]).await.trim());
    assert!(worktree.path.join("a.txt").is_file());
    assert_eq!(git(&worktree.path, &["branch", "--show-current"]).await, "tieline/fix-1\n");
    assert_eq!(status(&worktree).await.unwrap(), [""; 0]);
    assert_eq!(ahead(&worktree).await.unwrap(), 0);
    let stored = serde_json::to_string(&worktree).unwrap();
    assert_eq!(serde_json::from_str::<Worktree>(&stored).unwrap(), worktree);
}

#[tokio::test]
async fn an_empty_directory_is_a_fine_place() {
    let place = Place::new().await;
    fs::create_dir(place.at("wt")).unwrap();
    place.add("wt", "fix").await.unwrap();
}

#[tokio::test]
async fn work_is_seen_before_and_after_its_commit() {
    let place = Place::new().await;
    let worktree = place.add("wt", "fix").await.unwrap();
    fs::write(worktree.path.join("a.txt"), "other").unwrap();
    fs::write(worktree.path.join("größe\nb"), "new").unwrap();
    assert_eq!(status(&worktree).await.unwrap(), [" M a.txt", "?? \"größe\\nb\""]);
    git(&worktree.path, &["add", "-A"]).await;
    git(&worktree.path, &["commit", "-q", "-m", "work"]).await;
    assert_eq!(status(&worktree).await.unwrap(), [""; 0]);
    commit(&worktree.path, "c").await;
    assert_eq!(ahead(&worktree).await.unwrap(), 2);
    // The repository's own branch goes on without it.
    commit(&place.repository(), "elsewhere").await;
    assert_eq!(ahead(&worktree).await.unwrap(), 2);
}

#[tokio::test]
async fn the_second_time_it_is_the_same_worktree() {
    let place = Place::new().await;
    let first = place.add("wt", "fix").await.unwrap();
    commit(&first.path, "b").await;
    commit(&place.repository(), "c").await;
    fs::write(first.path.join("unsaved"), "x").unwrap();
    let second = place.add("wt", "fix").await.unwrap();
    assert_eq!(second, first);
    assert!(first.path.join("unsaved").is_file());
    std::os::unix::fs::symlink("wt", place.at("link")).unwrap();
    assert_eq!(place.add("link", "fix").await.unwrap(), first);
}

#[tokio::test]
async fn a_worktree_whose_directory_was_deleted_is_made_again() {
    let place = Place::new().await;
    let worktree = place.add("wt", "fix").await.unwrap();
    commit(&worktree.path, "b").await;
    fs::remove_dir_all(&worktree.path).unwrap();
    for result in [status(&worktree).await.map(|_| ()), remove(&worktree, true).await] {
        assert!(matches!(result, Err(Error::Gone { .. })), "{result:?}");
    }
    assert_eq!(place.add("wt", "fix").await.unwrap(), worktree);
    assert!(worktree.path.join("b").is_file());
}

#[tokio::test]
async fn what_is_not_committed_is_removed_by_force_only() {
    let place = Place::new().await;
    let worktree = place.add("wt", "fix").await.unwrap();
    fs::write(worktree.path.join("unsaved"), "x").unwrap();
    let err = remove(&worktree, false).await.unwrap_err();
    assert!(matches!(err, Error::Dirty { .. }), "{err:?}");
    assert!(worktree.path.join("unsaved").is_file());
    remove(&worktree, true).await.unwrap();
    assert!(!worktree.path.exists());
}

#[tokio::test]
async fn a_removed_worktree_leaves_its_branch_to_go_on_with() {
    let place = Place::new().await;
    let worktree = place.add("wt", "fix").await.unwrap();
    commit(&worktree.path, "b").await;
    remove(&worktree, false).await.unwrap();
    assert!(!worktree.path.exists());
    commit(&place.repository(), "c").await;
    let again = place.add("other", "fix").await.unwrap();
    assert_eq!((&again.branch, &again.base), (&worktree.branch, &worktree.base));
    assert!(again.path.join("b").is_file());
    assert_eq!(ahead(&again).await.unwrap(), 1);
}

#[tokio::test]
async fn a_branch_that_is_checked_out_elsewhere_is_taken() {
    let place = Place::new().await;
    place.add("one", "fix").await.unwrap();
    assert_eq!(
        place.refused("two", "fix").await,
        "the branch tieline/fix is checked out at one; remove that worktree with `git worktree \
         remove` (`git worktree prune` if it is gone), or give the task another name"
    );
    git(&place.repository(), &["checkout", "-q", "-b", "tieline/main"]).await;
    let err = place.add("two", "main").await.unwrap_err();
    assert!(matches!(err, Error::BranchTaken { .. }), "{err:?}");
    assert!(!place.at("two").exists());
}

#[tokio::test]
async fn a_branch_in_the_way_is_named() {
    let place = Place::new().await;
    git(&place.repository(), &["branch", "tieline"]).await;
    let message = place.refused("wt", "fix").await;
    assert!(message.starts_with("`git worktree add` failed: ") && message.contains("tieline"));
    assert!(!message.contains('\n'));
}

#[tokio::test]
async fn a_place_that_is_something_else_is_left_alone() {
    let place = Place::new().await;
    place.add("one", "fix").await.unwrap();
    let rest = "move it away, or name another place";
    assert_eq!(
        place.refused("one", "other").await,
        format!("one is already there and is a worktree with the branch tieline/fix; {rest}")
    );
    assert_eq!(
        place.refused("repository", "other").await,
        format!("repository is already there and is a worktree with the branch main; {rest}")
    );
    fs::create_dir(place.at("full")).unwrap();
    fs::write(place.at("full/file"), "x").unwrap();
    assert_eq!(
        place.refused("full", "other").await,
        format!("full is already there and is not empty; {rest}")
    );
    assert_eq!(
        place.refused("full/file", "other").await,
        format!("full/file is already there and is no directory; {rest}")
    );
}

#[tokio::test]
async fn without_a_repository_or_a_commit_it_says_what_to_do() {
    assert_eq!(
        Place::empty().refused("wt", "fix").await,
        "repository is not in a git repository; run `git init` there, or run the task without a \
         worktree"
    );
    assert_eq!(
        Place::unborn().await.refused("wt", "fix").await,
        "the repository repository has no commit yet; make one first"
    );
    let place = Place::empty();
    let err = add(&place.at("nowhere"), &place.at("wt"), "fix").await.unwrap_err();
    assert!(matches!(err, Error::Path { .. }), "{err:?}");
}

#[tokio::test]
async fn a_name_that_no_branch_can_have_is_refused() {
    let place = Place::new().await;
    for task in ["", "a..b", "two words", "x.lock", "a\nb", "/"] {
        let err = place.add("wt", task).await.unwrap_err();
        assert!(matches!(err, Error::BadName { .. }), "{task:?}: {err:?}");
    }
    place.add("wt", "-f").await.unwrap();
}

#[tokio::test]
async fn no_hook_of_the_repository_runs() {
    let place = Place::new().await;
    let hook = place.repository().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\necho ran > '{}'\n", place.at("ran").display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    git(&place.repository(), &["checkout", "-q", "-b", "other"]).await;
    assert!(place.at("ran").exists(), "the hook works");
    fs::remove_file(place.at("ran")).unwrap();
    place.add("wt", "fix").await.unwrap();
    assert!(!place.at("ran").exists());
}

#[tokio::test]
async fn a_directory_that_is_no_worktree_any_more_does_not_answer_for_its_repository() {
    let place = Place::new().await;
    let worktree = place.add("repository/wt", "fix").await.unwrap();
    fs::remove_file(worktree.path.join(".git")).unwrap();
    let err = status(&worktree).await.unwrap_err();
    assert!(matches!(err, Error::Gone { .. }), "{err:?}");
}
