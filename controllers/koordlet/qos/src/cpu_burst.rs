//! CPU bursts: containers may save CPU time (`cpu.cfs_burst_us`), and their CFS quota grows while they are throttled and the node has room.
//!
//! Pods of LSE, LSR and BE are left alone. With policy `none`, bursts are 0 and quotas are those of the limits.

mod limiter;
mod limits;
mod quota;
mod settings;
mod share_pool;

use std::{
    collections::{BTreeMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Bound, Constraint, Constraints, Pod, Precedence, Reason, Target};
use koord_koordlet_metrics::{Measure, Subject};
use koord_koordlet_system::{CgroupPath, Resource, Value};
use koord_types::{node_slo::CpuBurstStrategy, qos::QosClass};

use self::{
    limits::{is_normalized, normalization_ratio, pod_base, quota_of},
    settings::Settings,
};

pub use self::{
    limiter::Limiter,
    quota::{QuotaOperation, QuotaRange},
    share_pool::SharePool,
};
use crate::{
    feature::Feature,
    input::{Generations, Input},
    outcome::{Gauge, Note, Outcome, gauges},
};

const BURST: &str = "NodeSLO cpuBurstStrategy.cpuBurstPercent";
const QUOTA: &str = "NodeSLO cpuBurstStrategy.cfsQuotaBurstPercent";
const ANNOTATION: &str = "annotation koordinator.sh/cpuBurst";

/// The strategy of feature `CPUBurst`.
#[derive(Debug)]
pub struct CpuBurst {
    seed: u64,
    seen: Option<Generations>,
    pods: Vec<BurstPod>,
    /// Whether the quota of some container may change by samples.
    is_active: bool,
    /// When objects were looked at while the folder of some container could not be read.
    incomplete: Option<Moment>,
    /// Gauges of bursts, which follow from objects.
    burst_series: Vec<Gauge>,
    /// Whether a quota changed in the round before.
    was_scaled: bool,
    /// Notes that follow from objects.
    notes: Vec<Note>,
}

/// How long after such a look objects are looked at again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// A pod whose containers may burst.
#[derive(Debug)]
struct BurstPod {
    pod: Arc<Pod>,
    settings: Settings,
    containers: Vec<BurstContainer>,
    /// The quota of the pod's folder while no container bursts; `None` where it has none.
    base: Option<i64>,
    /// Constraints of bursts, which follow from objects.
    bursts: Vec<Constraint>,
    /// Constraints of quotas, as of the last change.
    quotas: Vec<Constraint>,
}

/// A running container with a limit.
#[derive(Debug)]
struct BurstContainer {
    /// The id with the runtime, by which samples are kept.
    id: Arc<str>,
    name: Arc<str>,
    cgroup: CgroupPath,
    range: QuotaRange,
    limit_milli: i64,
    /// The quota that is in force; `None` without one.
    current: Option<i64>,
    operation: QuotaOperation,
    limiter: Option<Limiter>,
}

// === impl CpuBurst ===

impl CpuBurst {
    /// The strategy; `seed` chooses how many tokens containers begin with.
    pub fn new(seed: u64) -> Self {
        let (pods, burst_series, notes) = Default::default();
        Self { seed, seen: None, pods, is_active: false, incomplete: None, burst_series, was_scaled: false, notes }
    }

    /// Decides bursts and quotas for now.
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        if !input.features.is_on(Feature::CpuBurst) {
            return Outcome::unchanged();
        }
        let Some(slo) = input.slo else { return Outcome::skipped("no NodeSLO was received yet") };
        let is_new = self.seen != Some(input.generations)
            || self.incomplete.is_some_and(|looked| input.now.since(looked) >= RETRY_INTERVAL);
        if is_new {
            self.refresh(input, &slo.cpu_burst);
        } else if !self.is_active && !self.was_scaled {
            return Outcome::unchanged();
        }
        let mut notes = self.notes.clone();
        let pool = if self.is_active {
            SharePool::of(input, slo.cpu_burst.share_pool_threshold_percent)
        } else {
            SharePool::Idle
        };
        if pool == SharePool::Unknown {
            notes.push(Note::skipped("use of the shared CPUs is not known, no CFS quota grows"));
        }
        let mut scaled = Vec::new();
        let seed = self.seed;
        for pod in &mut self.pods {
            if pod.decide(input, pool, seed, &mut scaled) || is_new {
                pod.name_quotas(input);
            }
        }
        let is_changed = is_new || !scaled.is_empty();
        let constraints = is_changed.then(|| {
            let all = self.pods.iter().flat_map(|pod| pod.bursts.iter().chain(&pod.quotas));
            Constraints(all.cloned().collect())
        });
        let was_scaled = std::mem::replace(&mut self.was_scaled, !scaled.is_empty());
        // Quotas have a series in the round in which they change.
        let gauges = (is_changed || was_scaled).then(|| self.burst_series.iter().cloned().chain(scaled).collect());
        Outcome { constraints, gauges, notes: Some(notes), ..Outcome::default() }
    }

    /// Computes what follows from objects. Limiters of containers that are still there are kept.
    fn refresh(&mut self, input: &Input<'_>, node: &CpuBurstStrategy) {
        self.seen = Some(input.generations);
        self.incomplete = None;
        self.notes.clear();
        let mut limiters: BTreeMap<Arc<str>, Limiter> = self
            .pods
            .drain(..)
            .flat_map(|pod| pod.containers)
            .filter_map(|container| Some((container.id, container.limiter?)))
            .collect();
        let supports_burst = input.kernel.supports(&input.kernel.layout().kubepods(), Resource::CpuBurst);
        let node_ratio = normalization_ratio(input);
        let mut wants_more_than_quota = false;
        for pod in input.pods.iter().filter(|pod| pod.is_active() && may_burst(pod)) {
            let settings = match Settings::of(pod, node) {
                Ok(settings) => settings,
                Err(error) => {
                    self.notes.push(Note::invalid(
                        format!("{}: {error}; the settings of the node hold", pod.key()),
                        "correct the annotation",
                    ));
                    Settings { strategy: node.clone(), is_own: false }
                }
            };
            let percent = settings.strategy.cpu_burst_percent.unwrap_or_default();
            wants_more_than_quota |= settings.bursts() && percent > 100;
            let bursts = if supports_burst { bursts(pod, &settings) } else { Vec::new() };
            let ratio = if is_normalized(pod) { node_ratio } else { 1.0 };
            let containers = self.containers(input, pod, &settings, ratio, &mut limiters);
            let base = pod_base(pod, ratio);
            self.pods.push(BurstPod { pod: Arc::clone(pod), settings, containers, base, bursts, quotas: Vec::new() });
        }
        self.burst_series = self.burst_gauges();
        self.is_active = self.pods.iter().any(|pod| pod.settings.scales_quota() && !pod.containers.is_empty());
        if !supports_burst && self.pods.iter().any(|pod| pod.settings.bursts()) {
            self.notes.push(Note::degraded(
                "this kernel has no cpu.cfs_burst_us (v1) or cpu.max.burst (v2)",
                "use Linux 5.14 or later, or the policy cfsQuotaBurstOnly",
            ));
        } else if wants_more_than_quota {
            self.notes.push(Note::degraded(
                "cpuBurstPercent is above 100: mainline kernels take bursts up to the CFS quota only",
                "bursts are cut to what the kernel takes; set cpuBurstPercent to 100 on such nodes",
            ));
        }
    }

    /// Running containers with a limit, each with the quota that it has now.
    fn containers(
        &mut self,
        input: &Input<'_>,
        pod: &Pod,
        settings: &Settings,
        ratio: f64,
        limiters: &mut BTreeMap<Arc<str>, Limiter>,
    ) -> Vec<BurstContainer> {
        let mut containers = Vec::new();
        for container in pod.regular_containers().filter(|container| container.is_running()) {
            let limit_milli = container.limit("cpu").unwrap_or_default();
            let (Some(base), Some(cgroup), Some(id)) =
                (quota_of(limit_milli, ratio), container.cgroup.clone(), &container.id)
            else {
                continue;
            };
            let id: Arc<str> = id.to_string().into();
            let current = match input.kernel.value(&cgroup, Resource::CpuQuota) {
                Ok(Value::Amount(quota)) => Some(quota),
                Ok(_) => None,
                // The folder is gone, or not there yet.
                Err(_) => {
                    self.incomplete = Some(input.now);
                    continue;
                }
            };
            containers.push(BurstContainer {
                limiter: limiters.remove(&id),
                id,
                name: Arc::clone(&container.name),
                cgroup,
                range: QuotaRange::new(base, settings.strategy.cfs_quota_burst_percent),
                limit_milli,
                current,
                operation: QuotaOperation::Remain,
            });
        }
        containers
    }

    fn burst_gauges(&self) -> Vec<Gauge> {
        let mut series = Vec::new();
        for BurstPod { pod, bursts, .. } in &self.pods {
            let of_containers = pod.regular_containers().filter(|container| container.cgroup.is_some());
            for (container, burst) in of_containers.zip(bursts) {
                if let (Some(id), Some(value)) = (&container.id, burst.value.amount()) {
                    let labels = labels(pod, id.to_string().into(), Arc::clone(&container.name));
                    series.push(Gauge { name: gauges::CONTAINER_SCALED_CFS_BURST_US, labels, value: value as f64 });
                }
            }
        }
        series
    }
}

