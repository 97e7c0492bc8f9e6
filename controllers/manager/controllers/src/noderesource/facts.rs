//! Everything that the amounts of one node depend on, as plain data: from caches or from files.

use std::collections::BTreeMap;

use jiff::Timestamp;
use koord_resource::{ResourceList, quantity::Format};
use koord_runtime::{cache::Cache, projection::Projection};
use koord_types::{
    node_annotations::{
        COLOCATION_STRATEGY, CPU_RECLAIM_RATIO, MEMORY_RECLAIM_RATIO, MID_STATIC_CPU_RESERVED_RATIO,
        MID_STATIC_MEMORY_RESERVED_RATIO, NODE_RESERVATION,
    },
    protocol::Labels,
    slo_config::{COLOCATION_CONFIG, ColocationStrategy, CpuNormalizationStrategy, ResourceAmplificationStrategy},
};

use super::waterfall::Source;
use crate::{
    amount::{Amount, CpuMemory, Native},
    view::{Claim, DeviceView, Measured, NodeMetricView, NodeView, PodView, Report, TopologyView},
};

/// Everything that the amounts of one node depend on.
pub struct Facts<'a> {
    /// Name of the node.
    pub name: &'a str,
    pub node: &'a NodeView,
    /// All that it has.
    pub capacity: ResourceList,
    /// What pods may request of it.
    pub allocatable: ResourceList,
    pub labels: Labels,
    pub annotations: Labels,
    /// Its pods that are pending or running, with what koordlet says that they use.
    pub pods: Vec<PodFacts<'a>>,
    /// Use by pods that are not among them, unless they were of class batch or free.
    pub gone_pods: Vec<(&'a str, CpuMemory)>,
    pub report: Option<&'a Report>,
    pub topology: Option<&'a TopologyView>,
    /// Its zones, where they say what they have.
    pub zones: Vec<Zone>,
    pub device: Option<&'a DeviceView>,
    /// How colocation works there.
    pub strategy: ColocationStrategy,
    /// Whether colocation is on there.
    pub is_enabled: bool,
    /// How CPUs are normalized there; none while the configuration could never be taken.
    pub normalization: Option<CpuNormalizationStrategy>,
    /// How resources are amplified there; none while the configuration could never be taken.
    pub amplification: Option<ResourceAmplificationStrategy>,
    pub now: Timestamp,
}

/// A pod that is pending or running.
pub struct PodFacts<'a> {
    /// `namespace/name`.
    pub key: &'a str,
    /// What of it counts.
    pub pod: &'a Claim,
    /// What koordlet says that it uses.
    pub usage: Option<CpuMemory>,
}

/// A part of a node, such as a NUMA node.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    pub name: String,
    /// What pods may request of it.
    pub allocatable: CpuMemory,
    /// The form in which it says its memory.
    pub memory_format: Format,
}

/// The caches that facts are taken from.
pub struct Caches<'a> {
    pub nodes: &'a Cache<NodeView>,
    pub metrics: &'a Cache<NodeMetricView>,
    /// Pods that have a node.
    pub pods: &'a Cache<PodView>,
    /// NUMA nodes.
    pub topologies: &'a Cache<TopologyView>,
    pub devices: &'a Cache<DeviceView>,
}

/// Why there is nothing that batch and mid pods may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Degraded {
    /// koordlet has said nothing.
    #[error("there is no NodeMetric")]
    NoReport,
    /// koordlet has not said when.
    #[error("the NodeMetric has no status.updateTime")]
    NoTime,
    /// koordlet has not said what the node uses.
    #[error("the NodeMetric has no status.nodeMetric")]
    NoUsage,
    /// What koordlet says is too old.
    #[error("the NodeMetric is older than degradeTimeMinutes")]
    TooOld,
}

impl<'a> Facts<'a> {
    /// The facts of a node; none while its kubelet has not said what it has.
    pub fn of(caches: &Caches<'a>, name: &'a str, config: &super::Configuration, now: Timestamp) -> Option<Self> {
        let node = &*caches.nodes.get(name)?.value;
        let (capacity, allocatable) = (node.capacity()?, node.allocatable()?);
        let (labels, annotations) = (node.labels.to_map(), node.annotations.to_map());
        let strategy = config.colocation.for_node(&labels, &annotations);
        let report = value(caches.metrics, name).and_then(|metric| metric.report.as_deref());
        let (pods, gone_pods) = pods(caches.pods, name, report);
        let topology = value(caches.topologies, name);
        Some(Self {
            name,
            node,
            capacity,
            allocatable,
            pods,
            gone_pods,
            report,
            topology,
            zones: topology.map(zones).unwrap_or_default(),
            device: value(caches.devices, name),
            is_enabled: config.colocation.cluster.is_enabled() && strategy.is_enabled(),
            strategy,
            normalization: config.normalization.as_ref().map(|config| config.for_node(&labels).clone()),
            amplification: config.amplification.as_ref().map(|config| config.for_node(&labels).clone()),
            labels,
            annotations,
            now,
        })
    }

    /// The node has so much.
    pub fn capacity_of(&self, native: Native) -> Amount {
        Amount::from(self.capacity.amount(native.name()))
    }

    /// What is kept from pods: what the kubelet keeps, or what the annotation says, whichever is more.
    pub fn reserved(&self, native: Native) -> Amount {
        let kept = self.capacity_of(native) - Amount::from(self.allocatable.amount(native.name()));
        kept.max(Amount::ZERO).max(self.annotated_reservation(native))
    }

