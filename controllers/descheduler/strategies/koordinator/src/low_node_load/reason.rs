//! Why LowNodeLoad evicts a pod.

use koord_descheduler_framework::{Reason, ReasonCode};

use super::{
    thresholds::Bounds,
    usage::{NodeUsage, Scope},
};

/// The reason for people and programs, and the one that the original records.
pub(super) fn reason(node: &NodeUsage<'_>, scope: Scope, bounds: &[Bounds<'_>]) -> (Reason, String) {
    let (mut usage, mut threshold, mut recorded) = (String::new(), String::new(), "node is overutilized, ".to_owned());
    for (place, (bounds, id)) in node.over(scope, bounds).enumerate() {
        let used = node.usage(scope).used.get(id) as f64 / node.capacity.get(id) as f64 * 100.0;
        let (used, most) = (format!("{used:.2}%"), format!("{:.2}%", scope.percent(bounds).high));
        let separator = if place > 0 { ", " } else { "" };
        for (text, amount) in [(&mut usage, &used), (&mut threshold, &most)] {
            text.extend([separator, bounds.name, " ", amount]);
        }
        let parts = [separator, scope.as_str(), " ", bounds.name, " usage(", &used, ")>threshold(", &most, ")"];
        recorded.extend(parts);
    }
    let whose = match scope {
        Scope::Node => "its node uses",
        Scope::Prod => "the production pods of its node use",
    };
    let reason = ReasonCode::NodeOverutilized.reason(format!("{whose} {usage}, more than {threshold}"));
    (reason.with("node", &node.node.name).with("usage", usage).with("threshold", threshold), recorded)
}
