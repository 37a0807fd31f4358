use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::Value;
use tieline_wire::responses::{
    Item, ItemView, Output, ReasoningOptions, Request, StreamEvent, Tool,
};
use tieline_wire::sse::Parser;

use super::{Answer, Cue, Opening, Scripted, script};

/// A conversation with a script, without an engine: what it says and calls is written down, and a
/// test says what came of each call.
struct Stage {
    scripted: Scripted,
    items: Vec<Item>,
    turns: Vec<usize>,
    plans: bool,
    nonce: u32,
    told: String,
}

impl Stage {
    fn new(text: &str) -> Self {
        let script = script::parse(text).unwrap();
        Self {
            scripted: Scripted { script, fast: true },
            items: Vec::new(),
            turns: Vec::new(),
            plans: false,
            nonce: 0,
            told: String::new(),
        }
    }

    fn planning(text: &str) -> Self {
        Self { plans: true, ..Self::new(text) }
    }

    fn request(&self) -> Request {
        let tool = |name: &str| Tool::Function {
            name: name.to_owned(),
            description: String::new(),
            strict: false,
            parameters: Arc::from(serde_json::value::to_raw_value("").unwrap()),
        };
        let tools = if self.plans { vec![tool("x")] } else { vec![tool("x"), tool("update_plan")] };
        Request { tools: tools.into(), ..Request::new("scripted", self.items.clone()) }
    }

    /// A turn of the user, up to a call or its end.
    fn says(&mut self, prompt: &str) -> &mut Self {
        self.turns.push(self.items.len());
        self.items.push(Item::message("developer", "what holds"));
        self.items.push(Item::message("user", "<environment_context>\n</environment_context>"));
        self.hears(prompt).plays()
    }

    /// Something the user says.
    fn hears(&mut self, text: &str) -> &mut Self {
        self.items.push(Item::message("user", text));
        self
    }

    /// What came of the call that is open; then the script goes on.
    fn gives(&mut self, output: &str) -> &mut Self {
        let output = Output::Text(output.into());
        self.items.push(match self.items.last().unwrap().view() {
            ItemView::FunctionCall(it) => Item::function_output(&it.call_id, output),
            ItemView::CustomToolCall(it) => Item::custom_output(&it.call_id, output),
            other => panic!("no call is open: {other:?}"),
        });
        self.plays()
    }

    /// Asks the model until it calls something or is done.
    fn plays(&mut self) -> &mut Self {
        while self.answer() {}
        self
    }

    /// Asks the model once; says whether it has more to say without anybody's doing.
    fn answer(&mut self) -> bool {
        self.nonce += 1;
        let request = self.request();
        let mut answer = self.scripted.answer(&request, &self.turns, self.nonce);
        loop {
            match answer.open() {
                Opening::Ready => break,
                Opening::Pause(time) => self.told.push_str(&format!("sleeps {time:?}\n")),
                Opening::Refusal { status, text } => {
                    self.told.push_str(&format!("fails {status} {text}\n"));
                    return false;
                }
            }
        }
        let mut parser = Parser::default();
        let pauses: Duration = answer
            .by_ref()
            .map(|cue| match cue {
                Cue::Event(event) => {
                    parser.feed(event.as_bytes());
                    Duration::ZERO
                }
                Cue::Pause(time) => time,
            })
            .sum();
        if pauses >= Duration::from_secs(1) {
            self.told.push_str(&format!("sleeps {pauses:?}\n"));
        }
        parser.finish();
        let mut called = false;
        let mut grown = String::new();
        while parser.advance().unwrap() {
            match StreamEvent::parse(parser.event().data) {
                StreamEvent::Text(it) | StreamEvent::Summary(it) => grown.push_str(&it.delta),
                StreamEvent::ItemDone(it) => {
                    let item = it.to_item();
                    called |= tell(&item, &mut self.told, &std::mem::take(&mut grown));
                    self.items.push(item);
                }
                StreamEvent::Completed(it) => {
                    let usage = it.usage.unwrap();
                    if usage.total_tokens > 0 {
                        let (read, written) = (usage.input_tokens, usage.output_tokens);
                        self.told.push_str(&format!("used {read} and {written}\n"));
                    }
                    let is_done = it.end_turn.unwrap();
                    if is_done {
                        self.told.push_str("done\n");
                    }
                    return !is_done && !called;
                }
                StreamEvent::Failed(it) => {
                    let message = it.error.unwrap().message;
                    self.told.push_str(&format!("fails: {message}\n"));
                    return false;
                }
                _ => {}
            }
        }
        panic!("an answer without an end");
    }

