//! The command line, as tolerant as the real ones' callers need.

/// Which agent this process looks like, and by which of its commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Claude Code.
    #[default]
    Claude,
    /// Any agent of the Agent Client Protocol.
    Acp,
    /// `codex app-server`.
    App,
    /// `codex exec`.
    Exec,
    /// `codex proto`.
    Proto,
}

/// What the fake takes from its arguments; it accepts all others.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) wire: Wire,
    pub(crate) version: bool,
    pub(crate) streaming_input: bool,
    pub(crate) partial: bool,
    pub(crate) replay: bool,
    pub(crate) session_id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) permission_mode: Option<String>,
    /// The last argument that is no flag and no flag's value.
    pub(crate) prompt: String,
}

/// Flags whose value may stand in the next argument.
const WITH_VALUE: &[&str] = &[
    "--add-dir",
    "--agents",
    "--allowedTools",
    "--append-system-prompt",
    "--betas",
    "--disallowedTools",
    "--effort",
    "--fallback-model",
    "--input-format",
    "--json-schema",
    "--max-budget-usd",
    "--max-thinking-tokens",
    "--max-turns",
    "--mcp-config",
    "--model",
    "--output-format",
    "--permission-mode",
    "--permission-prompt-tool",
    "--resume",
    "--sandbox",
    "--session-id",
    "--setting-sources",
    "--settings",
    "--system-prompt",
    "--thinking",
    "--tools",
    "-c",
    "-m",
    "-s",
];

impl Options {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Options {
        let mut options = Options::default();
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            if !argument.starts_with('-') || argument == "-" {
                options.word(argument, &mut arguments);
                continue;
            }
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), value.to_owned()),
                None if WITH_VALUE.contains(&argument.as_str()) => {
                    (argument, arguments.next().unwrap_or_default())
                }
                None => (argument, String::new()),
            };
            options.take(&flag, value);
        }
        options
    }

    fn word(&mut self, word: String, rest: &mut impl Iterator<Item = String>) {
        match (self.wire, word.as_str()) {
            (Wire::Claude, "acp") => self.wire = Wire::Acp,
            (Wire::Claude, "app-server") => self.wire = Wire::App,
            (Wire::Claude, "exec") => self.wire = Wire::Exec,
            (Wire::Claude, "proto") => self.wire = Wire::Proto,
            (Wire::Exec, "resume") => self.session_id = rest.next(),
            // A branch has a session of its own.
            (Wire::Exec, "fork") => drop(rest.next()),
            _ => self.prompt = word,
        }
    }

    fn take(&mut self, flag: &str, value: String) {
        match flag {
            "-v" | "-V" | "--version" => self.version = true,
            "--input-format" => self.streaming_input = value == "stream-json",
            "--include-partial-messages" => self.partial = true,
            "--replay-user-messages" => self.replay = true,
            "--session-id" | "--resume" => self.session_id = Some(value),
            "--model" | "-m" => self.model = Some(value),
            "--permission-mode" => self.permission_mode = Some(value),
            _ => {}
        }
    }
}
