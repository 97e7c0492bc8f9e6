//! Schemas and objects that were sent to kube-apiserver 1.34.3, with what it answered: `tests/data/custom-resources.json`.

use std::time::Duration;

use koord_schema::{
    Schema,
    cel::Rules,
    field::{Errors, Path},
    structural::{defaults, embedded, legality, prune, validate_object},
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Answer {
    schema: Value,
    #[serde(default)]
    refused: Vec<String>,
    #[serde(default)]
    objects: Vec<ObjectAnswer>,
}

#[derive(Deserialize)]
struct ObjectAnswer {
    object: Value,
    #[serde(default)]
    refused: Vec<String>,
    undecodable: Option<String>,
    stored: Option<Value>,
}

fn answers() -> Vec<Answer> {
    serde_json::from_str(include_str!("../data/custom-resources.json")).unwrap()
}

fn sorted(errors: &Errors) -> Vec<String> {
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

fn checked(document: &Value) -> (Vec<String>, Option<(Schema, Rules)>) {
    let at = Path::root("spec.validation.openAPIV3Schema");
    let checked = legality::check(document, &at);
    let mut errors = checked.errors;
    let mut usable = None;
    if let Some(schema) = checked.schema.filter(|_| errors.is_empty()) {
        let (rules, wrong) = Rules::compile(&schema, &at);
        errors.extend(wrong);
        usable = Some((schema, rules));
    }
    (sorted(&errors), usable)
}

/// Rules of which the answer is known to differ; docs/reference/divergences.md has a row for each reason.
fn differs(document: &Value) -> Option<&'static str> {
    let rule = document.pointer("/properties/spec/x-kubernetes-validations/0/rule")?.as_str()?;
    Some(match rule {
        "self.o == 1" | "self.o == {'x': 1}" | "self == {'a': 1}" => "the names of object types",
        "true && 1" => "the place of a literal",
        _ => return None,
    })
}

#[test]
fn schemas_are_refused_as_answered() {
    let mut compared = 0;
    for answer in answers() {
        if differs(&answer.schema).is_some() {
            continue;
        }
        assert_eq!(checked(&answer.schema).0, answer.refused, "{}", answer.schema);
        compared += 1;
    }
    assert!(compared > 230, "{compared} schemas compared");
}

#[test]
fn objects_are_refused_and_stored_as_answered() {
    for answer in answers() {
        for case in answer.objects {
            let (schema, rules) = checked(&answer.schema).1.unwrap();
            let mut object = case.object.clone();
            object["apiVersion"] = json!("g/v1");
            object["kind"] = json!("Widget");
            object["metadata"] = json!({"name": "w"});
            let undecodable = embedded::decoding_error(&schema, &object).map(|error| error.to_string());
            assert_eq!(undecodable, case.undecodable, "{} {}", answer.schema, case.object);
            if undecodable.is_some() {
                continue;
            }
            defaults::apply(&schema, &mut object);
            defaults::drop_needless_nulls(&schema, &mut object);
            prune::prune(&schema, &mut object);
            let mut errors = validate_object(&schema, &object, None);
            rules.evaluate_after(&mut errors, &object, None, Duration::from_secs(20));
            assert_eq!(sorted(&errors), case.refused, "{} {}", answer.schema, case.object);
            if let Some(stored) = case.stored {
                let text = koord_schema::go_text::json;
                assert_eq!(text(&object["spec"]), text(&stored), "{}", answer.schema);
            }
        }
    }
}

/// Every known difference is one; a row that is no longer true must go.
#[test]
fn known_differences_still_differ() {
    for answer in answers() {
        if let Some(reason) = differs(&answer.schema) {
            assert_ne!(checked(&answer.schema).0, answer.refused, "{reason}: {}", answer.schema);
        }
    }
}

#[test]
fn one_value_may_be_counted_by_its_newer_name() {
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 3, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "self.l.existsOne(x, x > 1)"}]});
    assert!(checked(&schema).0.is_empty(), "the parser knows the macro with one variable");
}
