//! The filter that is written by hand: it turns calls of foreign machines away, which the library
//! does not do for x32, and sends calls that make files to the clerk, for which it has no word.

use super::sys::Instruction;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IS_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IS_SET: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
#[cfg(target_arch = "x86_64")]
const IS_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Where the kernel puts what a filter sees.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const THIS_MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const THIS_MACHINE: u32 = 0xc000_00b7;

/// What the clerk is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing: there is no place to make a file in.
    Nothing,
    /// Calls that make names.
    Making,
    /// Those, and calls that remove them.
    MakingAndRemoving,
}

/// The filter.
pub(crate) fn program(asked: Asked) -> Vec<Instruction> {
    let mut program = vec![
        step(LOAD, 0, 0, MACHINE),
        step(IS_EQUAL, 1, 0, THIS_MACHINE),
        step(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(LOAD, 0, 0, NUMBER),
    ];
    #[cfg(target_arch = "x86_64")]
    {
        // The same machine by other numbers.
        const X32: u32 = 0x4000_0000;
        let no_such_call = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
        program.push(step(IS_AT_LEAST, 0, 1, X32));
        program.push(step(RETURN, 0, 0, no_such_call));
    }
    if asked != Asked::Nothing {
        for (call, flags) in opening() {
            program.push(step(IS_EQUAL, 0, 4, call as u32));
            program.push(step(LOAD, 0, 0, ARGUMENTS + 8 * flags + LOW_HALF));
            program.push(step(IS_SET, 0, 1, libc::O_CREAT.cast_unsigned()));
            program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
            program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
        }
        let removing = if asked == Asked::MakingAndRemoving { removing() } else { vec![] };
        for call in making().into_iter().chain(removing) {
            program.push(step(IS_EQUAL, 0, 1, call as u32));
            program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF));
        }
    }
    program.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

const LOW_HALF: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };

fn step(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// Calls that open a file, and which argument has the flags.
fn opening() -> Vec<(i64, u32)> {
    vec![
        (libc::SYS_openat, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 1),
    ]
}

/// `openat2` is not among them: another filter says that there is no such call.
fn making() -> Vec<i64> {
    vec![
        libc::SYS_mkdirat,
        libc::SYS_mknodat,
        libc::SYS_symlinkat,
        libc::SYS_linkat,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mknod,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename,
    ]
}

fn removing() -> Vec<i64> {
    vec![
        libc::SYS_unlinkat,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir,
    ]
}
