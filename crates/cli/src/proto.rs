//! `tieline proto`: the queue protocol for any program.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tieline_event::{ConversationKey, Timestamp};
use tieline_front::sqeq::token::{self, Token};
use tieline_front::sqeq::{self, Address, Compat, Listener, Options};
use tieline_hub::Hub;

use crate::acp::chooser;
use crate::agents::{Agents, NAMES};
use crate::args::{CompatArg, Global, ProtoArgs};
use crate::config;
use crate::error::{Error, chain};
use crate::exit::Exit;
use crate::print;
use crate::run::{limits, new_key, notify_socket, open_store, workspace};
use crate::stdio;

/// The agent of a session, when neither the command line nor the configuration names one; where it is
/// not registered, the first that is installed.
const DEFAULT_AGENT: &str = "engine";

/// Serves clients until they are done or a signal comes.
pub(crate) fn proto(global: &Global, args: ProtoArgs) -> Result<Exit, Error> {
    if args.schema {
        print::print(&sqeq::json_schema())?;
        return Ok(Exit::Completed);
    }
    if args.listen == Address::Stdio && io::stdin().is_terminal() {
        return Err(Error::usage(
            "stdin is a terminal, and this command reads a program's lines; pipe them in, or listen \
             on a socket with --listen; `tieline proto --help` shows a session",
        ));
    }
    let config = config::load(global.config.as_deref())?;
    let name = args.agent.clone().or_else(|| config.agent.clone());
    let fallback = if NAMES.contains(&DEFAULT_AGENT) { DEFAULT_AGENT } else { "auto" };
    let name = name.unwrap_or_else(|| fallback.to_owned());
    let here = workspace(Path::new("."))?;
    let store = open_store(global)?;
    let agents = Agents::new(&config).remembered_in(store.dir());
    if name != "auto" {
        // A name nobody knows is told at once.
        agents.choose(&name, &here)?;
    }
    let notify = notify_socket(&config, &store, &NAMES);
    let agents = match &notify {
        Some(socket) => agents.notified_at(socket.path().to_owned()),
        None => agents,
    };
    let timeout = args.timeout.map(Duration::from_secs).or(config.timeout);
    let limits = limits(&config, &name, timeout);
    let options = Options {
        choose: chooser(agents.clone(), name.clone()),
        new_key: Arc::new(key),
        workspace: here,
        mode: args.mode.or(config.mode),
        model: args.model.clone().or_else(|| config.model_of(&name)),
        compat: match args.compat {
            CompatArg::Seed => Compat::Seed,
            CompatArg::Upstream => Compat::Upstream,
        },
        line: limits.line,
    };
    let hub = Hub::new(store, Arc::new(agents), limits);
    stdio::serve(async move {
        // Dropped, it takes its socket away.
        let _listening = notify.map(|socket| socket.listen(hub.clone())).transpose()?;
        serve(hub, options, args).await
    })?;
    Ok(Exit::Completed)
}

async fn serve(hub: Hub, options: Options, args: ProtoArgs) -> Result<(), Error> {
    let failed = |err: sqeq::Error| Error::new(Exit::Failed, chain(&err));
    let refused = |err: sqeq::Error| Error::usage(chain(&err));
    match args.listen {
        Address::Stdio => {
            let output = stdio::output()?;
            sqeq::serve(hub, options, stdio::input(), output).await.map_err(failed)
        }
        Address::Unix(path) => {
            let listener = Listener::unix(&path).map_err(refused)?;
            let end = sqeq::end_signal().map_err(failed)?;
            print::tell(&format!("tieline: listening on {}", listener.address()));
            listener.serve_until(hub, options, end).await;
            Ok(())
        }
        Address::Tcp(address) => {
            let told = |err: token::Error| Error::usage(chain(&err));
            let token = match &args.token_file {
                Some(file) => Token::in_file(file).map_err(told)?,
                None => Token::random().map_err(told)?,
            };
            let shown = match &args.token_file {
                Some(file) => format!("the token is in {}", file.display()),
                None => format!("token {}", token.reveal()),
            };
            let listener = Listener::tcp(address, token, args.allow_remote).await;
            let listener = listener.map_err(refused)?;
            let end = sqeq::end_signal().map_err(failed)?;
            print::tell(&format!("tieline: listening on {}; {shown}", listener.address()));
            listener.serve_until(hub, options, end).await;
            Ok(())
        }
    }
}

/// A key in the form that clients of this protocol expect of a session's id: a UUID of version 7.
fn key() -> ConversationKey {
    let Ok(random) = token::random_bytes::<10>() else {
        // Without a source of randomness it is a key all the same.
        return new_key("proto", 12).expect("letters, digits and dashes can name a conversation");
    };
    let millis = u64::try_from(Timestamp::now().as_millis()).unwrap_or(0);
    let [a, b, c, d, rest @ ..] = random;
    let tail: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = format!(
        "{:08x}-{:04x}-7{:03x}-{:02x}{d:02x}-{tail}",
        millis >> 16,
        millis & 0xffff,
        u16::from_be_bytes([a & 0x0f, b]),
        c & 0x3f | 0x80,
    );
    ConversationKey::new(&key).expect("digits and dashes can name a conversation")
}
