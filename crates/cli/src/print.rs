//! Writing to the standard output.

use std::io::{self, BufWriter, StdoutLock, Write};

use crate::error::Error;

/// Prints a text.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|err| Error::output(&err))
}

/// The standard output for a lot of small writes.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}

/// Tells the user something on the error output.
pub(crate) fn tell(text: &str) {
    // Nobody is left to be told when this fails.
    io::stderr().write_all(format!("{text}\n").as_bytes()).ok();
}
