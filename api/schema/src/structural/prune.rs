//! Pruning: fields that the schema does not name are dropped, and reported to those who ask.

use std::fmt::Write;

use serde_json::Value;

use crate::{AdditionalProperties, Schema, object_meta};

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops the unknown fields of a whole object and gives their paths, sorted, such as `spec.list[0].j`.
///
/// `metadata`, here and in embedded objects, is pruned by its own type.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut pruning = Pruning { path: String::new(), dropped: Vec::new() };
    if schema.preserve_unknown_fields == Some(true) {
        pruning.descend(schema, object, true);
    } else {
        pruning.object(Some(schema), object, true);
    }
    pruning.dropped.sort();
    pruning.dropped
}

/// Drops the unknown fields of a value below an object's root, such as a default.
pub fn prune_value(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut pruning = Pruning { path: String::new(), dropped: Vec::new() };
    pruning.node(Some(schema), value);
    pruning.dropped.sort();
    pruning.dropped
}

struct Pruning {
    path: String,
    dropped: Vec<String>,
}

impl Pruning {
    /// Visits a value with one more path step.
    fn step(&mut self, step: &Step<'_>, visit: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        match step {
            Step::Field(name) if self.path.is_empty() => self.path.push_str(name),
            Step::Field(name) => {
                self.path.push('.');
                self.path.push_str(name);
            }
            Step::Item(index) => {
                // Writing to a string cannot fail.
                let _ = write!(self.path, "[{index}]");
            }
        }
        visit(self);
        self.path.truncate(length);
    }

    fn drop_field(&mut self, name: &str) {
        self.step(&Step::Field(name), |pruning| pruning.dropped.push(pruning.path.clone()));
    }

    fn node(&mut self, schema: Option<&Schema>, value: &mut Value) {
        match schema {
            Some(schema) if schema.preserve_unknown_fields == Some(true) => {
                self.descend(schema, value, schema.embedded_resource);
            }
            _ => self.object(schema, value, schema.is_some_and(|schema| schema.embedded_resource)),
        }
    }

    /// Prunes where only named fields may stay. `is_resource`: apiVersion, kind and metadata are implied.
    fn object(&mut self, schema: Option<&Schema>, value: &mut Value, is_resource: bool) {
        match value {
            Value::Object(fields) => {
                let names: Vec<String> = fields.keys().cloned().collect();
                for name in names {
                    let Some(field) = fields.get_mut(&name) else { continue };
                    if is_resource && META_FIELDS.contains(&name.as_str()) {
                        self.meta(&name, field);
                        continue;
                    }
                    match schema.and_then(|schema| known_field(schema, &name)) {
                        Some(Known::Described(described)) => {
                            self.step(&Step::Field(&name), |pruning| pruning.node(Some(described), field));
                        }
                        Some(Known::Anything) => {
                            self.step(&Step::Field(&name), |pruning| pruning.node(None, field));
                        }
                        None => {
                            fields.remove(&name);
                            self.drop_field(&name);
                        }
                    }
                }
            }
            Value::Array(items) => {
                let item_schema = schema.and_then(|schema| schema.items.as_deref());
                for (index, item) in items.iter_mut().enumerate() {
                    self.step(&Step::Item(index), |pruning| pruning.node(item_schema, item));
                }
            }
            _ => {}
        }
    }

    /// Keeps unknown fields, but prunes inside those that the schema describes.
    fn descend(&mut self, schema: &Schema, value: &mut Value, is_resource: bool) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields.iter_mut() {
                    if is_resource && META_FIELDS.contains(&name.as_str()) {
                        self.meta(name, field);
                    } else if let Some(Known::Described(described)) = known_field(schema, name) {
                        self.step(&Step::Field(name), |pruning| pruning.node(Some(described), field));
                    }
                }
            }
            Value::Array(items) => {
                let Some(item_schema) = schema.items.as_deref() else { return };
                for (index, item) in items.iter_mut().enumerate() {
                    self.step(&Step::Item(index), |pruning| {
                        pruning.descend(item_schema, item, item_schema.embedded_resource);
                    });
                }
            }
            _ => {}
        }
    }

    fn meta(&mut self, name: &str, field: &mut Value) {
        if name == "metadata" {
            self.step(&Step::Field(name), |pruning| pruning.object(Some(&object_meta::SCHEMA), field, false));
            object_meta::drop_empty(field);
        }
    }
}

enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

enum Known<'a> {
    Described(&'a Schema),
    Anything,
}

fn known_field<'a>(schema: &'a Schema, name: &str) -> Option<Known<'a>> {
    if let Some(field) = schema.properties.get(name) {
        return Some(Known::Described(field));
    }
    match &schema.additional_properties {
        Some(AdditionalProperties::Schema(values)) => Some(Known::Described(values)),
        Some(AdditionalProperties::Allowed(true)) => Some(Known::Anything),
        Some(AdditionalProperties::Allowed(false)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        serde_json::from_value(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "known": {"type": "object", "properties": {"x": {"type": "integer"}}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"i": {"type": "integer"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"v": {"type": "string"}}}},
            "t": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        }}}}))
        .unwrap()
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let mut object = json!({
            "apiVersion": "g/v1", "kind": "Widget", "metadata": {"name": "w", "foo": 1}, "extra": {"top": 1},
            "spec": {"a": "x", "zz": 1, "free": {"any": {"deep": 1}, "known": {"dropped": 2, "x": 1}},
                     "list": [{"i": 1, "j": 2}], "map": {"k": {"v": "1", "w": 2}},
                     "t": {"metadata": {"creationTimestamp": null, "name": "x"}, "spec": {"q": 1}}},
        });
        let dropped = prune(&schema(), &mut object);
        assert_eq!(
            dropped,
            ["extra", "metadata.foo", "spec.free.known.dropped", "spec.list[0].j", "spec.map.k.w", "spec.zz"]
        );
        assert_eq!(
            object,
            json!({
                "apiVersion": "g/v1", "kind": "Widget", "metadata": {"name": "w"},
                "spec": {"a": "x", "free": {"any": {"deep": 1}, "known": {"x": 1}}, "list": [{"i": 1}], "map": {"k": {"v": "1"}},
                         "t": {"metadata": {"name": "x"}, "spec": {"q": 1}}},
            })
        );
    }
}
