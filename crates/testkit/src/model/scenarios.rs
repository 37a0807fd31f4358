//! The scenarios that every server knows.
//!
//! Their content is that of the recordings, so a run against the real agent and a
//! replay of a recording tell the same story.

use std::time::Duration;

use serde_json::{Value, json};

use super::Dialect;
use super::prompt::Prompt;
use super::script::{Block, Script, Step};

const UNICODE: &str = "Zażółć gęślą jaźń — 日本語 🙂👩‍👩‍👧 \u{2028} \"quoted\" \\ tab\t end\nsecond line\n\
                       ```rust\nfn main() {}\n```";

/// Where versions of Codex up to 0.4x run commands, and patches as well.
const OLD_SHELL: &str = "shell";

/// The script of the scenario that `prompt` names.
pub(crate) fn builtin(prompt: &Prompt) -> Script {
    let Some(scenario) = &prompt.scenario else {
        return side_call(prompt);
    };
    if let Some(status) = scenario.name.strip_prefix("http").and_then(|s| s.parse().ok()) {
        return http_error(status);
    }
    texts(prompt, &scenario.name)
        .or_else(|| shells(prompt, &scenario.name))
        .or_else(|| tools(prompt, &scenario.name))
        .or_else(|| failures(&scenario.name))
        .unwrap_or_else(|| Script::say(&format!("There is no scenario {}.", scenario.name)))
}

/// A call that is no turn of a user: a probe, a title, the inside of a web search.
fn side_call(prompt: &Prompt) -> Script {
    if prompt.dialect == Dialect::Messages
        && prompt.tools.iter().any(|tool| tool.kind.starts_with("web_search"))
    {
        let query = prompt.text.rsplit(": ").next().unwrap_or_default().to_owned();
        let blocks = vec![Block::ServerSearch { query }, Block::text("One page was found.")];
        return Script::new([Step::Message(blocks)]);
    }
    Script::say("OK.")
}

fn texts(prompt: &Prompt, name: &str) -> Option<Script> {
    let counted = |word: &str, n| (0..n).map(|i| format!("{word}{i} ")).collect::<Vec<_>>();
    Some(match name {
        "hello" => Script::say("Hello from the fake model."),
        "echo" => Script::say(&format!("You said: {}", prompt.text)),
        "unicode" => Script::say(UNICODE),
        "think" => Script::new([Step::Message(vec![
            Block::think("**Considering the request**\n\nThe user wants a greeting."),
            Block::text("Thought about it. Hello."),
        ])]),
        "long" => {
            let chunks = counted("word", prompt.n_or(100));
            Script::new([Step::Message(vec![Block::Text(chunks)])])
        }
        "slow" => {
            let chunks = counted("tick", prompt.n_or(20));
            let pause = Duration::from_millis(100);
            Script::new([Step::Message(vec![Block::Paced { chunks, pause }])])
        }
        "slow-echo" => {
            let text = format!("You said: {}", prompt.text);
            let chunks = text.split_inclusive(' ').map(str::to_owned).collect();
            let pause = Duration::from_millis(prompt.n_or(50) as u64);
            Script::new([Step::Message(vec![Block::Paced { chunks, pause }])])
        }
        "gated" => {
            let chunks = counted("gated", prompt.n_or(10));
            Script::new([Step::Message(vec![Block::Gated { gate: "gated".to_owned(), chunks }])])
        }
        "maxtokens" => Script::new([Step::MaxTokens(vec![Block::text("cut short")])]),
        _ => return None,
    })
}

fn shells(prompt: &Prompt, name: &str) -> Option<Script> {
    let run = |command: &str, text: &str| Script::tool_then_say(shell(prompt, command), text);
    Some(match name {
        "shell" => Script::new([
            Step::Message(vec![
                Block::text("I will run a command."),
                shell(prompt, "echo hello-from-shell; echo to-stderr 1>&2"),
            ]),
            Step::say("The command printed hello-from-shell."),
        ]),
        "shells" => {
            let n = prompt.n_or(3);
            let calls =
                (0..n).map(|i| Step::Message(vec![shell(prompt, &format!("echo shell-{i}"))]));
            let last = Step::say("All commands ran.");
            Script::new(calls.chain([last]).collect::<Vec<_>>())
        }
        "parallel" => Script::new([
            Step::Message(vec![shell(prompt, "echo one"), shell(prompt, "echo two")]),
            Step::say("Both ran."),
        ]),
        "write" => {
            let mut call = shell(prompt, "touch created-by-agent.txt && ls -1");
            if let (Dialect::Responses, Block::ToolUse { name, input }) =
                (prompt.dialect, &mut call)
            {
                match name.as_str() {
                    OLD_SHELL => input["with_escalated_permissions"] = true.into(),
                    _ => input["sandbox_permissions"] = "require_escalated".into(),
                }
                input["justification"] = "May I create a file in the workspace?".into();
            }
            Script::tool_then_say(call, "Done with write.")
        }
        "bigout" => run(&format!("seq 1 {}", prompt.n_or(1000)), "That was a lot."),
        "ticks" => run("for i in 1 2 3 4; do echo tick-$i; sleep 0.4; done", "It ticked."),
        "fail-command" => run(
            "echo before-failure; ls /nonexistent-dir; exit 3",
            "The command failed with exit code 3.",
        ),
        "sleep" => {
            run(&format!("echo started; sleep {}; echo finished", prompt.n_or(20)), "Slept.")
        }
        "background" => {
            let mut call = shell(prompt, "sleep 1; echo bg-done");
            if let (Dialect::Messages, Block::ToolUse { input, .. }) = (prompt.dialect, &mut call) {
                input["run_in_background"] = true.into();
            }
            Script::tool_then_say(call, "Started in background.")
        }
        _ => return None,
    })
}

