//! From a policy to what has to be mounted and guarded, read from the file system as it is.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use tieline_workspace::protected::{IN_WORKSPACE, folded, nearly_real};
use tieline_workspace::{Homes, Repository};

use crate::policy::{Files, Policy};
use crate::refusal::Refusal;

#[cfg(test)]
mod tests;

/// How a path is shown inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Writable,
    ReadOnly,
    Hidden,
}

/// What a policy means on this file system.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Real paths, outer ones before inner ones.
    pub(crate) mounts: Vec<(PathBuf, Kind)>,
    /// The writable roots among them.
    pub(crate) roots: Vec<PathBuf>,
    /// Directories with names that nothing may be created, renamed or removed under.
    pub(crate) guards: BTreeMap<PathBuf, Vec<String>>,
    /// A guarded name is a link. A mount cannot hold a link in place, so its removal is guarded too.
    pub(crate) guards_removal: bool,
}

/// What a plan needs to know of the process.
pub(crate) struct Surroundings {
    pub(crate) tmpdir: Option<PathBuf>,
    pub(crate) homes: Homes,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn here() -> Self {
        let tmpdir = std::env::var_os("TMPDIR").filter(|it| !it.is_empty()).map(PathBuf::from);
        Self { tmpdir, homes: Homes::here() }
    }
}

impl Plan {
    /// Reads the file system; refuses a root that cannot be one.
    pub(crate) fn new(policy: &Policy, here: &Surroundings) -> Result<Self, Refusal> {
        let mut plan = Self::default();
        let mut named = Vec::new();
        if let Files::WorkspaceWrite { roots, exclude_tmp, exclude_tmpdir } = &policy.files {
            for root in roots {
                named.push(real_root(root)?);
            }
            let tmp = (!exclude_tmp).then(|| PathBuf::from("/tmp"));
            let tmpdir = here.tmpdir.clone().filter(|it| !exclude_tmpdir && it.is_absolute());
            let temporary = [tmp, tmpdir].into_iter().flatten();
            // What is not there, or is the sandbox's own, needs no permission.
            plan.roots.extend(temporary.filter_map(|it| real_root(&it).ok()));
        }
        plan.roots.extend(named.iter().cloned());
        plan.roots.sort();
        plan.roots.dedup();
        for root in plan.roots.clone() {
            plan.mount(root.clone(), Kind::Writable);
            plan.pin_ancestors(&root);
            for (name, _) in IN_WORKSPACE {
                plan.protect(&root.join(name), &named, 0);
            }
            plan.protect_repository(&root, &named);
        }
        let real = |path: &PathBuf| path.canonicalize().ok();
        let homes = Homes {
            homes: here.homes.homes.iter().filter_map(real).collect(),
            config: here.homes.config.as_deref().map(nearly_real),
        };
        for (path, _) in homes.places() {
            plan.protect(&path, &named, 0);
        }
        for path in &policy.protected {
            // The last name may be a link, which is then protected as a link.
            let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { continue };
            plan.protect(&nearly_real(dir).join(name), &named, 0);
        }
        for path in &policy.hidden {
            plan.hide(path)?;
        }
        plan.mounts.sort_by_key(|(path, kind)| (*kind == Kind::Hidden, path.components().count()));
        Ok(plan)
    }

    fn mount(&mut self, path: PathBuf, kind: Kind) {
        match self.mounts.iter_mut().find(|(known, _)| *known == path) {
            Some((_, known)) => *known = (*known).max(kind),
            None => self.mounts.push((path, kind)),
        }
    }

