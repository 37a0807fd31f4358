//! Files and terminals: what is done, what is asked, what is refused.

use std::path::PathBuf;

use serde_json::{Value, json};
use tieline_agent::{Chore, ChoreNews, Leave};
use tieline_event::{Answer, ChangeKind, ItemBody, Mode, RequestBody, Scope};

use super::{Stage, running};

fn write(stage: &mut Stage, id: i64, path: &str) {
    let n_before = stage.chores.len();
    stage.ask(id, "fs/write_text_file", json!({"path": path, "content": "new"}));
    // Before somebody is asked, the file is read.
    if let Some((chore, Chore::ReadText { .. })) = stage.chores.get(n_before) {
        assert!(stage.is_unanswered(id));
        let chore = *chore;
        stage.chores.pop();
        stage.session.chore_news(chore, ChoreNews::Text("old".to_owned()));
        stage.settle();
    }
}

fn run(stage: &mut Stage, id: i64, line: &str) {
    stage.ask(id, "terminal/create", json!({"command": line}));
}

impl Stage {
    fn news(&mut self, at: usize, news: ChoreNews) {
        let id = self.chores[at].0;
        self.session.chore_news(id, news);
        self.settle();
    }

    /// Starts a command in a mode that lets it.
    fn terminal(&mut self, id: i64, params: Value) -> String {
        self.ask(id, "terminal/create", params);
        self.answer_to(id)["result"]["terminalId"].as_str().unwrap().to_owned()
    }
}

#[test]
fn reading_is_done_in_every_mode_and_stays_inside() {
    for mode in Mode::ALL {
        let mut stage = running(mode);
        stage.ask(1, "fs/read_text_file", json!({"path": "/workspace/a", "line": 2, "limit": 3}));
        let Chore::ReadText { within, path, line, limit } = &stage.chores[0].1 else { panic!() };
        assert_eq!(within[..], [PathBuf::from("/workspace")]);
        assert_eq!((path.to_str(), *line, *limit), (Some("/workspace/a"), Some(2), Some(3)));
        assert!(stage.is_unanswered(1));
        stage.news(0, ChoreNews::Text("text".to_owned()));
        assert_eq!(stage.answer_to(1)["result"], json!({"content": "text"}));
        for path in ["/etc/passwd", "/workspace/../etc/passwd", "a", "/workspacex/a"] {
            stage.ask(2, "fs/read_text_file", json!({"path": path}));
            assert_eq!(stage.answer_to(2)["error"]["code"], -32602, "{path}");
        }
        assert_eq!(stage.chores.len(), 1);
    }
}

#[test]
fn what_cannot_be_done_is_an_error_for_the_agent() {
    let mut stage = running(Mode::Default);
    stage.ask(1, "fs/read_text_file", json!({"path": "/workspace/a"}));
    stage.news(0, ChoreNews::Failed { why: "no such file".to_owned(), missing: true });
    assert_eq!(stage.answer_to(1)["error"]["code"], -32002);
    stage.ask(2, "fs/read_text_file", json!({"path": "/workspace/a"}));
    stage.news(1, ChoreNews::failed("it is a directory"));
    assert_eq!(
        stage.answer_to(2)["error"],
        json!({"code": -32603, "message": "it is a directory"})
    );
    // A second word about it is for nobody.
    stage.news(1, ChoreNews::Text("late".to_owned()));
    assert!(stage.is_unanswered(2));
}

