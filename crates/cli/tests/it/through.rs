//! Ourselves through ourselves: a hub drives `tieline acp --agent demo`, and what the outer
//! conversation tells is what the inner one tells, but for what the protocol cannot carry.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tieline_agent::Agent;
use tieline_agent::acp::AcpAgent;
use tieline_event::{
    Answer, Approval, Choice, ChoiceKind, Configured, ConversationKey, Event, Failure, Item,
    ItemBody, Kind, Mode, Origin, Prompt, Question, Request, RequestBody, Seq, ToolKind,
    TurnStatus,
};
use tieline_hub::{Conversation, Entry, Hub, Limits, OpenOptions, Registry, Subscription};
use tieline_proc::Env;
use tieline_store::{Options, Store};

use crate::tieline::Tieline;

/// How somebody answers what is asked.
#[derive(Debug, Clone, Copy)]
enum Say {
    /// The first option of this kind.
    Choose(ChoiceKind),
    /// This, to every question.
    Words(&'static str),
    /// Nothing: the turn is stopped.
    Stop,
}

const YES: Say = Say::Choose(ChoiceKind::AllowOnce);

struct One(Arc<dyn Agent>);

impl Registry for One {
    fn agent(&self, _: &str, _: &Path) -> Result<Arc<dyn Agent>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// The events of both conversations.
struct Both {
    outer: Vec<Event>,
    inner: Vec<Event>,
}

fn key() -> ConversationKey {
    ConversationKey::new("outer").unwrap()
}

fn events(store: &Store, key: &ConversationKey) -> Vec<Event> {
    let stored = store.events(key, Seq(0), 100_000).unwrap();
    stored.iter().map(|it| Event::from_json(&it.json).unwrap()).collect()
}

/// Plays a script through the protocol, one message for each of `turns`; `/set` is about settings.
async fn through(script: &str, mode: Mode, turns: &[&str], answers: &[Say]) -> Both {
    let program = Path::new(env!("CARGO_BIN_EXE_tieline"));
    tieline_proc::set_host_program(program.to_owned());
    let user = Tieline::new();
    let file = user.path("script");
    std::fs::write(&file, script).unwrap();
    let user = user.with_config(&format!("[agents.demo]\nscript = {file:?}\n"));
    let command = user.command(&["acp", "--agent", "demo"]);
    let mut env = Env::empty();
    for (name, value) in command.get_envs() {
        env.set(name, value.unwrap_or_default());
    }
    let agent = AcpAgent {
        name: "acp:tieline".to_owned(),
        program: program.to_owned(),
        args: ["acp", "--agent", "demo"].map(str::to_owned).into(),
        env,
        preamble: false,
    };
    let store = Store::open(&user.path("outer"), Options::default()).unwrap();
    let hub = Hub::new(store, Arc::new(One(Arc::new(agent))), Limits::default());
    let options = OpenOptions {
        agent: Some("acp:tieline".into()),
        workspace: Some(user.work()),
        mode: Some(mode),
        ..OpenOptions::default()
    };
    let conversation = hub.conversation(&key(), options).await.unwrap();
    let mut live = conversation.subscribe(conversation.last_seq());
    let mut answers = answers.iter();
    for turn in turns {
        match turn.strip_prefix("/set ").and_then(|it| it.split_once(' ')) {
            Some(("effort", effort)) => conversation.set_effort(effort.into()).await.unwrap(),
            Some(("model", model)) => conversation.set_model(model.into()).await.unwrap(),
            Some((_, mode)) => conversation.set_mode(mode.parse().unwrap()).await.unwrap(),
            None => play(&conversation, &mut live, turn, &mut answers).await,
        }
    }
    assert!(answers.next().is_none(), "everything was asked");
    hub.close_all().await;
    let outer = events(hub.store(), &key());
    let inner = hub.store().conversation(&key()).unwrap().unwrap().native_session.unwrap();
    let inner = ConversationKey::new(&inner).unwrap();
    let store = Store::open(&user.store(), Options::default()).unwrap();
    let inner = events(&store, &inner);
    Both { outer, inner }
}

async fn play(
    conversation: &Conversation,
    live: &mut Subscription,
    prompt: &str,
    answers: &mut impl Iterator<Item = &Say>,
) {
    let turn = conversation.start_turn(Prompt::text(prompt)).await.unwrap();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(30), live.next());
        for entry in next.await.expect("a turn ends").unwrap() {
            let Entry::Event(shown) = entry else { continue };
            match &shown.event.kind {
                Kind::RequestOpened(request) => {
                    let say = answers.next().unwrap_or_else(|| panic!("asked: {request:?}"));
                    answer(conversation, request, *say).await;
                }
                Kind::TurnCompleted(_) if shown.event.turn.as_ref() == Some(&turn) => return,
                _ => {}
            }
        }
    }
}

