//! `cargo xtask agents`: the pinned programs of npm, installed once per lock file.
//!
//! An install goes into a directory named by the lock file's hash, so every
//! checkout with the same pins shares it. It is built in a temporary sibling and
//! renamed into place: whoever loses the race drops its copy and uses the other.
//!
//! To change a pin, edit `xtask/{agents/NAME,acp,node}/package.json` and run in that directory
//! `npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved`.
//! The lock then names versions and hashes but no host, so npm asks whichever
//! registry it is configured for.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, bail};
use tieline_testkit::agents::{self, AGENTS, PROJECTS, Project};

use crate::command;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print only the path of this agent's program.
    #[arg(long, value_name = "AGENT")]
    print: Option<String>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    install_all()?;
    let mut stdout = io::stdout();
    if let Some(name) = &args.print {
        writeln!(stdout, "{}", program(name)?)?;
        return Ok(());
    }
    for name in AGENTS.into_iter().flat_map(Project::pinned) {
        writeln!(stdout, "{name}\t{}", program(&name)?)?;
    }
    Ok(())
}

/// Installs what is missing.
pub(crate) fn install_all() -> anyhow::Result<()> {
    install_missing(&PROJECTS)
}

/// Installs what is missing of these.
pub(crate) fn install_missing(projects: &[&Project]) -> anyhow::Result<()> {
    for project in projects {
        let (names, dir) = (project.pinned().join(", "), project.install_dir());
        if dir.is_dir() {
            progress(&format!("{names}: already in {}", dir.display()))?;
        } else {
            progress(&format!("installing {names}"))?;
            install(project, &dir)?;
        }
    }
    Ok(())
}

fn install(project: &Project, dir: &Path) -> anyhow::Result<()> {
    let parent = dir.parent().context("the cache directory has no parent")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let temp = tempfile::Builder::new().prefix(".installing-").tempdir_in(parent)?;
    fs::write(temp.path().join("package.json"), project.manifest)?;
    fs::write(temp.path().join("package-lock.json"), project.lock)?;

    // The platform packages carry native programs, so no install script has to run.
    let status = command("npm")
        .args(project.install)
        .args(["--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(temp.path())
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .context("cannot run npm")?;
    if !status.success() {
        bail!("npm failed ({status})");
    }

    let temp = temp.keep();
    if let Err(err) = fs::rename(&temp, dir) {
        fs::remove_dir_all(&temp).context("cannot remove the spare copy")?;
        // The target is never replaced: a directory that is there is complete.
        if !dir.is_dir() {
            return Err(err).with_context(|| format!("cannot move into {}", dir.display()));
        }
        progress("another run was faster, using its copy")?;
    }
    Ok(())
}

fn program(name: &str) -> anyhow::Result<String> {
    let path = agents::program(name).map_err(anyhow::Error::msg)?;
    Ok(path.display().to_string())
}

fn progress(text: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{text}")
}
