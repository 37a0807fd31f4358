use serde::{Deserialize, Serialize};

use super::{Unknown, tagged};
use crate::raw::Raw;
use crate::text::Str;

tagged! {
    /// A shape.
    enum Shape<'a> by "type" or "kind" {
        /// One with fields.
        Circle(Circle<'a>) = "circle" | "disc",
        /// One without.
        Point = "point",
    } else {
        /// Any other.
        Unknown(Unknown<'a>),
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Circle<'a> {
    name: Str<'a>,
    radius: Raw<'a>,
}

fn read(line: &str) -> Shape<'_> {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn the_tag_may_stand_anywhere_and_nothing_is_copied() {
    for line in [
        r#"{"type":"circle","name":"a","radius":1e2}"#,
        r#"{"name":"a","type":"circle","radius":1e2}"#,
        r#"{"name":"a","radius":1e2,"kind":"disc"}"#,
        r#"{"kind":"point","name":"a","radius":1e2,"type":"circle","more":[1]}"#,
    ] {
        let Shape::Circle(circle) = read(line) else { panic!("{line}") };
        assert!(matches!(circle.name, Str::Borrowed("a")), "{line}");
        assert!(matches!(circle.radius, Raw::Borrowed(raw) if raw.get() == "1e2"), "{line}");
    }
}

#[test]
fn a_kind_without_fields_is_written_with_its_tag_alone() {
    assert!(matches!(read(r#"{"more":[{}],"type":"point"}"#), Shape::Point));
    assert_eq!(serde_json::to_string(&Shape::Point).unwrap(), r#"{"type":"point"}"#);
    assert_eq!(serde_json::to_string(&read(r#"{"type":"disc"}"#)).unwrap(), {
        r#"{"type":"circle","name":"","radius":null}"#
    });
}

#[test]
fn an_unknown_kind_keeps_its_values_as_they_were_written() {
    for line in [
        r#"{"type":"cube","a":1e2,"b":{"z":1,"a":2},"a":18446744073709551616}"#,
        r#"{"a":1e2,"b":{"z":1,"a":2},"a":18446744073709551616,"type":"cube"}"#,
    ] {
        let shape = read(line);
        assert_eq!(shape.kind(), "cube");
        assert_eq!(
            serde_json::to_string(&shape).unwrap(),
            r#"{"type":"cube","a":1e2,"b":{"z":1,"a":2},"a":18446744073709551616}"#
        );
    }
}

#[test]
fn what_has_no_kind_is_an_error() {
    for line in ["{}", "[]", "7", r#"{"type":7}"#, r#"{"name":"a"}"#, r#"{"a":1,"type":null}"#] {
        assert!(serde_json::from_str::<Shape<'_>>(line).is_err(), "{line}");
    }
}
