//! What is made of pods and nodes before anything decides by them (`spec/scheduler.md` 1.7).

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, PodSpec},
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
};
use koord_resource::{Quantity, ResourceList, quantity::Format};
use koord_scheduler_framework::{labels::Labels, pod::Template};
use koord_types::{
    node_annotations::{NODE_RESERVATION, NodeReservation, NodeReservationApplyPolicy},
    pod_annotations::ResourceReplacements,
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    protocol::Text as _,
    qos::{QOS_LABEL, QosClass},
    resource_names::{BATCH_CPU, BATCH_MEMORY, DEPRECATED},
};

/// The label that names another scheduler than the pod itself.
const SCHEDULER_NAME: &str = "scheduling.koordinator.sh/scheduler-name";

/// The label that says whether pods may be evicted for the pod.
const PREEMPTION_POLICY: &str = "scheduling.koordinator.sh/preemption-policy";

type Amounts = BTreeMap<String, ApiQuantity>;

/// What is made of pods where a feature gate says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transformers {
    /// `PriorityTransformer`: a pod without a priority has that of its class.
    pub priority: bool,
    /// `PreemptionPolicyTransformer`: a label says whether pods are evicted for it, and without one none are.
    pub preemption_policy: bool,
    /// `ReplaceResourcesTransformer`: an annotation gives resources other names.
    pub replace_resources: bool,
}

/// What is done with pods of the type `PodViewBy<T>`: all of the program share one cache of them.
pub(crate) trait WithPods {
    /// What comes of it.
    type Done;

    /// Does it.
    fn with<const T: u8>(self) -> Self::Done;
}

impl Transformers {
    fn bits(self) -> u8 {
        u8::from(self.priority) | u8::from(self.preemption_policy) << 1 | u8::from(self.replace_resources) << 2
    }

    pub(crate) const fn of_bits(bits: u8) -> Self {
        Self { priority: bits & 1 != 0, preemption_policy: bits & 2 != 0, replace_resources: bits & 4 != 0 }
    }

    /// Does something with the type that pods have which these transformers make.
    pub(crate) fn choose<W: WithPods>(self, work: W) -> W::Done {
        match self.bits() {
            0 => work.with::<0>(),
            1 => work.with::<1>(),
            2 => work.with::<2>(),
            3 => work.with::<3>(),
            4 => work.with::<4>(),
            5 => work.with::<5>(),
            6 => work.with::<6>(),
            _ => work.with::<7>(),
        }
    }

    /// Gives resources the names that an annotation wants, or drops them.
    pub(crate) fn replace_resources(self, spec: &mut PodSpec, annotation: Option<&str>) {
        let Some(Ok(ResourceReplacements(pairs))) = annotation.map(ResourceReplacements::read) else { return };
        if !self.replace_resources {
            return;
        }
        let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
        containers.flat_map(amounts).chain(&mut spec.overhead).for_each(|amounts| replace(amounts, &pairs));
    }

    /// Gives a pod its priority, and says whether pods are evicted for it.
    pub(crate) fn apply_to(self, template: &mut Template, priority: Option<i32>) {
        let label = |name: &str| template.labels.get(name);
        if self.priority && priority.is_none_or(|priority| priority == 0) {
            let qos = QosClass::of_label(label(QOS_LABEL)).or_else(|| QosClass::of_kubernetes(template.kubernetes_qos));
            let declared = PriorityClass::declared(label(PRIORITY_CLASS_LABEL), priority);
            let class = declared.or_else(|| qos.as_ref().and_then(PriorityClass::of_qos));
            template.priority = class.map_or(0, PriorityClass::default_priority);
        }
        if self.preemption_policy {
            template.preempts = template.labels.get(PREEMPTION_POLICY) == Some("PreemptLowerPriority");
        }
    }
}

/// What is dropped is dropped first. A resource that is there under the new name too stays. Cores become thousandths.
fn replace(amounts: &mut Amounts, pairs: &[(String, String)]) {
    for (old, _) in pairs.iter().filter(|(_, new)| new.is_empty()) {
        amounts.remove(old);
    }
    for (old, new) in pairs.iter().filter(|(_, new)| !new.is_empty()) {
        let Some(amount) = amounts.get(old).filter(|_| !amounts.contains_key(new)) else { continue };
        let amount = match amount.0.parse::<Quantity>() {
            Ok(cores) if old == "cpu" => ApiQuantity(cores.milli_value().to_string()),
            _ => amount.clone(),
        };
        amounts.remove(old);
        amounts.insert(new.clone(), amount);
    }
}

