use proptest::prelude::*;

use super::*;

fn tool(server: &str, tool: &str) -> ServerToolName {
    ServerToolName { server: server.to_owned(), tool: tool.to_owned() }
}

fn name_of(server: &str, name: &str) -> String {
    names([tool(server, name)]).into_keys().next().unwrap()
}

#[test]
fn a_plain_name_stays_plain() {
    assert_eq!(name_of("git-hub", "search_code"), "mcp__git-hub__search_code");
    assert_eq!(name_of("a", "b__c"), "mcp__a__b__c");
    assert_eq!(name_of("a", "_b"), "mcp__a___b");
}

#[test]
fn what_a_provider_does_not_take_is_replaced() {
    for (server, name, head) in [
        ("my server", "x", "mcp__my_server__x_"),
        ("a.b", "c/d", "mcp__a_b__c_d_"),
        ("größe", "x", "mcp__gr__e__x_"),
        ("a__b", "c", "mcp__a__b__c_"),
        ("a_", "b", "mcp__a___b_"),
        ("", "b", "mcp____b_"),
        ("s", &"t".repeat(100), "mcp__s__ttt"),
    ] {
        let found = name_of(server, name);
        assert!(found.starts_with(head) && found.len() <= LONGEST, "{found}");
    }
    // It is a promise to a model's history: the number does not change.
    assert_eq!(name_of("a.b", "c"), "mcp__a_b__c_aeb38003bf7a");
}

#[test]
fn a_tool_is_called_the_same_in_any_company() {
    let alone = name_of("a.b", "c");
    let company = names([tool("a_b", "c"), tool("a b", "c"), tool("a.b", "c"), tool("a.b", "c")]);
    assert_eq!(company.len(), 3);
    assert_eq!(company[&alone], tool("a.b", "c"));
    assert_eq!(company["mcp__a_b__c"], tool("a_b", "c"));
}

proptest! {
    #[test]
    fn every_tool_has_a_name_of_its_own(
        pairs in proptest::collection::btree_set(("[a_.é]{0,4}", "[a_.é]{0,70}"), 0..40),
    ) {
        let found = names(pairs.iter().map(|(server, name)| tool(server, name)));
        prop_assert_eq!(found.len(), pairs.len());
        for name in found.keys() {
            prop_assert!(name.len() <= LONGEST && name.chars().all(is_allowed), "{}", name);
        }
    }
}
