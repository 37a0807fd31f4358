//! Trying what the kernel gives.

use super::{Lacking, enclose, sys};
use crate::policy::Policy;
use crate::refusal::Feature;
use crate::report::{Layer, Report};

/// Tries every feature alone and every policy as a whole.
pub(crate) fn report(missing: &[Feature]) -> Report {
    let lacking = Lacking(missing);
    let layers = Feature::ALL
        .into_iter()
        .map(|feature| {
            let problem = lacking.check(feature).map_err(|err| err.to_string());
            Layer { feature, problem: problem.and_then(|()| alone(feature)).err() }
        })
        .collect();
    let whole = |policy: Policy| enclose(&policy, None, lacking).err().map(|it| it.to_string());
    // `/tmp` is the root that is everywhere.
    let workspace = || Policy::workspace_write(Vec::<std::path::PathBuf>::new());
    Report {
        layers,
        landlock_abi: sys::landlock_version().unwrap_or(0),
        read_only: whole(Policy::read_only()),
        workspace_write: whole(workspace()),
        with_network: whole(Policy { network: true, ..workspace() }),
    }
}

fn alone(feature: Feature) -> Result<(), String> {
    let namespace = match feature {
        Feature::UserNamespace => 0,
        Feature::MountNamespace => sys::NEW_MOUNT,
        Feature::PidNamespace => sys::NEW_PID,
        Feature::NetworkNamespace => sys::NEW_NET,
        Feature::Landlock => {
            return sys::landlock_version().map(drop).map_err(|err| err.to_string());
        }
        Feature::Seccomp => return action_is_known(libc::SECCOMP_RET_ERRNO),
        Feature::SeccompNotify => return action_is_known(libc::SECCOMP_RET_USER_NOTIF),
    };
    // SAFETY: the caller has one thread.
    #[allow(unsafe_code)]
    let child = unsafe { sys::fork_into(sys::NEW_USER | namespace) };
    match child {
        Ok(None) => sys::exit_now(0),
        Ok(Some(child)) => sys::reap(child, true).map(drop).map_err(|err| err.to_string()),
        Err(err) => Err(err.to_string()),
    }
}

fn action_is_known(action: u32) -> Result<(), String> {
    sys::knows_action(action).map_err(|err| err.to_string())
}
