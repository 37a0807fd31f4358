//! Claude Code.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tieline_agent::claude::{ClaudeDriver, Lifetime};
use tieline_agent::{Direction, ExitInfo, Launch, Ledger, Output, Session};
use tieline_event::{
    Answer, Errand, Extras, FrameNo, Inquiry, Json, Kind, McpServer, McpTransport, Mode, Origin,
    Prompt, Report, RequestBody, RequestId, ReviewTarget, Scope, TurnOptions,
};

use crate::recording::{Recording, check_snapshot, check_whole, fixtures, flag, load, recordings};
use crate::show::show;

/// The host's ids in the recordings begin with `drv_`, ours with `tl_`.
fn with_our_ids(out: &[u8]) -> Vec<u8> {
    String::from_utf8(out.to_vec()).unwrap().replace("\"drv_", "\"tl_").into_bytes()
}

struct Replay {
    session: Session,
    outputs: Vec<Output>,
    kept: Vec<u8>,
    /// Our ids of the agent's requests.
    requests: BTreeMap<String, RequestId>,
}

impl Replay {
    fn new(recording: &Recording) -> Self {
        let streaming = flag(&recording.argv, "--input-format") == Some("stream-json");
        let lifetime = if streaming { Lifetime::Conversation } else { Lifetime::Turn };
        let mode = flag(&recording.argv, "--permission-mode").unwrap_or("default");
        let mode: Mode = mode.parse().unwrap();
        let driver = Box::new(ClaudeDriver::new(lifetime, mode));
        let ledger = Ledger::new(0, None);
        let mut session = Session::new(driver, ledger, 64 << 20, FrameNo(1));
        session.started();
        let mut replay = Self { session, outputs: vec![], kept: vec![], requests: BTreeMap::new() };
        if !streaming {
            let prompt = recording.argv.last().unwrap();
            replay.session.start_turn(&Prompt::text(prompt.as_str()));
        }
        replay.settle();
        replay
    }

    fn settle(&mut self) {
        let (_, _) = self.session.take_writes(|_, _| {});
        for output in self.session.take_outputs() {
            if let Output::Event(draft) = &output
                && let Kind::RequestOpened(request) = &draft.kind
            {
                let wire_id = draft.native.request.clone().unwrap();
                self.requests.insert(wire_id, request.id.clone());
            }
            self.outputs.push(output);
        }
    }

    fn read(&mut self, line: &[u8]) {
        let kept = &mut self.kept;
        self.session.read(line, |direction, bytes| {
            assert_eq!(direction, Direction::Out);
            kept.extend_from_slice(&bytes);
        });
        self.settle();
    }

    /// Does what the recorded host did.
    fn say(&mut self, line: &Value) {
        match line["type"].as_str() {
            Some("user") => {
                let content = &line["message"]["content"];
                let text = content[0]["text"].as_str().or(content.as_str()).unwrap_or("[image]");
                let prompt = Prompt::text(text);
                if self.session.ledger().current_turn().is_some() {
                    self.session.steer(&prompt).unwrap();
                } else {
                    self.session.start_turn(&prompt);
                }
            }
            Some("control_request") if line["request"]["subtype"] == "interrupt" => {
                assert!(self.session.interrupt());
            }
            Some("control_response") => self.answer(&line["response"]),
            _ => {}
        }
        self.settle();
    }

    fn answer(&mut self, response: &Value) {
        let id = response["request_id"].as_str().unwrap();
        let answer = &response["response"];
        let answer = if answer["behavior"] == "deny" {
            Answer::Deny {
                message: answer["message"].as_str().map(str::to_owned),
                stop: answer["interrupt"] == json!(true),
            }
        } else if answer["behavior"] == "allow" {
            match answer["updatedInput"]["answers"].as_object() {
                Some(answers) => Answer::Answers {
                    answers: answers
                        .iter()
                        .map(|(question, label)| {
                            (question.clone(), vec![label.as_str().unwrap().to_owned()])
                        })
                        .collect(),
                },
                None => Answer::Allow {
                    scope: match answer["updatedPermissions"].is_array() {
                        true => Scope::Session,
                        false => Scope::Once,
                    },
                    input: answer["updatedInput"]
                        .as_object()
                        .map(|input| Json::from_value(input).unwrap()),
                    mode: None,
                },
            }
        } else {
            return; // answers to hooks and MCP messages, which we refuse
        };
        let request = self.requests[id].clone();
        self.session.answer(&request, &answer, Origin::Human, None).unwrap();
    }
}

