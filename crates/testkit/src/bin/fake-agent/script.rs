//! The language of `FAKE_AGENT_SCRIPT`.

use serde_json::Value;

/// What one user message sets off.
pub(crate) type Section = Vec<Verb>;

pub(crate) enum Verb {
    /// `say TEXT`: a message of text (`\n` is a line break).
    Say(String),
    /// `echo`: the user's message as a message of text.
    Echo,
    /// `think TEXT`: a message of reasoning.
    Think(String),
    /// `deltas N [BYTES]`: a message of N numbered chunks.
    Deltas { n: usize, bytes: usize },
    /// `flood N [BYTES]`: N numbered chunks as fast as possible, each in the wire's most frequent
    /// line: a delta, or a whole message where the wire has none. Claude's has no line with the
    /// whole text afterwards, the other streams have.
    Flood { n: usize, bytes: usize },
    /// `stamped N MICROS`: N chunks, one every MICROS microseconds, each the time it was
    /// written (`CLOCK_MONOTONIC` in nanoseconds, 20 digits and a space); ends like a flood.
    Stamped { n: usize, micros: usize },
    /// `tool NAME JSON`: a tool call and its result.
    Tool { name: String, input: Value },
    /// `ask-permission NAME JSON`: the same after a request that is allowed; a wire that cannot
    /// ask does it without.
    AskPermission { name: String, input: Value },
    /// `garbage TEXT`: the text as a line.
    Garbage(String),
    /// `bytes HEX`: these bytes, no line end.
    Bytes(Vec<u8>),
    /// `huge BYTES`: a valid line of that length with a message.
    Huge(usize),
    /// `no-newline BYTES`: that many bytes without a line end.
    NoNewline(usize),
    /// `half-line TEXT`: the text without a line end, then silence.
    HalfLine(String),
    /// `ignore SIG`.
    Ignore(i32),
    /// `deaf`: interrupts, by the wire or by `SIGINT`, change nothing any more.
    Deaf,
    /// `fork`, `double-fork`, `setsid`, `nohup`, each with `hold` to keep the pipes.
    Descend { how: Descent, hold: bool },
    /// `close stdin|stdout|stderr`.
    Close(i32),
    /// `stderr TEXT`.
    Stderr(String),
    /// `stderr-flood BYTES`.
    StderrFlood(usize),
    /// `exit N`.
    Exit(i32),
    /// `kill SIG`: to itself.
    Kill(i32),
    /// `silence`: nothing, for ever; an interrupt still ends it.
    Silence,
    /// `sleep MS`.
    Sleep(u64),
    /// `dump-argv PATH`: the arguments, each with a NUL after it.
    DumpArgv(String),
    /// `result [error|api-error]`: ends the turn; a section without it ends by itself.
    Result(Outcome),
    /// `linger MS`: ends the turn and does nothing for that time.
    Linger(u64),
}

#[derive(Clone, Copy)]
pub(crate) enum Descent {
    Fork,
    DoubleFork,
    Setsid,
    Nohup,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    /// The agent failed.
    Error,
    /// The provider failed.
    ApiError,
}

pub(crate) fn parse(text: &str) -> Result<Vec<Section>, String> {
    let mut sections = vec![Section::new()];
    for line in text.lines().map(str::trim_start) {
        if line.trim_end() == "---" {
            sections.push(Section::new());
        } else if !line.is_empty() && !line.starts_with('#') {
            let verb = verb(line).ok_or_else(|| format!("bad script line: {line}"))?;
            sections.last_mut().expect("there is a section from the start").push(verb);
        }
    }
    Ok(sections)
}

fn verb(line: &str) -> Option<Verb> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let text = || rest.replace("\\n", "\n");
    Some(match name {
        "say" => Verb::Say(text()),
        "echo" => Verb::Echo,
        "think" => Verb::Think(text()),
        "deltas" => numbers(rest).map(|(n, bytes)| Verb::Deltas { n, bytes })?,
        "flood" => numbers(rest).map(|(n, bytes)| Verb::Flood { n, bytes })?,
        "stamped" => numbers(rest).map(|(n, micros)| Verb::Stamped { n, micros })?,
        "tool" => tool(rest).map(|(name, input)| Verb::Tool { name, input })?,
        "ask-permission" => tool(rest).map(|(name, input)| Verb::AskPermission { name, input })?,
        "garbage" => Verb::Garbage(rest.to_owned()),
        "bytes" => Verb::Bytes(hex(rest)?),
        "huge" => Verb::Huge(rest.trim().parse().ok()?),
        "no-newline" => Verb::NoNewline(rest.trim().parse().ok()?),
        "half-line" => Verb::HalfLine(rest.to_owned()),
        "ignore" => Verb::Ignore(signal(rest.trim())?),
        "deaf" => Verb::Deaf,
        "fork" => descend(Descent::Fork, rest),
        "double-fork" => descend(Descent::DoubleFork, rest),
        "setsid" => descend(Descent::Setsid, rest),
        "nohup" => descend(Descent::Nohup, rest),
        "close" => {
            Verb::Close(["stdin", "stdout", "stderr"].iter().position(|s| *s == rest)? as i32)
        }
        "stderr" => Verb::Stderr(text()),
        "stderr-flood" => Verb::StderrFlood(rest.trim().parse().ok()?),
        "exit" => Verb::Exit(rest.trim().parse().ok()?),
        "kill" => Verb::Kill(signal(rest.trim())?),
        "silence" => Verb::Silence,
        "sleep" => Verb::Sleep(rest.trim().parse().ok()?),
        "dump-argv" => Verb::DumpArgv(rest.to_owned()),
        "result" => Verb::Result(match rest.trim() {
            "" => Outcome::Success,
            "error" => Outcome::Error,
            "api-error" => Outcome::ApiError,
            _ => return None,
        }),
        "linger" => Verb::Linger(rest.trim().parse().ok()?),
        _ => return None,
    })
}

fn descend(how: Descent, rest: &str) -> Verb {
    Verb::Descend { how, hold: rest.trim() == "hold" }
}

fn numbers(rest: &str) -> Option<(usize, usize)> {
    let mut words = rest.split_whitespace();
    let n = words.next()?.parse().ok()?;
    let bytes = words.next().map_or(Some(8), |word| word.parse().ok())?;
    Some((n, bytes))
}

fn tool(rest: &str) -> Option<(String, Value)> {
    let (name, input) = rest.split_once(' ').unwrap_or((rest, "{}"));
    Some((name.to_owned(), serde_json::from_str(input).ok()?))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pairs =
        digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

fn signal(name: &str) -> Option<i32> {
    Some(match name.trim_start_matches("SIG") {
        "HUP" => libc::SIGHUP,
        "INT" => libc::SIGINT,
        "QUIT" => libc::SIGQUIT,
        "ABRT" => libc::SIGABRT,
        "KILL" => libc::SIGKILL,
        "SEGV" => libc::SIGSEGV,
        "PIPE" => libc::SIGPIPE,
        "TERM" => libc::SIGTERM,
        "STOP" => libc::SIGSTOP,
        _ => return None,
    })
}
