//! Evictions for CPUs: because BE pods get too little of what they request, because pods request more than is allocatable, and because the node uses too much.

mod satisfaction;

use std::time::Duration;

use koord_core::clock::Moment;
use koord_koordlet_framework::{Node, Reason};
use koord_koordlet_metrics::{Measure, Subject};
use koord_types::resource_names::BATCH_CPU;

use self::satisfaction::Satisfaction;
use crate::{
    allocatable::{self, Allocatable},
    cool_down::CoolDown,
    eviction::{EvictionRound, Release, ReleaseKind, Task, best_effort, by_priority},
    evictor::{Evictor, Situation},
    feature::Feature,
    input::Input,
    outcome::{Note, Outcome},
    usage::{UsageThreshold, VictimsBy, usage_threshold},
};

/// The strategy of features `BECPUEvict`, `CPUAllocatableEvict` and `CPUEvict`.
#[derive(Debug)]
pub struct CpuEvict(Evictor);

const FEATURES: [Feature; 3] = [Feature::BeCpuEvict, Feature::CpuAllocatableEvict, Feature::CpuEvict];

const SATISFACTION: &str = "NodeSLO resourceUsedThresholdWithBE.cpuEvictBESatisfactionLowerPercent";
const ALLOCATABLE: &str = "NodeSLO resourceUsedThresholdWithBE.cpuAllocatableEvictThresholdPercent";
const USAGE: &str = "NodeSLO resourceUsedThresholdWithBE.cpuEvictThresholdPercent";

impl CpuEvict {
    /// Evicts at most once in `cool_down`, and not in the first one after the start.
    pub fn new(cool_down: Duration, start: Moment) -> Self {
        let cool_down = CoolDown::new(cool_down, Some(start));
        Self(Evictor::new(FEATURES, "CPU", Node::capacity_milli_cpu, cool_down))
    }

    /// Decides whether pods are evicted now. A round that is given out has to come back through [`CpuEvict::finish`].
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        self.0.run(input, |feature, situation, notes| match feature {
            Feature::BeCpuEvict => by_satisfaction(situation, notes),
            Feature::CpuAllocatableEvict => by_allocatable(situation, notes),
            _ => by_usage(situation, notes),
        })
    }

    /// Takes a round back when all of it was carried out.
    pub fn finish(&mut self, round: &EvictionRound, now: Moment) {
        self.0.finish(round, now);
    }
}

fn by_satisfaction<'a>(situation: &Situation<'a>, notes: &mut Vec<Note>) -> Option<Task<'a>> {
    let Situation { input, node, slo } = situation;
    let Some(satisfaction) = Satisfaction::of(&slo.threshold, input.collect_interval) else {
        notes.push(Note::invalid(
            "BECPUEvict: the bounds of satisfaction are unset or out of range",
            "set cpuEvictBESatisfactionLowerPercent (1 to 60) and cpuEvictBESatisfactionUpperPercent (lower to 99)",
        ));
        return None;
    };
    let required = satisfaction.required(input, node)?;
    let feature = Feature::BeCpuEvict;
    // Pods that use most of what they request come first.
    let pods = best_effort(input.pods, feature, |pod| {
        let request = pod.batch_cpu_request();
        let usage = input.last(Subject::Pod(&pod.uid), Measure::Cpu).unwrap_or_default();
        if request > 0 { usage * 1000.0 / request as f64 } else { 0.0 }
    });
    let release = |amount| Release { kind: ReleaseKind::Requested, resource: BATCH_CPU, amount };
    Some(Task {
        feature,
        reason: Reason::new(SATISFACTION, required.formula),
        required: vec![release(required.milli)],
        pods,
        release: Box::new(move |pod| vec![release(pod.batch_cpu_request())]),
    })
}

fn by_allocatable<'a>(situation: &Situation<'a>, notes: &mut Vec<Note>) -> Option<Task<'a>> {
    let Situation { input, node, slo } = situation;
    let settings = Allocatable {
        feature: Feature::CpuAllocatableEvict,
        names: allocatable::CPU,
        setting: ALLOCATABLE,
        threshold_percent: slo.threshold.cpu_allocatable_evict_threshold_percent,
        lower_percent: slo.threshold.cpu_allocatable_evict_lower_percent,
        priority_threshold: slo.threshold.allocatable_evict_priority_threshold,
    };
    settings.task(input, node, notes)
}

fn by_usage<'a>(situation: &Situation<'a>, notes: &mut Vec<Note>) -> Option<Task<'a>> {
    let Situation { input, node, slo } = situation;
    let feature = Feature::CpuEvict;
    let threshold = &slo.threshold;
    let UsageThreshold { threshold, lower, priority } = usage_threshold(
        feature,
        threshold.cpu_evict_threshold_percent,
        threshold.cpu_evict_lower_percent,
        VictimsBy::Priority(threshold.evict_enabled_priority_threshold),
        notes,
    )?;
    let seconds = slo.threshold.cpu_evict_time_window_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let window = input.collect_interval.max(Duration::from_secs(seconds.unwrap_or_default()));
    let Some(used) = input.average(Subject::Node, Measure::Cpu, window) else {
        notes.push(Note::skipped("there is no recent sample of the node's CPU usage"));
        return None;
    };
    let (used, capacity) = ((used * 1000.0).floor() as i64, node.capacity_milli_cpu());
    let percent = used.saturating_mul(100) / capacity;
    if percent < threshold {
        return None;
    }
    let amount = capacity.saturating_mul(percent.saturating_sub(lower)) / 100;
    let milli = |pod: &koord_koordlet_framework::Pod| {
        input.last(Subject::Pod(&pod.uid), Measure::Cpu).map(|cores| (cores * 1000.0).floor() as i64)
    };
    let victims = by_priority(input.pods, feature, priority?, milli);
    let input = *input;
    Some(Task {
        feature,
        reason: Reason::new(
            USAGE,
            format!(
                "{capacity}m × ({percent} % − {lower} %) = {amount}m, as {used}m of {capacity}m are in use and the threshold is {threshold} %"
            ),
        ),
        required: vec![Release { kind: ReleaseKind::Used, resource: "cpu", amount }],
        pods: victims.into_iter().map(|(pod, _)| pod).collect(),
        release: Box::new(move |pod| {
            let cores = input.last(Subject::Pod(&pod.uid), Measure::Cpu).unwrap_or_default();
            vec![Release { kind: ReleaseKind::Used, resource: "cpu", amount: (cores * 1000.0).floor() as i64 }]
        }),
    })
}

#[cfg(test)]
mod tests;