fn replay(recording: &Recording) -> Replay {
    let mut replay = Replay::new(recording);
    let out = with_our_ids(&recording.out);
    let mut said = recording.said.iter().peekable();
    for (n_read, line) in out.split_inclusive(|byte| *byte == b'\n').enumerate() {
        while let Some((_, line)) = said.next_if(|(at, _)| *at <= n_read) {
            replay.say(line);
        }
        replay.read(line);
    }
    said.for_each(|(_, line)| replay.say(line));
    let Replay { session, kept, .. } = &mut replay;
    session.exited(&recording.exit, |_, bytes| kept.extend_from_slice(&bytes));
    replay.settle();
    assert_eq!(replay.kept, out, "frames are the input byte for byte");
    replay
}

#[test]
fn every_recording_replays_whole_to_its_snapshot() {
    for scenario in recordings("claude") {
        let replay = replay(&load(&scenario));
        check_whole(&scenario, &replay.outputs, replay.session.ledger());
        check_snapshot("claude", &scenario, &replay.outputs, replay.session.ledger());
    }
}

#[test]
fn any_chunking_and_any_cut_ends_the_turn_once() {
    let root = fixtures("claude").join("2.1.325");
    let recording = load(&root.join("shell-partial"));
    for cut in (0..recording.out.len()).step_by(97) {
        let mut replay = Replay::new(&recording);
        for chunk in recording.out[..cut].chunks(61) {
            replay.read(chunk);
        }
        let exit = ExitInfo { signal: Some(9), ..ExitInfo::default() };
        let Replay { session, kept, .. } = &mut replay;
        session.exited(&exit, |_, bytes| kept.extend_from_slice(&bytes));
        replay.settle();
        assert_eq!(replay.kept, recording.out[..cut]);
        let ends = replay.outputs.iter().filter(|output| {
            matches!(output, Output::Event(draft) if matches!(draft.kind, Kind::TurnCompleted(_)))
        });
        assert_eq!(ends.count(), 1, "cut at {cut}");
    }
}

#[test]
fn garbage_between_the_lines_becomes_unparsed_and_changes_nothing_else() {
    let root = fixtures("claude").join("2.1.325");
    let recording = load(&root.join("hello-partial"));
    let clean = replay(&recording);
    let mut replay = Replay::new(&recording);
    let garbage: [&[u8]; 6] = [
        b"[SandboxDebug] hello\n",
        b"\xff\xfe\x00\n",
        b"{\"type\":\"from_the_future\",\"x\":1}\n",
        b"{\"type\":7}\n",
        b"\n",
        b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":1}]}}\n",
    ];
    for (n, line) in recording.out.split_inclusive(|byte| *byte == b'\n').enumerate() {
        replay.read(garbage[n % garbage.len()]);
        replay.read(line);
    }
    replay.session.exited(&recording.exit, |_, _| {});
    replay.settle();
    let is_unparsed = |output: &&Output| matches!(output, Output::Event(draft) if matches!(draft.kind, Kind::Unparsed(_)));
    let shown = |outputs: &[Output]| -> Vec<String> {
        outputs.iter().filter(|output| !is_unparsed(output)).map(show).collect()
    };
    assert_eq!(shown(&replay.outputs), shown(&clean.outputs));
    assert!(replay.outputs.iter().filter(is_unparsed).count() > 5);
}

/// A conversation at the start of its first turn, and what its agent says then.
fn after(lines: &[&str]) -> Replay {
    let driver = Box::new(ClaudeDriver::new(Lifetime::Conversation, Mode::Default));
    let mut session = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
    session.started();
    session.start_turn(&Prompt::text("go"));
    let mut replay = Replay { session, outputs: vec![], kept: vec![], requests: BTreeMap::new() };
    replay.settle();
    replay.outputs.clear();
    for line in lines {
        replay.read(format!("{line}\n").as_bytes());
    }
    replay
}

fn shown(replay: &Replay) -> String {
    replay.outputs.iter().map(|output| format!("{}\n", show(output))).collect()
}

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#;

