//! A machine that has other things to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Loops that take all the time they get, until this is dropped.
pub(crate) struct Loops {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Loops {
    pub(crate) fn start(n: u32) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let start = |_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..n).map(start).collect();
        Self { is_over, threads }
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A loop cannot fail.
            drop(thread.join());
        }
    }
}
