//! The status of the NodeMetric object: what the node, its pods and host applications use, and what prod pods are forecast to use.

mod gauges;
mod policy;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_core::clock::Moment;
use koord_koordlet_framework::Pod;
use koord_koordlet_metrics::{
    Measure, Store, Subject, Window, percentile,
    predict::{Amounts, ProdForecast},
};
use koord_resource::{Quantity, ResourceList};
use koord_types::{
    device::{DeviceInfo, DeviceType},
    node_metric::{
        AggregatedUsage, AggregationType, HostApplicationMetricInfo, NodeMetricInfo, NodeMetricStatus, NumaUsage,
        PodMetricInfo, PredictionMetric, ResourceMap,
    },
    node_slo::HostApplicationSpec,
    resource_names::{GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO},
};

pub use gauges::{allocatable_gauges, container_resource_gauges, node_metric_gauges};
pub use policy::{MemoryUsage, NodeMetricPolicy};

/// What a NodeMetric is made of.
#[derive(Clone, Copy, Debug)]
pub struct NodeMetricInput<'a> {
    pub store: &'a Store,
    pub policy: &'a NodeMetricPolicy,
    pub pods: &'a [Arc<Pod>],
    /// Applications that run outside of pods; none without a NodeSLO.
    pub host_applications: &'a [HostApplicationSpec],
    /// `None` while models are not trained.
    pub forecast: Option<&'a ProdForecast>,
    /// Used GPUs of the node.
    pub devices: &'a [DeviceInfo],
    /// Used GPUs of pods, by uid.
    pub devices_of_pods: &'a BTreeMap<Arc<str>, Vec<DeviceInfo>>,
    pub collected: CollectedMemory,
    pub served: ServedFields,
}

/// Which memory is collected besides the one without page cache. What is not is reported without page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectedMemory {
    pub with_page_cache: bool,
    pub with_hot_pages: bool,
}

/// Fields that the CustomResourceDefinition of the cluster may lack; the server drops them then, so they are not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedFields {
    /// `nodeMetric.numaUsages`
    pub numa_usages: bool,
    /// `prodPeakMetric`
    pub prod_peak: bool,
}

/// What is reported.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeMetricReport {
    pub status: NodeMetricStatus,
    /// Whether the agent started so recently that no aggregated usage of the policy is known. The lists of aggregated usages then have one entry more, whose
    /// duration is the time since the first sample: consumers that look for a duration of the policy find it without usage, as they do with the original
    /// agent, and everybody can see what the numbers rest on.
    pub is_young: bool,
}

/// The aggregations that are reported, with the share of a percentile.
const AGGREGATIONS: [(AggregationType, Option<f32>); 5] = [
    (AggregationType::Average, None),
    (AggregationType::P50, Some(0.5)),
    (AggregationType::P90, Some(0.9)),
    (AggregationType::P95, Some(0.95)),
    (AggregationType::P99, Some(0.99)),
];

