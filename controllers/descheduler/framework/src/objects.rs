//! Objects beside nodes, pods and NodeMetrics, as far as plugins read them.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        core::v1::{Namespace as ApiNamespace, PersistentVolumeClaim},
        policy::v1::PodDisruptionBudget,
        scheduling::v1::PriorityClass as ApiPriorityClass,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::labels::Labels;
pub use koord_scheduler_framework::object::{Object, Objects};
use koord_scheduling::Selector;

/// What is kept of objects of a kind.
pub trait ObjectType: Sized + Send + Sync + PartialEq + 'static {
    const KIND: ResourceKind;
    /// The object as the API has it.
    type Api: serde::de::DeserializeOwned;

    fn of(object: &Self::Api) -> Self;
}

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Namespace {
    pub labels: Labels,
}

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DisruptionBudget {
    /// The pods that it is about; `None` where it selects none.
    pub selector: Option<Selector>,
    /// How many of them may be disrupted now, by its status.
    pub disruptions_allowed: i32,
    /// What it demands of the pods that stay, as its spec writes it.
    pub demand: Option<Arc<str>>,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeClaim {
    pub storage_class: Option<Arc<str>>,
}

/// A PriorityClass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriorityClass {
    pub value: i32,
}

impl ObjectType for Namespace {
    const KIND: ResourceKind = ResourceKind::typed::<ApiNamespace>();
    type Api = ApiNamespace;

    fn of(object: &Self::Api) -> Self {
        let labels = object.metadata.labels.iter().flatten();
        Self { labels: labels.map(|(key, value)| (&**key, &**value)).collect() }
    }
}

impl ObjectType for DisruptionBudget {
    const KIND: ResourceKind = ResourceKind::typed::<PodDisruptionBudget>();
    type Api = PodDisruptionBudget;

    fn of(object: &Self::Api) -> Self {
        let spec = object.spec.as_ref();
        let text = |name: &str, amount: &IntOrString| match amount {
            IntOrString::Int(number) => format!("{name}: {number}"),
            IntOrString::String(text) => format!("{name}: {text}"),
        };
        let demand = spec.and_then(|spec| {
            let least = spec.min_available.as_ref().map(|amount| text("minAvailable", amount));
            least.or_else(|| spec.max_unavailable.as_ref().map(|amount| text("maxUnavailable", amount)))
        });
        Self {
            selector: spec.and_then(|spec| spec.selector.as_ref()).and_then(Selector::stored),
            disruptions_allowed: object.status.as_ref().map_or(0, |status| status.disruptions_allowed),
            demand: demand.map(Arc::from),
        }
    }
}

impl ObjectType for VolumeClaim {
    const KIND: ResourceKind = ResourceKind::typed::<PersistentVolumeClaim>();
    type Api = PersistentVolumeClaim;

    fn of(object: &Self::Api) -> Self {
        let class = object.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
        Self { storage_class: class.map(Arc::from) }
    }
}

impl ObjectType for PriorityClass {
    const KIND: ResourceKind = ResourceKind::typed::<ApiPriorityClass>();
    type Api = ApiPriorityClass;

    fn of(object: &Self::Api) -> Self {
        Self { value: object.value }
    }
}
