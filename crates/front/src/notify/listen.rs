//! The side of a running hub.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tieline_hub::Hub;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::{Error, MOST, PATIENCE, is_ours_alone, notification, places};

/// How many may speak at once; more wait in the kernel.
const AT_ONCE: usize = 16;

/// How long to wait before the next try, when the system refuses a connection.
const PAUSE: Duration = Duration::from_millis(200);

/// A socket that is bound and not yet heard. Dropped, it is removed.
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    listener: StdListener,
    file: File,
}

/// Hears notices until it is dropped.
#[derive(Debug)]
pub struct Listening {
    task: JoinHandle<()>,
    _file: File,
}

/// A socket's file.
#[derive(Debug)]
struct File(PathBuf);

impl Socket {
    /// Binds the socket of this process: in the data directory, or in the user's runtime directory
    /// if the path would be too long for a socket.
    ///
    /// # Errors
    /// When no directory will do or the system refuses.
    pub fn bind(data: &Path) -> Result<Self, Error> {
        let name = format!("{}.sock", std::process::id());
        let [first, second] = places(data);
        let is_short = |dir: &Path| SocketAddr::from_pathname(dir.join(&name)).is_ok();
        let dir = if is_short(&first) { first } else { second };
        if !is_short(&dir) {
            return Err(Error::TooLong(dir.join(name)));
        }
        if !is_private(&dir)? {
            return Err(Error::NotPrivate(dir));
        }
        let path = dir.join(name);
        if StdStream::connect(&path).is_ok() {
            // Somebody with our number answers: one store may be seen from two containers.
            return Err(Error::InUse(path));
        }
        // It is of a dead process that had our number.
        match std::fs::remove_file(&path) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &path)(err));
            }
            _ => {}
        }
        let listener = StdListener::bind(&path).map_err(Error::io("bind", &path))?;
        let file = File(path.clone());
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))
            .and_then(|()| listener.set_nonblocking(true))
            .map_err(Error::io("prepare", &path))?;
        Ok(Self { path, listener, file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells a hub what comes in, until the guard is dropped. Needs a runtime.
    ///
    /// # Errors
    /// When the runtime cannot watch the socket.
    pub fn listen(self, hub: Hub) -> Result<Listening, Error> {
        let listener = UnixListener::from_std(self.listener);
        let listener = listener.map_err(Error::io("watch", &self.path))?;
        Ok(Listening { task: tokio::spawn(hear(listener, hub)), _file: self.file })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(file = %self.0.display(), %error, "a socket is left behind");
        }
    }
}

/// Makes a directory, or says whether the one that is there is ours alone.
fn is_private(dir: &Path) -> Result<bool, Error> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io("create", dir)(err));
        }
        _ => {}
    }
    is_ours_alone(dir)
}

async fn hear(listener: UnixListener, hub: Hub) {
    let mut speaking = JoinSet::new();
    loop {
        while speaking.len() >= AT_ONCE {
            speaking.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                let hub = hub.clone();
                speaking.spawn(async move {
                    if timeout(PATIENCE, take(stream, &hub)).await.is_err() {
                        tracing::warn!("a notify program took too long");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a notification");
                sleep(PAUSE).await;
            }
        }
        while speaking.try_join_next().is_some() {}
    }
}

/// What the other side is answered.
#[derive(Serialize)]
struct Answer {
    taken: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

async fn take(stream: UnixStream, hub: &Hub) {
    let result = match stream.peer_cred() {
        Ok(peer) if peer.uid() == rustix::process::geteuid().as_raw() => Ok(()),
        Ok(peer) => Err(format!("user {} is not heard here", peer.uid())),
        Err(err) => Err(format!("who is there? {err}")),
    };
    let mut stream = BufReader::new(stream);
    let error = match result {
        Ok(()) => read(&mut stream, hub).await.err(),
        Err(error) => Some(error),
    };
    if let Some(error) = &error {
        tracing::warn!(%error, "a notification was refused");
    }
    let answer = Answer { taken: error.is_none(), error };
    let written = match serde_json::to_vec(&answer) {
        Ok(mut line) => {
            line.push(b'\n');
            stream.write_all(&line).await
        }
        Err(err) => Err(err.into()),
    };
    if let Err(error) = written {
        tracing::debug!(%error, "a notify program did not wait for its answer");
    }
}

/// Reads one line and tells the hub.
async fn read(stream: &mut BufReader<UnixStream>, hub: &Hub) -> Result<(), String> {
    let mut line = Vec::new();
    let most = MOST as u64 + 1;
    let read = stream.take(most).read_until(b'\n', &mut line).await;
    read.map_err(|err| format!("cannot read it: {err}"))?;
    if line.len() > MOST {
        return Err(format!("it is longer than {MOST} bytes"));
    }
    match notification(&line) {
        Ok(Some(notification)) => hub.notified(&notification).await,
        // About something else, or about no session we could know.
        Ok(None) => tracing::debug!(bytes = line.len(), "a notification means nothing here"),
        Err(err) => return Err(format!("it is not understood: {err}")),
    }
    Ok(())
}
