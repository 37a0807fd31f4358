//! Waiting for another process to be done with a conversation.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use tieline_event::ConversationKey;
use tieline_front::sanitize::one_line;
use tieline_store::Store;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::error::Error;
use crate::exit::Exit;
use crate::print::tell;
use crate::run::{runtime, width};

/// How often the holder is looked for.
const POLL: Duration = Duration::from_millis(100);

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Nobody holds the conversation any more.
    Free,
    /// The user does not want to wait any longer.
    Interrupted,
}

/// Waits until no other process holds a conversation.
pub(crate) fn wait(store: &Store, key: &ConversationKey) -> Result<Waited, Error> {
    if store.holder(key)?.is_none() {
        return Ok(Waited::Free);
    }
    let cannot = |err: io::Error| Error::new(Exit::Failed, format!("cannot wait: {err}"));
    runtime()?.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
        let mut line = Line::new();
        // As long as another turn takes.
        while let Some(owner) = store.holder(key)? {
            line.show(&format!("{key} is held by {owner}; waiting, Ctrl-C ends the wait"));
            tokio::select! {
                () = sleep(POLL) => {}
                _ = interrupt.recv() => return Ok(line.interrupted()),
                _ = terminate.recv() => return Ok(line.interrupted()),
            }
        }
        line.erase();
        Ok(Waited::Free)
    })
}

/// What is waited for, on stderr: one line that counts on a terminal, else one line for each holder.
struct Line {
    is_live: bool,
    began: Instant,
    shown: String,
}

impl Line {
    fn new() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            is_live: io::stderr().is_terminal() && !is_dumb,
            began: Instant::now(),
            shown: String::new(),
        }
    }

    fn show(&mut self, text: &str) {
        let mut text = format!("tieline: {}", one_line(text));
        if self.is_live {
            let seconds = format!(" · {} s", self.began.elapsed().as_secs());
            let room = width().saturating_sub(seconds.chars().count() + 1);
            text = text.chars().take(room).chain(seconds.chars()).collect();
        }
        if text == self.shown {
            return;
        }
        match self.is_live {
            true => write(&format!("\r\u{1b}[2K{text}")),
            false => tell(&text),
        }
        self.shown = text;
    }

    fn erase(&self) {
        if self.is_live {
            write("\r\u{1b}[2K");
        }
    }

    fn interrupted(&self) -> Waited {
        self.erase();
        tell("tieline: no longer waiting; nothing was said to the agent");
        Waited::Interrupted
    }
}

fn write(text: &str) {
    // Nobody is left to be told when this fails.
    io::stderr().write_all(text.as_bytes()).ok();
}