/// The status as of now.
///
/// Usage is the average over the aggregate duration of the policy; CPUs are cut to thousandths, memory to bytes. Aggregated usage is that of each duration of
/// the policy, and empty where the samples span less than half of it. Pods and host applications without samples are left out, and NUMA nodes without samples
/// of CPU and memory.
pub fn node_metric(input: &NodeMetricInput<'_>, now: Moment, at: Timestamp) -> NodeMetricReport {
    let usages = Usages { input, now };
    let (policy, store) = (input.policy, input.store);
    let span = usages.window(Subject::Node, Measure::Cpu, longest(policy)).span();
    let is_young = !policy.durations.iter().any(|duration| is_covered(span.min(*duration), *duration));
    let young = is_young.then(|| Duration::from_secs(span.as_secs())).filter(|span| !span.is_zero());
    let aggregated = |subject, memory| {
        let configured = policy.durations.iter().map(|duration| usages.aggregated(subject, memory, *duration, true));
        configured.chain(young.map(|span| usages.aggregated(subject, memory, span, false))).collect()
    };
    let memory = usages.memory();
    let mut node_usage = usages.average(Subject::Node, memory).unwrap_or_default();
    node_usage.devices = input.devices.to_vec();
    let numa_usages = store.numa_nodes().into_iter().filter(|_| input.served.numa_usages);
    let node_metric = NodeMetricInfo {
        node_usage,
        aggregated_node_usages: aggregated(Subject::Node, memory),
        system_usage: usages.average(Subject::System, Measure::Memory).unwrap_or_default(),
        aggregated_system_usages: aggregated(Subject::System, Measure::Memory),
        numa_usages: numa_usages.filter_map(|node| usages.numa(node)).collect(),
    };
    let prediction = |amounts: Amounts| PredictionMetric {
        resource: ResourceMap { resources: resources(amounts.milli_cpu, amounts.memory_bytes), devices: Vec::new() },
    };
    let minimum = input.forecast.map(|forecast| forecast.minimum);
    let status = NodeMetricStatus {
        update_time: Some(at.into()),
        node_metric: Some(node_metric),
        pods_metric: usages.pods(),
        host_application_metric: usages.host_applications(),
        prod_reclaimable_metric: Some(minimum.map(|forecast| prediction(forecast.reclaimable)).unwrap_or_default()),
        prod_peak_metric: minimum.filter(|_| input.served.prod_peak).map(|forecast| prediction(forecast.peak)),
    };
    NodeMetricReport { status, is_young }
}

/// Whether a pod has the samples with which it is reported; others are not forecast either.
pub fn has_usage(store: &Store, policy: &NodeMetricPolicy, pod: &Pod, now: Moment) -> bool {
    let has = |measure| store.window(Subject::Pod(&pod.uid), measure, before(now, policy.aggregate), now).count() > 0;
    has(Measure::Cpu) && has(Measure::Memory)
}

/// A GPU with what of it is used: percent of its cores, bytes of its memory, and percent of that.
pub fn gpu_usage(minor: i32, uuid: &str, core_percent: f64, memory_bytes: f64, total_bytes: f64) -> DeviceInfo {
    let ratio = if total_bytes > 0.0 { 100.0 * memory_bytes / total_bytes } else { 0.0 };
    let resources = [
        (GPU_CORE, Quantity::new(core_percent as i64, koord_resource::quantity::Format::DecimalSI)),
        (GPU_MEMORY, Quantity::bytes(memory_bytes as i64)),
        (GPU_MEMORY_RATIO, Quantity::new(ratio as i64, koord_resource::quantity::Format::DecimalSI)),
    ];
    DeviceInfo {
        id: uuid.to_owned(),
        minor: Some(minor),
        type_: Some(DeviceType::Gpu),
        resources: resources.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect(),
        ..DeviceInfo::default()
    }
}

/// The samples of the input, seen from now.
struct Usages<'a> {
    input: &'a NodeMetricInput<'a>,
    now: Moment,
}