async fn answer(conversation: &Conversation, request: &Request, say: Say) {
    let answer = match (say, &request.body) {
        (Say::Stop, _) => return conversation.interrupt().await.unwrap(),
        (Say::Choose(kind), _) => {
            let is_it = |choice: &&Choice| choice.kind == kind;
            let choice = request.options.iter().find(is_it);
            let choice = choice.unwrap_or_else(|| panic!("no {kind:?} in {request:?}"));
            Answer::Choose { option: choice.id.clone() }
        }
        (Say::Words(words), RequestBody::Question { questions }) => {
            let answer = |it: &Question| (it.id.clone(), vec![words.to_owned()]);
            Answer::Answers { answers: questions.iter().map(answer).collect() }
        }
        (Say::Words(_), other) => panic!("a question, not {other:?}"),
    };
    conversation.answer(&request.id, answer, Origin::Human, None).await.unwrap();
}

/// What a conversation tells, without what the protocol cannot carry. Each `lost` stands in
/// `docs/acp.md` as well, under "What the protocol cannot carry".
fn told(events: &[Event]) -> String {
    let mut told = Vec::new();
    let mut beside = Vec::new();
    let mut settings = Configured::default();
    for event in events {
        match &event.kind {
            // Lost: when items began and grew; the counts on the way; what a process did.
            Kind::ItemStarted(_) | Kind::ItemUpdated(_) | Kind::UsageUpdated(_) => {}
            Kind::ProcessSpawned(_) | Kind::ProcessExited(_) => {}
            // Lost: where a turn can be gone on from.
            Kind::TurnStep(_) => {}
            Kind::ConversationOpened(_) | Kind::ConversationClosed(_) => {}
            Kind::TurnStarted(_) => told.push(json!("turn")),
            Kind::ItemCompleted(item) => told.extend(item_told(item)),
            Kind::RequestOpened(request) => told.push(request_told(request)),
            Kind::RequestResolved(it) => told.push(answer_told(&it.answer)),
            Kind::RequestExpired(_) => told.push(json!("expired")),
            // Lost: the code of a notice. Neither it nor a list of steps ends a message, so whether
            // one had ended before is lost as well.
            Kind::PlanUpdated(plan) => beside.push(json!({ "plan": plan })),
            Kind::Notice(it) => beside.push(json!({ "notice": it.text, "level": it.level })),
            Kind::TurnCompleted(end) => {
                // Lost: what a turn used that failed; the answer is an error.
                let usage = end.usage.as_ref().filter(|_| end.error.is_none());
                // Lost: whether a turn used nothing or did not say; and how full the context is.
                let usage = usage.filter(|it| it.input_tokens + it.output_tokens > 0);
                let text = end.text.preview();
                told.push(
                    json!({ "end": end.status, "text": text, "usage": usage, "error": end.error }),
                );
            }
            Kind::ConversationConfigured(it) => settings = later(settings, it),
            other => panic!("{other:?}"),
        }
    }
    told.extend(beside);
    told.push(settings_told(settings));
    let lines: Vec<String> =
        told.iter().map(|it| serde_json::to_string_pretty(it).unwrap()).collect();
    lines.join("\n")
}

fn item_told(item: &Item) -> Option<Value> {
    let mut body = serde_json::to_value(&item.body).unwrap();
    match &item.body {
        // Lost: the provider's seal.
        ItemBody::Reasoning { .. } => remove(&mut body, &["signature"]),
        // Lost: a call that keeps the list of steps; the list itself is told.
        ItemBody::ToolCall { gist: Some(gist), .. } if gist.kind == ToolKind::Plan => return None,
        // Not lost but added: a call that stands for a question.
        ItemBody::ToolCall { tool, server: None, .. } if tool == "question" => return None,
        ItemBody::ToolCall { tool, server, title, gist, .. } => {
            // Lost: which of its titles a call has. It is shown by one, and may be made for it.
            let made = server.as_ref().map_or(tool.clone(), |server| format!("{server}: {tool}"));
            let gist = gist.clone().unwrap_or_default();
            remove(&mut body, &["title", "gist"]);
            body["title"] = json!(gist.title.or(title.clone()).unwrap_or(made));
            // Lost: whether a kind is none of the known ones, or not known.
            body["gist"] = json!({ "kind": gist.kind, "places": gist.places });
        }
        ItemBody::FileChange { .. } => {
            // Lost: hunks, where the whole texts are told. Of an agent that gives hunks alone they
            // may become whole texts.
            for change in body["changes"].as_array_mut().unwrap() {
                assert!(change["diff"].is_string() || change["new_text"].is_string(), "{change}");
                remove(change, &["diff"]);
                if change["kind"] == "update" {
                    remove(change, &["old_text", "new_text"]);
                }
            }
        }
        _ => {}
    }
    Some(json!({ "item": item.status, "body": body }))
}

