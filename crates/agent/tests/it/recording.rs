//! Recorded runs of the real agents, and what must hold for each of them.

use std::path::{Path, PathBuf};

use expect_test::expect_file;
use serde_json::Value;
use tieline_agent::{ExitInfo, Ledger, Output};
use tieline_event::{Kind, TurnStatus};

use crate::show::show;

/// A recorded run: what was written at which point, what was read, how it ended.
pub(crate) struct Recording {
    pub(crate) argv: Vec<String>,
    pub(crate) out: Vec<u8>,
    /// Lines the host wrote, with the number of lines that had been read by then.
    pub(crate) said: Vec<(usize, Value)>,
    pub(crate) exit: ExitInfo,
}

/// Every recording of an agent: `fixtures/AGENT/VERSION/SCENARIO`, without a suffix. A new version
/// is a new folder, not new code.
pub(crate) fn recordings(agent: &str) -> Vec<PathBuf> {
    let root = fixtures(agent);
    let mut found = Vec::new();
    for version in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if let Some(scenario) = name.strip_suffix(".meta.json") {
                found.push(path.with_file_name(scenario));
            }
        }
    }
    found.sort();
    assert!(found.len() > 15, "only {} recordings of {agent}", found.len());
    found
}

pub(crate) fn load(scenario: &Path) -> Recording {
    let read = |suffix: &str| {
        let mut path = scenario.as_os_str().to_owned();
        path.push(suffix);
        std::fs::read(path).unwrap_or_default()
    };
    let meta: Value = serde_json::from_slice(&read(".meta.json")).unwrap();
    let mut n_read = 0;
    let mut said = Vec::new();
    for line in read(".trace.jsonl").split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let entry: Value = serde_json::from_slice(line).unwrap();
        match entry["dir"].as_str() {
            Some("out") => n_read += 1,
            _ => said.push((n_read, entry["line"].clone())),
        }
    }
    let argv = meta["argv"].as_array().unwrap();
    let code = meta["exit"].as_i64().map(|code| i32::try_from(code).unwrap());
    Recording {
        argv: argv.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect(),
        out: read(".out.jsonl"),
        said,
        exit: ExitInfo {
            code: code.filter(|code| *code >= 0),
            signal: code.filter(|code| *code < 0).map(|code| -code),
            stderr: String::from_utf8_lossy(&read(".stderr.txt")).into_owned(),
            stopped: None,
        },
    }
}

pub(crate) fn flag<'a>(argv: &'a [String], name: &str) -> Option<&'a str> {
    let at = argv.iter().position(|word| word == name)?;
    argv.get(at + 1).map(String::as_str)
}

/// Where the recordings of an agent are.
pub(crate) fn fixtures(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(agent)
}

/// Compares with the snapshot of the recording; `UPDATE_EXPECT=1` writes it.
pub(crate) fn check_snapshot(agent: &str, scenario: &Path, outputs: &[Output], ledger: &Ledger) {
    let mut text: String = outputs.iter().map(|output| format!("{}\n", show(output))).collect();
    if let Some(session) = ledger.session() {
        text.push_str(&format!("session {session}\n"));
    }
    let version = scenario.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let name = scenario.file_name().unwrap().to_str().unwrap();
    expect_file![format!("../snapshots/{agent}/{version}/{name}.txt")].assert_eq(&text);
}

/// Every turn ends exactly once, nothing stays open, nothing is unparsed.
pub(crate) fn check_whole(scenario: &Path, outputs: &[Output], ledger: &Ledger) {
    let mut open = Vec::new();
    for output in outputs {
        let Output::Event(draft) = output else { continue };
        match &draft.kind {
            Kind::TurnStarted(_) => open.push(draft.turn.clone()),
            Kind::TurnCompleted(end) => {
                let at = open.iter().position(|turn| *turn == draft.turn);
                open.remove(at.unwrap_or_else(|| panic!("{scenario:?}: a second end")));
                assert_eq!(end.error.is_some(), end.status == TurnStatus::Failed, "{scenario:?}");
            }
            Kind::Unparsed(it) => panic!("{scenario:?}: {it:?}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{scenario:?}: {open:?} never ended");
    assert_eq!(ledger.open_items().len(), 0, "{scenario:?}");
    assert_eq!(ledger.open_requests().count(), 0, "{scenario:?}");
}
