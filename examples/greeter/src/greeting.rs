use std::sync::Arc;

use koord::controller::ResourceKind;
use koord::runtime::{controller::Controller, error::ReconcileError, key::ObjectKey, outcome::Outcome, store::Store};
use koord::{Mutate, Projection, Resource, Schema, Validate, jiff::Timestamp};
use koord::{k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta, runtime::outcome::Owned};
use koord::{serde::Deserialize, serde::Serialize, serde_json::Value, serde_json::json};

/// A greeting, published in a ConfigMap of the same name.
#[derive(Clone, Deserialize, Resource, Schema, Validate, Mutate)]
#[serde(crate = "koord::serde")]
#[koord(group = "example.com", version = "v1", scope = "Namespaced")]
#[koord(column(name = "To", type = "string", path = ".spec.to"))]
pub(crate) struct Greeting {
    metadata: ObjectMeta,
    spec: GreetingSpec,
}

/// The greeting to publish.
#[derive(Clone, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(crate = "koord::serde")]
struct GreetingSpec {
    /// Name of the recipient.
    #[koord(min_length = 1, max_length = 40)]
    to: String,
    /// How often the greeting is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default = 1, minimum = 1, maximum = 9)]
    times: Option<u8>,
}

/// What the cache keeps of a Greeting; changes of other fields trigger no reconcile request.
#[derive(PartialEq, Projection)]
#[koord(kind = Greeting, runtime = koord::runtime)]
struct GreetingView {
    spec: GreetingSpec,
}

/// What the cache keeps of a ConfigMap.
#[derive(PartialEq, Projection)]
#[koord(kind = ResourceKind::CONFIG_MAP, runtime = koord::runtime)]
struct ConfigMapView {
    data: Option<Value>,
}

impl Owned for ConfigMapView {
    fn owned(&self) -> Value {
        json!({ "data": self.data })
    }
}

/// Declares the desired ConfigMap. The runtime writes the difference, and nothing when there is none.
#[koord::controller(name = "greeting", for = greetings, owns(config_maps), runtime = koord::runtime)]
pub(crate) struct Greetings {
    greetings: Arc<Store<GreetingView>>,
    config_maps: Arc<Store<ConfigMapView>>,
}

impl Controller for Greetings {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let (greetings, config_maps) = (self.greetings.read(), self.config_maps.read());
        let mut outcome = Outcome::settled();
        let Some(greeting) = greetings.get(key.as_str()).filter(|greeting| !greeting.deleting) else {
            return Ok(outcome);
        };
        let GreetingSpec { to, times } = &greeting.value.spec;
        let words = vec![format!("Hello, {to}!"); times.unwrap_or(1).into()].join(" ");
        let owner = json!({"apiVersion": "example.com/v1", "kind": "Greeting", "name": key.name(),
                           "uid": greeting.uid, "controller": true});
        let config_map = json!({"metadata": {"ownerReferences": [owner]}, "data": {"words": words}});
        outcome.present(&config_maps, key, config_map.as_object().cloned().unwrap_or_default())?;
        Ok(outcome)
    }
}
