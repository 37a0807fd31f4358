use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::Value;
use tieline_event::{
    Answer, Extras, FrameNo, Item, ItemBody, Kind, McpServer, McpTransport, Mode, Origin, Prompt,
    Request, RequestBody, Scope, Text,
};

use super::ids::Ids;
use super::player::{Next, Player, Setup};
use super::script;
use super::serve::Args;
use super::tool::{Outcome, Ran, Work};
use super::voice::Voice;
use super::workspace::{Edit, Workspace};
use super::{DEFAULT_MODEL, Demo};
use crate::claude::{ClaudeDriver, Lifetime};
use crate::driver::{Launch, Resume};
use crate::ledger::{Ledger, Output};
use crate::session::Session;

/// A player and the real driver, wired together without a process. Commands are not run; each
/// gives its own text back, and one that begins with `false` fails.
struct Stage {
    player: Player,
    session: Session,
    workspace: Workspace,
    directory: tempfile::TempDir,
    shown: Vec<String>,
    /// Every line the player wrote.
    frames: Vec<Value>,
    asked: Vec<Request>,
}

/// Where a play stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// It waits for the host.
    Input,
    /// It is at its third word.
    ThirdPause,
    /// A command is about to run.
    Command,
}

impl Stage {
    fn new(text: &str, mode: Mode) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::new(directory.path()).unwrap();
        let setup = Setup {
            cwd: workspace.root().display().to_string(),
            mode,
            pace: Duration::from_millis(15),
            effort: 1,
            resumed: false,
        };
        let voice = Voice::new(None, DEFAULT_MODEL.to_owned(), Ids::from_seed(7));
        let player = Player::new(script::parse(text).unwrap(), setup, voice);
        let driver = Box::new(ClaudeDriver::new(Lifetime::Conversation, mode));
        let mut session = Session::new(driver, Ledger::new(0, None), 1 << 20, FrameNo(1));
        session.started();
        let (shown, frames, asked) = (Vec::new(), Vec::new(), Vec::new());
        let mut stage = Self { player, session, workspace, directory, shown, frames, asked };
        stage.play(Until::Input);
        stage
    }

    fn say(&mut self, prompt: &str, until: Until) {
        self.session.start_turn(&Prompt::text(prompt));
        self.play(until);
    }

    fn answer(&mut self, answer: Answer) {
        let request = self.asked.pop().expect("a request is open");
        self.session.answer(&request.id, &answer, Origin::Human, None).unwrap();
        self.play(Until::Input);
    }

    fn interrupt(&mut self) {
        assert!(self.session.interrupt());
        self.play(Until::Input);
    }

    /// Plays until something is to be waited for that does not come by itself.
    fn play(&mut self, until: Until) {
        let mut n_pauses = 0;
        loop {
            self.exchange();
            let next = self.player.advance(Duration::ZERO);
            let answered = self.exchange();
            let outcome = match next {
                Next::Input | Next::End if answered => continue,
                Next::Input | Next::End => return,
                Next::Write => continue,
                Next::Pause(_) => {
                    n_pauses += 1;
                    if until == Until::ThirdPause && n_pauses == 3 {
                        return;
                    }
                    continue;
                }
                Next::Work(Work::Run { .. }) if until == Until::Command => return,
                Next::Work(Work::Run { command }) => {
                    let code = i32::from(command.starts_with("false"));
                    let output = format!("ran: {command}\n");
                    Outcome::Ran(Ran { output, code, timed_out: None })
                }
                Next::Work(Work::Write { path, content }) => {
                    Outcome::Changed(self.workspace.write(&path, &content))
                }
                Next::Work(Work::Edit(edit)) => Outcome::Changed(self.workspace.edit(&edit)),
            };
            self.player.worked(outcome);
        }
    }

    /// Moves lines both ways; says whether the host had some.
    fn exchange(&mut self) -> bool {
        let bytes = self.player.take_writes();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.frames.push(serde_json::from_slice(line).unwrap());
        }
        self.session.read(&bytes, |_, _| {});
        for output in self.session.take_outputs() {
            if let Output::Event(draft) = &output
                && let Kind::RequestOpened(request) = &draft.kind
            {
                self.asked.push(request.clone());
            }
            self.shown.extend(show(&output, self.directory.path()));
        }
        let (bytes, _) = self.session.take_writes(|_, _| {});
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.player.line(line).unwrap();
        }
        !bytes.is_empty()
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.directory.path().join(name)).ok()
    }

    #[track_caller]
    fn check(&mut self, expected: Expect) {
        let mut shown = std::mem::take(&mut self.shown).join("\n");
        shown.push('\n');
        expected.assert_eq(&shown);
    }
}

