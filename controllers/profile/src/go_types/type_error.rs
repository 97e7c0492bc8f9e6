//! Values that an object of a Go type cannot hold. An object is decoded after it was merged, and the first of them
//! refuses it, in Go's words.
//!
//! What stands deeper than the types are known is left to API servers.

use koord_schema::go_text::json_type;
use serde_json::{Map, Value};

use super::{
    GoKind::{self, Amounts, Flag, Int32, Int64, Names, Object, Objects, Opaque, Text, Texts},
    GoType, quantity,
};

/// Why an object of this type, or one that was merged with this patch, cannot be decoded; none where nothing speaks
/// against it.
pub fn type_error(object: &Map<String, Value>, of: GoType) -> Option<String> {
    type_error_in(object, of, "")
}

fn type_error_in(fields: &Map<String, Value>, of: GoType, at: &str) -> Option<String> {
    fields.iter().find_map(|(name, value)| {
        let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        type_error_of(value, of.field(name)?.kind, of.short_name(), &at)
    })
}

fn type_error_of(value: &Value, kind: GoKind, holder: &str, at: &str) -> Option<String> {
    let wrong = |value: &Value, go_type: &str| Some(message(value, holder, at, go_type));
    match (kind, value) {
        (_, Value::Null) | (Opaque, _) | (Text(_), Value::String(_)) | (Flag, Value::Bool(_)) => None,
        (Int32, Value::Number(number)) if number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()) => None,
        (Int64, Value::Number(number)) if number.is_i64() => None,
        (Int32 | Int64, Value::Number(number)) => {
            let go_type = if matches!(kind, Int32) { "int32" } else { "int64" };
            Some(format!("json: cannot unmarshal number {number} into Go struct field {holder}.{at} of type {go_type}"))
        }
        (Object(of), Value::Object(fields)) => type_error_in(fields, of, at),
        (Texts, Value::Object(texts)) => {
            texts.values().find(|text| !text.is_string() && !text.is_null()).and_then(|text| wrong(text, "string"))
        }
        (Names, Value::Array(names)) => {
            names.iter().find(|name| !name.is_string() && !name.is_null()).and_then(|name| wrong(name, "string"))
        }
        (Objects(of), Value::Array(items)) => items.iter().find_map(|item| match item {
            // An item that goes is never decoded.
            Value::Object(fields) if fields.contains_key("$patch") => None,
            Value::Object(fields) => type_error_in(fields, of, at),
            Value::Null => None,
            other => wrong(other, of.name),
        }),
        (Amounts, Value::Object(amounts)) => {
            amounts.iter().filter(|(name, _)| !name.starts_with('$')).find_map(|(_, amount)| quantity(amount).err())
        }
        (Text(go_type), _) => wrong(value, go_type),
        (Object(of), _) => wrong(value, of.name),
        (Flag, _) => wrong(value, "bool"),
        (Int32, _) => wrong(value, "int32"),
        (Int64, _) => wrong(value, "int64"),
        (Texts, _) => wrong(value, "map[string]string"),
        (Names, _) => wrong(value, "[]string"),
        (Objects(of), _) => wrong(value, &format!("[]{}", of.name)),
        (Amounts, _) => wrong(value, "v1.ResourceList"),
    }
}

fn message(value: &Value, holder: &str, at: &str, go_type: &str) -> String {
    format!("json: cannot unmarshal {} into Go struct field {holder}.{at} of type {go_type}", json_type(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::POD;

    fn of(patch: &Value) -> Option<String> {
        type_error(patch.as_object().unwrap(), POD)
    }

    #[test]
    fn a_value_of_another_type_is_told_in_gos_words() {
        for (spec, message) in [
            (
                json!({"containers": "nope"}),
                "string into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (json!({"hostNetwork": "yes"}), "string into Go struct field PodSpec.spec.hostNetwork of type bool"),
            (json!({"priority": 1.5}), "number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
            (
                json!({"terminationGracePeriodSeconds": "5"}),
                "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
            ),
            (
                json!({"nodeSelector": {"a": true}}),
                "bool into Go struct field PodSpec.spec.nodeSelector of type string",
            ),
            (
                json!({"tolerations": {}}),
                "object into Go struct field PodSpec.spec.tolerations of type []v1.Toleration",
            ),
            (json!({"tolerations": [1]}), "number into Go struct field PodSpec.spec.tolerations of type v1.Toleration"),
            (
                json!({"containers": [{"name": "a", "image": 5}]}),
                "number into Go struct field Container.spec.containers.image of type string",
            ),
            (json!({"affinity": []}), "array into Go struct field PodSpec.spec.affinity of type v1.Affinity"),
            (
                json!({"containers": [{"name": "a", "env": [{"name": "A", "value": 1}]}]}),
                "number into Go struct field EnvVar.spec.containers.env.value of type string",
            ),
            (
                json!({"initContainers": [{"name": "a", "ports": [{"containerPort": "80"}]}]}),
                "string into Go struct field ContainerPort.spec.initContainers.ports.containerPort of type int32",
            ),
            (
                json!({"containers": [{"name": "a", "volumeMounts": [{"readOnly": "yes"}]}]}),
                "string into Go struct field VolumeMount.spec.containers.volumeMounts.readOnly of type bool",
            ),
            (
                json!({"tolerations": [{"key": 5}]}),
                "number into Go struct field Toleration.spec.tolerations.key of type string",
            ),
            (
                json!({"tolerations": [{"tolerationSeconds": "5"}]}),
                "string into Go struct field Toleration.spec.tolerations.tolerationSeconds of type int64",
            ),
            (
                json!({"containers": [{"name": "a", "resources": {"limits": []}}]}),
                "array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
            ),
        ] {
            assert_eq!(of(&json!({ "spec": spec })), Some(format!("json: cannot unmarshal {message}")), "{spec}");
        }
        let labels = "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string";
        assert_eq!(of(&json!({"metadata": {"labels": {"a": 5}}})).as_deref(), Some(labels));
        let whole = "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec";
        assert_eq!(of(&json!({"spec": "x"})).as_deref(), Some(whole));
        let malformed = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        for amount in [json!("abc"), json!(true), json!([]), json!({}), json!("")] {
            assert_eq!(of(&json!({"spec": {"overhead": {"cpu": amount}}})).as_deref(), Some(malformed), "{amount}");
        }
    }

    #[test]
    fn what_a_pod_can_hold_fits() {
        let patch = json!({
            "metadata": {"labels": {"a": "b", "c": null}, "finalizers": ["x"], "$deleteFromPrimitiveList/finalizers": ["y"]},
            "spec": {"hostNetwork": true, "priority": 5, "terminationGracePeriodSeconds": 5, "nodeSelector": null,
                "tolerations": [{"key": "x"}], "affinity": {"$patch": "delete"}, "unknown": [{}],
                "containers": [{"name": "a", "env": [{"name": "A"}]}, {"name": 5, "$patch": "delete"}]},
        });
        assert_eq!(of(&patch), None);
    }
}
