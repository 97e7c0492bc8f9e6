//! Batch resources: shares, quota and memory limit of pods labelled BE, which native requests say nothing of.

use koord_koordlet_framework::{Container, ContainerKind, Pod};
use koord_koordlet_system::{CFS_PERIOD_US, Value, quota_of_milli_cpu, shares_of_milli_cpu};
use koord_resource::Quantity;
use koord_types::{
    pod_annotations::{EXTENDED_RESOURCE_SPEC, ExtendedResourceContainerSpec, WrittenAmounts},
    qos::QosClass,
    resource_names::{BATCH_CPU, BATCH_MEMORY},
};

use crate::{
    pod_view::PodView,
    refused::Refused,
    values::{Values, Wanted},
};

/// How quotas follow from batch CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BatchRule {
    /// Suppression limits the quota of all BE pods together, so that single pods have none.
    pub(crate) is_quota_suppressed: bool,
    /// How much faster the node's CPUs are than the reference: quotas are divided by it when it is above 1.
    pub(crate) ratio: Option<f64>,
}

/// Batch resources of a container; `None` for what it does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amounts {
    cpu_request: Option<i64>,
    cpu_limit: Option<i64>,
    memory_limit: Option<i64>,
}

/// Where the amounts of a pod stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Resources,
    Annotation,
}

impl Source {
    /// The setting of a resource.
    fn of(self, resource: &'static str) -> &'static str {
        match self {
            Self::Resources => resource,
            Self::Annotation => EXTENDED_RESOURCE_SPEC.name(),
        }
    }
}

impl BatchRule {
    /// The values of a pod: the sums over its containers and sidecars. `None` for pods of other classes, and those without batch resources.
    ///
    /// Shares follow from the positive requests. A container without a limit leaves the pod without one.
    pub(crate) fn pod(&self, pod: &PodView<'_>, refused: &mut Vec<Refused>) -> Option<Values> {
        let (containers, source) = pod_amounts(pod, refused)?;
        let sum = |amounts: &dyn Fn(&Amounts) -> Option<i64>| -> i64 {
            containers.iter().filter_map(amounts).filter(|amount| *amount > 0).fold(0, i64::saturating_add)
        };
        let limit = |amounts: &dyn Fn(&Amounts) -> Option<i64>| -> i64 {
            let is_unlimited = containers.iter().any(|container| amounts(container).is_none_or(|amount| amount <= 0));
            if is_unlimited { -1 } else { sum(amounts) }
        };
        let total = Amounts {
            cpu_request: Some(sum(&|container| container.cpu_request)),
            cpu_limit: Some(limit(&|container| container.cpu_limit)),
            memory_limit: Some(limit(&|container| container.memory_limit)),
        };
        Some(self.values(&total, source))
    }

    /// The values of a container. `None` for pods of other classes, and containers without batch resources.
    pub(crate) fn container(
        &self,
        pod: &PodView<'_>,
        name: &str,
        listed: Option<&Container>,
        refused: &mut Vec<Refused>,
    ) -> Option<Values> {
        if pod.qos_label() != Some(QosClass::Be) {
            return None;
        }
        if let Some(amounts) = listed.and_then(specified) {
            return Some(self.values(&amounts, Source::Resources));
        }
        let annotation = pod.read(&EXTENDED_RESOURCE_SPEC, refused).ok()??;
        let written = annotation.containers.as_ref()?.get(name)?;
        Some(self.values(&written_amounts(written), Source::Annotation))
    }

    fn values(&self, amounts: &Amounts, source: Source) -> Values {
        let (cpu, memory) = (source.of(BATCH_CPU), source.of(BATCH_MEMORY));
        let request = amounts.cpu_request.unwrap_or_default();
        let shares = shares_of_milli_cpu(request);
        let formula = format!("batch CPU requests {request}m × 1024 / 1000, from 2 to 262144 = {shares}");
        let memory_limit = match amounts.memory_limit {
            Some(bytes) if bytes > 0 => {
                Wanted::new(Value::Amount(bytes), memory, format!("batch memory limit = {bytes}"))
            }
            _ => Wanted::new(Value::Unlimited, memory, "no limit: batch memory is not limited"),
        };
        Values {
            shares: Some(Wanted::new(shares, cpu, formula)),
            quota: Some(self.quota(amounts.cpu_limit.unwrap_or(-1), cpu)),
            memory_limit: Some(memory_limit),
            ..Values::default()
        }
    }

