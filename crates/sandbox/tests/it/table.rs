//! Everything a hostile command would try, under every policy, for every user.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;

use tieline_sandbox::Policy;

use crate::stage::{Outsider, Said, Stage, User, differences, is_off, is_root, snapshot, users};

/// The outside world as the attempts find it.
struct World {
    stage: Stage,
    _outsider: Outsider,
    tcp: [TcpListener; 2],
    udp: [UdpSocket; 2],
    stream: UnixListener,
    named: UnixListener,
    datagram: UnixDatagram,
    _sequence: std::os::fd::OwnedFd,
    fifo: std::fs::File,
}

impl World {
    fn new(user: User) -> Self {
        let stage = Stage::new(user);
        let outsider = stage.outsider();
        let tcp = ["127.0.0.1:0", "[::1]:0"].map(|at| TcpListener::bind(at).unwrap());
        let udp = ["127.0.0.1:0", "[::1]:0"].map(|at| UdpSocket::bind(at).unwrap());
        let socket = |name: &str| stage.path("sockets").join(name);
        let stream = UnixListener::bind(socket("stream.sock")).unwrap();
        let datagram = UnixDatagram::bind(socket("datagram.sock")).unwrap();
        let sequence = rustix::net::socket(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            None,
        )
        .unwrap();
        let at = rustix::net::SocketAddrUnix::new(socket("sequence.sock")).unwrap();
        rustix::net::bind(&sequence, &at).unwrap();
        rustix::net::listen(&sequence, 8).unwrap();
        for name in ["stream.sock", "datagram.sock", "sequence.sock"] {
            stage.give(&socket(name));
        }
        let number = u64::from(outsider.0.id());
        let abstract_name = format!("tieline-{number}");
        let at = SocketAddr::from_abstract_name(abstract_name).unwrap();
        let named = UnixListener::bind_addr(&at).unwrap();
        // SAFETY: no memory of ours is involved; the segment is removed when the world ends.
        #[allow(unsafe_code)]
        let shm =
            unsafe { libc::shmget(number as i32 | 0x5a00_0000, 4096, libc::IPC_CREAT | 0o666) };
        assert!(shm >= 0);
        for (name, value) in [
            ("outsider", number),
            ("abstract", number),
            ("shm-key", number | 0x5a00_0000),
            ("shm-id", shm as u64),
            ("tcp4", tcp[0].local_addr().unwrap().port().into()),
            ("tcp6", tcp[1].local_addr().unwrap().port().into()),
            ("udp4", udp[0].local_addr().unwrap().port().into()),
            ("udp6", udp[1].local_addr().unwrap().port().into()),
        ] {
            stage.make_file(&format!("numbers/{name}"), &value.to_string());
        }
        for listener in &tcp {
            listener.set_nonblocking(true).unwrap();
        }
        for socket in &udp {
            socket.set_nonblocking(true).unwrap();
        }
        stream.set_nonblocking(true).unwrap();
        named.set_nonblocking(true).unwrap();
        datagram.set_nonblocking(true).unwrap();
        let place = stage.path("outside/write-fifo");
        let world_dir = |name: &str| lay_out(&stage, name);
        for name in attempts() {
            world_dir(&name);
        }
        world_dir("stdin");
        world_dir("inherited");
        let fifo = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(place.join("fifo"))
            .unwrap();
        let _sequence = sequence;
        Self { stage, _outsider: outsider, tcp, udp, stream, named, datagram, _sequence, fifo }
    }

    /// Everything is tried once, under a policy or without a helper.
    fn attack(&self, policy: Option<&Policy>) -> BTreeMap<String, (String, String)> {
        // A descriptor beyond the standard ones, and a file from outside as stdin.
        let script = r#"exec 7>>"$1"; exec <"$2"; shift 2; exec "$@""#;
        let mut shell = self.stage.command("sh");
        shell.arg("-c").arg(script).arg("sh");
        shell.arg(self.stage.path("outside/inherited/file"));
        shell.arg(self.stage.path("outside/stdin/file"));
        let probe = self.stage.path("probe");
        let stage = self.stage.path("");
        let words = [probe.to_str().unwrap(), "try", stage.to_str().unwrap()];
        shell.current_dir(self.stage.work());
        match policy {
            Some(policy) => {
                let helper = self.stage.helper(policy, &words);
                shell.arg(helper.get_program()).args(helper.get_args());
            }
            None => {
                shell.args(words).env("SANDBOX_PROBE_OPEN", "1");
            }
        }
        let said = Said::from(shell.output().unwrap()).succeeds();
        let rows = said.rows().into_iter();
        rows.map(|(name, kind, said)| (name, (kind, said))).collect()
    }

    /// Who was reached.
    fn reached(&self) -> Vec<&'static str> {
        let mut reached = Vec::new();
        let mut buffer = [0; 64];
        for (listener, name) in self.tcp.iter().zip(["tcp4", "tcp6"]) {
            reached.extend(listener.accept().is_ok().then_some(name));
        }
        for (socket, name) in self.udp.iter().zip(["udp4", "udp6"]) {
            reached.extend(socket.recv(&mut buffer).is_ok().then_some(name));
        }
        reached.extend(self.stream.accept().is_ok().then_some("unix stream"));
        reached.extend(self.named.accept().is_ok().then_some("abstract"));
        reached.extend(self.datagram.recv(&mut buffer).is_ok().then_some("unix datagram"));
        let heard = (&self.fifo).read(&mut buffer).is_ok_and(|n| n > 0);
        reached.extend(heard.then_some("fifo"));
        reached
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let id = std::fs::read_to_string(self.stage.path("numbers/shm-id")).unwrap();
        // SAFETY: removes the segment made above.
        #[allow(unsafe_code)]
        unsafe {
            libc::shmctl(id.parse().unwrap(), libc::IPC_RMID, std::ptr::null_mut());
        }
    }
}

