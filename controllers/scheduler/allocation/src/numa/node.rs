//! A node as far as CPUs and NUMA nodes are concerned: what it has, how it gives it out, and what pods have of it.

use std::collections::BTreeMap;

use koord_resource::quantity::Format;
use koord_scheduling::{CpuSet, CpuTopology, NumaMask, ResourceId, ResourceNames, ResourceVector};
use koord_types::node_annotations::{
    AmplificationRatios, CPU_BIND_POLICY, NUMA_ALLOCATE_STRATEGY, NUMA_TOPOLOGY_POLICY,
};
use smallvec::SmallVec;

use super::{
    ledger::{Ledger, NumaAllocation},
    policy::{Bind, Fill, Policy},
    report::Report,
    zone::NumaZone,
};

/// What a node's labels and annotations say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How CPUs of all pods are bound.
    pub bind: Option<Bind>,
    /// How strictly the resources of a pod are kept together; none where the kubelet decides.
    pub policy: Option<Policy>,
    /// Which NUMA nodes are filled first; none where the configuration decides.
    pub fill: Option<Fill>,
    /// By what factor the node promises more than it has.
    pub ratios: AmplificationRatios,
    /// Whether that cannot be read.
    pub is_ratio_unreadable: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NumaNode {
    /// Where each CPU sits; without CPUs where that is not reported.
    pub cpus: CpuTopology,
    /// CPUs that are not given to pods.
    pub reserved: CpuSet,
    /// How many pods may have the same CPU.
    pub refs_max: u32,
    /// Its NUMA nodes, in the order of their numbers.
    pub zones: Vec<NumaZone>,
    /// The resources that some NUMA node reports, be it 0.
    pub known: SmallVec<[ResourceId; 8]>,
    /// How CPUs of all pods are bound.
    pub bind: Option<Bind>,
    /// How strictly the resources of a pod are kept together.
    pub policy: Policy,
    /// Which NUMA nodes are filled first; none where the configuration decides.
    pub fill: Option<Fill>,
    /// By what factor the node promises more cpu than it has.
    pub cpu_ratio: f64,
    /// Whether the node says that in words that cannot be read.
    pub is_ratio_unreadable: bool,
    pub ledger: Ledger,
    /// The CPUs that a pod may have, which follow from the rest.
    pub available: CpuSet,
    /// All NUMA nodes, which follow from the zones.
    pub all: NumaMask,
}

/// What of a node a pod has to keep to, as the owners of a reservation do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaLimits {
    /// CPUs that are taken first.
    pub preferred: CpuSet,
    /// The only CPUs that may be taken; none for all of them.
    pub cpus: Option<CpuSet>,
    /// At most so much of the named resources may be taken of each NUMA node; none for what is left there.
    pub shares: Option<BTreeMap<u32, ResourceVector>>,
    /// CPUs all of which must be taken.
    pub required: CpuSet,
}

// === impl Settings ===

impl Settings {
    /// What a node says whose labels these are.
    pub fn of<'a>(label: impl Fn(&str) -> Option<&'a str>, ratios: AmplificationRatios) -> Self {
        let policy = label(NUMA_TOPOLOGY_POLICY.name()).filter(|text| !text.is_empty());
        Self {
            bind: label(CPU_BIND_POLICY.name()).and_then(|text| Bind::of_node(&text.into())),
            policy: policy.map(|text| Policy::of(&text.into())),
            fill: label(NUMA_ALLOCATE_STRATEGY.name())
                .filter(|text| !text.is_empty())
                .map(|text| Fill::of_node(&text.into())),
            ratios,
            is_ratio_unreadable: false,
        }
    }
}

// === impl NumaNode ===

impl Default for NumaNode {
    fn default() -> Self {
        Self::new(&Report::default(), &Settings::default(), &ResourceNames::default(), Ledger::default())
    }
}

impl NumaNode {
    /// A node that reports this and is set up like this, whose pods have this.
    pub fn new(report: &Report, settings: &Settings, names: &ResourceNames, ledger: Ledger) -> Self {
        let amplified = |zone: &ResourceVector| {
            let mut amplified = zone.clone();
            for (resource, amount) in zone.iter() {
                amplified.set(resource, amplify(amount, settings.ratios.ratio(names.name(resource))));
            }
            amplified
        };
        let written = |(id, format): &(ResourceId, Format)| {
            let is_amplified = settings.ratios.ratio(names.name(*id)) > 1.0;
            (*id, if is_amplified { format_of_amplified(*id) } else { *format })
        };
        let zone = |(number, total): (&u32, &ResourceVector)| NumaZone {
            number: *number,
            total: amplified(total),
            formats: report.formats.get(number).into_iter().flatten().map(written).collect(),
            cpus: report
                .cpus
                .nodes()
                .find(|(node, _)| node == number)
                .map(|(_, cpus)| cpus.clone())
                .unwrap_or_default(),
            ..NumaZone::default()
        };
        let node = Self {
            cpus: report.cpus.clone(),
            reserved: report.reserved.clone(),
            refs_max: 1,
            zones: report.zones.iter().map(zone).collect(),
            known: report.known.iter().copied().collect(),
            bind: report.bind.or(settings.bind),
            policy: settings.policy.unwrap_or(report.policy),
            fill: settings.fill,
            cpu_ratio: settings.ratios.ratio("cpu"),
            is_ratio_unreadable: settings.is_ratio_unreadable,
            ledger,
            available: CpuSet::default(),
            all: NumaMask::default(),
        };
        node.settled()
    }

