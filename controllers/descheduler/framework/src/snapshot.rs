//! A snapshot of objects as JSON: of files, of lists, of tests.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node as ApiNode, Pod as ApiPod};
use koord_core::{intern::Interner, key::ObjectKey, uid::Uid};
use koord_types::node_metric::NodeMetric as ApiNodeMetric;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cluster::Cluster,
    metric::UsageReport,
    node::Node,
    objects::{DisruptionBudget, Namespace, Object, ObjectType, PriorityClass, VolumeClaim},
    pod::Pod,
};

/// An object that cannot be read. The others are in the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name}: {reason}")]
pub struct SnapshotError {
    pub kind: String,
    /// With its namespace.
    pub name: String,
    pub reason: String,
}

impl Cluster {
    /// A snapshot with these objects. Kinds that the framework does not know are left out; [`Cluster::set_json`] adds those of others.
    pub fn of(objects: &[Value]) -> (Self, Vec<SnapshotError>) {
        let mut cluster = Self::default();
        let mut strings = Interner::default();
        let errors = objects.iter().filter_map(|object| cluster.add(object, &mut strings).err());
        let errors = errors.collect();
        (cluster, errors)
    }

    /// Adds an object of a type, or replaces it.
    ///
    /// # Errors
    ///
    /// The object has not the form of its kind.
    pub fn set_json<T: ObjectType>(&mut self, object: &Value) -> Result<(), SnapshotError> {
        let value = T::of(&read::<T::Api>(object)?);
        let metadata = &object["metadata"];
        let uid = Uid::from(metadata["uid"].as_str().unwrap_or_default());
        let is_deleting = metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null());
        self.set_object(Object::new(key(object), uid, is_deleting, Arc::new(value)));
        Ok(())
    }

    fn add(&mut self, object: &Value, strings: &mut Interner) -> Result<(), SnapshotError> {
        match object["kind"].as_str().unwrap_or_default() {
            "Node" => {
                let node = Node::of(&read::<ApiNode>(object)?).map_err(|error| fault(object, error))?;
                self.set_node(Arc::new(node));
            }
            "Pod" => {
                let pod = Pod::of(&read::<ApiPod>(object)?, strings).map_err(|error| fault(object, error))?;
                self.set_pod(Arc::new(pod));
            }
            "NodeMetric" => {
                let metric = read::<ApiNodeMetric>(object)?;
                self.set_metric(key(object).name(), UsageReport::of(&metric.status));
            }
            "Namespace" => self.set_json::<Namespace>(object)?,
            "PodDisruptionBudget" => self.set_json::<DisruptionBudget>(object)?,
            "PersistentVolumeClaim" => self.set_json::<VolumeClaim>(object)?,
            "PriorityClass" => self.set_json::<PriorityClass>(object)?,
            _ => {}
        }
        Ok(())
    }
}

fn read<T: DeserializeOwned>(object: &Value) -> Result<T, SnapshotError> {
    T::deserialize(object).map_err(|error| fault(object, error))
}

fn key(object: &Value) -> ObjectKey {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    match text("namespace") {
        "" => ObjectKey::cluster(text("name")),
        namespace => ObjectKey::new(namespace, text("name")),
    }
}

fn fault(object: &Value, error: impl std::fmt::Display) -> SnapshotError {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    SnapshotError { kind, name: key(object).to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_cannot_be_read_harms_itself_alone() {
        let node = |name: &str, cpu: Value| json!({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu}}});
        let budget = json!({"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "ns"}, "spec": {"minAvailable": "50%"}});
        let (cluster, errors) =
            Cluster::of(&[node("a", json!("4")), node("b", json!({})), json!({"kind": "Widget"}), budget]);
        assert_eq!((cluster.nodes().count(), errors.len()), (1, 1));
        assert_eq!((errors[0].kind.as_str(), errors[0].name.as_str()), ("Node", "b"));
        let budget = cluster.objects().get::<DisruptionBudget>("ns/b").unwrap();
        assert_eq!(budget.demand.as_deref(), Some("minAvailable: 50%"));
    }
}
