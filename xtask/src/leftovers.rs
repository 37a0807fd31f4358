//! Processes that a command leaves behind: tests that fail may leave agents and background tasks.
//!
//! A process whose parent ended becomes the child of the next subreaper above it. This program is
//! one, so after a command everything it started and did not end is a child of ours, whatever
//! session or group it went to.

#[cfg(target_os = "linux")]
mod linux {
    use std::{fs, io};

    use rustix::process::{
        Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
    };

    /// Makes this process the one that orphans below it are handed to.
    pub(crate) fn adopt() -> io::Result<()> {
        Ok(set_child_subreaper(Some(getpid()))?)
    }

    /// Ends every child of this process, and what those leave in turn. Says what each was.
    pub(crate) fn end_all() -> Vec<String> {
        let mut ended = Vec::new();
        loop {
            let children = children();
            if children.is_empty() {
                return ended;
            }
            for pid in children {
                ended.extend(command_line(pid));
                // One that has just ended by itself is reaped below like any other.
                kill_process(pid, Signal::KILL).ok();
                waitpid(Some(pid), WaitOptions::empty()).ok();
            }
        }
    }

    fn children() -> Vec<Pid> {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        let pids: Vec<_> = lists
            .flat_map(|list| list.split_whitespace().map(str::parse).collect::<Vec<_>>())
            .collect();
        pids.into_iter().filter_map(|pid| Pid::from_raw(pid.ok()?)).collect()
    }

    /// A process that has ended and was not reaped has none.
    fn command_line(pid: Pid) -> Option<String> {
        let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).ok()?;
        let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let line = words.join(" ").trim_end().to_owned();
        (!line.is_empty()).then_some(line)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::command;

        #[test]
        fn an_orphan_in_a_session_of_its_own_is_ended() {
            adopt().unwrap();
            // It closes its output when it is what it will be: one that is becoming another program
            // has no command line for a moment.
            let script = "setsid sh -c 'echo ready; exec >&- 2>&-; kill -STOP $$' &";
            let output = command("sh").args(["-c", script]).output().unwrap();
            assert_eq!(output.stdout, b"ready\n");
            let ended = end_all();
            assert_eq!(ended.len(), 1, "{ended:?}");
            assert_eq!(children(), []);
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{adopt, end_all};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(crate) fn adopt() -> std::io::Result<()> {
        Ok(())
    }

    pub(crate) fn end_all() -> Vec<String> {
        Vec::new()
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{adopt, end_all};