#[test]
fn a_result_of_another_shape_still_ends_the_turn() {
    let replay = after(&[INIT, r#"{"type":"result","subtype":7}"#]);
    let text = shown(&replay);
    assert!(text.contains("unparsed: 29 bytes"), "{text}");
    assert!(text.contains("turn.completed: Failed by Wire"), "{text}");
    let odd = r#"{"type":"result","subtype":"success","is_error":null,"usage":{"input_tokens":null},"origin":"x","result":"ok"}"#;
    let text = shown(&after(&[INIT, odd]));
    assert!(text.contains("turn.completed: Completed") && text.contains("\"ok\""), "{text}");
}

#[test]
fn a_question_of_another_shape_is_refused_at_once() {
    let mut replay = after(&[INIT]);
    let line = b"{\"type\":\"control_request\",\"request_id\":\"q\",\"request\":{\"subtype\":1}}\n";
    replay.session.read(line, |_, _| {});
    let (written, _) = replay.session.take_writes(|_, _| {});
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains("\"error\"") && written.contains("\"q\""), "{written}");
}

#[test]
fn half_a_character_in_a_command_does_not_hide_the_command() {
    let text = shown(&after(&[
        INIT,
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"u","name":"Bash","input":{"command":"echo \ud83d"}}]}}"#,
        r#"{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"echo \ud83d"},"tool_use_id":"u"}}"#,
    ]));
    assert!(text.contains("Run echo \u{fffd}"), "{text}");
}

#[test]
fn an_agent_that_counts_its_requests_from_one_again_is_told_apart() {
    let ask = |id: &str| {
        format!(
            r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{{}}}}}}"#
        )
    };
    let replay = after(&[INIT, &ask("1"), &ask("1"), &ask("2")]);
    let text = shown(&replay);
    assert_eq!(text.matches("request.opened").count(), 2, "{text}");
    assert!(text.contains("repeated_request"), "{text}");
    let ids: std::collections::BTreeSet<_> = replay.requests.values().collect();
    assert_eq!(ids.len(), 2);
}

#[test]
fn work_that_is_not_a_message_is_a_command_or_refused_in_words() {
    let said = |errand: Errand| {
        let driver = Box::new(ClaudeDriver::new(Lifetime::Conversation, Mode::Default));
        let mut session = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
        session.started();
        session.take_writes(|_, _| {});
        session.start_turn(&Prompt::errand(errand));
        let (written, _) = session.take_writes(|_, _| {});
        let told: String = session.take_outputs().iter().map(show).collect();
        (String::from_utf8(written).unwrap(), told)
    };
    assert!(said(Errand::Compact).0.contains("\"/compact\""));
    let branch = ReviewTarget::Branch { branch: "main".to_owned() };
    assert!(said(Errand::Review { target: branch }).0.contains("\"/code-review main\""));
    let refused =
        [Errand::Undo, Errand::Rollback { turns: 1 }, Errand::Shell { command: "ls".into() }];
    for errand in refused {
        let (written, told) = said(errand);
        assert_eq!(written, "");
        assert!(told.contains("turn.completed: Failed") && told.contains("Claude Code"), "{told}");
    }
}

#[test]
fn what_it_has_is_told_when_it_has_told_us() {
    let mut replay = after(&[]);
    let ask = |replay: &mut Replay, inquiry| replay.session.inquire(7, &inquiry);
    assert!(
        ask(&mut replay, Inquiry::Tools).is_err() && ask(&mut replay, Inquiry::Prompts).is_err()
    );
    ask(&mut replay, Inquiry::Models).unwrap();
    assert!(replay.session.ledger_mut().take_reports().is_empty());
    replay.read(b"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"tl_1\",\"response\":{\"commands\":[],\"models\":[{\"value\":\"m\",\"displayName\":\"M\",\"description\":\"d\"}]}}}\n");
    let told = replay.session.ledger_mut().take_reports();
    assert!(matches!(told.as_slice(), [(7, Ok(Report::Models(models)))] if models[0].id == "m"));
    ask(&mut replay, Inquiry::Skills { dirs: vec![], reload: false }).unwrap();
    let told = replay.session.ledger_mut().take_reports();
    assert!(matches!(told.as_slice(), [(7, Err(why))] if why.contains("first turn")), "{told:?}");
}