fn tools(prompt: &Prompt, name: &str) -> Option<Script> {
    let claude = prompt.dialect == Dialect::Messages;
    let then = |call: Block, text: &str| Script::tool_then_say(call, text);
    Some(match name {
        "task" => task(prompt),
        "patch" => patch(prompt, Keep::Yes),
        "patch-delete" => patch(prompt, Keep::No),
        "read" if claude => {
            then(Block::tool("Read", json!({"file_path": prompt.path("README.md")})), "I read it.")
        }
        "read" => then(shell(prompt, &format!("cat {}", prompt.path("README.md"))), "I read it."),
        "plan" => Script::new([
            Step::Message(vec![plan(claude, "in_progress", "pending")]),
            Step::Message(vec![plan(claude, "completed", "completed")]),
            Step::say("Plan finished."),
        ]),
        "tasks" => Script::new([
            Step::tool(
                "TaskCreate",
                json!({
                    "subject": "Look at the code", "description": "Read it all",
                    "activeForm": "Looking at the code",
                }),
            ),
            Step::tool("TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
            Step::tool("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
            Step::say("Tasks finished."),
        ]),
        "question" => then(question(claude), "Thanks for answering."),
        "planmode" => {
            let plan = json!({"plan": "1. Do a thing\n2. Do another"});
            then(Block::tool("ExitPlanMode", plan), "Plan mode over.")
        }
        "websearch" if claude => {
            then(Block::tool("WebSearch", json!({"query": "rust async traits"})), "Searched.")
        }
        "websearch" => Script::new([Step::Message(vec![
            Block::ServerSearch { query: "rust async traits".to_owned() },
            Block::text("Searched."),
        ])]),
        "subagent" => {
            let tool = if claude && !prompt.has_tool("Agent") { "Task" } else { "Agent" };
            let input = json!({
                "description": "Greet", "prompt": "Please greet. SCENARIO:shell",
                "subagent_type": "general-purpose",
            });
            then(Block::tool(tool, input), "Subagent finished.")
        }
        "mcp" => then(echo(prompt, "hi"), "MCP done."),
        "mcp-fail" => then(echo(prompt, "fail"), "MCP done."),
        "mcp-ask" => then(echo(prompt, "ask"), "MCP done."),
        "delegate" => {
            let input = json!({"task": "Go. SCENARIO:patch", "id": "delegated"});
            then(Block::tool("mcp__tieline__delegate", input), "The other agent is done.")
        }
        "unknown-tool" => {
            then(Block::tool("BogusTool", json!({"x": 1})), "That tool does not exist.")
        }
        _ => return None,
    })
}

fn failures(name: &str) -> Option<Script> {
    let dropped = || Step::Drop { blocks: vec![Block::text("partial ")], after: 2 };
    Some(match name {
        "drop" => {
            Script::new([Step::Attempts(vec![dropped(), Step::say("Recovered after a drop.")])])
        }
        "drop-always" => Script::new([dropped()]),
        "failed" => Script::new([Step::ErrorEvent {
            blocks: vec![Block::text("partial ")],
            message: "fake failure inside the stream".to_owned(),
        }]),
        _ => return None,
    })
}

fn http_error(status: u16) -> Script {
    Script::new([Step::HttpError {
        status,
        message: format!("fake upstream error {status}"),
        retry_after: (status == 429).then_some(1),
    }])
}

/// A command in the shell tool of the agent that asks.
fn shell(prompt: &Prompt, command: &str) -> Block {
    match prompt.dialect {
        Dialect::Messages => {
            Block::tool("Bash", json!({"command": command, "description": "Run a test command"}))
        }
        Dialect::Responses if prompt.has_tool(OLD_SHELL) => {
            Block::tool(OLD_SHELL, json!({"command": ["bash", "-lc", command]}))
        }
        Dialect::Responses => Block::tool("exec_command", json!({"cmd": command})),
    }
}

/// The tool `echo` of the MCP server `fake`; old versions of Codex have a name of their own for it.
fn echo(prompt: &Prompt, text: &str) -> Block {
    let old = "fake__echo";
    let name = if prompt.has_tool(old) { old } else { "mcp__fake__echo" };
    Block::tool(name, json!({"text": text}))
}

/// A task in three turns: it asks in both ways, gets its work wrong, and corrects it.
fn task(prompt: &Prompt) -> Script {
    if prompt.text.contains("does not pass its verification") {
        return Script::new([
            Step::Message(vec![replace(prompt, "two.txt", "wrong", "right")]),
            Step::say("Corrected."),
        ]);
    }
    if prompt.text.contains("The answer: ") {
        return Script::new([
            Step::Message(vec![create(prompt, "two.txt", "wrong")]),
            Step::say("[FILES_MODIFIED]\n- one.txt (created)\n- two.txt (created)\n"),
        ]);
    }
    Script::new([
        Step::Message(vec![create(prompt, "one.txt", "first")]),
        Step::Message(vec![question(prompt.dialect == Dialect::Messages)]),
        Step::say(
            "[PROGRESS] Half of it is there\n[QUESTION] Where does the rest go?\nOptions:\n\
             1. two.txt - beside it\n2. nowhere - leave it\n\nBoth would do.\n",
        ),
    ])
}

/// Makes a file of one line.
fn create(prompt: &Prompt, name: &str, line: &str) -> Block {
    match prompt.dialect {
        Dialect::Messages => {
            let input = json!({"file_path": prompt.path(name), "content": format!("{line}\n")});
            Block::tool("Write", input)
        }
        Dialect::Responses => {
            let text = format!("*** Begin Patch\n*** Add File: {name}\n+{line}\n*** End Patch");
            Block::tool("apply_patch", Value::String(text))
        }
    }
}

/// Replaces the one line of a file.
fn replace(prompt: &Prompt, name: &str, old: &str, new: &str) -> Block {
    match prompt.dialect {
        Dialect::Messages => {
            let path = prompt.path(name);
            let input = json!({"file_path": path, "old_string": old, "new_string": new});
            Block::tool("Edit", input)
        }
        Dialect::Responses => {
            let body = format!("*** Update File: {name}\n@@\n-{old}\n+{new}");
            Block::tool(
                "apply_patch",
                Value::String(format!("*** Begin Patch\n{body}\n*** End Patch")),
            )
        }
    }
}

/// Whether the file of a patch stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

fn patch(prompt: &Prompt, keep: Keep) -> Script {
    let path = prompt.path("notes.txt");
    let (add, change, delete) = match prompt.dialect {
        Dialect::Messages => (
            Block::tool("Write", json!({"file_path": path, "content": "alpha\nbeta\n"})),
            Block::tool(
                "Edit",
                json!({
                    "file_path": path, "old_string": "beta", "new_string": "gamma",
                    "replace_all": false,
                }),
            ),
            shell(prompt, "rm notes.txt"),
        ),
        Dialect::Responses => {
            let patch = |body: &str| {
                let text = format!("*** Begin Patch\n{body}\n*** End Patch");
                match prompt.has_tool(OLD_SHELL) {
                    true => Block::tool(OLD_SHELL, json!({"command": ["apply_patch", text]})),
                    false => Block::tool("apply_patch", Value::String(text)),
                }
            };
            (
                patch("*** Add File: notes.txt\n+alpha\n+beta"),
                patch("*** Update File: notes.txt\n@@\n alpha\n-beta\n+gamma"),
                patch("*** Delete File: notes.txt"),
            )
        }
    };
    let mut steps = vec![Step::Message(vec![add]), Step::Message(vec![change])];
    if keep == Keep::No {
        steps.push(Step::Message(vec![delete]));
    }
    steps.push(Step::say("Patched notes.txt."));
    Script::new(steps)
}

fn plan(claude: bool, first: &str, second: &str) -> Block {
    let todo = |content: &str, status: &str, form: &str| json!({"content": content, "status": status, "activeForm": form});
    if claude {
        let todos = [
            todo("Look at the code", first, "Looking at the code"),
            todo("Change the code", second, "Changing the code"),
        ];
        return Block::tool("TodoWrite", json!({"todos": todos}));
    }
    let steps = [
        json!({"step": "Look at the code", "status": first}),
        json!({"step": "Change the code", "status": second}),
    ];
    Block::tool("update_plan", json!({"explanation": "Working through it", "plan": steps}))
}

fn question(claude: bool) -> Block {
    let mut question = json!({
        "question": "Which colour should I use?", "header": "Colour",
        "options": [
            {"label": "Red", "description": "Warm"}, {"label": "Blue", "description": "Cold"},
        ],
    });
    let tool = if claude {
        question["multiSelect"] = false.into();
        "AskUserQuestion"
    } else {
        question["id"] = "colour".into();
        question["options"][0]["label"] = "Red (Recommended)".into();
        "request_user_input"
    };
    Block::tool(tool, json!({"questions": [question]}))
}