// === impl BurstPod ===

impl BurstPod {
    /// Decides the quotas of the containers; returns whether one changes.
    fn decide(&mut self, input: &Input<'_>, pool: SharePool, seed: u64, scaled: &mut Vec<Gauge>) -> bool {
        let mut is_changed = false;
        for container in &mut self.containers {
            container.operation = if self.settings.scales_quota() {
                container.operation(input, &self.settings.strategy, seed).on(pool)
            } else {
                QuotaOperation::Reset
            };
            let target = container.range.after(container.operation, container.current);
            if container.current != Some(target) {
                is_changed = true;
                container.current = Some(target);
                let labels = labels(&self.pod, Arc::clone(&container.id), Arc::clone(&container.name));
                scaled.push(Gauge { name: gauges::CONTAINER_SCALED_CFS_QUOTA_US, labels, value: target as f64 });
            }
        }
        is_changed
    }

    /// Names the quotas of the containers, and of the pod: its base and what containers have above theirs.
    fn name_quotas(&mut self, input: &Input<'_>) {
        self.quotas.clear();
        let setting = if self.settings.is_own { ANNOTATION } else { QUOTA };
        let mut above = 0_i64;
        for container in &self.containers {
            let Some(quota) = container.current else { continue };
            let QuotaRange { base, ceiling } = container.range;
            above = above.saturating_add(quota - base);
            let formula = if quota == base {
                format!("limit {}m = {base} µs", container.limit_milli)
            } else {
                format!("{quota} µs from {base} to {ceiling} µs ({})", container.operation.as_str())
            };
            self.quotas.push(exactly(
                &container.cgroup,
                Resource::CpuQuota,
                quota,
                precedence(quota != base),
                setting,
                formula,
            ));
        }
        // A pod without a quota stays without.
        let is_limited = matches!(input.kernel.value(&self.pod.cgroup, Resource::CpuQuota), Ok(Value::Amount(_)));
        if let Some(base) = self.base.filter(|_| is_limited && !self.containers.is_empty()) {
            let quota = base.saturating_add(above);
            let formula = format!("{base} µs of the limits + {above} µs of bursts of its containers = {quota} µs");
            self.quotas.push(exactly(
                &self.pod.cgroup,
                Resource::CpuQuota,
                quota,
                precedence(above != 0),
                setting,
                formula,
            ));
        }
    }
}

