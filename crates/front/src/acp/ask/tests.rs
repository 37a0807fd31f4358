use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tieline_event::{
    Answer, Approval, Choice, ChoiceKind, Question, QuestionOption, Request, RequestBody,
};
use tieline_wire::acp::schema::{ToolCallUpdate, ToolCallUpdateFields};

use super::{Asked, Next, Plan, plan};

fn call() -> ToolCallUpdate {
    ToolCallUpdate::new("c", ToolCallUpdateFields::new())
}

fn request(body: RequestBody) -> Request {
    let choice = |id: &str, kind| Choice { id: id.into(), label: id.to_uppercase(), kind };
    Request {
        id: "r1".into(),
        item: None,
        title: "May I?".into(),
        reason: Some("because".into()),
        body,
        options: vec![
            choice("yes", ChoiceKind::AllowOnce),
            choice("session", ChoiceKind::AllowSession),
            choice("no", ChoiceKind::Deny),
            choice("stop", ChoiceKind::DenyAndStop),
        ],
    }
}

fn approval() -> Request {
    request(RequestBody::Approval(Approval { tool: "t".into(), ..Approval::default() }))
}

fn questions() -> Request {
    let option =
        |label: &str| QuestionOption { label: label.into(), description: None, value: None };
    let question = |id: &str, multiple| Question {
        id: id.into(),
        header: None,
        text: format!("{id}?"),
        options: vec![option("a"), option("b")],
        multiple,
        free_text: true,
        secret: false,
    };
    request(RequestBody::Question {
        questions: vec![question("one", false), question("two", true)],
    })
}

#[track_caller]
fn asked(plan: Plan) -> (&'static str, Value, Box<Asked>) {
    match plan {
        Plan::Ask(method, params, asked) => (method, params, asked),
        Plan::Rule => panic!("the client is to be asked"),
    }
}

#[track_caller]
fn check(next: Next, expected: Expect) {
    let shown = match next {
        Next::Answer(answer) => serde_json::to_string(&answer).unwrap(),
        Next::Ask(method, params, _) => format!("{method} {params}"),
        Next::Rule => "rule".to_owned(),
    };
    expected.assert_eq(&shown);
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

#[test]
fn an_approval_has_the_agents_own_options() {
    let (method, params, asked) = asked(plan("s", &approval(), call(), true));
    assert_eq!(method, "session/request_permission");
    expect![[r#"{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[{"optionId":"yes","name":"YES","kind":"allow_once","_meta":{"tieline":{"kind":"allow_once"}}},{"optionId":"session","name":"SESSION","kind":"allow_always","_meta":{"tieline":{"kind":"allow_session"}}},{"optionId":"no","name":"NO","kind":"reject_once","_meta":{"tieline":{"kind":"deny"}}},{"optionId":"stop","name":"STOP","kind":"reject_once","_meta":{"tieline":{"kind":"deny_and_stop"}}}],"_meta":{"tieline":{"title":"May I?","reason":"because","tool":"t"}}}"#]]
    .assert_eq(&params.to_string());
    check(
        asked.answered("s", Ok(&selected("session"))),
        expect![[r#"{"answer":"choose","option":"session"}"#]],
    );
}

#[test]
fn what_a_client_may_answer_is_always_understood() {
    let ask = || asked(plan("s", &approval(), call(), true)).2;
    let stop = expect![[r#"{"answer":"deny","stop":true}"#]];
    check(ask().answered("s", Ok(&json!({"outcome": {"outcome": "cancelled"}}))), stop);
    check(
        ask().answered("s", Ok(&selected("never heard of"))),
        expect![[r#"{"answer":"deny","stop":false}"#]],
    );
    check(
        ask().answered("s", Ok(&json!({"outcome": 7}))),
        expect![[r#"{"answer":"deny","stop":false}"#]],
    );
    let error = serde_json::from_str(r#"{"code":-32601,"message":"no"}"#).unwrap();
    check(ask().answered("s", Err(&error)), expect!["rule"]);
    let error = serde_json::from_str(r#"{"code":-32800,"message":"cancelled"}"#).unwrap();
    check(ask().answered("s", Err(&error)), expect![[r#"{"answer":"deny","stop":true}"#]]);
}

#[test]
fn a_plan_is_carried_out_in_the_mode_that_is_chosen() {
    let plan = plan("s", &request(RequestBody::ExitPlan { plan: None }), call(), true);
    let (_, _, asked) = asked(plan);
    check(
        asked.answered("s", Ok(&selected("acceptEdits"))),
        expect![[r#"{"answer":"allow","scope":"once","mode":"acceptEdits"}"#]],
    );
}

#[test]
fn questions_are_one_form_where_there_are_forms() {
    let (method, params, asked) = asked(plan("s", &questions(), call(), true));
    assert_eq!(method, "elicitation/create");
    expect![[r#"{"type":"object","properties":{"question1":{"type":"string","oneOf":[{"const":"a","title":"a"},{"const":"b","title":"b"}],"title":"one?","description":"one?"},"question1_other":{"type":"string","title":"Other: one?"},"question2":{"type":"array","items":{"anyOf":[{"const":"a","title":"a"},{"const":"b","title":"b"}]},"title":"two?","description":"two?"},"question2_other":{"type":"string","title":"Other: two?"}}}"#]]
    .assert_eq(&params["requestedSchema"].to_string());
    let content = json!({"question1": "a", "question1_other": "mine", "question2": ["a", "b"]});
    check(
        asked.answered("s", Ok(&json!({"action": "accept", "content": content}))),
        expect![[r#"{"answer":"answers","answers":{"one":["mine"],"two":["a","b"]}}"#]],
    );
}

#[test]
fn questions_are_asked_one_by_one_where_there_are_none() {
    let (method, params, first) = asked(plan("s", &questions(), call(), false));
    assert_eq!(method, "session/request_permission");
    assert_eq!(params["toolCall"]["title"], "one?");
    let Next::Ask(_, params, second) = first.answered("s", Ok(&selected("1"))) else {
        panic!("there is a second question");
    };
    assert_eq!(params["toolCall"]["title"], "two?");
    check(
        second.answered("s", Ok(&selected("0"))),
        expect![[r#"{"answer":"answers","answers":{"one":["b"],"two":["a"]}}"#]],
    );
}

#[test]
fn a_question_without_options_needs_a_form_or_a_rule() {
    let mut open = questions();
    if let RequestBody::Question { questions } = &mut open.body {
        questions[0].options.clear();
    }
    assert!(matches!(plan("s", &open, call(), false), Plan::Rule));
    assert!(matches!(plan("s", &open, call(), true), Plan::Ask(..)));
}

#[test]
fn a_form_that_is_declined_is_a_no() {
    let ask = || asked(plan("s", &questions(), call(), true)).2;
    check(
        ask().answered("s", Ok(&json!({"action": "decline"}))),
        expect![[r#"{"answer":"deny","message":"The user did not answer.","stop":false}"#]],
    );
    let Next::Answer(Answer::Deny { stop, .. }) =
        ask().answered("s", Ok(&json!({"action": "cancel"})))
    else {
        panic!("a cancelled form is a no");
    };
    assert!(stop);
}
