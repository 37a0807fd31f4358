//! Manual pages and completions.

use crate::args::{CompletionsArgs, ManArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::print::{print, tell};

/// Prints a completion script.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut command: clap::Command,
) -> Result<Exit, Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tieline", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Completed)
}

/// Prints the manual page, or writes all of them to a directory.
pub(crate) fn man(args: &ManArgs, command: clap::Command) -> Result<Exit, Error> {
    let Some(dir) = &args.dir else {
        let mut roff = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut roff)
            .map_err(|err| Error::new(Exit::Failed, err.to_string()))?;
        print(&String::from_utf8_lossy(&roff))?;
        return Ok(Exit::Completed);
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command, dir))
        .map_err(|err| Error::usage(format!("cannot write to {}: {err}", dir.display())))?;
    tell(&format!("tieline: the pages are in {}", dir.display()));
    Ok(Exit::Completed)
}