#[test]
fn options_that_it_cannot_carry_out_are_warned_of() {
    let driver = Box::new(ClaudeDriver::new(Lifetime::Conversation, Mode::Default));
    let mut session = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
    session.started();
    let options = TurnOptions {
        after: Some("r".to_owned()),
        output_schema: Some(Json::from_text("{}".to_owned()).unwrap()),
        personality: Some("friendly".to_owned()),
        summary: Some("concise".to_owned()),
    };
    session.start_turn(&Prompt { options: options.clone(), ..Prompt::text("go") });
    let told: String = session.take_outputs().iter().map(|it| format!("{}\n", show(it))).collect();
    for name in ["response_id", "output schema", "personality", "summary"] {
        let warned = told.lines().find(|line| line.contains("Warning option_ignored"));
        assert!(warned.is_some() && told.contains(name), "{name}: {told}");
    }
    assert_eq!(told.matches("option_ignored").count(), 4, "{told}");
    // What every client of the queue protocol says is no wish.
    let auto = TurnOptions { summary: Some("auto".to_owned()), ..TurnOptions::default() };
    let driver = Box::new(ClaudeDriver::new(Lifetime::Conversation, Mode::Default));
    let mut silent = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
    silent.start_turn(&Prompt { options: auto, ..Prompt::text("go") });
    let told: String = silent.take_outputs().iter().map(show).collect();
    assert!(!told.contains("option_ignored"), "{told}");
    // Nor are they in the middle of a turn.
    session.steer(&Prompt { options, ..Prompt::text("and") }).unwrap();
    let told: String = session.take_outputs().iter().map(show).collect();
    assert_eq!(told.matches("option_ignored").count(), 4, "{told}");
}

#[test]
fn the_result_of_a_command_that_was_stopped_is_no_stranger() {
    let call = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"bash","name":"Bash","input":{"command":"sleep 60"}}]}}"#;
    let began = r#"{"type":"system","subtype":"task_started","task_id":"k","tool_use_id":"bash"}"#;
    let stopped = r#"{"type":"system","subtype":"task_notification","task_id":"k","tool_use_id":"bash","status":"stopped","summary":"stopped"}"#;
    let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"bash","content":"Exit code 137\npart","is_error":true}]}}"#;
    let end = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}"#;
    let mut replay = after(&[INIT, call, began]);
    replay.session.interrupt();
    for line in [stopped, result, end] {
        replay.read(format!("{line}\n").as_bytes());
    }
    let text = shown(&replay);
    assert!(text.contains("command bash Cancelled \"sleep 60\" -> \"part\""), "{text}");
    assert!(!text.contains("orphan_result"), "{text}");
    // One that comes when the turn is over, or twice, is no stranger either.
    let mut replay = after(&[INIT, call, began]);
    replay.session.interrupt();
    for line in [end, result, result] {
        replay.read(format!("{line}\n").as_bytes());
    }
    assert!(!shown(&replay).contains("orphan_result"), "{}", shown(&replay));
    // One of a call that nobody made is.
    let replay = after(&[INIT, result]);
    assert!(shown(&replay).contains("orphan_result"), "{}", shown(&replay));
}

#[test]
fn output_that_is_cut_says_how_much_and_where_the_rest_is() {
    let call = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"bash","name":"Bash","input":{"command":"make"}}]}}"#;
    let result = |sidecar: &str| {
        format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"bash","content":"x"}}]}},"tool_use_result":{{"stdout":"begin","stderr":""{sidecar}}}}}"#
        )
    };
    let cut = result(r#","persistedOutputPath":"/p/out.txt","persistedOutputSize":108894"#);
    let text = shown(&after(&[INIT, call, &cut]));
    let mark = "begin\\n[the agent tells 5 of 108894 bytes; the whole output is in /p/out.txt]";
    assert!(text.contains(mark), "{text}");
    let whole = result(r#","persistedOutputSize":5"#);
    let text = shown(&after(&[INIT, call, &whole]));
    assert!(text.contains("-> \"begin\" exit Some(0)"), "{text}");
}

#[test]
fn a_command_in_the_background_keeps_its_output_its_end_and_its_file() {
    let call = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"bash","name":"Bash","input":{"command":"make","run_in_background":true}}]}}"#;
    let begun = |stdout: &str, notice: &str| {
        format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"bash","content":"{notice}"}}]}},"tool_use_result":{{"stdout":"{stdout}","backgroundTaskId":"k"}}}}"#
        )
    };
    let over = r#"{"type":"system","subtype":"task_notification","task_id":"k","tool_use_id":"bash","status":"completed","output_file":"/t/k.out","summary":"done (exit code 0)"}"#;
    let text = shown(&after(&[INIT, call, &begun("so far", "ID k, see /t/k.out"), over]));
    assert!(text.contains("InProgress \"make\" -> \"so far\\nID k, see /t/k.out\""), "{text}");
    let told = "Ok \"make\" -> \"so far\\nID k, see /t/k.out\\ndone (exit code 0)\" exit Some(0)";
    assert!(text.contains(told), "{text}");
    let text = shown(&after(&[INIT, call, &begun("", ""), over]));
    let told = "-> \"done (exit code 0)\\n[the whole output is in /t/k.out]\"";
    assert!(text.contains(told), "{text}");
}

