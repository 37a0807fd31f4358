//! Attempts to reach somebody.

use std::io;

use crate::attempts::Kind::{Machine, Network, Plain, Root};
use crate::attempts::{Attempt, Scene, call, text};
use crate::others::x32;

const STREAM: i32 = libc::SOCK_STREAM;
const DATAGRAM: i32 = libc::SOCK_DGRAM;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("tcp4", Network, |s| connect(libc::AF_INET, STREAM, &four(s.number("tcp4")?))),
    ("tcp6", Network, |s| connect(libc::AF_INET6, STREAM, &six(s.number("tcp6")?))),
    ("tcp4-mapped", Network, |s| {
        let mut address = six(s.number("tcp4")?);
        address.splice(8..24, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 0, 0, 1]);
        connect(libc::AF_INET6, STREAM, &address)
    }),
    ("tcp-any-address", Network, |s| {
        let mut address = four(s.number("tcp4")?);
        address.splice(4..8, [0, 0, 0, 0]);
        connect(libc::AF_INET, STREAM, &address)
    }),
    ("tcp-fast-open", Network, |s| {
        let address = four(s.number("tcp4")?);
        send_with(socket(libc::AF_INET, STREAM, 0)?, &address, libc::MSG_FASTOPEN)
    }),
    ("udp4", Network, |s| send(libc::AF_INET, &four(s.number("udp4")?))),
    ("udp6", Network, |s| send(libc::AF_INET6, &six(s.number("udp6")?))),
    ("udp-connected", Network, |s| {
        let fd = socket(libc::AF_INET, DATAGRAM, 0)?;
        let address = four(s.number("udp4")?);
        call(libc::SYS_connect, &[fd, address.as_ptr() as usize, address.len()])?;
        call(libc::SYS_write, &[fd, b"x".as_ptr() as usize, 1]).map(drop)
    }),
    ("udp-sendmmsg", Network, |s| {
        let address = four(s.number("udp4")?);
        let part = [b"x".as_ptr() as usize, 1];
        let message =
            [address.as_ptr() as usize, address.len(), part.as_ptr() as usize, 1, 0, 0, 0, 0];
        let fd = socket(libc::AF_INET, DATAGRAM, 0)?;
        call(libc::SYS_sendmmsg, &[fd, message.as_ptr() as usize, 1, 0]).map(drop)
    }),
    ("dns-query", Network, |s| {
        // A question for the address of `a.` to whoever listens.
        let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
        let address = four(s.number("udp4")?);
        let fd = socket(libc::AF_INET, DATAGRAM, 0)?;
        let (query, length) = (query.as_ptr() as usize, query.len());
        let to = address.as_ptr() as usize;
        call(libc::SYS_sendto, &[fd, query, length, 0, to, address.len()]).map(drop)
    }),
    ("ping", Machine, |_| socket(libc::AF_INET, DATAGRAM, libc::IPPROTO_ICMP).map(drop)),
    ("listen", Network, |_| {
        let fd = socket(libc::AF_INET, STREAM, 0)?;
        let address = four(0);
        call(libc::SYS_bind, &[fd, address.as_ptr() as usize, address.len()])?;
        call(libc::SYS_listen, &[fd, 1]).map(drop)
    }),
    ("bash-tcp", Network, |s| bash(&format!("exec 3<>/dev/tcp/127.0.0.1/{}", s.number("tcp4")?))),
    ("bash-udp", Network, |s| bash(&format!("echo x >/dev/udp/127.0.0.1/{}", s.number("udp4")?))),
    ("routes", Network, |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).map(drop)),
    ("raw", Root, |_| socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_TCP).map(drop)),
    ("packet", Root, |_| socket(libc::AF_PACKET, libc::SOCK_RAW, 0x300).map(drop)),
    ("kernel-events", Plain, |_| {
        socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT).map(drop)
    }),
    ("audit", Machine, |_| socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_AUDIT).map(drop)),
    ("vsock", Machine, |_| socket(libc::AF_VSOCK, STREAM, 0).map(drop)),
    ("bluetooth", Machine, |_| socket(libc::AF_BLUETOOTH, libc::SOCK_RAW, 1).map(drop)),
    ("crypto", Machine, |_| socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0).map(drop)),
    ("unix-stream", Plain, |s| connect(libc::AF_UNIX, STREAM, &named(s, "stream.sock"))),
    ("unix-datagram", Plain, |s| send(libc::AF_UNIX, &named(s, "datagram.sock"))),
    ("unix-sequence", Plain, |s| {
        connect(libc::AF_UNIX, libc::SOCK_SEQPACKET, &named(s, "sequence.sock"))
    }),
    ("unix-through-a-pair", Plain, |s| {
        let mut pair = [0i32; 2];
        let family = libc::AF_UNIX as usize;
        let pair_at = pair.as_mut_ptr() as usize;
        call(libc::SYS_socketpair, &[family, DATAGRAM as usize, 0, pair_at])?;
        send_with(pair[0] as usize, &named(s, "datagram.sock"), 0)
    }),
    ("unix-abstract", Plain, |s| {
        let mut address = unix(format!("\0tieline-{}", s.number("abstract")?).as_bytes());
        address.truncate(2 + 1 + format!("tieline-{}", s.number("abstract")?).len());
        connect(libc::AF_UNIX, STREAM, &address)
    }),
    ("x32-socket", Machine, |_| x32(libc::SYS_socket, &[libc::AF_INET as usize, 1, 0])),
    #[cfg(target_arch = "x86_64")]
    ("i386-socket", Machine, |_| i386_socket()),
];

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<usize> {
    call(libc::SYS_socket, &[family as usize, kind as usize, protocol as usize])
}

