//! Evictions for memory: BE pods because of the node's usage, pods because they request more than is allocatable, and pods by priority because of the node's usage.

use std::time::Duration;

use koord_core::clock::Moment;
use koord_koordlet_framework::{Node, NodeSlo, Pod, Reason};
use koord_koordlet_metrics::{Measure, Subject};

use crate::{
    allocatable::{self, Allocatable},
    cool_down::CoolDown,
    eviction::{EvictionRound, Release, ReleaseKind, Task, best_effort, by_priority},
    feature::Feature,
    input::Input,
    outcome::{Note, Outcome},
    usage::{UsageThreshold, VictimsBy, usage_threshold},
};

/// The strategy of features `BEMemoryEvict`, `MemoryAllocatableEvict` and `MemoryEvict`.
#[derive(Debug)]
pub struct MemoryEvict {
    cool_down: CoolDown,
}

const FEATURES: [Feature; 3] = [Feature::BeMemoryEvict, Feature::MemoryAllocatableEvict, Feature::MemoryEvict];

const ALLOCATABLE: &str = "NodeSLO resourceUsedThresholdWithBE.memoryAllocatableEvictThresholdPercent";
const USAGE: &str = "NodeSLO resourceUsedThresholdWithBE.memoryEvictThresholdPercent";

impl MemoryEvict {
    /// Evicts at most once in `cool_down`.
    pub fn new(cool_down: Duration) -> Self {
        Self { cool_down: CoolDown::new(cool_down, None) }
    }

    /// Decides whether pods are evicted now. A round that is given out has to come back through [`MemoryEvict::finish`].
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        if !FEATURES.iter().any(|feature| input.features.is_on(*feature)) || !self.cool_down.is_over(input.now) {
            return Outcome::unchanged();
        }
        let Some(slo) = input.slo else { return Outcome::skipped("no NodeSLO was received yet") };
        if slo.threshold.enable != Some(true) {
            return Outcome { notes: Some(Vec::new()), ..Outcome::default() };
        }
        let Some(node) = input.node.filter(|node| node.capacity_bytes() > 0) else {
            return Outcome::skipped("the memory capacity of the node is not known");
        };
        let mut notes = Vec::new();
        let tasks =
            FEATURES.into_iter().filter(|feature| input.features.is_on(*feature)).filter_map(|feature| match feature {
                Feature::MemoryAllocatableEvict => by_allocatable(input, node, slo, &mut notes),
                feature => by_usage(input, node, slo, feature, &mut notes),
            });
        let evictions = EvictionRound::new(tasks.collect(), input.evicted);
        if evictions.is_some() {
            self.cool_down.hand_out(input.now);
        }
        Outcome { evictions, notes: Some(notes), ..Outcome::default() }
    }

    /// Takes a round back when all of it was carried out.
    pub fn finish(&mut self, round: &EvictionRound, now: Moment) {
        self.cool_down.finish(!round.accepted().is_empty(), now);
    }
}

fn by_allocatable<'a>(input: &Input<'a>, node: &Node, slo: &NodeSlo, notes: &mut Vec<Note>) -> Option<Task<'a>> {
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

fn by_usage<'a>(
    input: &Input<'a>,
    node: &Node,
    slo: &NodeSlo,
    feature: Feature,
    notes: &mut Vec<Note>,
) -> Option<Task<'a>> {
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
