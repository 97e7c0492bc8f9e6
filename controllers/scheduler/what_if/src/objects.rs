//! The objects behind the engine, one by one.

use std::collections::BTreeMap;

use anyhow::Result;
use koord_resource::controller::ResourceKind;
use koord_runtime::key::ObjectKey;
use koord_scheduler_runtime::Transformers;
use kube::Client;
use serde_json::{Value, json};

/// Looks objects up: those of a cluster when they are asked for, and once.
pub struct Objects {
    cluster: Option<Client>,
    known: BTreeMap<(String, ObjectKey), Option<Value>>,
    /// What the scheduler makes of pods.
    pub transformers: Transformers,
}

impl Objects {
    /// Those of a cluster.
    pub fn of_cluster(client: Client) -> Self {
        Self { cluster: Some(client), known: BTreeMap::new(), transformers: Transformers::default() }
    }

    /// These.
    pub fn of_files(objects: &[Value]) -> Self {
        let mut all = Self { cluster: None, known: BTreeMap::new(), transformers: Transformers::default() };
        for object in objects {
            all.add(object.clone());
        }
        all
    }

    /// One more.
    pub fn add(&mut self, object: Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let key = ObjectKey::new(text("/metadata/namespace"), text("/metadata/name"));
        self.known.insert((text("/kind").to_owned(), key), Some(object));
    }

    /// An object; none where there is none.
    pub async fn get(&mut self, kind: ResourceKind, key: &ObjectKey) -> Result<Option<Value>> {
        let known = (kind.kind.to_owned(), key.clone());
        if let Some(object) = self.known.get(&known) {
            return Ok(object.clone());
        }
        let object = match &self.cluster {
            Some(client) => {
                koord_program::listing::get(client, &kind.url_path(key.namespace(), Some(key.name()))).await?
            }
            // A file may leave the default namespace out.
            None if kind.namespaced && key.namespace() == "default" => {
                let bare = ObjectKey::new("", key.name());
                self.known.get(&(kind.kind.to_owned(), bare)).cloned().flatten()
            }
            None => None,
        };
        let object = object.map(|mut object| {
            object["apiVersion"] = json!(kind.api_version());
            object["kind"] = json!(kind.kind);
            object
        });
        self.known.insert(known, object.clone());
        Ok(object)
    }
}
