//! Who the program is, and what it may do.

use std::iter;

use serde_json::{Value, json};

use super::{Installation, Webhooks, add_labels};
use crate::{
    controller::ControllerSpec,
    document::rbac::{Grant, roles_of},
    rbac::{EVENTS, leader_election as election},
};

/// The ServiceAccount, the roles of all rules, and a binding for each role.
pub(super) fn objects(installation: &Installation) -> impl Iterator<Item = Value> {
    let Installation { name, namespace, labels, .. } = installation;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": installation.in_namespace(name)});
    let mut roles = roles_of(&format!("{name}-role"), &grants(installation), namespace);
    for role in &mut roles {
        add_labels(&mut role["metadata"], labels);
    }
    let bindings: Vec<Value> = roles.iter().map(|role| binding(role, name, namespace)).collect();
    iter::once(account).chain(roles).chain(bindings)
}

/// What the program may do: what is declared, and what follows from it.
fn grants(installation: &Installation) -> Vec<Grant<'_>> {
    let Installation { controllers, rules, leader_election, lease, webhooks, .. } = installation;
    let of_controllers = controllers.iter().flat_map(ControllerSpec::rbac_rules);
    let [create, keep] = election(&[]);
    let election = leader_election.then_some([Grant::from(create), Grant::of_one(keep, lease)]);
    let of_program = of_controllers.chain(rules.iter().copied()).chain([EVENTS]).map(Grant::from);
    of_program.chain(election.into_iter().flatten()).chain(webhooks.iter().flat_map(Webhooks::grants)).collect()
}

/// Gives a role to the ServiceAccount, where the role is.
fn binding(role: &Value, name: &str, namespace: &str) -> Value {
    let mut metadata = role["metadata"].clone();
    metadata["name"] = json!(format!("{name}-rolebinding"));
    json!({
        "apiVersion": role["apiVersion"],
        "kind": if role["kind"] == "Role" { "RoleBinding" } else { "ClusterRoleBinding" },
        "metadata": metadata,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role["kind"],
            "name": role["metadata"]["name"],
        },
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    })
}
