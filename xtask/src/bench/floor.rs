//! The floor of the flood: frames lines, parses each once, writes each once, and does nothing else.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use anyhow::bail;
use tieline_wire::ndjson::{self, Framer, Line};

use super::driver::Driver;

/// What the product reads at once, too.
const CHUNK: usize = 64 * 1024;

pub(super) fn main(driver: Driver) -> anyhow::Result<()> {
    // The standard handles buffer; this wants plain reads and writes.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut framer = Framer::default();
    let mut buffer = vec![0; CHUNK];
    let mut written = Vec::with_capacity(CHUNK * 2);
    let mut n_unread = 0_u64;
    loop {
        let n = stdin.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        framer.feed(buffer.get(..n).unwrap_or_default(), |line| {
            if let Line::Whole(line) = line {
                n_unread += u64::from(!driver.parses(ndjson::content(&line)));
                written.extend_from_slice(&line);
            }
        });
        // One write for all lines of a read: a floor that wrote line by line would be a low one.
        stdout.write_all(&written)?;
        written.clear();
    }
    if n_unread > 0 {
        bail!("{n_unread} lines were not understood");
    }
    Ok(())
}