fn remove(object: &mut Value, fields: &[&str]) {
    object.as_object_mut().unwrap().retain(|name, _| !fields.contains(&name.as_str()));
}

fn request_told(request: &Request) -> Value {
    let is_no = |it: &&Choice| matches!(it.kind, ChoiceKind::Deny | ChoiceKind::DenyAndStop);
    let options: Vec<&Choice> = match &request.body {
        // Lost: how the agent words its yes to leave a plan; an editor chooses the mode with it.
        RequestBody::ExitPlan { .. } => request.options.iter().filter(is_no).collect(),
        // Lost: the words to leave a question unanswered.
        RequestBody::Question { .. } => Vec::new(),
        RequestBody::Approval(_) => request.options.iter().collect(),
    };
    let options: Vec<_> = options.iter().map(|it| json!([it.kind, it.label])).collect();
    let mut body = serde_json::to_value(&request.body).unwrap();
    match &request.body {
        // Lost: the input and the rules that the agent suggests. What would change is told by the
        // call that is asked about, and from there with the question.
        // Told in one sentence, as the reason: what tieline knows of it.
        RequestBody::Approval(_) => {
            let lost = ["input", "suggestions", "changes", "given", "cwd", "bounds", "why"];
            remove(&mut body, &lost);
        }
        RequestBody::Question { .. } => {
            // Lost: the names of questions.
            for question in body["questions"].as_array_mut().unwrap() {
                remove(question, &["id"]);
            }
        }
        RequestBody::ExitPlan { .. } => {}
    }
    let why = match &request.body {
        RequestBody::Approval(_) => None,
        _ => request.reason.as_ref(),
    };
    json!({ "request": request.title, "why": why, "body": body, "options": options })
}

fn answer_told(answer: &Answer) -> Value {
    match answer {
        // Lost: the mode that leaving a plan leads to; the settings tell it.
        Answer::Allow { scope, .. } => json!({ "yes": scope }),
        // Lost: the names of questions.
        Answer::Answers { answers } => json!({ "answers": answers.values().collect::<Vec<_>>() }),
        other => json!(other),
    }
}

/// The settings after a change.
fn later(before: Configured, change: &Configured) -> Configured {
    Configured {
        model: change.model.clone().or(before.model),
        mode: change.mode.or(before.mode),
        abilities: change.abilities.clone().or(before.abilities),
        ..Configured::default()
    }
}

fn settings_told(settings: Configured) -> Value {
    let abilities = settings.abilities.unwrap_or_default();
    // Not lost but added: commands of our own.
    let is_ours = |name: &str| ["status", "fresh"].contains(&name);
    let commands = abilities.commands.iter().filter(|it| !is_ours(&it.name));
    // Lost: names of tools and skills; that no effort was chosen, because one must be told; whether
    // the agent itself branches and takes pictures, because we say it before we know the agent.
    json!({
        "model": settings.model,
        "mode": settings.mode,
        "modes": abilities.modes,
        "models": abilities.models,
        "efforts": abilities.efforts,
        "commands": commands.collect::<Vec<_>>(),
        "steering": abilities.steering,
        "questions": abilities.questions,
        "approvals": abilities.approvals,
        "streaming": abilities.streaming,
    })
}

