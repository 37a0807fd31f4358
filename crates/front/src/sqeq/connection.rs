//! Reading a client's lines.

use tieline_hub::Hub;
use tieline_wire::ndjson::{self, Framer, Line};
use tieline_wire::sqeq::id_of_submission;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::order::{Incoming, Order};
use super::out::Out;
use super::session::{End, Session};
use super::{Error, Options, QUEUE};
use crate::outbox::Outbox;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// Serves one client until it is done, it hangs up, or a signal comes.
pub(super) async fn serve(
    hub: Hub,
    options: Options,
    input: impl AsyncRead + Unpin,
    outbox: Outbox,
    hang_up: impl Future<Output = ()>,
) -> Result<(), Error> {
    let listen = |kind| signal(kind).map_err(Error::io("listen to signals"));
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
            () = hang_up => {}
        }
    };
    converse(hub, options, input, outbox, End::Lingers, stop).await
}

/// Serves one client until it is done, or something else stops it.
pub(super) async fn converse(
    hub: Hub,
    options: Options,
    mut input: impl AsyncRead + Unpin,
    outbox: Outbox,
    end: End,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let (orders, inbox) = mpsc::channel(QUEUE);
    let mut framer = Framer::new(options.line);
    let session = Session::new(hub, options, inbox, Out::lines(outbox.clone()), end);
    let gone = outbox.clone();
    let stop = async move {
        tokio::select! {
            () = stop => {}
            () = gone.gone() => {}
        }
    };
    let session = session.run(stop);
    let reading = async {
        let mut buffer = vec![0; CHUNK];
        loop {
            outbox.room_to_read().await;
            let n = input.read(&mut buffer).await.map_err(Error::io("read"))?;
            let mut lines = Vec::new();
            match n {
                0 => framer.finish(|line| lines.extend(read(line))),
                n => {
                    framer.feed(buffer.get(..n).unwrap_or_default(), |line| {
                        lines.extend(read(line));
                    });
                }
            }
            for incoming in lines {
                // A session that has ended takes no more.
                if orders.send(incoming).await.is_err() {
                    return Ok(());
                }
            }
            if n == 0 {
                return Ok(());
            }
        }
    };
    tokio::pin!(session);
    let read = tokio::select! {
        () = &mut session => return Ok(()),
        read = reading => read,
    };
    // Whatever was read is the last; the session ends in its own time.
    drop(orders);
    session.await;
    read
}

/// What a line asks for; a blank one nothing.
pub(super) fn read(line: Line<'_>) -> Option<Incoming> {
    let line = match line {
        Line::Whole(line) | Line::Unfinished(line) => line,
        Line::Oversized { bytes, .. } => {
            return Some(unreadable(format!("a line of {bytes} bytes is too long")));
        }
    };
    let line = ndjson::content(&line);
    if line.is_empty() {
        return None;
    }
    Some(Incoming::of_line(line).unwrap_or_else(|error| match id_of_submission(line) {
        Some(id) => {
            let why = format!("the submission is not understood, and nothing was done: {error}");
            Incoming { id, order: Order::Refused(why) }
        }
        None => unreadable(format!("a line is no submission: {error}")),
    }))
}

fn unreadable(why: String) -> Incoming {
    Incoming { id: String::new(), order: Order::Nothing(why) }
}
