//! `apply_patch`: as a tool, and where a model hands a patch to the shell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tieline_patch::{Applied, Change, Content, Error, Kind, Options, Prepared, Roots};
use tieline_wire::sqeq::{
    ApplyPatchApprovalRequest, Changes, EventMsg, FileChange, PatchApplyBegin, PatchApplyEnd,
    TurnDiff,
};
use tieline_wire::text::Str;
use tieline_workspace::Guard;

use super::{Outcome, Scene};
use crate::calls::Call;
use crate::command::{Decision, decide_patch};
use crate::context::Reaching;
use crate::order::Verdict;
use crate::outcomes::Changed;

#[derive(Debug, Deserialize)]
pub(super) struct Args {
    #[serde(alias = "patch")]
    pub(super) input: String,
}

/// A patch that can be applied.
struct Ready {
    changes: Vec<Change>,
    /// All of it is inside of what may be written.
    is_inside: bool,
}

/// Applies a patch, below `workdir` if it was handed to the shell there.
pub(super) async fn apply(
    scene: &Scene,
    call: &Call,
    text: &str,
    workdir: Option<&Path>,
) -> Outcome {
    let cwd = workdir.map_or_else(|| scene.context.cwd.clone(), |dir| scene.context.path(dir));
    let ready = {
        let (text, cwd, roots) = (text.to_owned(), cwd.clone(), roots(scene));
        blocking(move || Ok((recover(&cwd, &roots), prepare(&text, &cwd, &roots)))).await
    };
    let ready = match ready {
        Ok((ended, ready)) => {
            for words in ended {
                scene.shared.out.warn(&scene.task, words).await;
            }
            ready
        }
        Err(why) => Err(why),
    };
    let ready = match ready {
        Ok(ready) => ready,
        Err(why) => return Outcome::failed(why),
    };
    let paths: Vec<PathBuf> = ready.changes.iter().flat_map(paths_of).collect();
    let granted = {
        let granted = scene.shared.granted();
        granted.has_files(paths.iter().map(PathBuf::as_path))
    };
    let terms = scene.context.terms();
    let mut auto_approved = true;
    match decide_patch(&terms, ready.is_inside, granted) {
        Decision::Run { .. } => {}
        Decision::Forbid { reason } => return Outcome::forbidden(reason),
        Decision::Ask { reason, .. } => {
            auto_approved = false;
            match ask(scene, call, &ready.changes, reason).await {
                Verdict::Yes | Verdict::Always(_) => {}
                Verdict::ForSession => {
                    scene.shared.granted().files(paths.iter().map(PathBuf::as_path));
                }
                Verdict::No(why) => return Outcome::rejected(why),
                Verdict::Abort => return Outcome::aborted(),
            }
        }
    }
    let work = {
        let (scene, call, text) = (scene.clone(), call.clone(), text.to_owned());
        async move { write(&scene, &call, text, cwd, &ready, auto_approved).await }
    };
    let written = scene.outcomes.change(work).await;
    written.unwrap_or_else(|| Outcome::failed("the patch was not applied: the task has ended"))
}

