//! `codex app-server`: JSON-RPC without its version. Each thread has a player of its own, so that
//! several conversations play at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::exec::OVERLOADED;
use crate::inbox::Inbox;
use crate::output::{self, Output};
use crate::play::{self, Player};
use crate::script::{Outcome, Section};
use crate::voice::{self, During, Ear, Ended, Part, User, Verdict, Voice, text};

const AT_MS: u64 = 1_794_784_757_227;
const AT: u64 = AT_MS / 1000;

/// One thread's side of the conversation.
pub(crate) struct App {
    thread_id: String,
    turn_id: String,
    cwd: String,
    ids: Arc<AtomicU64>,
    /// The message that is being written.
    item_id: String,
    asking: Option<Asking>,
}

struct Asking {
    request_id: u64,
    item_id: String,
    command: String,
}

impl App {
    fn next_id(&self, prefix: &str) -> String {
        format!("{prefix}_{:04}", self.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A notification whose params end with thread and turn.
    fn about_item(&self, method: &str, item: &str, stamp: &str) -> String {
        let (thread, turn) = (&self.thread_id, &self.turn_id);
        format!(
            r#"{{"method":"{method}","params":{{"item":{item},"threadId":"{thread}","turnId":"{turn}","{stamp}":{AT_MS}}},"emittedAtMs":{AT_MS}}}"#
        )
    }

    fn started(&self, item: &str) -> String {
        self.about_item("item/started", item, "startedAtMs")
    }

    fn completed(&self, item: &str) -> String {
        self.about_item("item/completed", item, "completedAtMs")
    }

    fn piece(&self, method: &str, rest: &str) -> String {
        let (thread, turn, item) = (&self.thread_id, &self.turn_id, &self.item_id);
        format!(
            r#"{{"method":"{method}","params":{{"threadId":"{thread}","turnId":"{turn}","itemId":"{item}",{rest}}},"emittedAtMs":{AT_MS}}}"#
        )
    }

    fn status(&self, status: &str) -> String {
        let thread = &self.thread_id;
        format!(
            r#"{{"method":"thread/status/changed","params":{{"threadId":"{thread}","status":{status}}},"emittedAtMs":{AT_MS}}}"#
        )
    }

    fn turn(&self, items: &str, view: &str, status: &str, error: &str, completed: &str) -> String {
        let (thread, turn) = (&self.thread_id, &self.turn_id);
        let method = if status == "inProgress" { "turn/started" } else { "turn/completed" };
        let lasted = if status == "inProgress" { "null" } else { "102" };
        format!(
            r#"{{"method":"{method}","params":{{"threadId":"{thread}","turn":{{"id":"{turn}","rootTurnId":"{turn}","items":{items},"itemsView":"{view}","status":"{status}","error":{error},"startedAt":{AT},"completedAt":{completed},"durationMs":{lasted}}}}},"emittedAtMs":{AT_MS}}}"#
        )
    }

    fn ended(&self, items: &str, status: &str, error: &str) -> String {
        let view = if items == "[]" { "notLoaded" } else { "summary" };
        self.turn(items, view, status, error, &AT.to_string())
    }

    fn tokens(&self) -> String {
        const COUNT: &str = r#"{"totalTokens":1050,"inputTokens":1000,"cachedInputTokens":400,"cacheWriteInputTokens":0,"outputTokens":50,"reasoningOutputTokens":7}"#;
        let (thread, turn) = (&self.thread_id, &self.turn_id);
        format!(
            r#"{{"method":"thread/tokenUsage/updated","params":{{"threadId":"{thread}","turnId":"{turn}","tokenUsage":{{"total":{COUNT},"last":{COUNT},"modelContextWindow":258400}}}},"emittedAtMs":{AT_MS}}}"#
        )
    }

    fn command(&self, id: &str, command: &str, status: &str, output: Option<&str>) -> String {
        let (cwd, bare) = (text(&self.cwd), text(command));
        let quoted = text(&format!("/bin/bash -lc '{command}'"));
        let (exit, lasted) = if output.is_some() { ("0", "1") } else { ("null", "null") };
        let output = output.map_or_else(|| "null".to_owned(), text);
        let completed = completed_at(status != "inProgress");
        format!(
            r#"{{"type":"commandExecution","id":"{id}","pluginId":null,"scriptPath":null,"command":{quoted},"cwd":{cwd},"processId":null,"source":"agent","status":"{status}","commandActions":[{{"type":"unknown","command":{bare}}}],"aggregatedOutput":{output},"exitCode":{exit},"durationMs":{lasted},"startedAtMs":{AT_MS},"completedAtMs":{completed}}}"#
        )
    }

    /// What an answered or withdrawn request is followed by.
    fn resolved(&self, request_id: u64) -> String {
        let thread = &self.thread_id;
        format!(
            r#"{{"method":"serverRequest/resolved","params":{{"threadId":"{thread}","requestId":{request_id}}},"emittedAtMs":{AT_MS}}}"#
        )
    }
}

fn completed_at(is_over: bool) -> String {
    if is_over { AT_MS.to_string() } else { "null".to_owned() }
}

fn message_item(id: &str, content: &str, is_over: bool) -> String {
    let (content, completed) = (text(content), completed_at(is_over));
    format!(
        r#"{{"type":"agentMessage","id":"{id}","text":{content},"phase":null,"memoryCitation":null,"delivery":null,"questions":null,"startedAtMs":{AT_MS},"completedAtMs":{completed}}}"#
    )
}

fn reasoning_item(id: &str, content: Option<&str>) -> String {
    let completed = completed_at(content.is_some());
    let summary = content.map(text).unwrap_or_default();
    format!(
        r#"{{"type":"reasoning","id":"{id}","summary":[{summary}],"content":[],"startedAtMs":{AT_MS},"completedAtMs":{completed}}}"#
    )
}

fn user_item(id: &str, content: &str, is_over: bool) -> String {
    let (content, completed) = (text(content), completed_at(is_over));
    format!(
        r#"{{"type":"userMessage","id":"{id}","clientId":null,"content":[{{"type":"text","text":{content},"text_elements":[]}}],"startedAtMs":{AT_MS},"completedAtMs":{completed}}}"#
    )
}

impl Voice for App {
    fn turn_begins(&mut self, user: &User) -> Vec<String> {
        self.turn_id = user.turn.clone();
        let id = self.next_id("user");
        vec![
            self.status(r#"{"type":"active","activeFlags":[]}"#),
            self.turn("[]", "notLoaded", "inProgress", "null", "null"),
            self.started(&user_item(&id, &user.text, false)),
            self.completed(&user_item(&id, &user.text, true)),
        ]
    }

    fn part_begins(&mut self, part: Part) -> Vec<String> {
        match part {
            Part::Text => {
                self.item_id = self.next_id("msg");
                vec![self.started(&message_item(&self.item_id, "", false))]
            }
            Part::Reasoning => {
                self.item_id = self.next_id("rs");
                vec![
                    self.started(&reasoning_item(&self.item_id, None)),
                    self.piece("item/reasoning/summaryPartAdded", r#""summaryIndex":0"#),
                ]
            }
        }
    }

    fn delta(&mut self, part: Part, content: &str) -> Option<String> {
        let delta = format!(r#""delta":{}"#, text(content));
        Some(match part {
            Part::Text => self.piece("item/agentMessage/delta", &delta),
            Part::Reasoning => self
                .piece("item/reasoning/summaryTextDelta", &format!(r#"{delta},"summaryIndex":0"#)),
        })
    }

    /// An item that was cut off is never completed.
    fn part_ends(&mut self, part: Part, ended: Ended<'_>) -> Vec<String> {
        let Ended::Whole(whole) = ended else { return Vec::new() };
        vec![self.completed(&match part {
            Part::Text => message_item(&self.item_id, whole, true),
            Part::Reasoning => reasoning_item(&self.item_id, Some(whole)),
        })]
    }

    fn flood_line(&mut self, content: &str, _: &str) -> String {
        self.piece("item/agentMessage/delta", &format!(r#""delta":{}"#, text(content)))
    }

    fn tool(&mut self, name: &str, input: &Value, output: &str) -> Vec<String> {
        let (id, command) = (self.next_id("call"), voice::command_of(name, input));
        self.item_id = id.clone();
        vec![
            self.started(&self.command(&id, &command, "inProgress", None)),
            self.piece(
                "item/commandExecution/outputDelta",
                &format!(r#""delta":{}"#, text(output)),
            ),
            self.completed(&self.command(&id, &command, "completed", Some(output))),
        ]
    }

    fn asks(&mut self, name: &str, input: &Value) -> Option<(String, Vec<String>)> {
        let (item_id, command) = (self.next_id("call"), voice::command_of(name, input));
        // Like the real one's, it may well be a number that the client uses too.
        let request_id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (thread, turn, cwd) = (&self.thread_id, &self.turn_id, text(&self.cwd));
        let (bare, quoted) = (text(&command), text(&format!("/bin/bash -lc '{command}'")));
        let ask = format!(
            r#"{{"method":"item/commandExecution/requestApproval","id":{request_id},"params":{{"kind":"command","threadId":"{thread}","turnId":"{turn}","itemId":"{item_id}","startedAtMs":{AT_MS},"environmentId":"local","reason":"May I?","command":{quoted},"cwd":{cwd},"commandActions":[{{"type":"unknown","command":{bare}}}],"availableDecisions":["accept","acceptForSession","decline","cancel"]}}}}"#
        );
        let lines = vec![
            self.status(r#"{"type":"active","activeFlags":["waitingOnApproval"]}"#),
            self.started(&self.command(&item_id, &command, "inProgress", None)),
            ask,
        ];
        self.asking = Some(Asking { request_id, item_id, command });
        Some((request_id.to_string(), lines))
    }

    fn answered(&mut self, verdict: &Verdict) -> Vec<String> {
        let Some(Asking { request_id, item_id, command }) = self.asking.take() else {
            return Vec::new();
        };
        let (status, output) = match verdict {
            Verdict::Allow => ("completed", Some("ok")),
            Verdict::Deny { .. } => ("declined", None),
        };
        vec![
            self.resolved(request_id),
            self.completed(&self.command(&item_id, &command, status, output)),
        ]
    }

    fn around_huge(&mut self) -> (String, String) {
        const SPLIT: &str = "\u{1}";
        let whole = self.completed(&message_item(&self.next_id("msg"), SPLIT, true));
        let marker = text(SPLIT);
        let (head, tail) = whole.split_once(&marker).expect("the text is in the line");
        (format!("{head}\""), format!("\"{tail}"))
    }

    fn interrupted(&mut self, _: During) -> Vec<String> {
        let mut lines = vec![
            self.tokens(),
            self.status(r#"{"type":"idle"}"#),
            self.ended("[]", "interrupted", "null"),
        ];
        lines.extend(self.asking.take().map(|asking| self.resolved(asking.request_id)));
        lines
    }

    fn turn_ends(&mut self, outcome: Outcome, said: &str) -> Vec<String> {
        let (message, info) = match outcome {
            Outcome::Success => {
                let items = match said {
                    "" => "[]".to_owned(),
                    said => format!("[{}]", message_item(&self.item_id, said, true)),
                };
                return vec![
                    self.tokens(),
                    self.status(r#"{"type":"idle"}"#),
                    self.ended(&items, "completed", "null"),
                ];
            }
            Outcome::Error => ("fake failure", "other"),
            Outcome::ApiError => (OVERLOADED, "internalServerError"),
        };
        let (thread, turn, message) = (&self.thread_id, &self.turn_id, text(message));
        let error = format!(
            r#"{{"message":{message},"codexErrorInfo":"{info}","additionalDetails":null,"misalignment":null}}"#
        );
        vec![
            self.status(r#"{"type":"systemError"}"#),
            format!(
                r#"{{"method":"error","params":{{"error":{error},"willRetry":false,"threadId":"{thread}","turnId":"{turn}"}},"emittedAtMs":{AT_MS}}}"#
            ),
            self.ended("[]", "failed", &error),
        ]
    }
}

/// The server: hears requests, answers them at once, and lets a player play each thread.
pub(crate) struct Server {
    version: String,
    sections: Arc<[Section]>,
    output: Arc<Output>,
    ids: Arc<AtomicU64>,
    n_threads: u64,
    n_turns: u64,
    threads: HashMap<String, Thread>,
}

struct Thread {
    inbox: Arc<Inbox>,
    turn_id: String,
    player: JoinHandle<()>,
}

impl Server {
    pub(crate) fn new(version: String, sections: Vec<Section>, output: Arc<Output>) -> Server {
        Server {
            version,
            sections: sections.into(),
            output,
            ids: Arc::default(),
            n_threads: 0,
            n_turns: 0,
            threads: HashMap::new(),
        }
    }

    fn answer(&self, id: &Value, result: &str) {
        self.output.line(&format!(r#"{{"id":{id},"result":{result}}}"#));
    }

    fn refuse(&self, id: &Value, message: &str) {
        let message = text(message);
        self.output
            .line(&format!(r#"{{"error":{{"code":-32600,"message":{message}}},"id":{id}}}"#));
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) {
        match method {
            "initialize" => {
                let agent = text(&format!("fake/{} (Debian 12.0.0; x86_64) dumb", self.version));
                self.answer(id, &format!(r#"{{"userAgent":{agent},"codexHome":"/home/agent/.codex","platformFamily":"unix","platformOs":"linux"}}"#));
            }
            "thread/start" | "thread/fork" => {
                self.n_threads += 1;
                self.open(id, voice::session_id(self.n_threads), params);
            }
            "thread/resume" => {
                let thread_id = params["threadId"].as_str().unwrap_or_default().to_owned();
                self.open(id, thread_id, params);
            }
            "turn/start" => self.turn(id, params),
            "turn/steer" => {
                let turn = &params["expectedTurnId"];
                self.answer(id, &format!(r#"{{"turnId":{turn}}}"#));
            }
            "turn/interrupt" => {
                self.answer(id, "{}");
                if let Some(thread) = self.thread(params) {
                    thread.inbox.interrupt();
                }
            }
            "thread/unsubscribe" => {
                self.answer(id, r#"{"status":"unsubscribed"}"#);
                if let Some(thread) = self.thread(params) {
                    thread.inbox.end();
                }
            }
            "account/read" => self.answer(
                id,
                r#"{"account":null,"requiresOpenaiAuth":false,"workspaceRouting":null}"#,
            ),
            "model/list" => self.answer(id, r#"{"data":[{"id":"gpt-5.5","model":"gpt-5.5","displayName":"GPT-5.5","description":"The default model","hidden":false,"supportedReasoningEfforts":[{"reasoningEffort":"medium","description":"For everyday tasks"}],"defaultReasoningEffort":"medium","inputModalities":["text","image"],"isDefault":true}],"nextCursor":null}"#),
            "skills/list" | "hooks/list" => self.answer(id, r#"{"data":[]}"#),
            "permissionProfile/list" => self.answer(id, r#"{"data":[],"nextCursor":null}"#),
            "config/read" => self.answer(id, r#"{"config":{},"origins":{},"layers":[]}"#),
            method => self.refuse(id, &format!("Invalid request: unknown variant `{method}`")),
        }
    }

    fn thread(&self, params: &Value) -> Option<&Thread> {
        self.threads.get(params["threadId"].as_str()?)
    }

    fn open(&mut self, id: &Value, thread_id: String, params: &Value) {
        let cwd = params["cwd"].as_str().map_or_else(voice::current_dir, str::to_owned);
        let (shown, version) = (text(&cwd), &self.version);
        let thread = format!(
            r#"{{"id":"{thread_id}","extra":null,"sessionId":"{thread_id}","forkedFromId":null,"parentThreadId":null,"preview":"","ephemeral":false,"modelProvider":"fake","model":"gpt-5.5","reasoningEffort":null,"createdAt":{AT},"updatedAt":{AT},"status":{{"type":"idle"}},"path":null,"cwd":{shown},"cliVersion":"{version}","originator":"fake","source":"vscode","turns":[]}}"#
        );
        let (policy, sandbox) = (&params["approvalPolicy"], &params["sandbox"]);
        self.answer(id, &format!(r#"{{"thread":{thread},"model":"gpt-5.5","modelProvider":"fake","cwd":{shown},"approvalPolicy":{policy},"sandbox":{{"type":{sandbox}}},"reasoningEffort":null}}"#));
        self.output.line(&format!(
            r#"{{"method":"thread/started","params":{{"thread":{thread}}},"emittedAtMs":{AT_MS}}}"#
        ));
        let inbox = Arc::new(Inbox::default());
        let voice = App {
            thread_id: thread_id.clone(),
            turn_id: String::new(),
            cwd,
            ids: Arc::clone(&self.ids),
            item_id: String::new(),
            asking: None,
        };
        let mut player = Player::new(Box::new(voice), Arc::clone(&self.output), Arc::clone(&inbox));
        let (sections, own) = (Arc::clone(&self.sections), Arc::clone(&inbox));
        let player = thread::spawn(move || play::perform(&sections, &own, &mut player));
        self.threads.insert(thread_id, Thread { inbox, turn_id: String::new(), player });
    }

    fn turn(&mut self, id: &Value, params: &Value) {
        let Some(thread) = params["threadId"].as_str().and_then(|it| self.threads.get_mut(it))
        else {
            return self.refuse(id, "thread not found");
        };
        let input = params["input"].as_array().map(Vec::as_slice).unwrap_or_default();
        let said: String = input.iter().filter_map(|item| item["text"].as_str()).collect();
        let is_busy = thread.inbox.is_busy();
        if !is_busy {
            self.n_turns += 1;
            thread.turn_id = voice::session_id(0x8000 + self.n_turns);
        }
        let turn = thread.turn_id.clone();
        let inbox = Arc::clone(&thread.inbox);
        self.answer(id, &format!(r#"{{"turn":{{"id":"{turn}","rootTurnId":"{turn}","items":[],"itemsView":"notLoaded","status":"inProgress","error":null,"startedAt":null,"completedAt":null,"durationMs":null}}}}"#));
        // During a turn it is taken into it.
        if !is_busy {
            inbox.push_user(User { text: said, turn, ..User::default() });
        }
    }
}

impl Ear for Server {
    fn hear(&mut self, message: &Value) {
        match (message.get("id"), message["method"].as_str()) {
            (Some(id), Some(method)) => self.request(&id.clone(), method, &message["params"]),
            (Some(id), None) => {
                // Which thread asked is not in the answer; the others never look for its id.
                for thread in self.threads.values() {
                    thread.inbox.push_answer(id.to_string(), verdict(message));
                }
            }
            (None, _) => {}
        }
    }

    fn misses(&mut self) {
        output::stderr(b"failed to deserialize JSONRPCMessage\n");
    }

    /// The process lives until every thread has played what it began.
    fn ends(&mut self) {
        for thread in self.threads.values() {
            thread.inbox.end();
        }
        for (_, thread) in self.threads.drain() {
            thread.player.join().ok();
        }
    }
}

fn verdict(message: &Value) -> Verdict {
    let decision = &message["result"]["decision"];
    let is_yes =
        decision.is_object() || [json!("accept"), json!("acceptForSession")].contains(decision);
    match is_yes {
        true => Verdict::Allow,
        false => Verdict::Deny { message: "declined".to_owned(), stop: decision == "cancel" },
    }
}
