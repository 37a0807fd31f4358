//! `tieline mcp`, line by line.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};

use crate::tieline::Tieline;

const PATIENCE: Duration = Duration::from_secs(60);

/// A client. Every line that comes must be JSON-RPC.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    /// What came beside answers.
    told: Vec<Value>,
    n_asked: u64,
}

impl Client {
    fn new(tieline: &Tieline, args: &[&str]) -> Self {
        let mut words = vec!["mcp"];
        words.extend(args);
        let mut server = tieline
            .command(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(server.stdout.take().unwrap());
        let (tx, lines) = mpsc::channel();
        thread::spawn(move || {
            output.lines().map_while(Result::ok).for_each(|line| tx.send(line).unwrap_or_default());
        });
        let input = server.stdin.take();
        let mut client = Self { server, input, lines, told: Vec::new(), n_asked: 0 };
        let hello = client.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "tieline", "{hello}");
        assert!(hello["result"]["instructions"].as_str().unwrap().contains("`answer`"));
        client.send(json!({"method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.n_asked += 1;
        let id = self.n_asked;
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
        self.send(json!({"id": id, "method": "tools/call", "params": params}));
        id
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.n_asked += 1;
        let id = self.n_asked;
        self.send(json!({"id": id, "method": method, "params": params}));
        self.answer(id)
    }

    #[track_caller]
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
            self.told.push(message);
        }
    }

    #[track_caller]
    fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server says something");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    /// Calls a tool that does what it is asked, and gives what programs read.
    #[track_caller]
    fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.call(tool, arguments);
        let answer = self.answer(id);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        assert!(!answer["result"]["content"][0]["text"].as_str().unwrap().is_empty());
        answer["result"]["structuredContent"].clone()
    }

    /// Calls a tool that refuses, and gives its words.
    #[track_caller]
    fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let id = self.call(tool, arguments);
        let answer = self.answer(id);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// What was told of the progress of a call.
    fn progress(&self, id: u64) -> Vec<(f64, String)> {
        let mine = self.told.iter().filter(|it| it["params"]["progressToken"] == id);
        let word = |it: &Value| {
            assert_eq!(it["method"], "notifications/progress");
            let message = it["params"]["message"].as_str().unwrap().to_owned();
            (it["params"]["progress"].as_f64().unwrap(), message)
        };
        mine.map(word).collect()
    }

    /// Hangs up, and waits for the server to end.
    #[track_caller]
    fn hang_up(mut self) -> String {
        self.input = None;
        let output = self.server.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        for line in self.lines.iter() {
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
        }
        stderr
    }
}

fn playing(script: &str) -> Tieline {
    let tieline = Tieline::new();
    let path = tieline.path("demo.script");
    fs::write(&path, script).unwrap();
    tieline.with_config(&format!("[agents.demo]\nscript = {:?}\n", path.display()))
}

const WRITES: &str = "\
say <<END
[PROGRESS] Looking around
END
write made.txt <<END
hello
END
say All done.
";

const ASKS: &str = "\
ask Which colour? | red: like blood | blue: like the sea
say You chose {answer}.
";

