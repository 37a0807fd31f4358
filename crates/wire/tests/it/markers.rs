//! Markers, read by the two parsers that were published with their format, as they stand there.
//!
//! Both are simpler than the format: they drop a question's context, take white space off every
//! line and know nothing of escapes. So their fields are put on lines again and read by our reader;
//! what they gave must then be what we gave, but for white space around lines of context.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use tieline_wire::markers::{
    Change, Choice, FileChange, Marker, Piece, Question, Reader, Reading, Writer, write,
};

const PYTHON: &str = include_str!("../../fixtures/markers/parser.py");
const TYPESCRIPT: &str = include_str!("../../fixtures/markers/parser.ts");

const PYTHON_LOOP: &str = "
import json, sys
print(json.dumps([parse_markers(text) for text in json.load(sys.stdin.buffer)]))
";

const JAVASCRIPT_LOOP: &str = "
const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(texts.map(parseMarkers)));
";

/// The examples of the format's description.
const EXAMPLES: [&str; 5] = [
    "[PROGRESS] Analyzed existing LoginForm.tsx pattern\n\
     [PROGRESS] Created src/components/UserAuth.tsx with basic structure\n\
     [PROGRESS] Implementing JWT validation in src/lib/jwt.ts\n\
     [PROGRESS] Integration with App.tsx complete\n",
    "[QUESTION] Should JWT tokens be stored in localStorage or sessionStorage?\n\
     Options:\n\
     1. localStorage - Persists across browser sessions\n\
     2. sessionStorage - Cleared when browser closes\n\
     \n\
     This affects logout behavior and security posture.\n",
    "[QUESTION] Where should I place the error message component?\n\
     Options:\n\
     1. Inline in form - Below each input field\n\
     2. Top of form - Single error banner\n\
     3. Toast notification - Floating alert\n\
     \n\
     LoginForm uses option 1, but this form is more complex.\n",
    "[BLOCKED] Cannot find API base URL\n\
     The plan references API_BASE_URL but it's not defined in:\n\
     - .env file\n\
     - src/config.ts\n\
     - Environment variables\n\
     Please specify the API endpoint.\n\
     \n\
     [BLOCKED] Missing dependency: axios\n\
     The plan requires making HTTP requests but axios is not installed.\n\
     Should I:\n\
     - Use native fetch instead?\n\
     - Add axios to package.json?\n",
    "[FILES_MODIFIED]\n\
     - src/components/UserAuth.tsx (created)\n\
     - src/lib/jwt.ts (created)\n\
     - src/App.tsx (modified)\n\
     - src/types/user.ts (modified)\n\
     - tests/auth.test.tsx (created)\n\
     [CODEX_COMPLETE] Task completed in 8 iterations\n",
];

/// What a parser found, in our terms.
#[derive(Debug, Default, PartialEq)]
struct Found {
    progress: Vec<String>,
    questions: Vec<(String, Vec<Choice>)>,
    blocked: Vec<(String, Vec<String>)>,
    files: Vec<FileChange>,
    completed: bool,
}

impl Found {
    fn by_us(text: &str) -> Self {
        let mut found = Self::default();
        found.take(text);
        found
    }

    fn take(&mut self, text: &str) {
        for marker in read(text) {
            match marker {
                Marker::Progress(text) => self.progress.push(text),
                Marker::Question(question) => {
                    self.questions.push((question.text, question.options));
                }
                Marker::Blocked { reason, context } => {
                    let context = context.iter().map(|line| bare(line)).collect();
                    self.blocked.push((reason, context));
                }
                Marker::FilesModified(files) => self.files.extend(files),
                Marker::Complete { .. } => self.completed = true,
                Marker::Other { .. } => {}
            }
        }
    }

    /// `files`: the name of that field. Each value is read as a text of its own, because without
    /// its white space a line may open a code fence.
    fn by_them(value: &Value, files: &str) -> Self {
        let mut found =
            Self { completed: value["completed"].as_bool().unwrap(), ..Self::default() };
        for text in strings(&value["progress"]) {
            found.take(&format!("[PROGRESS] {text}"));
        }
        for question in value["questions"].as_array().unwrap() {
            let mut lines = vec![format!("[QUESTION] {}", question["question"].as_str().unwrap())];
            lines.extend(strings(&question["options"]));
            found.take(&lines.join("\n"));
        }
        for blocked in value["blocked"].as_array().unwrap() {
            let mut lines = vec![format!("[BLOCKED] {}", blocked["reason"].as_str().unwrap())];
            lines.extend(strings(&blocked["context"]));
            found.take(&lines.join("\n"));
        }
        for file in strings(&value[files]) {
            found.take(&format!("[FILES_MODIFIED]\n- {file}"));
        }
        found
    }

