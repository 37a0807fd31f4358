//! Why a command was not run.

use serde::{Deserialize, Serialize};

/// The exit code of a helper that did not run the command. A command can end with it too:
/// [`is_refusal`] also looks for the line that says why.
pub const REFUSED: i32 = 125;

/// How that line begins.
const MARK: &str = "tieline-sandbox: not run: ";

/// What a policy needs from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Feature {
    /// Namespaces an ordinary user may make.
    UserNamespace,
    /// A view of the file system with read-only parts.
    MountNamespace,
    /// Processes that cannot be seen from, and do not outlive, the sandbox.
    PidNamespace,
    /// A network of its own.
    NetworkNamespace,
    /// Rules on files beyond mounts.
    Landlock,
    /// Filters on system calls.
    Seccomp,
    /// System calls that another process answers.
    SeccompNotify,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::UserNamespace,
        Self::MountNamespace,
        Self::PidNamespace,
        Self::NetworkNamespace,
        Self::Landlock,
        Self::Seccomp,
        Self::SeccompNotify,
    ];

    /// Its name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user namespaces",
            Self::MountNamespace => "mount namespaces",
            Self::PidNamespace => "PID namespaces",
            Self::NetworkNamespace => "network namespaces",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp filters",
            Self::SeccompNotify => "seccomp notifications",
        }
    }

    /// What to do when it is missing.
    pub fn advice(self) -> &'static str {
        match self {
            Self::UserNamespace => {
                "allow them (user.max_user_namespaces above 0, \
                 kernel.apparmor_restrict_unprivileged_userns=0, or a container that permits them)"
            }
            Self::MountNamespace => {
                "use Linux 5.12 or newer, and permit mounts in user namespaces (AppArmor and \
                 container profiles may forbid them)"
            }
            Self::PidNamespace => {
                "a container must show the whole of /proc (for Docker: \
                 --security-opt systempaths=unconfined)"
            }
            Self::NetworkNamespace => "use a kernel with CONFIG_NET_NS, or allow the network",
            Self::Landlock => "use Linux 5.13 or newer with `landlock` in the kernel's lsm= list",
            Self::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER",
            Self::SeccompNotify => {
                "use Linux 5.14 or newer, and do not run inside another seccomp supervisor"
            }
        }
    }
}

/// Why a command was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The policy cannot be meant like this, or names what is not there.
    #[error("{0}")]
    Policy(String),
    /// The system does not give what the policy needs.
    #[error("this system does not give {} ({detail}); {}", .feature.name(), .feature.advice())]
    Missing {
        /// What is missing.
        feature: Feature,
        /// What the system said.
        detail: String,
    },
}

impl Refusal {
    pub(crate) fn policy(text: impl Into<String>) -> Self {
        Self::Policy(text.into())
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn missing(feature: Feature, detail: impl Into<String>) -> Self {
        Self::Missing { feature, detail: detail.into() }
    }

    /// The line on stderr by which the caller knows.
    pub(crate) fn line(&self) -> String {
        format!("{MARK}{self}\n")
    }
}

/// Whether a helper that ended with this code and wrote this did not run the command at all.
///
/// A command that prints the same line and ends with the same code looks the same; it only fools its
/// caller about itself.
pub fn is_refusal(exit_code: Option<i32>, stderr: &str) -> bool {
    exit_code == Some(REFUSED) && refusal_in(stderr).is_some()
}

/// The sentence that says why a command was not run, if there is one.
pub fn refusal_in(stderr: &str) -> Option<&str> {
    stderr.lines().find_map(|line| line.strip_prefix(MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_known_by_code_and_line() {
        for feature in Feature::ALL {
            let line = Refusal::missing(feature, "no").line();
            assert!(is_refusal(Some(REFUSED), &line), "{line}");
            assert!(is_refusal(Some(REFUSED), &format!("warning\n{line}")), "{line}");
            assert!(!is_refusal(Some(1), &line) && !is_refusal(None, &line));
            assert!(refusal_in(&line).is_some_and(|it| it.contains(feature.name())));
        }
        assert!(!is_refusal(Some(REFUSED), "something else"));
    }
}
