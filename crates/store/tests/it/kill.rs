use crate::support::{Probe, all_frames, assert_whole, key, open, seqs};

/// Kills a writer after a number of acknowledgements that differs each time, then opens what it
/// left behind.
#[test]
fn what_was_acknowledged_survives_kill_9_a_hundred_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut last_seq = 0;
    let mut noise = 0x2545_f491_4f6c_dd1du64;
    for round in 0..100 {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        let mut probe = Probe::spawn(&["write", dir.path().to_str().unwrap(), "a"]);
        let mut acknowledged = last_seq;
        for _ in 0..noise % 60 {
            acknowledged = probe.line().expect("the writer writes on").parse().unwrap();
        }
        probe.kill();
        // What it said before it died counts too; a torn last line does not.
        while let Some(line) = probe.line() {
            acknowledged = acknowledged.max(line.parse().unwrap_or(0));
        }
        let store = open(dir.path());
        if store.conversation(&key("a")).unwrap().is_none() {
            assert_eq!(acknowledged, 0);
            continue;
        }
        let seqs = seqs(&store, "a");
        last_seq = seqs.len() as u64;
        assert_eq!(seqs, (1..=last_seq).collect::<Vec<_>>(), "round {round}");
        assert!(last_seq >= acknowledged, "round {round}: {acknowledged} were acknowledged");
    }
    let store = open(dir.path());
    let frames = all_frames(&store, "a");
    assert_eq!(frames.len() as u64, last_seq);
    for ((no, bytes), seq) in frames.iter().zip(1u64..) {
        assert_eq!((*no, bytes.len()), (seq, 1 + (seq as usize * 37) % 3000));
        assert!(bytes.iter().all(|byte| *byte == seq as u8));
    }
    assert_whole(&store);
}

#[test]
fn database_killed_while_it_is_made_opens_all_the_same() {
    for round in 0..40 {
        let dir = tempfile::tempdir().unwrap();
        let mut probe = Probe::spawn(&["write", dir.path().to_str().unwrap(), "a"]);
        let database = dir.path().join("tieline.db");
        // A little later each time, from the empty file to the finished schema.
        while std::fs::metadata(&database).map_or(0, |file| file.len() + 1) <= round / 10 * 4096 {
            std::thread::yield_now();
        }
        for _ in 0..round % 10 * 20 {
            std::thread::yield_now();
        }
        probe.kill();
        assert_whole(&open(dir.path()));
    }
}

#[test]
fn eight_processes_write_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let names: Vec<String> = (0..8).map(|n| format!("c{n}")).collect();
    let mut probes: Vec<_> =
        names.iter().map(|name| Probe::spawn(&["write", path, name])).collect();
    for _ in 0..50 {
        for probe in &mut probes {
            probe.line().expect("the writer writes on");
        }
    }
    drop(probes);
    let store = open(dir.path());
    for name in names {
        let seqs = seqs(&store, &name);
        assert!(seqs.len() >= 50);
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    }
    assert_whole(&store);
}
