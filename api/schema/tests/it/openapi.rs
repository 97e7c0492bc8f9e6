//! The types of built-in kinds, read from the OpenAPI documents beside the recordings.

use std::{collections::BTreeMap, path::PathBuf, sync::LazyLock};

use koord_schema::typed::{ListKey, Shape, TypeNode};
use serde_json::{Map, Value};

/// A place in a built-in type: the field's own schema, which may name a definition.
#[derive(Clone, Copy)]
pub(crate) struct Node(&'static Value);

struct Documents {
    definitions: BTreeMap<String, Value>,
    kinds: BTreeMap<(String, String), String>,
}

static DOCUMENTS: LazyLock<Documents> = LazyLock::new(|| {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let shared = std::env::var("KOORD_SHARED").unwrap_or_else(|_| beside.to_owned());
    let mut documents = Documents { definitions: BTreeMap::new(), kinds: BTreeMap::new() };
    for entry in std::fs::read_dir(PathBuf::from(shared).join("data/openapi-v3")).into_iter().flatten() {
        let path = entry.unwrap().path();
        let Ok(document) = serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()) else { continue };
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let text = |field: &str| kind[field].as_str().unwrap().to_owned();
                let version = if text("group").is_empty() {
                    text("version")
                } else {
                    format!("{}/{}", text("group"), text("version"))
                };
                documents.kinds.insert((version, text("kind")), name.clone());
            }
            documents.definitions.insert(name.clone(), schema.clone());
        }
    }
    documents
});

impl Node {
    /// The type of a kind, where it is a built-in one.
    pub(crate) fn of_kind(api_version: &str, kind: &str) -> Option<Self> {
        let name = DOCUMENTS.kinds.get(&(api_version.to_owned(), kind.to_owned()))?;
        Some(Node(&DOCUMENTS.definitions[name]))
    }

    fn definition(self) -> &'static Value {
        let reference = self.0.get("$ref").or_else(|| self.0.pointer("/allOf/0/$ref")).and_then(Value::as_str);
        match reference {
            Some(reference) => &DOCUMENTS.definitions[reference.rsplit('/').next().unwrap()],
            None => self.0,
        }
    }

    fn text(self, name: &str) -> Option<&'static str> {
        self.0.get(name).or_else(|| self.definition().get(name)).and_then(Value::as_str)
    }
}

impl TypeNode for Node {
    fn shape(&self) -> Shape {
        let definition = self.definition();
        if definition.get("oneOf").is_some() || definition["format"] == "int-or-string" {
            return Shape::Scalar;
        }
        match definition["type"].as_str() {
            Some("string") => Shape::String,
            Some("integer" | "number") => Shape::Number,
            Some("boolean") => Shape::Boolean,
            Some("object") if self.text("x-kubernetes-map-type") == Some("atomic") => Shape::AtomicObject,
            Some("object")
                if definition.get("properties").is_none() && definition.get("additionalProperties").is_none() =>
            {
                Shape::Untyped
            }
            Some("object") => Shape::Object,
            Some("array") => match self.text("x-kubernetes-list-type") {
                Some("map") => Shape::KeyedList,
                Some("set") => Shape::SetList,
                _ => Shape::AtomicList,
            },
            _ => Shape::Untyped,
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        let definition = self.definition();
        definition
            .get("properties")
            .and_then(|fields| fields.get(name))
            .or_else(|| definition.get("additionalProperties"))
            .or_else(|| (self.shape() == Shape::Untyped).then_some(definition))
            .map(Node)
    }

    fn declares(&self, name: &str) -> bool {
        self.definition().get("properties").is_some_and(|fields| fields.get(name).is_some())
    }

    fn item(&self) -> Option<Self> {
        self.definition().get("items").map(Node)
    }

    fn list_keys(&self) -> Vec<ListKey<'_>> {
        let keys =
            self.0.get("x-kubernetes-list-map-keys").or_else(|| self.definition().get("x-kubernetes-list-map-keys"));
        let item = self.item();
        let key = |name: &'static str| ListKey {
            name,
            default: item.as_ref().and_then(|item| item.definition()["properties"][name].get("default")),
        };
        keys.and_then(Value::as_array).into_iter().flatten().map(|name| key(name.as_str().unwrap())).collect()
    }

    fn zero(&self) -> Value {
        let definition = self.definition();
        let required: Vec<&str> =
            definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut zero = Map::new();
        for (name, field) in definition["properties"].as_object().into_iter().flatten() {
            let node = Node(field);
            match (field.get("default"), node.shape()) {
                (Some(Value::Object(_)), Shape::Object | Shape::AtomicObject) => {
                    zero.insert(name.clone(), node.zero());
                }
                (Some(default), _) => {
                    zero.insert(name.clone(), default.clone());
                }
                // The times of an Event are the only ones of a kind that are always written.
                (None, _)
                    if required.contains(&name.as_str()) || name.ends_with("Timestamp") || name == "eventTime" =>
                {
                    zero.insert(name.clone(), Value::Null);
                }
                _ => {}
            }
        }
        Value::Object(zero)
    }

    fn patch_merge_key(&self) -> Option<&str> {
        self.0.get("x-kubernetes-patch-merge-key").and_then(Value::as_str)
    }

    fn patch_strategy(&self) -> Option<&str> {
        self.0.get("x-kubernetes-patch-strategy").and_then(Value::as_str)
    }
}
