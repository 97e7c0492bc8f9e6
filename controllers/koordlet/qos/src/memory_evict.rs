//! Evictions for memory: BE pods because of the node's usage, pods because they request more than is allocatable, and pods by priority because of the node's usage.

use std::time::Duration;

use koord_core::clock::Moment;
use koord_koordlet_framework::{Node, Pod, Reason};
use koord_koordlet_metrics::{Measure, Subject};

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

/// The strategy of features `BEMemoryEvict`, `MemoryAllocatableEvict` and `MemoryEvict`.
#[derive(Debug)]
pub struct MemoryEvict(Evictor);

const FEATURES: [Feature; 3] = [Feature::BeMemoryEvict, Feature::MemoryAllocatableEvict, Feature::MemoryEvict];

const ALLOCATABLE: &str = "NodeSLO resourceUsedThresholdWithBE.memoryAllocatableEvictThresholdPercent";
const USAGE: &str = "NodeSLO resourceUsedThresholdWithBE.memoryEvictThresholdPercent";

impl MemoryEvict {
    /// Evicts at most once in `cool_down`.
    pub fn new(cool_down: Duration) -> Self {
        Self(Evictor::new(FEATURES, "memory", Node::capacity_bytes, CoolDown::new(cool_down, None)))
    }

    /// Decides whether pods are evicted now. A round that is given out has to come back through [`MemoryEvict::finish`].
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        self.0.run(input, |feature, situation, notes| match feature {
            Feature::MemoryAllocatableEvict => by_allocatable(situation, notes),
            feature => by_usage(situation, feature, notes),
        })
    }

    /// Takes a round back when all of it was carried out.
    pub fn finish(&mut self, round: &EvictionRound, now: Moment) {
        self.0.finish(round, now);
    }
}

fn by_allocatable<'a>(situation: &Situation<'a>, notes: &mut Vec<Note>) -> Option<Task<'a>> {
    let Situation { input, node, slo } = situation;
    let settings = Allocatable {
        feature: Feature::MemoryAllocatableEvict,
        names: allocatable::MEMORY,
        setting: ALLOCATABLE,
        threshold_percent: slo.threshold.memory_allocatable_evict_threshold_percent,
        lower_percent: slo.threshold.memory_allocatable_evict_lower_percent,
        priority_threshold: slo.threshold.allocatable_evict_priority_threshold,
    };
    settings.task(input, node, notes)
}

fn by_usage<'a>(situation: &Situation<'a>, feature: Feature, notes: &mut Vec<Note>) -> Option<Task<'a>> {
    let Situation { input, node, slo } = situation;
    let settings = &slo.threshold;
    let victims = match feature {
        Feature::MemoryEvict => VictimsBy::Priority(settings.evict_enabled_priority_threshold),
        _ => VictimsBy::Class,
    };
    let UsageThreshold { threshold, lower, priority } = usage_threshold(
        feature,
        settings.memory_evict_threshold_percent,
        settings.memory_evict_lower_percent,
        victims,
        notes,
    )?;
    let Some(used) = input.last(Subject::Node, Measure::Memory) else {
        notes.push(Note::skipped("there is no recent sample of the node's memory usage"));
        return None;
    };
    let (used, capacity) = (used.floor() as i64, node.capacity_bytes());
    let percent = used.saturating_mul(100) / capacity;
    if percent < threshold {
        return None;
    }
    let amount =
        i64::try_from(i128::from(capacity) * i128::from(percent.saturating_sub(lower)) / 100).unwrap_or(i64::MAX);
    let input = *input;
    let bytes = move |pod: &Pod| input.last(Subject::Pod(&pod.uid), Measure::Memory);
    let pods = match priority {
        Some(priority) => {
            let victims = by_priority(input.pods, feature, priority, |pod| bytes(pod).map(|bytes| bytes as i64));
            victims.into_iter().map(|(pod, _)| pod).collect()
        }
        None => best_effort(input.pods, feature, |pod| bytes(pod).unwrap_or_default()),
    };
    Some(Task {
        feature,
        reason: Reason::new(
            USAGE,
            format!(
                "{capacity} × ({percent} % − {lower} %) = {amount} bytes, as {used} of {capacity} bytes are in use without page cache and the threshold is {threshold} %"
            ),
        ),
        required: vec![Release { kind: ReleaseKind::Used, resource: "memory", amount }],
        pods,
        release: Box::new(move |pod| {
            let amount = bytes(pod).unwrap_or_default() as i64;
            vec![Release { kind: ReleaseKind::Used, resource: "memory", amount }]
        }),
    })
}

#[cfg(test)]
mod tests;