#[test]
fn the_mode_decides_about_writing() {
    for (mode, is_asked, is_done) in [
        (Mode::Plan, false, false),
        (Mode::Default, true, false),
        (Mode::AcceptEdits, false, true),
        (Mode::BypassPermissions, false, true),
        (Mode::Yolo, false, true),
    ] {
        let mut stage = running(mode);
        write(&mut stage, 1, "/workspace/a");
        assert_eq!(stage.opened_requests().len(), usize::from(is_asked), "{mode}");
        assert_eq!(stage.chores.len(), usize::from(is_done), "{mode}");
        if mode == Mode::Plan {
            assert_eq!(stage.answer_to(1)["error"]["code"], -32603);
            assert_eq!(stage.notices("denied_by_mode"), 1);
        }
        // Outside of the workspace nothing is asked and nothing is written.
        write(&mut stage, 2, "/workspace/../outside");
        assert_eq!(stage.answer_to(2)["error"]["code"], -32602, "{mode}");
    }
}

#[test]
fn the_mode_decides_about_commands() {
    for (mode, is_asked, is_done) in [
        (Mode::Plan, false, false),
        (Mode::Default, true, false),
        (Mode::AcceptEdits, true, false),
        (Mode::BypassPermissions, false, true),
        (Mode::Yolo, false, true),
    ] {
        let mut stage = running(mode);
        run(&mut stage, 1, "make");
        assert_eq!(stage.opened_requests().len(), usize::from(is_asked), "{mode}");
        assert_eq!(stage.chores.len(), usize::from(is_done), "{mode}");
        stage.ask(2, "terminal/create", json!({"command": "make", "cwd": "/etc"}));
        assert_eq!(stage.answer_to(2)["error"]["code"], -32602, "{mode}");
    }
}

#[test]
fn who_is_asked_about_a_file_sees_what_would_change() {
    let missing = ChoreNews::Failed { why: "no".to_owned(), missing: true };
    for (news, kind, old) in [
        (ChoreNews::Text("old".to_owned()), ChangeKind::Update, Some("old")),
        (missing, ChangeKind::Add, None),
        (ChoreNews::failed("it is a picture"), ChangeKind::Update, None),
    ] {
        let mut stage = running(Mode::Default);
        let params = json!({"path": "/workspace/a", "content": "new"});
        stage.ask(1, "fs/write_text_file", params);
        stage.news(0, news);
        let request = stage.opened_requests().remove(0);
        let RequestBody::Approval(approval) = request.body else { panic!() };
        let change = &approval.changes[0];
        assert_eq!(change.kind, kind);
        assert_eq!(change.old_text.as_ref().map(tieline_event::Text::preview), old);
        assert_eq!(change.new_text.as_ref().unwrap().preview(), "new");
    }
    // Nobody is asked once the turn was interrupted.
    let mut stage = running(Mode::Default);
    stage.ask(1, "fs/write_text_file", json!({"path": "/workspace/a", "content": "new"}));
    assert!(stage.session.interrupt());
    stage.settle();
    assert_eq!(stage.answer_to(1)["error"]["code"], -32800);
    stage.news(0, ChoreNews::Text("old".to_owned()));
    assert!(stage.opened_requests().is_empty());
}

#[test]
fn a_yes_does_it_and_a_no_says_so() {
    let mut stage = running(Mode::Default);
    write(&mut stage, 1, "/workspace/a");
    stage.answer(1, &Answer::allow());
    assert!(stage.is_unanswered(1), "not before it is done");
    stage.news(0, ChoreNews::Written);
    assert_eq!(stage.answer_to(1)["result"], json!({}));
    write(&mut stage, 2, "/workspace/a");
    stage.answer(2, &Answer::Deny { message: None, stop: false });
    assert!(stage.answer_to(2)["error"]["message"].as_str().unwrap().contains("said no"));
    assert_eq!(stage.chores.len(), 1);
}