    /// The parser in Python knows the options 1, 2 and 3 and stops at any other.
    fn with_three_options(mut self) -> Self {
        for (_, options) in &mut self.questions {
            let known = options.iter().take_while(|choice| (1..=3).contains(&choice.number));
            options.truncate(known.count());
        }
        self
    }
}

fn read(text: &str) -> Vec<Marker> {
    let mut markers = Vec::new();
    let mut take = |piece: Piece<'_>| {
        if let Piece::Marker(marker) = piece {
            markers.push(marker);
        }
    };
    let mut reader = Reader::new(Reading::Spec);
    reader.feed(text, &mut take);
    reader.finish(&mut take);
    markers
}

fn bare(line: &str) -> String {
    line.trim_matches(|char: char| char.is_whitespace() || char == '\u{feff}').to_owned()
}

fn strings(value: &Value) -> impl Iterator<Item = String> {
    value.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned())
}

/// Runs a program that reads a list of texts and prints what was found in each.
#[expect(
    clippy::disallowed_methods,
    reason = "an interpreter that starts nothing and is waited for"
)]
fn run(program: &str, args: &[&str], texts: &[String]) -> Vec<Value> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|err| panic!("this test needs {program}: {err}"));
    let input = serde_json::to_vec(texts).unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}: {}", output.status);
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found.len(), texts.len());
    found
}

/// The parser without its types, which Node 20 does not read: the interface goes, and each
/// annotation that is left. Nothing else is touched.
fn javascript() -> String {
    let (interface, function) = TYPESCRIPT.split_once("\n}\n").unwrap();
    assert!(interface.starts_with("interface ParsedMarkers {"));
    let mut code = function.to_owned();
    for (typed, plain) in
        [("output: string)", "output)"), (": ParsedMarkers ", " "), (": string[] =", " =")]
    {
        assert!(code.contains(typed), "{typed}");
        code = code.replace(typed, plain);
    }
    code
}

#[track_caller]
fn check(texts: &[String]) {
    let python = run("python3", &["-c", &format!("{PYTHON}{PYTHON_LOOP}")], texts);
    let node = run("node", &["-e", &format!("{}{JAVASCRIPT_LOOP}", javascript())], texts);
    for ((text, python), node) in texts.iter().zip(&python).zip(&node) {
        let ours = Found::by_us(text);
        assert_eq!(Found::by_them(node, "filesModified"), ours, "TypeScript reads\n{text}");
        let python = Found::by_them(python, "files_modified");
        assert_eq!(python, ours.with_three_options(), "Python reads\n{text}");
    }
}

#[test]
fn sample_parsers_read_the_examples_as_we_do() {
    let mut texts: Vec<String> = EXAMPLES.map(str::to_owned).into();
    for example in EXAMPLES {
        let mut again = String::new();
        read(example).iter().for_each(|marker| write(marker, &mut again));
        assert_eq!(Found::by_us(&again), Found::by_us(example));
        texts.push(again);
    }
    check(&texts);
}

#[test]
fn sample_parsers_read_what_we_write() {
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let mut texts = Vec::new();
    let mut all = String::new();
    let mut n_markers = 0;
    while n_markers < 600 {
        let items = any_items().new_tree(&mut runner).unwrap().current();
        let mut writer = Writer::default();
        let mut out = String::new();
        for item in &items {
            match item {
                Item::Text(text) => writer.text(text, &mut out),
                Item::Marker(marker) => writer.marker(marker, &mut out),
            }
        }
        let written: Vec<Marker> = items.into_iter().filter_map(Item::normalised).collect();
        n_markers += written.len();
        // Ours is the measure only if it is itself what was written.
        assert_eq!(read(&out), written, "{out}");
        writer.marker(&Marker::Progress("closes a fence".into()), &mut out);
        all.push_str(&out);
        texts.push(out);
    }
    texts.push(all);
    check(&texts);
}

