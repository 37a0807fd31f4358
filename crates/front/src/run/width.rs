//! How many columns a text takes.

/// Columns of one character, near enough for cutting a line: wide for East Asian scripts and
/// pictures, none for what joins the character before.
fn columns(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// As much of a line as fits, with a sign when there is more.
pub(crate) fn fit(line: &str, most: usize) -> String {
    let mut taken = 0;
    let mut cut = None;
    for (at, c) in line.char_indices() {
        taken += columns(c);
        if taken > most {
            return format!("{}…", line.get(..cut.unwrap_or(0)).unwrap_or_default());
        }
        if taken < most {
            cut = Some(at + c.len_utf8());
        }
    }
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn a_line_is_cut_by_columns_not_by_bytes() {
        assert_eq!(fit("hello", 5), "hello");
        assert_eq!(fit("hello!", 5), "hell…");
        assert_eq!(fit("日本語", 6), "日本語");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("e\u{301}e\u{301}e", 2), "e\u{301}…");
        assert_eq!(fit("x", 0), "…");
    }
}