    /// The same with what follows from the rest.
    pub fn settled(mut self) -> Self {
        self.all = NumaMask::of(self.zones.iter().map(|zone| zone.number)).unwrap_or_default();
        self.settle();
        self
    }

    fn settle(&mut self) {
        let unavailable = self.ledger.exhausted(self.refs_max).union(&self.reserved);
        self.available = self.cpus.cpus().difference(&unavailable);
        self.zones.iter_mut().for_each(|zone| zone.settle(&self.ledger, &self.available, self.cpu_ratio));
    }

    /// A pod has this from now on.
    pub fn add(&mut self, allocation: &NumaAllocation) {
        self.ledger.add(allocation);
        self.settle();
    }

    /// A pod has this no more.
    pub fn remove(&mut self, allocation: &NumaAllocation) {
        self.ledger.remove(allocation);
        self.settle();
    }

    /// CPUs per core, on average; 0 without CPUs.
    pub fn cpus_per_core(&self) -> usize {
        self.cpus.mean_cpus_per_core()
    }

    /// All NUMA nodes; none of them where a number is too large.
    pub fn numa_nodes(&self) -> NumaMask {
        self.all
    }

    /// The place of a NUMA node among all, which mostly is its number.
    pub fn place_of(&self, number: u32) -> Option<usize> {
        let is_there = |at: &usize| self.zones.get(*at).is_some_and(|zone| zone.number == number);
        let at = usize::try_from(number).ok().filter(is_there);
        at.or_else(|| self.zones.iter().position(|zone| zone.number == number))
    }

    pub fn zone(&self, number: u32) -> Option<&NumaZone> {
        self.place_of(number).and_then(|at| self.zones.get(at))
    }

    /// The NUMA nodes of a set.
    pub fn zones_of(&self, affinity: NumaMask) -> impl Iterator<Item = &NumaZone> {
        affinity.iter().filter_map(|number| self.zone(number))
    }

    /// The CPUs that a pod may have.
    pub fn available_cpus(&self) -> &CpuSet {
        &self.available
    }
}

/// So many CPUs in thousandths.
pub fn milli(cpus: usize) -> i64 {
    i64::try_from(cpus).unwrap_or(i64::MAX).saturating_mul(1000)
}

/// How the original writes an amount that was amplified.
fn format_of_amplified(resource: ResourceId) -> Format {
    let is_binary = [ResourceId::MEMORY, ResourceId::EPHEMERAL_STORAGE].contains(&resource);
    if is_binary { Format::BinarySI } else { Format::DecimalSI }
}

/// An amount times a factor, rounded up.
pub fn amplify(amount: i64, ratio: f64) -> i64 {
    if ratio > 1.0 { (amount as f64 * ratio).ceil() as i64 } else { amount }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::numa::report::tests::report;

    #[test]
    fn the_numa_policy_of_a_node_comes_before_that_of_its_kubelet_whose_full_cores_come_before_the_label() {
        let kubelet = r#"{"policy":"static","options":{"full-pcpus-only":"true"}}"#;
        let (report, names) =
            report(&json!({"kubelet.koordinator.sh/cpu-manager-policy": kubelet}), &["SingleNUMANodePodLevel"]);
        let node = |labels: &[(&str, &'static str)]| {
            let label = |key: &str| labels.iter().find(|(known, _)| key.ends_with(known)).map(|(_, value)| *value);
            let settings = Settings::of(label, AmplificationRatios::default());
            let node = NumaNode::new(&report, &settings, &names, Ledger::default());
            (node.bind, node.policy, node.fill)
        };
        assert_eq!(node(&[]), (Some(Bind::FullPcpus), Policy::SingleNumaNode, None));
        assert_eq!(
            node(&[
                ("cpu-bind-policy", "SpreadByPCPUs"),
                ("numa-topology-policy", "Restricted"),
                ("numa-allocate-strategy", "MostAllocated"),
            ]),
            (Some(Bind::FullPcpus), Policy::Restricted, Some(Fill::MostAllocated)),
            "the kubelet gives out whole cores whatever the node's label says"
        );
        assert_eq!(
            node(&[
                ("cpu-bind-policy", "None"),
                ("numa-topology-policy", ""),
                ("numa-allocate-strategy", "DistributeEvenly")
            ]),
            (Some(Bind::FullPcpus), Policy::SingleNumaNode, Some(Fill::LeastAllocated))
        );
    }

    #[test]
    fn an_amplified_node_promises_more_and_bound_cpus_cost_more() {
        let (report, names) = report(&json!({}), &[]);
        let ratios = AmplificationRatios([("cpu".to_owned(), 1.5)].into());
        let settings = Settings { ratios, ..Settings::default() };
        let mut ledger = Ledger::default();
        let mut share = ResourceVector::default();
        share.set(ResourceId::CPU, 3000);
        ledger.add(&NumaAllocation { cpus: "0-1".parse().unwrap(), shares: vec![(0, share)], ..Default::default() });
        let node = NumaNode::new(&report, &settings, &names, ledger);
        // 4 become 6; of the 3 that pods have, 2 are exclusive CPUs, which cost 3.
        let left: Vec<i64> = node.zones.iter().map(|zone| zone.free.get(ResourceId::CPU)).collect();
        assert_eq!(left, [2000, 6000]);
        assert_eq!(node.available_cpus().to_string(), "2-7");
    }
}