/// Events as short lines; deltas are left out, and so is what is only noted.
fn show(output: &Output, root: &Path) -> Option<String> {
    let Output::Event(draft) = output else { return None };
    let root = std::fs::canonicalize(root).unwrap();
    let short = |text: &Text| text.preview().replace(root.to_str().unwrap(), "/ws");
    let item = |item: &Item| match &item.body {
        ItemBody::UserMessage { content } => {
            content.iter().filter_map(|it| it.as_text()).map(&short).collect()
        }
        ItemBody::AgentMessage { text } | ItemBody::Reasoning { text, .. } => short(text),
        ItemBody::Command { command, output, exit_code, .. } => {
            format!("{command:?} -> {:?} exit {exit_code:?}", output.preview())
        }
        ItemBody::FileChange { changes } => {
            let diff = changes[0].diff.as_ref().map(&short).unwrap_or_default();
            let text = changes[0].new_text.as_ref().map(&short).unwrap_or_default();
            let kind = changes[0].kind;
            format!("{kind:?} {} {text:?} {diff:?}", short(&changes[0].path.as_str().into()))
        }
        ItemBody::ToolCall { tool, output, .. } => {
            let text: String = output.iter().filter_map(|it| it.as_text()).map(&short).collect();
            format!("{tool} -> {text}")
        }
        other => format!("{other:?}"),
    };
    let text = match &draft.kind {
        Kind::ItemStarted(it) | Kind::ItemUpdated(it)
            if matches!(it.body, ItemBody::ToolCall { .. }) =>
        {
            return None;
        }
        Kind::ItemStarted(it) | Kind::ItemUpdated(it) => format!("{} ...", it.body.name()),
        Kind::ItemCompleted(it) => format!("{} {:?}: {}", it.body.name(), it.status, item(it)),
        Kind::ConversationConfigured(it) => {
            let effort = it.effort.as_ref().map(|effort| format!(" effort {effort}"));
            format!("mode {:?} model {:?}{}", it.mode, it.model, effort.unwrap_or_default())
        }
        Kind::PlanUpdated(plan) => {
            let steps: Vec<_> =
                plan.entries.iter().map(|it| format!("{} {:?}", it.text, it.status)).collect();
            steps.join("; ")
        }
        Kind::RequestOpened(it) => {
            let options: Vec<_> = it.options.iter().map(|it| it.id.as_str()).collect();
            let title = it.title.replace(root.to_str().unwrap(), "/ws");
            format!("{title} [{}]", options.join(" "))
        }
        Kind::RequestResolved(it) => it.answer.summary().to_owned(),
        Kind::RequestExpired(it) => it.reason.clone(),
        Kind::TurnCompleted(it) => {
            let error = it.error.as_ref().map(|it| format!(" {:?}: {}", it.code, it.message));
            let usage = it.usage.clone().unwrap_or_default();
            format!(
                "{:?}{} ({:?}, tokens {}/{})",
                it.status,
                error.unwrap_or_default(),
                it.stop_reason,
                usage.input_tokens,
                usage.output_tokens
            )
        }
        Kind::TurnStarted(it) => format!("{:?}", it.origin),
        other => format!("{other:?}"),
    };
    Some(format!("{}: {text}", draft.kind.name()))
}

