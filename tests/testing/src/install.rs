//! The manifests of an operator, brought into a cluster.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use envtest::request::User;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, GroupVersionKind, PostParams},
    discovery::pinned_kind,
};
use serde_json::{Value, json};

/// The user that the operator is: with the permissions of the manifests' roles alone, where there are any.
pub(crate) fn user(name: &str, manifests: &[Value]) -> User {
    let has_roles = manifests.iter().any(|manifest| role(manifest).is_some());
    let groups = if has_roles { Vec::new() } else { vec!["system:masters".to_owned()] };
    User { name: name.to_owned(), groups, ..User::default() }
}

/// Creates the manifests, the namespaces that they are in, and bindings of their roles to the operator.
pub(crate) async fn install(client: &Client, name: &str, manifests: &[Value]) -> Result<()> {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let made: BTreeSet<String> = manifests
        .iter()
        .filter(|manifest| manifest["kind"] == "Namespace")
        .filter_map(|manifest| text(&manifest["metadata"]["name"]))
        .collect();
    let named: BTreeSet<String> =
        manifests.iter().filter_map(|manifest| text(&manifest["metadata"]["namespace"])).collect();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for namespace in named.difference(&made) {
        if namespaces.get_opt(namespace).await?.is_none() {
            create(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await?;
        }
    }
    for manifest in manifests {
        let about = || format!("the manifest {} {} is refused", manifest["kind"], manifest["metadata"]["name"]);
        create(client, manifest).await.with_context(about)?;
        if let Some(role) = role(manifest) {
            create(client, &binding(role, &manifest["metadata"], name)).await?;
        }
    }
    Ok(())
}

/// The kind of a role; none for everything else.
fn role(manifest: &Value) -> Option<&str> {
    manifest["kind"].as_str().filter(|kind| matches!(*kind, "Role" | "ClusterRole"))
}

fn binding(role: &str, metadata: &Value, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": format!("{role}Binding"),
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": metadata["name"]},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

/// Creates an object of any kind that the server has; one that names no namespace goes to `default`.
pub(crate) async fn create(client: &Client, object: &Value) -> Result<Value> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let mut api = api_of(client, text("apiVersion"), text("kind")).await?;
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    if let Some(namespace) = object.namespace() {
        api = api.constrain(&namespace);
    }
    Ok(serde_json::to_value(api.create(&PostParams::default(), &object).await?)?)
}

/// Requests for objects of a kind that is known by its name alone; those of a namespaced kind in `default`.
pub(crate) async fn api_of(client: &Client, api_version: &str, kind: &str) -> Result<Api<DynamicObject>> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (resource, capabilities) = pinned_kind(client, &GroupVersionKind::gvk(group, version, kind)).await?;
    // A kind of the cluster stays one.
    Ok(Api::dynamic(client.clone(), &resource, &capabilities.scope).constrain_default())
}
