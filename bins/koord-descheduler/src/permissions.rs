//! What koord-descheduler may do in a cluster: what its plugins read and write, and what running it takes.

use koord_descheduler_runtime::JOBS;
use koord_program::permissions;
use koord_resource::{controller::ResourceKind, rbac::RbacRule};

const READ: &[&str] = &["list", "watch"];

/// What passes and arbitration write; and what the API server is asked.
const WRITES: [RbacRule; 9] = [
    // Cordons of CustomPriority.
    rule("", "nodes", &["patch"]),
    // Deletion costs of ScaleDownBinPack.
    rule("", "pods", &["patch"]),
    // Evictions of DefaultEvictor.
    rule("", "pods/eviction", &["create"]),
    // Evictions of MigrationController, and the verdicts of arbitration.
    rule("scheduling.koordinator.sh", "podmigrationjobs", &["create", "patch"]),
    rule("scheduling.koordinator.sh", "podmigrationjobs/status", &["patch"]),
    // Usage, for `metricsUtilization` of LowNodeUtilization.
    rule("metrics.k8s.io", "nodes", &["list"]),
    rule("metrics.k8s.io", "pods", &["list"]),
    // Who may read what at the secure port.
    rule("authentication.k8s.io", "tokenreviews", &["create"]),
    rule("authorization.k8s.io", "subjectaccessreviews", &["create"]),
];

/// The Lease of the configuration that is installed. Where another is configured, the chart names that one.
const LEASE: &str = "koord-descheduler";

/// Every permission that the program uses, but for the scale subresources of workloads that are not watched: their groups are those of the
/// cluster's definitions, and `config/descheduler/scales` grants them.
pub fn rbac_rules() -> Vec<RbacRule> {
    let mut read = koord_descheduler_assembly::reads();
    read.extend([ResourceKind::POD, ResourceKind::NODE]);
    read.sort();
    read.dedup();
    let read = read.into_iter().map(|kind| rule(kind.group, kind.plural, READ));
    read.chain(JOBS.rbac_rules()).chain(WRITES).chain(permissions(&[LEASE])).collect()
}

/// A rule about all objects of a kind.
const fn rule(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> RbacRule {
    RbacRule { group, resource, names: &[], urls: &[], verbs, namespace: None, role: None }
}

#[cfg(test)]
mod tests {
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
}
