//! What koord-manager may do in a cluster: the sum of what its parts declare, and what running it takes.

use koord_manager_controllers::CONTROLLERS;
use koord_program::permissions;
use koord_resource::{
    controller::ControllerSpec,
    rbac::{RbacRule, webhook_server},
};
use koord_webhook_handlers::HANDLERS;

use crate::{
    gates::GATES,
    identity::{BUILD, CERTIFICATES, MUTATING, VALIDATING},
};

/// Controllers that run only where their gate is switched on. What they need beside [`rbac_rules`] is granted apart:
/// the manager may not change pods where the gate is off.
pub fn optional_controllers() -> impl Iterator<Item = &'static ControllerSpec> {
    CONTROLLERS.iter().filter(|spec| spec.gate.is_some_and(is_off))
}

fn is_off(gate: &str) -> bool {
    GATES.iter().any(|known| known.name == gate && !known.default)
}

/// Every permission that the program uses without [`optional_controllers`].
pub fn rbac_rules() -> Vec<RbacRule> {
    let webhooks = webhook_server(&[CERTIFICATES], &[MUTATING], &[VALIDATING]);
    own_rules().into_iter().chain(permissions(&[BUILD.field_manager])).chain(webhooks).collect()
}

/// The permissions of the handlers, and of the controllers without [`optional_controllers`]. An installation adds those for leader
/// election, events and the webhook server.
pub fn own_rules() -> Vec<RbacRule> {
    let controllers = CONTROLLERS.iter().filter(|spec| !spec.gate.is_some_and(is_off));
    let handlers = HANDLERS.iter().flat_map(|handler| handler.rbac.iter().copied());
    controllers.flat_map(ControllerSpec::rbac_rules).chain(handlers).collect()
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
            ("events.k8s.io", "events", "create"),
            ("", "secrets", "create"),
            ("slo.koordinator.sh", "nodeslos", "create"),
            ("slo.koordinator.sh", "nodemetrics", "patch"),
            ("config.koordinator.sh", "clustercolocationprofiles", "watch"),
            ("coordination.k8s.io", "leases", "update"),
            ("coordination.k8s.io", "leases", "watch"),
            ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "patch"),
        ] {
            assert!(may(group, resource, verb), "{verb} {resource}.{group}");
        }
        let leases = |verb: &'static str| {
            rules.iter().filter(move |rule| rule.resource == "leases" && rule.verbs.contains(&verb))
        };
        assert!(leases("update").all(|rule| rule.names == ["koordinator-manager"]), "other leases are others'");
        assert!(leases("create").all(|rule| rule.verbs == ["create"]), "a name cannot be required of what is created");
        assert!(!may("", "pods", "patch"), "only a gate that is off needs it");
        assert!(!may("", "events", "create"), "that group is for roles of older installations");
        assert!(!rules.iter().any(|rule| rule.verbs.contains(&"*") || rule.resource == "*"), "no wildcards");
    }

    #[test]
    fn what_only_a_gate_needs_is_granted_apart() {
        let optional: Vec<&str> = optional_controllers().map(|spec| spec.name).collect();
        assert_eq!(optional, ["colocationprofile"]);
        let rules: Vec<RbacRule> = optional_controllers().flat_map(ControllerSpec::rbac_rules).collect();
        assert!(rules.iter().any(|rule| rule.resource == "pods" && rule.verbs == ["patch"]));
    }
}
