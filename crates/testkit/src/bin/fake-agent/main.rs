//! A program that looks like Claude Code or Codex on its pipes and misbehaves on command.
//!
//! `FAKE_AGENT_SCRIPT` holds a script, or the path of one: one verb a line, `---`
//! between the sections. Each user message plays the next section, the last one
//! again and again; see `script.rs` for the verbs. Requests are answered by a thread
//! of their own, so they work while a section plays.
//!
//! Its first word chooses the wire: `app-server`, `exec` and `proto` are Codex's, `acp` is
//! anybody's, none of them is Claude's. `FAKE_AGENT_VERSION` is the version of Codex it pretends to be.

mod acp;
mod app;
mod claude;
mod exec;
mod inbox;
mod options;
mod output;
mod play;
mod proto;
mod script;
mod sys;
mod voice;

use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use self::inbox::Inbox;
use self::options::{Options, Wire};
use self::output::Output;
use self::play::Player;
use self::script::Section;
use self::voice::{User, Voice};

fn main() -> ExitCode {
    // Tests of libraries have no binary of their own, so this one is their host process too.
    tieline_proc::init();
    let options = Options::parse(env::args().skip(1));
    let output = Arc::new(Output::of_process());
    let codex = env::var("FAKE_AGENT_VERSION").ok().filter(|version| !version.is_empty());
    if options.version {
        match codex {
            Some(version) => output.line(&format!("codex-cli {version}")),
            None => output.line(claude::VERSION),
        }
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
    let (own_inbox, own_output) = (Arc::clone(&inbox), Arc::clone(&output));
    match options.wire {
        Wire::Claude if options.streaming_input => {
            let ear = claude::ClaudeEar { inbox: own_inbox, output: own_output };
            thread::spawn(|| inbox::listen(ear));
            play(Box::new(claude::Claude::new(&options)), &sections, &inbox, output)
        }
        Wire::Claude => {
            single(&inbox, claude::prompt(options.prompt.clone()));
            play(Box::new(claude::Claude::new(&options)), &sections, &inbox, output)
        }
        Wire::App => {
            let version = codex.unwrap_or_else(|| "0.166.0".to_owned());
            inbox::listen(app::Server::new(version, sections, output));
            ExitCode::SUCCESS
        }
        Wire::Acp => {
            inbox::listen(acp::Server::new(sections, output));
            ExitCode::SUCCESS
        }
        Wire::Exec => {
            sys::exit_when_interrupted();
            single(&inbox, exec::prompt());
            let voice: Box<dyn Voice> = match codex.as_deref().is_some_and(has_old_events) {
                true => Box::new(proto::Proto::old_exec()),
                false => Box::new(exec::Exec::new(&options)),
            };
            play(voice, &sections, &inbox, output)
        }
        Wire::Proto => {
            output.line(&proto::greeting());
            let ear = proto::ProtoEar { inbox: own_inbox, output: own_output };
            thread::spawn(|| inbox::listen(ear));
            play(Box::new(proto::Proto::new()), &sections, &inbox, output);
            ExitCode::SUCCESS
        }
    }
}

/// Plays until there are no more user messages; the last turn decides how it ends.
fn play(
    voice: Box<dyn Voice>,
    sections: &[Section],
    inbox: &Arc<Inbox>,
    output: Arc<Output>,
) -> ExitCode {
    let mut player = Player::new(voice, output, Arc::clone(inbox));
    play::perform(sections, inbox, &mut player);
    if player.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// One user message and no more.
fn single(inbox: &Inbox, user: User) {
    inbox.push_user(user);
    inbox.end();
}

/// Whether `codex exec --json` of this version prints the events of `proto`.
fn has_old_events(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or_default());
    numbers.next() == Some(0) && numbers.next().is_some_and(|minor| minor < 42)
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