/// Writes a patch that may be written, and tells what came of it.
async fn write(
    scene: &Scene,
    call: &Call,
    text: String,
    cwd: PathBuf,
    ready: &Ready,
    auto_approved: bool,
) -> Outcome {
    let out = &scene.shared.out;
    let begin = PatchApplyBegin {
        call_id: Str::Borrowed(&call.id),
        auto_approved,
        changes: changes(&ready.changes),
        turn_id: Some(Str::Borrowed(&scene.task)),
    };
    out.send(&scene.task, EventMsg::PatchApplyBegin(begin)).await;
    let (roots, anywhere) = (roots(scene), !ready.is_inside);
    let applied = blocking(move || commit(&text, &cwd, &roots, anywhere)).await;
    let (stdout, stderr) = match &applied {
        Ok(applied) => (applied.summary(), String::new()),
        Err(why) => (String::new(), why.clone()),
    };
    let end = PatchApplyEnd {
        call_id: Str::Borrowed(&call.id),
        stdout: Str::Borrowed(&stdout),
        stderr: Str::Borrowed(&stderr),
        success: applied.is_ok(),
        status: Some(if applied.is_ok() { "completed" } else { "failed" }.into()),
        turn_id: Some(Str::Borrowed(&scene.task)),
        changes: Some(changes(&ready.changes)),
    };
    out.send(&scene.task, EventMsg::PatchApplyEnd(Box::new(end))).await;
    let outcome = match applied {
        Err(why) => Outcome::failed(why),
        Ok(applied) => {
            let unified_diff = Str::Owned(scene.shared.add_to_diff(&applied.changes));
            out.send(&scene.task, EventMsg::TurnDiff(TurnDiff { unified_diff })).await;
            scene.outcomes.changed(Changed::Patched(applied.undo));
            Outcome::said(stdout)
        }
    };
    // Whoever called it may be gone by now.
    scene.outcomes.put(&call.id, outcome.clone());
    outcome
}

async fn ask(scene: &Scene, call: &Call, changed: &[Change], reason: String) -> Verdict {
    let event = ApplyPatchApprovalRequest {
        call_id: Str::Borrowed(&call.id),
        changes: changes(changed),
        reason: Some(Str::Owned(reason)),
        grant_root: None,
        turn_id: Some(Str::Borrowed(&scene.task)),
    };
    let answer = scene.shared.asked.leave(&scene.task, &call.id);
    let event = EventMsg::ApplyPatchApprovalRequest(Box::new(event));
    scene.shared.out.send(&scene.task, event).await;
    answer.get().await.unwrap_or(Verdict::Abort)
}

/// Where files may be written.
fn roots(scene: &Scene) -> Vec<PathBuf> {
    match &scene.context.reaching {
        // Nothing is written without leave; with it, the workspace is meant.
        Reaching::ReadOnly => vec![scene.context.cwd.clone()],
        Reaching::Workspace { roots, .. } => {
            let cwd = std::iter::once(&scene.context.cwd);
            cwd.chain(roots).cloned().collect()
        }
        Reaching::Everything => vec![PathBuf::from("/")],
    }
}

fn open(cwd: &Path, roots: &[PathBuf], anywhere: bool) -> Result<Roots, Error> {
    match anywhere {
        false => Roots::open(cwd, roots),
        // Somebody said yes to these very files.
        true => Ok(Roots::open(cwd, &[PathBuf::from("/")])?.guarded_by(Guard::none())),
    }
}

/// Ends what an earlier process has left half done, before anybody looks at the files.
fn recover(cwd: &Path, within: &[PathBuf]) -> Vec<String> {
    let roots = open(cwd, within, within == [PathBuf::from("/")]);
    let ended = roots.map(|roots| tieline_patch::recover(&roots)).unwrap_or_default();
    ended.iter().map(tieline_patch::Recovered::words).collect()
}

fn prepare(text: &str, cwd: &Path, within: &[PathBuf]) -> Result<Ready, String> {
    let patch = tieline_patch::parse(text).map_err(|error| error.to_string())?;
    let is_full = within == [PathBuf::from("/")];
    let roots = open(cwd, within, is_full).map_err(|error| error.to_string())?;
    match Prepared::new(&patch, &roots, Options::default()) {
        Ok(prepared) => Ok(Ready { changes: prepared.changes().to_vec(), is_inside: true }),
        Err(Error::Refused { .. }) => {
            let roots = open(cwd, within, true).map_err(|error| error.to_string())?;
            let prepared = Prepared::new(&patch, &roots, Options::default());
            let prepared = prepared.map_err(|error| error.to_string())?;
            Ok(Ready { changes: prepared.changes().to_vec(), is_inside: false })
        }
        Err(error) => Err(error.to_string()),
    }
}

