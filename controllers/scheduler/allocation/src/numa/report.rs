//! What a NodeResourceTopology reports of a node: its CPUs, and what each NUMA node offers.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use koord_scheduling::{CpuSet, CpuTopology, ResourceId, ResourceNames, ResourceVector};
use koord_types::{
    node_annotations::{NODE_RESERVATION, SYSTEM_QOS_RESOURCE, SystemQosResource},
    node_resource_topology::{Zone, allocatable},
    numa::{CPU_TOPOLOGY, KUBELET_CPU_MANAGER_POLICY, POD_CPU_ALLOCS},
    protocol::{Key, Labels, Text},
};

use super::{
    node::milli,
    policy::{Bind, Policy},
    zone::Formats,
};

/// What a NodeResourceTopology reports. Annotations that cannot be read count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Where each CPU sits; without CPUs where that is not reported.
    pub cpus: CpuTopology,
    /// CPUs that are not given to pods.
    pub reserved: CpuSet,
    /// What each NUMA node offers, without the reserved CPUs.
    pub zones: BTreeMap<u32, ResourceVector>,
    /// How these amounts are written.
    pub formats: BTreeMap<u32, Formats>,
    /// The resources that some NUMA node reports, be it 0.
    pub known: BTreeSet<ResourceId>,
    /// How the kubelet binds CPUs; none where it leaves that open.
    pub bind: Option<Bind>,
    /// How strictly the kubelet keeps the resources of a pod together.
    pub policy: Policy,
}

impl Report {
    /// What an object reports; names of resources are numbered by `names`.
    pub fn of(metadata: &ObjectMeta, zones: &[Zone], policies: &[String], names: &mut ResourceNames) -> Self {
        let annotations = metadata.annotations.clone().unwrap_or_default();
        let zones = allocatable(zones);
        let kubelet = read(&KUBELET_CPU_MANAGER_POLICY, &annotations);
        let reserved = reserved_cpus(&annotations, &kubelet.reserved_cpus);
        let known = zones.values().flat_map(koord_resource::ResourceList::names);
        let known = known.filter_map(|name| names.intern(name)).collect();
        let mut formats: BTreeMap<u32, Formats> = BTreeMap::new();
        for (node, amounts) in &zones {
            let written = amounts.iter().filter_map(|(name, amount)| Some((names.get(name)?, amount.format())));
            formats.insert(*node, written.collect());
        }
        let mut report = Self {
            zones: zones.iter().map(|(node, amounts)| (*node, names.vector(amounts))).collect(),
            formats,
            cpus: read(&CPU_TOPOLOGY, &annotations).by_place(),
            known,
            bind: Bind::of_kubelet(&kubelet),
            policy: Policy::of_kubelet(policies),
            reserved,
        };
        report.withhold_reserved();
        report
    }

    fn withhold_reserved(&mut self) {
        for (node, cpus) in self.cpus.nodes() {
            let reserved = milli(cpus.intersection(&self.reserved).len());
            if let Some(zone) = self.zones.get_mut(&node).filter(|_| reserved > 0) {
                zone.set(ResourceId::CPU, zone.get(ResourceId::CPU).saturating_sub(reserved).max(0));
            }
        }
    }
}

/// CPUs of pods that the kubelet bound, of the kubelet, of the node's reservation, and those that system pods do not share.
fn reserved_cpus(annotations: &Labels, of_kubelet: &str) -> CpuSet {
    let pods = read(&POD_CPU_ALLOCS, annotations).0;
    let pods = pods.into_iter().filter(|pod| pod.managed_by_kubelet && !pod.uid.is_empty()).map(|pod| pod.cpuset);
    let system = SYSTEM_QOS_RESOURCE.get(annotations).ok().flatten().filter(SystemQosResource::is_exclusive);
    let node = NODE_RESERVATION.get(annotations).ok().flatten().map(|reservation| reservation.reserved_cpus);
    let texts = pods.chain(system.map(|system| system.cpuset)).chain(node).chain([of_kubelet.to_owned()]);
    let sets = texts.filter_map(|text| text.parse::<CpuSet>().ok());
    sets.fold(CpuSet::default(), |sum, cpus| sum.union(&cpus))
}

