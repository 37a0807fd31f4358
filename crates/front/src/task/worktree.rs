//! A git worktree of its own for a task, so that two tasks do not change the same files.
//!
//! git is run in an environment of a few variables and without any program that the repository names:
//! no hook, no monitor, no filter, no way to a server. What an agent left in a repository, or who made
//! it, must not run because somebody looks at it.

mod settings;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use settings::Overrides;
use tieline_proc::{Output, RunLimits, Spec};

/// How long git may take, and how much it may say.
const LIMITS: RunLimits = RunLimits { timeout: Duration::from_secs(60), max_output: 1024 * 1024 };

/// Where branches of tasks are.
const PREFIX: &str = "tieline/";

/// A worktree that belongs to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Where it is.
    pub path: PathBuf,
    /// What is checked out there.
    pub branch: String,
    /// The commit that the branch began at.
    pub base: String,
}

/// Why there is no worktree, or why it stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no git.
    #[error("cannot find git; install it, or run the task without a worktree")]
    NoGit,
    /// There is no repository.
    #[error(
        "{} is not in a git repository; run `git init` there, or run the task without a worktree",
        path.display()
    )]
    NotARepository {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A branch needs a commit to begin at.
    #[error("the repository {} has no commit yet; make one first", path.display())]
    NoCommit {
        /// The repository.
        path: PathBuf,
    },
    /// The task's name cannot be part of a branch's.
    #[error("{branch:?} cannot be the name of a branch; give the task a plainer name")]
    BadName {
        /// The branch.
        branch: String,
    },
    /// Somebody works on the branch.
    #[error(
        "the branch {branch} is checked out at {}; remove that worktree with `git worktree remove` \
         (`git worktree prune` if it is gone), or give the task another name",
        path.display()
    )]
    BranchTaken {
        /// The branch.
        branch: String,
        /// Where it is checked out.
        path: PathBuf,
    },
    /// The place is taken.
    #[error("{} is already there and is {what}; move it away, or name another place", path.display())]
    Occupied {
        /// The place.
        path: PathBuf,
        /// What is there.
        what: String,
    },
    /// The worktree was taken away.
    #[error(
        "{} is no worktree any more; run `git worktree prune` in its repository to forget it",
        path.display()
    )]
    Gone {
        /// Where it was.
        path: PathBuf,
    },
    /// There is work in it that only it has.
    #[error(
        "{} has changes that are not committed; commit them, or remove it by force", path.display()
    )]
    Dirty {
        /// The worktree.
        path: PathBuf,
    },
    /// git did not do it.
    #[error("`git {command}` failed: {message}")]
    Git {
        /// What it was asked.
        command: String,
        /// What it answered.
        message: String,
    },
    /// git took too long.
    #[error("`git {command}` did not end within {} seconds and was stopped", LIMITS.timeout.as_secs())]
    TimedOut {
        /// What it was asked.
        command: String,
    },
    /// git could not be run.
    #[error("cannot run git")]
    Run(#[from] tieline_proc::Error),
    /// A path cannot be used.
    #[error("cannot use {}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes a worktree for `task` at the place `at`, on the branch `tieline/TASK`.
///
/// A branch that is there from before is used as it is, and a worktree that is there from before is
/// returned. Its base is then the last commit that it shares with what `repository` has checked out.
pub async fn add(repository: &Path, at: &Path, task: &str) -> Result<Worktree, Error> {
    let git = Git::new(repository).await?;
    let path = real(at)?;
    let branch = format!("{PREFIX}{task}");
    let reference = format!("refs/heads/{branch}");

    let listed = git.run(&["worktree", "list", "--porcelain"]).await?;
    if !listed.is_success() {
        return Err(match listed.message().contains("not a git repository") {
            true => Error::NotARepository { path: git.directory },
            false => listed.into_error(),
        });
    }
    let listed = list(&listed.text());
    if !git.run(&["check-ref-format", &reference]).await?.is_success() {
        return Err(Error::BadName { branch });
    }
    let Some(head) = git.commit("HEAD").await? else {
        return Err(Error::NoCommit { path: git.directory });
    };
    let tip = git.commit(&reference).await?;
    let base = match &tip {
        Some(tip) => git.common(&head, tip).await?,
        None => head,
    };
    let worktree = Worktree { path, branch, base };

    let here = listed.iter().find(|other| other.path == worktree.path);
    let is_ours = here.is_some_and(|here| here.branch.as_deref() == Some(reference.as_str()));
    let is_there = worktree.path.symlink_metadata().is_ok();
    if is_ours && worktree.path.join(".git").is_file() {
        return Ok(worktree);
    }
    if is_there && let Some(what) = what_is_at(&worktree.path, here) {
        return Err(Error::Occupied { path: worktree.path, what });
    }
    let holds = |other: &&Listed| {
        other.path != worktree.path && other.branch.as_deref() == Some(reference.as_str())
    };
    if let Some(other) = listed.iter().find(holds) {
        let path = other.path.clone();
        return Err(Error::BranchTaken { branch: worktree.branch, path });
    }

    let Some(place) = worktree.path.to_str() else {
        let source = io::Error::new(io::ErrorKind::InvalidFilename, "its name is no text");
        return Err(Error::Path { path: worktree.path, source });
    };
    // Settings may depend on the branch, so they are looked at there before a file is.
    let mut words = vec!["worktree", "add", "--quiet", "--no-checkout"];
    if here.is_some() {
        // Its directory was deleted and git still remembers it.
        words.push("--force");
    }
    match tip {
        Some(_) => words.extend([place, worktree.branch.as_str()]),
        None => words.extend(["-b", &worktree.branch, place, &worktree.base]),
    }
    git.run(&words).await?.ok()?;
    match fill(&worktree).await {
        Ok(()) => Ok(worktree),
        Err(err) => {
            // An empty worktree would look as if every file were deleted.
            let removed = git.run(&["worktree", "remove", "--force", place]).await;
            tracing::debug!(is_removed = removed.is_ok(), "no files in a new worktree");
            Err(err)
        }
    }
}

/// Brings the files of its branch into a new worktree.
async fn fill(worktree: &Worktree) -> Result<(), Error> {
    let git = Git::within(worktree).await?;
    let words = ["reset", "--hard", "--quiet", "--no-recurse-submodules"];
    git.run(&words).await?.ok().map(|_| ())
}

/// What is in it that is not committed, as `git status --short` says it: two letters, a space and a
/// path, quoted where it would not be one line.
pub async fn status(worktree: &Worktree) -> Result<Vec<String>, Error> {
    let git = Git::within(worktree).await?;
    // A repository within has settings of its own.
    let words = ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty"];
    let said = git.run(&words).await?.ok()?;
    Ok(said.lines().map(str::to_owned).collect())
}

/// How many commits its branch has since its base.
pub async fn ahead(worktree: &Worktree) -> Result<u64, Error> {
    let git = Git::within(worktree).await?;
    let range = format!("{}..refs/heads/{}", worktree.base, worktree.branch);
    let said = git.run(&["rev-list", "--count", &range, "--"]).await?;
    let command = said.command.clone();
    let message = said.ok()?;
    message.trim().parse().map_err(|_| Error::Git { command, message })
}

/// Removes it; its branch stays. What is not committed is lost by force only.
pub async fn remove(worktree: &Worktree, force: bool) -> Result<(), Error> {
    let git = Git::within(worktree).await?;
    let common = git.run(&["rev-parse", "--git-common-dir"]).await?.ok()?;
    // Not from within, since that place goes away.
    let git = Git::new(&worktree.path.join(common.trim_end_matches('\n'))).await?;
    let Some(place) = worktree.path.to_str() else {
        return Err(Error::Gone { path: worktree.path.clone() });
    };
    let mut words = vec!["worktree", "remove"];
    if force {
        words.push("--force");
    }
    words.push(place);
    let said = git.run(&words).await?;
    match !said.is_success() && said.message().contains("modified or untracked files") {
        true => Err(Error::Dirty { path: worktree.path.clone() }),
        false => said.ok().map(|_| ()),
    }
}

/// A program and where it is run.
struct Git {
    program: PathBuf,
    directory: PathBuf,
    overrides: Overrides,
}

impl Git {
    async fn new(directory: &Path) -> Result<Git, Error> {
        let directory = directory
            .canonicalize()
            .map_err(|source| Error::Path { path: directory.to_owned(), source })?;
        let program = find(&directory, std::env::var_os("PATH").as_deref())?;
        let mut git = Git { program, directory, overrides: Overrides::default() };
        let listed = git.run(&["config", "--list", "--show-scope", "-z"]).await?;
        let stdout = &listed.output.stdout;
        if !listed.is_success() || stdout.left_out() > 0 {
            return Err(listed.into_error());
        }
        git.overrides = Overrides::against(&[stdout.head.as_slice(), &stdout.tail].concat());
        Ok(git)
    }

    /// Within a worktree. A directory that is no longer one could be part of another repository,
    /// which would then answer.
    async fn within(worktree: &Worktree) -> Result<Git, Error> {
        match worktree.path.join(".git").is_file() {
            true => Git::new(&worktree.path).await,
            false => Err(Error::Gone { path: worktree.path.clone() }),
        }
    }

    async fn run(&self, words: &[&str]) -> Result<Said, Error> {
        let mut spec = Spec::new(&self.program, &self.directory);
        // The last of them starts a program on every status where it is set.
        for setting in ["core.hooksPath=/dev/null", "core.quotePath=false", "core.fsmonitor=false"]
        {
            spec = spec.arg("-c").arg(setting);
        }
        spec.args.extend(words.iter().map(Into::into));
        for name in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(name) {
                spec.env.set(name, value);
            }
        }
        spec.env.set("GIT_TERMINAL_PROMPT", "0").set("LC_ALL", "C");
        // An object that is missing is not fetched: the repository would say with which program.
        spec.env.set("GIT_NO_LAZY_FETCH", "1").set("GIT_ALLOW_PROTOCOL", "none");
        for (name, value) in self.overrides.variables() {
            spec.env.set(name, value);
        }
        // A look at a worktree must not make the agent's own git wait for a lock, or fail.
        spec.env.set("GIT_OPTIONAL_LOCKS", "0");
        // The first two words are ours and say enough; a path may be long and secret.
        let command = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        let output = tieline_proc::run(spec, b"", LIMITS).await?;
        match output.timed_out {
            true => Err(Error::TimedOut { command }),
            false => Ok(Said { command, output }),
        }
    }

    /// The commit that a name means.
    async fn commit(&self, name: &str) -> Result<Option<String>, Error> {
        let name = format!("{name}^{{commit}}");
        let said = self.run(&["rev-parse", "--verify", "--quiet", &name]).await?;
        Ok(said.is_success().then(|| said.text().trim().to_owned()))
    }

    /// The last commit of two histories, or the second one's own if they share none.
    async fn common(&self, one: &str, other: &str) -> Result<String, Error> {
        let said = self.run(&["merge-base", one, other]).await?;
        let text = said.text();
        Ok(match said.is_success() {
            true => text.trim().to_owned(),
            false => other.to_owned(),
        })
    }
}

