//! stdout, shared by the player and the thread that answers control requests.

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::process;
use std::sync::{Mutex, MutexGuard};

use crate::sys;

/// Whole lines go out under one lock, so two writers never mix.
pub(crate) struct Output {
    file: Mutex<Option<File>>,
}

impl Output {
    pub(crate) fn of_process() -> Output {
        // The standard handle buffers by line; a flood wants plain writes.
        let stdout = io::stdout().as_fd().try_clone_to_owned().expect("stdout is open");
        Output { file: Mutex::new(Some(stdout.into())) }
    }

    pub(crate) fn line(&self, line: &str) {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.raw(&bytes);
    }

    pub(crate) fn raw(&self, bytes: &[u8]) {
        write_or_exit(&mut self.lock(), bytes);
    }

    /// `head`, `n` times the letter x and `tail`, without holding them in memory.
    pub(crate) fn filled(&self, head: &str, n: usize, tail: &str) {
        static FILL: [u8; 65536] = [b'x'; 65536];
        let mut file = self.lock();
        write_or_exit(&mut file, head.as_bytes());
        let mut left = n;
        while left > 0 {
            let part = left.min(FILL.len());
            write_or_exit(&mut file, FILL.get(..part).unwrap_or(&FILL));
            left -= part;
        }
        write_or_exit(&mut file, tail.as_bytes());
    }

    /// Writes `bytes` and never anything again; the pipe stays open.
    pub(crate) fn last_words(&self, bytes: &[u8]) {
        let mut file = self.lock();
        write_or_exit(&mut file, bytes);
        if let Some(file) = file.take() {
            // Leaked on purpose: closing it would end the stream.
            mem::forget(file);
        }
    }

    pub(crate) fn close(&self) {
        *self.lock() = None;
        sys::close(1);
    }

    /// The descriptors of the pipes that a descendant would inherit.
    pub(crate) fn descriptors(&self) -> Vec<i32> {
        let own = self.lock().as_ref().map(AsRawFd::as_raw_fd);
        own.into_iter().chain([0, 1, 2]).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Option<File>> {
        self.file.lock().expect("no holder of this lock panics")
    }
}

/// Writes to stderr; a reader that is gone does not matter.
pub(crate) fn stderr(bytes: &[u8]) {
    io::stderr().write_all(bytes).ok();
}

fn write_or_exit(file: &mut Option<File>, bytes: &[u8]) {
    let Some(file) = file else { return };
    // Nobody reads any more, so there is nothing left to fake.
    if file.write_all(bytes).is_err() {
        process::exit(1);
    }
}
