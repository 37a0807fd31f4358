//! What a client of a TCP listener has to know.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

#[cfg(test)]
mod tests;

/// How many random bytes a token has.
const BYTES: usize = 32;

/// The shortest token that is taken from a file.
const SHORTEST: usize = 32;

/// A secret that clients must show. It is shown to nobody by mistake.
#[derive(Clone)]
pub struct Token(String);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file could not be read or made.
    #[error("cannot use the token file {0}")]
    File(String, #[source] io::Error),
    /// The file is open to others.
    #[error("others can read the token file {0}; close it with: chmod 600 {0}")]
    Open(String),
    /// The token is too short.
    #[error(
        "the token in {0} is shorter than {SHORTEST} characters; delete the file for a new one"
    )]
    Short(String),
    /// There is no randomness.
    #[error("cannot make a token")]
    Random(#[source] io::Error),
}

impl Token {
    /// A new one of 256 random bits.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn random() -> Result<Self, Error> {
        let bytes: [u8; BYTES] = random_bytes().map_err(Error::Random)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The one in a file; a file that is not there is made with a new one, for its owner alone.
    ///
    /// # Errors
    /// When the file cannot be used, or should not be.
    pub fn in_file(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let failed = |source| Error::File(name.clone(), source);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => {
                let token = Self::random()?;
                file.write_all(format!("{}\n", token.0).as_bytes()).map_err(failed)?;
                return Ok(token);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        let file = std::fs::File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
            return Err(Error::Open(name));
        }
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text).map_err(failed)?;
        let token = text.trim();
        if token.len() < SHORTEST {
            return Err(Error::Short(name));
        }
        Ok(Self(token.to_owned()))
    }

    /// The token itself, for whoever may have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is it. Takes as long for a nearly right one as for any other.
    pub fn is(&self, shown: &str) -> bool {
        let (ours, theirs) = (Sha256::digest(self.0.as_bytes()), Sha256::digest(shown.as_bytes()));
        ours.iter().zip(theirs.iter()).fold(0, |diff, (one, other)| diff | (one ^ other)) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Bytes that nobody can guess.
///
/// # Errors
/// When the system gives none.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
