use super::*;

fn usage(input: u64, cached: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        cached_input_tokens: cached,
        output_tokens: output,
        ..Usage::default()
    }
}

/// Total and last.
fn totals(count: &TokenCount<'_>) -> (u64, u64) {
    let info = count.info.as_ref().unwrap();
    (info.total_token_usage.total_tokens, info.last_token_usage.total_tokens)
}

#[test]
fn a_count_of_the_session_grows_and_its_last_part_is_the_answers() {
    let mut count = Count::default();
    let first = count.told(&usage(600, 400, 50));
    assert_eq!(totals(&first), (1050, 1050));
    assert_eq!(first.info.unwrap().total_token_usage.input_tokens, 1000);
    assert_eq!(totals(&count.told(&usage(1210, 800, 101))), (2111, 1061));
    assert!(count.turn_ends(&usage(1, 1, 1)).is_none(), "it was told");
}

#[test]
fn a_count_that_begins_anew_is_added() {
    let mut count = Count::default();
    count.told(&usage(100, 0, 10));
    count.turn_begins();
    assert_eq!(totals(&count.told(&usage(50, 0, 5))), (165, 55));
}

#[test]
fn a_turn_that_counts_at_its_end_is_added() {
    let mut count = Count::default();
    for n in 1..=3 {
        count.turn_begins();
        let told = count.turn_ends(&usage(10, 0, 1)).unwrap();
        assert_eq!(totals(&told), (11 * n, 11));
    }
}

#[test]
fn limits_alone_have_no_count() {
    let limit =
        RateLimit { status: "allowed".into(), limit: None, used: Some(0.25), resets_at: Some(7) };
    let told = Count::default().limited(&limit);
    assert!(told.info.is_none());
    let window = told.rate_limits.unwrap().primary.unwrap();
    assert_eq!((window.used_percent as u64, window.resets_at), (25, Some(7)));
}
