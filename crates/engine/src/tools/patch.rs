//! `apply_patch`: as a tool, and where a model hands a patch to the shell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tieline_patch::{
    Applied, Change, Content, Error, Kind, Options, Patch, Prepared, Refusal, Roots,
};
use tieline_wire::sqeq::{
    ApplyPatchApprovalRequest, Changes, EventMsg, FileChange, PatchApplyBegin, PatchApplyEnd,
    TurnDiff,
};
use tieline_wire::text::Str;
use tieline_workspace::{Guard, Homes};

use super::{Outcome, Scene, leave};
use crate::calls::Call;
use crate::command::{Decision, Touched, decide_patch};
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
    /// Where its files are, without links.
    paths: Vec<PathBuf>,
    place: Place,
}

/// Where a patch writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Inside of what may be written.
    Inside,
    /// Somewhere else, or where other programs run or obey what they find.
    Anywhere,
}

/// What a patch is held to.
#[derive(Clone)]
struct Bounds {
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    guard: Guard,
}

/// Applies a patch, below `workdir` if it was handed to the shell there.
pub(super) async fn apply(
    scene: &Scene,
    call: &Call,
    text: &str,
    workdir: Option<&Path>,
) -> Outcome {
    let cwd = workdir.map_or_else(|| scene.context.cwd.clone(), |dir| scene.context.path(dir));
    let (roots, ours) = (roots(scene), scene.shared.settings.protected.clone());
    let looked = {
        let text = text.to_owned();
        blocking(move || {
            let ours = ours.iter().map(PathBuf::as_path);
            let guard = Guard::by_name().at(&Homes::here()).ours(ours);
            let bounds = Bounds { cwd, roots, guard };
            Ok((recover(&bounds), prepare(&text, &bounds), bounds))
        })
        .await
    };
    let (ended, ready, bounds) = match looked {
        Ok(looked) => looked,
        Err(why) => return Outcome::failed(why),
    };
    for words in ended {
        scene.shared.out.warn(&scene.task, words).await;
    }
    let (ready, names) = match ready {
        Ok(ready) => ready,
        Err(why) => return Outcome::failed(why),
    };
    // Both by the names the patch has for them and by where they are: a name may lead elsewhere later.
    let mut paths: Vec<PathBuf> = ready.changes.iter().flat_map(paths_of).collect();
    paths.extend(ready.paths.iter().cloned());
    let granted = {
        let granted = scene.shared.granted();
        granted.has_files(paths.iter().map(PathBuf::as_path))
    };
    let terms = scene.context.terms();
    let mut auto_approved = true;
    let touched = match (ready.place, names.as_deref()) {
        (_, Some(names)) => Touched::Protected(names),
        (Place::Inside, None) => Touched::Inside,
        (Place::Anywhere, None) => Touched::Outside,
    };
    match decide_patch(&terms, touched, granted) {
        Decision::Run { .. } => {}
        Decision::Forbid { reason } => return Outcome::forbidden(reason),
        Decision::Ask { why, said, .. } => {
            let terms = leave::Terms { why, said, ..leave::Terms::default() };
            auto_approved = false;
            match ask(scene, call, &ready.changes, &terms).await {
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
        async move { write(&scene, &call, text, bounds, &ready, auto_approved).await }
    };
    let written = scene.outcomes.change(work).await;
    written.unwrap_or_else(|| Outcome::failed("the patch was not applied: the task has ended"))
}

/// Writes a patch that may be written, and tells what came of it.
async fn write(
    scene: &Scene,
    call: &Call,
    text: String,
    bounds: Bounds,
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
    let applied = {
        let (place, paths) = (ready.place, ready.paths.clone());
        blocking(move || commit(&text, &bounds, place, &paths)).await
    };
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

async fn ask(scene: &Scene, call: &Call, changed: &[Change], terms: &leave::Terms) -> Verdict {
    let event = ApplyPatchApprovalRequest {
        call_id: Str::Borrowed(&call.id),
        changes: changes(changed),
        reason: Some(terms.sentence()),
        tieline: Some(terms.besides()),
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

impl Bounds {
    /// Whether everything may be written.
    fn are_none(&self) -> bool {
        self.roots == [PathBuf::from("/")]
    }

    fn open(&self, place: Place) -> Result<Roots, Error> {
        match place {
            Place::Inside if !self.are_none() => {
                Ok(Roots::open(&self.cwd, &self.roots)?.guarded_by(self.guard.clone()))
            }
            // Somebody said yes to these very files, or to everything.
            _ => Ok(Roots::open(&self.cwd, &[PathBuf::from("/")])?.guarded_by(Guard::none())),
        }
    }

    /// What of a patch is protected, and who obeys it; nothing if nothing is.
    fn protected(&self, patch: &Patch<'_>) -> Result<Option<String>, Error> {
        let within = self.open(Place::Inside)?;
        let around = Roots::open(&self.cwd, &[PathBuf::from("/")])?;
        // Only its place tells of a file that is in no root: a name above the roots says nothing.
        let around = around.guarded_by(self.guard.clone().without_names());
        let names = patch.hunks.iter().flat_map(|hunk| [Some(hunk.path()), hunk.move_to()]);
        let mut found: Vec<String> = Vec::new();
        for name in names.flatten() {
            let elsewhere = || match within.check(name) {
                Err(Refusal::Outside) => around.protected(name),
                _ => None,
            };
            let Some((path, by)) = within.protected(name).or_else(elsewhere) else { continue };
            let shown = path.strip_prefix(within.cwd()).unwrap_or(&path);
            let shown = format!("{} ({by})", shown.display());
            if !found.contains(&shown) {
                found.push(shown);
            }
        }
        Ok((!found.is_empty()).then(|| found.join(", ")))
    }
}

/// Ends what an earlier process has left half done, before anybody looks at the files.
fn recover(bounds: &Bounds) -> Vec<String> {
    let roots = bounds.open(Place::Inside);
    let ended = roots.map(|roots| tieline_patch::recover(&roots)).unwrap_or_default();
    ended.iter().map(tieline_patch::Recovered::words).collect()
}

/// Reads a patch; gives what of it is protected, by name.
fn prepare(text: &str, bounds: &Bounds) -> Result<(Ready, Option<String>), String> {
    let patch = tieline_patch::parse(text).map_err(|error| error.to_string())?;
    let ready = |place| -> Result<Ready, Error> {
        let roots = bounds.open(place)?;
        let prepared = Prepared::new(&patch, &roots, Options::default())?;
        let paths = prepared.paths().map(Path::to_owned).collect();
        Ok(Ready { changes: prepared.changes().to_vec(), paths, place })
    };
    match ready(Place::Inside) {
        Err(Error::Refused { .. }) => {
            let names = bounds.protected(&patch).map_err(|error| error.to_string())?;
            Ok((ready(Place::Anywhere).map_err(|error| error.to_string())?, names))
        }
        ready => Ok((ready.map_err(|error| error.to_string())?, None)),
    }
}

fn commit(text: &str, bounds: &Bounds, place: Place, paths: &[PathBuf]) -> Result<Applied, String> {
    let patch = tieline_patch::parse(text).map_err(|error| error.to_string())?;
    let roots = bounds.open(place).map_err(|error| error.to_string())?;
    let prepared = Prepared::new(&patch, &roots, Options::default());
    let prepared = prepared.map_err(|error| error.to_string())?;
    // A link may have come into a path since somebody said yes to where it led.
    match prepared.paths().eq(paths.iter().map(PathBuf::as_path)) {
        true => prepared.commit().map_err(|error| error.to_string()),
        false => Err("a file leads elsewhere than when the patch was looked at; try again".into()),
    }
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
