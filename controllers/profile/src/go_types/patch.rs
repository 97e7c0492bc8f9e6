//! A strategic merge patch as it would be had its merged object been written by Go.

use koord_schema::typed::TypeNode;
use serde_json::{Map, Value};

use super::{GoField, GoKind, GoType, quantity};

type Fields = Map<String, Value>;

/// What becomes of a value of a patch.
enum Typed {
    /// It is written like this.
    Written(Value),
    /// Go writes nothing for it.
    Absent,
    /// It leaves the object as it is.
    Unchanged,
}

/// The patch with which an object of this type comes out as Go would write it once it is merged: fields that the type
/// does not have go, a zero that is not written removes its field, and quantities have canonical form. Directives stay,
/// and so does everything that stands deeper than the types are known, or has another type than its field.
pub fn typed_patch<N: TypeNode>(patch: &Value, of: GoType, node: &N) -> Value {
    match patch {
        Value::Object(fields) => Value::Object(typed_fields(fields, of, Some(node), true)),
        other => other.clone(),
    }
}

/// `merges`: whether `null` removes a field. Elsewhere the fields are taken over as they are.
fn typed_fields<N: TypeNode>(fields: &Fields, of: GoType, node: Option<&N>, merges: bool) -> Fields {
    if of.fields.is_empty() {
        return fields.clone();
    }
    let merges = merges && fields.get("$patch").is_none_or(|directive| directive != "replace");
    let mut typed = Fields::new();
    for (name, value) in fields {
        if name.starts_with('$') {
            typed.insert(name.clone(), value.clone());
            continue;
        }
        let Some(field) = of.field(name) else { continue };
        let node = node.and_then(|node| node.field(name));
        match typed_value(value, field, node.as_ref(), merges) {
            Typed::Written(value) => _ = typed.insert(name.clone(), value),
            Typed::Absent if merges => _ = typed.insert(name.clone(), Value::Null),
            Typed::Absent | Typed::Unchanged => {}
        }
    }
    typed
}

fn typed_value<N: TypeNode>(value: &Value, field: &GoField, node: Option<&N>, merges: bool) -> Typed {
    let merges_items = node.is_some_and(|node| node.patch_strategy().is_some_and(|words| words.starts_with("merge")));
    match (field.kind, value) {
        (_, Value::Null) => Typed::Absent,
        (GoKind::Objects(_) | GoKind::Names, Value::Array(items)) if items.is_empty() => {
            if merges && merges_items {
                Typed::Unchanged
            } else {
                zero(value, field)
            }
        }
        (GoKind::Texts | GoKind::Amounts, Value::Object(entries)) if entries.is_empty() && merges => Typed::Unchanged,
        (GoKind::Object(of), Value::Object(fields)) => {
            Typed::Written(Value::Object(typed_fields(fields, of, node, merges)))
        }
        (GoKind::Objects(of), Value::Array(items)) => {
            let replaced = items.iter().any(|item| item.get("$patch").is_some_and(|word| word == "replace"));
            let merges = merges && merges_items && !replaced;
            let node = node.and_then(TypeNode::item);
            let typed = items.iter().map(|item| match item {
                Value::Object(fields) => Value::Object(typed_fields(fields, of, node.as_ref(), merges)),
                other => other.clone(),
            });
            Typed::Written(typed.collect())
        }
        (GoKind::Amounts, Value::Object(amounts)) => {
            let typed = amounts.iter().map(|(name, amount)| (name.clone(), typed_amount(name, amount, merges)));
            Typed::Written(Value::Object(typed.collect()))
        }
        (GoKind::Text(_), Value::String(text)) if text.is_empty() => zero(value, field),
        (GoKind::Flag, Value::Bool(false)) => zero(value, field),
        (GoKind::Int32 | GoKind::Int64, Value::Number(number)) if number.as_i64() == Some(0) => zero(value, field),
        _ => Typed::Written(value.clone()),
    }
}

fn zero(value: &Value, field: &GoField) -> Typed {
    if field.keeps_zero { Typed::Written(value.clone()) } else { Typed::Absent }
}

/// An amount in canonical form. What is no quantity stays, and refuses the object once it is merged.
fn typed_amount(name: &str, amount: &Value, merges: bool) -> Value {
    if name.starts_with('$') || (merges && amount.is_null()) {
        return amount.clone();
    }
    quantity(amount).map_or_else(|_| amount.clone(), |quantity| quantity.to_string().into())
}

#[cfg(test)]
mod tests {
    use koord_schema::patch::strategic;
    use serde_json::json;

    use super::*;
    use crate::{POD, PodNode};