#[test]
fn work_of_a_background_agent_goes_on_after_the_turn() {
    let mut replay = after(&[
        INIT,
        r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"agent","name":"Agent","input":{"description":"x"}}]}}"#,
        r#"{"type":"system","subtype":"task_started","task_id":"k","tool_use_id":"agent"}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"agent","content":"launched"}]},"tool_use_result":{"isAsync":true}}"#,
        r#"{"type":"assistant","parent_tool_use_id":"agent","message":{"id":"n","content":[{"type":"tool_use","id":"bash","name":"Bash","input":{"command":"touch x"}}]}}"#,
        r#"{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch x"},"tool_use_id":"bash"}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"started"}"#,
    ]);
    let text = shown(&replay);
    assert!(!text.contains("Cancelled") && !text.contains("expired"), "{text}");
    let request = replay.requests["q"].clone();
    replay.session.answer(&request, &Answer::allow(), Origin::Human, None).unwrap();
    replay.read(b"{\"type\":\"user\",\"parent_tool_use_id\":\"agent\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"bash\",\"content\":\"\"}]}}\n");
    replay.read(b"{\"type\":\"system\",\"subtype\":\"task_notification\",\"task_id\":\"k\",\"tool_use_id\":\"agent\",\"status\":\"completed\"}\n");
    let text = shown(&replay);
    assert!(text.contains("item.completed (under agent): command bash Ok"), "{text}");
    assert!(text.contains("item.completed: tool_call agent Ok"), "{text}");
    assert_eq!(replay.session.ledger().open_items().len(), 0);
}

/// A conversation whose process was just started, and what it is told.
fn woken(launch: &Launch<'_>) -> (Replay, String) {
    let driver = ClaudeDriver::new(Lifetime::Conversation, Mode::Default).launched(launch);
    let ledger = Ledger::new(0, None);
    let mut session = Session::new(Box::new(driver), ledger, 64 << 20, FrameNo(1));
    session.started();
    let mut kept = Vec::new();
    let (written, _) = session.take_writes(|_, line| kept.extend_from_slice(&line));
    assert_eq!(written.is_empty(), kept.is_empty());
    let replay = Replay { session, outputs: vec![], kept, requests: BTreeMap::new() };
    (replay, String::from_utf8(written).unwrap())
}

const MODELS: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"tl_1","response":{"commands":[{"name":"compact"}],"models":[{"value":"default","resolvedModel":"big-1","supportedEffortLevels":["low","high"]},{"value":"small","resolvedModel":"small-1","supportedEffortLevels":[]}]}}}"#;

#[test]
fn what_there_is_to_choose_from_is_told_before_the_first_turn() {
    let (mut replay, _) = woken(&Launch::new(Path::new("/ws"), Mode::Default));
    replay.read(format!("{MODELS}\n").as_bytes());
    let text = shown(&replay);
    assert!(text.contains("1 commands, 2 models, 2 efforts"), "{text}");
    replay.outputs.clear();
    assert!(replay.session.set_model(Some("small")));
    replay.read(b"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"tl_2\",\"response\":{\"model\":\"small-1\"}}}\n");
    let text = shown(&replay);
    assert!(text.contains("2 models, 0 efforts"), "efforts are those of the model: {text}");
}