#[test]
fn a_yes_for_the_session_is_remembered() {
    let lasting = Answer::Allow { scope: Scope::Session, input: None, mode: None };
    let mut stage = running(Mode::Default);
    write(&mut stage, 1, "/workspace/a");
    stage.answer(1, &lasting);
    write(&mut stage, 2, "/workspace/a");
    assert_eq!((stage.opened_requests().len(), stage.chores.len()), (1, 2));
    write(&mut stage, 3, "/workspace/b");
    assert_eq!(stage.opened_requests().len(), 2, "only this very file");
    stage.answer(3, &Answer::Deny { message: None, stop: false });
    run(&mut stage, 4, "make");
    stage.answer(4, &lasting);
    run(&mut stage, 5, "make");
    run(&mut stage, 6, "make install");
    assert_eq!(stage.opened_requests().len(), 4, "only this very line");
    let odd = json!([{"name": "LD_PRELOAD", "value": "/tmp/x.so"}]);
    stage.ask(7, "terminal/create", json!({"command": "make", "env": odd}));
    let requests = stage.opened_requests();
    assert_eq!(requests.len(), 5, "with other variables it is another command");
    assert!(format!("{:?}", requests.last()).contains("LD_PRELOAD=/tmp/x.so make"));
}

/// Leave to look at a file is no leave to change it.
#[test]
fn a_yes_to_reading_is_no_yes_to_writing() {
    let mut stage = running(Mode::Default);
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let read = json!({"toolCallId": "t1", "title": "Read .env", "kind": "read",
        "locations": [{"path": "/workspace/.env"}]});
    stage.ask(1, "session/request_permission", json!({"toolCall": read, "options": options}));
    stage.answer(1, &Answer::allow());
    write(&mut stage, 2, "/workspace/.env");
    assert_eq!((stage.opened_requests().len(), stage.chores.len()), (2, 0));
}

/// A yes to one mode is none to every mode.
#[test]
fn an_agent_leaves_its_plan_only_as_far_as_somebody_said() {
    let mut stage = running(Mode::Plan);
    let options = json!([
        {"optionId": "default", "name": "Yes, and ask", "kind": "allow_once"},
        {"optionId": "yolo", "name": "Yes, and never ask", "kind": "allow_always"}]);
    let leave = json!({"toolCallId": "t1", "title": "Go on?", "kind": "switch_mode"});
    stage.ask(1, "session/request_permission", json!({"toolCall": leave, "options": options}));
    stage.answer(1, &Answer::Allow { scope: Scope::Once, input: None, mode: Some(Mode::Default) });
    stage.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "yolo"}));
    write(&mut stage, 2, "/workspace/a");
    assert_eq!(stage.chores.len(), 0, "nothing is written unasked");
}

/// An agent that asks leave for a call and then has us do it is not asked about twice.
#[test]
fn what_was_allowed_to_a_call_is_allowed_to_what_it_does() {
    let mut stage = running(Mode::Default);
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
    let edit = json!({"toolCallId": "t1", "title": "Edit", "kind": "edit", "content": [
        {"type": "diff", "path": "/workspace/a", "oldText": "o", "newText": "n"}]});
    stage.ask(1, "session/request_permission", json!({"toolCall": edit, "options": options}));
    stage.answer(1, &Answer::allow());
    write(&mut stage, 2, "/workspace/a");
    assert_eq!((stage.opened_requests().len(), stage.chores.len()), (1, 1));
    write(&mut stage, 3, "/workspace/b");
    assert_eq!(stage.opened_requests().len(), 2, "another file is another question");
    // What the call says about itself later was not allowed.
    let more = json!([{"path": "/workspace/c"}]);
    stage.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "locations": more}),
    );
    write(&mut stage, 7, "/workspace/c");
    assert_eq!(stage.opened_requests().len(), 3);
    stage.answer(7, &Answer::Deny { message: None, stop: false });
    // Once the call is over its leave is over.
    stage.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"}),
    );
    write(&mut stage, 4, "/workspace/a");
    assert_eq!(stage.opened_requests().len(), 4);
    let execute = json!({"toolCallId": "t2", "title": "make", "kind": "execute", "rawInput": {"command": "make"}});
    stage.ask(5, "session/request_permission", json!({"toolCall": execute, "options": options}));
    stage.answer(5, &Answer::allow());
    run(&mut stage, 6, "make");
    assert_eq!(stage.opened_requests().len(), 5);
}

