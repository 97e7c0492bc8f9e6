use std::{collections::BTreeMap, sync::Arc};

use koord::k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use koord::runtime::{
    child::Child, controller::Controller, error::ReconcileError, key::ObjectKey, outcome::Outcome, store::Store,
};
use koord::{Mutate, Projection, Resource, Schema, Validate, jiff::Timestamp};
use serde::{Deserialize, Serialize};

/// A greeting, published in a ConfigMap of the same name.
#[derive(Clone, Deserialize, Resource, Schema, Validate, Mutate)]
#[koord(group = "example.com", version = "v1", scope = "Namespaced")]
#[koord(column(name = "To", type = "string", path = ".spec.to"))]
pub(crate) struct Greeting {
    metadata: ObjectMeta,
    spec: GreetingSpec,
}

/// The greeting to publish.
#[derive(Clone, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
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
#[koord(kind = Greeting)]
struct GreetingView {
    spec: GreetingSpec,
}

/// Declares the desired ConfigMap. The runtime writes the difference, and nothing when there is none.
#[koord::controller(name = "greeting", for = greetings, owns(config_maps))]
pub(crate) struct Greetings {
    greetings: Arc<Store<GreetingView>>,
    config_maps: Arc<Store<Child<ConfigMap>>>,
}

impl Controller for Greetings {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let (greetings, config_maps) = (self.greetings.read(), self.config_maps.read());
        let Some(greeting) = greetings.get(key.as_str()).filter(|greeting| !greeting.deleting) else {
            return Ok(Outcome::settled());
        };
        let GreetingSpec { to, times } = &greeting.value.spec;
        let words = vec![format!("Hello, {to}!"); times.unwrap_or(1).into()].join(" ");
        let data = Some(BTreeMap::from([("words".to_owned(), words)]));
        let mut outcome = Outcome::of(key, greeting);
        outcome.apply(&config_maps, key, &ConfigMap { data, ..ConfigMap::default() })?;
        Ok(outcome)
    }
}
