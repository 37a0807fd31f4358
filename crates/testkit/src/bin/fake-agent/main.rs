//! A program that looks like Claude Code on its pipes and misbehaves on command.
//!
//! `FAKE_AGENT_SCRIPT` holds a script, or the path of one: one verb a line, `---`
//! between the sections. Each user message plays the next section, the last one
//! again and again; see `script.rs` for the verbs. Control requests are answered by
//! a thread of their own, so they work while a section plays.

mod frames;
mod inbox;
mod options;
mod output;
mod play;
mod script;
mod sys;

use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use self::frames::Session;
use self::inbox::{Inbox, Next};
use self::options::Options;
use self::output::Output;
use self::play::Player;
use self::script::Section;

fn main() -> ExitCode {
    // Tests of libraries have no binary of their own, so this one is their host process too.
    tieline_proc::init();
    let options = Options::parse(env::args().skip(1));
    let output = Arc::new(Output::of_process());
    if options.version {
        output.line("2.1.325 (Claude Code)");
        return ExitCode::SUCCESS;
    }
    let sections = match script::parse(&script_text()) {
        Ok(sections) => sections,
        Err(err) => {
            output::stderr(format!("fake-agent: {err}\n").as_bytes());
            return ExitCode::from(2);
        }
    };
    let inbox = Arc::new(Inbox::default());
    let session = Session::new(&options);
    if options.streaming_input {
        inbox.start_reading(Arc::clone(&output));
    } else {
        inbox.single_prompt(options.prompt.clone());
    }
    let mut player = Player::new(session, options, output, Arc::clone(&inbox));
    for turn in 0.. {
        let Next::User(message) = inbox.next_user() else { break };
        player.turn(section(&sections, turn), &message);
        inbox.turn_over();
    }
    if player.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn section(sections: &[Section], turn: usize) -> &Section {
    let last = sections.len().saturating_sub(1);
    sections.get(turn.min(last)).expect("the parser yields at least one section")
}

fn script_text() -> String {
    let text = env::var("FAKE_AGENT_SCRIPT").unwrap_or_default();
    if text.is_empty() {
        return "say Hello from the fake agent.".to_owned();
    }
    // A script has spaces or several lines; a path that exists wins all the same.
    if Path::new(&text).is_file() {
        return fs::read_to_string(&text).expect("the script is readable text");
    }
    text
}
