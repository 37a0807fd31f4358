//! Everything that this thread logs.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::filter::LevelFilter;

/// Everything that this thread logs, as long as it is there.
pub(crate) struct Log {
    kept: Kept,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn start() -> Self {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .with_max_level(LevelFilter::TRACE)
            .finish();
        Self { kept, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
