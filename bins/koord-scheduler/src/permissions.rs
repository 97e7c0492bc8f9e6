//! What koord-scheduler may do in a cluster: what its plugins read and write, and what running it takes.

use koord_program::permissions;
use koord_resource::{controller::ResourceKind, rbac::RbacRule};
use koord_scheduler_runtime::EXPLANATIONS;

const READ: &[&str] = &["list", "watch"];
const WRITE: &[&str] = &["patch", "update"];

/// What is written of pods, and of the objects that plugins prepare or keep up to date; and what the API server is asked.
const WRITES: [RbacRule; 15] = [
    RbacRule::new("", "pods", &["delete", "patch"]),
    RbacRule::new("", "pods/binding", &["create"]),
    RbacRule::new("", "pods/eviction", &["create"]),
    RbacRule::new("", "pods/status", &["patch"]),
    RbacRule::new("", "persistentvolumes", &["patch"]),
    RbacRule::new("", "persistentvolumeclaims", &["patch"]),
    RbacRule::new("resource.k8s.io", "resourceclaims", &["patch"]),
    RbacRule::new("resource.k8s.io", "resourceclaims/status", &["patch"]),
    RbacRule::new("scheduling.koordinator.sh", "clusternetworktopologies/status", &["patch"]),
    RbacRule::new("scheduling.koordinator.sh", "reservations", &["delete", "patch"]),
    RbacRule::new("scheduling.koordinator.sh", "reservations/status", WRITE),
    // Their definitions have no status of its own.
    RbacRule::new("scheduling.sigs.k8s.io", "podgroups", WRITE),
    RbacRule::new("scheduling.sigs.k8s.io", "elasticquotas", &["create", "patch"]),
    // Who may read what at the secure port.
    RbacRule::new("authentication.k8s.io", "tokenreviews", &["create"]),
    RbacRule::new("authorization.k8s.io", "subjectaccessreviews", &["create"]),
];

/// The Lease of the configuration that is installed. Where another is configured, the chart names that one.
const LEASE: &str = "koord-scheduler";

/// What the program may do besides where a feature gate is on.
#[derive(Clone, Copy, Debug)]
pub struct Gated {
    pub gate: &'static str,
    /// What it is for, as a part of the names of roles.
    pub name: &'static str,
    pub rules: &'static [RbacRule],
}

/// What the program may do besides where feature gates are on.
pub const GATED: [Gated; 2] = [
    Gated { gate: "DevicePluginAdaption", name: "node-locks", rules: &[RbacRule::new("", "nodes", &["patch"])] },
    Gated {
        gate: "DRADeviceTaintRules",
        name: "device-taint-rules",
        rules: &[RbacRule::new("resource.k8s.io", "devicetaintrules", READ)],
    },
];

/// Every permission that the program uses.
pub fn rbac_rules() -> Vec<RbacRule> {
    rules_of(&[])
}

/// The same for a program whose further plugins read these kinds.
pub(crate) fn rules_of(further: &[ResourceKind]) -> Vec<RbacRule> {
    let read = koord_scheduler_assembly::read_rules(further);
    let explanations = EXPLANATIONS.rbac_rules();
    read.into_iter().chain(WRITES).chain(explanations).chain(permissions(&[LEASE])).collect()
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
            ("", "namespaces", "list"),
            ("", "pods/binding", "create"),
            ("", "configmaps", "watch"),
            ("apps", "statefulsets", "list"),
            ("policy", "poddisruptionbudgets", "watch"),
            ("storage.k8s.io", "csistoragecapacities", "list"),
            ("resource.k8s.io", "resourceslices", "watch"),
            ("resource.k8s.io", "resourceclaims/status", "patch"),
            ("slo.koordinator.sh", "nodemetrics", "watch"),
            ("topology.node.k8s.io", "noderesourcetopologies", "watch"),
            ("scheduling.koordinator.sh", "devices", "watch"),
            ("scheduling.koordinator.sh", "clusternetworktopologies", "watch"),
            ("scheduling.koordinator.sh", "clusternetworktopologies/status", "patch"),
            ("coordination.k8s.io", "leases", "update"),
            ("coordination.k8s.io", "leases", "watch"),
            ("events.k8s.io", "events", "create"),
        ] {
            assert!(may(group, resource, verb), "{verb} {resource}.{group}");
        }
        assert!(!may("", "nodes", "patch") && !may("", "secrets", "list"));
        assert!(!rules.iter().any(|rule| rule.verbs.contains(&"*") || rule.resource == "*"), "no wildcards");
        let config_maps = rules.iter().find(|rule| rule.resource == "configmaps").unwrap();
        assert_eq!(config_maps.names, ["gpu-shared-resource-templates"]);
        let leases: Vec<_> = rules.iter().filter(|rule| rule.resource == "leases").collect();
        assert_eq!((leases[0].names, leases[0].verbs), (&[][..], &["create"][..]));
        assert_eq!((leases[1].names, leases[1].verbs), (&["koord-scheduler"][..], &["get", "update", "watch"][..]));
        assert_eq!(leases.len(), 2);
    }
}
