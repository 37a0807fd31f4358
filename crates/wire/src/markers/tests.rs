use proptest::prelude::*;

use super::*;

mod examples;
mod rules;
mod trips;

/// What came out, in a form that can be kept.
#[derive(Debug, Clone, PartialEq)]
enum Seen {
    Text(String),
    Marker(Marker),
}

fn see(piece: Piece<'_>) -> Seen {
    match piece {
        Piece::Text(text) => Seen::Text(text.to_owned()),
        Piece::Marker(marker) => Seen::Marker(marker),
    }
}

fn read_chunks<'a>(reading: Reading, chunks: impl IntoIterator<Item = &'a str>) -> Vec<Seen> {
    let mut reader = Reader::new(reading);
    let mut seen = Vec::new();
    for chunk in chunks {
        reader.feed(chunk, |piece| seen.push(see(piece)));
    }
    reader.finish(|piece| seen.push(see(piece)));
    seen
}

fn read(reading: Reading, text: &str) -> Vec<Seen> {
    read_chunks(reading, [text])
}

fn text(text: &str) -> Seen {
    Seen::Text(text.to_owned())
}

fn progress(text: &str) -> Seen {
    Seen::Marker(Marker::Progress(text.to_owned()))
}

fn complete(text: &str) -> Seen {
    Seen::Marker(Marker::Complete { text: text.to_owned() })
}

fn other(name: &str, content: &[&str]) -> Seen {
    Seen::Marker(Marker::Other { name: name.to_owned(), content: strings(content) })
}

fn blocked(reason: &str, context: &[&str]) -> Seen {
    Seen::Marker(Marker::Blocked { reason: reason.to_owned(), context: strings(context) })
}

fn question(text: &str, options: &[(u32, &str, Option<&str>)], context: &[&str]) -> Seen {
    let choice = |&(number, label, description): &(u32, &str, Option<&str>)| Choice {
        number,
        label: label.to_owned(),
        description: description.map(str::to_owned),
    };
    Seen::Marker(Marker::Question(Question {
        text: text.to_owned(),
        options: options.iter().map(choice).collect(),
        context: strings(context),
    }))
}

fn files(files: &[(&str, Change)]) -> Seen {
    let file = |(path, change): &(&str, Change)| FileChange {
        path: (*path).to_owned(),
        change: change.clone(),
    };
    Seen::Marker(Marker::FilesModified(files.iter().map(file).collect()))
}

fn strings(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

fn renamed(from: &str) -> Change {
    Change::Renamed { from: from.to_owned() }
}

/// Checks both ways of reading.
#[track_caller]
fn check(input: &str, expected: &[Seen]) {
    assert_eq!(read(Reading::Spec, input), expected, "{input:?} by the rules");
    assert_eq!(read(Reading::Lenient, input), expected, "{input:?} leniently");
}

/// Parts of texts in which most of the rules meet.
const PARTS: &[&str] = &[
    "[",
    "]",
    "\\",
    "\n",
    "\n\n",
    "\r\n",
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
    "````",
    "`",
    "\"",
    "'",
    "(",
    ")",
    ">",
    "[PROGRESS]",
    "[PROGRESS] ",
    "[QUESTION]",
    "[QUESTION] ",
    "[BLOCKED] ",
    "[FILES_MODIFIED]",
    "[CODEX_COMPLETE] ",
    "[TEST_RESULTS]",
    "[NOTE] ",
    "[X]",
    "[lower]",
    "PROGRESS",
    "QUESTION",
    " (created)",
    " (renamed from ",
    "a",
    "word ",
    "é",
    "🦀",
    "\u{feff}",
    "\u{85}",
    "\u{1f}",
    "\u{a0}",
    "\u{2028}",
];

fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        9 => prop::sample::select(PARTS).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

fn any_lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any_text(), 0..4)
}

fn any_choice() -> impl Strategy<Value = Choice> {
    let number = prop_oneof![1..20_u32, any::<u32>()];
    (number, any_text(), prop::option::of(any_text()))
        .prop_map(|(number, label, description)| Choice { number, label, description })
}

fn any_file() -> impl Strategy<Value = FileChange> {
    let change = prop_oneof![
        Just(Change::Created),
        Just(Change::Modified),
        Just(Change::Deleted),
        any_text().prop_map(|from| Change::Renamed { from }),
        Just(Change::Unknown),
    ];
    (any_text(), change).prop_map(|(path, change)| FileChange { path, change })
}

fn any_marker() -> impl Strategy<Value = Marker> {
    let names = prop::sample::select(&["NOTE", "TEST_RESULTS", "GIT_COMMIT_SUGGESTION"][..]);
    let odd = prop::sample::select(&["X", "", "é", "need context", "9", "_A", "PROGRESS"][..]);
    let known = prop::sample::select(&["QUESTION", "BLOCKED", "FILES_MODIFIED"][..]);
    let name = prop_oneof![3 => names, 1 => odd, 1 => known];
    let choices = prop::collection::vec(any_choice(), 0..4);
    prop_oneof![
        any_text().prop_map(Marker::Progress),
        any_text().prop_map(|text| Marker::Complete { text }),
        (any_text(), choices, any_lines()).prop_map(|(text, options, context)| {
            Marker::Question(Question { text, options, context })
        }),
        (any_text(), any_lines()).prop_map(|(reason, context)| Marker::Blocked { reason, context }),
        prop::collection::vec(any_file(), 0..4).prop_map(Marker::FilesModified),
        (name, any_lines())
            .prop_map(|(name, content)| Marker::Other { name: name.to_owned(), content }),
    ]
}