#[test]
fn a_terminal_runs_prints_and_ends() {
    let mut stage = running(Mode::Yolo);
    let name = stage.terminal(
        1,
        json!({"command": "make", "args": ["-j", "a b"], "env": [{"name": "A", "value": "1"}],
                                        "cwd": "/workspace/sub", "outputByteLimit": 6}),
    );
    let Chore::Run { command, args, env, cwd, .. } = &stage.chores[0].1 else { panic!() };
    assert_eq!((command.as_str(), args.len(), cwd.to_str()), ("make", 2, Some("/workspace/sub")));
    assert_eq!(env[0], ("A".to_owned(), "1".to_owned()));
    let about = json!({"terminalId": name});
    stage.ask(2, "terminal/output", about.clone());
    assert_eq!(stage.answer_to(2)["result"], json!({"output": "", "truncated": false}));
    stage.news(0, ChoreNews::Printed(b"before".to_vec()));
    // The call that shows it comes later, and has everything.
    stage.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "make", "kind": "execute",
        "status": "in_progress", "content": [{"type": "terminal", "terminalId": name}]}),
    );
    stage.news(0, ChoreNews::Printed(b"\nlater".to_vec()));
    stage.ask(3, "terminal/wait_for_exit", about.clone());
    assert!(stage.is_unanswered(3));
    stage.news(0, ChoreNews::Ended { code: Some(2), signal: None });
    assert_eq!(stage.answer_to(3)["result"], json!({"exitCode": 2}));
    stage.ask(4, "terminal/output", about.clone());
    assert_eq!(
        stage.answer_to(4)["result"],
        json!({"output": "\nlater", "truncated": true, "exitStatus": {"exitCode": 2}})
    );
    stage.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"}),
    );
    let ItemBody::Command { output, exit_code, .. } = &stage.items()[0].body else { panic!() };
    assert_eq!((output.preview(), *exit_code), ("before\nlater", Some(2)));
    stage.ask(5, "terminal/release", about.clone());
    assert_eq!(stage.answer_to(5)["result"], json!({}));
    assert_eq!(stage.chores.len(), 1, "what is over needs no killing");
    stage.ask(6, "terminal/output", about);
    assert_eq!(stage.answer_to(6)["error"]["code"], -32002);
}

#[test]
fn killing_and_releasing_end_what_runs() {
    let mut stage = running(Mode::Yolo);
    let first = stage.terminal(1, json!({"command": "sleep 9"}));
    let second = stage.terminal(2, json!({"command": "sleep 9"}));
    stage.ask(3, "terminal/kill", json!({"terminalId": first}));
    stage.ask(4, "terminal/wait_for_exit", json!({"terminalId": second}));
    stage.ask(5, "terminal/release", json!({"terminalId": second}));
    let (one, two) = (stage.chores[0].0, stage.chores[1].0);
    let killed: Vec<_> = stage
        .chores
        .iter()
        .filter_map(|(_, chore)| match chore {
            Chore::Kill(id) => Some(*id),
            _ => None,
        })
        .collect();
    assert_eq!(killed, [one, two]);
    assert_eq!(stage.answer_to(4)["error"]["code"], -32002, "who waited is told");
    // The killed one is still there to be read.
    stage.news(0, ChoreNews::Ended { code: None, signal: Some(9) });
    stage.ask(6, "terminal/wait_for_exit", json!({"terminalId": first}));
    assert_eq!(stage.answer_to(6)["result"], json!({"signal": "SIGKILL"}));
    // Late news of the released one are for nobody.
    stage.news(1, ChoreNews::Printed(b"x".to_vec()));
    stage.news(1, ChoreNews::Ended { code: None, signal: Some(9) });
}