fn commit(text: &str, cwd: &Path, within: &[PathBuf], anywhere: bool) -> Result<Applied, String> {
    let patch = tieline_patch::parse(text).map_err(|error| error.to_string())?;
    let anywhere = anywhere || within == [PathBuf::from("/")];
    let roots = open(cwd, within, anywhere).map_err(|error| error.to_string())?;
    tieline_patch::apply(&patch, &roots, Options::default()).map_err(|error| error.to_string())
}

/// Files block; the runtime must not.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err("the patch could not be applied: tieline failed".to_owned()),
    }
}

fn paths_of(change: &Change) -> Vec<PathBuf> {
    let mut paths = vec![change.file.path.clone()];
    if let Kind::Move { to, .. } = &change.kind {
        paths.push(to.path.clone());
    }
    paths
}

/// As the protocol tells changes.
fn changes(changed: &[Change]) -> Changes<'static> {
    let text = |content: &Option<Content>| {
        let text = content.as_ref().map(|it| String::from_utf8_lossy(it.bytes()).into_owned());
        Str::Owned(text.unwrap_or_default())
    };
    let file = |change: &Change| {
        let path = Str::Owned(change.file.path.display().to_string());
        let unified_diff = Str::Owned(change.unified_diff.clone());
        let what = match &change.kind {
            Kind::Add => FileChange::Add { content: text(&change.new) },
            Kind::Delete => FileChange::Delete { content: Some(text(&change.old)) },
            Kind::Update => FileChange::Update { unified_diff, move_path: None },
            Kind::Move { to, .. } => {
                let move_path = Some(Str::Owned(to.path.display().to_string()));
                FileChange::Update { unified_diff, move_path }
            }
        };
        (path, what)
    };
    Changes { files: changed.iter().map(file).collect(), ..Changes::default() }
}

/// A patch in a command, if it is nothing else.
pub(super) fn in_command(argv: &[String]) -> Option<(String, Option<PathBuf>)> {
    let found = tieline_patch::from_command(argv)?;
    Some((found.patch.to_owned(), found.workdir.map(PathBuf::from)))
}

/// The files of a whole turn, before its first change and after its last.
#[derive(Debug, Default)]
pub(crate) struct TurnChanges(BTreeMap<PathBuf, (Option<Content>, Option<Content>)>);

impl TurnChanges {
    /// Adds what a patch did; gives the diff of everything so far.
    pub(crate) fn add(&mut self, changes: &[Change]) -> String {
        for change in changes {
            let (old, new) = (change.old.clone(), change.new.clone());
            match &change.kind {
                Kind::Move { to, replaced } => {
                    self.note(&change.file.path, old, None);
                    self.note(&to.path, replaced.clone(), new);
                }
                _ => self.note(&change.file.path, old, new),
            }
        }
        self.0.iter().map(|(path, (old, new))| diff(path, old.as_ref(), new.as_ref())).collect()
    }

    fn note(&mut self, path: &Path, old: Option<Content>, new: Option<Content>) {
        let (_, last) = self.0.entry(path.to_owned()).or_insert((old, None));
        *last = new;
    }
}

/// A file's part of a diff, as git writes it.
fn diff(path: &Path, old: Option<&Content>, new: Option<&Content>) -> String {
    let text = |content: Option<&Content>| {
        content.map_or_else(String::new, |it| String::from_utf8_lossy(it.bytes()).into_owned())
    };
    let hunks = tieline_patch::difference(&text(old), &text(new), 3);
    if old == new {
        return String::new();
    }
    let name = path.display();
    let (from, to) = match (old, new) {
        (None, _) => ("/dev/null".to_owned(), format!("b{name}")),
        (_, None) => (format!("a{name}"), "/dev/null".to_owned()),
        _ => (format!("a{name}"), format!("b{name}")),
    };
    format!("diff --git a{name} b{name}\n--- {from}\n+++ {to}\n{hunks}")
}