#[track_caller]
fn same(both: &Both) {
    let (outer, inner) = (told(&both.outer), told(&both.inner));
    assert_eq!(outer, inner);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_thoughts_plans_and_tokens_come_through_whole() {
    let script = "\
think First I think.\n\
say <<END
Two lines, tabs\tand   spaces,

an empty one, ünïcödé 🦀 and \"quotes\" \\ backslashes.
END
plan Look; Write; Check\nstep 1 doing\nstep 1 done\nstep 2 doing\n\
say In between.\nthink Once more.\nsay The end: {prompt}\nusage 120 34\n\
---\nsay Second turn.\n";
    // And a text that is stored apart.
    let long: String = (0..8_000).map(|n| format!("line {n} of many\n")).collect();
    let script = format!("{script}---\nsay <<END\n{long}END\n");
    let both = through(&script, Mode::Default, &["Hello there", "again", "at length"], &[]).await;
    same(&both);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_files_and_tools_come_through_whole() {
    let script = "\
run printf 'one\\ntwo'; exit 3
run echo fine
run seq 1 40000
write notes.md <<END
alpha
beta
END
edit notes.md \"beta\" => \"gamma\"
say Done.
";
    let both = through(script, Mode::BypassPermissions, &["go"], &[]).await;
    same(&both);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_come_through_with_their_options_and_answers() {
    let script = "\
write a.md <<END
one
END
run touch made
ask Which colour? | Red: warm | Blue: cold
say You chose {answer}.
---
run touch other
refused
say Then not.
---
run touch third
say not said
";
    let answers = [
        YES,
        Say::Choose(ChoiceKind::AllowSession),
        Say::Words("Blue"),
        Say::Choose(ChoiceKind::Deny),
        Say::Stop,
    ];
    let both = through(script, Mode::Default, &["go", "more", "and more"], &answers).await;
    let ends = both.outer.iter().filter_map(|event| match &event.kind {
        Kind::TurnCompleted(end) => Some(end.status),
        _ => None,
    });
    let ends: Vec<_> = ends.collect();
    assert_eq!(ends, [TurnStatus::Completed, TurnStatus::Completed, TurnStatus::Interrupted]);
    same(&both);
    let approvals = |events: &[Event]| -> Vec<Request> {
        let approval = |event: &Event| match &event.kind {
            Kind::RequestOpened(request) => Some(request.clone()),
            _ => None,
        };
        let of_leave = |it: &Request| matches!(it.body, RequestBody::Approval(_));
        events.iter().filter_map(approval).filter(of_leave).collect()
    };
    for (outer, inner) in approvals(&both.outer).iter().zip(approvals(&both.inner)) {
        let RequestBody::Approval(Approval { why: Some(why), .. }) = inner.body else { continue };
        let told = outer.reason.clone().unwrap_or_default();
        assert!(told.contains(&why), "{why:?} is not told in {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_comes_through_the_protocol() {
    let script = "say Let me see.\nexit-plan First this, then that.\n";
    let both = through(script, Mode::Plan, &["plan it"], &[]).await;
    let items = |events: &[Event]| -> Vec<(&'static str, String)> {
        let item = |event: &Event| match &event.kind {
            Kind::ItemCompleted(Item { body, .. }) => match body {
                ItemBody::AgentMessage { text } | ItemBody::Plan { text } => {
                    Some((body.name(), text.preview().to_owned()))
                }
                _ => None,
            },
            _ => None,
        };
        events.iter().filter_map(item).collect()
    };
    let text = |text: &str| text.to_owned();
    let plan = "First this, then that.\n";
    assert_eq!(items(&both.inner), [("agent_message", text("Let me see.")), ("plan", text(plan))]);
    // Lost: that it is a plan.
    let outer: String = items(&both.outer).into_iter().map(|(_, text)| text).collect();
    assert!(outer.starts_with("Let me see.") && outer.ends_with(plan), "{outer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_come_through_with_their_code() {
    let script = "say Hm.\nfail 529 overloaded\n---\nfail 401 no key\n---\nfail 400 bad\n";
    let both = through(script, Mode::Default, &["a", "b", "c"], &[]).await;
    same(&both);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_reach_the_agent_through_the_protocol() {
    let turns =
        ["begin", "/set mode acceptEdits", "/set model scripted", "/set effort high", "go on"];
    let both = through("say Yes.\n", Mode::Default, &turns, &[]).await;
    same(&both);
    let last = |events: &[Event], field: fn(&Configured) -> Option<String>| {
        let mut told = events.iter().rev().filter_map(|event| match &event.kind {
            Kind::ConversationConfigured(it) => field(it),
            _ => None,
        });
        told.next()
    };
    for events in [&both.outer, &both.inner] {
        assert_eq!(last(events, |it| it.effort.clone()).as_deref(), Some("high"));
        assert_eq!(
            last(events, |it| it.mode.map(|it| it.name().to_owned())).unwrap(),
            "acceptEdits"
        );
    }
    // Who has no title gets the first words that were said.
    assert_eq!(last(&both.outer, |it| it.title.clone()).as_deref(), Some("begin"));
}