/// Gives resources the names that they have now, and the pod to the scheduler that its label names: to none where it is empty.
pub(crate) fn pod(spec: &mut PodSpec, labels: &Labels) {
    let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
    containers.flat_map(amounts).chain(&mut spec.overhead).for_each(rename);
    if let Some(name) = labels.get(SCHEDULER_NAME) {
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
/// makes no sense, and one with a policy that is not known, keep nothing.
pub(crate) fn keep_away(reservation: Option<&str>, allocatable: &mut ResourceList) {
    let Some(reservation) = reservation.and_then(|text| NODE_RESERVATION.read(text).ok()) else { return };
    let policy = reservation.apply_policy.as_ref().map_or("", NodeReservationApplyPolicy::as_str);
    if !policy.is_empty() && policy != NodeReservationApplyPolicy::Default.as_str() {
        return;
    }
    if let Some(reserved) = reserved(&reservation) {
        let taken =
            reserved.filtered(|name, _| allocatable.contains(name) && ![BATCH_CPU, BATCH_MEMORY].contains(&name));
        *allocatable = allocatable.minus_down_to_zero(&taken);
    }
}

/// How much is kept: CPUs that are named go before an amount of CPU.
fn reserved(reservation: &NodeReservation) -> Option<ResourceList> {
    let mut reserved = reservation.resources.clone();
    if !reservation.reserved_cpus.is_empty() {
        let cpus = reservation.cpus().ok()?.len();
        reserved.insert("cpu", Quantity::new(i64::try_from(cpus).ok()?, Format::DecimalSI));
    }
    Some(reserved)
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
        assert_eq!(left(r#"{"resources":{"cpu":"2"},"applyPolicy":""}"#), "6 1Gi 4k");
        assert_eq!(left(r#"{"resources":{"cpu":"2"},"applyPolicy":"Default"}"#), "6 1Gi 4k");
        let nothing = [
            r#"{"resources":{"cpu":"2"},"applyPolicy":"ReservedCPUsOnly"}"#,
            r#"{"resources":{"cpu":"2"},"applyPolicy":"else"}"#,
            r#"{"reservedCPUs":"x"}"#,
            "?",
        ];
        assert_eq!(nothing.map(left), ["8 1Gi 4k"; 4]);
    }

    #[test]
    fn an_annotation_gives_resources_other_names_where_the_gate_is_on() {
        let requests = json!({"cpu": "1500m", "memory": "1Gi", "example.com/x": "2"});
        let spec =
            json!({"containers": [{"name": "a", "resources": {"requests": requests}}], "overhead": {"cpu": "1"}});
        let replaced = |bits: u8, annotation: &str| {
            let mut spec: PodSpec = serde_json::from_value(spec.clone()).unwrap();
            Transformers::of_bits(bits).replace_resources(&mut spec, Some(annotation));
            let spec = serde_json::to_value(&spec).unwrap();
            (spec["containers"][0]["resources"]["requests"].clone(), spec["overhead"].clone())
        };
        let annotation = "cpu:kubernetes.io/batch-cpu, memory:example.com/x ,example.com/x:,no:such,wrong";
        let expected = json!({BATCH_CPU: "1500", "example.com/x": "1Gi"});
        assert_eq!(replaced(4, annotation), (expected, json!({BATCH_CPU: "1000"})), "what is dropped makes room");
        assert_eq!(replaced(4, "cpu:memory"), (requests.clone(), json!({"memory": "1000"})), "memory is there");
        let twice = "memory:a.io/a,cpu:,memory:b.io/b";
        let expected = (json!({"b.io/b": "1Gi", "example.com/x": "2"}), json!({}));
        assert_eq!(replaced(4, twice), expected, "the last name counts");
        assert_eq!(replaced(3, annotation), (requests.clone(), json!({"cpu": "1"})), "the gate is off");
    }

    #[test]
    fn labels_say_the_priority_of_a_pod_and_whether_others_go_for_it_where_the_gates_are_on() {
        let transformed = |bits: u8, labels: &[(&str, &str)], priority: Option<i32>, qos: &'static str| {
            let labels = labels.iter().copied().collect();
            let priority_now = priority.unwrap_or(0);
            let mut template =
                Template { labels, priority: priority_now, preempts: true, kubernetes_qos: qos, ..Template::default() };
            Transformers::of_bits(bits).apply_to(&mut template, priority);
            (template.priority, template.preempts)
        };
        let class = [(PRIORITY_CLASS_LABEL, "koord-mid")];
        assert_eq!(transformed(1, &class, None, "Burstable"), (7500, true));
        assert_eq!(transformed(1, &class, Some(5), "Burstable"), (5, true), "it has one");
        assert_eq!(transformed(1, &[(QOS_LABEL, "BE")], Some(0), "Burstable"), (5500, true));
        assert_eq!(transformed(1, &[], None, "Guaranteed"), (9500, true), "LSR goes with koord-prod");
        assert_eq!(transformed(6, &class, None, "Burstable"), (0, false), "without the label nobody goes");
        for (policy, preempts) in [("PreemptLowerPriority", true), ("Never", false), ("else", false)] {
            assert_eq!(transformed(2, &[(PREEMPTION_POLICY, policy)], None, "Burstable"), (0, preempts));
        }
        assert_eq!(
            (0..8).map(|bits| Transformers::of_bits(bits).bits()).collect::<Vec<_>>(),
            (0..8).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_label_says_which_scheduler_a_pod_has_even_that_it_has_none() {
        let scheduler = |labels: &[(&str, &str)]| {
            let mut spec = PodSpec { scheduler_name: Some("default-scheduler".to_owned()), ..PodSpec::default() };
            pod(&mut spec, &labels.iter().copied().collect());
            spec.scheduler_name.unwrap()
        };
        assert_eq!(scheduler(&[]), "default-scheduler");
        assert_eq!(scheduler(&[(SCHEDULER_NAME, "other")]), "other");
        assert_eq!(scheduler(&[(SCHEDULER_NAME, "")]), "");
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
