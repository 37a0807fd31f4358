//! Sockets: one session for each connection.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tieline_hub::Hub;
use tieline_wire::ndjson::Framer;
use tieline_wire::sqeq::Event;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::connection::{converse, read};
use super::order::Order;
use super::session::End;
use super::to_sqeq::error;
use super::token::{Token, random_bytes};
use super::{DRAINING, Error, Options};
use crate::outbox::Outbox;

/// How many clients there may be at once; more wait until one leaves.
const CLIENTS: usize = 256;

/// How many may be there that have not shown the token yet. They take no place of a client: when one
/// more comes, the one that has been silent for the longest goes.
const STRANGERS: usize = 64;

/// How long a client has to show its token.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest line of a client that has not shown it.
const FIRST_LINE: usize = 16 * 1024;

/// How long to wait before the next try, when the system refuses a connection.
const PAUSE: Duration = Duration::from_millis(200);

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Not at all: one client on stdin and stdout.
    Stdio,
    /// On a socket in the file system, for the same user alone.
    Unix(PathBuf),
    /// On a port, for whoever has the token.
    Tcp(SocketAddr),
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadAddress(String);

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no place to listen on; known are stdio, unix:PATH and tcp:ADDRESS:PORT, as in \
             tcp:127.0.0.1:0",
            self.0
        )
    }
}

impl std::error::Error for BadAddress {}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let bad = || BadAddress(text.to_owned());
        match text.split_once(':') {
            None if text == "stdio" => Ok(Self::Stdio),
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) => address.parse().map(Self::Tcp).map_err(|_| bad()),
            _ => Err(bad()),
        }
    }
}

/// Until somebody ends this process. A signal from now on does not kill it any more, so this comes
/// before anybody is told where we listen. Needs a runtime.
///
/// # Errors
/// When signals cannot be had.
pub fn end_signal() -> Result<impl Future<Output = ()>, Error> {
    let listen = |kind| signal(kind).map_err(Error::io("listen to signals"));
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// A socket that is bound, and who may speak.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, File),
    Tcp(TcpListener, SocketAddr, Token),
}

/// A socket's file. Dropped, it is removed.
#[derive(Debug)]
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(file = %self.0.display(), %error, "a socket is left behind");
        }
    }
}

