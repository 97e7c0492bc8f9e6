//! The reserve pod: a Reservation as a pod, while it is placed and on its node (3C.2).

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{Container, PodSpec, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
};
use koord_core::{key::ObjectKey, uid::Uid};
use koord_resource::{ResourceList, controller::ResourceKind, quantity::ParseQuantityError};
use koord_scheduler_framework::{
    pod::{Pod, Reference, Template},
    template::given,
};
use koord_types::{
    priority::SUB_PRIORITY_LABEL,
    reservation::{Reservation, ReservationPhase, ReservationStatus},
};

/// Annotation of a reserve pod.
const RESERVE_POD: &str = "scheduling.koordinator.sh/reserve-pod";
/// Annotation: the name of the Reservation.
const NAME: &str = "scheduling.koordinator.sh/reservation-name";
/// Annotation: the only node that the Reservation wants.
const NODE: &str = "scheduling.koordinator.sh/reservation-node";
/// The container of a Reservation that keeps something else than its template requests.
const RESIZED: &str = "__internal_fake_container__";

/// The reserve pod of a Reservation.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservePod {
    /// The pod, with the uid of the Reservation as its name.
    pub pod: Pod,
    /// What the template of the Reservation requests.
    pub requests: ResourceList,
}

/// Why a Reservation cannot be placed.
#[derive(Debug, thiserror::Error)]
pub enum ReservePodError {
    /// Its template is no pod template.
    #[error("spec.template: {0}")]
    Template(#[from] serde_json::Error),
    /// An amount of its template is no quantity.
    #[error("spec.template: {0}")]
    Quantity(#[from] ParseQuantityError),
}

impl ReservePod {
    /// The pod of a Reservation.
    pub fn new(object: &Reservation) -> Result<Self, ReservePodError> {
        let template = object.spec.pod_template()?;
        let metadata = template.metadata.unwrap_or_default();
        let namespace = metadata.namespace.filter(|namespace| !namespace.is_empty());
        let namespace = namespace.as_deref().unwrap_or("default");
        let overlaid = |below: Option<BTreeMap<String, String>>, above: &Option<BTreeMap<String, String>>| {
            let mut all = below.unwrap_or_default();
            all.extend(above.clone().unwrap_or_default());
            all
        };
        let labels = overlaid(metadata.labels, &object.metadata.labels);
        let mut annotations = overlaid(metadata.annotations, &object.metadata.annotations);
        let name = object.metadata.name.clone().unwrap_or_default();
        annotations.extend([(RESERVE_POD.to_owned(), "true".to_owned()), (NAME.to_owned(), name.clone())]);
        let mut spec = template.spec.unwrap_or_default();
        if let Some(node) = spec.node_name.take().filter(|node| !node.is_empty()) {
            annotations.insert(NODE.to_owned(), node);
        }
        // Of the Reservation itself: what the template is labelled with says something about pods.
        let reservation_labels = object.metadata.labels.as_ref();
        let by_label = reservation_labels.and_then(|labels| labels.get(SUB_PRIORITY_LABEL)?.parse().ok());
        spec.priority = spec.priority.or(by_label).or(Some(i32::MAX));
        let of = |spec: &PodSpec| {
            let annotations = annotations.iter().map(|(key, value)| (&**key, &**value)).collect();
            Template::of(namespace, labels.iter().map(|(key, value)| (&**key, &**value)).collect(), &annotations, spec)
        };
        let mut template = of(&spec)?;
        let requests = template.requests.clone();
        let status = &object.status;
        let is_available = status.phase == Some(ReservationPhase::Available);
        if is_available && !status.allocatable.is_empty() && status.allocatable != requests {
            let mut allocatable = requests.clone();
            for (name, amount) in &status.allocatable {
                allocatable.insert(name, amount.clone());
            }
            resize(&mut spec, &allocatable);
            template = of(&spec)?;
        }
        let annotations = annotations.iter().map(|(key, value)| (&**key, &**value)).collect();
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let created = object.metadata.creation_timestamp.as_ref();
        let reference = Reference { kind: ResourceKind::typed::<Reservation>(), key: ObjectKey::cluster(&name) };
        let pod = Pod {
            key: ObjectKey::new(namespace, uid),
            uid: Uid::from(uid),
            template: Arc::new(template),
            node: (!status.node_name.is_empty()).then(|| (&*status.node_name).into()),
            deleting: object.metadata.deletion_timestamp.is_some(),
            created: created.map_or(0, |created| created.0.as_second()),
            given: given(&annotations),
            reservation: Some(Arc::new(reference)),
            ..Pod::default()
        };
        Ok(Self { pod, requests })
    }

    /// The only node that the Reservation requires.
    pub fn required_node(pod: &Pod) -> Option<&str> {
        pod.template.annotations.get(NODE).filter(|_| pod.is_reservation())
    }
}

/// Lets one container request all of this, and the others nothing.
fn resize(spec: &mut PodSpec, allocatable: &ResourceList) {
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        if let Some(resources) = &mut container.resources {
            resources.requests = None;
        }
    }
    (spec.overhead, spec.resources) = (None, None);
    let requests = allocatable.iter().map(|(name, amount)| (name.to_owned(), ApiQuantity(amount.to_string())));
    spec.containers.push(Container {
        name: RESIZED.to_owned(),
        resources: Some(ResourceRequirements { requests: Some(requests.collect()), ..ResourceRequirements::default() }),
        ..Container::default()
    });
}

/// Whether a Reservation is used up, or has failed.
pub fn is_over(status: &ReservationStatus) -> bool {
    matches!(status.phase, Some(ReservationPhase::Succeeded | ReservationPhase::Failed))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reserve_pod(template: &Value, metadata: &Value, status: &Value) -> ReservePod {
        let object = json!({"metadata": metadata, "spec": {"template": template, "owners": [{}]}, "status": status});
        ReservePod::new(&serde_json::from_value(object).unwrap()).unwrap()
    }

    fn template(spec: &Value) -> Value {
        let mut all = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": all})
    }

    fn named() -> Value {
        json!({"name": "r", "uid": "u", "labels": {"b": "2"}})
    }

    #[test]
    fn the_pod_is_the_template_under_the_metadata_of_the_reservation() {
        let ReservePod { pod, requests } = reserve_pod(&template(&json!({"nodeName": "n1"})), &named(), &json!({}));
        assert_eq!((pod.key.as_str(), &pod.uid, pod.node.as_ref()), ("default/u", &Uid::from("u"), None));
        assert_eq!((pod.template.labels.get("a"), pod.template.labels.get("b")), (Some("1"), Some("2")));
        assert_eq!((pod.template.priority, &*pod.template.scheduler), (i32::MAX, "default-scheduler"));
        assert_eq!((ReservePod::required_node(&pod), pod.is_reservation()), (Some("n1"), true));
        assert_eq!(requests, pod.template.requests);
        assert_eq!(pod.template.annotations.get("scheduling.koordinator.sh/reservation-name"), Some("r"));
    }

    #[test]
    fn the_priority_is_the_templates_or_the_labels_or_the_highest() {
        let priority = |spec: Value, label: &str| {
            let metadata = json!({"name": "r", "uid": "u", "labels": {"koordinator.sh/priority": label}});
            reserve_pod(&template(&spec), &metadata, &json!({})).pod.template.priority
        };
        assert_eq!(priority(json!({"priority": 7}), "9"), 7);
        assert_eq!([priority(json!({}), "9"), priority(json!({}), "x")], [9, i32::MAX]);
    }

    #[test]
    fn an_available_reservation_reserves_what_its_status_says() {
        let kept = |phase: &str, cpu: &str| {
            let status = json!({"phase": phase, "nodeName": "n1", "allocatable": {"cpu": cpu}});
            let ReservePod { pod, requests } = reserve_pod(&template(&json!({})), &named(), &status);
            (pod.template.requests.amount("cpu").to_string(), requests.amount("cpu").to_string())
        };
        assert_eq!(kept("Available", "6"), ("6".to_owned(), "4".to_owned()));
        assert_eq!(kept("Available", "4").0, "4");
        assert_eq!(kept("Pending", "6").0, "4");
    }

    #[test]
    fn a_template_that_is_none_is_an_error() {
        let object = json!({"metadata": {}, "spec": {"template": {"spec": {"containers": 1}}, "owners": [{}]}});
        let error = ReservePod::new(&serde_json::from_value(object).unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("spec.template: "), "{error}");
    }
}