#[test]
fn the_tools_are_these() {
    let tieline = playing(WRITES);
    let mut client = Client::new(&tieline, &[]);
    let listed = client.ask("tools/list", json!({}));
    let mut text = String::new();
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let schema = &tool["inputSchema"];
        let keys = schema["properties"].as_object().unwrap().keys();
        let mut keys: Vec<&str> = keys.map(String::as_str).collect();
        // Whether they are sorted depends on what else is built with it.
        keys.sort_unstable();
        text.push_str(&format!(
            "{}: {} required {} readOnly {}\n",
            tool["name"].as_str().unwrap(),
            keys.join(" "),
            schema["required"],
            tool["annotations"]["readOnlyHint"],
        ));
        assert!(tool["description"].as_str().unwrap().len() > 100);
        assert_eq!(schema["type"], "object");
    }
    expect![[r#"
        delegate: agent budget cwd id mode model plan_file task timeout_seconds verify wait worktree required ["task"] readOnly false
        status: id required [] readOnly true
        answer: answers id timeout_seconds wait required ["id","answers"] readOnly false
        cancel: id required ["id"] readOnly false
        result: id timeout_seconds wait required ["id"] readOnly true
    "#]]
    .assert_eq(&text);
    assert_eq!(client.hang_up(), "");
}

#[test]
fn a_task_is_followed_to_its_end() {
    let tieline = playing(WRITES);
    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    let id = client.call(
        "delegate",
        json!({"task": "Write the file, please", "verify": ["test -f made.txt"]}),
    );
    let answer = client.answer(id);
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{answer}");
    let given = &result["structuredContent"];
    assert_eq!(given["status"], "complete", "{given}");
    assert_eq!(given["agent"], "demo");
    assert_eq!(given["files"], json!([{"path": "made.txt", "change": "created"}]));
    assert_eq!(given["summary"], "All done.");
    assert_eq!(given["questions"], json!([]));
    assert_eq!(given["blocked"], Value::Null);
    assert_eq!(given["iterations"], 1);
    assert_eq!(given["checks"], json!([{"command": "test -f made.txt", "passed": true}]));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("File: made.txt (created)") && text.contains("All done."), "{text}");

    let told = client.progress(id);
    let numbers: Vec<f64> = told.iter().map(|(n, _)| *n).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let words: Vec<&str> = told.iter().map(|(_, word)| word.as_str()).collect();
    for word in ["Looking around", "files changed: made.txt", "task completed in 1 iterations"] {
        assert!(words.contains(&word), "{words:?}");
    }

    // The same, from anywhere, and under the name that was made up.
    let name = given["id"].as_str().unwrap();
    assert!(name.starts_with("write-the-file-please-"), "{name}");
    assert_eq!(client.done("result", json!({"id": name})), *given);
    assert_eq!(client.done("status", json!({"id": name}))["status"], "complete");
    let all = client.done("status", json!({}));
    assert_eq!(all["tasks"][0]["id"], name);
    let listed = tieline.run(&["task", "list"]).succeeds().out;
    assert!(listed.contains(name) && listed.contains("complete"), "{listed}");

    // And more to do, which is told as it happens and nothing of before.
    let more = client.call("delegate", json!({"task": "Once more", "id": name}));
    let answer = client.answer(more);
    assert_eq!(answer["result"]["structuredContent"]["status"], "complete", "{answer}");
    assert_eq!(answer["result"]["structuredContent"]["iterations"], 2);
    let words: Vec<String> = client.progress(more).into_iter().map(|(_, word)| word).collect();
    assert!(words.contains(&"task completed in 2 iterations".to_owned()), "{words:?}");
    assert!(!words.contains(&"task completed in 1 iterations".to_owned()), "{words:?}");
    client.hang_up();
}

#[test]
fn a_question_comes_back_and_its_answer_goes_on() {
    let tieline = playing(ASKS);
    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    let given = client.done("delegate", json!({"task": "Paint it", "id": "paint"}));
    assert_eq!(given["status"], "question", "{given}");
    assert_eq!(given["questions"][0]["id"], "q1");
    assert_eq!(given["questions"][0]["text"], "Which colour?");
    assert_eq!(given["questions"][0]["options"][1]["label"], "blue");
    assert!(given["how_to_go_on"].as_str().unwrap().contains("`answer`"));

    let why = client
        .refused("answer", json!({"id": "paint", "answers": [{"question": "q7", "answer": "1"}]}));
    assert_eq!(
        why,
        "task paint has no open question q7; open: q1; call `status` with this id to see how it stands"
    );
    let why = client.refused("delegate", json!({"task": "More", "id": "paint"}));
    assert!(why.starts_with("task paint is at work already: follow it with `result`"), "{why}");

    let given = client
        .done("answer", json!({"id": "paint", "answers": [{"question": "q1", "answer": "2"}]}));
    assert_eq!(given["status"], "complete", "{given}");
    assert_eq!(given["summary"], "You chose blue.");
    let why = client.refused("answer", json!({"id": "paint", "answers": [{"answer": "1"}]}));
    assert!(why.starts_with("task paint has no open question; it is complete"), "{why}");
    client.hang_up();
}

