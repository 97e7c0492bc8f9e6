//! What batch pods may use: what prod and mid pods, the system and a margin leave of a node or of one of its zones.

use koord_types::slo_config::CalculatePolicy;

use super::{
    facts::Facts,
    waterfall::{Listener, Operation, Source, add_term},
};
use crate::{
    amount::{Amount, CpuMemory, Native},
    view::{Measured, Report},
};

/// Where amounts are computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Node,
    /// The zone with this index.
    Zone(usize),
}

/// By what the consumption of prod and mid pods is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Usage,
    Request,
    Larger,
}

impl Measure {
    /// QUIRK: `request` is not known for CPU; like what is unknown it counts as usage (spec/manager.md 4.1.3).
    fn of(native: Native, facts: &Facts<'_>) -> Self {
        let strategy = &facts.strategy;
        match (native, native_policy(native, strategy)) {
            (_, Some(CalculatePolicy::MaxUsageRequest)) => Self::Larger,
            (Native::Memory, Some(CalculatePolicy::Request)) => Self::Request,
            _ => Self::Usage,
        }
    }
}

fn native_policy(native: Native, strategy: &koord_types::slo_config::ColocationStrategy) -> Option<&CalculatePolicy> {
    match native {
        Native::Cpu => strategy.cpu_calculate_policy.as_ref(),
        Native::Memory => strategy.memory_calculate_policy.as_ref(),
    }
}

/// What batch pods may use of CPU or memory.
///
/// `capacity - margin - taken by the system - taken by prod and mid pods`, at least nothing, and at most the share that
/// `batch…ThresholdPercent` allows.
pub fn available(
    native: Native,
    place: Place,
    facts: &Facts<'_>,
    trusted: (&Report, Measured),
    to: &mut impl Listener,
) -> Amount {
    let capacity = capacity(native, place, facts);
    add_term(to, Operation::Start, capacity, "capacity", || match place {
        Place::Node => facts.node_source(format!("status.capacity.{}", native.name())),
        Place::Zone(zone) => {
            Source::of("NodeResourceTopology", facts.name, format!("zones[{zone}] {} allocatable", native.name()))
        }
    });
    let (field, percent) = match native {
        Native::Cpu => ("cpuReclaimThresholdPercent", facts.strategy.cpu_reclaim_threshold_percent),
        Native::Memory => ("memoryReclaimThresholdPercent", facts.strategy.memory_reclaim_threshold_percent),
    };
    let percent = percent.unwrap_or_default();
    let margin = native.times(capacity, 100_i64.saturating_sub(percent) as f64 / 100.0);
    add_term(to, Operation::Minus, margin, "safety margin", || facts.strategy_source(field, percent));

    let measure = Measure::of(native, facts);
    let system = system(native, place, facts, trusted, measure, to);
    let taken = taken(native, place, facts, measure, to);
    let left = (capacity - margin - system - taken).max(Amount::ZERO);
    add_term(to, Operation::AtLeast, Amount::ZERO, "never less than nothing", Source::derived);

    let (field, percent) = match native {
        Native::Cpu => ("batchCPUThresholdPercent", facts.strategy.batch_cpu_threshold_percent),
        Native::Memory => ("batchMemoryThresholdPercent", facts.strategy.batch_memory_threshold_percent),
    };
    let result = match percent {
        None => left,
        Some(percent) => {
            // An annotation of the node may say a percentage that is none.
            let most = native.times(capacity, percent as f64 / 100.0).max(Amount::ZERO);
            add_term(to, Operation::AtMost, most, "batch threshold", || facts.strategy_source(field, percent));
            left.min(most)
        }
    };
    add_term(to, Operation::Result, result, "for batch pods", Source::derived);
    result
}

fn capacity(native: Native, place: Place, facts: &Facts<'_>) -> Amount {
    match place {
        Place::Node => facts.capacity_of(native),
        Place::Zone(zone) => facts.zones.get(zone).map_or(Amount::ZERO, |zone| zone.allocatable.of(native)),
    }
}

/// What a place has of what is spread over the node.
fn share(amount: Amount, place: Place, facts: &Facts<'_>) -> Amount {
    match place {
        Place::Node => amount,
        Place::Zone(_) => amount.part_of(facts.zones.len()),
    }
}