    /// The user takes turns back.
    fn rolls_back(&mut self, turns: usize) -> &mut Self {
        let left = self.turns.len() - turns;
        self.items.truncate(self.turns[left]);
        self.turns.truncate(left);
        self
    }

    #[track_caller]
    fn check(&mut self, expected: Expect) -> &mut Self {
        expected.assert_eq(&std::mem::take(&mut self.told));
        self
    }
}

/// Writes an item down; says whether it is a call.
fn tell(item: &Item, told: &mut String, grown: &str) -> bool {
    let line = match item.view() {
        ItemView::Message(it) => {
            assert_eq!(it.text(), grown);
            format!("says {:?}\n", it.text())
        }
        ItemView::Reasoning(it) => {
            let text: String = it.summary.iter().map(|part| part.text()).collect();
            assert_eq!(text, grown);
            format!("thinks {text:?}\n")
        }
        ItemView::FunctionCall(it) => format!("calls {} {}\n", &*it.name, sorted(&it.arguments)),
        ItemView::CustomToolCall(it) => {
            format!("calls {}\n{}", &*it.name, it.input.replace("\n \n", "\n _\n"))
        }
        other => panic!("{other:?}"),
    };
    told.push_str(&line);
    line.starts_with("calls")
}

/// JSON with its keys in order, which depends on what else is built.
fn sorted(json: &str) -> String {
    fn sort(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields: std::collections::BTreeMap<_, _> = fields.into_iter().collect();
                fields.into_iter().map(|(key, value)| (key, sort(value))).collect()
            }
            Value::Array(values) => values.into_iter().map(sort).collect(),
            value => value,
        }
    }
    sort(serde_json::from_str(json).unwrap()).to_string()
}

const RAN: &str = "Exit code: 0\nOutput:\nfine";

