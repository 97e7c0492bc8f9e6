//! Definitions that differ from a good one in one thing each: `tests/data/definition-cases.json`.

use koord_schema::{
    definition::{begin_status, check_new, set_defaults},
    field::Errors,
};
use serde_json::{Value, json};

/// All of them, in the order of the file.
pub(crate) fn definitions() -> Vec<Value> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../data/definition-cases.json")).unwrap_or_default();
    cases.iter().map(definition).collect()
}

/// Why a definition is refused that is created, in alphabetical order.
pub(crate) fn refusals(mut definition: Value) -> Vec<String> {
    set_defaults(&mut definition);
    begin_status(&mut definition);
    let mut errors = Errors::new();
    check_new(&definition, &mut errors);
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

fn definition(case: &Value) -> Value {
    let field = case.get("field").cloned().unwrap_or_else(|| json!({"type": "string"}));
    let mut root = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"f": field}}, "status": {"type": "object"}}});
    set(&mut root, &case["root"]);
    let mut version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": root}});
    set(&mut version, &case["version"]);
    let mut names = json!({"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"});
    set(&mut names, &case["names"]);
    let versions = case.get("versions").cloned().unwrap_or_else(|| json!([version]));
    let mut spec = json!({"group": "demo.test", "scope": "Namespaced", "names": names, "versions": versions});
    set(&mut spec, &case["spec"]);
    let mut metadata = json!({"name": "widgets.demo.test"});
    set(&mut metadata, &case["metadata"]);
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec})
}

/// Sets members of an object.
fn set(object: &mut Value, members: &Value) {
    for (name, member) in members.as_object().into_iter().flatten() {
        object[name] = member.clone();
    }
}