    fn quota(&self, milli: i64, setting: &'static str) -> Wanted<Value> {
        if self.is_quota_suppressed {
            let policy = "NodeSLO resourceUsedThresholdWithBE.cpuSuppressPolicy";
            return Wanted::new(Value::Unlimited, policy, "no quota: policy cfsQuota limits all BE pods together");
        }
        let quota = quota_of_milli_cpu(milli);
        let Value::Amount(full) = quota else {
            return Wanted::new(quota, setting, "no quota: batch CPU is not limited");
        };
        // Whoever writes 8 means eight CPUs and gets eight thousandths of one.
        let hint = if milli < 10 { " (batch CPU is counted in thousandths of a CPU)" } else { "" };
        let formula = format!("batch CPU limit {milli}m × {CFS_PERIOD_US} µs / 1000, at least 1000{hint}");
        match scaled(full, self.ratio) {
            Some((scaled, ratio)) => {
                Wanted::new(Value::Amount(scaled), setting, format!("{formula} = {full}, / {ratio} = {scaled}"))
            }
            None => Wanted::new(quota, setting, format!("{formula} = {full}")),
        }
    }
}

/// A quota divided by a ratio above 1, rounded up; `None` when it stays as it is.
pub(crate) fn scaled(quota_us: i64, ratio: Option<f64>) -> Option<(i64, f64)> {
    let ratio = ratio.filter(|ratio| *ratio > 1.0)?;
    (quota_us > 0).then(|| ((quota_us as f64 / ratio).ceil() as i64, ratio))
}

/// The batch resources of the containers that have some, and where they stand: in the pod that the kubelet lists, else in the annotation.
fn pod_amounts(pod: &PodView<'_>, refused: &mut Vec<Refused>) -> Option<(Vec<Amounts>, Source)> {
    if pod.qos_label() != Some(QosClass::Be) {
        return None;
    }
    let listed: Vec<Amounts> = pod.listed.into_iter().flat_map(Pod::running_containers).filter_map(specified).collect();
    if !listed.is_empty() {
        return Some((listed, Source::Resources));
    }
    let annotation = pod.read(&EXTENDED_RESOURCE_SPEC, refused).ok()??;
    // Init containers may be listed too; only those that run beside the others count.
    let runs = |name: &str| {
        let containers = pod.listed.map(|pod| &pod.containers);
        let kind = containers.and_then(|all| all.iter().find(|one| *one.name == *name)).map(|one| one.kind);
        kind != Some(ContainerKind::Init)
    };
    let containers = annotation.containers.unwrap_or_default();
    let amounts: Vec<Amounts> =
        containers.iter().filter(|(name, _)| runs(name)).map(|(_, written)| written_amounts(written)).collect();
    (!amounts.is_empty()).then_some((amounts, Source::Annotation))
}

/// The batch resources in the specification of a container; `None` when it names none.
fn specified(container: &Container) -> Option<Amounts> {
    let names_some = [BATCH_CPU, BATCH_MEMORY]
        .iter()
        .any(|name| container.requests.get(name).is_some() || container.limits.get(name).is_some());
    names_some.then(|| Amounts {
        cpu_request: container.request(BATCH_CPU),
        cpu_limit: container.limit(BATCH_CPU),
        memory_limit: container.limit(BATCH_MEMORY),
    })
}

fn written_amounts(written: &ExtendedResourceContainerSpec) -> Amounts {
    let amount = |amounts: &Option<WrittenAmounts>, name: &str| -> Option<i64> {
        let quantity: Quantity = amounts.as_ref()?.get(name)?.as_ref()?.as_str().parse().ok()?;
        Some(quantity.value())
    };
    Amounts {
        cpu_request: amount(&written.requests, BATCH_CPU),
        cpu_limit: amount(&written.limits, BATCH_CPU),
        memory_limit: amount(&written.limits, BATCH_MEMORY),
    }
}