    /// An annotation that makes no sense reserves nothing; CPUs that are named go before an amount.
    fn annotated_reservation(&self, native: Native) -> Amount {
        let Ok(Some(reservation)) = NODE_RESERVATION.get(&self.annotations) else { return Amount::ZERO };
        let Ok(cpus) = reservation.cpus() else { return Amount::ZERO };
        match native {
            Native::Cpu if !reservation.reserved_cpus.is_empty() => {
                Amount::from_units(i64::try_from(cpus.len()).unwrap_or(i64::MAX))
            }
            _ => Amount::from(reservation.resources.amount(native.name())),
        }
    }

    /// What koordlet reports, unless it is missing or out of date.
    pub fn trusted(&self) -> Result<(&'a Report, Measured), Degraded> {
        let report = self.report.ok_or(Degraded::NoReport)?;
        let expires = self.expires().ok_or(Degraded::NoTime)?;
        if self.now > expires {
            return Err(Degraded::TooOld);
        }
        Ok((report, report.measured.ok_or(Degraded::NoUsage)?))
    }

    /// Until when the report is trusted.
    pub fn expires(&self) -> Option<Timestamp> {
        let minutes = self.strategy.degrade_time_minutes.unwrap_or_default();
        let seconds = self.report?.updated?.as_second().saturating_add(minutes.saturating_mul(60));
        Some(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
    }

    /// A field of the node.
    pub(super) fn node_source(&self, field: impl Into<std::borrow::Cow<'static, str>>) -> Source {
        Source::of("Node", self.name, field)
    }

    /// A field of the report.
    pub(super) fn report_source(&self, field: impl Into<std::borrow::Cow<'static, str>>) -> Source {
        Source::of("NodeMetric", self.name, field)
    }

    /// Where a value of the strategy was said: labels go before the annotation, and that before the configuration.
    pub(super) fn strategy_source(&self, field: &str, value: impl std::fmt::Display) -> Source {
        const BY_LABEL: [(&str, &str); 4] = [
            ("cpuReclaimThresholdPercent", CPU_RECLAIM_RATIO),
            ("memoryReclaimThresholdPercent", MEMORY_RECLAIM_RATIO),
            ("midStaticCPUReservedPercent", MID_STATIC_CPU_RESERVED_RATIO),
            ("midStaticMemoryReservedPercent", MID_STATIC_MEMORY_RESERVED_RATIO),
        ];
        let label = BY_LABEL.iter().find(|(name, label)| *name == field && self.labels.contains_key(*label));
        let annotated = self.annotations.get(COLOCATION_STRATEGY).is_some_and(|text| {
            serde_json::from_str::<serde_json::Value>(text).is_ok_and(|strategy| !strategy[field].is_null())
        });
        match label {
            Some((_, label)) => self.node_source(format!("label {label} → {value}%")),
            None if annotated => self.node_source(format!("annotation {COLOCATION_STRATEGY} {field}: {value}")),
            None => Source { object: COLOCATION_CONFIG.into(), field: format!("{field}: {value}").into() },
        }
    }
}

fn value<'a, P: Projection>(cache: &'a Cache<P>, key: &str) -> Option<&'a P> {
    cache.get(key).map(|entry| &*entry.value)
}

type Pods<'a> = (Vec<PodFacts<'a>>, Vec<(&'a str, CpuMemory)>);

/// The active pods of a node, and the use by pods that are gone.
fn pods<'a>(cache: &'a Cache<PodView>, node: &str, report: Option<&'a Report>) -> Pods<'a> {
    let reported = report.into_iter().flat_map(|report| report.pods.iter());
    // Where a pod is reported twice, the last report counts.
    let mut usages: BTreeMap<&str, _> = reported.map(|usage| (usage.key, usage)).collect();
    let keys = cache.index().get(node);
    let pods = keys.filter_map(|key| {
        let pod = value(cache, key.as_str()).map(|pod| &*pod.claim).filter(|claim| claim.is_active)?;
        let usage = usages.remove(key.as_str()).map(|usage| usage.usage);
        Some(PodFacts { key: key.as_str(), pod, usage })
    });
    let pods = pods.collect();
    let gone = usages.into_iter().filter(|(_, usage)| !usage.is_best_effort);
    (pods, gone.map(|(key, usage)| (key, usage.usage)).collect())
}

/// The zones of a topology; none unless some zone says how much CPU or memory it has.
fn zones(topology: &TopologyView) -> Vec<Zone> {
    let mut any = false;
    let zones = topology.zones().into_iter().map(|zone| {
        let mut read = Zone {
            name: zone["name"].as_str().unwrap_or_default().to_owned(),
            allocatable: CpuMemory::default(),
            memory_format: Format::DecimalSI,
        };
        for resource in zone["resources"].as_array().into_iter().flatten() {
            let amount = || serde_json::from_value::<koord_resource::Quantity>(resource["allocatable"].clone()).ok();
            match resource["name"].as_str() {
                Some("cpu") => {
                    any = true;
                    read.allocatable.cpu = amount().as_ref().map(Amount::from).unwrap_or_default();
                }
                Some("memory") => {
                    any = true;
                    let amount = amount().unwrap_or_default();
                    read.allocatable.memory = Amount::from(&amount);
                    read.memory_format = amount.format();
                }
                _ => {}
            }
        }
        read
    });
    let zones: Vec<Zone> = zones.collect();
    if any { zones } else { Vec::new() }
}
