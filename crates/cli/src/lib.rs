//! The binary: flags, configuration, wiring, exit codes.
//!
//! It is a library only so that others can be held against its parts: `main.rs` calls [`main`] and
//! does nothing else.
#![warn(missing_docs)]

mod acp;
mod agents;
mod apply_patch;
mod args;
mod config;
mod demo;
mod doctor;
mod engine;
mod error;
mod exit;
mod export;
mod fork;
mod keep;
mod list;
mod log;
mod mcp;
mod notify;
mod page;
mod policy;
mod print;
mod prompt;
mod proto;
mod queue;
mod run;
mod show;
mod stdio;
mod task;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use error::Error;
use exit::Exit;
use print::tell;

/// The whole program.
pub fn main() -> ExitCode {
    tieline_sandbox::init();
    tieline_proc::init();
    if let Err(err) = tieline_proc::keep_to_ourselves() {
        tell(&format!("tieline: what it runs may read its environment: {err}"));
    }
    let result = match Cli::try_parse() {
        Ok(cli) => carry_out(cli),
        Err(said) => return say(&said),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(err) => err.report(),
    }
}

/// The help, the version, or what is wrong with the command line.
fn say(said: &clap::Error) -> ExitCode {
    match said.print() {
        Ok(()) => ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(Exit::Usage as u8)),
        Err(err) => Error::output(&err).report(),
    }
}

/// Reads a configuration file's text and says what is wrong with it, by the name it has for the
/// user.
///
/// # Errors
/// The line the user is told.
pub fn check_config(file: &str, text: &str) -> Result<(), String> {
    config::parse(file, text).map(drop).map_err(|err| err.message().to_owned())
}

fn carry_out(cli: Cli) -> Result<Exit, Error> {
    log::init(cli.global.log.as_deref())?;
    let global = cli.global;
    match cli.command {
        Command::Run(args) => run::run(&global, args),
        Command::Task(args) => task::task(&global, args),
        Command::Mcp(args) => mcp::mcp(global, &args),
        Command::Acp(args) => acp::acp(&global, &args),
        Command::Proto(args) => proto::proto(&global, args),
        Command::Demo(args) => demo::demo(&global, &args),
        Command::List(args) => list::list(&global, &args),
        Command::Show(args) => show::show(&global, &args),
        Command::Export(args) => export::export(&global, &args),
        Command::Reset(args) => keep::reset(&global, &args),
        Command::Fork(args) => fork::fork(&global, &args),
        Command::Delete(args) => keep::delete(&global, &args),
        Command::Gc(args) => keep::gc(&global, &args),
        Command::Doctor(args) => doctor::doctor(&global, &args),
        Command::ApplyPatch(args) => apply_patch::apply_patch(&args),
        Command::Notify(args) => notify::notify(&global, &args),
        Command::Completions(args) => page::completions(&args, Cli::command()),
        Command::Man(args) => page::man(&args, Cli::command()),
    }
}