#[test]
fn the_embedded_script_plays_a_whole_conversation() {
    let mut stage = Stage::new(script::DEFAULT, Mode::Default);
    stage.say("hi", Until::Input);
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: hi
        conversation.configured: mode Some(Default) model Some("scripted")
        item.started: reasoning ...
        item.completed: reasoning Ok: The user wants to see what a conversation looks like. A command, a small file and an edit of it will show the most important things.
        item.started: agent_message ...
        item.completed: agent_message Ok: Hello! I am tieline's built-in **demo agent**: a script, not a model. What I do here is real, though. I will

        1. look at this machine,
        2. write a small file, for which I need your permission,
        3. change a line of it and read it back.
        plan.updated: Look at the machine Pending; Write hello.md Pending; Edit and check it Pending
        item.completed: tool_call Ok: TodoWrite -> Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable
        plan.updated: Look at the machine InProgress; Write hello.md Pending; Edit and check it Pending
        item.completed: tool_call Ok: TodoWrite -> Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable
        item.started: command ...
        item.updated: command ...
        item.completed: command Ok: "uname -sm && date" -> "ran: uname -sm && date" exit Some(0)
        plan.updated: Look at the machine Completed; Write hello.md Pending; Edit and check it Pending
        item.completed: tool_call Ok: TodoWrite -> Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable
        plan.updated: Look at the machine Completed; Write hello.md InProgress; Edit and check it Pending
        item.completed: tool_call Ok: TodoWrite -> Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable
        item.started: agent_message ...
        item.completed: agent_message Ok: Now the file. You decide whether I may write it.
        item.started: file_change ...
        item.updated: file_change ...
        request.opened: Write /ws/hello.md [allow session deny stop]
    "#]]);
    stage.answer(Answer::Allow { scope: Scope::Session, input: None, mode: None });
    stage.check(expect![[r##"
        request.resolved: allowed for the session
        conversation.configured: mode Some(AcceptEdits) model None
        item.completed: file_change Ok: Add /ws/hello.md "# Hello from tieline\n\nYou said: hi\n\n- status: draft\n" ""
        plan.updated: Look at the machine Completed; Write hello.md Completed; Edit and check it Pending
        item.completed: tool_call Ok: TodoWrite -> Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable
        plan.updated: Look at the machine Completed; Write hello.md Completed; Edit and check it InProgress
        item.completed: tool_call Ok: TodoWrite -> Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable
        item.started: file_change ...
        item.updated: file_change ...
        item.completed: file_change Ok: Update /ws/hello.md "# Hello from tieline\n\nYou said: hi\n\n- status: finished\n" "@@ -2,4 +2,4 @@\n \n You said: hi\n \n-- status: draft\n+- status: finished\n"
        item.started: command ...
        item.updated: command ...
        item.completed: command Ok: "cat hello.md" -> "ran: cat hello.md" exit Some(0)
        plan.updated: Look at the machine Completed; Write hello.md Completed; Edit and check it Completed
        item.completed: tool_call Ok: TodoWrite -> Todos have been modified successfully. Ensure that you continue to use the todo list to track your progress. Please proceed with the current tasks if applicable
        item.started: agent_message ...
        item.completed: agent_message Ok: Done: `hello.md` is in the workspace, written and edited through the same requests and events that a real agent uses.

        The transcript of all this is kept. Say something else, or begin with a real agent: `tieline run --agent claude "…"`.
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "##]]);
    assert!(stage.file("hello.md").unwrap().ends_with("You said: hi\n\n- status: finished\n"));
    stage.say("and now?", Until::Input);
    stage.check(expect![[r#"
        turn.started: Human
        item.completed: user_message Ok: and now?
        item.started: agent_message ...
        item.completed: agent_message Ok: You said: and now?

        I can only repeat it, because I am a scripted agent. For real answers, install Claude Code (`npm install -g @anthropic-ai/claude-code`), log in once with `claude`, and start `tieline run --agent claude "…"`. `tieline doctor` shows which agents it finds.
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
}

#[test]
fn a_no_takes_the_other_way_through_the_section() {
    let mut stage = Stage::new(script::DEFAULT, Mode::Default);
    stage.say("hi", Until::Input);
    stage.shown.clear();
    stage.answer(Answer::deny("Not here."));
    stage.check(expect![[r##"
        request.resolved: denied
        item.completed: file_change Declined: Add /ws/hello.md "# Hello from tieline\n\nYou said: hi\n\n- status: draft\n" ""
        item.started: agent_message ...
        item.completed: agent_message Ok: All right, I leave the files as they are. That is the point of asking: nothing is changed without a yes.

        Say something else, or begin with a real agent: `tieline run --agent claude "…"`.
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "##]]);
    assert_eq!(stage.file("hello.md"), None);
}

#[test]
fn in_plan_mode_nothing_is_written() {
    let mut stage = Stage::new("write a <<END\nx\nEND\nrun touch b\nrun ls", Mode::Plan);
    stage.say("go", Until::Input);
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(Plan) model Some("scripted")
        item.started: file_change ...
        item.updated: file_change ...
        item.completed: file_change Denied: Add /ws/a "x\n" ""
        item.started: command ...
        item.updated: command ...
        item.completed: command Denied: "touch b" -> "Plan mode is on: nothing may be changed until the plan is approved." exit None
        item.started: command ...
        item.updated: command ...
        item.completed: command Ok: "ls" -> "ran: ls" exit Some(0)
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
    assert_eq!(stage.file("a"), None);
}

#[test]
fn an_approved_plan_ends_plan_mode() {
    let mut stage = Stage::new("exit-plan First a, then b.\nwrite a <<END\nx\nEND", Mode::Plan);
    stage.say("go", Until::Input);
    let RequestBody::ExitPlan { plan } = &stage.asked[0].body else { panic!() };
    assert_eq!(plan.as_deref(), Some("First a, then b."));
    let mode = Some(Mode::AcceptEdits);
    stage.answer(Answer::Allow { scope: Scope::Once, input: None, mode });
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(Plan) model Some("scripted")
        request.opened: Leave plan mode and carry the plan out? [allow deny stop]
        request.resolved: allowed
        conversation.configured: mode Some(AcceptEdits) model None
        item.completed: tool_call Ok: ExitPlanMode -> User has approved exiting plan mode. You can now proceed.
        item.started: file_change ...
        item.updated: file_change ...
        item.completed: file_change Ok: Add /ws/a "x\n" ""
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
    assert_eq!(stage.file("a").as_deref(), Some("x\n"));
}

#[test]
fn a_mode_that_never_asks_asks_nothing() {
    let mut stage = Stage::new("write a <<END\nEND\nrun make", Mode::BypassPermissions);
    stage.say("go", Until::Input);
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(BypassPermissions) model Some("scripted")
        item.started: file_change ...
        item.updated: file_change ...
        item.completed: file_change Ok: Add /ws/a "" ""
        item.started: command ...
        item.updated: command ...
        item.completed: command Ok: "make" -> "ran: make" exit Some(0)
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
    assert_eq!(stage.file("a").as_deref(), Some(""));
}

#[test]
fn a_command_is_asked_about_once_when_allowed_for_the_session() {
    let mut stage = Stage::new("run false now\nrun make\nrun make", Mode::AcceptEdits);
    stage.say("go", Until::Input);
    stage.answer(Answer::Allow { scope: Scope::Session, input: None, mode: None });
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(AcceptEdits) model Some("scripted")
        item.started: command ...
        item.updated: command ...
        item.completed: command Failed: "false now" -> "ran: false now" exit Some(1)
        item.started: command ...
        item.updated: command ...
        request.opened: Run make [allow session always deny stop]
        request.resolved: allowed for the session
        item.completed: command Ok: "make" -> "ran: make" exit Some(0)
        item.started: command ...
        item.updated: command ...
        item.completed: command Ok: "make" -> "ran: make" exit Some(0)
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
}

#[test]
fn a_tool_of_a_server_is_asked_about_and_gives_what_the_script_says() {
    let mut stage = Stage::new("call mcp__s__echo {\"text\": \"hi\"} => hi back", Mode::Default);
    stage.say("go", Until::Input);
    stage.answer(Answer::allow());
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(Default) model Some("scripted")
        request.opened: Use mcp__s__echo [allow session always deny stop]
        request.resolved: allowed
        item.completed: tool_call Ok: echo -> hi back
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
}

#[test]
fn an_edited_input_is_what_is_done() {
    let mut stage = Stage::new("run make", Mode::Default);
    stage.say("go", Until::Input);
    let input = Some(tieline_event::Json::from_raw(
        &serde_json::value::to_raw_value(&serde_json::json!({"command": "make test"})).unwrap(),
    ));
    stage.shown.clear();
    stage.answer(Answer::Allow { scope: Scope::Once, input, mode: None });
    stage.check(expect![[r#"
        request.resolved: allowed
        item.completed: command Ok: "make" -> "ran: make test" exit Some(0)
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
}

#[test]
fn the_chosen_answer_is_known_afterwards() {
    let text = "ask Which colour? | Red: warm | Blue: cold\nsay You like {answer}, {{prompt}}.";
    let mut stage = Stage::new(text, Mode::BypassPermissions);
    stage.say("{answer}", Until::Input);
    let answers = [("Which colour?".to_owned(), vec!["Blue".to_owned()])].into();
    stage.answer(Answer::Answers { answers });
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: {answer}
        conversation.configured: mode Some(BypassPermissions) model Some("scripted")
        request.opened: Which colour? [deny stop]
        request.resolved: answered
        item.completed: tool_call Ok: AskUserQuestion -> Your questions have been answered: "Which colour?"="Blue". You can now continue with these answers in mind.
        item.started: agent_message ...
        item.completed: agent_message Ok: You like Blue, {{answer}}.
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
}

#[test]
fn deny_and_stop_ends_the_turn() {
    let mut stage = Stage::new("run make\nsay never", Mode::Default);
    stage.say("go", Until::Input);
    stage.answer(Answer::Deny { message: None, stop: true });
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(Default) model Some("scripted")
        item.started: command ...
        item.updated: command ...
        request.opened: Run make [allow session always deny stop]
        request.resolved: denied, turn stopped
        item.completed: command Declined: "make" -> "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed." exit None
        turn.completed: Interrupted (Some("tool_use"), tokens 0/0)
    "#]]);
}

#[test]
fn an_interrupt_stops_a_text_a_question_and_a_command() {
    let mut stage = Stage::new("say one two three four\n---\nrun make\n---\nrun ls", Mode::Default);
    stage.say("go", Until::ThirdPause);
    stage.interrupt();
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(Default) model Some("scripted")
        item.started: agent_message ...
        item.completed: agent_message Cancelled: one two three 
        turn.completed: Interrupted (Some("aborted_streaming"), tokens 0/0)
    "#]]);
    stage.say("go", Until::Input);
    stage.interrupt();
    stage.check(expect![[r#"
        turn.started: Human
        item.completed: user_message Ok: go
        item.started: command ...
        item.updated: command ...
        request.opened: Run make [allow session always deny stop]
        request.expired: the agent took it back
        item.completed: command Cancelled: "make" -> "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed." exit None
        turn.completed: Interrupted (Some("tool_use"), tokens 0/0)
    "#]]);
    stage.say("go", Until::Command);
    stage.interrupt();
    stage.check(expect![[r#"
        turn.started: Human
        item.completed: user_message Ok: go
        item.started: command ...
        item.updated: command ...
        item.completed: command Cancelled: "ls" -> "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed. Correction to the text above: this call was stopped while running, not refused before it ran. It may have run in part or in full, and its changes may have been written. No permission prompt was involved. Work it started elsewhere (a remote command, a background process) may still be running, so check before starting the same work again. The instruction to stop and wait still stands." exit None
        turn.completed: Interrupted (Some("tool_use"), tokens 0/0)
    "#]]);
}

#[test]
fn an_interrupt_without_a_turn_is_answered() {
    let mut stage = Stage::new("say hi", Mode::Default);
    stage.frames.clear();
    stage.interrupt();
    assert_eq!(stage.frames.len(), 1);
    assert_eq!(stage.frames[0]["response"]["subtype"], "success");
}

#[test]
fn what_is_said_during_a_turn_is_answered_at_its_end() {
    let mut stage = Stage::new("say one two three four", Mode::Default);
    stage.say("go", Until::ThirdPause);
    stage.session.steer(&Prompt::text("hurry")).unwrap();
    stage.play(Until::Input);
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(Default) model Some("scripted")
        item.started: agent_message ...
        item.completed: user_message Ok: hurry
        item.completed: agent_message Ok: one two three four
        item.started: agent_message ...
        item.completed: agent_message Ok: While I was at it you said "hurry". Noted.
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
}

#[test]
fn a_failure_ends_the_turn_as_a_failed_call_does() {
    let text = "usage 12 3\nfail 529 Overloaded\n---\nfail the wire was cut\nsay never";
    let mut stage = Stage::new(text, Mode::Default);
    stage.say("go", Until::Input);
    stage.say("go", Until::Input);
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        turn.started: Human
        item.completed: user_message Ok: go
        conversation.configured: mode Some(Default) model Some("scripted")
        notice: Notice(Notice { level: Warning, code: "api_error", text: "API Error: 529 Overloaded", rate_limit: None })
        turn.completed: Failed ProviderUnavailable: API Error: 529 Overloaded (Some("stop_sequence"), tokens 12/3)
        turn.started: Human
        item.completed: user_message Ok: go
        notice: Notice(Notice { level: Warning, code: "api_error", text: "API Error: the wire was cut", rate_limit: None })
        turn.completed: Failed StreamLost: API Error: the wire was cut (Some("stop_sequence"), tokens 0/0)
    "#]]);
}

#[test]
fn at_the_end_of_input_a_turn_is_played_out_and_its_questions_are_denied() {
    let mut stage = Stage::new("run make\nsay bye", Mode::Default);
    stage.say("go", Until::Input);
    stage.player.input_over();
    stage.shown.clear();
    stage.play(Until::Input);
    stage.check(expect![[r#"
        item.completed: command Denied: "make" -> "Stream closed" exit None
        item.started: agent_message ...
        item.completed: agent_message Ok: bye
        request.expired: the turn ended
        turn.completed: Completed (Some("end_turn"), tokens 0/0)
    "#]]);
    assert_eq!(stage.player.advance(Duration::ZERO), Next::End);
}

#[test]
fn requests_of_the_host_get_one_answer_each() {
    let mut stage = Stage::new("say hi", Mode::Default);
    stage.frames.clear();
    for request in [
        r#"{"subtype":"set_permission_mode","mode":"plan"}"#,
        r#"{"subtype":"set_permission_mode","mode":"bypassPermissions"}"#,
        r#"{"subtype":"set_model","model":"gpt"}"#,
        r#"{"subtype":"set_model","model":null}"#,
        r#"{"subtype":"mcp_status"}"#,
    ] {
        let line = format!(r#"{{"type":"control_request","request_id":"1","request":{request}}}"#);
        stage.player.line(line.as_bytes()).unwrap();
    }
    stage.exchange();
    let answers: Vec<String> = stage
        .frames
        .iter()
        .map(|frame| {
            let response = &frame["response"];
            format!("{} {}{}", response["subtype"], response["response"], response["error"])
        })
        .collect();
    expect![[r#"
        "success" {"mode":"plan"}null
        "error" null"Cannot set permission mode to bypassPermissions because the session was not started with it"
        "error" null"the demo agent has no model \"gpt\", only \"scripted\""
        "success" {"model":"scripted"}null
        "error" null"Unsupported control request subtype: mcp_status""#]].assert_eq(&answers.join("\n"));
    stage.player.line(b"{\"type\":\"keep_alive\"}").unwrap();
    stage.player.line(b"{nonsense").unwrap_err();
}

#[test]
fn a_resumed_session_keeps_its_id_and_does_not_begin_again() {
    let setup = Setup {
        cwd: "/ws".into(),
        mode: Mode::Default,
        pace: Duration::ZERO,
        effort: 1,
        resumed: true,
    };
    let voice = Voice::new(Some("abc".into()), DEFAULT_MODEL.to_owned(), Ids::from_seed(1));
    let mut player = Player::new(script::parse("say alpha\n---\nsay omega").unwrap(), setup, voice);
    player.line(br#"{"type":"user","message":{"role":"user","content":"hi"}}"#).unwrap();
    assert_eq!(player.advance(Duration::ZERO), Next::Input);
    let frames = String::from_utf8(player.take_writes()).unwrap();
    assert!(frames.contains("omega") && !frames.contains("alpha"));
    assert!(frames.lines().all(|frame| frame.contains(r#""session_id":"abc""#)));
}

#[test]
fn a_long_play_is_written_piece_by_piece() {
    let setup = Setup {
        cwd: "/ws".into(),
        mode: Mode::Default,
        pace: Duration::ZERO,
        effort: 1,
        resumed: false,
    };
    let voice = Voice::new(None, DEFAULT_MODEL.to_owned(), Ids::from_seed(1));
    let script = script::parse("loop 20\nloop 50\nsay word\nend\nend").unwrap();
    let mut player = Player::new(script, setup, voice);
    player.line(br#"{"type":"user","message":{"role":"user","content":"hi"}}"#).unwrap();
    let mut n_words = 0;
    while player.advance(Duration::ZERO) == Next::Write {
        let piece = player.take_writes();
        assert!(piece.len() < 64 * 1024);
        n_words += String::from_utf8(piece).unwrap().matches("text_delta").count();
    }
    n_words += String::from_utf8(player.take_writes()).unwrap().matches("text_delta").count();
    assert_eq!(n_words, 1000);
}

/// Every key we write stands in a frame of the same type of the real agent.
#[test]
fn frames_have_no_key_that_the_real_ones_lack() {
    fn paths(prefix: &str, value: &Value, into: &mut BTreeSet<String>) {
        match value {
            // Names of models and questions are no keys.
            _ if prefix.ends_with("modelUsage") || prefix.ends_with("answers") => {}
            Value::Object(fields) => {
                for (key, value) in fields {
                    let path = format!("{prefix}.{key}");
                    into.insert(path.clone());
                    paths(&path, value, into);
                }
            }
            Value::Array(values) => {
                values.iter().for_each(|value| paths(&format!("{prefix}[]"), value, into));
            }
            _ => {}
        }
    }
    let name = |frame: &Value| {
        let subtype = frame["subtype"].as_str().filter(|_| frame["type"] == "system");
        format!("{}/{}", frame["type"].as_str().unwrap(), subtype.unwrap_or_default())
    };
    let mut real = BTreeSet::new();
    for version in ["2.0.76", "2.1.325"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/claude").join(version);
        for file in std::fs::read_dir(root).unwrap() {
            let path = file.unwrap().path();
            if path.to_str().unwrap().ends_with(".out.jsonl") {
                let text = std::fs::read_to_string(path).unwrap();
                for frame in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
                    paths(&name(&frame), &frame, &mut real);
                }
            }
        }
    }
    let mut stage = Stage::new(
        "plan a; b\nask Which? | A: a | B: b\nrun make\n---\nrun false\nfail 500 x\n---\nsay a b c d",
        Mode::Default,
    );
    stage.say("go", Until::Input);
    stage.answer(Answer::Answers { answers: [("Which?".into(), vec!["A".into()])].into() });
    stage.answer(Answer::deny("no"));
    stage.say("go", Until::Input);
    stage.say("go", Until::ThirdPause);
    stage.interrupt();
    let mut demo = Stage::new(script::DEFAULT, Mode::Default);
    demo.say("hi", Until::Input);
    demo.answer(Answer::allow());
    let mut ours = BTreeSet::new();
    for frame in stage.frames.iter().chain(&demo.frames) {
        paths(&name(frame), frame, &mut ours);
    }
    let strange: Vec<_> = ours.difference(&real).collect();
    assert!(strange.is_empty(), "{strange:#?}");
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
    for bad in ["call", "call mcp__s__t", "call mcp__s__t {}", "call t [1] => x", "call t {x} => y"]
    {
        let error = script::parse(bad).unwrap_err().to_string();
        assert!(error.contains("`call` needs a tool, a JSON object and `=>`"), "{error}");
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

#[test]
fn files_are_changed_inside_the_workspace_only() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("ws");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(outer.path().join("secret"), "keep").unwrap();
    std::os::unix::fs::symlink(outer.path(), root.join("out")).unwrap();
    std::os::unix::fs::symlink(outer.path().join("secret"), root.join("link")).unwrap();
    std::os::unix::fs::symlink(outer.path().join("new"), root.join("dangling")).unwrap();
    let workspace = Workspace::new(&root).unwrap();
    let absolute = outer.path().join("secret").display().to_string();
    let sneaky = root.join("../secret").display().to_string();
    for path in [
        "../secret",
        "a/../../secret",
        "out/secret",
        "out/new",
        "link",
        "dangling",
        "",
        ".",
        "out",
        "/etc/passwd",
        absolute.as_str(),
        sneaky.as_str(),
    ] {
        workspace.write(path, "changed").unwrap_err();
        let (path, old, new) = (path.to_owned(), "keep".to_owned(), "changed".to_owned());
        workspace.edit(&Edit { path, old, new, replace_all: false }).unwrap_err();
    }
    assert_eq!(std::fs::read_to_string(outer.path().join("secret")).unwrap(), "keep");
    assert_eq!(std::fs::read_dir(outer.path()).unwrap().count(), 2);
    let inside = workspace.root().join("deep/er").display().to_string();
    workspace.write(&inside, "text").unwrap();
    workspace.write("./deep/too", "text").unwrap();
    assert!(root.join("deep/er").is_file() && root.join("deep/too").is_file());
}

#[test]
fn an_edit_needs_exactly_one_place() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(directory.path()).unwrap();
    workspace.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n6\n").unwrap();
    let edit = |old: &str, replace_all| {
        let (old, new) = (old.to_owned(), "six".to_owned());
        workspace.edit(&Edit { path: "a".into(), old, new, replace_all })
    };
    edit("9", false).unwrap_err();
    edit("6", false).unwrap_err();
    let change = edit("5\n6", false).unwrap();
    expect![[r#"[{"oldStart":2,"oldLines":8,"newStart":2,"newLines":7,"lines":[" 2"," 3"," 4","-5","-6","+six"," 7"," 8"," 6"]}]"#]].assert_eq(&serde_json::to_string(&change.hunks()).unwrap());
    assert_eq!(edit("6", true).unwrap().after, "1\n2\n3\n4\nsix\n7\n8\nsix\n");
    let missing = Edit { path: "b".into(), old: "x".into(), new: "y".into(), replace_all: false };
    assert!(workspace.edit(&missing).unwrap_err().starts_with("File does not exist."));
}

#[test]
fn the_launch_says_everything_the_program_understands() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.script");
    std::fs::write(&path, "say hi").unwrap();
    let demo = |script| Demo {
        program: "/bin/tieline".into(),
        env: tieline_proc::Env::empty(),
        script: Some(script),
    };
    let launch = Launch {
        model: Some("default"),
        effort: Some("high"),
        resume: Some(Resume { session: "abc", fork: false }),
        ..Launch::new(directory.path(), Mode::Yolo)
    };
    let plan = demo(path.clone()).plan(&launch).unwrap();
    let mut args = plan.args.into_iter();
    assert_eq!(args.next().unwrap(), super::FIRST_ARGUMENT);
    let expected = Args {
        mode: Mode::BypassPermissions,
        model: Some(DEFAULT_MODEL.into()),
        effort: Some(3),
        resume: Some("abc".into()),
        script: Some(path.clone()),
    };
    assert_eq!(Args::read(args).unwrap(), expected);

    let refused = |launch: &Launch<'_>| match demo(path.clone()).plan(launch) {
        Err(failure) => failure.message.replace(directory.path().to_str().unwrap(), ""),
        Ok(_) => panic!("it was launched"),
    };
    let other = Launch { model: Some("opus"), ..launch };
    expect![[r#"the demo agent has no model "opus", only "scripted""#]].assert_eq(&refused(&other));
    refused(&Launch { resume: Some(Resume { session: "--help", fork: false }), ..launch });
    std::fs::write(&path, "say hi\nsing").unwrap();
    expect!["/demo.script: line 2 of the script: unknown verb `sing`"].assert_eq(&refused(&launch));
    Args::read(["--what", "x"].map(Into::into).into_iter()).unwrap_err();
    Args::read(["--resume"].map(Into::into).into_iter()).unwrap_err();
}

#[test]
fn an_effort_is_taken_during_a_conversation_and_one_nobody_knows_is_refused() {
    let mut stage = Stage::new("say one two", Mode::Default);
    stage.exchange();
    assert!(stage.session.set_effort(Some("high")));
    stage.exchange();
    stage.exchange();
    assert!(stage.session.set_effort(Some("bogus")));
    stage.exchange();
    stage.check(expect![[r#"
        conversation.configured: mode None model None
        conversation.configured: mode None model None effort high
        notice: Notice(Notice { level: Warning, code: "effort_refused", text: "the effort stays as it is: bogus is none of low, medium, high that the model has", rate_limit: None })
        conversation.configured: mode None model None effort high
    "#]]);
    let refused = super::effort("bogus").unwrap_err();
    expect![[r#"the demo agent has no effort "bogus", only low, medium, high"#]]
        .assert_eq(&refused);
}

#[test]
fn what_a_client_brings_along_is_said_to_be_left_out() {
    let transport =
        McpTransport::Http { url: "http://localhost".to_owned(), headers: Default::default() };
    let extras = Extras {
        mcp_servers: vec![McpServer { name: "web".to_owned(), transport }],
        directories: vec!["/other".into()],
    };
    let directory = tempfile::tempdir().unwrap();
    let launch = Launch { extras: &extras, ..Launch::new(directory.path(), Mode::Default) };
    let driver = ClaudeDriver::new(Lifetime::Conversation, Mode::Default)
        .named("the demo agent")
        .launched(&launch)
        .without_directories(&launch);
    let mut stage = Stage::new("say hi", Mode::Default);
    stage.shown.clear();
    stage.session = Session::new(Box::new(driver), Ledger::new(0, None), 1 << 20, FrameNo(1));
    stage.session.started();
    stage.exchange();
    stage.exchange();
    stage.check(expect![[r#"
        notice: Notice(Notice { level: Warning, code: "directories_not_used", text: "the demo agent works in its workspace alone, not in the client's other directories", rate_limit: None })
        conversation.configured: mode None model None
        notice: Notice(Notice { level: Warning, code: "mcp_not_used", text: "the client's MCP servers are not used: Unsupported control request subtype: mcp_set_servers", rate_limit: None })
    "#]]);
}
