//! Codex by `codex exec --json`.

mod samples;

use std::path::Path;

use tieline_agent::codex::Version;
use tieline_agent::codex_exec::{ExecDriver, Setup};
use tieline_agent::{Direction, ExitInfo, Ledger, Output, Session};
use tieline_event::{
    AskWhen, FrameNo, ItemBody, Kind, Mode, Policy, Prompt, TurnCompleted, TurnStatus,
};

use crate::recording::{Recording, check_snapshot, check_whole, fixtures, flag, load, recordings};
use crate::show::show;

/// What the recorded process was started with.
fn setup(scenario: &Path, recording: &Recording) -> Setup {
    let version = scenario.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let argv = &recording.argv;
    let sandbox = flag(argv, "-s").or(flag(argv, "--sandbox"));
    let policy = sandbox.map(|reach| Policy { ask: AskWhen::Never, reach: reach.parse().unwrap() });
    let yolo = argv.iter().any(|word| word == "--dangerously-bypass-approvals-and-sandbox");
    // In some recordings flags stand between the command and the session.
    let after = |command: &str| {
        let at = argv.iter().position(|word| word == command)?;
        argv[at + 1..].iter().find(|word| !word.starts_with('-')).cloned()
    };
    Setup {
        version: Version::find(version).unwrap(),
        mode: if yolo { Mode::Yolo } else { Mode::Default },
        policy,
        model: None,
        effort: None,
        left_out: Vec::new(),
        n_pictures: 0,
        session: after("resume").or(after("fork")),
        fork: argv.iter().any(|word| word == "fork"),
    }
}

struct Replay {
    session: Session,
    outputs: Vec<Output>,
    kept: Vec<u8>,
}

impl Replay {
    /// A process at the start of its turn.
    fn new(setup: Setup, ledger: Ledger, prompt: &Prompt) -> Self {
        let driver = Box::new(ExecDriver::new(setup));
        let mut session = Session::new(driver, ledger, 64 << 20, FrameNo(1));
        session.started();
        session.start_turn(prompt);
        let (_, closes) = session.take_writes(|_, _| {});
        assert!(closes, "it waits for the end of its input");
        let outputs = session.take_outputs();
        Self { session, outputs, kept: vec![] }
    }

    fn of(scenario: &Path, recording: &Recording) -> Self {
        let setup = setup(scenario, recording);
        let ledger = Ledger::new(0, setup.session.clone());
        Self::new(setup, ledger, &prompt(recording))
    }

    fn read(&mut self, bytes: &[u8]) {
        let kept = &mut self.kept;
        self.session.read(bytes, |direction, bytes| {
            assert_eq!(direction, Direction::Out);
            kept.extend_from_slice(&bytes);
        });
        self.outputs.extend(self.session.take_outputs());
    }

    fn exit(&mut self, exit: &ExitInfo) {
        let kept = &mut self.kept;
        self.session.exited(exit, |_, bytes| kept.extend_from_slice(&bytes));
        self.outputs.extend(self.session.take_outputs());
    }

    fn ends(&self) -> Vec<&TurnCompleted> {
        let mut ends = Vec::new();
        for output in &self.outputs {
            if let Output::Event(draft) = output
                && let Kind::TurnCompleted(end) = &draft.kind
            {
                ends.push(end);
            }
        }
        ends
    }

    /// The one end.
    fn end(&self) -> &TurnCompleted {
        let ends = self.ends();
        assert_eq!(ends.len(), 1, "{}", self.shown());
        ends[0]
    }

    fn shown(&self) -> String {
        self.outputs.iter().map(|output| format!("{}\n", show(output))).collect()
    }
}

fn prompt(recording: &Recording) -> Prompt {
    let last = recording.argv.last().unwrap().as_str();
    let said = recording.said.first().and_then(|(_, line)| line.as_str());
    Prompt::text(if last == "-" { said.unwrap() } else { last })
}

fn replay(scenario: &Path) -> Replay {
    let recording = load(scenario);
    let mut replay = Replay::of(scenario, &recording);
    replay.read(&recording.out);
    replay.exit(&recording.exit);
    assert_eq!(replay.kept, recording.out, "frames are the input byte for byte");
    replay
}

