//! A webhook that looks at other objects: no two Websites have the same host.

use std::sync::Arc;

use koord::{
    Mutate, Projection, Resource, Schema, Validate,
    admission::{Handler, Review},
    document::{Declared, Installation, Webhooks, install},
    field::{Errors, Path},
    handlers,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    runtime::{
        index::{By, Term},
        key::ObjectKey,
        reflector::Selection,
        store::Store,
    },
    serde_json::{Value, json},
    testing::{self, Cluster, Setup},
    webhook::{Service, ServiceBuilder},
};
use serde::{Deserialize, Serialize};

/// A website.
#[derive(Clone, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced")]
#[koord(admission(
    validate(path = "/validate-website", name = "vwebsite.example.com", on = [Create, Update], snapshot),
))]
struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
}

/// What is served.
#[derive(Clone, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
struct WebsiteSpec {
    /// The name under which it is found; no other website has it.
    host: String,
}

#[derive(PartialEq, Projection)]
#[koord(kind = Website, index = By<WebsiteView, ByHost>)]
struct WebsiteView {
    spec: WebsiteSpec,
}

/// Websites by their host.
struct ByHost;

impl Term<WebsiteView> for ByHost {
    type Value = String;

    fn terms(_: &ObjectKey, website: &WebsiteView, found_by: &mut dyn FnMut(String)) {
        found_by(website.spec.host.clone());
    }
}

#[koord::admission(
    declared = Website::VALIDATING,
    rbac(group = "example.com", resource = "websites", verbs = [list, watch]),
)]
fn one_per_host(review: &Review<'_, Website>, websites: &Store<WebsiteView>, errors: &mut Errors) {
    let Some(website) = &review.object else { return };
    let own = ObjectKey::new(&review.request.namespace, &review.request.name);
    let websites = websites.read();
    if let Some(other) = websites.index().get(&website.spec.host).find(|other| **other != own) {
        let message = format!("is the host of {other}");
        errors.invalid(&Path::root("spec").child("host"), &website.spec.host, message);
    }
}

/// What the webhook server serves.
const HANDLERS: &[Handler<Store<WebsiteView>>] = handlers![one_per_host];

fn add(setup: &mut Setup) -> koord::program::Result<Service> {
    let core = setup.core();
    let websites = core.store::<WebsiteView>(&Selection::default());
    Ok(ServiceBuilder::of(core)?.handlers_with(HANDLERS, move || Arc::clone(&websites)).build())
}

const KINDS: &[&[Declared]] = &[&[Declared::of::<Website>()]];

fn manifests() -> Vec<Value> {
    install(&Installation {
        kinds: KINDS,
        webhooks: Some(Webhooks::of("websites", "websites", HANDLERS)),
        ..Installation::new("websites", "websites", "websites:v1")
    })
}

fn website(name: &str, host: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": name}, "spec": {"host": host}})
}

/// Refused is also what somebody asks for in the moment in which the operator starts.
#[test]
fn a_host_is_given_once_also_after_a_restart() -> testing::Result<()> {
    testing::run(async {
        let mut cluster = Cluster::start("websites", &manifests(), add).await?;
        cluster.create(&website("a", "example.com")).await?;
        cluster.create(&website("b", "example.org")).await?;
        let denied = |refused: testing::Error| {
            let text = refused.to_string();
            assert!(text.contains("spec.host") && text.contains("is the host of default/a"), "{text}");
        };
        denied(cluster.create(&website("c", "example.com")).await.unwrap_err());
        cluster.stop().await?;
        cluster.run(add)?;
        denied(cluster.create(&website("c", "example.com")).await.unwrap_err());
        Ok(())
    })
}

/// The operator starts where its lists are refused: it does not know which hosts are given.
#[test]
fn what_is_not_known_is_refused() -> testing::Result<()> {
    testing::run(async {
        let mut manifests = manifests();
        let is_role = |manifest: &Value| matches!(manifest["kind"].as_str(), Some("Role" | "ClusterRole"));
        for role in manifests.iter_mut().filter(|manifest| is_role(manifest)) {
            for rule in role["rules"].as_array_mut().into_iter().flatten() {
                if rule["resources"] == json!(["websites"]) {
                    rule["verbs"] = json!(["get"]);
                }
            }
        }
        let cluster = Cluster::start("websites", &manifests, add).await?;
        let refused = cluster.create(&website("a", "example.com")).await.unwrap_err().to_string();
        assert!(refused.contains("the caches of the webhook server are not complete yet (Website)"), "{refused}");
        Ok(())
    })
}
