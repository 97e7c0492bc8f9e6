//! Definitions that are wrong in one thing each, and what Kubernetes' own validation says of them:
//! `tests/data/definition-answers.json`, which `tests/crd-oracle/run answers` records.

use serde_json::Value;

#[path = "../rules/definitions.rs"]
mod cases;

/// The errors without what is known to differ: how Go writes a struct, and the names that it makes up for types. Which
/// names an object may have is checked with its metadata.
fn comparable(errors: Vec<String>) -> Vec<String> {
    let type_name = regex::Regex::new(r"selfType\d+(\.[@\w]+)*").unwrap();
    let schema = regex::Regex::new(r"^(spec\.validation\.openAPIV3Schema: Invalid value: )\{.*\}(: only )").unwrap();
    let errors = errors.into_iter().filter(|error| !error.starts_with("metadata.name: "));
    let mut errors: Vec<String> =
        errors.map(|error| schema.replace(&type_name.replace_all(&error, "object"), "$1{}$2").into_owned()).collect();
    errors.sort();
    errors
}

/// Rules of which the answer is known to differ; docs/reference/divergences.md has a row for each reason.
const KNOWN: [(&str, &str); 5] = [
    ("[1, 2u] == []", "the place of a literal"),
    ("self.l.filter(x, x)", "the place of a macro"),
    ("google.protobuf.Int64Value{value: 1} == 1", "messages"),
    ("Foo{a: 1} == 1", "messages"),
    ("self{a: 1}", "messages"),
];

fn known(definition: &Value) -> Option<&'static str> {
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/f/x-kubernetes-validations/0/rule";
    let rule = definition.pointer(field)?.as_str()?;
    KNOWN.iter().find(|(known, _)| *known == rule).map(|(_, reason)| *reason)
}

#[test]
fn definitions_are_refused_as_kubernetes_refuses_them() {
    let answers: Vec<Option<Vec<String>>> =
        serde_json::from_str(include_str!("../data/definition-answers.json")).unwrap();
    let definitions = cases::definitions();
    assert_eq!(answers.len(), definitions.len(), "tests/crd-oracle/run answers records them");
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (definition, answer) in definitions.into_iter().zip(answers) {
        // What cannot be decoded is refused before it is checked.
        let Some(answer) = answer else { continue };
        compared += 1;
        let [found, answer] = [cases::refusals(definition.clone()), answer].map(comparable);
        if let Some(reason) = known(&definition) {
            assert_ne!(found, answer, "a row that is no longer true must go: {reason}");
        } else if found != answer {
            wrong.push(format!("{definition}\n  wanted {answer:#?}\n  found {found:#?}"));
        }
    }
    assert!(compared > 700, "{compared} definitions compared");
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}
