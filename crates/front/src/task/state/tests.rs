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
        hash: None,
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
    state.ask(OpenQuestion {
        text: "sure?".to_owned(),
        options: vec![option],
        context: vec!["why".to_owned()],
        ..OpenQuestion::default()
    });
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

fn open(hash: &str, leave: bool, waits: bool) -> OpenQuestion {
    let option = |number: u32, label: &str| TaskOption {
        number,
        label: label.to_owned(),
        description: None,
    };
    let waits =
        waits.then(|| Waits { request: RequestId::new("r"), question: None, options: Vec::new() });
    OpenQuestion {
        text: "Run rm -rf build".to_owned(),
        options: vec![option(1, "Yes"), option(2, "No")],
        waits,
        hash: hash.to_owned(),
        leave,
        ..OpenQuestion::default()
    }
}

#[test]
fn a_kept_answer_is_for_the_very_same_request_alone() {
    let mut state = State::new("do it".to_owned());
    state.ask(open("a", true, true));
    let asked = state.questions.remove(0);
    state.leave(asked, "Yes".to_owned());
    // It looks the same and is another request.
    state.ask(open("b", true, true));
    assert_eq!(state.take_kept(), None);
    state.ask(open("a", true, true));
    assert_eq!(state.take_kept(), Some(("q3".to_owned(), "1".to_owned())));
    assert_eq!(state.take_kept(), None, "it is given once");
}

#[test]
fn what_was_kept_without_a_hash_answers_nothing() {
    let old = r#"{"description":"x","plan":null,"tries":3,"status":"question",
        "kept":[["Run rm -rf build\n$ rm -rf build","Yes"]],
        "questions":[{"id":"q1","text":"Run rm -rf build","options":[],"context":[],"waits":null,
        "native":true}]}"#;
    let mut state = State::from_json(old).unwrap();
    let asked = state.questions.remove(0);
    state.leave(asked, "Yes".to_owned());
    state.ask(open("", true, true));
    assert_eq!(state.take_kept(), None);
}

#[test]
fn an_answer_is_bound_to_what_was_asked_when_it_was_given() {
    let mut state = State::new("do it".to_owned());
    state.ask(open("a", true, true));
    state.ask(open("b", false, false));
    // Which of two a yes is for is not guessed where one of them is about leave.
    let unclear = vec![Letter::answer("1")];
    assert_eq!(bound(unclear.clone(), &state.questions), (Vec::new(), unclear));
    let texts = ["q2=x", "1", "2"].map(Letter::answer).to_vec();
    let (given, left) = bound(texts, &state.questions);
    let hashes: Vec<_> = given
        .iter()
        .map(|it| match it {
            Letter::Answer { question, hash, .. } => (question.as_deref(), hash.as_deref()),
            Letter::Cancel { .. } => (None, None),
        })
        .collect();
    assert_eq!(hashes, [(Some("q2"), Some("b")), (Some("q1"), Some("a"))]);
    assert_eq!(left, [Letter::answer("2")]);
    // Another request by the same name does not take it.
    assert!(open("a", true, true).takes(Some("a")));
    assert!(!open("c", true, true).takes(Some("a")));
    // What is said before anything is asked answers questions and gives no leave.
    assert!(!open("c", true, true).takes(None));
    assert!(open("c", false, true).takes(None));
}

#[test]
fn a_label_that_two_options_have_names_none() {
    let mut question = open("a", true, true);
    question.options[1].label = "yes".to_owned();
    assert_eq!(question.chosen("Yes"), None);
    assert_eq!(question.chosen("2").map(|it| it.number), Some(2));
}
