use std::path::PathBuf;

use super::*;
use crate::context::{Asking, Reaching};

fn context() -> Context {
    Context {
        cwd: PathBuf::from("/work"),
        asking: Asking::Never,
        reaching: Reaching::ReadOnly,
        model: "m".to_owned(),
        effort: None,
        summary: "auto".to_owned(),
        plan: false,
        personality: "none".to_owned(),
        instructions: None,
        base: None,
    }
}

fn call(id: &str) -> Call {
    let input = calls::Input::Arguments("{}".to_owned());
    Call { id: id.to_owned(), name: "exec_command".to_owned(), input }
}

fn called(id: &str) -> Item {
    let item = serde_json::json!({"type": "function_call", "call_id": id, "name": "exec_command", "arguments": "{}"});
    serde_json::from_value(item).unwrap()
}

#[test]
fn a_crash_cuts_off_the_calls_that_ran_and_not_those_that_had_ended() {
    let entries = vec![
        Entry::Began { version: VERSION },
        Entry::Turn { context: Box::new(context()) },
        Entry::Item(Item::message("user", "go")),
        Entry::Item(called("one")),
        Entry::Item(called("two")),
        Entry::Item(called("three")),
        Entry::Ran(call("two").output("two is done")),
    ];
    let core = Core::replay("s".to_owned(), context(), Scribe::none(), entries);
    let outputs: Vec<&str> = core.items.iter().skip(4).map(Item::get).collect();
    assert_eq!(outputs.len(), 3, "{outputs:?}");
    for (output, (id, words)) in outputs.iter().zip([
        ("one", "interrupted"),
        ("two", "two is done"),
        ("three", "interrupted"),
    ]) {
        assert!(output.contains(&format!("{id:?}")) && output.contains(words), "{output}");
    }
}

#[test]
fn an_output_that_entered_the_history_is_there_once() {
    let entries = vec![
        Entry::Began { version: VERSION },
        Entry::Turn { context: Box::new(context()) },
        Entry::Item(called("one")),
        Entry::Item(called("two")),
        Entry::Ran(call("two").output("two is done")),
        Entry::Item(call("one").output("one is done")),
        Entry::Item(call("two").output("two is done")),
    ];
    let core = Core::replay("s".to_owned(), context(), Scribe::none(), entries);
    assert_eq!(core.items.len(), 4);
}

#[tokio::test]
async fn a_fork_goes_on_from_an_answer_before_it() {
    let entries = || {
        vec![
            Entry::Began { version: VERSION },
            Entry::Turn { context: Box::new(context()) },
            Entry::Item(Item::message("user", "one")),
            Entry::Item(Item::message("assistant", "first")),
            Entry::Answered { response: Some("r1".to_owned()), usage: TokenUsage::default() },
            Entry::Turn { context: Box::new(context()) },
            Entry::Item(Item::message("user", "two")),
            Entry::Item(Item::message("assistant", "second")),
            Entry::Answered { response: Some("r2".to_owned()), usage: TokenUsage::default() },
        ]
    };
    let old = || Core::replay("s".to_owned(), context(), Scribe::none(), entries());
    let mut forked = old().fork("t".to_owned(), Scribe::none());
    assert!(forked.resume_after("r1"));
    assert_eq!(forked.items.len(), 2);
    // As its own journal has it.
    let forked = old().fork("t".to_owned(), Scribe::none());
    let kept = [
        Entry::Began { version: VERSION },
        Entry::Compacted(forked.items.clone()),
        Entry::Forked { turns: forked.turns.clone(), marks: forked.marks.clone() },
    ];
    let kept: Vec<Entry> = kept
        .iter()
        .map(|entry| serde_json::from_str(&serde_json::to_string(entry).unwrap()).unwrap())
        .collect();
    let mut again = Core::replay("t".to_owned(), context(), Scribe::none(), kept);
    assert!(again.resume_after("r1"));
    assert_eq!((again.items.len(), again.roll_back(1)), (2, 1));
}