    /// The innermost writable root around a path.
    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let around = self.roots.iter().filter(|root| path.starts_with(root));
        around.max_by_key(|root| root.components().count()).cloned()
    }

    /// Makes mounts of the directories between a path and the outermost root around it: what is a
    /// mount cannot be renamed, and a guard would move along with a renamed parent.
    fn pin_ancestors(&mut self, path: &Path) {
        let outermost = self.roots.iter().filter(|root| path.starts_with(root));
        let Some(outermost) = outermost.min_by_key(|root| root.components().count()).cloned()
        else {
            return;
        };
        for dir in path.ancestors().skip(1).take_while(|it| it.starts_with(&outermost)) {
            self.mount(dir.to_owned(), Kind::Writable);
        }
    }

    /// Keeps a path below a writable root as it is, or from coming into being. A path that was named
    /// as a root is left alone: whoever names it means it.
    fn protect(&mut self, path: &Path, named: &[PathBuf], depth: u32) {
        let Some(root) = self.root_of(path) else { return };
        let Ok(below) = path.strip_prefix(&root) else { return };
        if below.as_os_str().is_empty() || named.iter().any(|it| it == path) || depth > 8 {
            return;
        }
        let mut dir = root;
        let mut components = below.components().peekable();
        while let Some(component) = components.next() {
            let here = dir.join(component);
            let meta = here.symlink_metadata();
            let is_last = components.peek().is_none();
            let stays = is_last || meta.as_ref().map_or(true, |it| !it.is_dir());
            if stays {
                self.guard(&dir, component);
            }
            match meta {
                Ok(meta) if meta.is_symlink() => {
                    self.guards_removal = true;
                    let rest: PathBuf = components.collect();
                    // Also where it leads when nothing is there: what came into being there would
                    // come into being here.
                    if let Ok(target) = here.read_link() {
                        let target = nearly_real(&dir.join(target));
                        self.protect(&target.join(rest), named, depth + 1);
                    }
                    return;
                }
                Ok(_) if is_last => {
                    self.pin_ancestors(&here);
                    self.mount(here, Kind::ReadOnly);
                    return;
                }
                Ok(meta) if meta.is_dir() => dir = here,
                // Missing, or a file where a directory would have to be: the guard is all there is.
                _ => {
                    self.pin_ancestors(&here);
                    return;
                }
            }
        }
    }

    fn guard(&mut self, dir: &Path, name: Component<'_>) {
        let name = folded(name.as_os_str());
        let names = self.guards.entry(dir.to_owned()).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    /// The `.git` of a worktree is a file that names the real one, which may lie in a root too.
    fn protect_repository(&mut self, root: &Path, named: &[PathBuf]) {
        let Some(repository) = Repository::named_in(root) else { return };
        self.protect(&nearly_real(&repository.common), named, 0);
        self.protect(&nearly_real(&repository.own), named, 0);
    }

    fn hide(&mut self, path: &Path) -> Result<(), Refusal> {
        let Ok(path) = path.canonicalize() else { return Ok(()) };
        if let Some(root) = self.roots.iter().find(|root| root.starts_with(&path)) {
            return Err(Refusal::policy(format!(
                "the writable root {} lies in {}, which is to be hidden; choose one of them",
                root.display(),
                path.display()
            )));
        }
        // What is mounted below it would have no place to be.
        self.mounts.retain(|(mounted, _)| !mounted.starts_with(&path));
        self.guards.retain(|dir, _| !dir.starts_with(&path));
        self.mount(path, Kind::Hidden);
        Ok(())
    }
}

fn real_root(root: &Path) -> Result<PathBuf, Refusal> {
    let refuse = |why: &str| Refusal::policy(format!("the writable root {} {why}", root.display()));
    let real = root
        .canonicalize()
        .map_err(|err| refuse(&format!("cannot be used ({err}); make the directory first")))?;
    if !real.is_dir() {
        return Err(refuse("is not a directory; name the directory it lies in"));
    }
    if real == Path::new("/") {
        return Err(refuse("is everything; ask for full access if that is meant"));
    }
    if ["/dev", "/proc", "/sys"].iter().any(|system| real.starts_with(system)) {
        return Err(refuse("belongs to the system; choose another directory"));
    }
    Ok(real)
}
