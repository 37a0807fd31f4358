//! Where the prompt comes from.

use std::io::{self, IsTerminal, Read};

use crate::error::Error;

/// No prompt and no patch is longer than this.
const MOST: u64 = 16 << 20;

/// The prompt: an argument, or the standard input.
pub(crate) fn read(argument: Option<&str>) -> Result<String, Error> {
    let prompt = match argument {
        Some("-") => from_stdin()?,
        Some(text) => text.to_owned(),
        None if io::stdin().is_terminal() => {
            return Err(Error::usage(
                "a prompt is needed: tieline run \"PROMPT\", or pipe it in; see tieline run --help",
            ));
        }
        None => from_stdin()?,
    };
    if prompt.trim().is_empty() {
        return Err(Error::usage("the prompt is empty; say something to the agent"));
    }
    Ok(prompt)
}

fn from_stdin() -> Result<String, Error> {
    stdin_text("prompt", "put it into a file and name it")
}

/// All of the standard input: what it is called, and what to do if there is too much of it.
pub(crate) fn stdin_text(what: &str, otherwise: &str) -> Result<String, Error> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MOST + 1)
        .read_to_end(&mut bytes)
        .map_err(|err| Error::usage(format!("cannot read the {what} from stdin: {err}")))?;
    if bytes.len() as u64 > MOST {
        return Err(Error::usage(format!("the {what} is longer than 16 MiB; {otherwise}")));
    }
    String::from_utf8(bytes)
        .map_err(|err| Error::usage(format!("the {what} is not UTF-8 text: {err}")))
}
