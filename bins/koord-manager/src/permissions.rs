//! What koord-manager may do in a cluster: the sum of what its parts declare, and what running it takes.

use koord_manager_controllers::CONTROLLERS;
use koord_resource::rbac::RbacRule;
use koord_webhooks::HANDLERS;

/// Stands for the namespace that the program is installed in.
const HERE: Option<&str> = Some(".");

const fn rule(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> RbacRule {
    RbacRule { group, resource, names: &[], urls: &[], verbs, namespace: None }
}

/// Leader election and events.
const ITSELF: [RbacRule; 2] = [
    RbacRule { namespace: HERE, ..rule("coordination.k8s.io", "leases", &["create", "get", "update"]) },
    rule("", "events", &["create", "patch"]),
];

/// Every permission that the program uses, with all gates on.
pub fn rbac_rules() -> Vec<RbacRule> {
    let controllers = CONTROLLERS.iter().flat_map(koord_resource::controller::ControllerSpec::rbac_rules);
    let handlers = HANDLERS.iter().flat_map(|handler| handler.rbac.iter().copied());
    controllers.chain(handlers).chain(koord_webhook::RBAC).chain(ITSELF).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_may_do_its_work() {
        let rules = rbac_rules();
        let may = |group: &str, resource: &str, verb: &str| {
            rules.iter().any(|rule| rule.group == group && rule.resource == resource && rule.verbs.contains(&verb))
        };
        for (group, resource, verb) in [
            ("", "nodes", "watch"),
            ("", "configmaps", "watch"),
            ("", "events", "create"),
            ("", "secrets", "create"),
            ("slo.koordinator.sh", "nodeslos", "create"),
            ("slo.koordinator.sh", "nodemetrics", "patch"),
            ("config.koordinator.sh", "clustercolocationprofiles", "watch"),
            ("coordination.k8s.io", "leases", "update"),
            ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "patch"),
        ] {
            assert!(may(group, resource, verb), "{verb} {resource}.{group}");
        }
        assert!(!rules.iter().any(|rule| rule.verbs.contains(&"*") || rule.resource == "*"), "no wildcards");
    }
}
