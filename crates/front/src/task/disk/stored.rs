//! The form in which a baseline is kept: each row says only how it differs from the one before.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::walk::Digest;
use super::{Baseline, Stamp};

#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    taken: i64,
    in_git: bool,
    is_cut: bool,
    n_skipped: u64,
    files: Vec<Row>,
}

/// How many bytes of the path before are kept, what follows them, the size, and how far time and
/// inode are from those before.
#[derive(Serialize, Deserialize)]
struct Row(usize, Rest, u64, i64, i64, Option<Digest>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Rest {
    Text(String),
    /// A name that is no text.
    Bytes(Vec<u8>),
}

impl From<Baseline> for Stored {
    fn from(baseline: Baseline) -> Stored {
        let Baseline { taken, in_git, is_cut, n_skipped, files } = baseline;
        let mut before = (Vec::new(), 0i64, 0u64);
        let row = |(path, stamp): (PathBuf, Stamp)| {
            let path = path.into_os_string().into_vec();
            let n_kept = n_common(&before.0, &path);
            let rest = path.get(n_kept..).unwrap_or_default().to_vec();
            let rest = String::from_utf8(rest)
                .map_or_else(|err| Rest::Bytes(err.into_bytes()), Rest::Text);
            let mtime = stamp.mtime.wrapping_sub(before.1);
            let inode = stamp.inode.wrapping_sub(before.2).cast_signed();
            before = (path, stamp.mtime, stamp.inode);
            Row(n_kept, rest, stamp.size, mtime, inode, stamp.digest)
        };
        Stored { taken, in_git, is_cut, n_skipped, files: files.into_iter().map(row).collect() }
    }
}

impl TryFrom<Stored> for Baseline {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Baseline, &'static str> {
        let mut files = BTreeMap::new();
        let mut path = Vec::new();
        let (mut last_mtime, mut last_inode) = (0i64, 0u64);
        for Row(n_kept, rest, size, mtime, inode, digest) in stored.files {
            if n_kept > path.len() {
                return Err("a path begins with more than the one before has");
            }
            path.truncate(n_kept);
            match rest {
                Rest::Text(text) => path.extend_from_slice(text.as_bytes()),
                Rest::Bytes(bytes) => path.extend(bytes),
            }
            last_mtime = last_mtime.wrapping_add(mtime);
            last_inode = last_inode.wrapping_add(inode.cast_unsigned());
            let stamp = Stamp { size, mtime: last_mtime, inode: last_inode, digest };
            files.insert(PathBuf::from(OsString::from_vec(path.clone())), stamp);
        }
        let Stored { taken, in_git, is_cut, n_skipped, .. } = stored;
        Ok(Baseline { taken, in_git, is_cut, n_skipped, files })
    }
}

/// How many bytes two paths begin with in common. What follows in the second is text if the whole
/// is: no character is torn.
fn n_common(before: &[u8], path: &[u8]) -> usize {
    let mut n = before.iter().zip(path).take_while(|(a, b)| a == b).count();
    while n > 0 && path.get(n).is_some_and(|byte| byte & 0xc0 == 0x80) {
        n -= 1;
    }
    n
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD_NO_PAD.decode(text).map_err(de::Error::custom)?;
        bytes.try_into().map(Digest).map_err(|_| de::Error::custom("a digest has 16 bytes"))
    }
}
