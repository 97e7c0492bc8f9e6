//! What koord-descheduler may do in a cluster: what its plugins read and write, and what running it takes.

use koord_program::permissions;
use koord_resource::{controller::ResourceKind, rbac::RbacRule};

const READ: &[&str] = &["list", "watch"];

/// What is written.
const WRITES: [RbacRule; 5] = [
    // Cordons of CustomPriority.
    rule("", "nodes", &["patch"]),
    // Deletion costs of ScaleDownBinPack.
    rule("", "pods", &["patch"]),
    rule("", "pods/eviction", &["create"]),
    // Who may read what at the secure port.
    rule("authentication.k8s.io", "tokenreviews", &["create"]),
    rule("authorization.k8s.io", "subjectaccessreviews", &["create"]),
];

/// The Lease of the configuration that is installed. Where another is configured, the chart names that one.
const LEASE: &str = "koord-descheduler";

/// Every permission that the program uses.
pub fn rbac_rules() -> Vec<RbacRule> {
    let mut read = koord_descheduler_assembly::reads();
    read.extend([ResourceKind::POD, ResourceKind::NODE]);
    read.sort();
    read.dedup();
    let read = read.into_iter().map(|kind| rule(kind.group, kind.plural, READ));
    read.chain(WRITES).chain(permissions(&[LEASE])).collect()
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
            ("", "pods/eviction", "create"),
            ("policy", "poddisruptionbudgets", "watch"),
            ("", "persistentvolumeclaims", "watch"),
            ("scheduling.k8s.io", "priorityclasses", "watch"),
            ("coordination.k8s.io", "leases", "update"),
            ("events.k8s.io", "events", "create"),
        ] {
            assert!(may(group, resource, verb), "{verb} {resource}.{group}");
        }
        assert!(!may("", "secrets", "list") && !may("", "pods/status", "patch"));
        assert!(!rules.iter().any(|rule| rule.verbs.contains(&"*") || rule.resource == "*"), "no wildcards");
    }
}
