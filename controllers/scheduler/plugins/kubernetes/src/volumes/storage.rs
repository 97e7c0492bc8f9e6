//! What claims, volumes and classes say, as Kubernetes reads them.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        core::v1::{PersistentVolume, PersistentVolumeClaim},
        storage::v1::StorageClass,
    },
    apimachinery::pkg::{api::resource::Quantity as ApiQuantity, apis::meta::v1::ObjectMeta},
};
use koord_core::key::ObjectKey;
use koord_resource::Quantity;
use koord_scheduler_framework::{
    event::Event, labels::Labels, node::Node, object::Objects, pod::Pod, volume::PodClaim,
};
use koord_scheduling::NodeTerm;

/// The node for which a volume is to be made; the provisioner waits for it.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// A controller has bound claim and volume to each other.
pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// A controller has chosen the claim of a volume, not its user.
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

const STORAGE: &str = "storage";

pub(super) fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The class of a claim; empty without one.
pub(super) fn class_of_claim(claim: &PersistentVolumeClaim) -> &str {
    let stated = || claim.spec.as_ref()?.storage_class_name.as_deref();
    annotation(&claim.metadata, BETA_CLASS).or_else(stated).unwrap_or_default()
}

/// The class of a volume; empty without one.
pub(super) fn class_of_volume(volume: &PersistentVolume) -> &str {
    let stated = || volume.spec.as_ref()?.storage_class_name.as_deref();
    annotation(&volume.metadata, BETA_CLASS).or_else(stated).unwrap_or_default()
}

/// The volume that a claim names.
pub(super) fn volume_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether claim and volume are bound to each other.
pub(super) fn is_fully_bound(claim: &PersistentVolumeClaim) -> bool {
    volume_of(claim).is_some() && annotation(&claim.metadata, BIND_COMPLETED).is_some()
}

/// How much a claim requests; none where it does not say.
pub(super) fn requested(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    amount(claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?)
}

/// How much a volume holds.
pub(super) fn capacity(volume: &PersistentVolume) -> Quantity {
    volume.spec.as_ref().and_then(|spec| amount(spec.capacity.as_ref()?)).unwrap_or_default()
}

fn amount(amounts: &BTreeMap<String, ApiQuantity>) -> Option<Quantity> {
    parsed(amounts.get(STORAGE)?)
}

pub(super) fn parsed(amount: &ApiQuantity) -> Option<Quantity> {
    amount.0.parse().ok()
}

/// Whether volumes of a class are bound when the first pod with the claim has its node.
pub(super) fn waits_for_consumer(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// A claim of a pod, as it is stored.
pub(super) fn stored<'a>(claim: &PodClaim, objects: &'a Objects) -> Option<&'a PersistentVolumeClaim> {
    objects.get(claim.key.as_str())
}

/// Whether an event is about a claim of the pod, which is there now; `is_new` where only its creation counts.
pub(super) fn is_claim_of(pod: &Pod, event: &Event, is_new: bool) -> bool {
    let Event::Object(change) = event else { return false };
    let Some((old, Some(_))) = change.of::<PersistentVolumeClaim>() else { return false };
    let is_known = |key: &ObjectKey| pod.claims().iter().any(|claim| claim.key == *key);
    !(is_new && old.is_some()) && change.key().is_some_and(is_known)
}

/// The nodes from which a volume can be reached.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach(Option<Vec<NodeTerm>>);

impl Reach {
    pub(super) fn of(volume: &PersistentVolume) -> Self {
        let required = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
        Self(required.map(|required| required.node_selector_terms.iter().filter_map(NodeTerm::new).collect()))
    }

    /// Whether this node is one of them. Nodes of volumes go by their labels, never by their names.
    pub(super) fn includes(&self, labels: &Labels) -> bool {
        self.0.as_ref().is_none_or(|terms| terms.iter().any(|term| term.selects("", |key| labels.get(key))))
    }
}

/// The host names to which the nodes are limited from which a volume can be reached; none where they are not.
pub(super) fn hosts(volume: &PersistentVolume) -> Option<Vec<&str>> {
    let required = volume.spec.as_ref()?.node_affinity.as_ref()?.required.as_ref()?;
    let mut hosts = Vec::new();
    for term in &required.node_selector_terms {
        let mut names = term.match_expressions.iter().flatten();
        let names = names.find(|test| test.key == HOST_NAME && test.operator == "In")?;
        hosts.extend(names.values.iter().flatten().map(String::as_str));
    }
    Some(hosts)
}

/// The label by which local volumes name their node.
const HOST_NAME: &str = "kubernetes.io/hostname";

/// The host name of a node.
pub(super) fn host(node: &Node) -> Option<&str> {
    node.labels.get(HOST_NAME)
}