/// What the system takes: what it uses or what is reserved, whichever is more; by requests only what is reserved.
fn system(
    native: Native,
    place: Place,
    facts: &Facts<'_>,
    (report, measured): (&Report, Measured),
    measure: Measure,
    to: &mut impl Listener,
) -> Amount {
    let reserved = share(facts.reserved(native), place, facts);
    add_term(to, Operation::Part, reserved, "reserved on the node", || {
        facts.node_source("capacity - allocatable, or annotation node.koordinator.sh/reservation")
    });
    if measure == Measure::Request {
        add_term(to, Operation::Minus, reserved, "reserved", Source::derived);
        return reserved;
    }
    let mut used = measured.system.of(native);
    add_term(to, Operation::Part, share(used, place, facts), "used by the system", || {
        facts.report_source(format!("status.nodeMetric.systemUsage {}", native.name()))
    });
    for application in &*report.applications {
        let counts = application.class.is_some_and(|class| class > koord_types::priority::PriorityClass::Batch);
        if counts {
            let usage = application.usage.of(native);
            used = used + usage;
            add_term(to, Operation::Part, share(usage, place, facts), format!("used by {}", application.name), || {
                facts.report_source(format!("status.hostApplicationMetric[{}] {}", application.name, native.name()))
            });
        }
    }
    let system = share(used, place, facts).max(reserved);
    add_term(to, Operation::Minus, system, "used by the system or reserved, whichever is more", Source::derived);
    system
}

/// What pods of the classes prod and mid take. Pods of class batch and free use what is left and do not count.
///
/// A pod that koordlet has not measured yet takes what it requests, and one whose CPUs are its own takes all of them.
fn taken(native: Native, place: Place, facts: &Facts<'_>, measure: Measure, to: &mut impl Listener) -> Amount {
    let mut sum = Amount::ZERO;
    for facts_of_pod in facts.pods.iter().filter(|pod| !pod.pod.is_best_effort()) {
        let pod = facts_of_pod.pod;
        let (amount, by) = match (measure, facts_of_pod.usage) {
            (Measure::Request, _) => (pod.request.of(native), "request"),
            (_, None) => (pod.request.of(native), "request, not measured yet"),
            (Measure::Larger, Some(usage)) => {
                (usage.of(native).max(pod.request.of(native)), "usage or request, whichever is more")
            }
            (Measure::Usage, Some(_)) if pod.is_exclusive && native == Native::Cpu => {
                (pod.request.of(native), "request, LSE")
            }
            (Measure::Usage, Some(usage)) => (usage.of(native), "usage"),
        };
        let amount = match place {
            Place::Node => amount,
            Place::Zone(zone) => match on_zone(amount, &pod.numa_nodes, zone, facts.zones.len()) {
                Some(amount) => amount,
                None => continue,
            },
        };
        sum = sum + amount;
        add_term(to, Operation::Part, amount, by, || Source::of("Pod", facts_of_pod.key, native.name()));
    }
    if measure != Measure::Request {
        for (key, usage) in &facts.gone_pods {
            let amount = share(usage.of(native), place, facts);
            sum = sum + amount;
            add_term(to, Operation::Part, amount, "usage of a pod that is gone", || {
                facts.report_source(format!("status.podsMetric[{key}] {}", native.name()))
            });
        }
    }
    add_term(to, Operation::Minus, sum, "taken by prod and mid pods", Source::derived);
    sum
}

/// What a pod takes of one of `count` zones: an equal share of those that it was given, or of all.
fn on_zone(amount: Amount, given: &[i32], zone: usize, count: usize) -> Option<Amount> {
    let valid = || given.iter().filter_map(|node| usize::try_from(*node).ok()).filter(|node| *node < count);
    match valid().count() {
        0 => Some(amount.part_of(count)),
        nodes => valid().any(|node| node == zone).then(|| amount.part_of(nodes)),
    }
}

/// Both amounts of a place.
pub fn both(place: Place, facts: &Facts<'_>, trusted: (&Report, Measured), to: &mut impl Listener) -> CpuMemory {
    CpuMemory::default().map(|native, _| available(native, place, facts, trusted, to))
}
