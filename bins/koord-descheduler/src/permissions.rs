//! What koord-descheduler may do in a cluster: what its plugins read and write, and what running it takes.

use koord_descheduler_runtime::{HISTORY, JOBS};
use koord_program::permissions;
use koord_resource::rbac::{OWN_NAMESPACE, RbacRule};

/// What passes and arbitration write; and what the API server is asked.
const WRITES: [RbacRule; 9] = [
    // Cordons of CustomPriority.
    RbacRule::new("", "nodes", &["patch"]),
    // Deletion costs of ScaleDownBinPack.
    RbacRule::new("", "pods", &["patch"]),
    // Evictions of DefaultEvictor.
    RbacRule::new("", "pods/eviction", &["create"]),
    // Evictions of MigrationController, and the verdicts of arbitration.
    RbacRule::new("scheduling.koordinator.sh", "podmigrationjobs", &["create", "patch"]),
    RbacRule::new("scheduling.koordinator.sh", "podmigrationjobs/status", &["patch"]),
    // Usage, for `metricsUtilization` of LowNodeUtilization.
    RbacRule::new("metrics.k8s.io", "nodes", &["list"]),
    RbacRule::new("metrics.k8s.io", "pods", &["list"]),
    // Who may read what at the secure port.
    RbacRule::new("authentication.k8s.io", "tokenreviews", &["create"]),
    RbacRule::new("authorization.k8s.io", "subjectaccessreviews", &["create"]),
];

/// The Lease of the configuration that is installed. Where another is configured, the chart names that one.
const LEASE: &str = "koord-descheduler";

/// Every permission that the program uses, those of the scheduler's engine with which it plans among them, but for the scale subresources of
/// workloads that are not watched: their groups are those of the cluster's definitions, and `config/descheduler/scales` grants them.
pub fn rbac_rules() -> Vec<RbacRule> {
    let read = koord_scheduler_assembly::read_rules(&koord_descheduler_assembly::reads());
    read.into_iter().chain(JOBS.rbac_rules()).chain(WRITES).chain(history()).chain(permissions(&[LEASE])).collect()
}

/// Keeping the history of evictions. A name cannot be required of what is created.
fn history() -> [RbacRule; 2] {
    let rule = |verbs| RbacRule { namespace: Some(OWN_NAMESPACE), ..RbacRule::new("", "configmaps", verbs) };
    [rule(&["create"]), RbacRule { names: &[HISTORY], ..rule(&["get", "patch"]) }]
}

/// The same permissions in two parts: what needs the whole cluster, and what is done to single pods, which may be granted in some namespaces
/// alone where the configuration selects these.
pub fn rules_by_scope() -> (Vec<RbacRule>, Vec<RbacRule>) {
    rbac_rules().into_iter().partition(|rule| !is_about_single_pods(rule))
}

fn is_about_single_pods(rule: &RbacRule) -> bool {
    let is_read = rule.verbs.contains(&"watch");
    rule.group.is_empty() && (rule.resource == "pods/eviction" || rule.resource == "pods" && !is_read)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_part_may_do_its_work_and_nothing_else() {
        let rules = rbac_rules();
        let may = |group: &str, resource: &str, verb: &str| {
            rules.iter().any(|rule| rule.group == group && rule.resource == resource && rule.verbs.contains(&verb))
        };
        for (group, resource, verb) in [
            ("", "nodes", "watch"),
            ("", "pods", "list"),
            ("", "nodes", "patch"),
            ("", "pods", "get"),
            ("", "pods", "patch"),
            ("", "pods", "delete"),
            ("", "pods/eviction", "create"),
            ("", "namespaces", "watch"),
            ("", "replicationcontrollers", "list"),
            ("apps", "deployments", "watch"),
            ("apps", "replicasets", "watch"),
            ("apps.kruise.io", "clonesets", "watch"),
            ("slo.koordinator.sh", "nodemetrics", "watch"),
            ("scheduling.koordinator.sh", "podmigrationjobs", "watch"),
            ("scheduling.koordinator.sh", "podmigrationjobs", "create"),
            ("scheduling.koordinator.sh", "podmigrationjobs", "patch"),
            ("scheduling.koordinator.sh", "podmigrationjobs", "delete"),
            ("scheduling.koordinator.sh", "podmigrationjobs/status", "patch"),
            ("scheduling.koordinator.sh", "reservations", "get"),
            ("scheduling.koordinator.sh", "reservations", "watch"),
            ("scheduling.koordinator.sh", "reservations", "create"),
            ("scheduling.koordinator.sh", "reservations", "patch"),
            ("scheduling.koordinator.sh", "reservations", "delete"),
            ("policy", "poddisruptionbudgets", "watch"),
            ("", "persistentvolumeclaims", "watch"),
            ("scheduling.k8s.io", "priorityclasses", "watch"),
            ("coordination.k8s.io", "leases", "update"),
            ("events.k8s.io", "events", "create"),
            ("metrics.k8s.io", "nodes", "list"),
            ("metrics.k8s.io", "pods", "list"),
        ] {
            assert!(may(group, resource, verb), "{verb} {resource}.{group}");
        }
        assert!(
            !may("", "secrets", "list")
                && !may("", "secrets", "get")
                && !may("", "pods/status", "patch")
                && !may("", "nodes", "delete")
        );
        assert!(
            !may("scheduling.koordinator.sh", "reservations/status", "patch") && !may("apps", "deployments", "patch")
        );
        assert!(!rules.iter().any(|rule| rule.verbs.contains(&"*") || rule.resource.contains('*')), "no wildcards");
    }

    #[test]
    fn what_is_done_to_single_pods_can_be_granted_by_namespace_and_everything_else_is_left() {
        let (elsewhere, of_pods) = rules_by_scope();
        let granted = |rules: &[RbacRule]| -> BTreeSet<(&'static str, &'static str)> {
            rules.iter().flat_map(|rule| rule.verbs.iter().map(|verb| (rule.resource, *verb))).collect()
        };
        assert_eq!(
            granted(&of_pods),
            BTreeSet::from([("pods", "get"), ("pods", "patch"), ("pods", "delete"), ("pods/eviction", "create")])
        );
        let pods: BTreeSet<_> = granted(&elsewhere).into_iter().filter(|(kind, _)| kind.starts_with("pods")).collect();
        assert_eq!(pods, BTreeSet::from([("pods", "list"), ("pods", "watch")]));
        assert_eq!(granted(&[elsewhere, of_pods].concat()), granted(&rbac_rules()));
    }
}