impl<'a> Usages<'a> {
    fn window(&self, subject: Subject<'_>, measure: Measure, span: Duration) -> Window<'a> {
        self.input.store.window(subject, measure, before(self.now, span), self.now)
    }

    /// The memory that the policy asks for, as far as it is collected.
    fn memory(&self) -> Measure {
        let CollectedMemory { with_page_cache, with_hot_pages } = self.input.collected;
        match self.input.policy.memory {
            MemoryUsage::WithPageCache if with_page_cache => Measure::MemoryWithPageCache,
            MemoryUsage::WithHotPages if with_hot_pages => Measure::MemoryWithHotPages,
            _ => Measure::Memory,
        }
    }

    fn average(&self, subject: Subject<'_>, memory: Measure) -> Option<ResourceMap> {
        let average = |measure| self.window(subject, measure, self.input.policy.aggregate).average();
        Some(usage(average(Measure::Cpu)?, average(memory)?))
    }

    fn aggregated(&self, subject: Subject<'_>, memory: Measure, span: Duration, is_filtered: bool) -> AggregatedUsage {
        let windows = [Measure::Cpu, memory].map(|measure| self.window(subject, measure, span));
        let is_empty = is_filtered && windows.iter().any(|window| !is_covered(window.span(), span));
        let sorted = windows.map(|window| window.sorted());
        let of = |share: Option<f32>| {
            let [cpu, memory] = match share {
                None => windows.map(|window| window.average()),
                Some(share) => [percentile(&sorted[0], share), percentile(&sorted[1], share)],
            };
            cpu.zip(memory).filter(|_| !is_empty).map(|(cpu, memory)| usage(cpu, memory)).unwrap_or_default()
        };
        AggregatedUsage {
            usage: AGGREGATIONS.into_iter().map(|(aggregation, share)| (aggregation, of(share))).collect(),
            duration: span.into(),
        }
    }

    fn numa(&self, node: u32) -> Option<NumaUsage> {
        Some(NumaUsage {
            numa_node_id: node.try_into().ok()?,
            node_usage: self.average(Subject::Numa(node), Measure::Memory)?,
            system_usage: self.average(Subject::SystemNuma(node), Measure::Memory).unwrap_or_default(),
        })
    }

    fn pods(&self) -> Vec<PodMetricInfo> {
        let memory = self.memory();
        let metric = |pod: &Arc<Pod>| {
            let mut pod_usage = self.average(Subject::Pod(&pod.uid), memory)?;
            pod_usage.devices = self.input.devices_of_pods.get(&pod.uid).cloned().unwrap_or_default();
            Some(PodMetricInfo {
                name: pod.name.to_string(),
                namespace: pod.namespace.to_string(),
                pod_usage,
                priority: pod.priority_class().map(|class| class.as_str().to_owned()).unwrap_or_default(),
                qos: pod.qos().map(|qos| qos.as_str().to_owned()).unwrap_or_default(),
                extensions: None,
            })
        };
        let mut pods: Vec<PodMetricInfo> = self.input.pods.iter().filter_map(metric).collect();
        pods.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
        pods
    }

    fn host_applications(&self) -> Vec<HostApplicationMetricInfo> {
        // The memory of applications with the page cache is always collected.
        let memory = match self.input.policy.memory {
            MemoryUsage::WithPageCache => Measure::MemoryWithPageCache,
            _ => self.memory(),
        };
        let metric = |application: &HostApplicationSpec| {
            Some(HostApplicationMetricInfo {
                name: application.name.clone(),
                usage: self.average(Subject::HostApplication(&application.name), memory)?,
                priority: application.priority.clone(),
                qos: application.qos.as_ref().map(|qos| qos.as_str().to_owned()).unwrap_or_default(),
            })
        };
        let mut applications: Vec<_> = self.input.host_applications.iter().filter_map(metric).collect();
        applications.sort_by(|one, other| one.name.cmp(&other.name));
        applications
    }
}

/// CPUs and bytes, cut to thousandths of CPUs and whole bytes.
fn usage(cpu: f64, memory: f64) -> ResourceMap {
    ResourceMap { resources: resources((cpu * 1000.0) as i64, memory as i64), devices: Vec::new() }
}

fn resources(milli_cpu: i64, memory_bytes: i64) -> ResourceList {
    let mut list = ResourceList::default();
    list.insert("cpu", Quantity::cpu_milli(milli_cpu));
    list.insert("memory", Quantity::bytes(memory_bytes));
    list
}

/// Whether samples span at least half of a duration.
fn is_covered(span: Duration, duration: Duration) -> bool {
    span >= duration / 2
}

fn longest(policy: &NodeMetricPolicy) -> Duration {
    policy.durations.iter().copied().fold(policy.aggregate, Duration::max)
}

/// A moment before another, or the origin of the clock.
fn before(now: Moment, span: Duration) -> Moment {
    Moment::at(now.since(Moment::default()).saturating_sub(span))
}

#[cfg(test)]
mod tests;
