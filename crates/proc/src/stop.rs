//! Being stopped by the terminal.

use std::io::Read;
use std::sync::Once;
use std::{io, thread};

use crate::sys;

static ONCE: Once = Once::new();

/// From now on a stop that the terminal asks for (Ctrl-Z, reading from it in the background) happens
/// only after `prepare` has returned, and what it returned is dropped when the process goes on. For
/// what nobody should wait for while we stand still. Only the first call counts. `SIGSTOP` cannot be
/// caught and stops at once.
///
/// # Errors
/// When the signals cannot be caught. Then they stop at once, as without this.
pub fn before_stop<G>(prepare: impl Fn() -> G + Send + 'static) -> io::Result<()> {
    let mut result = Ok(());
    ONCE.call_once(|| result = begin(prepare));
    result
}

fn begin<G>(prepare: impl Fn() -> G + Send + 'static) -> io::Result<()> {
    let (mut signals, told) = io::pipe()?;
    rustix::io::ioctl_fionbio(&told, true)?;
    thread::Builder::new().name("stops".into()).spawn(move || {
        let mut signal = [0];
        while signals.read_exact(&mut signal).is_ok() {
            let prepared = prepare();
            if let Err(err) = sys::stop_as_by(i32::from(signal[0])) {
                tracing::warn!(%err, "the next stop happens at once");
            }
            drop(prepared);
        }
    })?;
    sys::catch_stops(told.into())
}
