//! Who the program is, and what it may do.

use std::iter;

use serde_json::{Value, json};

use super::{Installation, add_labels};
use crate::document::roles;

/// The ServiceAccount, the roles of all rules, and a binding for each role.
pub(super) fn objects(installation: &Installation) -> impl Iterator<Item = Value> {
    let Installation { name, namespace, labels, rules, .. } = installation;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": installation.in_namespace(name)});
    let mut roles = roles(&format!("{name}-role"), rules, namespace);
    for role in &mut roles {
        add_labels(&mut role["metadata"], labels);
    }
    let bindings: Vec<Value> = roles.iter().map(|role| binding(role, name, namespace)).collect();
    iter::once(account).chain(roles).chain(bindings)
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