#[test]
fn an_answer_wakes_a_task_that_is_at_rest() {
    let tieline = playing(&format!("{ASKS}---\nsay Painted.\n"));
    tieline.run(&["task", "run", "paint", "--agent", "demo", "Paint it"]).ends_with(5);
    let mut client = Client::new(&tieline, &[]);
    let given = client.done("result", json!({"id": "paint", "wait": true}));
    assert_eq!(given["status"], "question", "{given}");
    let arguments = json!({"id": "paint", "answers": [{"answer": "red"}], "wait": false});
    client.done("answer", arguments);
    let given = client.done("result", json!({"id": "paint", "wait": true}));
    assert_eq!(given["status"], "complete", "{given}");
    assert_eq!(given["summary"], "Painted.");
    assert_eq!(given["iterations"], 2);
    client.hang_up();
}

#[test]
fn a_task_is_cancelled() {
    let tieline = playing("write half.txt <<END\nx\nEND\nsay Begun.\nsleep 60000\nsay Never.\n");
    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    let given =
        client.done("delegate", json!({"task": "Take long", "id": "long", "timeout_seconds": 1}));
    assert_eq!(given["status"], "running", "{given}");
    assert!(given["how_to_go_on"].as_str().unwrap().contains("\"wait\": true"));
    assert_eq!(client.done("status", json!({"id": "long"}))["status"], "running");
    let given = client.done("cancel", json!({"id": "long"}));
    assert_eq!(given["status"], "cancelled", "{given}");
    assert_eq!(given["files"][0]["path"], "half.txt");
    // Twice is the same as once.
    assert_eq!(client.done("cancel", json!({"id": "long"})), given);
    client.hang_up();
}

#[test]
fn a_cancelled_call_leaves_its_task() {
    let tieline = playing("say [PROGRESS] Begun\nsleep 3000\nsay Ready.\n");
    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    let id = client.call("delegate", json!({"task": "Take some time", "id": "some"}));
    while client.progress(id).is_empty() {
        let message = client.next();
        client.told.push(message);
    }
    let params = json!({"requestId": id, "reason": "tired"});
    client.send(json!({"method": "notifications/cancelled", "params": params}));
    let given = client.done("result", json!({"id": "some", "wait": true}));
    assert_eq!(given["status"], "complete", "{given}");
    assert_eq!(given["summary"], "Ready.");
    assert!(client.told.iter().all(|it| it["id"] != id), "{:?}", client.told);
    client.hang_up();
}

#[test]
fn a_client_that_hangs_up_leaves_its_task() {
    let tieline =
        playing("say [PROGRESS] Begun\nsleep 2000\nwrite late.txt <<END\nx\nEND\nsay Ready.\n");
    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    let id = client.call("delegate", json!({"task": "Take some time", "id": "some"}));
    while client.progress(id).is_empty() {
        let message = client.next();
        client.told.push(message);
    }
    client.hang_up();
    tieline.run(&["task", "wait", "some", "--timeout", "60"]).succeeds();
    assert!(tieline.work().join("late.txt").exists());
}

