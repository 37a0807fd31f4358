//! The most memory of a process and of all it starts.

use std::fs;

use tieline_testkit::probe;

/// What was seen of a tree of processes.
#[derive(Default)]
pub(super) struct Tree {
    /// The most that all of them had at one time, in KiB.
    together: u64,
    /// The most that one of them had, by the kernel's own mark, which nobody can miss by looking
    /// too late.
    alone: u64,
    n_processes: usize,
}

impl Tree {
    /// Looks at the tree below a process.
    pub(super) fn look(&mut self, root: u32) {
        let (mut found, mut together, mut n_processes) = (vec![root], 0, 0);
        while let Some(pid) = found.pop() {
            together += share_kib(pid).unwrap_or(0);
            self.alone = self.alone.max(probe::peak_rss_kib(pid).unwrap_or(0));
            n_processes += 1;
            found.extend(children(pid));
        }
        self.together = self.together.max(together);
        self.n_processes = self.n_processes.max(n_processes);
    }

    /// How many there were at one time.
    pub(super) fn n_processes(&self) -> usize {
        self.n_processes
    }

    /// The most there was, in bytes.
    pub(super) fn bytes(&self) -> f64 {
        self.together.max(self.alone) as f64 * 1024.0
    }
}

/// The memory of a process, with its share of what it has in common with others: one that was just
/// forked shares everything and weighs nothing.
fn share_kib(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the threads of a process started and did not wait for yet.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    let numbers = |list: String| -> Vec<u32> {
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    };
    lists.flatten().flat_map(numbers).collect()
}
