//! Lines that nobody understands.

use std::time::Duration;

use tieline_agent::claude::{ClaudeDriver, Lifetime};
use tieline_agent::{ExitInfo, Ledger, Output, Session};
use tieline_event::{FrameNo, FrameRange, Kind, Mode, Prompt, Unparsed};

use crate::clock::Clock;

const INIT: &[u8] = b"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}\n";

fn session() -> Session {
    let driver = Box::new(ClaudeDriver::new(Lifetime::Conversation, Mode::Default));
    let mut session = Session::new(driver, Ledger::new(0, None), 1 << 20, FrameNo(1));
    session.started();
    session.start_turn(&Prompt::text("go"));
    session.take_outputs();
    session
}

fn read(session: &mut Session, bytes: &[u8]) {
    session.read(bytes, |_, _| {});
}

/// What was not understood, with the frames of each.
fn taken(session: &mut Session) -> Vec<(Unparsed, FrameRange)> {
    let outputs = session.take_outputs().into_iter();
    let told = outputs.filter_map(|output| match output {
        Output::Event(draft) => match (draft.kind, draft.frames) {
            (Kind::Unparsed(it), Some(frames)) => Some((it, frames)),
            _ => None,
        },
        Output::Delta(_) => None,
    });
    told.collect()
}

#[test]
fn a_run_is_told_in_its_first_lines_and_one_event() {
    let mut session = session();
    read(&mut session, &b"x\n".repeat(50_000));
    assert_eq!(taken(&mut session).len(), 8, "the rest waits for its end");
    read(&mut session, b"\n");
    read(&mut session, b"yy\n");
    read(&mut session, INIT);
    let told = taken(&mut session);
    let [(rest, frames)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((rest.lines, rest.bytes, rest.head.as_str()), (49_993, 49_994, "x"));
    assert_eq!(frames.last.0 - frames.first.0, 49_993, "with the empty line in between");
    // A line that means something ends the run: the next one begins anew.
    read(&mut session, b"z\n");
    assert_eq!(taken(&mut session)[0].0.lines, 1);
}

#[test]
fn nothing_of_a_run_is_withheld() {
    // By time,
    let (mut one, mut clock) = (session(), Clock::default());
    read(&mut one, &b"x\n".repeat(20));
    taken(&mut one);
    clock.pass(&mut one, Duration::from_secs(1));
    assert_eq!(taken(&mut one)[0].0.lines, 12);
    // by its length,
    let mut long = session();
    read(&mut long, &b"x\n".repeat(250_000));
    let lines: Vec<u64> = taken(&mut long).iter().map(|(it, _)| it.lines).collect();
    assert_eq!(lines[8..], [100_000, 100_000]);
    // at the end of the process,
    long.exited(&ExitInfo { code: Some(0), ..ExitInfo::default() }, |_, _| {});
    assert_eq!(taken(&mut long)[0].0.lines, 49_992);
    // and before what follows upon it, in the turn it belongs to.
    let mut last = session();
    read(&mut last, &b"x\n".repeat(20));
    read(&mut last, b"{\"type\":\"result\",\"subtype\":7}\n");
    let outputs = last.take_outputs();
    let events: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Event(draft) => Some((draft.turn.is_some(), draft.kind.name())),
            Output::Delta(_) => None,
        })
        .collect();
    assert_eq!(events[8..], [(true, "unparsed"), (true, "turn.completed")], "{events:?}");
}
