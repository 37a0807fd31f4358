//! The fake agent on its own pipes.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running fake agent; it is killed and reaped when dropped.
pub(crate) struct Fake {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) lines: Lines<BufReader<ChildStdout>>,
}

impl Fake {
    // These tests are about the program's own pipes, so nothing may stand between.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn spawn(args: &[&str], env: &[(&str, &str)]) -> Fake {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fake-agent"))
            .args(args)
            .env_clear()
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Fake { child, stdin, lines }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// The lines up to and with the first whose value at `pointer` is `wanted`.
    pub(crate) fn until_at(&mut self, pointer: &str, wanted: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.next());
            if seen.last().unwrap().pointer(pointer).is_some_and(|found| found == wanted) {
                return seen;
            }
        }
    }

    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
