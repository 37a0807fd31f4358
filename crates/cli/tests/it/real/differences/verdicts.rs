//! What each difference means.

use super::Difference;
use super::run::Back;

use Verdict::{Better, Equal, Missing};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Better,
    Equal,
    /// It fails the test.
    Missing,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Better => "better",
            Equal => "equal",
            Missing => "missing",
        }
    }
}

/// A verdict about differences: of one agent or both, of one scenario or all, of one feature.
#[derive(Debug)]
pub(super) struct Row {
    back: Option<Back>,
    scenario: &'static str,
    feature: &'static str,
    pub(super) verdict: Verdict,
    pub(super) why: &'static str,
}

impl Row {
    pub(super) fn is_about(&self, difference: &Difference) -> bool {
        self.back.is_none_or(|back| back == difference.back)
            && (self.scenario == "*" || self.scenario == difference.scenario)
            && is_like(self.feature, &difference.feature)
    }
}

/// Whether a name is of this form, in which one `*` stands for anything.
fn is_like(form: &str, name: &str) -> bool {
    match form.split_once('*') {
        Some((start, end)) => name.starts_with(start) && name.ends_with(end),
        None => form == name,
    }
}

const fn row(
    back: Option<Back>,
    scenario: &'static str,
    feature: &'static str,
    verdict: Verdict,
    why: &'static str,
) -> Row {
    Row { back, scenario, feature, verdict, why }
}

const CLAUDE: Option<Back> = Some(Back::Claude);
const CODEX: Option<Back> = Some(Back::Codex);

/// The first that is about a difference counts.
pub(super) const VERDICTS: &[Row] = &[
    row(
        None,
        "hello",
        "kinds of updates",
        Better,
        "settings are told once the agent is up, so a new session is there at once",
    ),
    row(None, "hello", "capabilities", Equal, "none of these is stable"),
    row(None, "hello", "ways to log in", Equal, "the agent's own login is used"),
    row(CODEX, "hello", "current mode", Equal, "the same policy by tieline's name for it"),
    row(CLAUDE, "hello", "modes", Equal, "the same modes, the most careful first"),
    row(CODEX, "hello", "modes", Equal, "one vocabulary for every agent"),
    row(
        CLAUDE,
        "hello",
        "settings",
        Equal,
        "`/fast` does the same, and ultracode is a word in the prompt",
    ),
    row(CODEX, "hello", "settings", Equal, "`/fast` and the mode plan do the same"),
    row(
        CLAUDE,
        "hello",
        "commands",
        Equal,
        "remote control needs its own terminal; `/status` and `/fresh` are tieline's",
    ),
    row(
        CODEX,
        "hello",
        "commands",
        Equal,
        "logging out is a request of the protocol, and skills are called with a slash",
    ),
    row(None, "*", "broken rules", Better, "a status never goes back"),
    row(CODEX, "*", "notices", Better, "what the agent warns of and retries is told"),
    row(
        CLAUDE,
        "plan mode",
        "permission 1",
        Equal,
        "never asking again is chosen in the menu, not in passing",
    ),
    row(None, "*", "permission *", Better, "every answer the agent understands, and one to stop"),
    row(
        CLAUDE,
        "failing command",
        "tool 1 printed",
        Better,
        "the exit code is told as one, not as output",
    ),
    row(CLAUDE, "read", "tool 1 places", Equal, "a whole file is read"),
    row(CLAUDE, "read", "tool 1 content", Equal, "the same, and the number of the empty last line"),
    row(
        CODEX,
        "read",
        "tool 1 *",
        Equal,
        "what was read is shown in a terminal, as the command printed it",
    ),
    row(CODEX, "patch", "tool * title", Better, "the title names the file and what becomes of it"),
    row(CODEX, "patch", "tool 3 kind", Better, "a deletion is one"),
    row(CLAUDE, "patch", "tool 2 places", Better, "the line that changed, not one above it"),
    row(CODEX, "patch", "tool 2 places", Better, "the line of the change too"),
    row(CLAUDE, "patch", "tool 2 content", Equal, "the same change with the end of its line"),
    row(None, "patch", "tool * input", Equal, "the same form for every agent"),
    row(CLAUDE, "patch", "tool 1 output", Equal, "the diff says it"),
    row(CLAUDE, "patch", "tool 2 output", Equal, "the diff says it"),
    row(CLAUDE, "plan", "plans", Equal, "a step keeps its name while it is done"),
    row(CODEX, "question", "questions", Better, "the form says what is asked"),
    row(CODEX, "question", "order", Better, "the question and its answer stay in the history"),
    row(CODEX, "question", "tool 1 *", Better, "the question and its answer stay in the history"),
    row(
        CLAUDE,
        "question",
        "tool 1 content",
        Equal,
        "the adapter's form has a field for notes too",
    ),
    row(CLAUDE, "plan mode", "tool 1 title", Equal, "the same in other words"),
    row(
        None,
        "*",
        "question * shows",
        Better,
        "all that a yes would do, where and why, with nothing hidden",
    ),
    row(None, "mcp", "tool 1 title", Better, "server and tool in words"),
    row(CODEX, "mcp", "tool 1 kind", Equal, "what a tool of others does is not known"),
    row(CODEX, "mcp", "tool 1 content", Better, "what the tool gave back is shown"),
    row(CODEX, "mcp", "tool 1 input", Equal, "the arguments alone; the rest is in the title"),
    row(
        CLAUDE,
        "sub-agent",
        "thoughts",
        Equal,
        "what a sub-agent says is set apart from the answer",
    ),
    row(CLAUDE, "sub-agent", "order", Equal, "what a sub-agent says is set apart from the answer"),
    row(
        CLAUDE,
        "sub-agent",
        "tool 1 content",
        Better,
        "the sub-agent's answer, not a note for the model",
    ),
    row(CLAUDE, "sub-agent", "tool 2 output", Better, "what a command printed, also for programs"),
    row(None, "web search", "tool 1 title", Equal, "the same in other words"),
    row(CLAUDE, "web search", "tool 1 kind", Better, "a search is one"),
    row(CLAUDE, "web search", "tool 1 content", Equal, "all that was found"),
    row(CLAUDE, "web search", "tool 1 output", Equal, "it is in the content"),
    row(CODEX, "web search", "tool 1 input", Equal, "the query is what was asked"),
    row(CODEX, "failing provider", "turns", Better, "a turn that failed is an error"),
    row(
        None,
        "failing provider",
        "*",
        Better,
        "an error is one, and not put into the agent's mouth",
    ),
    row(CODEX, "cancel", "tool 1 status", Better, "nothing is left running"),
    row(
        None,
        "*",
        "tool 1 output",
        Better,
        "what a command printed and its exit code, also for programs",
    ),
    row(CLAUDE, "patch", "tool 3 output", Better, "what a command printed, also for programs"),
    row(None, "again", "replay is as it was live", Better, "tieline keeps what was shown"),
];
