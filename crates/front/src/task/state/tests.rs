use super::*;

#[test]
fn an_id_is_a_plain_word_of_at_most_64_characters() {
    let longest = "x".repeat(64);
    for id in ["a", "7", "fix-login", "A.b_c-9", longest.as_str()] {
        assert_eq!(id.parse::<TaskId>().unwrap().as_str(), id);
    }
    let too_long = "x".repeat(65);
    for id in ["", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", too_long.as_str()] {
        assert!(id.parse::<TaskId>().is_err(), "{id:?}");
    }
}

#[test]
fn budgets_are_read_with_their_units() {
    let mut budget = Budget::default();
    for text in ["20turns", "30min", "200000tokens"] {
        budget.set(text).unwrap();
    }
    let expected = Budget { turns: Some(20), seconds: Some(1800), tokens: Some(200_000) };
    assert_eq!(budget, expected);
    for text in ["", "20", "turns", "0turns", "-1s", "5 parsecs"] {
        assert!(budget.set(text).is_err(), "{text:?}");
    }
    let spent = State { budget, iterations: 20, ..State::new(String::new()) };
    assert_eq!(spent.overspent().unwrap(), "20 turns are used up");
}

#[test]
fn an_answer_names_its_question_or_means_the_oldest() {
    let answer = |question: Option<&str>, text: &str| Letter::Answer {
        question: question.map(str::to_owned),
        text: text.to_owned(),
    };
    assert_eq!(Letter::answer("q2=1"), answer(Some("q2"), "1"));
    assert_eq!(Letter::answer(" q12 = a=b "), answer(Some("q12"), "a=b"));
    assert_eq!(Letter::answer("x=1"), answer(None, "x=1"));
    assert_eq!(Letter::answer("quite=so"), answer(None, "quite=so"));
    assert_eq!(Letter::answer("2"), answer(None, "2"));
}

#[test]
fn what_is_remembered_is_read_again() {
    let mut state = State::new("do it".to_owned());
    let option = TaskOption { number: 1, label: "yes".to_owned(), description: None };
    state.ask("sure?".to_owned(), vec![option], vec!["why".to_owned()], None);
    state.claim(&markers::FileChange {
        path: "b".to_owned(),
        change: markers::Change::Renamed { from: "a".to_owned() },
    });
    let read = State::from_json(&state.to_json()).unwrap();
    assert_eq!(read, state);
    assert_eq!(read.claimed()[0].change, markers::Change::Renamed { from: "a".to_owned() });
    // One of an earlier version has fewer fields.
    let old = r#"{"description":"x","plan":null,"tries":3,"status":"question"}"#;
    assert_eq!(State::from_json(old).unwrap().status, Status::Question);
}
