//! What is made of pods and nodes before anything decides by them (`spec/scheduler.md` 1.7).

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, PodSpec},
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
};
use koord_api::{
    node_annotations::{NODE_RESERVATION, NodeReservation, NodeReservationApplyPolicy},
    resource_names::{BATCH_CPU, BATCH_MEMORY, DEPRECATED},
};
use koord_engine::labels::Labels;
use koord_resource::{Quantity, ResourceList, quantity::Format};

/// The label that names another scheduler than the pod itself.
const SCHEDULER_NAME: &str = "scheduling.koordinator.sh/scheduler-name";

type Amounts = BTreeMap<String, ApiQuantity>;

/// Gives resources the names that they have now, and the pod to the scheduler that its label names.
pub(crate) fn pod(spec: &mut PodSpec, labels: &Labels) {
    let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
    containers.flat_map(amounts).chain(&mut spec.overhead).for_each(rename);
    if let Some(name) = labels.get(SCHEDULER_NAME).filter(|name| !name.is_empty()) {
        spec.scheduler_name = Some(name.to_owned());
    }
}

fn amounts(container: &mut Container) -> impl Iterator<Item = &mut Amounts> {
    container.resources.iter_mut().flat_map(|resources| [&mut resources.requests, &mut resources.limits]).flatten()
}

/// Gives amounts the names that they have now, unless that name is there too.
pub(crate) fn rename(amounts: &mut Amounts) {
    for (old, new) in DEPRECATED {
        if !amounts.contains_key(*new)
            && let Some(amount) = amounts.remove(*old)
        {
            amounts.insert((*new).to_owned(), amount);
        }
    }
}

/// Takes off what a node keeps away from pods, by the text of its annotation. Batch resources have that off already. A text that
/// makes no sense keeps nothing.
pub(crate) fn keep_away(reservation: Option<&str>, allocatable: &mut ResourceList) {
    let Some(reservation) = reservation.and_then(|text| NODE_RESERVATION.read(text).ok()) else { return };
    if reservation.apply_policy == Some(NodeReservationApplyPolicy::ReservedCpusOnly) {
        return;
    }
    if let Some(kept) = kept(&reservation) {
        let taken: Vec<(String, Quantity)> = kept
            .iter()
            .filter(|(name, _)| allocatable.contains(name) && *name != BATCH_CPU && *name != BATCH_MEMORY)
            .map(|(name, amount)| (name.clone(), amount.clone()))
            .collect();
        *allocatable = allocatable.minus_down_to_zero(&taken.into_iter().collect());
    }
}

/// How much is kept: CPUs that are named go before an amount of CPU.
fn kept(reservation: &NodeReservation) -> Option<ResourceList> {
    let mut kept = reservation.resources.clone();
    if !reservation.reserved_cpus.is_empty() {
        let cpus = reservation.cpus().ok()?.len();
        kept.insert("cpu", Quantity::new(i64::try_from(cpus).ok()?, Format::DecimalSI));
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn left(reservation: &str) -> String {
        let amounts = [("cpu", "8"), ("memory", "1Gi"), (BATCH_CPU, "4000")];
        let mut allocatable: ResourceList =
            amounts.into_iter().map(|(name, amount)| (name, amount.parse::<Quantity>().unwrap())).collect();
        keep_away(Some(reservation), &mut allocatable);
        ["cpu", "memory", BATCH_CPU].map(|name| allocatable.amount(name).to_string()).join(" ")
    }

    #[test]
    fn what_a_node_keeps_away_is_not_allocatable() {
        assert_eq!(left(r#"{"resources":{"cpu":"2","memory":"2Gi","example.com/x":"1"}}"#), "6 0 4k");
        assert_eq!(left(r#"{"resources":{"cpu":"2"},"reservedCPUs":"0-3"}"#), "4 1Gi 4k");
        assert_eq!(left(r#"{"resources":{"kubernetes.io/batch-cpu":"1000"}}"#), "8 1Gi 4k");
        let nothing = [r#"{"resources":{"cpu":"2"},"applyPolicy":"ReservedCPUsOnly"}"#, r#"{"reservedCPUs":"x"}"#, "?"];
        assert_eq!(nothing.map(left), ["8 1Gi 4k"; 3]);
    }

    #[test]
    fn a_pod_has_todays_resources_and_the_scheduler_of_its_label() {
        let resources = json!({"requests": {"koordinator.sh/batch-cpu": "1000"}, "limits": {"kubernetes.io/gpu": "1"}});
        let both = json!({"requests": {"koordinator.sh/batch-cpu": "1", "kubernetes.io/batch-cpu": "2"}});
        let spec = json!({
            "containers": [{"name": "a", "resources": resources}], "initContainers": [{"name": "b", "resources": both}],
            "overhead": {"koordinator.sh/batch-memory": "1Gi"}, "schedulerName": "default-scheduler",
        });
        let mut spec: PodSpec = serde_json::from_value(spec).unwrap();
        pod(&mut spec, &[(SCHEDULER_NAME, "koord-scheduler")].into_iter().collect());
        let changed = serde_json::to_value(&spec).unwrap();
        assert_eq!(changed["schedulerName"], "koord-scheduler");
        assert_eq!(changed["overhead"], json!({BATCH_MEMORY: "1Gi"}));
        let expected = json!({"requests": {BATCH_CPU: "1000"}, "limits": {"koordinator.sh/gpu": "1"}});
        assert_eq!(changed["containers"][0]["resources"], expected);
        assert_eq!(changed["initContainers"][0]["resources"], both);
    }
}
