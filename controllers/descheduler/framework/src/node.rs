//! What is known of a node.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node as ApiNode, Taint};
use koord_resource::{Quantity, ResourceList, quantity::ParseQuantityError};
use koord_scheduler_framework::labels::Labels;
use koord_types::node_annotations::RAW_ALLOCATABLE;

/// A node, as it was reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub name: Arc<str>,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub is_unschedulable: bool,
    /// Whether no condition says that it is not ready.
    pub is_ready: bool,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
    /// `status.capacity`.
    pub capacity: ResourceList,
    /// What was allocatable before an amplification, from an annotation of Koordinator; `None` without one that can be read.
    pub raw_allocatable: Option<ResourceList>,
    /// What is wrong with that annotation, which then counts as absent.
    pub mistake: Option<Arc<str>>,
}

type Amounts = std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>;

impl Node {
    /// The node of an object of the API.
    ///
    /// # Errors
    ///
    /// An amount is no quantity, which no API server stores.
    pub fn of(object: &ApiNode) -> Result<Self, ParseQuantityError> {
        let status = object.status.as_ref();
        let spec = object.spec.as_ref();
        let labels = object.metadata.labels.iter().flatten();
        let annotations = object.metadata.annotations.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let raw = annotations.and_then(|annotations| annotations.get(RAW_ALLOCATABLE.name()));
        let (raw_allocatable, mistake) = match raw.map(|text| RAW_ALLOCATABLE.read(text)) {
            None => (None, None),
            Some(Ok(amounts)) => (Some(amounts), None),
            Some(Err(error)) => (None, Some(error.to_string().into())),
        };
        Ok(Self {
            name: object.metadata.name.as_deref().unwrap_or_default().into(),
            labels: labels.map(|(key, value)| (&**key, &**value)).collect(),
            taints: spec.and_then(|spec| spec.taints.clone()).unwrap_or_default(),
            is_unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
            is_ready: conditions
                .filter(|condition| condition.type_ == "Ready")
                .all(|condition| condition.status == "True"),
            allocatable: amounts(status.and_then(|status| status.allocatable.as_ref()))?,
            capacity: amounts(status.and_then(|status| status.capacity.as_ref()))?,
            raw_allocatable,
            mistake,
        })
    }

    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key)
    }
}

fn amounts(amounts: Option<&Amounts>) -> Result<ResourceList, ParseQuantityError> {
    let amounts = amounts.into_iter().flatten();
    amounts.map(|(name, amount)| Ok((&**name, amount.0.parse::<Quantity>()?))).collect()
}
