//! A command on a terminal.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;

use tieline_sandbox::Policy;

use crate::stage::{Stage, is_off, users};

/// Both ends of a new terminal.
fn terminal() -> (OwnedFd, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let slave = rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).unwrap();
    (master, slave)
}

#[test]
fn a_terminal_is_the_commands_own() {
    if is_off() {
        return;
    }
    let stage = Stage::new(users()[0]);
    for policy in [Policy::read_only(), stage.workspace()] {
        let (master, slave) = terminal();
        // It reads, knows it is on a terminal, can reach it by name, and `Ctrl-C` ends it.
        let script = "test -t 0 && test -t 1 && echo is-tty; read line; echo got-$line; \
                      echo named > /dev/tty; echo error > /dev/stderr; echo ready; cat";
        let mut helper = stage.helper(&policy, &["bash", "-c", script]);
        let stream = || slave.try_clone().unwrap();
        helper.stdin(stream()).stdout(stream()).stderr(stream());
        // SAFETY: both calls are async-signal-safe and touch no memory of the parent.
        #[allow(unsafe_code)]
        unsafe {
            helper.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(std::io::stdin().as_fd())?;
                Ok(())
            });
        }
        let mut child = helper.spawn().unwrap();
        drop((helper, slave));
        let mut terminal = std::fs::File::from(master);
        let mut seen = String::new();
        let mut read_until = |terminal: &mut std::fs::File, word: &str| {
            let mut buffer = [0; 1024];
            while !seen.contains(word) {
                let n = terminal.read(&mut buffer).unwrap();
                seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        };
        read_until(&mut terminal, "is-tty");
        terminal.write_all(b"hello\n").unwrap();
        read_until(&mut terminal, "got-hello");
        read_until(&mut terminal, "named");
        read_until(&mut terminal, "ready");
        terminal.write_all(b"\x03").unwrap();
        let status = child.wait().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert!(signal == Some(2) || status.code() == Some(130), "{status:?}: {seen}");
    }
}
