//! Finding and killing descendants.
//!
//! One pass cannot do it: between reading the list and killing what is on it, any of them may fork.
//! So each pass stops what it finds, from the root down, before it kills, and passes are repeated
//! until the caller has no child left.

use std::collections::BTreeSet;

/// Kills all descendants of this process except the direct children in `spare` and what is below
/// them. Adds the pid of everything that was killed to `killed`.
pub(crate) fn kill_descendants(spare: &BTreeSet<i32>, killed: &mut BTreeSet<i32>) {
    let me = std::process::id().cast_signed();
    let table = linux::Table::read();
    let mut found: Vec<linux::Process> = Vec::new();
    let mut parents = vec![me];
    while let Some(parent) = parents.pop() {
        for pid in table.children(parent) {
            if parent == me && spare.contains(&pid) {
                continue;
            }
            let Some(process) = linux::Process::open(pid, parent) else { continue };
            process.signal(libc::SIGSTOP);
            found.push(process);
            parents.push(pid);
        }
    }
    for process in found {
        if process.signal(libc::SIGKILL) && process.state == linux::State::Running {
            killed.insert(process.pid);
        }
    }
}

/// The children of this process that have not been reaped.
pub(crate) fn own_children() -> Vec<i32> {
    linux::Table::read().children(std::process::id().cast_signed())
}

/// The children that were surely not handed to this process by a host that was lost, but started by
/// itself. A host leads a session of its own, and nobody can enter a session from outside: what is in
/// ours does not come from a host. And the kernel hands orphans to the main thread, so that a child of
/// another thread is that thread's own.
pub(crate) fn never_adopted() -> BTreeSet<i32> {
    let me = std::process::id().cast_signed();
    let ours = linux::session(me);
    let adopted = linux::children_of_main_thread();
    let is_own = |pid: &i32| {
        adopted.as_ref().is_some_and(|adopted| !adopted.contains(pid))
            || (ours.is_some() && linux::session(*pid) == ours)
    };
    own_children().into_iter().filter(is_own).collect()
}

mod linux {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::os::fd::OwnedFd;

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use crate::sys;

    /// Who is whose child. A kernel without `CONFIG_PROC_CHILDREN` has no lists of children; there
    /// the whole of `/proc` is read instead, once for each pass.
    pub(super) enum Table {
        Lists,
        Scanned(BTreeMap<i32, Vec<i32>>),
    }

    impl Table {
        pub(super) fn read() -> Table {
            if fs::exists("/proc/thread-self/children").unwrap_or(false) {
                return Table::Lists;
            }
            Table::scan()
        }

        fn scan() -> Table {
            let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
            for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
                let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
                if let Some((_, parent)) = stat(pid) {
                    children.entry(parent).or_default().push(pid);
                }
            }
            Table::Scanned(children)
        }

        pub(super) fn children(&self, parent: i32) -> Vec<i32> {
            let Table::Scanned(children) = self else { return listed_children(parent) };
            children.get(&parent).cloned().unwrap_or_default()
        }
    }

    /// The children of all threads of a process.
    fn listed_children(parent: i32) -> Vec<i32> {
        let threads = fs::read_dir(format!("/proc/{parent}/task"));
        let lists = threads
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        lists
            .flat_map(|list| {
                list.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The children of the main thread, where the kernel has lists of children.
    pub(super) fn children_of_main_thread() -> Option<BTreeSet<i32>> {
        let me = std::process::id();
        let list = fs::read_to_string(format!("/proc/{me}/task/{me}/children")).ok()?;
        Some(list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }

    /// The session of a process.
    pub(super) fn session(pid: i32) -> Option<i32> {
        stat_fields(pid)?.split_whitespace().nth(3)?.parse().ok()
    }

    /// State and parent from `/proc/<pid>/stat`.
    fn stat(pid: i32) -> Option<(State, i32)> {
        let fields = stat_fields(pid)?;
        let mut fields = fields.split_whitespace();
        let state = if fields.next()? == "Z" { State::Zombie } else { State::Running };
        Some((state, fields.next()?.parse().ok()?))
    }

    /// What is behind the name in `/proc/<pid>/stat`.
    fn stat_fields(pid: i32) -> Option<String> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The command's name is in parentheses and may contain anything, parentheses too.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        Some(String::from_utf8_lossy(stat.get(name_end + 1..)?).into_owned())
    }

    /// A descendant, held so that its number cannot come to mean another process.
    pub(super) struct Process {
        pub(super) pid: i32,
        pub(super) state: State,
        handle: Option<OwnedFd>,
    }

    /// A process shows as a zombie also when only its first thread has ended and others run on. So
    /// zombies are killed like the rest and only not counted.
    #[derive(PartialEq)]
    pub(super) enum State {
        Running,
        Zombie,
    }

    impl Process {
        /// `None` if the process ended or has another parent by now. In the second case it has been
        /// handed to us and the next pass will find it.
        pub(super) fn open(pid: i32, parent: i32) -> Option<Process> {
            // Kernels before 5.3 have no such handle; there the number has to do.
            let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
            let (state, parent_now) = stat(pid)?;
            (parent_now == parent).then_some(Process { pid, state, handle })
        }

        pub(super) fn signal(&self, signal: i32) -> bool {
            match (&self.handle, Signal::from_named_raw(signal)) {
                (Some(handle), Some(signal)) => pidfd_send_signal(handle, signal).is_ok(),
                _ => sys::kill(self.pid, signal).is_ok(),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_kernel_without_lists_of_children_is_read_another_way() {
            let me = std::process::id().cast_signed();
            let (_, parent) = stat(me).unwrap();
            assert!(Table::scan().children(parent).contains(&me));
            assert!(Table::Lists.children(parent).contains(&me));
        }

        #[test]
        fn a_process_that_changed_its_parent_is_not_taken() {
            let me = std::process::id().cast_signed();
            let (_, parent) = stat(me).unwrap();
            assert!(Process::open(me, parent).is_some());
            assert!(Process::open(me, me).is_none());
        }
    }
}
