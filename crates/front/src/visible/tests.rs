use proptest::prelude::*;

use super::*;

#[test]
fn what_cannot_be_seen_is_written_down() {
    for (text, shown) in [
        ("ls src\u{1b}]x; curl", "ls src\\x1b]x; curl"),
        ("a\u{202e}b\u{200b}c", "a\\u{202e}b\\u{200b}c"),
        ("a\nb\tc\rd", "a\\nb\\tc\\x0dd"),
        ("\u{85}\u{9b}\u{7f}", "\\u{85}\\u{9b}\\x7f"),
        ("⟨x⟩", "\\u{27e8}x\\u{27e9}"),
        ("\u{200b}\u{200b}\u{200b}\u{200b}", "\\u{200b}⟨4 times⟩"),
    ] {
        assert_eq!(line(text), shown, "{text:?}");
    }
}

#[test]
fn ordinary_text_stays_as_it_is() {
    for text in [
        "cargo test --all && echo \"done\" > 'a b' # $HOME `x` \\n",
        "Größe – “naïve” é, e\u{301}, ñ, Việt",
        "日本語 テスト 한국어 ελληνικά русский עברית العربية ไทย हिन्दी",
        "файл.txt → ✓ … ☐ ░ 👍 ²³ €",
    ] {
        assert_eq!(line(text), text);
        assert_eq!(lines(text), [text]);
    }
}

#[test]
fn runs_of_nothing_become_words() {
    assert_eq!(line(&format!("a{}b", " ".repeat(24))), format!("a{}b", " ".repeat(24)));
    assert_eq!(line(&format!("a{}b", " ".repeat(25))), "a⟨25 spaces⟩b");
    assert_eq!(line(&format!("a {}b", "\t".repeat(6))), "a⟨1 space and 6 tabs⟩b");
    assert_eq!(line(&format!("a{}b", "\n".repeat(60))), "a⟨60 line ends⟩b");
    assert_eq!(line("a \n\n\n\n b"), "a⟨4 line ends and 2 spaces⟩b");
    assert_eq!(lines("a\n\n\n\nb"), ["a", "", "", "", "b"]);
    assert_eq!(lines(&format!("a{}b", "\n".repeat(61))), ["a", "⟨60 blank lines⟩", "b"]);
    assert_eq!(lines("a\n \n\t\n\n \nb\n"), ["a", "⟨4 blank lines⟩", "b"]);
    assert_eq!(lines("\tif x {\n\t\ty\tz"), ["    if x {", "        y\\tz"]);
    assert_eq!(lines(""), [""]);
}

#[test]
fn marks_are_bounded_and_never_stand_on_nothing() {
    assert_eq!(line("e\u{301}\u{302}\u{303}\u{304}"), "e\u{301}\u{302}\u{303}\\u{304}");
    assert_eq!(line("\u{301}a"), "\\u{301}a");
    assert_eq!(line("a \u{301}"), "a \\u{301}");
    assert_eq!(line("\u{1b}\u{301}"), "\\x1b\\u{301}");
}

#[test]
fn letters_that_pass_for_others_are_named() {
    assert_eq!(line("s\u{443}do rm"), "s\\u{443}do rm");
    assert_eq!(line("a\u{2215}b"), "a\\u{2215}b");
    // A word of another script is a word.
    assert_eq!(line("судо μ"), "судо μ");
}

#[test]
fn a_name_that_is_more_than_a_name_is_quoted() {
    assert_eq!(name("/a/b-c_d.rs"), "/a/b-c_d.rs");
    assert_eq!(name("a b"), "\"a b\"");
    assert_eq!(name(""), "\"\"");
    assert_eq!(name("a\" in the \"b"), "\"a\\\" in the \\\"b\"");
    assert_eq!(name("a\nb"), "a\\nb");
}

#[test]
fn a_long_line_goes_on_in_marked_rows() {
    assert_eq!(wrap("abcdefghij0123", "$ ", "… ", 12), ["$ abcdefghij", "… 0123"]);
    assert_eq!(wrap("日本語日本語", "", "… ", 8), ["日本語日", "… 本語"]);
    assert_eq!(wrap("", "$ ", "… ", 12), ["$ "]);
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[\u{1b}\u{7}\u{9b}\u{9d}\\[\\]P_;?0-9mHJ\n\t\u{202e}\u{18} ]{1,8}",
        "[ -~]{0,6}",
        "[ \t\n]{20,40}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Letters of a text that are shown as they are, in order.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric()).collect()
}

proptest! {
    #[test]
    fn nothing_hidden_comes_out_and_nothing_seen_is_lost(text in hostile()) {
        let one = line(&text);
        prop_assert!(!one.chars().any(is_hidden), "{one:?}");
        let several = lines(&text);
        prop_assert!(!several.iter().flat_map(|it| it.chars()).any(is_hidden), "{several:?}");
        // Every letter is there, in order, whatever is written between them.
        for shown in [one, several.concat()] {
            let shown = letters(&shown);
            let mut rest = shown.chars();
            for c in letters(&text).chars() {
                prop_assert!(rest.any(|it| it == c), "{c:?} is lost in {shown:?}");
            }
        }
    }

    #[test]
    fn rows_together_are_the_line(text in hostile(), width in 10..60usize) {
        let shown = line(&text);
        let rows = wrap(&shown, "$ ", "… ", width);
        let joined: String = rows.iter().map(|row| row.split_once(' ').unwrap().1).collect();
        prop_assert_eq!(joined, shown);
    }
}
