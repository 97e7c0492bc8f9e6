//! The part of an object that a set names: what one manager owns of it.

use serde_json::{Map, Value};

use super::{FieldSet, Step};

/// The members of a set, and what is below them. What the object does not have is left out; the type need not be known,
/// because the steps say how the items of a list are told apart.
///
/// An object or list of which parts are owned is shown with these parts alone. One that is owned and of which no part is
/// in the set (an atomic one, or one that was empty) is shown whole.
pub fn extract(value: &Value, set: &FieldSet) -> Value {
    match value {
        Value::Object(fields) => {
            let owned =
                fields.iter().filter_map(|(name, field)| Some((name.clone(), at(field, set, &Step::field(name))?)));
            Value::Object(owned.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let by_keys: Vec<(&Step, Map<String, Value>)> =
                set.entries.keys().filter_map(|step| Some((step, step.item_keys()?))).collect();
            let step_of = |index: usize, item: &Value| {
                let keyed = by_keys.iter().find(|(_, keys)| keys.iter().all(|(name, key)| item.get(name) == Some(key)));
                let plain =
                    || [Step::value(item), Step::index(index)].into_iter().find(|step| set.entries.contains_key(step));
                keyed.map(|(step, _)| (*step).clone()).or_else(plain)
            };
            let owned = items.iter().enumerate();
            Value::Array(owned.filter_map(|(index, item)| at(item, set, &step_of(index, item)?)).collect())
        }
        scalar => scalar.clone(),
    }
}

fn at(value: &Value, set: &FieldSet, step: &Step) -> Option<Value> {
    let (is_member, below) = set.at(step);
    match below {
        Some(below) => Some(extract(value, below)),
        None => is_member.then(|| value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extracted(value: &Value, fields: &Value) -> Value {
        extract(value, &FieldSet::from_json(fields).unwrap())
    }

    #[test]
    fn what_others_own_is_left_out() {
        let object = json!({
            "metadata": {"labels": {"ours": "1", "theirs": "2"}},
            "spec": {
                "replicas": 3,
                "ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 81, "protocol": "TCP"}],
                "args": ["a", "b"],
                "finalizers": ["x", "y"],
                "selector": {"app": "a"},
            },
        });
        let fields = json!({
            "f:metadata": {"f:labels": {"f:ours": {}}},
            "f:spec": {
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}},
                "f:args": {}, "f:finalizers": {"v:\"y\"": {}}, "f:selector": {}, "f:gone": {},
            },
        });
        assert_eq!(
            extracted(&object, &fields),
            json!({
                "metadata": {"labels": {"ours": "1"}},
                "spec": {"ports": [{"port": 80, "name": "web"}], "args": ["a", "b"], "finalizers": ["y"], "selector": {"app": "a"}},
            })
        );
    }
}
