//! Waiting for the disk, with a runtime or without.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tokio::sync::oneshot;

use crate::error::{Error, Rejected};

/// A batch on its way to the disk. It gets there whether or not anybody waits for it; this resolves
/// once it is there, after the `fsync`.
#[derive(Debug)]
#[must_use = "an event may be shown only after its commit"]
pub struct Commit {
    reply: oneshot::Receiver<Result<(), Rejected>>,
}

impl Commit {
    pub(crate) fn channel() -> (oneshot::Sender<Result<(), Rejected>>, Self) {
        let (tx, reply) = oneshot::channel();
        (tx, Self { reply })
    }

    /// Blocks the thread until the batch is on disk. Not for use in async code.
    ///
    /// # Errors
    /// As the future: the batch comes back with the reason.
    pub fn wait(self) -> Result<(), Rejected> {
        block_on(self)
    }
}

impl Future for Commit {
    type Output = Result<(), Rejected>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.reply)
            .poll(cx)
            .map(|reply| reply.unwrap_or(Err(Rejected { error: Error::Closed, batch: None })))
    }
}

/// Runs a future that needs no runtime, on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
