//! A reader that tells when there is nothing more to read: whoever waits on behalf of a client that
//! is gone can stop.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// Becomes true when the client hangs up.
pub(super) type Gone = watch::Receiver<bool>;

pub(super) struct Watched<R> {
    reader: R,
    gone: watch::Sender<bool>,
}

pub(super) fn watched<R>(reader: R) -> (Watched<R>, Gone) {
    let (gone, watch) = watch::channel(false);
    (Watched { reader, gone }, watch)
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.reader).poll_read(ctx, buffer);
        let is_over = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_over {
            this.gone.send_replace(true);
        }
        read
    }
}
