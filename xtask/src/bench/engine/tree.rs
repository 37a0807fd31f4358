//! The most memory of a process and of all it starts.

use std::collections::HashMap;
use std::fs;

use tieline_testkit::probe;

/// What was seen of a tree of processes: the most that each of them ever had.
#[derive(Default)]
pub(super) struct Tree {
    peaks: HashMap<u32, u64>,
}

impl Tree {
    /// Looks at the tree below a process.
    pub(super) fn look(&mut self, root: u32) {
        let mut found = vec![root];
        while let Some(pid) = found.pop() {
            if let Some(kib) = probe::peak_rss_kib(pid) {
                // The kernel's mark only rises, but another program may take the process over.
                let peak = self.peaks.entry(pid).or_default();
                *peak = kib.max(*peak);
            }
            found.extend(children(pid));
        }
    }

    pub(super) fn n_processes(&self) -> usize {
        self.peaks.len()
    }

    /// The sum of what each process had at most, in bytes.
    pub(super) fn bytes(&self) -> f64 {
        self.peaks.values().sum::<u64>() as f64 * 1024.0
    }
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
