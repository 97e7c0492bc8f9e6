//! What mid pods may use: what prod pods request and are predicted to leave, or in static mode fixed shares of the node.

use koord_types::priority::PriorityClass;

use super::{
    facts::Facts,
    waterfall::{Listener, Operation, Source, add_term},
};
use crate::{
    amount::{Amount, Native},
    view::{Measured, Report},
};

/// What mid pods may use of CPU or memory.
pub fn available(native: Native, facts: &Facts<'_>, trusted: (&Report, Measured), to: &mut impl Listener) -> Amount {
    let result = if facts.strategy.mid_reclaim_mode.as_deref() == Some("static") {
        fixed(native, facts, to)
    } else {
        predicted(native, facts, trusted, to)
    };
    let (field, percent) = match native {
        Native::Cpu => ("midCPUThresholdPercent", facts.strategy.mid_cpu_threshold_percent),
        Native::Memory => ("midMemoryThresholdPercent", facts.strategy.mid_memory_threshold_percent),
    };
    let percent = percent.unwrap_or_default();
    let most = native.times(facts.capacity_of(native), percent as f64 / 100.0);
    add_term(to, Operation::AtMost, most, "mid threshold", || facts.strategy_source(field, percent));
    let mut result = result.min(most);
    if result < Amount::ZERO {
        // An annotation of the node may say percentages that are none.
        result = Amount::ZERO;
        add_term(to, Operation::AtLeast, result, "never less than nothing", Source::derived);
    }
    add_term(to, Operation::Result, result, "for mid pods", Source::derived);
    result
}

fn fixed(native: Native, facts: &Facts<'_>, to: &mut impl Listener) -> Amount {
    let (field, percent) = match native {
        Native::Cpu => ("midStaticCPUReservedPercent", facts.strategy.mid_static_cpu_reserved_percent),
        Native::Memory => ("midStaticMemoryReservedPercent", facts.strategy.mid_static_memory_reserved_percent),
    };
    let percent = percent.unwrap_or_default();
    let fixed = native.times(facts.capacity_of(native), percent as f64 / 100.0);
    add_term(to, Operation::Start, fixed, "static share", || facts.strategy_source(field, percent));
    fixed
}

fn predicted(
    native: Native,
    facts: &Facts<'_>,
    (report, measured): (&Report, Measured),
    to: &mut impl Listener,
) -> Amount {
    let reclaimable = report.reclaimable.unwrap_or_default().of(native);
    add_term(to, Operation::Start, reclaimable, "requested by prod pods, predicted to stay idle", || {
        facts.report_source(format!("status.prodReclaimableMetric {}", native.name()))
    });
    let capacity = facts.capacity_of(native);
    // Without a whole measurement nothing is known to be unused.
    let unused = measured.node.map_or(Amount::ZERO, |usage| capacity - usage.of(native));
    add_term(to, Operation::AtMost, unused, "unused", || {
        facts.report_source(format!("capacity - status.nodeMetric.nodeUsage {}", native.name()))
    });
    add_term(to, Operation::AtLeast, Amount::ZERO, "never less than nothing", Source::derived);
    let base = reclaimable.min(unused).max(Amount::ZERO);

    let unallocated = unallocated(native, facts, (report, measured));
    let percent = facts.strategy.mid_unallocated_percent.unwrap_or_default();
    let more = native.times(unallocated, percent as f64 / 100.0);
    add_term(to, Operation::Part, unallocated, "requested by no prod pod and not reserved", || {
        facts.node_source("capacity - the larger of reserved and system usage - requests")
    });
    add_term(to, Operation::Plus, more, "share of what is not requested", || {
        facts.strategy_source("midUnallocatedPercent", percent)
    });
    base + more
}

/// What neither the system takes nor any pod of prod or without class requests.
fn unallocated(native: Native, facts: &Facts<'_>, (report, measured): (&Report, Measured)) -> Amount {
    let prod = |class: &Option<PriorityClass>| *class == Some(PriorityClass::Prod);
    let applications = report.applications.iter().filter(|application| prod(&application.class));
    let system = measured.system.of(native) + applications.map(|application| application.usage.of(native)).sum();
    let pods = facts.pods.iter().filter(|pod| !pod.pod.is_best_effort() && pod.pod.class != Some(PriorityClass::Mid));
    let requested: Amount = pods.map(|pod| pod.pod.request.of(native)).sum();
    (facts.capacity_of(native) - facts.reserved(native).max(system) - requested).max(Amount::ZERO)
}
