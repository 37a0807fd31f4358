//! What the kernel offers to fence an agent in and to clean up after it.

use std::path::Path;
use std::time::Duration;

use tieline_proc::{RunLimits, Spec};

use super::{Check, State};

const AREA: &str = "sandbox";

pub(super) async fn check(checks: &mut Vec<Check>) {
    if cfg!(not(target_os = "linux")) {
        checks.push(Check::new(AREA, "kernel", State::Missing, "no sandbox outside Linux"));
        return;
    }
    checks.push(landlock());
    checks.push(user_namespaces().await);
    checks.push(subreaper());
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The kernel lists its security modules; which version of the interface it speaks follows from its
/// own version. Asking the kernel itself takes a system call that only the sandbox crate may make.
fn landlock() -> Check {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let modules = read("/sys/kernel/security/lsm");
    match modules {
        Some(modules) if modules.split(',').any(|name| name == "landlock") => {
            let abi = landlock_abi(&release);
            let detail = format!("enabled, ABI {abi} by the version of the kernel ({release})");
            Check::new(AREA, "landlock", State::Good, detail)
        }
        Some(_) => {
            Check::new(AREA, "landlock", State::Missing, format!("not enabled in {release}"))
                .advice("start the kernel with lsm=landlock,… to have it")
        }
        None => Check::new(
            AREA,
            "landlock",
            State::Missing,
            format!("unknown: /sys/kernel/security/lsm cannot be read (kernel {release})"),
        ),
    }
}

fn landlock_abi(release: &str) -> u32 {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|it| it.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let since = [(5, 13), (5, 19), (6, 2), (6, 7), (6, 10), (6, 12), (6, 15)];
    since
        .into_iter()
        .zip(1..)
        .filter(|(first, _)| version >= *first)
        .map(|(_, abi)| abi)
        .last()
        .unwrap_or(0)
}

/// Tries it where `unshare` is installed, else asks the kernel's settings.
async fn user_namespaces() -> Check {
    let name = "user namespaces";
    let path = std::env::var_os("PATH");
    if let Ok(unshare) =
        tieline_proc::resolve("unshare", Path::new("/nonexistent"), path.as_deref())
        && let Ok(true_program) =
            tieline_proc::resolve("true", Path::new("/nonexistent"), path.as_deref())
    {
        let spec = Spec::new(unshare, "/")
            .arg("--user")
            .arg("--map-root-user")
            .arg("--net")
            .arg(true_program);
        let limits = RunLimits { timeout: Duration::from_secs(5), max_output: 4096 };
        return match tieline_proc::run(spec, b"", limits).await {
            Ok(output) if output.exit.as_ref().is_some_and(|it| it.is_success()) => {
                Check::new(AREA, name, State::Good, "allowed, with a network of their own")
            }
            Ok(output) => {
                let why = output.stderr.to_text();
                Check::new(AREA, name, State::Missing, format!("refused: {}", why.trim()))
                    .advice("a sandbox that needs them will say so and not run")
            }
            Err(err) => Check::new(AREA, name, State::Missing, crate::error::chain(&err)),
        };
    }
    let most = read("/proc/sys/user/max_user_namespaces").and_then(|it| it.parse::<u64>().ok());
    match most {
        Some(0) => Check::new(AREA, name, State::Missing, "user.max_user_namespaces is 0"),
        Some(_) => Check::new(AREA, name, State::Good, "allowed by the settings; not tried"),
        None => Check::new(AREA, name, State::Missing, "unknown"),
    }
}

#[cfg(target_os = "linux")]
fn subreaper() -> Check {
    match rustix::process::child_subreaper() {
        Ok(_) => Check::new(AREA, "subreaper", State::Good, "whole process trees can be ended"),
        Err(err) => Check::new(AREA, "subreaper", State::Bad, err.to_string())
            .advice("processes that an agent leaves behind may survive it"),
    }
}

#[cfg(not(target_os = "linux"))]
fn subreaper() -> Check {
    Check::new(AREA, "subreaper", State::Missing, "only on Linux")
}

#[cfg(test)]
mod tests {
    use super::landlock_abi;

    #[test]
    fn the_interface_follows_from_the_kernel() {
        assert_eq!(landlock_abi("5.10.0-8-amd64"), 0);
        assert_eq!(landlock_abi("5.15.0"), 1);
        assert_eq!(landlock_abi("6.1.0-18"), 2);
        assert_eq!(landlock_abi("6.8.0-31-generic"), 4);
        assert_eq!(landlock_abi("6.12.3"), 6);
        assert_eq!(landlock_abi("7.0"), 7);
    }
}