#[test]
fn an_effort_is_changed_by_a_setting_and_one_the_model_lacks_is_refused() {
    let launch = Launch { effort: Some("bogus"), ..Launch::new(Path::new("/ws"), Mode::Default) };
    let (mut replay, _) = woken(&launch);
    replay.read(format!("{MODELS}\n").as_bytes());
    let text = shown(&replay);
    assert!(text.contains("effort_refused") && !text.contains("effort bogus"), "{text}");
    replay.outputs.clear();
    assert!(!replay.session.set_effort(None), "the default needs a new process");
    assert!(replay.session.set_effort(Some("high")));
    let (written, _) = replay.session.take_writes(|_, _| {});
    let written = String::from_utf8(written).unwrap();
    assert!(written.contains(r#""subtype":"apply_flag_settings""#), "{written}");
    assert!(written.contains(r#"{"effortLevel":"high"}"#), "{written}");
    replay.read(b"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"tl_2\"}}\n");
    assert!(shown(&replay).contains("effort high"), "{}", shown(&replay));
}

#[test]
fn a_client_s_servers_are_told_and_their_secrets_are_not_kept() {
    let env = [("TOKEN".to_owned(), "hunter2".to_owned())].into();
    let stdio =
        McpTransport::Stdio { command: "/bin/srv".to_owned(), args: vec!["-x".to_owned()], env };
    let headers = [("Authorization".to_owned(), "Bearer abc".to_owned())].into();
    let http = McpTransport::Http { url: "https://x/?key=1".to_owned(), headers };
    let server = |name: &str, transport| McpServer { name: name.to_owned(), transport };
    let extras = Extras {
        mcp_servers: vec![server("my files", stdio), server("web", http)],
        directories: Vec::new(),
    };
    let launch = Launch { extras: &extras, ..Launch::new(Path::new("/ws"), Mode::Default) };
    let (mut replay, written) = woken(&launch);
    let told: Value = serde_json::from_str(written.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        told["request"],
        json!({"subtype": "mcp_set_servers", "servers": {
            "my_files": {"type": "stdio", "command": "/bin/srv", "args": ["-x"], "env": {"TOKEN": "hunter2"}},
            "web": {"type": "http", "url": "https://x/?key=1", "headers": {"Authorization": "Bearer abc"}},
        }})
    );
    let kept = String::from_utf8(std::mem::take(&mut replay.kept)).unwrap();
    assert!(kept.contains("/bin/srv") && kept.contains("[secret]"), "{kept}");
    for secret in ["hunter2", "Bearer abc", "key=1"] {
        assert!(!kept.contains(secret), "{kept}");
    }
    replay.read(b"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"tl_2\",\"response\":{\"added\":[\"web\"],\"errors\":{\"web\":\"refused\"}}}}\n");
    replay.read(br#"{"type":"system","subtype":"init","session_id":"s","mcp_servers":[{"name":"web","status":"failed"},{"name":"own","status":"failed"}]}"#);
    replay.read(b"\n");
    let text = shown(&replay);
    assert_eq!(text.matches("mcp_failed").count(), 2, "each once: {text}");
    assert!(text.contains("the MCP server web did not start: refused"), "{text}");
    assert!(text.contains("the MCP server own did not start"), "{text}");
}

#[test]
fn a_call_that_was_only_announced_is_cancelled_by_the_next_message() {
    let start = |id: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"message_start","message":{{"id":"{id}"}}}}}}"#
        )
    };
    let call = r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"u","name":"Write","input":{}}}}"#;
    let text = shown(&after(&[INIT, &start("m1"), call, &start("m2")]));
    assert!(text.contains("item.started: file_change u InProgress"), "{text}");
    assert!(text.contains("item.completed: file_change u Cancelled"), "{text}");
}

#[test]
fn a_session_s_name_is_the_conversation_s_title() {
    let named = r#"{"type":"system","subtype":"session_title_changed","title":"Fix the build","session_id":"s"}"#;
    let text = shown(&after(&[INIT, named]));
    assert!(text.contains("title \"Fix the build\""), "{text}");
}

#[test]
fn a_mode_that_the_model_lacks_is_said_to_be_refused() {
    let begins = |mode: &str| {
        let driver = ClaudeDriver::new(Lifetime::Conversation, Mode::Auto);
        let ledger = Ledger::new(0, None);
        let session = Session::new(Box::new(driver), ledger, 64 << 20, FrameNo(1));
        let mut replay =
            Replay { session, outputs: vec![], kept: vec![], requests: BTreeMap::new() };
        let init = format!(
            r#"{{"type":"system","subtype":"init","session_id":"s","permissionMode":"{mode}"}}"#
        );
        replay.read(format!("{init}\n").as_bytes());
        shown(&replay)
    };
    let text = begins("default");
    assert!(text.contains("mode_refused: the agent begins in mode default"), "{text}");
    assert!(text.contains("mode Some(Default)"), "{text}");
    let text = begins("auto");
    assert!(!text.contains("mode_refused") && text.contains("mode Some(Auto)"), "{text}");
}

