//! The built-in engine under kill -9, on a scripted model.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tieline_event::ConversationKey;
use tieline_testkit::model::{Block, ModelServer, Script, Step};
use tieline_testkit::probe;

use crate::faults::{Dice, check_store, kill, lines, nobody_is_left};
use crate::tieline::Tieline;

/// How many conversations are killed side by side.
const WORKERS: u64 = 4;

/// How often a conversation is killed before the next begins.
const ROUNDS_EACH: u64 = 10;

/// When a turn is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// After a while, whatever it does by then.
    Soon(Duration),
    /// After so many lines.
    Lines(u64),
    /// After so many pieces of the answer.
    Streaming(u64),
    /// When its command is shown.
    Called,
    /// When its command has had its effect and still runs.
    Running,
    /// So many lines after the end of its command.
    Late(u64),
}

impl Moment {
    fn of(dice: &mut Dice) -> Self {
        match dice.below(6) {
            0 => Self::Soon(Duration::from_millis(dice.below(60))),
            1 => Self::Lines(1 + dice.below(6)),
            2 => Self::Streaming(1 + dice.below(16)),
            3 => Self::Called,
            4 => Self::Running,
            _ => Self::Late(1 + dice.below(10)),
        }
    }
}

/// What a model that is going to be killed says: some words, a command, some more.
fn script(round: u64) -> Script {
    let words = |word: &str| Block::Paced {
        chunks: (0..8).map(|n| format!("{word}{n} ")).collect(),
        pause: Duration::from_millis(2),
    };
    let line = format!("echo {round} >> ran.txt; sleep 0.1; echo {round} >> ended.txt");
    let call = Block::tool("exec_command", json!({"cmd": line, "login": false}));
    let first = vec![Block::think("Let me see."), words("before"), call];
    Script::new([Step::Message(first), Step::Message(vec![words("after")])])
}

/// One user, whose turns are killed one after the other.
struct Worker {
    tieline: Tieline,
    dice: Dice,
}

impl Worker {
    fn new(url: &str, number: u64) -> Self {
        let tieline = Tieline::new().with("OPENAI_BASE_URL", format!("{url}/v1"));
        Self { tieline, dice: Dice(number + 7) }
    }

    /// Kills and resumes; gives what was done in each round.
    fn work(mut self, rounds: std::ops::Range<u64>) -> Vec<(u64, Moment, Effects)> {
        let mut killed = Vec::new();
        let all: Vec<u64> = rounds.collect();
        for (number, rounds) in all.chunks(ROUNDS_EACH as usize).enumerate() {
            let name = format!("k{number}");
            let key = ConversationKey::new(name.as_str()).unwrap();
            // Every other conversation has the sandbox.
            let mode = if number % 2 == 0 { "yolo" } else { "bypassPermissions" };
            let mut shown = BTreeMap::new();
            for round in rounds {
                let moment = Moment::of(&mut self.dice);
                self.kill(*round, &name, mode, moment, &mut shown);
                self.resume(*round, &name, mode, &mut shown);
                killed.push((*round, moment));
            }
            check_store(&self.tieline, &key, &shown, 0);
            self.check_turns(&name, rounds.len());
        }
        let marker = format!("TIELINE_HOME={}", self.tieline.store().display());
        nobody_is_left(&marker, "after the last turn");
        let (ran, ended) = (self.effects("ran.txt"), self.effects("ended.txt"));
        let count = |all: &[u64], round: u64| all.iter().filter(|it| **it == round).count();
        let effects = |round| Effects { ran: count(&ran, round), ended: count(&ended, round) };
        killed.into_iter().map(|(round, moment)| (round, moment, effects(round))).collect()
    }

