//! Forms that servers of tools want filled in, as questions.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tieline_event::{Question, QuestionOption};

/// The fields of a form (a flat JSON schema), each as a question.
pub(crate) fn questions(schema: &RawValue) -> Vec<Question> {
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut questions: Vec<Question> = fields.iter().map(question).collect();
    for name in fields.keys() {
        // A field for an answer of one's own is part of the question before it.
        if let Some(own) = own_words(fields, name) {
            questions.retain(|it| it.id != own);
            let asked = questions.iter_mut().filter(|it| it.id == *name);
            asked.for_each(|it| it.free_text = true);
        }
    }
    questions
}

/// The field that takes other answers than the options of this one.
fn own_words(fields: &Map<String, Value>, name: &str) -> Option<String> {
    let has_options = fields.get(name).is_some_and(|field| !choices(field).is_empty());
    let mut names = ["_other", "_custom"].iter().map(|end| format!("{name}{end}"));
    names.find(|own| has_options && fields.contains_key(own))
}

/// The same of a form that comes with a message: it is what the only field asks that has no words of
/// its own.
pub(crate) fn questions_of(message: &str, schema: &RawValue) -> Vec<Question> {
    let mut questions = questions(schema);
    let is_bare = |it: &&mut Question| it.text == *it.header.as_ref().unwrap_or(&it.id);
    let mut bare = questions.iter_mut().filter(is_bare);
    if let (Some(only), None) = (bare.next(), bare.next()) {
        message.clone_into(&mut only.text);
    }
    questions
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
        let text = |key: &str| choice.get(key).and_then(Value::as_str);
        let label = text("const")?;
        let title = text("title").filter(|title| *title != label);
        Some(option(label, text("description").or(title)))
    });
    plain.chain(titled).collect()
}

fn option(label: &str, description: Option<&str>) -> QuestionOption {
    QuestionOption {
        label: label.to_owned(),
        description: description.map(str::to_owned),
        value: None,
    }
}

/// The form filled in: each answer in the type its field has. What was not answered is left out.
pub(crate) fn fill(schema: &RawValue, answers: &BTreeMap<String, Vec<String>>) -> Value {
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let none = Map::new();
    let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let mut filled = Map::new();
    for (name, given) in answers {
        let field = fields.get(name);
        if let (Some(own), Some(field)) = (own_words(fields, name), field) {
            let offered = choices(field);
            let is_own = |it: &&String| !offered.iter().any(|option| option.label == **it);
            if let Some(words) = given.iter().find(is_own) {
                filled.insert(own, json!(words));
                continue;
            }
        }
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
    let only = r#"{"properties":{"pick":{"title":"Colour","oneOf":[
        {"const":"a","title":"a","description":"warm"},{"const":"b","title":"The b"},
        {"const":"c","title":"c"}]},"note":{"description":"Anything else?"}}}"#;
    let only = RawValue::from_string(only.to_owned()).unwrap();
    let texts: Vec<_> = questions_of("Which?", &only).into_iter().map(|it| it.text).collect();
    assert_eq!(texts, ["Which?", "Anything else?"]);
    let descriptions = questions_of("Which?", &only).remove(0).options;
    let descriptions: Vec<_> = descriptions.iter().map(|it| it.description.as_deref()).collect();
    assert_eq!(descriptions, [Some("warm"), Some("The b"), None]);
    let own = r#"{"properties":{"pick":{"enum":["a","b"]},"pick_custom":{"type":"string"}}}"#;
    let own = RawValue::from_string(own.to_owned()).unwrap();
    let asked = questions(&own);
    assert!(matches!(asked.as_slice(), [only] if only.free_text), "{asked:?}");
    let say = |words: &str| fill(&own, &[("pick".to_owned(), vec![words.to_owned()])].into());
    assert_eq!(say("a"), json!({"pick": "a"}));
    assert_eq!(say("neither"), json!({"pick_custom": "neither"}));
    assert_eq!(questions_of("Who are you?", &schema)[0].text, "Age", "more than one is bare");
    let answers = [("age", "7"), ("ok", "yes"), ("pick", "b")];
    let answers = answers.map(|(name, value)| (name.to_owned(), vec![value.to_owned()])).into();
    assert_eq!(fill(&schema, &answers), json!({"age": 7, "ok": true, "pick": "b"}));
}