#[test]
fn what_the_agent_says_before_it_hears_of_a_mode_is_no_change_of_it() {
    let (mut replay, _) = woken(&Launch::new(Path::new("/ws"), Mode::Default));
    replay.read(format!("{MODELS}\n").as_bytes());
    replay.outputs.clear();
    assert!(replay.session.set_mode(Mode::Plan, None));
    assert!(replay.session.set_mode(Mode::AcceptEdits, None));
    let answer = |id: &str, subtype: &str| {
        format!(
            "{{\"type\":\"control_response\",\"response\":{{\"subtype\":\"{subtype}\",\"request_id\":\"{id}\"}}}}\n"
        )
    };
    let init = INIT.replace('}', r#","permissionMode":"default"}"#);
    replay.read(format!("{init}\n").as_bytes());
    replay.read(answer("tl_2", "success").as_bytes());
    assert!(!shown(&replay).contains("mode Some"), "{}", shown(&replay));
    replay.read(answer("tl_3", "success").as_bytes());
    assert_eq!(shown(&replay).matches("mode Some(AcceptEdits)").count(), 1, "{}", shown(&replay));
    // One that is refused leaves what there is.
    assert!(replay.session.set_mode(Mode::Plan, None));
    replay.read(answer("tl_4", "error").as_bytes());
    assert_eq!(shown(&replay).matches("mode Some(AcceptEdits)").count(), 2, "{}", shown(&replay));
}

#[test]
fn commands_that_are_found_on_the_way_are_offered() {
    let (mut replay, _) = woken(&Launch::new(Path::new("/ws"), Mode::Default));
    replay.read(format!("{MODELS}\n").as_bytes());
    replay.outputs.clear();
    let changed = |commands: &str| {
        format!(r#"{{"type":"system","subtype":"commands_changed","commands":[{commands}]}}"#)
    };
    replay.read(format!("{}\n", changed(r#"{"name":"compact"}"#)).as_bytes());
    assert_eq!(shown(&replay), "", "nothing is new");
    let two = changed(r#"{"name":"compact"},{"name":"deploy","description":"Ship it"}"#);
    replay.read(format!("{two}\n").as_bytes());
    assert!(shown(&replay).contains("2 commands, 2 models"), "{}", shown(&replay));
}

#[test]
fn commands_for_the_agent_s_own_terminal_are_not_offered() {
    let offered = |line: &str| {
        let (mut replay, _) = woken(&Launch::new(Path::new("/ws"), Mode::Default));
        replay.outputs.clear();
        replay.read(format!("{line}\n").as_bytes());
        let abilities = replay.outputs.iter().find_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::ConversationConfigured(configured) => configured.abilities.clone(),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        let commands = abilities.unwrap().commands.into_iter();
        commands.map(|command| command.name).collect::<Vec<_>>()
    };
    let commands = r#"{"name":"vim"},{"name":"compact"},{"name":"__own"},{"name":"clear"}"#;
    let answer = format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"tl_1","response":{{"commands":[{commands}],"models":[]}}}}}}"#
    );
    assert_eq!(offered(&answer), ["compact"]);
    let init = r#"{"type":"system","subtype":"init","session_id":"s","slash_commands":["login","compact","__own"]}"#;
    assert_eq!(offered(init), ["compact"]);
}

#[test]
fn who_is_asked_about_a_command_sees_the_file_it_would_touch() {
    let path = |input: &str| {
        let (mut replay, _) = woken(&Launch::new(Path::new("/ws"), Mode::Default));
        let line = format!(
            r#"{{"type":"control_request","request_id":"q","request":{{"subtype":"can_use_tool","tool_name":"Bash","input":{input},"blocked_path":"/etc/x"}}}}"#
        );
        replay.read(format!("{line}\n").as_bytes());
        let asked = replay.outputs.iter().find_map(|output| match output {
            Output::Event(draft) => match &draft.kind {
                Kind::RequestOpened(request) => Some(request.body.clone()),
                _ => None,
            },
            Output::Delta(_) => None,
        });
        let Some(RequestBody::Approval(approval)) = asked else { panic!("{}", shown(&replay)) };
        approval.path
    };
    assert_eq!(path(r#"{"command":"touch /etc/x"}"#).as_deref(), Some("/etc/x"));
    assert_eq!(path(r#"{"file_path":"/etc/y"}"#).as_deref(), Some("/etc/y"), "its own word");
}

#[test]
fn a_slash_command_stands_alone_where_prompts_name_the_workspace() {
    let said = |text: &str| {
        let driver = Box::new(ClaudeDriver::new(Lifetime::Conversation, Mode::Default));
        let session = Session::new(driver, Ledger::new(0, None), 64 << 20, FrameNo(1));
        let mut session = session.with_preamble(Some("You work in /ws.".to_owned()));
        session.start_turn(&Prompt::text(text));
        String::from_utf8(session.take_writes(|_, _| {}).0).unwrap()
    };
    assert!(!said("/compact now").contains("You work in"));
    for text in ["go", "/etc/passwd is a file", "/ nothing"] {
        assert!(said(text).contains("You work in"), "{text}");
    }
}

#[test]
fn figures_that_are_too_large_to_be_added_end_nothing() {
    let (mut replay, _) = woken(&Launch::new(Path::new("/ws"), Mode::Default));
    replay.session.start_turn(&Prompt::text("go"));
    let most = u64::MAX;
    for message in ["m1", "m2"] {
        let usage = json!({"input_tokens": most, "output_tokens": 1, "cache_read_input_tokens": most,
            "cache_creation_input_tokens": most, "output_tokens_details": {"thinking_tokens": most}});
        let message = json!({"id": message, "content": [], "usage": usage});
        let line = json!({"type": "assistant", "message": message});
        replay.read(format!("{line}\n").as_bytes());
    }
    let used = replay.outputs.iter().rev().find_map(|output| match output {
        Output::Event(draft) => match &draft.kind {
            Kind::UsageUpdated(usage) => Some(usage.clone()),
            _ => None,
        },
        Output::Delta(_) => None,
    });
    let used = used.unwrap_or_else(|| panic!("{}", shown(&replay)));
    assert_eq!((used.input_tokens, used.output_tokens, used.context_used), (most, 2, Some(most)));
}

#[test]
fn a_call_may_be_its_own_parent_and_parents_may_form_a_chain() {
    const N: usize = 20_000;
    let own = vec![("u0".to_owned(), "u0".to_owned())];
    let pair = vec![("u0".to_owned(), "u1".to_owned()), ("u1".to_owned(), "u0".to_owned())];
    let chain = (0..N).map(|n| (format!("u{}", n + 1), format!("u{n}"))).collect();
    for links in [own, pair, chain] {
        let first = links[0].1.clone();
        let calls: String = links
            .iter()
            .map(|(id, parent)| {
                format!(
                    r#"{{"type":"assistant","parent_tool_use_id":"{parent}","message":{{"id":"m","content":[{{"type":"tool_use","id":"{id}","name":"Task","input":{{}}}}]}}}}"#
                ) + "\n"
            })
            .collect();
        let root = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"u0","name":"Task","input":{}}]}}"#;
        let over = format!(
            r#"{{"type":"system","subtype":"task_notification","task_id":"k","tool_use_id":"{first}","status":"completed"}}"#
        );
        let mut replay = after(&[INIT]);
        if links.len() == N {
            replay.read(format!("{root}\n").as_bytes());
        }
        replay.read(calls.as_bytes());
        replay.read(format!("{over}\n").as_bytes());
        assert_eq!(replay.session.ledger().open_items().len(), 0);
        let done = format!(" {first} Ok");
        assert!(shown(&replay).lines().last().is_some_and(|line| line.contains(&done)));
    }
}

#[test]
fn pieces_of_a_message_that_never_began_are_the_message() {
    let piece = |index: u32, text: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
        )
    };
    let thought = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}}"#;
    let begin =
        r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg"}}}"#;
    let stop = r#"{"type":"stream_event","event":{"type":"message_stop"}}"#;
    let whole = r#"{"type":"assistant","message":{"id":"msg","content":[{"type":"text","text":"all of it"}]}}"#;
    let end = r#"{"type":"result","subtype":"success","is_error":false}"#;
    let (one, two) = (piece(1, "all "), piece(1, "of it"));
    let wires: [&[&str]; 4] = [
        &[thought, &one, &two],
        &[begin, thought, &one, &two, stop],
        &[begin, thought, &one, &two, whole, &two],
        &[thought, &one, &two, whole, &two],
    ];
    for lines in wires {
        let text = shown(&after(&[&[INIT], lines, &[end]].concat()));
        assert!(text.contains("text \"all of it\""), "{text}");
        assert_eq!(text.matches("item.completed: agent_message").count(), 1, "{text}");
        assert_eq!(text.matches("item.started: agent_message").count(), 1, "{text}");
        assert!(
            text.contains("item.completed: reasoning") && !text.contains("Cancelled"),
            "{text}"
        );
    }
}
