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
