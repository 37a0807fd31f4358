//! The third layer: system calls that are not there.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule, TargetArch,
};

use super::sys::Instruction;

type Rules = BTreeMap<i64, Vec<Rule>>;

/// Refused whatever the arguments.
const FORBIDDEN: &[i64] = &[
    // Looking into other processes, or reaching their descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Ways round these filters.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    // Wide doors to the kernel.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    // Another view of the machine.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    // The machine itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// Flags of `clone` that make namespaces. (`CLONE_NEWTIME` is not one: `clone` cannot make it.)
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Putting words into a terminal's input: `TIOCSTI`, and `TIOCLINUX` which can paste.
const IOCTLS: [u64; 2] = [0x5412, 0x541c];

/// A program that runs as its owner is a way out for whoever the owner's files are open to. The clerk
/// makes none either.
pub(crate) const SET_USER: u64 = libc::S_ISUID as u64;

/// `O_TMPFILE` without the part it shares with `O_DIRECTORY`.
const NAMELESS: u64 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64;

/// Calls that set a mode, and which argument has it.
fn modes() -> Vec<(i64, u8)> {
    const FCHMODAT2: i64 = 452;
    vec![
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (FCHMODAT2, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
    ]
}

/// Calls that open a file, and which arguments have the flags and the mode.
fn opening() -> Vec<(i64, u8, u8)> {
    vec![
        (libc::SYS_openat, 2, 3),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 1, 2),
    ]
}

/// The filters, to be applied in any order: the strictest answer counts.
pub(crate) fn programs(network: bool) -> Result<Vec<Vec<Instruction>>, BackendError> {
    let refused = compile(forbidden(network)?, libc::EPERM)?;
    // Programs fall back to `clone` and `openat`, whose flags can be seen.
    let unseen = [libc::SYS_clone3, libc::SYS_openat2].map(|call| (call, vec![]));
    let unknown = compile(Rules::from(unseen), libc::ENOSYS)?;
    Ok(vec![refused, unknown])
}

fn forbidden(network: bool) -> Result<Rules, BackendError> {
    let mut rules: Rules = FORBIDDEN.iter().map(|call| (*call, vec![])).collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        namespaces.push(when(0, Op::MaskedEq(flag as u64), flag as u64)?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    let mut ioctls = Vec::new();
    for request in IOCTLS {
        ioctls.push(when(1, Op::Eq, request)?);
    }
    rules.insert(libc::SYS_ioctl, ioctls);
    for (call, argument) in modes() {
        rules.insert(call, vec![when(argument, Op::MaskedEq(SET_USER), SET_USER)?]);
    }
    for (call, flags, mode) in opening() {
        let is_nameless = Condition::new(flags, Len::Dword, Op::MaskedEq(NAMELESS), NAMELESS)?;
        let sets_user = Condition::new(mode, Len::Dword, Op::MaskedEq(SET_USER), SET_USER)?;
        rules.insert(call, vec![Rule::new(vec![is_nameless, sets_user])?]);
    }
    if !network {
        // For sockets from outside: there are no others that could be told an address.
        for call in [libc::SYS_connect, libc::SYS_bind, libc::SYS_listen] {
            rules.insert(call, vec![]);
        }
    }
    rules.insert(libc::SYS_socket, sockets(network)?);
    rules.insert(libc::SYS_socketpair, pairs()?);
    Ok(rules)
}

/// Sockets that may not be made. Named sockets of the host (the SSH agent's, Docker's, the session
/// bus) lead out of any sandbox, and no filter can see which one a call is about, so there are none
/// of that family. With the network on there is the Internet's, and the questions about addresses
/// that resolvers ask the kernel.
fn sockets(network: bool) -> Result<Vec<Rule>, BackendError> {
    if !network {
        return Ok(vec![]);
    }
    let family = |op, value: i32| Condition::new(0, Len::Dword, op, value as u64);
    let not_routes = Condition::new(2, Len::Dword, Op::Ne, libc::NETLINK_ROUTE as u64)?;
    Ok(vec![
        Rule::new(vec![
            family(Op::Ne, libc::AF_INET)?,
            family(Op::Ne, libc::AF_INET6)?,
            family(Op::Ne, libc::AF_NETLINK)?,
        ])?,
        Rule::new(vec![family(Op::Eq, libc::AF_NETLINK)?, not_routes])?,
    ])
}

/// Pairs may not be made but those that can never be told another address: connected streams and
/// sequences. A datagram socket of a pair can write to any name.
fn pairs() -> Result<Vec<Rule>, BackendError> {
    const KIND: u64 = 0xf;
    let kind = |value: i32| Condition::new(1, Len::Dword, Op::MaskedEq(KIND), value as u64);
    let mut rules = vec![when(0, Op::Ne, libc::AF_UNIX as u64)?];
    for forbidden in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        rules.push(Rule::new(vec![kind(forbidden)?])?);
    }
    Ok(rules)
}

fn when(argument: u8, op: Op, value: u64) -> Result<Rule, BackendError> {
    Rule::new(vec![Condition::new(argument, Len::Dword, op, value)?])
}

fn compile(rules: Rules, errno: i32) -> Result<Vec<Instruction>, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}