/// Where git is. One that the repository brings along is not it.
fn find(repository: &Path, path_var: Option<&OsStr>) -> Result<PathBuf, Error> {
    tieline_proc::resolve("git", repository, path_var).map_err(|err| match err {
        tieline_proc::Error::NotFound { .. } => Error::NoGit,
        err => err.into(),
    })
}

/// What git answered.
struct Said {
    command: String,
    output: Output,
}

impl Said {
    fn is_success(&self) -> bool {
        self.output.exit.is_some_and(|exit| exit.is_success())
    }

    fn text(&self) -> String {
        self.output.stdout.to_text()
    }

    fn message(&self) -> String {
        let said = self.output.stderr.to_text();
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
        match lines.is_empty() {
            true => "it said nothing".to_owned(),
            false => crate::sanitize::one_line(&lines.join("; ")),
        }
    }

    fn ok(self) -> Result<String, Error> {
        if self.is_success() { Ok(self.text()) } else { Err(self.into_error()) }
    }

    fn into_error(self) -> Error {
        let message = self.message();
        Error::Git { command: self.command, message }
    }
}

/// A worktree that the repository knows of.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    path: PathBuf,
    /// `None` if a commit is checked out and no branch.
    branch: Option<String>,
}

fn list(text: &str) -> Vec<Listed> {
    let mut listed = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("worktree ") {
            listed.push(Listed { path: path.into(), branch: None });
        } else if let Some(branch) = line.strip_prefix("branch ")
            && let Some(last) = listed.last_mut()
        {
            last.branch = Some(branch.to_owned());
        }
    }
    listed
}

/// What is in the way; an empty directory is not.
fn what_is_at(path: &Path, listed: Option<&Listed>) -> Option<String> {
    if !path.is_dir() {
        return Some("no directory".to_owned());
    }
    let is_empty = path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    if is_empty {
        return None;
    }
    Some(match listed {
        Some(Listed { branch: Some(branch), .. }) => {
            let branch = branch.strip_prefix("refs/heads/").unwrap_or(branch);
            format!("a worktree with the branch {branch}")
        }
        Some(Listed { branch: None, .. }) => "a worktree without a branch".to_owned(),
        None => "not empty".to_owned(),
    })
}

/// The path as git will show it: without links, also where it is yet to be made.
fn real(path: &Path) -> Result<PathBuf, Error> {
    let fails = |source| Error::Path { path: path.to_owned(), source };
    let whole = std::path::absolute(path).map_err(fails)?;
    for ancestor in whole.ancestors() {
        if let Ok(found) = ancestor.canonicalize() {
            let rest = whole.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return Ok(if rest.as_os_str().is_empty() { found } else { found.join(rest) });
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests;