fn connect(family: i32, kind: i32, address: &[u8]) -> io::Result<()> {
    let fd = socket(family, kind, 0)?;
    call(libc::SYS_connect, &[fd, address.as_ptr() as usize, address.len()]).map(drop)
}

fn send(family: i32, address: &[u8]) -> io::Result<()> {
    send_with(socket(family, DATAGRAM, 0)?, address, 0)
}

fn send_with(fd: usize, address: &[u8], flags: i32) -> io::Result<()> {
    let (byte, to) = (b"x".as_ptr() as usize, address.as_ptr() as usize);
    call(libc::SYS_sendto, &[fd, byte, 1, flags as usize, to, address.len()]).map(drop)
}

/// A socket address of the loopback interface.
fn four(port: usize) -> Vec<u8> {
    let mut address = (libc::AF_INET as u16).to_ne_bytes().to_vec();
    address.extend((port as u16).to_be_bytes());
    address.extend([127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    address
}

fn six(port: usize) -> Vec<u8> {
    let mut address = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
    address.extend((port as u16).to_be_bytes());
    address.extend([0; 19]);
    address.push(1);
    address.extend([0; 4]);
    address
}

fn unix(name: &[u8]) -> Vec<u8> {
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend(name);
    address.push(0);
    address
}

fn named(scene: &Scene, name: &str) -> Vec<u8> {
    unix(text(scene.stage.join("sockets").join(name)).as_bytes())
}

#[allow(clippy::disallowed_methods)] // a test program
fn bash(script: &str) -> io::Result<()> {
    let status = std::process::Command::new("bash").arg("-c").arg(script).output()?.status;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

/// `socket` by the numbers of a 32-bit machine. A filter that does not look would let it through.
#[cfg(target_arch = "x86_64")]
fn i386_socket() -> io::Result<()> {
    let result: i32;
    // SAFETY: the call has no pointers. `rbx` cannot be named, so it is exchanged.
    unsafe {
        std::arch::asm!(
            "xchg {family:r}, rbx",
            "int 0x80",
            "xchg {family:r}, rbx",
            family = inout(reg) libc::AF_INET as u64 => _,
            inlateout("eax") 359 => result,
            in("ecx") 1,
            in("edx") 0,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}
