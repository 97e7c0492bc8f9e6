//! NodeSLOs: the bounds that administrators' configuration has too.
//!
//! Pairs of which one must be the larger are compared only where both are set. What koord-manager derives from that
//! configuration always passes: the place to refuse it is the ConfigMap, and a refused NodeSLO would leave the node
//! with an older one.

use koord_api::slo_config::{
    BOUNDS, CPU_BURST_CONFIG, PAIRS, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG, SYSTEM_CONFIG,
};
use koord_resource::{
    admission::{Handler, Verdict, WebhookEntry},
    field::{Errors, Path},
};
use serde_json::Value;

use super::{entry, handler, nothing_is_fixed, validate};
use crate::Ctx;

const ENTRY: WebhookEntry = entry("vnodeslo.koordinator.sh", &["slo.koordinator.sh"], &["nodeslos"]);

/// The handler.
pub const VALIDATE: Handler<Ctx> =
    handler("/validate-slo-koordinator-sh-v1alpha1-nodeslo", "nodeslo", &[ENTRY], |request, _| {
        let verdict = validate::<Value>(request, "nodeslos", check, nothing_is_fixed);
        if request.field_manager() == MANAGER { as_warnings(verdict) } else { verdict }
    });

/// The name in which koord-manager writes.
const MANAGER: &str = "koordinator-manager";

fn as_warnings(verdict: Verdict) -> Verdict {
    let causes = verdict.denial.map(|denial| denial.causes).unwrap_or_default();
    Verdict { warnings: causes.iter().map(ToString::to_string).collect(), ..Verdict::default() }
}

/// Where the strategies of a configuration key stand in a NodeSLO; the classes of the QoS strategy are below theirs.
fn places(key: &str) -> &'static [&'static [&'static str]] {
    match key {
        RESOURCE_THRESHOLD_CONFIG => &[&["resourceUsedThresholdWithBE"]],
        RESOURCE_QOS_CONFIG => &[
            &["resourceQOSStrategy", "lsrClass"],
            &["resourceQOSStrategy", "lsClass"],
            &["resourceQOSStrategy", "beClass"],
            &["resourceQOSStrategy", "systemClass"],
            &["resourceQOSStrategy", "cgroupRoot"],
        ],
        CPU_BURST_CONFIG => &[&["cpuBurstStrategy"]],
        SYSTEM_CONFIG => &[&["systemStrategy"]],
        _ => &[],
    }
}

fn check(slo: &Value, errors: &mut Errors) {
    for bound in BOUNDS {
        for place in places(bound.key) {
            let Some(number) = number(slo, place, bound.path) else { continue };
            if let Some(broken) = bound.rules.iter().find(|rule| !rule.holds(number)) {
                at(place, bound.path, |path| errors.invalid(path, number, broken.to_string()));
            }
        }
    }
    for pair in PAIRS {
        for place in places(pair.key) {
            let both = number(slo, place, pair.upper).zip(number(slo, place, pair.lower));
            if both.is_some_and(|(upper, lower)| upper <= lower) {
                at(place, pair.upper, |path| {
                    errors.invalid(path, both.map(|(upper, _)| upper), format!("must be greater than {}", pair.lower));
                });
            }
        }
    }
}

fn number(slo: &Value, place: &[&str], path: &str) -> Option<f64> {
    let mut value = slo.get("spec")?;
    for name in place.iter().copied().chain(path.split('.')) {
        value = value.get(name)?;
    }
    value.as_f64()
}

/// Tells of a number by its path: `spec`, the place, and the names of `path`, of which there are one or two.
fn at(place: &[&str], path: &str, tell: impl FnOnce(&Path<'_>)) {
    let spec = Path::root("spec");
    let [section, class @ ..] = place else { return };
    let section = spec.child(section);
    let class = class.first().map(|class| section.child(class));
    let strategy = class.as_ref().unwrap_or(&section);
    match path.split_once('.') {
        None => tell(&strategy.child(path)),
        Some((group, name)) => tell(&strategy.child(group).child(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(spec: &Value) -> Vec<String> {
        let mut errors = Errors::new();
        check(&json!({"spec": spec}), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_out_of_bounds_are_named_with_what_would_be_right() {
        let spec = json!({
            "resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": 101},
            "resourceQOSStrategy": {"beClass": {"cpuQOS": {"groupIdentity": 3}}},
            "systemStrategy": {"watermarkScaleFactor": 401},
        });
        assert_eq!(
            errors(&spec),
            [
                "spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent: Invalid value: 101: must be 100 or less",
                "spec.resourceQOSStrategy.beClass.cpuQOS.groupIdentity: Invalid value: 3: must be 2 or less",
                "spec.systemStrategy.watermarkScaleFactor: Invalid value: 401: must be 400 or less",
            ]
        );
    }

    #[test]
    fn pairs_are_compared_only_where_both_are_set() {
        let of = |threshold: Value| errors(&json!({"resourceUsedThresholdWithBE": threshold}));
        assert!(of(json!({"memoryEvictThresholdPercent": 70})).is_empty());
        assert!(of(json!({"memoryEvictThresholdPercent": 70, "memoryEvictLowerPercent": 65})).is_empty());
        assert_eq!(
            of(json!({"memoryEvictThresholdPercent": 60, "memoryEvictLowerPercent": 65})),
            [
                "spec.resourceUsedThresholdWithBE.memoryEvictThresholdPercent: Invalid value: 60: must be greater than memoryEvictLowerPercent"
            ]
        );
    }
}
