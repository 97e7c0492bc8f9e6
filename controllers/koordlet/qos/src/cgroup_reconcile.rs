//! Memory QoS: protection, throttling, background reclaim and the order of kills, for classes, pods and containers.
//!
//! All of it follows from objects. A class that is disabled, and a pod with policy `none`, have the values that undo it.

mod config;
mod values;

use std::sync::Arc;

use koord_koordlet_framework::{Constraints, NodeSlo, Pod, Precedence, Reason};
use koord_koordlet_system::{CgroupPath, QosFolder, Resource, Support, Value};
use koord_types::{node_slo::MemoryQosCfg, qos::QosClass};

use self::{
    config::PodConfig,
    values::{Protection, page_cache, protection, throttling},
};
use crate::{
    feature::Feature,
    input::{Generations, Input},
    outcome::{Note, Outcome},
};

const CLASS: &str = "NodeSLO resourceQOSStrategy.<class>.memoryQOS";
const ANNOTATION: &str = "annotation koordinator.sh/memoryQOS";

/// The strategy of feature `CgroupReconcile`.
#[derive(Debug, Default)]
pub struct CgroupReconcile {
    seen: Option<Generations>,
}

impl CgroupReconcile {
    /// Names all values when pods, node or NodeSLO have changed.
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        if !input.features.is_on(Feature::CgroupReconcile) {
            return Outcome::unchanged();
        }
        let Some(slo) = input.slo else { return Outcome::skipped("no NodeSLO was received yet") };
        let Some(node) = input.node.filter(|node| !node.allocatable.is_empty()) else {
            return Outcome::skipped("what is allocatable on the node is not known");
        };
        // Disks and CPUs do not matter.
        let relevant = Generations { topology: 0, disks: 0, ..input.generations };
        if self.seen == Some(relevant) {
            return Outcome::unchanged();
        }
        self.seen = Some(relevant);
        let mut plan = Plan { input, constraints: Constraints::default(), wanted: Vec::new() };
        let mut notes = Vec::new();
        let mut sums = [Protection::NONE; 3];
        let node_bytes = node.allocatable("memory").unwrap_or_default();
        let mut pods = Vec::new();
        for pod in input.pods.iter().filter(|pod| pod.is_active()) {
            let Some(config) = PodConfig::of(pod, slo, &mut notes) else { continue };
            let request = request(pod, &config);
            let of_pod = protection(request, &config.memory);
            let [guaranteed, others @ ..] = &mut sums;
            // The folder of Guaranteed pods is above those of all others.
            guaranteed.add(&of_pod);
            match (pod.folder(), others) {
                (QosFolder::Burstable, [burstable, _]) => burstable.add(&of_pod),
                (QosFolder::BestEffort, [_, best_effort]) => best_effort.add(&of_pod),
                _ => {}
            }
            pods.push((pod, config, request, of_pod));
        }
        for (folder, sum) in QosFolder::ALL.into_iter().zip(&sums) {
            plan.class(folder, sum, slo);
        }
        for (pod, config, request, of_pod) in &pods {
            plan.pod(pod, config, *request, of_pod);
        }
        for (pod, config, ..) in &pods {
            plan.containers(pod, config, node_bytes);
        }
        notes.extend(plan.lacking());
        Outcome { constraints: Some(plan.constraints), notes: Some(notes), ..Outcome::default() }
    }
}

/// The constraints as they come together.
struct Plan<'a, 'i> {
    input: &'a Input<'i>,
    constraints: Constraints,
    /// Resources that are set to more than nothing.
    wanted: Vec<Resource>,
}

impl Plan<'_, '_> {
    fn class(&mut self, folder: QosFolder, sum: &Protection, slo: &NodeSlo) {
        let cgroup = self.input.kernel.layout().qos(folder);
        self.protect(&cgroup, sum, CLASS, &"sum of its pods".into());
        let class = match folder {
            QosFolder::Guaranteed => QosClass::Lsr,
            QosFolder::Burstable => QosClass::Ls,
            QosFolder::BestEffort => QosClass::Be,
        };
        if let Some(memory) = slo.class(&class).and_then(|class| class.memory_qos.as_ref()) {
            self.kill_order(&cgroup, memory, CLASS);
        }
    }

    fn pod(&mut self, pod: &Pod, config: &PodConfig, request: i64, of_pod: &Protection) {
        let setting = config.setting();
        self.protect(&pod.cgroup, of_pod, setting, &protection_formula(request, &config.memory));
        self.reclaim(&pod.cgroup, &config.memory, setting);
        self.kill_order(&pod.cgroup, &config.memory, setting);
        let limit = limit(pod, config);
        let page_cache = page_cache(limit, &config.memory);
        let formula: Arc<str> = format!("limit {limit}, {}", PageCacheSettings(&config.memory)).into();
        for (resource, value) in page_cache {
            self.set(&pod.cgroup, resource, Some(value), setting, &formula);
        }
    }