#[test]
fn every_recording_replays_whole_to_its_snapshot() {
    for scenario in recordings("codex_exec") {
        let replay = replay(&scenario);
        check_whole(&scenario, &replay.outputs, replay.session.ledger());
        check_snapshot("codex_exec", &scenario, &replay.outputs, replay.session.ledger());
    }
}

#[test]
fn any_chunking_and_any_cut_ends_the_turn_once() {
    for name in ["0.166.0/plan", "0.80.0/http500", "0.42.0/experimental-shell", "0.36.0/patch"] {
        let scenario = fixtures("codex_exec").join(name);
        let recording = load(&scenario);
        for cut in (0..=recording.out.len()).step_by(37) {
            for exit in [
                ExitInfo { signal: Some(9), ..ExitInfo::default() },
                ExitInfo { code: Some(1), ..ExitInfo::default() },
                ExitInfo { code: Some(0), ..ExitInfo::default() },
            ] {
                let mut replay = Replay::of(&scenario, &recording);
                for chunk in recording.out[..cut].chunks(23) {
                    replay.read(chunk);
                }
                replay.exit(&exit);
                assert_eq!(replay.kept, recording.out[..cut]);
                let end = replay.end();
                assert_eq!(end.error.is_some(), end.status == TurnStatus::Failed);
                assert_eq!(replay.session.ledger().open_items().len(), 0);
            }
        }
    }
}

#[test]
fn garbage_between_the_lines_becomes_unparsed_and_changes_nothing_else() {
    let garbage: [&[u8]; 7] = [
        b"Reading prompt from stdin...\n",
        b"\xff\xfe\x00\n",
        b"{\"type\":\"from.the.future\",\"x\":1}\n",
        b"{\"type\":7}\n",
        b"\n",
        b"{\"type\":\"item.completed\",\"item\":7}\n",
        b"{\"id\":\"0\",\"msg\":{\"type\":\"brand_new\"}}\n",
    ];
    for name in ["0.166.0/shell", "0.42.0/experimental-plan", "0.36.0/shell"] {
        let scenario = fixtures("codex_exec").join(name);
        let recording = load(&scenario);
        let clean = replay(&scenario);
        let mut dirty = Replay::of(&scenario, &recording);
        for (n, line) in recording.out.split_inclusive(|byte| *byte == b'\n').enumerate() {
            dirty.read(garbage[n % garbage.len()]);
            dirty.read(line);
        }
        dirty.exit(&recording.exit);
        let is_unparsed = |output: &&Output| matches!(output, Output::Event(draft) if matches!(draft.kind, Kind::Unparsed(_)));
        let shown = |outputs: &[Output]| -> Vec<String> {
            outputs.iter().filter(|output| !is_unparsed(output)).map(show).collect()
        };
        assert_eq!(shown(&dirty.outputs), shown(&clean.outputs), "{name}");
        assert!(dirty.outputs.iter().filter(is_unparsed).count() > 3, "{name}");
    }
}

const VERSION: Version = Version(0, 166, 0);
const SESSION: &str = "01a1e17d-2c64-7b33-9553-29b3812e2fb8";
const STARTED: &str =
    r#"{"type":"thread.started","thread_id":"01a1e17d-2c64-7b33-9553-29b3812e2fb8"}"#;
const TURN: &str = r#"{"type":"turn.started"}"#;

fn new_thread(version: Version) -> Setup {
    Setup {
        version,
        mode: Mode::BypassPermissions,
        policy: None,
        model: None,
        effort: None,
        left_out: Vec::new(),
        n_pictures: 0,
        session: None,
        fork: false,
    }
}

#[test]
fn ids_of_items_are_unique_in_the_conversation() {
    let scenario = |name: &str| fixtures("codex_exec").join("0.166.0").join(name);
    let mut ids = std::collections::BTreeSet::new();
    let mut n_items = 0;
    let mut ledger = Ledger::new(0, None);
    for name in ["resume-1", "resume-2"] {
        let recording = load(&scenario(name));
        let mut replay =
            Replay::new(setup(&scenario(name), &recording), ledger, &prompt(&recording));
        replay.read(&recording.out);
        replay.exit(&recording.exit);
        for output in &replay.outputs {
            if let Output::Event(draft) = output
                && let Kind::ItemCompleted(item) = &draft.kind
            {
                n_items += 1;
                ids.insert(item.id.clone());
            }
        }
        ledger = replay.session.into_ledger();
    }
    assert_eq!((ids.len(), n_items), (6, 6));
}

