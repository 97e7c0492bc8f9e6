//! What a NodeMetric reports of a node and its pods.

use koord_core::key::ObjectKey;
use koord_resource::ResourceList;
use koord_scheduling::{ResourceNames, ResourceVector};
use koord_types::node_metric::NodeMetricStatus;

/// The usage of a node, as koordlet reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMetric {
    /// When it was reported, in milliseconds since 1970; `None` where it never was.
    pub updated_ms: Option<i64>,
    /// What is used beside pods; `None` while nothing has been measured.
    pub system: Option<ResourceVector>,
    /// What each pod uses, by namespace and name.
    pods: Box<[(ObjectKey, ResourceVector)]>,
    /// The sum of that, which every pass asks for.
    pods_total: ResourceVector,
}

/// What a NodeMetric reports, as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageReport {
    /// When it was reported, in milliseconds since 1970; `None` where it never was.
    pub updated_ms: Option<i64>,
    /// What is used beside pods; `None` while nothing has been measured.
    pub system: Option<ResourceList>,
    /// What each pod uses, by namespace and name.
    pub pods: Vec<(ObjectKey, ResourceList)>,
}

impl UsageReport {
    /// What a status reports.
    pub fn of(status: &NodeMetricStatus) -> Self {
        let pods = status.pods_metric.iter();
        Self {
            updated_ms: status.update_time.as_ref().map(|time| time.at().as_millisecond()),
            system: status.node_metric.as_ref().map(|metric| metric.system_usage.resources.clone()),
            pods: pods
                .map(|pod| (ObjectKey::new(&pod.namespace, &pod.name), pod.pod_usage.resources.clone()))
                .collect(),
        }
    }
}

impl NodeMetric {
    /// What was reported. Names of resources that are new are given numbers. `known` gives the key of a pod that is known, so that its text is there once.
    pub fn of(
        report: UsageReport,
        known: impl Fn(&ObjectKey) -> Option<ObjectKey>,
        resources: &mut ResourceNames,
    ) -> Self {
        let mut pods: Vec<(ObjectKey, ResourceVector)> = report
            .pods
            .into_iter()
            .map(|(key, usage)| (known(&key).unwrap_or(key), resources.vector(&usage)))
            .collect();
        pods.sort_by(|(one, _), (other, _)| one.cmp(other));
        let system = report.system.map(|usage| resources.vector(&usage));
        let mut pods_total = ResourceVector::default();
        for (_, usage) in &pods {
            pods_total.add(usage);
        }
        Self { updated_ms: report.updated_ms, system, pods: pods.into(), pods_total }
    }

    /// Takes out what a pod uses.
    pub(crate) fn take_pod(&mut self, key: &ObjectKey) -> Option<ResourceVector> {
        let at = self.pods.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        let mut pods = std::mem::take(&mut self.pods).into_vec();
        let (_, usage) = pods.remove(at);
        self.pods = pods.into();
        self.pods_total.subtract(&usage);
        Some(usage)
    }

    /// Adds what a pod uses.
    pub(crate) fn add_pod(&mut self, key: ObjectKey, usage: ResourceVector) {
        let mut pods = std::mem::take(&mut self.pods).into_vec();
        let at = pods.partition_point(|(known, _)| *known < key);
        self.pods_total.add(&usage);
        pods.insert(at, (key, usage));
        self.pods = pods.into();
    }

    /// What all reported pods use together, be they still on the node or not.
    pub fn pods_total(&self) -> &ResourceVector {
        &self.pods_total
    }

    /// What all reported pods use, be they still on the node or not.
    pub fn pods(&self) -> impl Iterator<Item = (&ObjectKey, &ResourceVector)> {
        self.pods.iter().map(|(key, usage)| (key, usage))
    }
}