    fn containers(&mut self, pod: &Pod, config: &PodConfig, node_bytes: i64) {
        let setting = config.setting();
        let [request_name, limit_name] = config.names();
        for container in pod.regular_containers() {
            let Some(cgroup) = &container.cgroup else { continue };
            let request = container.request(request_name).unwrap_or_default().max(0);
            let limit = container.limit(limit_name).unwrap_or_default().max(0);
            let of_container = protection(request, &config.memory);
            self.protect(cgroup, &of_container, setting, &protection_formula(request, &config.memory));
            self.reclaim(cgroup, &config.memory, setting);
            self.kill_order(cgroup, &config.memory, setting);
            let ceiling = if limit > 0 { limit } else { node_bytes };
            let Some(high) = throttling(request, ceiling, of_container.min, &config.memory) else { continue };
            let percent = config.memory.throttling_percent.unwrap_or_default();
            let formula: Arc<str> = match high {
                Value::Unlimited => "throttling 0 %: no limit".into(),
                _ => format!(
                    "request {request} + ({ceiling} − {request}) × {percent} %, whole pages, at least memory.min"
                )
                .into(),
            };
            self.set(cgroup, Resource::MemoryHigh, Some(high), setting, &formula);
        }
    }

    fn protect(&mut self, cgroup: &CgroupPath, of: &Protection, setting: &'static str, formula: &Arc<str>) {
        self.set(cgroup, Resource::MemoryMin, of.min.map(Value::Amount), setting, formula);
        self.set(cgroup, Resource::MemoryLow, of.low.map(Value::Amount), setting, formula);
    }

    fn reclaim(&mut self, cgroup: &CgroupPath, memory: &MemoryQosCfg, setting: &'static str) {
        let formula: Arc<str> = "as configured".into();
        for (resource, value) in [
            (Resource::MemoryWmarkRatio, memory.wmark_ratio),
            (Resource::MemoryWmarkScaleFactor, memory.wmark_scale_permill),
            (Resource::MemoryWmarkMinAdj, memory.wmark_min_adj),
        ] {
            self.set(cgroup, resource, value.map(Value::Amount), setting, &formula);
        }
    }

    fn kill_order(&mut self, cgroup: &CgroupPath, memory: &MemoryQosCfg, setting: &'static str) {
        let formula: Arc<str> = "as configured".into();
        for (resource, value) in [
            (Resource::MemoryPriority, memory.priority),
            (Resource::MemoryUsePriorityOom, memory.priority_enable),
            (Resource::MemoryOomGroup, memory.oom_kill_group),
        ] {
            self.set(cgroup, resource, value.map(Value::Amount), setting, &formula);
        }
    }

    fn set(
        &mut self,
        cgroup: &CgroupPath,
        resource: Resource,
        value: Option<Value>,
        setting: &'static str,
        formula: &Arc<str>,
    ) {
        let Some(value) = value else { return };
        if is_undoing(resource, &value) {
            // A file that is not there needs no undoing.
        } else if !self.wanted.contains(&resource) {
            self.wanted.push(resource);
        }
        if self.is_supported(resource) {
            let reason = Reason::new(setting, Arc::clone(formula));
            self.constraints.exactly(cgroup, resource, value, Precedence::Specified, reason);
        }
    }

    /// Whether this kernel may have the file. Some kernels have it in some cgroups only: whoever writes looks there.
    fn is_supported(&self, resource: Resource) -> bool {
        let kernel = self.input.kernel;
        let layout = kernel.layout();
        resource.row().support(layout.version) == Support::File || kernel.supports(&layout.kubepods(), resource)
    }

    /// What is set and this kernel does not have.
    fn lacking(&self) -> Option<Note> {
        let kernel = self.input.kernel;
        let kubepods = kernel.layout().kubepods();
        let lacking: Vec<&str> = (self.wanted.iter())
            .filter(|resource| !kernel.supports(&kubepods, **resource))
            .map(|resource| resource.name())
            .collect();
        (!lacking.is_empty()).then(|| {
            Note::degraded(
                format!("this kernel's cgroups have no {}", lacking.join(", ")),
                "use a kernel with these files (memory.min, low and high: cgroup v2; others: Anolis OS), or leave the fields unset",
            )
        })
    }
}

/// Whether a value is what a kernel without the agent has.
fn is_undoing(resource: Resource, value: &Value) -> bool {
    match (resource, value) {
        (_, Value::Unlimited) => true,
        (Resource::MemoryWmarkScaleFactor, Value::Amount(amount)) => *amount == 50,
        (_, Value::Amount(amount)) => *amount == 0,
        _ => false,
    }
}

/// What a pod requests: of pods of class BE, batch memory.
fn request(pod: &Pod, config: &PodConfig) -> i64 {
    if config.is_be { pod.batch_memory_request() } else { pod.request("memory").max(0) }
}

/// The limit of a pod; 0 where a container has none.
fn limit(pod: &Pod, config: &PodConfig) -> i64 {
    let [_, name] = config.names();
    let is_limited = pod.regular_containers().all(|container| container.limit(name).is_some_and(|limit| limit > 0));
    if is_limited { pod.limit(name).max(0) } else { 0 }
}

fn protection_formula(request: i64, memory: &MemoryQosCfg) -> Arc<str> {
    let percent = |percent: Option<i64>| percent.unwrap_or_default();
    let (min, low) = (percent(memory.min_limit_percent), percent(memory.low_limit_percent));
    format!("request {request} × {min} % (min), × {low} % (low, at least min)").into()
}

/// The settings of the page cache, for formulas.
struct PageCacheSettings<'a>(&'a MemoryQosCfg);

impl std::fmt::Display for PageCacheSettings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let MemoryQosCfg { page_cache_limit_size, page_cache_limit_percent, page_cache_enable, .. } = self.0;
        write!(f, "size {page_cache_limit_size:?}, percent {page_cache_limit_percent:?}, enable {page_cache_enable:?}")
    }
}

#[cfg(test)]
mod tests;
