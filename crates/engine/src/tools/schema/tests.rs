use serde_json::Value;

use super::*;
use crate::tools::arguments;

fn json(tool: &Tool) -> Value {
    serde_json::to_value(tool).unwrap()
}

fn all() -> Vec<Tool> {
    vec![
        exec_command(Escalation::Offered),
        exec_command(Escalation::No),
        write_stdin(),
        shell(Escalation::Offered),
        apply_patch_function(),
        update_plan(),
        request_user_input(),
        view_image(),
        read_file(),
        list_dir(),
        grep_files(),
    ]
}

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
    for tool in all() {
        let tool = json(&tool);
        assert_eq!(tool["type"], "function");
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()));
        check_object(&tool["parameters"]);
    }
}

#[test]
fn leaving_the_sandbox_is_offered_where_it_helps() {
    let has = |tool| json(&tool)["parameters"]["properties"]["sandbox_permissions"].is_object();
    assert!(has(exec_command(Escalation::Offered)) && has(shell(Escalation::Offered)));
    assert!(!has(exec_command(Escalation::No)) && !has(shell(Escalation::No)));
}

/// A call with a value for every field that the schema has.
fn call(schema: &Value) -> Value {
    match schema["type"].as_str().unwrap() {
        "object" => schema["properties"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, schema)| (name.clone(), call(schema)))
            .collect(),
        "array" => Value::Array(vec![call(&schema["items"])]),
        "string" => match schema["enum"].as_array() {
            Some(words) => words[0].clone(),
            None => Value::from("x"),
        },
        "number" => Value::from(1),
        "boolean" => Value::from(true),
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_described_is_what_is_read() {
    fn read<T: for<'a> serde::Deserialize<'a>>(tool: &Tool) {
        let call = call(&json(tool)["parameters"]).to_string();
        arguments::read::<T>(&call).map(drop).unwrap();
        // And nothing but what is required is required.
        let required = json(tool)["parameters"]["required"].clone();
        let mut least: Value = serde_json::from_str(&call).unwrap();
        let names: Vec<String> = least.as_object().unwrap().keys().cloned().collect();
        for name in names {
            if !required.as_array().unwrap().contains(&Value::from(name.as_str())) {
                least.as_object_mut().unwrap().remove(&name);
            }
        }
        arguments::read::<T>(&least.to_string()).map(drop).unwrap();
    }
    read::<arguments::ExecCommand>(&exec_command(Escalation::Offered));
    read::<arguments::WriteStdin>(&write_stdin());
    read::<arguments::Shell>(&shell(Escalation::Offered));
    read::<arguments::ApplyPatch>(&apply_patch_function());
    read::<arguments::UpdatePlan>(&update_plan());
    read::<arguments::RequestUserInput>(&request_user_input());
    read::<arguments::ViewImage>(&view_image());
    read::<arguments::ReadFile>(&read_file());
    read::<arguments::ListDir>(&list_dir());
    read::<arguments::GrepFiles>(&grep_files());
}

#[test]
fn the_other_sorts_of_tools() {
    let patch = json(&apply_patch());
    assert_eq!(patch["type"], "custom");
    assert_eq!(patch["format"]["type"], "grammar");
    assert_eq!(patch["format"]["syntax"], "lark");
    assert!(patch["format"]["definition"].as_str().unwrap().starts_with("start:"));
    assert_eq!(
        json(&web_search(false)),
        json!({"type": "web_search", "external_web_access": false})
    );
}

#[test]
fn a_servers_schema_is_passed_on() {
    let schema = |text: &str| json(&server_tool("n", None, text))["parameters"].clone();
    let full = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
    assert_eq!(schema(full), serde_json::from_str::<Value>(full).unwrap());
    for odd in ["", "null", "[]", "{}", r#"{"type":"object"}"#, r#"{"properties":null}"#] {
        assert_eq!(schema(odd), json!({"type": "object", "properties": {}}), "{odd}");
    }
}
