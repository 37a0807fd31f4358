//! Files for an agent alone, gone with it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many names are tried for the directory before it is given up.
const TRIES: u32 = 1000;

/// Files in a directory that nobody else can look into. Dropping this removes them.
#[derive(Debug)]
pub struct PrivateFiles {
    directory: PathBuf,
    paths: Vec<PathBuf>,
}

impl PrivateFiles {
    /// Writes files of these plain names, where temporary files are. Blocks.
    ///
    /// # Errors
    /// When they cannot be written; then none is left behind.
    pub fn write(files: &[(String, Vec<u8>)]) -> io::Result<Self> {
        let mut written =
            Self { directory: new_directory(&std::env::temp_dir())?, paths: Vec::new() };
        for (name, bytes) in files {
            let path = written.directory.join(name);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).open(&path)?.write_all(bytes)?;
            written.paths.push(path);
        }
        Ok(written)
    }

    /// Where they are, in order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

impl Drop for PrivateFiles {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.directory) {
            let directory = self.directory.display();
            tracing::warn!(%directory, %error, "temporary files stay behind");
        }
    }
}

/// A directory of ours. A name that somebody else took first is not used.
fn new_directory(parent: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut taken = None;
    for _ in 0..TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tieline-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(taken.unwrap_or_else(|| io::Error::other("no name is free")))
}

#[test]
fn files_are_for_their_owner_alone_and_go_with_their_handle() {
    use std::os::unix::fs::PermissionsExt;
    let files = [("1.png".to_owned(), b"one".to_vec()), ("2.jpg".to_owned(), b"two".to_vec())];
    let written = PrivateFiles::write(&files).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(std::fs::read(&written.paths()[1]).unwrap(), b"two");
    assert_eq!((mode(&written.paths()[0]), mode(&written.directory)), (0o600, 0o700));
    let directory = written.directory.clone();
    drop(written);
    assert!(!directory.exists());
    // What was written before a failure is gone, too.
    let twice = [("1".to_owned(), Vec::new()), ("1".to_owned(), Vec::new())];
    assert!(PrivateFiles::write(&twice).is_err());
}
