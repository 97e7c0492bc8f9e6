//! Definitions with and without the prose of their fields.

use serde_json::Value;

/// Which descriptions the schemas of a definition have.
///
/// ```
/// use koord_resource::document::Descriptions;
/// use koord_resource::serde_json::{Value, json};
///
/// let schema = |schema: Value| json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
/// let definition = schema(json!({"description": "A cup.", "type": "object"}));
/// assert_eq!(Descriptions::None.kept_in(definition), schema(json!({"type": "object"})));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Descriptions {
    /// Those of all fields, for `kubectl explain`.
    #[default]
    All,
    /// None, as with `crd:maxDescLen=0` of controller-gen: for definitions that would be too large otherwise. Printer columns keep theirs.
    None,
}

impl Descriptions {
    /// The same CustomResourceDefinition with these descriptions of those that it has.
    #[must_use]
    pub fn kept_in(self, mut definition: Value) -> Value {
        if self == Self::None {
            let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
            for version in versions.into_iter().flatten() {
                if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
                    remove(schema);
                }
            }
        }
        definition
    }
}

/// Removes the descriptions of a schema and of all that it consists of. What stands by name under `properties` is a schema even
/// where the name is `description`; what stands under `default`, `example` and `enum` is none.
fn remove(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else { return };
    keywords.retain(|keyword, _| keyword != "description");
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(remove),
            ("items" | "additionalProperties" | "not", value) => remove(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(remove),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(schema: &Value) -> Value {
        let column = json!({"name": "Size", "type": "string", "jsonPath": ".spec.size", "description": "Its size."});
        let version = |name: &str| json!({"name": name, "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": [column]});
        json!({"kind": "CustomResourceDefinition", "spec": {"versions": [version("v1"), version("v1alpha1")]}})
    }

    #[test]
    fn descriptions_go_at_every_depth_of_every_version() {
        let text = "Words.";
        let described = json!({
            "description": text, "type": "object", "properties": {
                "list": {"description": text, "type": "array", "items": {"description": text, "type": "string"}},
                "map": {"type": "object", "additionalProperties": {"description": text, "type": "object", "properties": {
                    "deep": {"description": text, "type": "string"},
                }}},
                "either": {"anyOf": [{"description": text, "minimum": 1}], "not": {"description": text, "minimum": 5}},
                "open": {"type": "object", "additionalProperties": true},
            },
        });
        let bare = json!({
            "type": "object", "properties": {
                "list": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                    "deep": {"type": "string"},
                }}},
                "either": {"anyOf": [{"minimum": 1}], "not": {"minimum": 5}},
                "open": {"type": "object", "additionalProperties": true},
            },
        });
        assert_eq!(Descriptions::None.kept_in(definition(&described)), definition(&bare));
        assert_eq!(Descriptions::All.kept_in(definition(&described)), definition(&described));
    }

    #[test]
    fn a_property_of_that_name_and_values_stay() {
        let schema = |description: Value| {
            json!({"type": "object", "properties": {
                "description": description,
                "properties": {"type": "object", "default": {"description": "d", "properties": {"description": "d"}}},
                "word": {"enum": [{"description": "d"}], "example": {"items": {"description": "d"}}},
            }})
        };
        let described = schema(json!({"type": "string", "description": "What it is for."}));
        let bare = schema(json!({"type": "string"}));
        assert_eq!(Descriptions::None.kept_in(definition(&described)), definition(&bare));
    }

    #[test]
    fn what_is_no_definition_stays_as_it_is() {
        for other in [Value::Null, json!({"kind": "Namespace"}), json!({"spec": {"versions": "v1"}})] {
            assert_eq!(Descriptions::None.kept_in(other.clone()), other);
        }
    }
}