    fn of_spec(spec: &Value) -> Value {
        typed_patch(&json!({ "spec": spec }), POD, &PodNode::ROOT)["spec"].take()
    }

    #[test]
    fn fields_that_a_pod_does_not_have_go() {
        let patch = json!({"odd": 1, "metadata": {"odd": 1, "labels": {"any": "thing"}}, "$patch": "x", "status": {"any": 1},
            "spec": {"odd": null, "$setElementOrder/odd": [], "affinity": {"any": 1},
                "containers": [{"name": "a", "odd": 1, "env": [{"name": "E", "odd": 1}], "resources": {"odd": 1}}]}});
        let typed = json!({"metadata": {"labels": {"any": "thing"}}, "$patch": "x", "status": {"any": 1},
            "spec": {"$setElementOrder/odd": [], "affinity": {"any": 1},
                "containers": [{"name": "a", "env": [{"name": "E"}], "resources": {}}]}});
        assert_eq!(typed_patch(&patch, POD, &PodNode::ROOT), typed);
    }

    #[test]
    fn a_zero_removes_its_field_unless_the_field_is_a_pointer() {
        let zeros = json!({"hostNetwork": false, "hostname": "", "tolerations": [], "priority": 0, "hostUsers": false,
            "runtimeClassName": "", "terminationGracePeriodSeconds": 0, "volumes": [], "nodeSelector": {}});
        let typed = json!({"hostNetwork": null, "hostname": null, "tolerations": null, "priority": 0, "hostUsers": false,
            "runtimeClassName": "", "terminationGracePeriodSeconds": 0});
        assert_eq!(of_spec(&zeros), typed);
        let container = json!({"name": "", "image": "", "tty": false, "args": [], "env": [{"name": "E", "value": ""}], "ports": []});
        let typed =
            json!({"name": "", "image": null, "tty": null, "args": null, "env": [{"name": "E", "value": null}]});
        assert_eq!(of_spec(&json!({"containers": [container]})), json!({"containers": [typed]}));
    }

    /// A patch whose items replace a list or an object is taken over without a look at `null`.
    #[test]
    fn what_is_taken_over_whole_has_no_null() {
        let tolerations = json!([{"key": "", "operator": "Exists", "tolerationSeconds": null, "value": "v"}]);
        let typed = json!([{"operator": "Exists", "value": "v"}]);
        assert_eq!(of_spec(&json!({ "tolerations": tolerations })), json!({ "tolerations": typed }));
        let replaced =
            json!({"$patch": "replace", "hostname": "", "volumes": [], "containers": [{"name": "c", "tty": false}]});
        assert_eq!(of_spec(&replaced), json!({"$patch": "replace", "containers": [{"name": "c"}]}));
        let items = json!([{"$patch": "replace"}, {"name": "c", "tty": false, "image": null}]);
        assert_eq!(
            of_spec(&json!({ "containers": items })),
            json!({"containers": [{"$patch": "replace"}, {"name": "c"}]})
        );
    }

    #[test]
    fn quantities_are_canonical_and_what_is_none_stays() {
        let requests = json!({"cpu": 2, "memory": "2048Mi", "x": 0.5, "y": "two", "z": null});
        let typed = json!({"cpu": "2", "memory": "2Gi", "x": "500m", "y": "two", "z": null});
        let of = |requests: &Value| json!({"overhead": requests, "containers": [{"name": "c", "resources": {"requests": requests}}]});
        assert_eq!(of_spec(&of(&requests)), of(&typed));
    }

    #[test]
    fn a_merged_pod_has_what_the_patch_brings_as_go_writes_it() {
        let pod = json!({"spec": {"odd": 1, "hostNetwork": true, "tolerations": [{"key": "x"}], "volumes": [{"name": "v"}],
            "containers": [{"name": "c", "env": [{"name": "E", "value": "1"}], "resources": {"requests": {"cpu": 1}}}]}});
        let patch = json!({"spec": {"hostNetwork": false, "tolerations": [], "volumes": [],
            "containers": [{"name": "c", "env": [{"name": "E", "value": ""}]}, {"name": "d", "image": "", "stdin": false}]}});
        let patch = typed_patch(&patch, POD, &PodNode::ROOT);
        let merged = json!({"spec": {"odd": 1, "volumes": [{"name": "v"}],
            "containers": [{"name": "c", "env": [{"name": "E"}], "resources": {"requests": {"cpu": 1}}}, {"name": "d"}]}});
        assert_eq!(strategic::apply(pod, &patch, &PodNode::ROOT).unwrap(), merged);
    }
}