fn read<T: Text + Default>(key: &Key<T>, annotations: &Labels) -> T {
    key.get(annotations).ok().flatten().unwrap_or_default()
}

#[cfg(test)]
pub mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Two NUMA nodes of two cores each, and an amount of hugepages that only one of them reports.
    pub(crate) fn topology(annotations: &Value) -> (ObjectMeta, Vec<Zone>) {
        let detail: Vec<Value> =
            (0..8).map(|id| json!({"id": id, "core": id / 2, "socket": 0, "node": id / 4})).collect();
        let mut metadata = json!({"annotations": annotations});
        metadata["annotations"]["node.koordinator.sh/cpu-topology"] = json!(json!({"detail": detail}).to_string());
        let resource = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
        let zones = json!([
            {"name": "node-0", "type": "Node", "resources": [resource("cpu", "4"), resource("hugepages-2Mi", "0")]},
            {"name": "node-1", "type": "Node", "resources": [resource("cpu", "4"), resource("memory", "1Gi")]},
        ]);
        (serde_json::from_value(metadata).unwrap(), serde_json::from_value(zones).unwrap())
    }

    /// What such a node reports.
    pub(crate) fn report(annotations: &Value, policies: &[&str]) -> (Report, ResourceNames) {
        let (metadata, zones) = topology(annotations);
        let mut names = ResourceNames::default();
        let policies: Vec<String> = policies.iter().map(|policy| (*policy).to_owned()).collect();
        let report = Report::of(&metadata, &zones, &policies, &mut names);
        (report, names)
    }

    fn cpu_of_zones(report: &Report) -> Vec<i64> {
        report.zones.values().map(|zone| zone.get(ResourceId::CPU)).collect()
    }

    #[test]
    fn cpus_that_others_give_out_are_reserved_and_shrink_their_numa_nodes() {
        for (key, text, reserved, cpu) in [
            (
                "node.koordinator.sh/pod-cpu-allocs",
                r#"[{"uid":"u","cpuset":"0-1","managedByKubelet":true},{"cpuset":"2","managedByKubelet":true}]"#,
                "0-1",
                [2000, 4000],
            ),
            ("node.koordinator.sh/pod-cpu-allocs", r#"[{"uid":"u","cpuset":"0-1"}]"#, "", [4000, 4000]),
            ("node.koordinator.sh/reservation", r#"{"reservedCPUs":"7"}"#, "7", [4000, 3000]),
            ("node.koordinator.sh/reservation", r#"{"resources":{"cpu":"1"}}"#, "", [4000, 4000]),
            ("node.koordinator.sh/system-qos-resource", r#"{"cpuset":"3-4"}"#, "3-4", [3000, 3000]),
            (
                "node.koordinator.sh/system-qos-resource",
                r#"{"cpuset":"3-4","cpusetExclusive":false}"#,
                "",
                [4000, 4000],
            ),
            ("kubelet.koordinator.sh/cpu-manager-policy", r#"{"policy":"none","reservedCPUs":"0"}"#, "0", [3000, 4000]),
            ("node.koordinator.sh/pod-cpu-allocs", "{", "", [4000, 4000]),
        ] {
            let (report, _) = report(&json!({key: text}), &[]);
            assert_eq!((report.reserved.to_string().as_str(), cpu_of_zones(&report)), (reserved, cpu.into()), "{text}");
        }
    }

    #[test]
    fn a_resource_is_known_when_a_numa_node_has_none_of_it_but_says_so() {
        let (report, names) = report(&json!({}), &[]);
        let known = |name: &str| names.get(name).is_some_and(|id| report.known.contains(&id));
        assert_eq!(["cpu", "memory", "hugepages-2Mi", "ephemeral-storage"].map(known), [true, true, true, false]);
    }
}