// === impl BurstContainer ===

impl BurstContainer {
    /// What the container asks for: more while it is throttled, less when it has no tokens left.
    fn operation(&mut self, input: &Input<'_>, strategy: &CpuBurstStrategy, seed: u64) -> QuotaOperation {
        if !self.may_burst(input, strategy, seed) {
            return QuotaOperation::ScaleDown;
        }
        let throttled = input.last(Subject::Container(&self.id), Measure::Throttled);
        if throttled.is_some_and(|share| share > 0.0) { QuotaOperation::ScaleUp } else { QuotaOperation::Remain }
    }

    fn may_burst(&mut self, input: &Input<'_>, strategy: &CpuBurstStrategy, seed: u64) -> bool {
        let Some(period_s) = strategy.cfs_quota_burst_period_seconds.filter(|period| *period >= 0) else {
            self.limiter = None;
            return true;
        };
        let Some(percent) = strategy.cfs_quota_burst_percent.filter(|percent| *percent >= 100) else { return false };
        // Without a sample, the container counts as using its limit.
        let usage_percent = input
            .last(Subject::Container(&self.id), Measure::Cpu)
            .map_or(100, |cores| (cores * 100_000.0 / self.limit_milli.max(1) as f64).floor() as i64);
        self.limiter.take_if(|limiter| !limiter.is_for(period_s, percent));
        let id = &self.id;
        let limiter = self.limiter.get_or_insert_with(|| Limiter::new(period_s, percent, random(seed, id), input.now));
        limiter.allows(usage_percent, input.now)
    }
}