    fn kill(
        &self,
        round: u64,
        key: &str,
        mode: &str,
        moment: Moment,
        shown: &mut BTreeMap<u64, Value>,
    ) {
        let prompt = format!("SCENARIO:kill-{round}");
        let mut child = self.tieline.spawn(&command(key, mode, &prompt));
        if let Moment::Soon(time) = moment {
            std::thread::sleep(time);
            kill(&child, Signal::KILL);
        }
        let (mut n_lines, mut n_pieces, mut n_late) = (0, 0, 0);
        for line in lines(&mut child) {
            let is_command = line["data"]["type"] == "command";
            n_lines += 1;
            n_pieces += u64::from(line["kind"] == "delta");
            n_late += u64::from(n_late > 0 || is_command && line["kind"] == "item.completed");
            let begins = is_command && line["kind"] == "item.started";
            note(shown, line);
            let is_it = match moment {
                Moment::Soon(_) => false,
                Moment::Lines(n) => n_lines == n,
                Moment::Streaming(n) => n_pieces == n,
                Moment::Called => begins,
                Moment::Running => {
                    if begins {
                        self.wait_for_effect(round);
                    }
                    begins
                }
                Moment::Late(n) => n_late == n,
            };
            if is_it {
                kill(&child, Signal::KILL);
            }
        }
        child.wait().unwrap();
    }

    fn wait_for_effect(&self, round: u64) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.effects("ran.txt").contains(&round) {
            assert!(Instant::now() < deadline, "the command of round {round} never ran");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The conversation goes on with the next prompt.
    fn resume(&self, round: u64, key: &str, mode: &str, shown: &mut BTreeMap<u64, Value>) {
        let outcome = self.tieline.run(&command(key, mode, &fine(round))).succeeds();
        let lines = outcome.lines();
        let end = lines.iter().rfind(|line| line["kind"] == "turn.completed").unwrap();
        assert_eq!(end["data"]["text"], "Fine.", "round {round}: {outcome:#?}");
        lines.into_iter().for_each(|line| note(shown, line));
    }

    /// Every turn that began has ended, once.
    fn check_turns(&self, key: &str, rounds: usize) {
        let mut turns: BTreeMap<String, (u32, u32)> = BTreeMap::new();
        for event in self.tieline.events(key) {
            let Some(turn) = event["turn"].as_str() else { continue };
            let count = turns.entry(turn.to_owned()).or_default();
            match event["kind"].as_str() {
                Some("turn.started") => count.0 += 1,
                Some("turn.completed") => count.1 += 1,
                _ => {}
            }
        }
        assert!(turns.len() >= rounds, "{} turns in {rounds} rounds", turns.len());
        let odd: Vec<_> = turns.iter().filter(|(_, count)| **count != (1, 1)).collect();
        assert!(odd.is_empty(), "begun and ended: {odd:?}");
    }

    /// The rounds whose command has left its mark.
    fn effects(&self, file: &str) -> Vec<u64> {
        rounds_in(&self.tieline.work().join(file))
    }
}

/// How often each half of a command was seen to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effects {
    ran: usize,
    ended: usize,
}

fn rounds_in(file: &Path) -> Vec<u64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    // A line that is being written is not there yet.
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.map(|line| line.parse().unwrap()).collect()
}

fn fine(round: u64) -> String {
    format!("SCENARIO:fine round {round}")
}

fn command<'a>(key: &'a str, mode: &'a str, prompt: &'a str) -> [&'a str; 10] {
    let format = ["--format", "jsonl", "--mode", mode];
    let [f, jsonl, m, mode] = format;
    ["run", "--agent", "engine", "-c", key, f, jsonl, m, mode, prompt]
}

fn note(shown: &mut BTreeMap<u64, Value>, line: Value) {
    if let Some(seq) = line["seq"].as_u64() {
        let before = shown.insert(seq, line);
        assert!(before.is_none(), "seq {seq} was shown twice");
    }
}

/// What the model was told of the call of a round, after the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Interrupted,
    Output,
}