/// What two recorded turns of one thread used: each turn's own and the thread's so far.
fn used(version: &str, first: &str, second: &str, restart: bool) -> Vec<[Option<u64>; 2]> {
    let mut ledger = Ledger::new(0, None);
    let mut used = Vec::new();
    for name in [first, second] {
        let scenario = fixtures("codex_exec").join(version).join(name);
        let recording = load(&scenario);
        if restart {
            ledger = Ledger::new(0, ledger.session().map(str::to_owned));
        }
        let mut replay = Replay::new(setup(&scenario, &recording), ledger, &prompt(&recording));
        replay.read(&recording.out);
        replay.exit(&recording.exit);
        let total = replay.outputs.iter().find_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::UsageUpdated(usage) => Some(usage.output_tokens),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        used.push([replay.end().usage.as_ref().map(|usage| usage.output_tokens), total]);
        ledger = replay.session.into_ledger();
    }
    used
}

#[test]
fn a_turn_s_usage_is_its_own_whatever_the_version_counts() {
    let both = [[Some(50), Some(50)], [Some(101), Some(151)]];
    for version in ["0.50.0", "0.110.0", "0.140.0", "0.166.0"] {
        assert_eq!(used(version, "resume-1", "resume-2", false), both, "{version}");
    }
    // After a restart the thread's figures do not tell what one turn used.
    let half = [[Some(50), Some(50)], [None, Some(151)]];
    assert_eq!(used("0.166.0", "resume-1", "resume-2", true), half);
    let half = [[Some(50), Some(50)], [Some(101), None]];
    assert_eq!(used("0.50.0", "resume-1", "resume-2", true), half);
    // A branch counts on from where it began, which another conversation knows.
    assert_eq!(used("0.166.0", "resume-1", "fork", false)[1], [None, Some(252)]);
}

#[test]
fn the_turn_after_one_without_figures_does_not_count_for_both() {
    let failed = r#"{"type":"turn.failed","error":{"message":"no"}}"#;
    let usage = |n: u64| format!(r#"{{"type":"turn.completed","usage":{{"output_tokens":{n}}}}}"#);
    let going_on = Setup { session: Some(SESSION.to_owned()), ..new_thread(VERSION) };
    let mut ledger = Ledger::new(0, None);
    let mut seen = Vec::new();
    let turns = [
        (new_thread(VERSION), usage(10)),
        (going_on.clone(), failed.to_owned()),
        (going_on.clone(), usage(30)),
        (going_on, usage(37)),
    ];
    for (setup, end) in turns {
        let mut replay = Replay::new(setup, ledger, &Prompt::text("go"));
        replay.read(format!("{STARTED}\n{TURN}\n{end}\n").as_bytes());
        seen.push(replay.end().usage.as_ref().map(|usage| usage.output_tokens));
        ledger = replay.session.into_ledger();
    }
    assert_eq!(seen, [Some(10), None, None, Some(7)]);
}

/// An item of the recorded kind still has its body when it is read by itself.
#[test]
fn a_search_with_its_id_twice_is_one_item() {
    let replay = replay(&fixtures("codex_exec").join("0.166.0/websearch"));
    let searches: Vec<_> = replay
        .outputs
        .iter()
        .filter_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::ItemStarted(item) | Kind::ItemCompleted(item) => match &item.body {
                    ItemBody::WebSearch { .. } => {
                        Some((item.id.as_str().to_owned(), draft.native.item.clone().unwrap()))
                    }
                    _ => None,
                },
                _ => None,
            },
            Output::Delta(_) => None,
        })
        .collect();
    let one = ("t1:item_0".to_owned(), "ws_0060".to_owned());
    assert_eq!(searches, [one.clone(), one]);
}