#[test]
fn terminals_and_files_are_bounded() {
    let mut stage = running(Mode::Yolo);
    for id in 0..32 {
        run(&mut stage, id, "sleep 9");
        stage.ask(100 + id, "fs/read_text_file", json!({"path": "/workspace/a"}));
    }
    run(&mut stage, 50, "sleep 9");
    assert!(stage.answer_to(50)["error"]["message"].as_str().unwrap().contains("terminals"));
    stage.ask(51, "fs/read_text_file", json!({"path": "/workspace/a"}));
    assert!(stage.answer_to(51)["error"]["message"].as_str().unwrap().contains("files"));
    assert_eq!(stage.chores.len(), 64);
}

#[test]
fn output_that_never_ends_is_not_kept_for_ever() {
    let mut stage = running(Mode::Yolo);
    let name = stage.terminal(1, json!({"command": "yes"}));
    stage.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "yes", "kind": "execute",
        "status": "in_progress", "content": [{"type": "terminal", "terminalId": name}]}),
    );
    for _ in 0..40 {
        stage.news(0, ChoreNews::Printed(vec![b'y'; 1 << 18]));
    }
    assert_eq!(stage.notices("output_cut"), 1);
    let kept = stage.session.ledger().open_items().last().unwrap().streamed.len();
    assert!(kept <= 9 << 20, "{kept}");
    stage.ask(2, "terminal/output", json!({"terminalId": name}));
    let output = stage.answer_to(2)["result"].clone();
    assert_eq!(output["truncated"], true);
    assert_eq!(output["output"].as_str().unwrap().len(), 4 << 20);
}

#[test]
fn what_other_programs_obey_is_asked_for_by_its_name() {
    let told = |leave: &str| ChoreNews::Protected {
        path: leave.into(),
        by: "git".to_owned(),
        content: "new".to_owned(),
    };
    let hook = "/workspace/.git/hooks/pre-commit";
    let leave_of = |stage: &Stage, at: usize| match &stage.chores[at].1 {
        Chore::WriteText { leave, path, .. } => (leave.clone(), path.display().to_string()),
        other => panic!("{other:?}"),
    };
    // The mode edits files unasked, but not this one, also not behind a link.
    let mut stage = running(Mode::AcceptEdits);
    write(&mut stage, 1, "/workspace/docs/pre-commit");
    assert_eq!(leave_of(&stage, 0).0, Leave::None);
    stage.news(0, told(hook));
    stage.news(1, ChoreNews::Text("old".to_owned()));
    let request = stage.opened_requests().remove(0);
    assert_eq!(request.title, format!("Write {hook}, which git run or obey"));
    stage.answer(1, &Answer::allow());
    assert_eq!(leave_of(&stage, 2), (Leave::File(hook.into()), hook.to_owned()));
    stage.news(2, ChoreNews::Written);
    assert_eq!(stage.answer_to(1)["result"], json!({}));
    // Who was asked by this name is not asked twice.
    let mut stage = running(Mode::Default);
    write(&mut stage, 1, hook);
    stage.answer(1, &Answer::allow());
    stage.news(0, told(hook));
    assert_eq!(leave_of(&stage, 1).0, Leave::File(hook.into()));
    assert_eq!(stage.opened_requests().len(), 1);
    // But a yes to one name is none to another.
    let mut stage = running(Mode::Default);
    write(&mut stage, 1, "/workspace/docs/pre-commit");
    stage.answer(1, &Answer::allow());
    stage.news(0, told(hook));
    stage.news(1, ChoreNews::Text("old".to_owned()));
    assert_eq!(stage.opened_requests().len(), 2);
    // Where nobody is asked it is refused, and where everything goes it goes.
    let mut stage = running(Mode::BypassPermissions);
    write(&mut stage, 1, hook);
    stage.news(0, told(hook));
    assert!(stage.answer_to(1)["error"]["message"].as_str().unwrap().contains("git"));
    let mut stage = running(Mode::Yolo);
    write(&mut stage, 1, hook);
    assert_eq!(leave_of(&stage, 0).0, Leave::All);
}
