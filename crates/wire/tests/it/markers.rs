//! Markers, read by short readers such as scripts have.
//!
//! Two are ours (`fixtures/markers`), two are those that the description of the format prints, run
//! where a copy of it lies beside the checkout. All are simpler than the format: they drop a
//! question's context, take white space off every line and know nothing of escapes. So their fields
//! are put on lines again and read by our reader; what they gave must then be what we gave, but for
//! white space around lines of context.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;
use tieline_wire::markers::{
    Change, Choice, FileChange, Marker, Piece, Question, Reader, Reading, Writer, write,
};

/// A program that reads markers.
struct ShortReader {
    name: &'static str,
    language: Language,
    /// The definition of `function`.
    code: String,
    function: &'static str,
    /// The fields that hold a question's text and the listed files.
    question: &'static str,
    files: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Language {
    /// Its readers know the options 1, 2 and 3 and stop at any other.
    Python,
    JavaScript,
}

impl ShortReader {
    fn all() -> Vec<Self> {
        let ours = |name, language, code: &str, function| Self {
            name,
            language,
            code: code.to_owned(),
            function,
            question: "text",
            files: "files",
        };
        let python = include_str!("../../fixtures/markers/short_reader.py");
        let javascript = include_str!("../../fixtures/markers/short_reader.js");
        let mut readers = vec![
            ours("short_reader.py", Language::Python, python, "read_markers"),
            ours("short_reader.js", Language::JavaScript, javascript, "readMarkers"),
        ];
        readers.extend(published().into_iter().flatten());
        readers
    }

    /// What it finds in each of the texts.
    fn read(&self, texts: &[String]) -> Vec<Value> {
        let Self { code, function, .. } = self;
        let (program, flag, main) = match self.language {
            Language::Python => (
                "python3",
                "-c",
                format!(
                    "import json, sys\nprint(json.dumps([{function}(text) for text in \
                     json.load(sys.stdin.buffer)]))"
                ),
            ),
            Language::JavaScript => (
                "node",
                "-e",
                format!(
                    "const texts = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n\
                     console.log(JSON.stringify(texts.map({function})));"
                ),
            ),
        };
        run(program, &[flag, &format!("{code}\n{main}\n")], texts)
    }
}

/// The readers that the description of the format prints, if there is a copy of it.
fn published() -> Option<[ShortReader; 2]> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    let mut files = fs::read_dir(seeds).ok()?.map(|entry| entry.unwrap().path());
    let file = files.find(|it| {
        it.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"000_"))
    })?;
    let text = fs::read_to_string(file).unwrap();
    let block = |fence: &str| {
        let (_, rest) = text.split_once(fence).unwrap();
        rest.split_once("\n```").unwrap().0.to_owned()
    };
    let python = ShortReader {
        name: "the published one in Python",
        language: Language::Python,
        code: block("```python\n"),
        function: "parse_markers",
        question: "question",
        files: "files_modified",
    };
    let javascript = ShortReader {
        name: "the published one in TypeScript",
        language: Language::JavaScript,
        code: without_types(&block("```typescript\n")),
        function: "parseMarkers",
        question: "question",
        files: "filesModified",
    };
    Some([python, javascript])
}

/// The published code without its types, which Node 20 does not read: the interface goes, and each
/// annotation that is left.
fn without_types(code: &str) -> String {
    let (interface, function) = code.split_once("\n}\n").unwrap();
    assert!(interface.starts_with("interface "));
    let mut code = function.to_owned();
    for (typed, plain) in
        [("output: string)", "output)"), (": ParsedMarkers ", " "), (": string[] =", " =")]
    {
        assert!(code.contains(typed), "{typed}");
        code = code.replace(typed, plain);
    }
    code
}

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

    /// Each value is read as a text of its own, because without its white space a line may open a
    /// code fence.
    fn by_them(value: &Value, reader: &ShortReader) -> Self {
        let mut found =
            Self { completed: value["completed"].as_bool().unwrap(), ..Self::default() };
        for text in strings(&value["progress"]) {
            found.take(&format!("[PROGRESS] {text}"));
        }
        for question in value["questions"].as_array().unwrap() {
            let mut lines =
                vec![format!("[QUESTION] {}", question[reader.question].as_str().unwrap())];
            lines.extend(strings(&question["options"]));
            found.take(&lines.join("\n"));
        }
        for blocked in value["blocked"].as_array().unwrap() {
            let mut lines = vec![format!("[BLOCKED] {}", blocked["reason"].as_str().unwrap())];
            lines.extend(strings(&blocked["context"]));
            found.take(&lines.join("\n"));
        }
        for file in strings(&value[reader.files]) {
            found.take(&format!("[FILES_MODIFIED]\n- {file}"));
        }
        found
    }

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

#[track_caller]
fn check(texts: &[String]) {
    for reader in ShortReader::all() {
        for (text, theirs) in texts.iter().zip(reader.read(texts)) {
            let mut ours = Found::by_us(text);
            if reader.language == Language::Python {
                ours = ours.with_three_options();
            }
            assert_eq!(Found::by_them(&theirs, &reader), ours, "{} reads\n{text}", reader.name);
        }
    }
}

#[test]
fn short_readers_read_the_examples_as_we_do() {
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
fn short_readers_read_what_we_write() {
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
fn short_readers_differ_from_the_format_where_we_know_it() {
    let texts = [
        "[QUESTION] a\n1. b\n4. c\n10. d\ncontext\n",
        "  [PROGRESS] not at the start of its line\n```\n[PROGRESS] code\n```\n",
        "[BLOCKED] a\n[b] is no marker\nc\n",
    ]
    .map(str::to_owned);
    let [question, progress, blocked] = texts.each_ref().map(|text| read(text));

    let Marker::Question(question) = &question[0] else { panic!("{question:?}") };
    assert_eq!((question.options.len(), question.context.len()), (3, 1));
    assert_eq!(progress, []);
    let Marker::Blocked { context, .. } = &blocked[0] else { panic!("{blocked:?}") };
    assert_eq!(context.len(), 2);
    for reader in ShortReader::all() {
        let theirs = reader.read(&texts);
        let n_options = if reader.language == Language::Python { 1 } else { 3 };
        assert_eq!(strings(&theirs[0]["questions"][0]["options"]).count(), n_options);
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
