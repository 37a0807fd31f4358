//! Which version a program is, asked once.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tieline_event::{Failure, FailureCode};
use tieline_proc::{Env, RunLimits, Spec};

/// How long `--version` may take. A program on a cold disk is slow.
const LIMITS: RunLimits = RunLimits { timeout: Duration::from_secs(20), max_output: 16 * 1024 };

/// A version of Codex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl Version {
    /// The first version in a text such as `codex-cli 0.166.0`.
    pub fn find(text: &str) -> Option<Self> {
        text.split(|c: char| c.is_whitespace() || c == '/').find_map(|word| {
            // `0.150.0-alpha.2` counts as what it leads to.
            let plain = word.split(['-', '+']).next()?;
            let mut numbers = plain.trim_start_matches('v').split('.').map(str::parse);
            match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
                (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => {
                    Some(Self(major, minor, patch))
                }
                _ => None,
            }
        })
    }
}

/// What tells that a program is still the one that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
    /// When it was asked, in days since 1970.
    day: u64,
}

impl Stamp {
    fn is_still(&self, now: &Self) -> bool {
        Self { day: now.day, ..self.clone() } == *now && now.day.abs_diff(self.day) <= 1
    }
}

/// What is known about versions of programs, by path; in a file it outlives the process.
#[derive(Debug, Default)]
pub struct Versions {
    file: Option<PathBuf>,
    known: Mutex<Option<BTreeMap<PathBuf, (Stamp, Version)>>>,
}

impl Versions {
    /// Remembers in this file, which may not exist yet.
    pub fn in_file(file: PathBuf) -> Self {
        Self { file: Some(file), known: Mutex::default() }
    }

    /// The version of a program, asked anew: behind a shim the file stays when the program changes.
    ///
    /// # Errors
    /// When it cannot be started or does not tell a version.
    pub async fn again(&self, program: &Path, env: &Env) -> Result<Version, Failure> {
        let version = ask(program, env).await?;
        if let Some(stamp) = stamp(program) {
            self.remember(program, stamp, version);
        }
        Ok(version)
    }

    /// The version of a program; it is started with `--version` the first time, and after a day.
    ///
    /// # Errors
    /// When it cannot be started or does not tell a version.
    pub async fn of(&self, program: &Path, env: &Env) -> Result<Version, Failure> {
        let stamp = stamp(program);
        if let Some(stamp) = &stamp
            && let Some(version) = self.recall(program, stamp)
        {
            return Ok(version);
        }
        self.again(program, env).await
    }

    fn recall(&self, program: &Path, stamp: &Stamp) -> Option<Version> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_with(|| self.read());
        let (known, version) = known.get(program)?;
        known.is_still(stamp).then_some(*version)
    }

    fn read(&self) -> BTreeMap<PathBuf, (Stamp, Version)> {
        // A file that is missing, torn or of another version of ours is as good as empty.
        let bytes = self.file.as_deref().and_then(|file| std::fs::read(file).ok());
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn remember(&self, program: &Path, stamp: Stamp, version: Version) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        known.insert(program.to_owned(), (stamp, version));
        let Some(file) = &self.file else { return };
        let written = serde_json::to_vec(known).map_err(std::io::Error::other).and_then(|json| {
            let spare = file.with_extension(format!("{}.tmp", std::process::id()));
            let mut options = std::fs::OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&spare)?.write_all(&json)?;
            std::fs::rename(&spare, file)
        });
        if let Err(error) = written {
            tracing::debug!(file = %file.display(), %error, "versions are asked again next time");
        }
    }
}

fn stamp(program: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(program).ok()?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let today = since_1970.as_secs() / (24 * 60 * 60);
    Some(Stamp {
        device: meta.dev(),
        inode: meta.ino(),
        size: meta.size(),
        changed: (meta.ctime(), meta.ctime_nsec()),
        day: today,
    })
}

async fn ask(program: &Path, env: &Env) -> Result<Version, Failure> {
    let shown = program.display();
    let failure = |message: String| {
        Failure::new(FailureCode::AgentCannotStart, message)
            .hint("install it again: npm install -g @openai/codex")
    };
    let mut spec = Spec::new(program, "/").arg("--version");
    spec.env = env.clone();
    let output = tieline_proc::run(spec, b"", LIMITS)
        .await
        .map_err(|error| failure(format!("cannot start {shown}: {error}")))?;
    Version::find(&output.stdout.to_text()).ok_or_else(|| {
        failure(format!("{shown} --version tells no version"))
            .detail(output.stderr.to_text().trim())
    })
}

#[test]
fn a_version_is_found_in_what_programs_print() {
    assert_eq!(Version::find("codex-cli 0.166.0\n"), Some(Version(0, 166, 0)));
    assert_eq!(Version::find("codex-cli 0.150.0-alpha.2"), Some(Version(0, 150, 0)));
    assert_eq!(Version::find("probe/0.166.0 (Debian 12.0.0)"), Some(Version(0, 166, 0)));
    assert_eq!(Version::find("WARNING: 12 things"), None);
    assert!(Version(0, 42, 0) < Version(0, 110, 0));
}
