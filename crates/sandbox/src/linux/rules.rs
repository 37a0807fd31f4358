//! The second layer: what Landlock lets the command change.

use std::os::fd::AsFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};
use rustix::fs::{FileType, OFlags};

use super::plan::Plan;

/// What every kernel with Landlock can forbid. The policy stands on these.
fn needed() -> BitFlags<AccessFs> {
    AccessFs::from_write(ABI::V1)
}

/// Bringing something into being: the clerk's work in the writable roots.
fn making() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{
        MakeChar | MakeDir | MakeReg | MakeSock | MakeFifo | MakeBlock | MakeSym
    })
}

/// Binds this thread, and what it executes, to the rules for good.
///
/// Newer kernels can forbid more (truncating, ioctls on devices, signals, abstract sockets, named
/// sockets). What they would forbid the other layers forbid already, so these come on top where they
/// are known.
pub(crate) fn enforce(plan: &Plan) -> Result<(), RulesetError> {
    let more = AccessFs::from_write(ABI::V5) & !needed();
    let everything = needed() | more;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(needed())?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(more)?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    let mut in_roots = everything & !making();
    if plan.guards_removal {
        in_roots &= !make_bitflags!(AccessFs::{RemoveFile | RemoveDir});
    }
    for root in &plan.roots {
        rules = allow(rules, root, in_roots)?;
    }
    rules = allow(rules, "/dev".as_ref(), AccessFs::from_file(ABI::V5) & everything)?;
    rules = allow(rules, "/dev/shm".as_ref(), everything)?;
    rules = streams(rules, everything)?;
    rules.restrict_self().map(drop)
}

fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    match PathFd::new(path) {
        Ok(fd) => rules.add_rule(PathBeneath::new(fd, access)),
        // Hidden again after it was a root, or not there: then there is nothing to allow.
        Err(_) => Ok(rules),
    }
}

/// What the caller opened for writing may be opened again, as `/dev/stderr` for example.
fn streams(
    mut rules: RulesetCreated,
    everything: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    for stream in [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()] {
        let writable = rustix::fs::fcntl_getfl(stream)
            .is_ok_and(|flags| flags.intersects(OFlags::WRONLY | OFlags::RDWR));
        let kind = rustix::fs::fstat(stream).map(|it| FileType::from_raw_mode(it.st_mode));
        let is_file = matches!(kind, Ok(FileType::RegularFile | FileType::CharacterDevice));
        if writable && is_file {
            let access = AccessFs::from_file(ABI::V5) & everything;
            rules = rules.add_rule(PathBeneath::new(stream, access))?;
        }
    }
    Ok(rules)
}
