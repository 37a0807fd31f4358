//! `tieline acp` as editors see it: agents on the scripted model, other people's clients, and the
//! official schema, in a network of loopback alone.
//!
//! A row of the table is a scenario; each is played with every agent by every client.

mod acpx;
mod delegate;
mod differences;
mod play;
mod proto;
mod raw;
mod scenarios;
mod sdk;
mod stage;
mod tasks;
mod versus;

use self::play::play;
use self::stage::{Agent, Peer};

macro_rules! table {
    ($($scenario:ident $sentence:literal;)*) => {
        $(
            #[doc = $sentence]
            mod $scenario {
                use super::*;

                clients!($scenario: raw Raw, acpx Acpx, sdk Sdk);
            }
        )*
    };
}

macro_rules! clients {
    ($scenario:ident: $($module:ident $peer:ident),*) => {
        $(mod $module {
            use super::*;

            agents!($scenario $peer: claude Claude, codex Codex, demo Demo);
        })*
    };
}

macro_rules! agents {
    ($scenario:ident $peer:ident: $($name:ident $agent:ident),*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            play(&scenarios::$scenario(), Agent::$agent, Peer::$peer).await;
        })*
    };
}

table! {
    handshake "The agent says who it is and what it can do.";
    session_creation "A session offers its modes and settings.";
    simple_prompt "A prompt is answered with a message and ends.";
    command_with_output "A command is shown with what it prints.";
    patch_edit_and_delete "A file is made, changed and deleted.";
    mcp_tool "A tool of the client's own MCP server is called.";
    command_fails "A failing command is shown as failed and the turn goes on.";
    provider_fails "A provider that fails ends the turn with an error that says so.";
    completion_by_notify "A turn ends once, with a notify program at work too.";
    several_prompts "Prompts follow each other in one session.";
    cancellation "A cancelled turn ends as cancelled, and the next one works.";
}
