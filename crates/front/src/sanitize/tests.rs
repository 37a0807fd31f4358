use proptest::prelude::*;

use super::{Sanitizer, is_forbidden, one_line, sanitize};

/// Every sequence as a terminal knows it: introducer, body, terminator.
fn sequences() -> Vec<String> {
    let mut all = Vec::new();
    for csi in ["\u{1b}[", "\u{9b}"] {
        for end in ('@'..='~').filter(|c| !c.is_ascii_digit()) {
            all.push(format!("{csi}1;2{end}"));
        }
        for body in ["", "?25", ">0", "=1;2", "38;2;1;2;3", "1 ", "!", "?1;2$", "\u{8}3", "6\u{7f}"]
        {
            all.push(format!("{csi}{body}p"));
        }
    }
    let bodies = [
        "0;title",
        "2;title",
        "8;;http://evil.example",
        "52;c;cm0gLXJmIC8=",
        "4;1;?",
        "10;?",
        "1337;File=name=eA==:AAAA",
        "777;notify;a;b",
        "q#0;2;0;0;0",
        "+q544e",
        "",
    ];
    let introducers = [
        "\u{1b}]", "\u{9d}", "\u{1b}P", "\u{90}", "\u{1b}X", "\u{98}", "\u{1b}^", "\u{9e}",
        "\u{1b}_", "\u{9f}", "\u{1b}k",
    ];
    for introducer in introducers {
        for body in bodies {
            all.push(format!("{introducer}{body}\u{1b}\\"));
            all.push(format!("{introducer}{body}\u{9c}"));
            all.push(format!("{introducer}{body}\u{18}"));
        }
    }
    for single in "cDEHMNOZ78=>lmno|}~".chars() {
        all.push(format!("\u{1b}{single}"));
    }
    for pair in ["(0", ")B", "*A", "#8", " F", "%G", "$(C", "$@"] {
        all.push(format!("\u{1b}{pair}"));
    }
    all.extend((0..=0x1fu8).filter(|b| !matches!(b, 9 | 10 | 27)).map(|b| (b as char).to_string()));
    all.extend(
        ('\u{7f}'..='\u{9f}')
            .filter(|c| !"\u{90}\u{98}\u{9b}\u{9d}\u{9e}\u{9f}".contains(*c))
            .map(String::from),
    );
    all.extend("\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}".chars().map(String::from));
    all
}

fn in_two(text: &str, at: usize) -> String {
    let (first, second) = text.split_at(at);
    let mut out = String::new();
    let mut sanitizer = Sanitizer::default();
    sanitizer.push(first, &mut out);
    sanitizer.push(second, &mut out);
    out
}

#[test]
fn every_sequence_goes_whole_wherever_it_is_cut() {
    let all = sequences();
    assert!(all.len() >= 250, "{} sequences", all.len());
    for sequence in all {
        let text = format!("before {sequence}after");
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(in_two(&text, at), "before after", "{sequence:?} cut at {at}");
        }
    }
}

#[test]
fn a_sequence_without_its_end_costs_no_more_than_its_line() {
    for open in ["\u{1b}]52;c;AAAA", "\u{9b}12;", "\u{1b}P1$q", "\u{1b}", "\u{9f}x", "\u{1b}("] {
        assert_eq!(sanitize(&format!("a {open}\nnext")), "a \nnext", "{open:?}");
        assert_eq!(sanitize(&format!("a {open}")), "a ", "{open:?} at the end");
    }
}

#[test]
fn ordinary_text_stays_as_it_is() {
    for text in ["plain\n\ttext", "Größe – “naïve” 日本語 👩‍👩‍👧 é", "a ‑ b … → ✓", "ØЖ؛٣"]
    {
        assert_eq!(sanitize(text), text);
    }
}

#[test]
fn a_line_is_one_line() {
    assert_eq!(one_line("  a\r\n\tb\u{1b}[2J \u{202e}c "), "a b c");
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[\u{1b}\u{7}\u{9b}\u{9d}\u{90}\u{9c}\\[\\]P_;?0-9mHJ\n\t\u{202e}\u{18}]{1,8}",
        "[ -~]{0,6}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_forbidden_comes_out(text in hostile()) {
        let out = sanitize(&text);
        prop_assert!(!out.chars().any(is_forbidden), "{out:?}");
    }

    #[test]
    fn pieces_make_the_same_text_as_the_whole(text in hostile()) {
        let whole = sanitize(&text);
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            prop_assert_eq!(&in_two(&text, at), &whole);
        }
    }
}
