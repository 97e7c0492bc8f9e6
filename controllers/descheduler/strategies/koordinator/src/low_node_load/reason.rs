//! Why LowNodeLoad evicts a pod.

use koord_descheduler_framework::{Reason, ReasonCode};

use super::{
    thresholds::Bounds,
    usage::{NodeUsage, Scope},
};

/// The reason for people and programs, and the one that the original records.
pub(super) fn reason(node: &NodeUsage<'_>, scope: Scope, bounds: &[Bounds<'_>]) -> (Reason, String) {
    let (mut usages, mut thresholds, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
    for (bounds, id) in node.over(scope, bounds) {
        let used = node.usage(scope).used.get(id) as f64 / node.capacity.get(id) as f64 * 100.0;
        let threshold = scope.percent(bounds).high;
        usages.push(format!("{} {used:.2}%", bounds.name));
        thresholds.push(format!("{} {threshold:.2}%", bounds.name));
        recorded.push(format!("{} {} usage({used:.2}%)>threshold({threshold:.2}%)", scope.as_str(), bounds.name));
    }
    let recorded = format!("node is overutilized, {}", recorded.join(", "));
    let (usage, threshold) = (usages.join(", "), thresholds.join(", "));
    let whose = match scope {
        Scope::Node => "its node uses",
        Scope::Prod => "the production pods of its node use",
    };
    let reason = ReasonCode::NodeOverutilized.reason(format!("{whose} {usage}, more than {threshold}"));
    (reason.with("node", &node.node.name).with("usage", usage).with("threshold", threshold), recorded)
}
