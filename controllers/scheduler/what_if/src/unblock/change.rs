//! A change of objects that might let a pod be placed.

use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_runtime::{key::ObjectKey, uid::Uid};
use serde_json::{Value, json};

/// A change that belongs together, in words and as edits of objects.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// What is changed, such as `toleration`.
    pub(super) kind: &'static str,
    /// What distinguishes it from others of its kind, other than the node and the amount.
    pub(super) detail: String,
    /// It completes the sentence "would be placed on NODE if …".
    pub(super) text: String,
    /// How much is given up, in thousandths: the larger of two requests is the better answer.
    pub(super) loss: i64,
    pub(super) edits: Vec<Edit>,
    /// New objects.
    pub(super) added: Vec<Value>,
    /// Pods that end, whose objects have edits that say so.
    pub(super) ended: Vec<Uid>,
    /// When it comes about by itself, as far as that is known.
    pub(super) expected_at: Option<Timestamp>,
}

/// A value in an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edit {
    /// The kind of the object.
    pub(super) kind: ResourceKind,
    pub(super) key: ObjectKey,
    /// Where in the object, as a JSON pointer; `-` at its end appends to a list.
    pub(super) path: String,
    /// The value; null removes what is there.
    pub(super) value: Value,
}

impl Change {
    /// A change by edits.
    pub(super) fn of(kind: &'static str, text: impl Into<String>, edits: Vec<Edit>) -> Self {
        let text = text.into();
        let detail = text.clone();
        Self { kind, detail, text, loss: 0, edits, added: Vec::new(), ended: Vec::new(), expected_at: None }
    }

    /// With another word for what distinguishes it.
    pub(super) fn like(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    /// Whether it differs from another by nodes and amounts alone.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.kind, &self.detail) == (other.kind, &other.detail)
    }

    /// For programs.
    pub(super) fn document(&self) -> Value {
        let edits = self.edits.iter().map(|edit| {
            json!({"kind": edit.kind.kind, "object": edit.key.to_string(), "path": edit.path, "value": edit.value})
        });
        let added = self.added.iter().map(|object| {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let key = ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"));
            json!({"kind": text("/kind"), "object": key.to_string()})
        });
        let mut document = json!({
            "kind": self.kind, "text": self.text,
            "edits": edits.collect::<Vec<_>>(), "added": added.collect::<Vec<_>>(),
        });
        if let Some(at) = self.expected_at {
            document["expectedAt"] = json!(at.to_string());
        }
        document
    }
}

impl Edit {
    /// Makes it in an object.
    pub(super) fn apply(&self, object: &mut Value) {
        let tokens: Vec<String> = self.path.split('/').skip(1).map(unescaped).collect();
        put(object, &tokens, &self.value);
    }
}

/// A part of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

fn put(at: &mut Value, tokens: &[String], value: &Value) {
    let Some((token, rest)) = tokens.split_first() else {
        *at = value.clone();
        return;
    };
    if token == "-" {
        if at.is_null() {
            *at = json!([]);
        }
        if let Some(list) = at.as_array_mut() {
            list.push(value.clone());
        }
        return;
    }
    if let Some(list) = at.as_array_mut() {
        if let Some(item) = token.parse::<usize>().ok().and_then(|index| list.get_mut(index)) {
            put(item, rest, value);
        }
        return;
    }
    if at.is_null() {
        *at = json!({});
    }
    let Some(members) = at.as_object_mut() else { return };
    if rest.is_empty() && value.is_null() {
        members.remove(token);
    } else {
        put(members.entry(token.as_str()).or_insert(Value::Null), rest, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_set_append_and_remove() {
        let mut object = json!({"spec": {"containers": [{"name": "c"}], "nodeSelector": {"a/b": "x", "c": "y"}}});
        let edit = |path: &str, value: Value| Edit {
            kind: ResourceKind::POD,
            key: ObjectKey::new("ns", "a"),
            path: path.to_owned(),
            value,
        };
        for (path, value) in [
            ("/spec/containers/0/resources/requests/cpu", json!("1")),
            (&*format!("/spec/nodeSelector/{}", escaped("a/b")), Value::Null),
            ("/spec/tolerations/-", json!({"key": "k"})),
            ("/spec/tolerations/-", json!({"key": "l"})),
        ] {
            edit(path, value).apply(&mut object);
        }
        let containers = json!([{"name": "c", "resources": {"requests": {"cpu": "1"}}}]);
        let tolerations = json!([{"key": "k"}, {"key": "l"}]);
        let expected =
            json!({"spec": {"containers": containers, "nodeSelector": {"c": "y"}, "tolerations": tolerations}});
        assert_eq!(object, expected);
    }
}