#[test]
fn what_cannot_be_done_is_told_with_what_can() {
    let tieline = playing(WRITES);
    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    let mut text = String::new();
    let cases = [
        ("result", json!({"id": "nobody"})),
        ("status", json!({"id": "no body"})),
        ("answer", json!({"id": "nobody", "answers": [{"answer": "1"}]})),
        ("answer", json!({"id": "nobody", "answers": []})),
        ("cancel", json!({"id": "nobody"})),
        ("cancel", json!({})),
        ("delegate", json!({})),
        ("delegate", json!({"task": " "})),
        ("delegate", json!({"task": "x", "agents": "demo"})),
        ("delegate", json!({"task": "x", "agent": "cloude"})),
        ("delegate", json!({"task": "x", "agent": "acp:sh -c true"})),
        ("delegate", json!({"task": "x", "mode": "yolo"})),
        ("delegate", json!({"task": "x", "mode": "fast"})),
        ("delegate", json!({"task": "x", "budget": ["much"]})),
        ("delegate", json!({"task": "x", "cwd": "nowhere"})),
        ("delegate", json!({"task": "x", "verify": "make"})),
    ];
    for (tool, arguments) in cases {
        let why = client.refused(tool, arguments);
        let why = why.replace(tieline.work().canonicalize().unwrap().to_str().unwrap(), "WORK");
        text.push_str(&format!("{tool}: {why}\n"));
    }
    expect![[r#"
        result: there is no task nobody; call `status` without an id to see all tasks, or `delegate` to begin one
        status: "no body" is no id: a task's id has 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit
        answer: there is no task nobody; call `status` without an id to see all tasks, or `delegate` to begin one
        answer: give at least one answer in `answers`
        cancel: there is no task nobody; call `status` without an id to see all tasks, or `delegate` to begin one
        cancel: `cancel` was called with wrong arguments: missing field `id`; see its schema
        delegate: `delegate` was called with wrong arguments: missing field `task`; see its schema
        delegate: say what is to be done in `task`
        delegate: `delegate` was called with wrong arguments: unknown field `agents`, expected one of `task`, `id`, `agent`, `cwd`, `plan_file`, `mode`, `model`, `verify`, `budget`, `worktree`, `wait`, `timeout_seconds`; see its schema
        delegate: unknown agent "cloude"; the agents are auto, claude, codex, codex-exec, codex-proto, engine, demo, acp:NAME
        delegate: no agent "acp:sh -c true"; known after acp: are gemini, copilot, cursor, goose, opencode, qwen, kimi, vibe, auggie, claude-agent-acp, codex-acp, and those with a table [agents.acp.NAME] in tieline's configuration
        delegate: the mode yolo is not for a model to choose; your user can allow it by registering the server as `tieline mcp --mode yolo`
        delegate: "fast" is no mode; the modes are plan, default, acceptEdits, auto, bypassPermissions, yolo
        delegate: "much" is no budget; write 20turns, 600s, 30min or 200000tokens
        delegate: cannot work in WORK/nowhere: No such file or directory (os error 2); choose another cwd
        delegate: `delegate` was called with wrong arguments: invalid type: string "make", expected a sequence; see its schema
    "#]].assert_eq(&text);
    let unknown = client.ask("tools/call", json!({"name": "dance", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    // Nothing was begun by any of it.
    assert_eq!(client.done("status", json!({}))["tasks"], json!([]));
    client.hang_up();
}

#[test]
fn what_a_model_verifies_with_is_held_by_the_mode() {
    let tieline = playing(&["say done\n"; 12].join("---\n"));
    let inside = tieline.work().join("inside");
    let mut client = Client::new(&tieline, &["--agent", "demo", "--mode", "plan"]);
    let given = client.done(
        "delegate",
        json!({"task": "x", "id": "held", "verify": ["touch inside; cat < /dev/null && test -e inside"]}),
    );
    assert_eq!(given["status"], "failed", "{given}");
    assert!(!inside.exists());
    let why = client.refused("delegate", json!({"task": "x", "mode": "acceptEdits"}));
    assert!(why.contains("not for a model to choose"), "{why}");
    client.hang_up();

    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    let verify = ["touch inside", "! mkdir .git", "! cat \"$HOME/.config/tieline/config.toml\""];
    let given = client.done("delegate", json!({"task": "x", "id": "may", "verify": verify}));
    assert_eq!(given["status"], "complete", "{given}");
    assert!(inside.exists() && !tieline.work().join(".git").exists());
    client.hang_up();
}

#[test]
fn a_line_that_is_no_message_is_survived() {
    let tieline = playing(WRITES);
    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    for line in ["\n", "hello\n", "{\"jsonrpc\": \"2.0\"}\n", "[]\n", "\u{ff}{\n"] {
        client.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }
    assert_eq!(client.done("status", json!({}))["tasks"], json!([]));
    client.hang_up();
}

#[test]
fn a_task_of_another_project_is_left_alone() {
    let tieline = playing(WRITES);
    let other = tieline.path("other");
    fs::create_dir(&other).unwrap();
    let cwd = other.to_str().unwrap();
    tieline.run(&["task", "run", "same", "--agent", "demo", "--cwd", cwd, "Do it"]).succeeds();
    let mut client = Client::new(&tieline, &["--agent", "demo"]);
    let why = client.refused("delegate", json!({"task": "Do this", "id": "same"}));
    assert!(why.starts_with("there is a task same already, and it works in "), "{why}");
    let given = client.done("delegate", json!({"task": "Do this", "id": "same", "cwd": cwd}));
    assert_eq!(given["status"], "complete", "{given}");
    client.hang_up();
}

#[test]
fn tasks_within_tasks_have_an_end() {
    let tieline = playing("run env | grep TIELINE_TASK_DEPTH > depth.txt\nsay Done.\n");
    let deepest = playing(WRITES).with("TIELINE_TASK_DEPTH", "3");
    let mut client = Client::new(&deepest, &["--agent", "demo"]);
    let why = client.refused("delegate", json!({"task": "Go deeper"}));
    assert!(why.contains("already works within 3 tasks"), "{why}");
    client.hang_up();
    let shell = deepest.run(&["task", "run", "t", "--agent", "demo", "Go deeper"]).ends_with(2);
    assert!(shell.err.contains("already works within 3 tasks"), "{}", shell.err);

    // An agent is told how deep it is, whichever way its task began.
    let mut client = Client::new(&tieline, &["--agent", "demo", "--mode", "bypassPermissions"]);
    client.done("delegate", json!({"task": "Tell", "id": "mcp"}));
    client.hang_up();
    let depth = || fs::read_to_string(tieline.work().join("depth.txt")).unwrap();
    assert_eq!(depth(), "TIELINE_TASK_DEPTH=1\n");
    let mode = "bypassPermissions";
    tieline.run(&["task", "run", "cli", "--agent", "demo", "--mode", mode, "Tell"]).succeeds();
    assert_eq!(depth(), "TIELINE_TASK_DEPTH=1\n");
}

#[test]
fn a_client_that_passes_no_variables_hides_no_depth() {
    let tieline = playing("say Hello.\n");
    let program = env!("CARGO_BIN_EXE_tieline");
    let script = format!(
        "cat | env -i PATH=/usr/bin:/bin HOME=$HOME TIELINE_HOME=$TIELINE_HOME {program} mcp --agent demo; true"
    );
    // The program between us is what such a client is: told, and silent about it.
    #[allow(clippy::disallowed_methods)] // the tests stand outside the program
    let mut command = Command::new(tieline.program("client", &script));
    let mut server = command
        .current_dir(tieline.work())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", tieline.path(""))
        .env("TIELINE_HOME", tieline.store())
        .env("TIELINE_TASK_DEPTH", "3")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "delegate", "arguments": {"task": "x", "agent": "demo"}}});
    input.write_all(format!("{hello}\n{ready}\n{call}\n").as_bytes()).unwrap();
    drop(input);
    let output = server.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("already works within 3 tasks"), "{said}");
}

#[test]
fn what_is_said_before_a_session_begins_ends_nothing() {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    });
    let early = [
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 8, "error": {"code": 1, "message": "no"}}),
        json!({"jsonrpc": "2.0", "id": 9, "method": "ping"}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        hello,
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    let lines: String = early.iter().map(|line| format!("{line}\n")).collect();
    let outcome = Tieline::new().feed(&["mcp"], lines.as_bytes()).succeeds();
    assert!(outcome.out.contains("serverInfo"), "{outcome:?}");
}
