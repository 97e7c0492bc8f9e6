//! Installs what Koordinator needs in a cluster: CRDs, namespaces, priority classes, configuration.
//!
//! Objects that an earlier run has installed stay as they are, except for the CRDs.

use anyhow::{Context as _, Result};
use koord_manager_assembly::{NO_AUTHORITY, webhook_defaults};
use koord_program::dynamic::typed;
use koord_resource::{
    admission::WebhookKind,
    document::{WebhookService, webhook_configuration},
};
use koord_webhook_handlers::HANDLERS;
use kube::{
    Client, ResourceExt as _,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{cli::Profile, crd};

/// The namespace that Koordinator is installed in.
pub const NAMESPACE: &str = "koordinator-system";

/// Installs the definitions and waits until they are served.
pub async fn definitions(client: &Client, profile: Profile, mut progress: impl FnMut(usize)) -> Result<()> {
    let definitions = crd::definitions(profile);
    for (index, definition) in definitions.iter().enumerate() {
        crd::apply(client, definition).await?;
        progress(index + 1);
    }
    crd::established(client, &definitions).await
}

/// Creates the objects of an installation that are not there yet.
pub async fn installation(client: &Client) -> Result<()> {
    for object in objects() {
        create(client, object).await?;
    }
    Ok(())
}

/// What the roles of the default installation are written in; applied to a cluster, they are the same.
const PERMISSIONS: [&str; 3] = [
    include_str!("../../../../config/rbac/service_account.yaml"),
    include_str!("../../../../config/rbac/role.yaml"),
    include_str!("../../../../config/rbac/role_binding.yaml"),
];

/// Creates the ServiceAccount of koord-manager with its roles and bindings, so that another koord-manager can run as it.
pub async fn permissions(client: &Client) -> Result<()> {
    for file in PERMISSIONS {
        let documents: Vec<Value> = serde_saphyr::from_multiple(file).context("config/rbac is no YAML")?;
        for object in documents.into_iter().filter(Value::is_object) {
            create(client, object).await?;
        }
    }
    Ok(())
}

/// Deletes the Lease of an earlier run. The process that held it is gone, because its data directory is ours.
pub async fn no_lease(client: &Client) -> Result<()> {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": koord_manager_assembly::NAME, "namespace": NAMESPACE},
    });
    remove(client, lease).await
}

/// Creates the namespace of the production pods.
pub async fn workload_namespace(client: &Client) -> Result<()> {
    let name = hollow::workload::NAMESPACE;
    create(client, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await
}

/// Creates the webhook configurations that koord-manager keeps right; where they are is what it fills in. Those of an earlier run lead to a port
/// that is gone: they lose their authority, so that they count as filled in only when this run has done it.
pub async fn webhooks(client: &Client) -> Result<()> {
    for configuration in webhook_configurations() {
        let (api, object) = typed(client, configuration.clone())?;
        let name = object.name_any();
        let Some(mut earlier) = api.get_opt(&name).await.with_context(|| format!("{name} cannot be read"))? else {
            create(client, configuration).await?;
            continue;
        };
        for entry in earlier.data["webhooks"].as_array_mut().into_iter().flatten() {
            entry["clientConfig"]["caBundle"] = NO_AUTHORITY.into();
        }
        api.replace(&name, &PostParams::default(), &earlier)
            .await
            .with_context(|| format!("{name} cannot be changed"))?;
    }
    Ok(())
}

/// Removes the webhook configurations of an earlier run: without a server behind them no pod could be created.
pub async fn no_webhooks(client: &Client) -> Result<()> {
    for configuration in webhook_configurations() {
        remove(client, configuration).await?;
    }
    Ok(())
}

fn webhook_configurations() -> [Value; 2] {
    let names = webhook_defaults();
    let service = WebhookService { namespace: NAMESPACE, name: &names.service, ca_bundle: NO_AUTHORITY };
    [(WebhookKind::Mutating, &names.mutating), (WebhookKind::Validating, &names.validating)]
        .map(|(kind, name)| webhook_configuration(kind, name, HANDLERS, &service))
}

fn objects() -> Vec<Value> {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let priority = |(class, value, says): (&str, i32, &str)| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": class},
            "value": value, "description": says,
        })
    };
    let priorities = [
        ("koord-prod", 9000, "Production: latency matters, resources are guaranteed."),
        ("koord-mid", 7000, "Mid: runs on what production has reserved and will not use soon."),
        ("koord-batch", 5000, "Batch: runs on what others leave, and is evicted first."),
        ("koord-free", 3000, "Free: runs when no other pod needs the resources."),
    ];
    let configuration = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "slo-controller-config", "namespace": NAMESPACE,
            // what the webhook that checks this ConfigMap selects by
            "labels": {"koordinator.sh/configmap-type": "slo-controller-config"},
        },
        "data": {"colocation-config": json!({"enable": true}).to_string()},
    });
    // Webhooks leave namespaces with this label alone, so that koord-manager can start before it serves.
    let installed = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"control-plane": "koordinator"}},
    });
    // Real clusters have the first two from the start.
    let namespaces = [namespace(hollow::node::LEASE_NAMESPACE), namespace("default"), installed];
    namespaces.into_iter().chain(priorities.map(priority)).chain([configuration]).chain(node_bindings()).collect()
}

/// What kubeadm binds, so that a kubelet with a bootstrap token may ask for its certificate and gets it.
fn node_bindings() -> [Value; 3] {
    const GROUP: &str = "rbac.authorization.k8s.io";
    const REQUESTS: &str = "system:certificates.k8s.io:certificatesigningrequests";
    [
        ("kubeadm:kubelet-bootstrap", "system:node-bootstrapper".to_owned(), "system:bootstrappers"),
        ("kubeadm:node-autoapprove-bootstrap", format!("{REQUESTS}:nodeclient"), "system:bootstrappers"),
        ("kubeadm:node-autoapprove-certificate-rotation", format!("{REQUESTS}:selfnodeclient"), "system:nodes"),
    ]
    .map(|(name, role, group)| {
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": group}],
        })
    })
}

async fn create(client: &Client, object: Value) -> Result<()> {
    let (api, object) = typed(client, object)?;
    // Looked for first: the webhooks of an earlier run, which would be asked about a create, are not there any more.
    if api.get_opt(&object.name_any()).await.with_context(|| format!("{} cannot be read", object.name_any()))?.is_some()
    {
        return Ok(());
    }
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        result => result.map(drop).with_context(|| format!("{} cannot be created", object.name_any())),
    }
}

/// Creates an object, in place of one that is there.
pub async fn replace(client: &Client, object: Value) -> Result<()> {
    remove(client, object.clone()).await?;
    create(client, object).await
}

async fn remove(client: &Client, object: Value) -> Result<()> {
    let (api, object) = typed(client, object)?;
    match api.delete(&object.name_any(), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result.map(drop).with_context(|| format!("{} cannot be removed", object.name_any())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_handler_has_its_entries_in_the_configurations() {
        let entries: usize = webhook_configurations()
            .iter()
            .map(|configuration| configuration["webhooks"].as_array().unwrap().len())
            .sum();
        assert_eq!(entries, HANDLERS.iter().map(|handler| handler.entries.len()).sum::<usize>());
    }

    #[test]
    fn an_installation_has_the_four_priorities_and_the_configuration() {
        let names: Vec<String> =
            objects().iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        for name in ["koord-prod", "koord-mid", "koord-batch", "koord-free", "slo-controller-config", NAMESPACE] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
    }
}