/// The same small tree for each attempt, so that none spoils another's.
fn lay_out(stage: &Stage, name: &str) {
    let at = |rest: &str| format!("outside/{name}{rest}");
    for dir in ["", "/dir", "/empty"] {
        stage.make_dir(&at(dir));
    }
    let file = stage.make_file(&at("/file"), "untouched\n");
    stage.make_file(&at("/dir/inner"), "inner\n");
    let attribute =
        rustix::fs::setxattr(&file, "user.tested", b"1", rustix::fs::XattrFlags::empty());
    attribute.expect("the temporary directory takes user attributes");
    std::os::unix::fs::symlink("file", stage.path(&at("/link"))).unwrap();
    stage.give(&stage.path(&at("/link")));
    let fifo = stage.path(&at("/fifo"));
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, mode, 0).unwrap();
    stage.give(&fifo);
}

/// The names of all attempts, from the probe itself.
fn attempts() -> Vec<String> {
    #[allow(clippy::disallowed_methods)] // a test starts what it tests
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_sandbox-probe")).arg("list").output();
    String::from_utf8(output.unwrap().stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Tries everything and expects nothing to come of it.
fn nothing_works(user: User, policy: impl Fn(&Stage) -> Policy) {
    let world = World::new(user);
    let policy = policy(&world.stage);
    let outside = || {
        let mut seen = snapshot(&world.stage.path("outside"));
        for (name, state) in snapshot(&world.stage.path("numbers")) {
            seen.insert(PathBuf::from("numbers").join(name), state);
        }
        seen
    };
    let before = outside();
    let said = world.attack(Some(&policy));
    let changed = differences(&before, &outside());
    assert_eq!(changed, Vec::<String>::new(), "{user:?} {policy:?}");
    let worked: Vec<&String> = said
        .iter()
        .filter(|(_, (kind, said))| {
            said == "done" && !(kind == "effect" || kind == "network" && policy.network)
        })
        .map(|(name, _)| name)
        .collect();
    assert_eq!(worked, Vec::<&String>::new(), "{user:?} {policy:?}");
    let mut reached = world.reached();
    if policy.network {
        for (name, (kind, said)) in &said {
            assert!(kind != "network" || said == "done", "{name} with network: {said}");
        }
        reached.retain(|name| !name.starts_with("tcp") && !name.starts_with("udp"));
    }
    assert_eq!(reached, Vec::<&str>::new(), "{user:?} {policy:?}");
    let n_files = said.values().filter(|(kind, _)| kind != "network").count();
    assert!(said.len() == attempts().len() && n_files > 100, "{} attempts", said.len());
}

#[test]
fn a_read_only_command_changes_and_reaches_nothing() {
    if is_off() {
        return;
    }
    for user in users() {
        nothing_works(user, |_| Policy::read_only());
    }
}

#[test]
fn a_command_in_a_workspace_changes_nothing_outside_and_reaches_nothing() {
    if is_off() {
        return;
    }
    for user in users() {
        nothing_works(user, Stage::workspace);
    }
}

#[test]
fn a_read_only_command_with_network_reaches_the_network_alone() {
    if is_off() {
        return;
    }
    for user in users() {
        nothing_works(user, |_| Policy { network: true, ..Policy::read_only() });
    }
}

#[test]
fn a_workspace_with_network_reaches_the_network_alone() {
    if is_off() {
        return;
    }
    for user in users() {
        nothing_works(user, |stage| Policy { network: true, ..stage.workspace() });
    }
}

/// Attempts that cannot fail are no test.
#[test]
fn without_a_sandbox_the_same_attempts_work() {
    if is_off() {
        return;
    }
    for user in users() {
        let world = World::new(user);
        let before = snapshot(&world.stage.path("outside"));
        let said = world.attack(None);
        let is_privileged = user == User::Self_ && is_root();
        let failed: Vec<String> = said
            .iter()
            .filter(|(_, (kind, said))| {
                let must_work = match kind.as_str() {
                    "plain" | "effect" | "network" => true,
                    "root" => is_privileged,
                    _ => false,
                };
                must_work && said != "done"
            })
            .map(|(name, (_, said))| format!("{name}: {said}"))
            .collect();
        assert_eq!(failed, Vec::<String>::new(), "{user:?}");
        let changed = differences(&before, &snapshot(&world.stage.path("outside")));
        let touched: std::collections::BTreeSet<&str> =
            changed.iter().filter_map(|it| it.split(['/', ':']).next()).collect();
        assert!(touched.len() > 50, "{user:?}: {} places changed: {touched:?}", touched.len());
        let reached = world.reached();
        assert_eq!(reached.len(), 8, "{user:?}: {reached:?}");
    }
}
