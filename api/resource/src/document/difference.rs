//! How two CustomResourceDefinitions differ in what they accept and show: prose does not count.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// One place where a definition is not the wanted one.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where, such as `spec.versions[v1alpha1].schema.openAPIV3Schema.properties.spec`.
    pub path: String,
    /// What is there; none where the field is lacking.
    pub present: Option<Value>,
    /// What is wanted; none where there should be no such field.
    pub wanted: Option<Value>,
}

impl Difference {
    /// The difference in words, where `place` is whose definition is not the wanted one: `the cluster`, `the file`.
    pub fn in_words(&self, place: &str) -> String {
        let Difference { path, present, wanted } = self;
        match (present, wanted) {
            (None, Some(wanted)) => format!("{path}: {place} lacks {}", short(wanted)),
            (Some(present), None) => format!("{path}: only {place} has {}", short(present)),
            (present, wanted) => {
                let text = |value: &Option<Value>| value.as_ref().map(short).unwrap_or_default();
                format!("{path}: {place} has {}, this program {}", text(present), text(wanted))
            }
        }
    }
}

/// The differences between the specs of two definitions. What every server fills in by itself is no difference.
pub fn differences(present: &Value, wanted: &Value) -> Vec<Difference> {
    differences_of("spec", &filled_in(present), &filled_in(wanted))
}

/// The differences between two parts of definitions that stand at `path`.
pub fn differences_of(path: &str, present: &Value, wanted: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(path, Some(present), Some(wanted), &mut found);
    found
}

/// The spec with the defaults of the API server.
fn filled_in(definition: &Value) -> Value {
    let mut spec = definition["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.entry("conversion").or_insert_with(|| serde_json::json!({ "strategy": "None" }));
        if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
            spec.remove("preserveUnknownFields");
        }
    }
    spec
}

fn compare(path: &str, present: Option<&Value>, wanted: Option<&Value>, found: &mut Vec<Difference>) {
    match (present, wanted) {
        (Some(Value::Object(present)), Some(Value::Object(wanted))) => {
            let keys: BTreeSet<&String> = present.keys().chain(wanted.keys()).collect();
            for key in keys {
                let (present, wanted) = (present.get(key), wanted.get(key));
                if !is_prose(path, key, present.or(wanted)) {
                    compare(&format!("{path}.{key}"), present, wanted, found);
                }
            }
        }
        (Some(Value::Array(present)), Some(Value::Array(wanted))) => {
            compare_lists(path, present, wanted, found);
        }
        (present, wanted) if present == wanted => {}
        // 10 and 10.0 are one bound
        (Some(Value::Number(present)), Some(Value::Number(wanted))) if present.as_f64() == wanted.as_f64() => {}
        (present, wanted) => {
            found.push(Difference { path: path.to_owned(), present: present.cloned(), wanted: wanted.cloned() });
        }
    }
}

/// Lists of named things are compared by name, other lists by position. The order of columns is what users see.
fn compare_lists(path: &str, present: &[Value], wanted: &[Value], found: &mut Vec<Difference>) {
    let names = |list: &[Value]| -> Option<Map<String, Value>> {
        list.iter().map(|item| Some((item.get("name")?.as_str()?.to_owned(), item.clone()))).collect()
    };
    match (names(present), names(wanted)) {
        (Some(present), Some(wanted)) if !path.ends_with(".additionalPrinterColumns") => {
            let all: BTreeSet<&String> = present.keys().chain(wanted.keys()).collect();
            for name in all {
                compare(&format!("{path}[{name}]"), present.get(name), wanted.get(name), found);
            }
        }
        _ => {
            for index in 0..present.len().max(wanted.len()) {
                compare(&format!("{path}[{index}]"), present.get(index), wanted.get(index), found);
            }
        }
    }
}

/// Whether a key is a description and not a property that is called so.
fn is_prose(path: &str, key: &str, value: Option<&Value>) -> bool {
    key == "description" && !path.ends_with(".properties") && value.is_some_and(Value::is_string)
}

/// A value in one line of bearable length.
fn short(value: &Value) -> String {
    const CHARACTERS_MAX: usize = 80;
    let text = value.to_string();
    if text.chars().count() <= CHARACTERS_MAX {
        return text;
    }
    let start: String = text.chars().take(CHARACTERS_MAX).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(schema: &Value) -> Value {
        json!({"spec": {"group": "example.com", "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
    }

    fn texts(present: &Value, wanted: &Value) -> Vec<String> {
        differences(present, wanted).iter().map(|difference| difference.in_words("the cluster")).collect()
    }

    #[test]
    fn prose_is_no_difference_but_a_property_called_description_is() {
        let one =
            definition(&json!({"description": "one", "properties": {"a": {"type": "string", "description": "x"}}}));
        let two = definition(&json!({"description": "two", "properties": {"a": {"type": "string"}}}));
        assert!(differences(&one, &two).is_empty());
        let three = definition(&json!({"properties": {"a": {"type": "string"}, "description": {"type": "string"}}}));
        assert_eq!(
            texts(&two, &three),
            [r#"spec.versions[v1].schema.openAPIV3Schema.properties.description: the cluster lacks {"type":"string"}"#]
        );
    }

    #[test]
    fn what_the_server_fills_in_is_no_difference() {
        let wanted = definition(&json!({}));
        let mut present = wanted.clone();
        present["spec"]["conversion"] = json!({"strategy": "None"});
        present["spec"]["preserveUnknownFields"] = json!(false);
        assert!(differences(&present, &wanted).is_empty());
    }

    #[test]
    fn a_changed_bound_names_both_values() {
        let present = definition(&json!({"properties": {"a": {"maximum": 10, "enum": ["x", "y"]}}}));
        let wanted = definition(&json!({"properties": {"a": {"maximum": 20, "enum": ["x"]}}}));
        let same = definition(&json!({"properties": {"a": {"maximum": 20.0, "enum": ["x"]}}}));
        assert!(differences(&same, &wanted).is_empty());
        assert_eq!(
            texts(&present, &wanted),
            [
                "spec.versions[v1].schema.openAPIV3Schema.properties.a.enum[1]: only the cluster has \"y\"",
                "spec.versions[v1].schema.openAPIV3Schema.properties.a.maximum: the cluster has 10, this program 20",
            ]
        );
    }

    #[test]
    fn versions_are_compared_by_name_and_columns_by_place() {
        let list = |names: &[&str]| json!({"spec": {"versions": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()}});
        assert!(differences(&list(&["v1", "v2"]), &list(&["v2", "v1"])).is_empty());
        assert_eq!(
            texts(&list(&["v1"]), &list(&["v1", "v2"])),
            [r#"spec.versions[v2]: the cluster lacks {"name":"v2"}"#]
        );
        let columns = |names: &[&str]| {
            let columns: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"spec": {"versions": [{"name": "v1", "additionalPrinterColumns": columns}]}})
        };
        assert_eq!(differences(&columns(&["A", "B"]), &columns(&["B", "A"])).len(), 2);
    }
}
