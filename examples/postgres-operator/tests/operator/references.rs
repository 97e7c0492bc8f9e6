//! What an object refers to by a name in its own namespace: a Website and the Secret with its password.

use std::sync::{Arc, OnceLock};

use koord::{
    Mutate, Projection, Resource, Schema, Validate,
    document::{Declared, Installation, install},
    jiff::Timestamp,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    kube::Api,
    prometheus::{self, IntCounterVec, IntGauge},
    runtime::{
        controller::Controller,
        error::ReconcileError,
        index::{By, Term},
        key::ObjectKey,
        metrics::{Audience, Description},
        outcome::Outcome,
        store::Store,
    },
    serde_json::{Value, json},
    testing::{self, Cluster, Setup},
};
use serde::{Deserialize, Serialize};

/// A website.
#[derive(Clone, Debug, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced", status)]
struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<WebsiteStatus>,
}

/// What is served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
struct WebsiteSpec {
    /// The Secret with the password.
    secret: String,
}

/// What is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
struct WebsiteStatus {
    /// Whether the Secret is there.
    found: bool,
}

#[derive(PartialEq, Projection)]
#[koord(kind = koord::controller::ResourceKind::SECRET)]
struct SecretView {
    data: Option<Value>,
}

#[derive(PartialEq, Projection)]
#[koord(kind = Website, index = By<WebsiteView, BySecret>)]
struct WebsiteView {
    spec: WebsiteSpec,
    status: Option<WebsiteStatus>,
}

/// Websites by the Secret that they name, which is in their own namespace.
struct BySecret;

impl Term<WebsiteView> for BySecret {
    type Value = ObjectKey;

    fn terms(website: &ObjectKey, view: &WebsiteView, found_by: &mut dyn FnMut(ObjectKey)) {
        found_by(ObjectKey::new(website.namespace(), &view.spec.secret));
    }
}

#[koord::controller(
    name = "website",
    for(websites, writes = [status]),
    watches(secrets, by = index),
    init(decided = wiring.metrics().counter(DECIDED)?, known = wiring.metrics().gauge(KNOWN)?.with_label_values::<&str>(&[])),
    error = prometheus::Error,
)]
struct WebsiteController {
    websites: Arc<Store<WebsiteView>>,
    secrets: Arc<Store<SecretView>>,
    decided: IntCounterVec,
    known: IntGauge,
}

const DECIDED: Description = Description::counter(
    "websites_decided_total",
    &["secret"],
    "Decisions about Websites, by whether their Secret was there: found, missing.",
)
.advice("missing: create the Secret that the Website names.");

const KNOWN: Description = Description::gauge("websites_known", &[], "Websites in the cache.");

impl Controller for WebsiteController {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let (websites, secrets) = (self.websites.read(), self.secrets.read());
        let Some(website) = websites.get(key.as_str()) else { return Ok(Outcome::settled()) };
        let secret = ObjectKey::new(key.namespace(), &website.value.spec.secret);
        let found = secrets.get(secret.as_str()).is_some_and(|secret| secret.value.data.is_some());
        let mut outcome = Outcome::of(key, website);
        outcome.status(&websites, key, &WebsiteStatus { found })?;
        let (decided, known, count) = (self.decided.clone(), self.known.clone(), websites.iter().count());
        outcome.remember(move || {
            decided.with_label_values(&[if found { "found" } else { "missing" }]).inc();
            known.set(i64::try_from(count).unwrap_or(i64::MAX));
        });
        Ok(outcome)
    }
}

const KINDS: &[&[Declared]] = &[&[Declared::of::<Website>()]];

fn add(setup: &mut Setup, registry: &OnceLock<koord::runtime::metrics::Metrics>) -> koord::program::Result<()> {
    registry.get_or_init(|| setup.metrics().clone());
    setup.core().add(WebsiteController::SPEC, "websites", WebsiteController::wire)?;
    Ok(())
}

#[test]
fn the_secret_of_the_same_namespace_is_the_one_that_counts() -> testing::Result<()> {
    testing::run(async {
        let manifests = install(&Installation {
            kinds: KINDS,
            controllers: &[WebsiteController::SPEC],
            ..Installation::new("websites", "websites", "websites:v1")
        });
        let registry = OnceLock::new();
        let cluster = Cluster::start("websites", &manifests, |setup| add(setup, &registry)).await?;
        let website = |namespace: &str| {
            let metadata = json!({"name": "site", "namespace": namespace});
            json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": {"secret": "password"}})
        };
        let is_found =
            |found: bool| move |website: &Website| website.status.as_ref().is_some_and(|status| status.found == found);
        let of = |namespace: &str| Api::<Website>::namespaced(cluster.client(), namespace);
        for namespace in ["shop", "pay"] {
            cluster.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await?;
            cluster.create(&website(namespace)).await?;
            cluster.until(&of(namespace), "site", "has no password", is_found(false)).await?;
        }
        let metadata = json!({"name": "password", "namespace": "shop"});
        cluster
            .create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": "eA=="}}))
            .await?;
        cluster.until(&of("shop"), "site", "has one", is_found(true)).await?;
        assert!(is_found(false)(&of("pay").get("site").await?), "the Secret of another namespace is another");
        let page = registry.get().map(|metrics| metrics.text(&[Audience::Runtime])).unwrap_or_default();
        for line in [
            r#"websites_decided_total{secret="found"} "#,
            r#"websites_decided_total{secret="missing"} "#,
            "websites_known 2\n",
        ] {
            assert!(page.contains(line), "{line} is not in\n{page}");
        }
        Ok(())
    })
}
