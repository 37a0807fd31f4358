use std::time::Duration;

use super::{Backoff, asked_in_message, dice, duration};
use crate::model::{KeyTrouble, ModelError, Unreachable, Wait, Words};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn limited(after: Option<Duration>) -> ModelError {
    ModelError::RateLimited { words: Words::default(), retry_after: after }
}

#[test]
fn pauses_double_and_are_a_little_off() {
    let backoff = Backoff::new(5, ms(200));
    let rounded = |n, luck| backoff.delay(n, luck).as_micros().div_ceil(1000);
    assert_eq!([0, 1, 2, 3].map(|n| rounded(n, 0.5)), [200, 400, 800, 1600]);
    assert_eq!((rounded(0, 0.0), rounded(0, 1.0)), (180, 220));
    assert_eq!(backoff.delay(99, 0.5), Duration::from_secs(60));
    for _ in 0..1000 {
        assert!((0.0..1.0).contains(&dice()));
    }
}

#[test]
fn tries_are_counted_and_announced() {
    let mut backoff = Backoff::new(2, ms(200));
    let lost = ModelError::Lost("x".to_owned());
    let first = backoff.next(&lost).unwrap();
    assert_eq!(first.announcement(), "Reconnecting... 1/2");
    assert!((ms(180)..=ms(220)).contains(&first.delay));
    let second = backoff.next(&lost).unwrap();
    assert_eq!(second.attempt, 2);
    assert!((ms(360)..=ms(440)).contains(&second.delay));
    assert_eq!(backoff.next(&lost), None);
}

#[test]
fn what_the_server_asks_for_wins_unless_it_is_too_long() {
    let mut backoff = Backoff::new(5, ms(200));
    let wait = backoff.next(&limited(Some(ms(28)))).unwrap();
    assert_eq!(wait, Wait { attempt: 1, limit: 5, delay: ms(28) });
    assert_eq!(backoff.next(&limited(Some(Duration::from_secs(3600)))), None);
}

#[test]
fn what_does_not_heal_is_not_tried_again() {
    let mut backoff = Backoff::new(5, ms(200));
    let unset = KeyTrouble::Unset { name: "X".to_owned() };
    let tls = ModelError::Connect { why: Unreachable::Tls, detail: String::new() };
    for error in [
        ModelError::NoKey(unset),
        ModelError::Unauthorized(Words::default()),
        ModelError::BadRequest(Words::default()),
        ModelError::UsageLimit { words: Words::default(), resets_in: Some(ms(1)) },
        ModelError::Incomplete { reason: "max_output_tokens".to_owned(), usage: None },
        tls,
    ] {
        assert_eq!(backoff.next(&error), None, "{error}");
    }
    assert_eq!(backoff.used, 0);
}

#[test]
fn a_pause_is_found_in_words() {
    let found = |message: &str| asked_in_message(message);
    assert_eq!(found("Rate limit reached. Please try again in 1.3s. Visit x"), Some(ms(1300)));
    assert_eq!(found("please Try again in 28ms."), Some(ms(28)));
    assert_eq!(found("try again in 35 seconds."), Some(ms(35_000)));
    assert_eq!(found("try again in 6m0s"), Some(ms(360_000)));
    assert_eq!(found("try again in a while"), None);
    assert_eq!(found("try again later"), None);
    assert_eq!(found("try again in 5 apples"), None);
    assert_eq!(found("try again in 99999999999999999999999999999999 days"), None);
    assert_eq!(duration("1h2m3.5s"), Some(ms(3_723_500)));
    assert_eq!(duration("..5s"), None);
    assert_eq!(duration(""), None);
}
