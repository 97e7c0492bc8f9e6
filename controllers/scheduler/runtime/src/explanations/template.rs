//! A pod that does not exist, from the template of an explanation.

use std::sync::Arc;

use koord_runtime::{intern::Interner, key::ObjectKey, projection::WireObject, uid::Uid};
use koord_scheduler_framework::pod::Pod;
use serde_json::{Value, json};
use thiserror::Error;

use super::view::PriorityClassView;
use crate::{transform::Transformers, view::PodView};

/// The name of the pod and its uid.
const NAME: &str = "question-object";

/// The name of the priority class, where that alone says the priority.
pub(super) fn priority_class(template: &Value) -> Option<&str> {
    template["spec"]["priorityClassName"].as_str().filter(|_| template["spec"]["priority"].is_null())
}

/// Why the template of an explanation makes no pod. The message is written into the status of the explanation.
#[derive(Debug, Error)]
pub(super) enum TemplateError {
    #[error("spec.questionObjectTemplate has no spec; write the template of a pod: metadata and spec")]
    NoSpec,
    #[error("there is no PriorityClass {0}; create it, or write spec.priority")]
    NoPriorityClass(String),
    #[error("spec.questionObjectTemplate cannot be read: {0}")]
    Undecodable(String),
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
    pub(super) fn pod(&self, template: &Value, namespace: &str) -> Result<Arc<Pod>, TemplateError> {
        let class = self.class;
        if !template["spec"].is_object() {
            return Err(TemplateError::NoSpec);
        }
        let mut spec = template["spec"].clone();
        if let Some(name) = priority_class(template) {
            let built_in = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
            let built_in = built_in.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            let value = built_in.or_else(|| class.map(|class| class.value.unwrap_or(0)));
            let value = value.ok_or_else(|| TemplateError::NoPriorityClass(name.to_owned()))?;
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
        let undecodable = |error: &dyn std::fmt::Display| TemplateError::Undecodable(error.to_string());
        let wire: WireObject<'_, _> = serde_json::from_str(&object).map_err(|error| undecodable(&error))?;
        let view =
            PodView::read(wire, &mut Interner::default(), self.transformers).map_err(|error| undecodable(&error))?;
        Ok(Arc::new(Pod {
            key: ObjectKey::new(namespace, NAME),
            uid: Uid::from(NAME),
            ..Arc::unwrap_or_clone(view.pod)
        }))
    }
}
