//! What was written last and how the next thing joins it: blank lines, the live line, colours.

use tieline_event::ItemId;

use super::width::fit;

/// How to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Where things go.
    pub layout: Layout,
    /// Whose messages are shown.
    pub voices: Voices,
    /// Colours of our own. The agent's are always taken out.
    pub color: bool,
    /// A last line that is overwritten as time goes by.
    pub live: bool,
    /// Columns of the terminal.
    pub width: usize,
}

/// Where things go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Everything on one screen, in order.
    Together,
    /// The agent's answer to the output, everything else to the error output.
    Apart,
}

/// Whose messages are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voices {
    /// The agent's; the user knows what they said.
    Agent,
    /// Both, with how each turn ended: a transcript.
    Both,
}

impl Look {
    /// For a pipe: nothing but text.
    pub fn plain() -> Self {
        Self { layout: Layout::Apart, voices: Voices::Agent, color: false, live: false, width: 100 }
    }
}

/// How a line looks, where there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Dim,
    Bold,
    Good,
    Bad,
    Warn,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "\x1b[2m",
            Self::Bold => "\x1b[1m",
            Self::Good => "\x1b[32m",
            Self::Bad => "\x1b[31m",
            Self::Warn => "\x1b[33m",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Last {
    Nothing,
    Text(ItemId),
    Line,
}

/// Two growing texts and what stands at their ends.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) look: Look,
    out: String,
    err: String,
    /// What stands last on the screen, or last in the output when the two are apart.
    last: Last,
    /// The last line of the output has no newline yet.
    is_open: bool,
    /// A live line stands at the end of the screen.
    has_live: bool,
}

impl Page {
    pub(crate) fn new(look: Look) -> Self {
        Self {
            look,
            out: String::new(),
            err: String::new(),
            last: Last::Nothing,
            is_open: false,
            has_live: false,
        }
    }

    /// Moves what was written to the ends of these.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>, err: &mut Vec<u8>) {
        out.extend_from_slice(self.out.as_bytes());
        err.extend_from_slice(self.err.as_bytes());
        self.out.clear();
        self.err.clear();
    }

    /// Text of a message, as it comes. It has been sanitized.
    pub(crate) fn text(&mut self, item: &ItemId, text: &str) {
        if text.is_empty() {
            return;
        }
        self.erase_live();
        let goes_on = matches!(&self.last, Last::Text(last) if last == item);
        if !goes_on {
            self.close_text();
            if self.last != Last::Nothing {
                self.out.push('\n');
            }
            self.last = Last::Text(item.clone());
        }
        self.out.push_str(text);
        self.is_open = !text.ends_with('\n');
    }

    /// Ends the line of a message that is over or makes place for something else.
    pub(crate) fn close_text(&mut self) {
        if self.is_open {
            self.erase_live();
            self.out.push('\n');
            self.is_open = false;
        }
    }

    /// A line of ours. It has been sanitized; newlines within it are indented too.
    pub(crate) fn line(&mut self, depth: usize, style: Style, text: &str) {
        self.erase_live();
        if self.look.layout == Layout::Together {
            self.close_text();
            if matches!(self.last, Last::Text(_)) {
                self.out.push('\n');
            }
            self.last = Last::Line;
        }
        let color = self.look.color && style != Style::Plain;
        let sink = match self.look.layout {
            Layout::Together => &mut self.out,
            Layout::Apart => &mut self.err,
        };
        for line in text.split('\n') {
            if !line.is_empty() {
                (0..depth).for_each(|_| sink.push_str("  "));
            }
            if color {
                sink.push_str(style.code());
                sink.push_str(line);
                sink.push_str("\x1b[0m");
            } else {
                sink.push_str(line);
            }
            sink.push('\n');
        }
    }

    /// Shows or replaces the live line. Nothing happens in the middle of a line of text.
    pub(crate) fn live(&mut self, text: &str) {
        if !self.look.live || self.is_open {
            return;
        }
        self.erase_live();
        let text = fit(text, self.look.width.saturating_sub(1));
        if self.look.color {
            self.out.push_str("\x1b[2m");
            self.out.push_str(&text);
            self.out.push_str("\x1b[0m");
        } else {
            self.out.push_str(&text);
        }
        self.has_live = true;
    }

    pub(crate) fn erase_live(&mut self) {
        if self.has_live {
            self.out.push_str("\r\x1b[2K");
            self.has_live = false;
        }
    }

    /// Columns that are left for a line at this depth.
    pub(crate) fn room(&self, depth: usize) -> usize {
        self.look.width.saturating_sub(depth * 2).max(20)
    }
}
