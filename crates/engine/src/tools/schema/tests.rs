use serde_json::Value;

use super::*;

fn json(tool: &Tool) -> Value {
    serde_json::to_value(tool).unwrap()
}

const OFFER: Offer = Offer {
    freeform_patch: false,
    web_search: false,
    images: true,
    plan: false,
    escalation: Escalation::Offered,
};

/// Every object of a schema says what it takes, and what it requires is there.
fn check_object(schema: &Value) {
    if schema["type"] == "object" {
        let properties = schema["properties"].as_object().unwrap();
        for name in schema["required"].as_array().unwrap() {
            assert!(properties.contains_key(name.as_str().unwrap()), "{schema}");
        }
        assert_eq!(schema["additionalProperties"], false);
        properties.values().for_each(check_object);
    }
    if schema["type"] == "array" {
        check_object(&schema["items"]);
    }
}

#[test]
fn every_function_is_whole() {
    for tool in tools(&OFFER) {
        let tool = json(&tool);
        assert_eq!(tool["type"], "function");
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()));
        check_object(&tool["parameters"]);
    }
}

#[test]
fn what_is_offered_depends_on_the_turn() {
    let names = |offer: &Offer| -> Vec<String> {
        let name = |tool: &Tool| match json(tool)["name"].as_str() {
            Some(name) => name.to_owned(),
            None => json(tool)["type"].as_str().unwrap().to_owned(),
        };
        tools(offer).iter().map(name).collect()
    };
    let has = |offer: &Offer, name: &str| names(offer).iter().any(|it| it == name);
    assert!(has(&OFFER, "apply_patch") && has(&OFFER, "view_image") && !has(&OFFER, "web_search"));
    let planning = Offer { plan: true, ..OFFER };
    assert!(!has(&planning, "apply_patch") && !has(&planning, "update_plan"));
    assert!(has(&Offer { web_search: true, ..OFFER }, "web_search"));
    assert!(!has(&Offer { images: false, ..OFFER }, "view_image"));
    let freeform = tools(&Offer { freeform_patch: true, ..OFFER });
    let patch = freeform.iter().map(json).find(|tool| tool["name"] == "apply_patch").unwrap();
    assert_eq!(patch["type"], "custom");
    assert!(patch["format"]["definition"].as_str().unwrap().contains("*** Begin Patch"));
}

#[test]
fn leaving_the_sandbox_is_offered_where_it_helps() {
    let has = |escalation| {
        let tool = json(&exec_command(escalation));
        tool["parameters"]["properties"]["sandbox_permissions"].is_object()
    };
    assert!(has(Escalation::Offered) && !has(Escalation::No));
}
