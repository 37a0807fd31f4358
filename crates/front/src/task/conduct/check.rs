//! What the work is held against: the disk, and commands that must pass.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use tieline_event::{BlobRef, FileFate, TaskFile, TaskMarker};
use tieline_hub::Note;
use tieline_proc::{Env, RunLimits, Spec};
use tokio::time::interval;

use super::super::core::Out;
use super::super::disk::{self, Baseline, Change};
use super::super::state::VerifyBy;
use super::{Error, Stopped, TICK, Work};

/// How long a command that verifies may take.
const VERIFYING: Duration = Duration::from_secs(900);

/// How much of its output goes back to the agent.
const VERIFIED: usize = 8 * 1024;

impl Work<'_> {
    /// Runs every command that must pass; the first one that does not goes back to the agent.
    pub(super) async fn verify(&mut self) -> Result<bool, Error> {
        for command in self.state.verify.clone() {
            let spec = self.checking(&command);
            let running = async {
                let limits = RunLimits { timeout: VERIFYING, max_output: 1 << 20 };
                tieline_proc::run(spec?, b"", limits).await.map_err(|err| err.to_string())
            };
            let Some(ran) = self.unless_stopped(running).await? else { return Ok(false) };
            let (passed, exit_code, output) = match ran {
                Err(why) => (false, None, why),
                Ok(ran) => {
                    let mut text = ran.stdout.to_text();
                    text.push_str(&ran.stderr.to_text());
                    if ran.timed_out {
                        text.push_str(&format!("\nstopped after {} s", VERIFYING.as_secs()));
                    }
                    let code = ran.exit.and_then(|exit| exit.code);
                    (ran.exit.is_some_and(|exit| exit.is_success()), code, text)
                }
            };
            let start = output.ceil_char_boundary(output.len().saturating_sub(VERIFIED));
            let output = output.get(start..).unwrap_or_default().trim().to_owned();
            if !passed {
                self.state.n_failed += 1;
                let code = exit_code.map(|code| format!(" with exit code {code}"));
                let code = code.unwrap_or_default();
                let held = match self.state.verify_by {
                    VerifyBy::User => String::new(),
                    VerifyBy::Model => format!(" in the sandbox of the mode {}", self.mode),
                };
                self.state.failed_check =
                    Some(format!("`{command}` failed{held}{code}:\n\n{output}\n"));
            }
            let verified = TaskMarker::Verified { command, passed, exit_code, output };
            self.show(vec![Out::Marker(verified)]).await?;
            if !passed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How a command that verifies is run. What a model chose is held as its task is.
    fn checking(&self, command: &str) -> Result<Spec, String> {
        let line = ["/bin/sh", "-c", command].map(OsString::from);
        let (program, args) = match self.state.verify_by {
            VerifyBy::User => {
                let [program, args @ ..] = line;
                (program.into(), args.to_vec())
            }
            VerifyBy::Model => (self.fence)(self.mode, Path::new(&self.workspace), line.to_vec())?,
        };
        let mut spec = Spec::new(program, &self.workspace);
        (spec.args, spec.env) = (args, Env::inherited(&[], &[]));
        Ok(spec)
    }

    /// What comes of something that takes its time; nothing if the task is to stop meanwhile.
    async fn unless_stopped<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, Error> {
        tokio::pin!(work);
        let mut ticks = interval(TICK);
        loop {
            tokio::select! {
                biased;
                _ = self.signals.next() => self.stopped = Some(Stopped::Interrupted),
                done = &mut work => return Ok(Some(done)),
                _ = ticks.tick() => {
                    self.read_letters().await?;
                    self.flush().await;
                }
            }
            if self.stopped.is_some() {
                return Ok(None);
            }
        }
    }

    /// What the directory holds, for the measure at the end.
    pub(super) async fn remember_disk(&mut self) -> Result<(), Error> {
        let root = self.workspace.clone();
        let take = move || Baseline::take(Path::new(&root));
        let taken = tokio::task::spawn_blocking(take).await;
        let taken = taken.map_err(|_| tieline_hub::Error::Closed)?;
        let baseline =
            taken.map_err(|source| Error::Disk { path: self.workspace.clone(), source })?;
        let bytes = serde_json::to_vec(&baseline).expect("names and numbers are JSON");
        let blob = BlobRef::of(&bytes);
        self.state.baseline = Some(blob.sha256.clone());
        let task = Some(self.state.to_json());
        let note = Note { markers: Vec::new(), task, blob: Some((blob, bytes)), ..Note::default() };
        Ok(self.conversation.note(note).await?)
    }

    pub(super) async fn measure(&mut self) -> Result<Option<TaskMarker>, Error> {
        let Some(sha256) = self.state.baseline.clone() else { return Ok(None) };
        let (store, root) = (self.hub.store().clone(), self.workspace.clone());
        let claimed = self.state.claimed();
        let measure = move || {
            let Some(bytes) = store.blob(&sha256).map_err(io::Error::other)? else {
                return Ok(None);
            };
            let baseline: Baseline = serde_json::from_slice(&bytes)?;
            let measured = baseline.measure(Path::new(&root))?;
            let mismatches = disk::claims(&measured.files, &claimed, Path::new(&root));
            Ok::<_, io::Error>(Some((measured, mismatches)))
        };
        let measured = tokio::task::spawn_blocking(measure).await;
        let measured = measured.map_err(|_| tieline_hub::Error::Closed)?;
        let measured =
            measured.map_err(|source| Error::Disk { path: self.workspace.clone(), source })?;
        let Some((measured, mismatches)) = measured else { return Ok(None) };
        if measured.files.is_empty() && mismatches.is_empty() {
            return Ok(None);
        }
        let file = |changed: disk::Changed| {
            let (change, from) = match changed.change {
                Change::Created => (FileFate::Created, None),
                Change::Modified => (FileFate::Modified, None),
                Change::Deleted => (FileFate::Deleted, None),
                Change::Renamed { from } => (FileFate::Renamed, Some(from)),
            };
            TaskFile { path: changed.path, change, from }
        };
        let files = measured.files.into_iter().map(file).collect();
        Ok(Some(TaskMarker::FilesModified { files, mismatches, partial: measured.is_partial }))
    }
}