fn told(input: &[Value], round: u64) -> Told {
    let of = |kind: &str| {
        let all: Vec<&Value> = input.iter().filter(|item| item["type"] == kind).collect();
        all
    };
    let (calls, outputs) = (of("function_call"), of("function_call_output"));
    let ids = |items: &[&Value]| -> Vec<String> {
        items.iter().map(|item| item["call_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&calls), ids(&outputs), "each call has its output, and there is none twice");
    let mark = format!("echo {round} >> ran.txt;");
    let mut of_round =
        calls.iter().filter(|call| call["arguments"].as_str().unwrap().contains(&mark));
    let call = of_round.next();
    assert!(of_round.next().is_none(), "round {round} has two calls");
    let Some(call) = call else { return Told::Nothing };
    let output = outputs.iter().find(|output| output["call_id"] == call["call_id"]).unwrap();
    match output["output"].as_str().unwrap().contains("interrupted: ") {
        true => Told::Interrupted,
        false => Told::Output,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_within_turns_of_the_engine_repeats_and_loses_nothing() {
    let kills: u64 = std::env::var("TIELINE_KILLS").map_or(200, |n| n.parse().unwrap());
    let model = ModelServer::start().await;
    model.scenario("fine", Script::say("Fine."));
    (0..kills).for_each(|round| model.scenario(&format!("kill-{round}"), script(round)));
    let each = kills.div_ceil(WORKERS);
    let workers = (0..WORKERS).map(|number| {
        let worker = Worker::new(&model.url(), number);
        let rounds = number * each..((number + 1) * each).min(kills);
        tokio::task::spawn_blocking(move || worker.work(rounds))
    });
    let done = futures::future::try_join_all(workers).await.unwrap();
    let mut after = BTreeMap::new();
    for request in model.requests() {
        let Some(input) = request.body["input"].as_array() else { continue };
        let last = input.last().unwrap()["content"][0]["text"].as_str().unwrap_or_default();
        after.insert(last.to_owned(), input.clone());
    }
    let mut counts = BTreeMap::new();
    for (round, moment, effects) in done.into_iter().flatten() {
        let told = told(&after[&fine(round)], round);
        let what = format!("round {round}, {moment:?}: {effects:?}, {told:?}");
        assert!(effects.ran <= 1 && effects.ended <= effects.ran, "{what}");
        // What ran is known to the model.
        assert!(effects.ran == 0 || told != Told::Nothing, "{what}");
        if moment == Moment::Running {
            assert_eq!((effects.ran, told), (1, Told::Interrupted), "{what}");
        }
        *counts.entry(format!("{told:?}")).or_insert(0_u64) += 1;
    }
    // All of it happened, and not by a hair.
    let is_covered = counts.len() == 3 && counts.values().all(|n| *n >= kills / 20);
    assert!(is_covered || kills < 100, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_pieces_of_an_answer_need_little_memory() {
    let model = ModelServer::start().await;
    let tieline = Tieline::new().with("OPENAI_BASE_URL", format!("{}/v1", model.url()));
    let text: String = (0..100_000).map(|n| format!("word{n} ")).collect();
    let work = tokio::task::spawn_blocking(move || {
        let mut child = tieline.spawn(&command("k", "yolo", "SCENARIO:long:100000"));
        let pid = child.id();
        let watch = std::thread::spawn(move || {
            let (mut least, mut most) = (u64::MAX, 0);
            while let Some(rss) = probe::rss_kib(pid) {
                (least, most) = (least.min(rss), most.max(rss));
                std::thread::sleep(Duration::from_millis(2));
            }
            (least, most)
        });
        let (mut shown, mut ends) = (String::new(), 0);
        for line in lines(&mut child) {
            if line["kind"] == "delta" {
                shown.push_str(line["text"].as_str().unwrap());
            }
            ends += u32::from(line["kind"] == "turn.completed");
        }
        assert!(child.wait().unwrap().success());
        let markdown = tieline.run(&["export", "k", "--format", "markdown"]).succeeds().out;
        (shown, ends, markdown, watch.join().unwrap())
    });
    let (shown, ends, markdown, (_, most)) = work.await.unwrap();
    assert_eq!(ends, 1);
    assert!(shown == text, "{} bytes were shown of {}", shown.len(), text.len());
    assert!(markdown.contains(text.trim()), "the store has another text");
    assert!(most <= 160 * 1024, "{most} KiB");
}
