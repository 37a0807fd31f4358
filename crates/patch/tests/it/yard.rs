//! A workspace with an outside.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tieline_patch::{Applied, Error, Options, Roots, apply, parse};

/// Tests need no disk that survives a power cut.
pub(crate) const QUICK: Options = Options { n_context: 1, is_synced: false, largest_file: 1 << 20 };

pub(crate) struct Yard {
    dir: TempDir,
}

/// What is at a path: a directory, a link and where to, or a file with its mode and content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    Directory,
    Link(PathBuf),
    File(u32, Vec<u8>),
}

impl Yard {
    /// `work` is the root, and `outside` beside it has a secret.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("tieline-patch-").tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/secret"), "hunter2\n").unwrap();
        Self { dir }
    }

    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::here(&self.work()).unwrap()
    }

    /// Applies a patch whose frame is left out.
    pub(crate) fn apply(&self, hunks: &str) -> Result<Applied, Error> {
        let text = format!("*** Begin Patch\n{hunks}\n*** End Patch\n");
        apply(&parse(&text)?, &self.roots(), QUICK)
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Everything, also what is outside.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, Thing> {
        things(self.dir.path())
    }
}

/// Everything below a directory.
pub(crate) fn things(base: &Path) -> BTreeMap<PathBuf, Thing> {
    let mut all = BTreeMap::new();
    let mut open = vec![base.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let thing = if metadata.is_dir() {
                open.push(path.clone());
                Thing::Directory
            } else if metadata.is_symlink() {
                Thing::Link(fs::read_link(&path).unwrap())
            } else {
                let mode = metadata.permissions().mode() & 0o7777;
                Thing::File(mode, fs::read(&path).unwrap())
            };
            all.insert(path.strip_prefix(base).unwrap().to_owned(), thing);
        }
    }
    all
}
