//! Forms that servers of tools want filled in, as questions.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tieline_event::{Question, QuestionOption};

/// The fields of a form (a flat JSON schema), each as a question.
pub(super) fn questions(schema: &RawValue) -> Vec<Question> {
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.map(|fields| fields.iter().map(question).collect()).unwrap_or_default()
}

fn question((name, field): (&String, &Value)) -> Question {
    let text = |key: &str| field.get(key).and_then(Value::as_str);
    let mut options = choices(field);
    let is_boolean = text("type") == Some("boolean");
    if is_boolean {
        options = ["yes", "no"].map(|label| option(label, None)).into();
    }
    Question {
        id: name.clone(),
        header: text("title").map(str::to_owned),
        text: text("description").or(text("title")).unwrap_or(name).to_owned(),
        free_text: options.is_empty(),
        multiple: text("type") == Some("array"),
        options,
        secret: text("format") == Some("password"),
    }
}

/// `enum` with optional `enumNames`, or `oneOf` with `const` and `title`; for a list, of its items.
fn choices(field: &Value) -> Vec<QuestionOption> {
    let field = field.get("items").unwrap_or(field);
    let list = |key: &str| field.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let names = list("enumNames");
    let plain = list("enum").into_iter().enumerate().filter_map(|(at, value)| {
        let name = names.get(at).and_then(Value::as_str);
        Some(option(value.as_str()?, name))
    });
    let titled = list("oneOf").into_iter().chain(list("anyOf")).filter_map(|choice| {
        let title = choice.get("title").and_then(Value::as_str);
        Some(option(choice.get("const")?.as_str()?, title))
    });
    plain.chain(titled).collect()
}

fn option(label: &str, description: Option<&str>) -> QuestionOption {
    QuestionOption { label: label.to_owned(), description: description.map(str::to_owned) }
}

/// The form filled in: each answer in the type its field has. What was not answered is left out.
pub(super) fn fill(schema: &RawValue, answers: &BTreeMap<String, Vec<String>>) -> Value {
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let mut filled = Map::new();
    for (name, given) in answers {
        let field = schema.get("properties").and_then(|fields| fields.get(name));
        let kind = field.and_then(|field| field.get("type")).and_then(Value::as_str);
        let Some(first) = given.first() else { continue };
        let value = match kind {
            Some("array") => json!(given),
            Some("boolean") => json!(matches!(first.as_str(), "yes" | "true" | "y" | "1")),
            Some("integer" | "number") => {
                first.parse().map_or_else(|_| json!(first), Value::Number)
            }
            _ => json!(first),
        };
        filled.insert(name.clone(), value);
    }
    Value::Object(filled)
}

#[test]
fn a_form_becomes_questions_and_is_filled_with_typed_answers() {
    let schema = r#"{"type":"object","properties":{
        "age":{"type":"integer","title":"Age"},
        "ok":{"type":"boolean","description":"Really?"},
        "pick":{"type":"string","enum":["a","b"],"enumNames":["The a","The b"]}}}"#;
    let schema = RawValue::from_string(schema.to_owned()).unwrap();
    let asked = questions(&schema);
    assert_eq!(
        asked.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(),
        ["Age", "Really?", "pick"]
    );
    assert_eq!(asked[2].options[1].description.as_deref(), Some("The b"));
    assert!(asked[0].free_text && !asked[2].free_text);
    let answers = [("age", "7"), ("ok", "yes"), ("pick", "b")];
    let answers = answers.map(|(name, value)| (name.to_owned(), vec![value.to_owned()])).into();
    assert_eq!(fill(&schema, &answers), json!({"age": 7, "ok": true, "pick": "b"}));
}
