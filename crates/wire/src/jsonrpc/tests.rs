use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{Calls, Id, classify};

#[track_caller]
fn check(line: &str, expected: Expect) {
    expected.assert_eq(&format!("{:?}", classify(line.as_bytes())));
}

#[test]
fn the_five_sorts_are_told_apart() {
    check(
        r#"{"id":0,"result":{"a":1}}"#,
        expect!["Response { id: Number(0), result: RawValue({\"a\":1}) }"],
    );
    check(
        r#"{"id":"x","result":null}"#,
        expect![[r#"Response { id: Text("x"), result: RawValue(null) }"#]],
    );
    check(
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32001,"message":"busy"}}"#,
        expect![[
            r#"Error { id: Some(Number(3)), error: ErrorObject { code: -32001, message: "busy", data: None } }"#
        ]],
    );
    check(
        r#"{"id":null,"error":{"code":-32700}}"#,
        expect![[
            r#"Error { id: None, error: ErrorObject { code: -32700, message: "", data: None } }"#
        ]],
    );
    check(
        r#"{"params":{},"emittedAtMs":7,"method":"turn/started"}"#,
        expect![[r#"Notification { method: "turn/started", params: Some(RawValue({})) }"#]],
    );
    check(
        r#"{"method":"item/fileChange/requestApproval","id":0,"params":{}}"#,
        expect![[
            r#"Request { id: Number(0), method: "item/fileChange/requestApproval", params: Some(RawValue({})) }"#
        ]],
    );
    check("[1]", expect!["Response { id: Number(1), result: RawValue(null) }"]);
    check("{}", expect![[r#"Garbage { reason: "neither method, result nor error" }"#]]);
    check("nonsense", expect![[r#"Garbage { reason: "expected ident at line 1 column 2" }"#]]);
}

#[test]
fn an_id_goes_back_as_it_came() {
    for id in ["7", "\"a\\\"b\"", "-1"] {
        let parsed: Id = serde_json::from_str(id).unwrap();
        assert_eq!(parsed.to_string(), id);
    }
}

proptest! {
    /// Each call gets one answer, a late one is given to nobody, in any interleaving.
    #[test]
    fn any_interleaving_answers_each_call_once(steps in proptest::collection::vec((0..2_u8, 0..8_i64), 0..400)) {
        let mut calls = Calls::default();
        let mut asked = 0;
        let mut answered = 0;
        for (what, n) in steps {
            match what {
                0 => { calls.open(()); asked += 1; }
                _ => answered += usize::from(calls.close(&Id::Number(n)).is_some()),
            }
        }
        prop_assert_eq!(asked, answered + calls.len());
    }
}
