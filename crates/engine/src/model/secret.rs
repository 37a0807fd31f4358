//! Keys: where they come from, and that they go nowhere else.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// A key is shorter than this.
const LIMIT: u64 = 64 * 1024;

/// Text that is not to be seen: `Debug` shows `***`, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Hides a text.
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The text, for those who have to send it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text without this secret in it.
    pub(super) fn scrub(&self, text: String) -> String {
        // What is shorter protects nothing and may be a word of the sentence.
        if self.0.len() < 6 || !text.contains(&*self.0) {
            return text;
        }
        text.replace(&*self.0, "***")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a provider's key is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Key {
    /// It needs none.
    #[default]
    None,
    /// In an environment variable.
    Env(String),
    /// In a file that only its owner can read.
    File(PathBuf),
    /// Here.
    Given(Secret),
}

impl Key {
    /// Fetches it; none if none is needed.
    ///
    /// # Errors
    /// When it is not there, or others can read it.
    pub fn fetch(
        &self,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Secret>, KeyTrouble> {
        match self {
            Self::None => Ok(None),
            Self::Given(secret) => Ok(Some(secret.clone())),
            Self::Env(name) => {
                let value = env(name).ok_or_else(|| KeyTrouble::Unset { name: name.clone() })?;
                let value = value.to_str().map(str::trim).unwrap_or_default();
                if value.is_empty() {
                    return Err(KeyTrouble::Unset { name: name.clone() });
                }
                usable(value).ok_or_else(|| KeyTrouble::NoKey { place: name.clone() }).map(Some)
            }
            Self::File(path) => from_file(path).map(Some),
        }
    }
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTrouble {
    /// The variable is not set, or is empty.
    #[error("{name} is not set")]
    Unset {
        /// Which.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read the key in {}: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Others can read the file.
    #[error("the key in {} can be read by others (mode {mode:04o})", path.display())]
    Exposed {
        /// Which.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file belongs to somebody else.
    #[error("the key in {} belongs to the user {owner}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// Whose.
        owner: u32,
    },
    /// What is there is no key.
    #[error("what is in {place} is no key: one line of printable ASCII")]
    NoKey {
        /// Where.
        place: String,
    },
}

impl KeyTrouble {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Unset { name } => format!(
                "set {name} to the provider's key, or write the key to a file of mode 0600 and \
                 name it in the configuration"
            ),
            Self::Unreadable { path, .. } => {
                format!("write the key to {} and run `chmod 600` on it", path.display())
            }
            Self::Exposed { path, .. } => format!("run `chmod 600 {}`", path.display()),
            Self::Foreign { .. } => "use a file of your own".to_owned(),
            Self::NoKey { place } => format!("write the key, and nothing else, to {place}"),
        }
    }
}

fn from_file(path: &Path) -> Result<Secret, KeyTrouble> {
    let unreadable = |error: std::io::Error| KeyTrouble::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let no_key = || KeyTrouble::NoKey { place: path.display().to_string() };
    // A pipe would make us wait, so the kind is looked at before it is opened; owner and mode are
    // those of what was opened.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(no_key());
    }
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyTrouble::Exposed { path: path.to_owned(), mode });
    }
    let owner = metadata.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return Err(KeyTrouble::Foreign { path: path.to_owned(), owner });
    }
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| no_key())?;
    usable(text.trim()).ok_or_else(no_key)
}

/// A key that can stand in a header.
fn usable(text: &str) -> Option<Secret> {
    let is_key = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_key.then(|| Secret::new(text))
}