#[test]
fn the_embedded_script_plays_a_whole_conversation() {
    let mut stage = Stage::new(script::DEFAULT);
    stage.says("hi").gives("Plan updated").gives("Plan updated").gives(RAN);
    stage.gives("Plan updated").gives("Plan updated");
    stage.check(expect![[r#"
        thinks "The user wants to see what a conversation looks like. A command, a small file and an edit of it will show the most important things."
        says "Hello! I am tieline's built-in **demo agent**: a script, not a model. What I do here is real, though. I will\n\n1. look at this machine,\n2. write a small file, for which I need your permission,\n3. change a line of it and read it back."
        calls update_plan {"plan":[{"status":"pending","step":"Look at the machine"},{"status":"pending","step":"Write hello.md"},{"status":"pending","step":"Edit and check it"}]}
        calls update_plan {"plan":[{"status":"in_progress","step":"Look at the machine"},{"status":"pending","step":"Write hello.md"},{"status":"pending","step":"Edit and check it"}]}
        calls shell_command {"command":"uname -sm && date","login":false,"timeout_ms":120000}
        calls update_plan {"plan":[{"status":"completed","step":"Look at the machine"},{"status":"pending","step":"Write hello.md"},{"status":"pending","step":"Edit and check it"}]}
        calls update_plan {"plan":[{"status":"completed","step":"Look at the machine"},{"status":"in_progress","step":"Write hello.md"},{"status":"pending","step":"Edit and check it"}]}
        says "Now the file. You decide whether I may write it."
        calls apply_patch
        *** Begin Patch
        *** Add File: hello.md
        +# Hello from tieline
        +
        +You said: hi
        +
        +- status: draft
        *** End Patch
    "#]]);
    stage.gives("Success.").gives("Plan updated").gives("Plan updated");
    stage.gives("L1: # Hello from tieline\nL2: \nL3: You said: hi\nL4: \nL5: - status: draft\n");
    stage.gives("Success.").gives(RAN).gives("Plan updated");
    stage.check(expect![[r#"
        calls update_plan {"plan":[{"status":"completed","step":"Look at the machine"},{"status":"completed","step":"Write hello.md"},{"status":"pending","step":"Edit and check it"}]}
        calls update_plan {"plan":[{"status":"completed","step":"Look at the machine"},{"status":"completed","step":"Write hello.md"},{"status":"in_progress","step":"Edit and check it"}]}
        calls read_file {"file_path":"hello.md","offset":1}
        calls apply_patch
        *** Begin Patch
        *** Update File: hello.md
        @@
         _
         You said: hi
         _
        -- status: draft
        +- status: finished
        *** End Patch
        calls shell_command {"command":"cat hello.md","login":false,"timeout_ms":120000}
        calls update_plan {"plan":[{"status":"completed","step":"Look at the machine"},{"status":"completed","step":"Write hello.md"},{"status":"completed","step":"Edit and check it"}]}
        says "Done: `hello.md` is in the workspace, written and edited through the same requests and events that a real agent uses.\n\nThe transcript of all this is kept. Say something else, or begin with a real agent: `tieline run --agent claude \"…\"`."
        done
    "#]]);
    stage.says("and now?").check(expect![[r#"
        says "You said: and now?\n\nI can only repeat it, because I am a scripted agent. For real answers, install Claude Code (`npm install -g @anthropic-ai/claude-code`), log in once with `claude`, and start `tieline run --agent claude \"…\"`. `tieline doctor` shows which agents it finds."
        done
    "#]]);
}

#[test]
fn a_no_takes_the_other_way_through_the_section() {
    let mut told = Vec::new();
    for no in ["rejected by user", "rejected by user: not here", "rejected: nobody is asked here"] {
        let mut stage = Stage::new("run make\nsay made\nrefused\nsay not made\nrun ls\nsay seen");
        stage.says("go").gives(no).gives("rejected by user");
        told.push(stage.told);
    }
    assert!(told.iter().all(|it| *it == told[0]), "{told:#?}");
    expect![[r#"
        calls shell_command {"command":"make","login":false,"timeout_ms":120000}
        says "not made"
        calls shell_command {"command":"ls","login":false,"timeout_ms":120000}
        says "seen"
        done
    "#]]
    .assert_eq(&told[0]);
    // What a command prints is no refusal.
    let mut stage = Stage::new("run make\nsay made\nrefused\nsay not made");
    stage.says("go").gives("Exit code: 1\nOutput:\nrejected by user").check(expect![[r#"
        calls shell_command {"command":"make","login":false,"timeout_ms":120000}
        says "made"
        done
    "#]]);
}

#[test]
fn without_another_way_a_no_changes_nothing() {
    let mut stage = Stage::new("run make\nsay on");
    stage.says("go").gives("rejected by user").check(expect![[r#"
        calls shell_command {"command":"make","login":false,"timeout_ms":120000}
        says "on"
        done
    "#]]);
}

#[test]
fn a_loop_calls_as_often_as_it_says() {
    let mut stage = Stage::new("loop 2\nsay round\nloop 2\nrun make\nend\nend\nsay end");
    stage.says("go").gives(RAN).gives(RAN).gives(RAN).gives(RAN).check(expect![[r#"
        says "round"
        calls shell_command {"command":"make","login":false,"timeout_ms":120000}
        calls shell_command {"command":"make","login":false,"timeout_ms":120000}
        says "round"
        calls shell_command {"command":"make","login":false,"timeout_ms":120000}
        calls shell_command {"command":"make","login":false,"timeout_ms":120000}
        says "end"
        done
    "#]]);
    let ids: std::collections::HashSet<String> = stage
        .items
        .iter()
        .filter_map(|item| match item.view() {
            ItemView::FunctionCall(it) => Some(it.call_id.into()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 4);
}

#[test]
fn a_long_play_is_one_answer() {
    let mut stage = Stage::new("loop 20\nloop 50\nsay word\nend\nend");
    stage.says("go");
    assert_eq!((stage.told.matches("word").count(), stage.nonce), (1000, 1));
}

#[test]
fn a_session_goes_on_in_the_middle_of_a_section() {
    let mut stage = Stage::new("say a\nrun one\nrun two\nsay b\n---\nsay c");
    stage.says("go").gives(RAN);
    stage.told.clear();
    // Nothing is left but the conversation.
    let items = stage.items.clone();
    let mut other = Stage::new("say a\nrun one\nrun two\nsay b\n---\nsay c");
    (other.items, other.turns) = (items, stage.turns.clone());
    other.gives(RAN).check(expect![[r#"
        says "b"
        done
    "#]]);
    // A turn that was cut off is over.
    stage.items.push(Item::function_output("none", Output::Text("interrupted".into())));
    stage.hears("<turn_aborted>\n</turn_aborted>").says("next").check(expect![[r#"
        says "c"
        done
    "#]]);
}

#[test]
fn turns_taken_back_are_played_again() {
    let mut stage = Stage::new("say one\n---\nrun two\nsay two\n---\nsay three");
    stage.says("a").says("b").gives(RAN).says("c");
    stage.told.clear();
    stage.rolls_back(2).says("b again").gives(RAN).check(expect![[r#"
        calls shell_command {"command":"two","login":false,"timeout_ms":120000}
        says "two"
        done
    "#]]);
    stage.says("/restart").says("d").check(expect![[r#"
        says "one"
        done
        calls shell_command {"command":"two","login":false,"timeout_ms":120000}
    "#]]);
}

#[test]
fn a_fork_counts_the_messages_before_it() {
    let mut stage = Stage::new("say one\n---\nsay two\n---\nsay three");
    stage.says("a").says("b");
    stage.turns.clear();
    stage.told.clear();
    stage.says("c").check(expect![[r#"
        says "three"
        done
    "#]]);
}

#[test]
fn what_is_edited_is_read_before() {
    let mut stage = Stage::new(r#"edit a.txt "two\nthree" => "2 {prompt}""#);
    stage.says("{answer}").gives("L1: one\nL2: two\nL3: three\nL4: four\n").check(expect![[r#"
        calls read_file {"file_path":"a.txt","offset":1}
        calls apply_patch
        *** Begin Patch
        *** Update File: a.txt
        @@
         one
        -two
        -three
        +2 {answer}
         four
        *** End Patch
    "#]]);
    stage.gives("Success.").check(expect![[r#"
        done
    "#]]);
    // A long file is read piece by piece, and a place is told from others that look like it.
    let mut stage = Stage::new(r#"edit a.txt "x" => "y""#);
    stage.says("go").gives("L1: a\nL2: b\n… more from line 3\n").gives("L3: x\n").check(expect![[
        r#"
        calls read_file {"file_path":"a.txt","offset":1}
        calls read_file {"file_path":"a.txt","offset":3}
        calls apply_patch
        *** Begin Patch
        *** Update File: a.txt
        @@
         a
         b
        -x
        +y
        *** End Patch
    "#
    ]]);
}

#[test]
fn an_edit_that_cannot_be_is_told() {
    let mut told = String::new();
    for text in [
        "cannot read /w/a.txt: No such file or directory (os error 2)",
        "the file is empty",
        "L1: b\n",
        "L1: a\nL2: a\n",
    ] {
        let mut stage = Stage::new("edit a.txt \"a\" => \"b\"\nsay on");
        stage.says("go");
        stage.told.clear();
        stage.gives(text);
        told.push_str(&stage.told);
    }
    expect![[r#"
        says "I cannot edit a.txt: cannot read /w/a.txt: No such file or directory (os error 2)"
        says "on"
        done
        says "I cannot edit a.txt: it does not contain \"a\"."
        says "on"
        done
        says "I cannot edit a.txt: it does not contain \"a\"."
        says "on"
        done
        says "I cannot edit a.txt: it contains \"a\" 2 times."
        says "on"
        done
    "#]]
    .assert_eq(&told);
}

#[test]
fn the_chosen_answer_is_known_afterwards() {
    let text = "ask Which colour? | Red: warm | Blue\nsay {answer}, {{prompt}}.\nrefused\nsay none";
    let mut stage = Stage::new(text);
    stage.says("{answer}").gives(r#"{"answers":{"answer":{"answers":["Blue"]}}}"#);
    stage.check(expect![[r#"
        calls request_user_input {"questions":[{"header":"Which","id":"answer","options":[{"description":"warm","label":"Red"},{"description":"","label":"Blue"}],"question":"Which colour?"}]}
        says "Blue, {{answer}}."
        done
    "#]]);
    let mut stage = Stage::new(text);
    stage.says("hi").gives(r#"{"answers":{}}"#);
    assert!(stage.told.ends_with("says \"none\"\ndone\n"), "{}", stage.told);
}

#[test]
fn in_plan_mode_there_is_a_plan_and_no_list_of_steps() {
    let text = "plan a; b\nstep 1 done\nexit-plan First a.\nsay never\n---\nexit-plan x\nsay on";
    Stage::planning(text).says("go").check(expect![[r#"
        says "<proposed_plan>\nFirst a.\n</proposed_plan>"
        done
    "#]]);
    let mut stage = Stage::new(text);
    stage.says("go").gives("Plan updated").gives("Plan updated").check(expect![[r#"
        calls update_plan {"plan":[{"status":"pending","step":"a"},{"status":"pending","step":"b"}]}
        calls update_plan {"plan":[{"status":"completed","step":"a"},{"status":"pending","step":"b"}]}
        says "never"
        done
    "#]]);
}

#[test]
fn what_is_said_during_a_turn_is_answered_at_its_end() {
    let mut stage = Stage::new("run make\nsay made\n---\nsay next");
    stage.says("go");
    let output = match stage.items.last().unwrap().view() {
        ItemView::FunctionCall(it) => Item::function_output(&it.call_id, Output::Text(RAN.into())),
        other => panic!("{other:?}"),
    };
    stage.items.push(output);
    stage.hears("hurry").hears("now").plays().hears("thanks").plays().says("more");
    stage.check(expect![[r#"
        calls shell_command {"command":"make","login":false,"timeout_ms":120000}
        says "made"
        says "While I was at it you said \"hurry\" and \"now\". Noted."
        done
        says "While I was at it you said \"thanks\". Noted."
        done
        says "next"
        done
    "#]]);
}

#[test]
fn silence_and_failure_follow_what_was_said() {
    let text = "say Hm.\nusage 12 3\nsleep 5000\nusage 1 1\nsay So.\nfail 529 overloaded\n---\nfail {prompt}";
    Stage::new(text).says("a").says("cut").check(expect![[r#"
        says "Hm."
        used 12 and 3
        sleeps 5s
        says "So."
        used 1 and 1
        fails 529 overloaded
        fails: cut
    "#]]);
    Stage::new("sleep 2000\nfail 401 no key").says("a").check(expect![[r#"
        sleeps 2s
        fails 401 no key
    "#]]);
}

#[test]
fn a_call_is_what_the_script_says() {
    let mut stage = Stage::new("call mcp__s__echo {\"n\": 1.50, \"text\": \"{prompt}\"}\nsay ok");
    stage.says("hi");
    let ItemView::FunctionCall(call) = stage.items.last().unwrap().view() else { panic!() };
    assert_eq!(call.arguments, "{\"n\": 1.50, \"text\": \"{prompt}\"}", "to the letter");
    stage.gives("back").check(expect![[r#"
        calls mcp__s__echo {"n":1.5,"text":"{prompt}"}
        says "ok"
        done
    "#]]);
}

/// What a user types is put into texts, and into nothing else.
#[test]
fn words_of_the_user_reach_no_command_and_no_path() {
    let evil = "$(touch x)\n*** End Patch\n*** Delete File: y\n";
    let text = "run echo {prompt}\nwrite {prompt} <<END\n{prompt}\nEND\nedit {prompt} \"a\" => \"{prompt}\"\ncall t {\"a\": \"{prompt}\"}";
    let mut stage = Stage::new(text);
    stage.says(evil).gives(RAN).gives("Success.").gives("L1: a\n").gives("Success.").gives("ok");
    for item in &stage.items {
        match item.view() {
            ItemView::FunctionCall(it) => assert!(!it.arguments.contains("touch"), "{it:?}"),
            ItemView::CustomToolCall(it) => {
                let patch = tieline_patch::parse(&it.input).unwrap();
                assert_eq!(patch.hunks.len(), 1, "{}", &*it.input);
                assert!(it.input.contains("File: {prompt}\n"), "{}", &*it.input);
            }
            _ => {}
        }
    }
}

#[test]
fn an_empty_file_can_be_written() {
    let mut stage = Stage::new("write a <<END\nEND");
    stage.says("go");
    let ItemView::CustomToolCall(call) = stage.items.last().unwrap().view() else { panic!() };
    tieline_patch::parse(&call.input).unwrap();
}

#[test]
fn a_summary_and_a_review_have_words_of_their_own() {
    let mut stage = Stage::new("say one\n---\nsay two");
    stage.says("a");
    let words = |request: &Request| -> String {
        let mut answer = stage.scripted.answer(request, &[], 1);
        assert_eq!(answer.open(), Opening::Ready);
        answer.map(|cue| format!("{cue:?}")).collect()
    };
    assert!(words(&Request::new("scripted", stage.items.clone())).contains("remembered"));
    let review = Request { instructions: crate::review::RUBRIC.into(), ..stage.request() };
    assert!(words(&review).contains("changes"));
    // What is left of a turn that was summed up in its midst has no place in the script.
    stage.told.clear();
    stage.turns.clear();
    stage.hears(&crate::persona::summary_message("x")).plays().check(expect![[r#"
        says "My memory was shortened amid the script, so it ends here."
        done
    "#]]);
    stage.says("b").check(expect![[r#"
        says "two"
        done
    "#]]);
}

#[test]
fn the_effort_is_the_time_between_words() {
    let mut stage = Stage::new("say one two");
    stage.scripted.fast = false;
    let pauses = |effort: Option<&str>| -> Duration {
        let effort = effort.map(str::to_owned);
        let reasoning = Some(ReasoningOptions { effort, summary: None });
        let request = Request { reasoning, ..stage.request() };
        let mut answer: Answer = stage.scripted.answer(&request, &[], 1);
        answer.open();
        answer
            .map(|cue| match cue {
                Cue::Pause(time) => time,
                Cue::Event(_) => Duration::ZERO,
            })
            .sum()
    };
    let took = [Some("low"), None, Some("medium"), Some("high")].map(pauses);
    assert_eq!(took.map(|time| time.as_millis()), [0, 30, 30, 90]);
}

#[test]
fn it_plays_under_any_models_name() {
    let stage = Stage::new("say hi");
    let events = |model: &str| {
        let request = Request { model: model.to_owned(), ..stage.request() };
        let mut answer = stage.scripted.answer(&request, &[], 1);
        answer.open();
        answer.count()
    };
    assert_eq!(events("opus"), events(crate::scripted::MODEL));
}

#[test]
fn the_events_are_those_of_a_provider() {
    let stage = Stage::new("say Hi you\nusage 3 4\nthink Hm.\nrun ls");
    let mut answer = stage.scripted.answer(&stage.request(), &[], 0xab);
    answer.open();
    let events: Vec<String> = answer
        .filter_map(|cue| match cue {
            Cue::Event(event) => {
                let (kind, data) = event.trim_end().split_once('\n').unwrap();
                let data: Value =
                    serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                assert_eq!(data["type"], kind.strip_prefix("event: ").unwrap());
                Some(sorted(&data.to_string()))
            }
            Cue::Pause(_) => None,
        })
        .collect();
    expect![[r#"
        {"response":{"id":"resp_000000ab"},"type":"response.created"}
        {"item":{"content":[],"id":"msg_0_1_000000ab","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.added"}
        {"delta":"Hi ","item_id":"msg_0_1_000000ab","output_index":0,"type":"response.output_text.delta"}
        {"delta":"you","item_id":"msg_0_1_000000ab","output_index":0,"type":"response.output_text.delta"}
        {"item":{"content":[{"text":"Hi you","type":"output_text"}],"id":"msg_0_1_000000ab","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.done"}
        {"item":{"id":"rs_0_2_000000ab","summary":[],"type":"reasoning"},"output_index":1,"type":"response.output_item.added"}
        {"delta":"Hm.","item_id":"rs_0_2_000000ab","output_index":1,"type":"response.reasoning_summary_text.delta"}
        {"item":{"id":"rs_0_2_000000ab","summary":[{"text":"Hm.","type":"summary_text"}],"type":"reasoning"},"output_index":1,"type":"response.output_item.done"}
        {"response":{"end_turn":false,"id":"resp_000000ab","usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}},"type":"response.completed"}"#]].assert_eq(&events.join("\n"));
}

#[track_caller]
fn check_script(text: &str, expected: Expect) {
    expected.assert_eq(&script::parse(text).unwrap_err().to_string());
}

#[test]
fn a_mistake_in_a_script_is_told_with_its_line() {
    check_script(
        "say hi\n\n# comment\nsing hi",
        expect!["line 4 of the script: unknown verb `sing`"],
    );
    check_script("", expect!["line 1 of the script: there is no step before this"]);
    check_script("say hi\n---\n", expect!["line 2 of the script: there is no step before this"]);
    check_script("say", expect!["line 1 of the script: `say` needs a text"]);
    check_script(
        "say hi\nsay <<END\nno end",
        expect![[r#"line 2 of the script: no line "END" ends this text"#]],
    );
    check_script("run", expect!["line 1 of the script: `run` needs a command"]);
    check_script("write a", expect!["line 1 of the script: `write` needs a path and `<<END`"]);
    check_script(
        "write <<END\nEND",
        expect!["line 1 of the script: `write` needs a path and `<<END`"],
    );
    check_script(
        "edit a \"x\"",
        expect![[r#"line 1 of the script: `edit` needs a path and "old" => "new""#]],
    );
    check_script(
        "edit a \"\" => \"x\"",
        expect![[r#"line 1 of the script: `edit` needs a path and "old" => "new""#]],
    );
    check_script(
        "edit a \"\\x\" => \"x\"",
        expect![[r#"line 1 of the script: only \n, \t, \" and \\ can be escaped"#]],
    );
    check_script(
        "ask Which? | one",
        expect![
            "line 1 of the script: `ask` needs a question and two options or more, with `|` before each"
        ],
    );
    check_script(
        "plan ;",
        expect!["line 1 of the script: `plan` needs steps, with `;` between them"],
    );
    check_script(
        "step 0 done",
        expect!["line 1 of the script: `step` needs a number from 1 and `doing` or `done`"],
    );
    check_script(
        "step 1 over",
        expect!["line 1 of the script: `step` needs a number from 1 and `doing` or `done`"],
    );
    check_script("sleep soon", expect!["line 1 of the script: `sleep` needs milliseconds"]);
    check_script(
        "usage 1",
        expect!["line 1 of the script: `usage` needs two numbers, tokens read and tokens written"],
    );
    for bad in ["call", "call mcp__s__t", "call t [1]", "call t {x}", "call t {} => x"] {
        let error = script::parse(bad).unwrap_err().to_string();
        assert!(error.ends_with("`call` needs a tool and a JSON object"), "{error}");
    }
    check_script("fail 500", expect!["line 1 of the script: `fail` needs a text"]);
    check_script(
        "say a\nloop 2\nsay hi",
        expect!["line 2 of the script: this `loop` has no `end`"],
    );
    check_script(
        "loop 99999999\nsay hi\nend",
        expect!["line 1 of the script: a loop turns at most 10000000 times"],
    );
    check_script(
        "loop 2\nsay hi\n---\nend",
        expect!["line 3 of the script: `---` cannot stand inside a `loop`"],
    );
    check_script("end", expect!["line 1 of the script: `end` without a `loop`"]);
    check_script(
        "say a\nrefused\nsay b\nrefused",
        expect!["line 4 of the script: a section has only one `refused`"],
    );
    check_script(
        "say a\nrefused now",
        expect!["line 2 of the script: nothing may follow `refused`"],
    );
    check_script(
        &"loop 1\n".repeat(50),
        expect!["line 17 of the script: at most 16 loops can stand in each other"],
    );
}