/// Why our reader is another one: where both, or one of them, do not do what the format says.
#[test]
fn sample_parsers_differ_from_the_format_where_we_know_it() {
    let texts = [
        "[QUESTION] a\n1. b\n4. c\n10. d\ncontext\n",
        "  [PROGRESS] not at the start of its line\n```\n[PROGRESS] code\n```\n",
        "[BLOCKED] a\n[b] is no marker\nc\n",
    ]
    .map(str::to_owned);
    let python = run("python3", &["-c", &format!("{PYTHON}{PYTHON_LOOP}")], &texts);
    let node = run("node", &["-e", &format!("{}{JAVASCRIPT_LOOP}", javascript())], &texts);
    let [question, progress, blocked] = texts.each_ref().map(|text| read(text));

    let Marker::Question(question) = &question[0] else { panic!("{question:?}") };
    assert_eq!((question.options.len(), question.context.len()), (3, 1));
    assert_eq!(strings(&node[0]["questions"][0]["options"]).count(), 3);
    assert_eq!(strings(&python[0]["questions"][0]["options"]).count(), 1);

    assert_eq!(progress, []);
    let Marker::Blocked { context, .. } = &blocked[0] else { panic!("{blocked:?}") };
    assert_eq!(context.len(), 2);
    for theirs in [python, node] {
        assert_eq!(strings(&theirs[1]["progress"]).count(), 2);
        assert_eq!(strings(&theirs[2]["blocked"][0]["context"]).count(), 0);
    }
}

#[derive(Debug, Clone)]
enum Item {
    Text(String),
    Marker(Marker),
}

impl Item {
    fn normalised(self) -> Option<Marker> {
        match self {
            Self::Text(_) => None,
            Self::Marker(marker) => Some(marker.normalised()),
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let parts = [
        "[",
        "]",
        "\\",
        "\n",
        "\n\n",
        "\r",
        " ",
        "  ",
        "\t",
        "-",
        " - ",
        "- ",
        "1.",
        "2. ",
        "10. ",
        "Options:",
        "```",
        "~~~",
        "\"",
        "(",
        ")",
        ">",
        "[PROGRESS]",
        "[PROGRESS] ",
        "[QUESTION] ",
        "[BLOCKED] ",
        "[FILES_MODIFIED]",
        "[CODEX_COMPLETE] ",
        "[NOTE] ",
        "[X]",
        "[lower]",
        " (created)",
        " (renamed from ",
        "a",
        "word ",
        "another word ",
        "é",
        "🦀",
        "\u{feff}",
        "\u{85}",
        "\u{1f}",
        "\u{a0}",
        "\u{2028}",
    ];
    let part = prop::sample::select(parts.to_vec());
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

fn any_items() -> impl Strategy<Value = Vec<Item>> {
    let lines = || prop::collection::vec(any_text(), 0..5);
    let choice = (1..13_u32, any_text(), prop::option::of(any_text()))
        .prop_map(|(number, label, description)| Choice { number, label, description });
    let change = prop_oneof![
        Just(Change::Created),
        Just(Change::Modified),
        Just(Change::Deleted),
        any_text().prop_map(|from| Change::Renamed { from }),
        Just(Change::Unknown),
    ];
    let file = (any_text(), change).prop_map(|(path, change)| FileChange { path, change });
    let name = prop::sample::select(&["NOTE", "NEED_CONTEXT", "TEST_RESULTS"][..]);
    let question = (any_text(), prop::collection::vec(choice, 0..6), lines())
        .prop_map(|(text, options, context)| Question { text, options, context });
    let item = prop_oneof![
        any_text().prop_map(Item::Text),
        any_text().prop_map(|text| Item::Marker(Marker::Progress(text))),
        any_text().prop_map(|text| Item::Marker(Marker::Complete { text })),
        question.prop_map(|question| Item::Marker(Marker::Question(question))),
        (any_text(), lines())
            .prop_map(|(reason, context)| Item::Marker(Marker::Blocked { reason, context })),
        prop::collection::vec(file, 0..5)
            .prop_map(|files| Item::Marker(Marker::FilesModified(files))),
        (name, lines()).prop_map(|(name, content)| {
            Item::Marker(Marker::Other { name: name.to_owned(), content })
        }),
    ];
    prop::collection::vec(item, 1..5)
}
