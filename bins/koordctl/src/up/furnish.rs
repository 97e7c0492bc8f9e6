//! What a cluster needs before Koordinator can live in it: definitions, namespaces, priorities, configuration.
//!
//! Everything here may be there already, from an earlier run; what is there stays as it is, except for the definitions.

use anyhow::{Context as _, Result};
use koord_resource::{
    admission::WebhookKind,
    document::{WebhookService, webhook_configuration},
};
use koord_webhooks::HANDLERS;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::{Value, json};

use crate::{cli::Profile, crd};

/// The namespace that Koordinator is installed in.
pub const NAMESPACE: &str = "koordinator-system";

/// The configuration of the webhooks that change objects.
pub const MUTATING: &str = "koordinator-mutating-webhook-configuration";

/// The configuration of the webhooks that check objects.
pub const VALIDATING: &str = "koordinator-validating-webhook-configuration";

/// What stands for a certificate authority until koord-manager fills in its own: a line break, in base64.
pub const NO_AUTHORITY: &str = "Cg==";

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
        ("koord-mid", 7000, "Between: runs on what production has reserved and will not use soon."),
        ("koord-batch", 5000, "Batch: runs on what others leave, and gives way first."),
        ("koord-free", 3000, "Free: runs when nobody else wants to."),
    ];
    let configuration = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "slo-controller-config", "namespace": NAMESPACE,
            // what the webhook that checks this ConfigMap selects by
            "labels": {"koordinator.sh/configmap-type": "slo-controller-config"},
        },
        "data": {},
    });
    // koord-manager fills in where its webhooks are; that both exist is its condition for starting.
    let service = WebhookService { namespace: NAMESPACE, name: "koordinator-webhook-service", ca_bundle: NO_AUTHORITY };
    let webhooks = [(WebhookKind::Mutating, MUTATING), (WebhookKind::Validating, VALIDATING)]
        .map(|(kind, name)| webhook_configuration(kind, name, &HANDLERS, &service));
    // Real clusters have the first two from the start.
    let namespaces = [namespace(hollow::node::LEASE_NAMESPACE), namespace("default"), namespace(NAMESPACE)];
    namespaces.into_iter().chain(priorities.map(priority)).chain([configuration]).chain(webhooks).collect()
}

async fn create(client: &Client, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let types = object.types.clone().context("an object without a kind")?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let kind = GroupVersionKind::try_from(&types)?;
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{} {name} cannot be created", kind.kind)),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_has_the_four_priorities_and_the_configuration() {
        let names: Vec<String> =
            objects().iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        for name in ["koord-prod", "koord-mid", "koord-batch", "koord-free", "slo-controller-config", NAMESPACE] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
    }
}
