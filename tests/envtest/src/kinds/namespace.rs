//! Namespaces: a finalizer in the spec, a phase in the status, a label with the name.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    environment, metadata,
    names::NameRule,
    status::{ApiError, Subject},
    strategy::{Strategy, WriteContext},
};

/// Namespaces that cannot be deleted.
const PROTECTED: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) struct Namespaces;

impl Strategy for Namespaces {
    fn name_rule(&self) -> NameRule {
        NameRule::Label
    }

    fn has_own_field_labels(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        let name = metadata::text(object, "name").to_owned();
        if name.is_empty() {
            return;
        }
        let labels = metadata::of_mut(object).entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
        }
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        object["status"] = json!({"phase": "Active"});
        if !object["spec"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|name| name == "kubernetes")) {
            let mut finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
            finalizers.push(json!("kubernetes"));
            object["spec"] = json!({"finalizers": finalizers});
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str, _around: &WriteContext<'_>) {
        if subresource == "finalize" {
            new["status"] = old["status"].clone();
        } else {
            new["spec"] = old["spec"].clone();
            if subresource.is_empty() {
                new["status"] = old["status"].clone();
            }
        }
    }

    fn delete(&self, object: &Value, now: Timestamp) -> Result<Option<Value>, ApiError> {
        let name = metadata::text(object, "name");
        if PROTECTED.contains(&name) {
            let about = Subject { group: "", resource: "namespaces", name };
            return Err(ApiError::forbidden(about, "this namespace may not be deleted"));
        }
        let spec_is_final = object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if spec_is_final && metadata::is_deleting(object) && metadata::finalizers(object).next().is_none() {
            return Ok(None);
        }
        let mut object = object.clone();
        if !metadata::is_deleting(&object) {
            metadata::of_mut(&mut object).insert("deletionTimestamp".to_owned(), json!(environment::time_text(now)));
        }
        object["status"]["phase"] = json!("Terminating");
        Ok(Some(object))
    }
}