fn may_burst(pod: &Pod) -> bool {
    !matches!(pod.qos_label, Some(QosClass::Lse | QosClass::Lsr | QosClass::Be))
}

/// Bursts of the containers of a pod, in their order, and of the pod, which has their sum: limit × percent of a period.
fn bursts(pod: &Pod, settings: &Settings) -> Vec<Constraint> {
    let is_on = settings.bursts();
    let percent = if is_on { settings.strategy.cpu_burst_percent.unwrap_or_default().max(0) } else { 0 };
    let setting = if settings.is_own { ANNOTATION } else { BURST };
    let mut constraints = Vec::new();
    let mut sum = 0_i64;
    for container in pod.regular_containers() {
        let Some(cgroup) = &container.cgroup else { continue };
        let limit = container.limit("cpu").unwrap_or_default().max(0);
        // A thousandth of a CPU is 100 µs of each period, a percent of that 1 µs.
        let burst = limit.saturating_mul(percent);
        sum = sum.saturating_add(burst);
        let formula = if is_on { format!("limit {limit}m × {percent} %") } else { "policy without bursts".to_owned() };
        constraints.push(exactly(cgroup, Resource::CpuBurst, burst, precedence(is_on), setting, formula));
    }
    if !constraints.is_empty() {
        constraints.push(exactly(
            &pod.cgroup,
            Resource::CpuBurst,
            sum,
            precedence(is_on),
            setting,
            "sum of its containers".to_owned(),
        ));
    }
    constraints
}

/// What follows from a burst goes before requests and limits; what undoes one does not.
fn precedence(is_burst: bool) -> Precedence {
    if is_burst { Precedence::Measured } else { Precedence::Default }
}

fn exactly(
    cgroup: &CgroupPath,
    resource: Resource,
    amount: i64,
    precedence: Precedence,
    setting: &'static str,
    formula: String,
) -> Constraint {
    let target = Target::Cgroup { cgroup: cgroup.clone(), resource };
    Constraint {
        target,
        bound: Bound::Exactly,
        value: Value::Amount(amount),
        precedence,
        reason: Reason::new(setting, formula),
    }
}

fn labels(pod: &Pod, id: Arc<str>, name: Arc<str>) -> Vec<(&'static str, Arc<str>)> {
    vec![
        ("pod_namespace", Arc::clone(&pod.namespace)),
        ("pod_name", Arc::clone(&pod.name)),
        ("container_id", id),
        ("container_name", name),
    ]
}

/// A number for a container that is the same whenever it is asked for.
fn random(seed: u64, id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, id).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
