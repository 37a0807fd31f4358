//! Guessing from the outside whether a sandbox was in a command's way.

/// Words that commands print when they were not allowed to do something.
const WORDS: [&str; 7] = [
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
];

/// `128 + SIGSYS`: how a shell reports a command that seccomp killed.
const KILLED_BY_SECCOMP: i32 = 128 + 31;

/// Whether a command failed because it was not allowed something, as far as its end shows. A guess:
/// commands fail for want of permission outside a sandbox too, and some say nothing.
///
/// Wrong usage (2), "cannot be executed" (126) and "not found" (127) are never taken for it.
pub fn looks_denied(exit_code: i32, output: &str) -> bool {
    match exit_code {
        0 | 2 | 126 | 127 => false,
        KILLED_BY_SECCOMP => true,
        _ => {
            let output = output.to_lowercase();
            WORDS.iter().any(|word| output.contains(word))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::looks_denied;

    #[test]
    fn a_denial_shows_in_code_and_words() {
        assert!(looks_denied(1, "touch: cannot touch 'x': Read-only file system"));
        assert!(looks_denied(128, "fatal: cannot mkdir .git: Permission denied"));
        assert!(looks_denied(1, "socket: Operation not permitted"));
        assert!(looks_denied(159, ""));
        assert!(!looks_denied(0, "permission denied"));
        assert!(!looks_denied(1, "assertion failed"));
        for code in [2, 126, 127] {
            assert!(!looks_denied(code, "permission denied"));
        }
    }
}
