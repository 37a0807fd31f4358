//! `tieline demo`: the embedded conversation in a fresh workspace.

use tieline_event::{Mode, Prompt, Seq};
use tieline_front::run::{self as front, OnRequest, Tasks};
use tieline_hub::{Limits, OpenOptions};

use crate::agents::Agents;
use crate::args::{DemoArgs, FormatArg, Global};
use crate::config::Config;
use crate::error::Error;
use crate::exit::Exit;
use crate::print::tell;
use crate::run::{Session, Turn, look, new_key, open_store, program_name, quoted, who_answers};

const PROMPT: &str = "Show me what a conversation looks like.";

/// Plays the demo.
pub(crate) fn demo(global: &Global, args: &DemoArgs) -> Result<Exit, Error> {
    let store = open_store(global)?;
    let workspace = tempfile::Builder::new()
        .prefix("tieline-demo-")
        .tempdir()
        .map_err(|err| Error::new(Exit::Failed, format!("cannot make a workspace: {err}")))?
        // It stays, so that what the agent made can be looked at.
        .keep();
    let key = new_key("demo", 4)?;
    let (on_request, policy) = match who_answers(None, args.format)? {
        (OnRequest::Ask(tty), policy) => (OnRequest::Ask(tty), policy),
        _ => {
            tell("tieline: nobody is at a terminal, so the demo approves what it asks for itself");
            (OnRequest::Allow, "tieline demo allows its own file without a terminal".to_owned())
        }
    };
    if args.format == FormatArg::Text {
        tell(&format!("> {PROMPT}\n"));
    }
    let name = program_name();
    let shown = quoted(key.as_str());
    let turn = Turn {
        key,
        open: OpenOptions {
            agent: Some("demo".to_owned()),
            workspace: Some(workspace.clone()),
            mode: Some(Mode::Default),
            ..OpenOptions::default()
        },
        prompt: Prompt::text(PROMPT),
        options: front::Options {
            format: args.format.into(),
            look: look(),
            on_request,
            policy,
            tasks: Tasks::Await,
            after: Seq(0),
            go_on: format!("{name} run --conversation {shown} \"…\""),
        },
        session: Session::GoesOn,
        notify: None,
    };
    let dir = store.dir().to_owned();
    let exit =
        turn.play(store, Agents::new(&Config::default()).remembered_in(&dir), Limits::default())?;
    tell(&format!(
        "\nThe transcript is kept in {}.\n  read it:    {name} show {shown}\n  export it:  {name} export {shown} --format markdown\nThe agent worked in {}.",
        dir.display(),
        workspace.display(),
    ));
    Ok(exit)
}
