//! A pod that does not exist, from the template of a question.

use std::sync::Arc;

use koord_runtime::{intern::Interner, key::ObjectKey, projection::WireObject, uid::Uid};
use koord_scheduler_framework::pod::Pod;
use serde_json::{Value, json};

use super::view::PriorityClassView;
use crate::{transform::Transformers, view::PodView};

/// The name of the pod and its uid.
const NAME: &str = "question-object";

/// The name of the priority class, where that alone says the priority.
pub(super) fn priority_class(template: &Value) -> Option<&str> {
    template["spec"]["priorityClassName"].as_str().filter(|_| template["spec"]["priority"].is_null())
}

/// What pods are made with.
pub(super) struct PodMaker<'a> {
    /// The priority class that the template names.
    pub(super) class: Option<&'a PriorityClassView>,
    /// What is made of every pod.
    pub(super) transformers: Transformers,
}

impl PodMaker<'_> {
    /// The pod that a template makes in a namespace, as if it had just been created.
    pub(super) fn pod(&self, template: &Value, namespace: &str) -> Result<Arc<Pod>, String> {
        let class = self.class;
        if !template["spec"].is_object() {
            return Err(
                "spec.questionObjectTemplate has no spec; write the template of a pod: metadata and spec".to_owned()
            );
        }
        let mut spec = template["spec"].clone();
        if let Some(name) = priority_class(template) {
            let built_in = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
            let built_in = built_in.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            let value = built_in.or_else(|| class.map(|class| class.value.unwrap_or(0)));
            let value =
                value.ok_or_else(|| format!("there is no PriorityClass {name}; create it, or write spec.priority"))?;
            spec["priority"] = json!(value);
            if spec["preemptionPolicy"].is_null() {
                spec["preemptionPolicy"] = json!(class.and_then(|class| class.preemption_policy.as_ref()));
            }
        }
        let member = |name: &str| template["metadata"][name].clone();
        let metadata = json!({
            "name": NAME, "namespace": namespace, "uid": NAME, "labels": member("labels"), "annotations": member("annotations"),
        });
        let object = json!({"metadata": metadata, "spec": spec}).to_string();
        let unreadable = |error: &dyn std::fmt::Display| format!("spec.questionObjectTemplate cannot be read: {error}");
        let wire: WireObject<'_, _> = serde_json::from_str(&object).map_err(|error| unreadable(&error))?;
        let view =
            PodView::read(wire, &mut Interner::default(), self.transformers).map_err(|error| unreadable(&error))?;
        Ok(Arc::new(Pod {
            key: ObjectKey::new(namespace, NAME),
            uid: Uid::from(NAME),
            ..Arc::unwrap_or_clone(view.pod)
        }))
    }
}
