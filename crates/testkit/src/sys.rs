//! What only the kernel can do, without another program's help.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Sets the flag `UP` of `lo`.
pub(crate) fn raise_loopback() -> io::Result<()> {
    // SAFETY: plain numbers go in; the descriptor that comes out is nobody else's.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    // SAFETY: all bytes zero is a valid request without a name and without flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request lives until the call returns and has the type this call takes.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sends `SIGKILL`.
pub(crate) fn kill(pid: u32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: plain numbers go in.
    let result = unsafe { libc::kill(pid, libc::SIGKILL) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
