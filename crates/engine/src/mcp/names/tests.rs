use super::*;
use proptest::prelude::*;

#[test]
fn servers_have_plain_names_and_none_twice() {
    let names = of_servers(["a b", "a.b", "a_b", "", "ok-1"]);
    assert_eq!(names, ["a_b", "a_b_2", "a_b_3", "server", "ok-1"]);
}

#[test]
fn a_plain_tool_keeps_its_name() {
    assert_eq!(of_tools(&[("docs", "search")]), ["mcp__docs__search"]);
    assert_eq!(of_tools(&[("docs", "find/all ü")]), ["mcp__docs__find_all__"]);
}

#[test]
fn tools_that_would_share_a_name_have_a_hash() {
    let names = of_tools(&[("a", "b.c"), ("a", "b_c"), ("a__b", "c"), ("a", "b__c"), ("a", "d")]);
    assert_eq!(names[4], "mcp__a__d");
    assert!(names[0].starts_with("mcp__a__b_c_") && names[0].len() == "mcp__a__b_c_".len() + 8);
    let unique: HashSet<&String> = names.iter().collect();
    assert_eq!(unique.len(), names.len(), "{names:?}");
    // What a tool is called does not hang on who else is there.
    assert_eq!(of_tools(&[("a", "b_c"), ("a", "b.c")])[1], names[0]);
}

#[test]
fn a_long_name_is_cut_and_still_its_own() {
    let (one, two) = (format!("{}1", "x".repeat(80)), format!("{}2", "x".repeat(80)));
    let names = of_tools(&[("docs", &one), ("docs", &two)]);
    assert_ne!(names[0], names[1]);
    assert!(names.iter().all(|name| name.len() == LONGEST), "{names:?}");
}

proptest! {
    #[test]
    fn every_name_is_one_that_providers_take(tools in prop::collection::vec((".{0,70}", ".{0,70}"), 0..6)) {
        let tools: Vec<(&str, &str)> = tools.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        for name in of_tools(&tools) {
            prop_assert!((1..=LONGEST).contains(&name.len()), "{}", name);
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
        }
    }
}