impl Listener {
    /// Binds a socket in the file system that only this user can open. One that nobody listens on any
    /// more is replaced. Needs a runtime.
    ///
    /// # Errors
    /// When somebody listens there, something else is there, or the system refuses.
    pub fn unix(path: &Path) -> Result<Self, Error> {
        match std::fs::symlink_metadata(path) {
            Ok(it) if !it.file_type().is_socket() => return Err(Error::NoSocket(path.to_owned())),
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                return Err(Error::InUse(path.to_owned()));
            }
            _ => {}
        }
        // It has its place only when nobody else can open it any more.
        let bytes: [u8; 8] = random_bytes().map_err(Error::io("make a name"))?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{:016x}", u64::from_ne_bytes(bytes)));
        let early = path.with_file_name(name);
        let shown = path.display();
        let listener = UnixListener::bind(&early).map_err(Error::io(format!("bind {shown}")))?;
        let mut file = File(early.clone());
        std::fs::set_permissions(&early, PermissionsExt::from_mode(0o600))
            .and_then(|()| std::fs::rename(&early, path))
            .map_err(Error::io(format!("put the socket at {shown}")))?;
        file.0 = path.to_owned();
        Ok(Self { socket: Socket::Unix(listener, file) })
    }

    /// Binds a port. Every client must show the token first. An address that other machines can reach
    /// is refused unless `remote` says that this is wanted. Needs a runtime.
    ///
    /// # Errors
    /// When the address leads outside, or the system refuses.
    pub async fn tcp(address: SocketAddr, token: Token, remote: bool) -> Result<Self, Error> {
        if !address.ip().is_loopback() && !remote {
            return Err(Error::Remote(address));
        }
        let what = || format!("listen on {address}");
        let listener = TcpListener::bind(address).await.map_err(Error::io(what()))?;
        let bound = listener.local_addr().map_err(Error::io(what()))?;
        Ok(Self { socket: Socket::Tcp(listener, bound, token) })
    }

    /// Where it listens, as a client names it.
    pub fn address(&self) -> String {
        match &self.socket {
            Socket::Unix(_, file) => format!("unix:{}", file.0.display()),
            Socket::Tcp(_, address, _) => format!("tcp:{address}"),
        }
    }

    /// Serves clients until something says stop; then every session ends.
    pub async fn serve_until(self, hub: Hub, options: Options, stop: impl Future<Output = ()>) {
        let (stopping, stopped) = watch::channel(false);
        let mut clients = JoinSet::new();
        let mut strangers = Strangers::default();
        tokio::pin!(stop);
        loop {
            while clients.try_join_next().is_some() {}
            let is_full = clients.len() >= CLIENTS;
            let client = tokio::select! {
                () = &mut stop => break,
                client = strangers.admitted() => client,
                _ = clients.join_next(), if is_full => continue,
                came = self.accept(), if !is_full => match came {
                    Ok(Some(Came::Known(client))) => client,
                    Ok(Some(Came::Stranger(client, token))) => {
                        strangers.add(client, token);
                        continue;
                    }
                    Ok(None) => continue,
                    Err(error) => {
                        tracing::warn!(%error, "cannot take a client");
                        sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            let (hub, options, stopped) = (hub.clone(), options.clone(), stopped.clone());
            clients.spawn(async move { client.serve(hub, options, stopped).await });
        }
        stopping.send_replace(true);
        strangers.leave().await;
        while clients.join_next().await.is_some() {}
    }

    /// The next client, unless it may not speak here.
    async fn accept(&self) -> io::Result<Option<Came>> {
        match &self.socket {
            Socket::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let peer = stream.peer_cred()?.uid();
                if peer != rustix::process::geteuid().as_raw() {
                    tracing::warn!(uid = peer, "another user was turned away");
                    return Ok(None);
                }
                let (input, output) = stream.into_split();
                Ok(Some(Came::Known(Client::new(input, output))))
            }
            Socket::Tcp(listener, _, token) => {
                let (stream, _) = listener.accept().await?;
                // A delta is a small packet that somebody waits for.
                stream.set_nodelay(true)?;
                let (input, output) = stream.into_split();
                Ok(Some(Came::Stranger(Client::new(input, output), token.clone())))
            }
        }
    }
}

/// Who connected.
enum Came {
    /// It may speak.
    Known(Client),
    /// It must show this first.
    Stranger(Client, Token),
}

/// Those who have not shown the token yet.
#[derive(Default)]
struct Strangers {
    /// What they do; who has shown it comes out.
    tasks: JoinSet<Option<Client>>,
    /// Dropping it sends one away; the one that came first is in front.
    places: VecDeque<(AbortHandle, oneshot::Sender<()>)>,
}

impl Strangers {
    fn add(&mut self, client: Client, token: Token) {
        self.places.retain(|(task, _)| !task.is_finished());
        while self.places.len() >= STRANGERS {
            self.places.pop_front();
        }
        let (place, lost) = oneshot::channel();
        let task = self.tasks.spawn(client.admit(token, lost));
        self.places.push_back((task, place));
    }

    /// Sends all of them away.
    async fn leave(mut self) {
        self.places.clear();
        while let Some(left) = self.tasks.join_next().await {
            if let Ok(Some(client)) = left {
                client.finish().await;
            }
        }
    }

    /// The next who may speak.
    async fn admitted(&mut self) -> Client {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(Some(client))) => return client,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// One connection.
struct Client {
    input: Box<dyn AsyncRead + Unpin + Send>,
    outbox: Outbox,
    writer: JoinHandle<io::Result<()>>,
}

impl Client {
    fn new(
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let (outbox, writer) = Outbox::for_socket(output);
        Self { input: Box::new(input), outbox, writer }
    }

    /// Waits for the token. Who does not show it is told why and goes.
    async fn admit(mut self, token: Token, lost: oneshot::Receiver<()>) -> Option<Self> {
        let refusal = |why: &str| Event { id: "".into(), msg: error(why.to_owned()) };
        let refusal = tokio::select! {
            biased;
            shown = timeout(PATIENCE, shown(&mut self.input, &token)) => match shown {
                Ok(Ok(())) => return Some(self),
                Ok(Err(refusal)) => refusal,
                Err(_) => refusal("the token was not shown in time"),
            },
            _ = lost => refusal("others wait to show the token, and this client did not"),
        };
        tracing::warn!("a client without the token was turned away");
        self.outbox.push(&mut refusal.to_line());
        self.finish().await;
        None
    }

    async fn serve(self, hub: Hub, options: Options, mut stopped: watch::Receiver<bool>) {
        let Self { input, outbox, writer } = self;
        let stop = async move {
            // An error is a listener that is gone.
            drop(stopped.wait_for(|stopped| *stopped).await);
        };
        let served = converse(hub, options, input, outbox.clone(), End::AtOnce, stop).await;
        if let Err(error) = served {
            tracing::debug!(%error, "a connection ended");
        }
        finish(outbox, writer).await;
    }

    async fn finish(self) {
        finish(self.outbox, self.writer).await;
    }
}

/// Lets a client read its last lines.
async fn finish(outbox: Outbox, writer: JoinHandle<io::Result<()>>) {
    outbox.finish();
    if timeout(DRAINING, writer).await.is_err() {
        tracing::debug!("a client does not read");
    }
}

/// Reads the first line and nothing behind it; gives what to say to whoever shows another token.
async fn shown(input: &mut (impl AsyncRead + Unpin), token: &Token) -> Result<(), Event<'static>> {
    let refusal =
        |id: String, message: &str| Event { id: id.into(), msg: error(message.to_owned()) };
    let mut framer = Framer::new(FIRST_LINE);
    let mut line = Vec::new();
    loop {
        let byte = match input.read_u8().await {
            Ok(byte) => byte,
            Err(_) => return Err(refusal(String::new(), "the connection ended")),
        };
        line.push(byte);
        if line.len() > FIRST_LINE {
            return Err(refusal(String::new(), "the first line is too long"));
        }
        if byte != b'\n' {
            continue;
        }
        let mut first = None;
        framer.feed(&line, |line| first = read(line));
        line.clear();
        let Some(incoming) = first else { continue };
        return match incoming.order {
            Order::Authenticate(it) if token.is(&it) => Ok(()),
            Order::Authenticate(_) => Err(refusal(incoming.id, "the token is wrong")),
            _ => Err(refusal(
                incoming.id,
                "show the token first: {\"id\":\"0\",\"op\":{\"type\":\"authenticate\",\"token\":\"…\"}}",
            )),
        };
    }
}
