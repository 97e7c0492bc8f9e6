//! The pods that arguments of plugins choose.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_scheduling::{Selector, SelectorError};

use crate::{pod::Pod, reason::ReasonCode};

/// Namespaces: those that are named, or all but those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSelection {
    include: BTreeSet<String>,
    exclude: BTreeSet<String>,
}

/// Pods by their namespace and labels.
#[derive(Clone, Debug, Default)]
pub struct PodSelection {
    pub namespaces: NamespaceSelection,
    /// `None` selects all.
    pub labels: Option<Selector>,
}

impl NamespaceSelection {
    /// With names in `include`, these alone; else all but those in `exclude`.
    pub fn new(include: &[String], exclude: &[String]) -> Self {
        Self { include: include.iter().cloned().collect(), exclude: exclude.iter().cloned().collect() }
    }

    pub fn selects(&self, namespace: &str) -> bool {
        if self.include.is_empty() { !self.exclude.contains(namespace) } else { self.include.contains(namespace) }
    }

    /// Whether it selects the namespace of a pod.
    pub fn selects_pod(&self, pod: &Pod) -> bool {
        let is_everything = self.include.is_empty() && self.exclude.is_empty();
        is_everything || self.selects(pod.namespace())
    }
}

impl PodSelection {
    /// # Errors
    ///
    /// The label selector is none.
    pub fn new(namespaces: NamespaceSelection, labels: Option<&LabelSelector>) -> Result<Self, SelectorError> {
        Ok(Self { namespaces, labels: labels.map(Selector::new).transpose()? })
    }

    pub fn selects(&self, pod: &Pod) -> bool {
        self.check(pod).is_ok()
    }

    /// Whether it selects a pod, and else why not.
    pub fn check(&self, pod: &Pod) -> Result<(), ReasonCode> {
        if !self.namespaces.selects_pod(pod) {
            return Err(ReasonCode::NamespaceNotSelected);
        }
        match &self.labels {
            Some(labels) if !labels.selects(|key| pod.label(key)) => Err(ReasonCode::LabelsNotSelected),
            _ => Ok(()),
        }
    }
}
