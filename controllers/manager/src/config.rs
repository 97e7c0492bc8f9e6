//! Where the configuration lies, and how its errors are reported.

use std::{collections::BTreeSet, sync::Arc};

use koord_api::slo_config;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Wiring,
    cache::Entry,
    controller::Requests,
    events::{Event, EventType},
    key::ObjectKey,
    metrics::{Audience, Description, Metrics, Unit},
    reflector::Selection,
    store::Store,
};
use parking_lot::Mutex;
use prometheus::{IntCounterVec, IntGaugeVec};

use crate::view::ConfigMapView;

/// Which ConfigMap holds the configuration of the controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSource {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Default for ConfigSource {
    fn default() -> Self {
        Self { namespace: slo_config::CONFIG_MAP_NAMESPACE.to_owned(), name: slo_config::CONFIG_MAP_NAME.to_owned() }
    }
}

impl ConfigSource {
    /// The cache of this one ConfigMap; all controllers share it.
    pub(crate) fn cache(&self, wiring: &mut Wiring<'_>) -> Arc<Store<ConfigMapView>> {
        wiring.reads_some(&Selection {
            namespace: self.namespace.clone(),
            fields: format!("metadata.name={}", self.name),
            labels: String::new(),
        })
    }
}

/// Tells the mistakes of a configuration: an event on the ConfigMap and a metric, once per edit.
pub(crate) struct ConfigErrors {
    controller: &'static str,
    counter: IntCounterVec,
    invalid: IntGaugeVec,
    reported: Mutex<BTreeSet<String>>,
}

pub(crate) const ERRORS: Description = Description::counter(
    "koord_config_errors_total",
    &["controller", "key"],
    "Edits of slo-controller-config with a key that could not be taken.",
)
.to(Audience::Internal)
.advice("See `koord_config_key_invalid`.");
pub(crate) const INVALID: Description = Description::gauge(
    "koord_config_key_invalid",
    &["controller", "key"],
    "Whether a key of slo-controller-config cannot be taken as it stands; its last good value stays in force.",
)
.to(Audience::Internal)
.unit(Unit::YesNo)
.advice("Fix the key; the event on the ConfigMap says what is wrong, `koordctl lint -f` shows line and remedy.");

impl ConfigErrors {
    pub(crate) fn new(metrics: &Metrics, controller: &'static str) -> prometheus::Result<Self> {
        let (counter, invalid) = (metrics.counter(ERRORS)?, metrics.gauge(INVALID)?);
        Ok(Self { controller, counter, invalid, reported: Mutex::default() })
    }

    /// The configuration is read again; what is wrong with it now is not reported yet.
    pub(crate) fn begin(&self) {
        for key in std::mem::take(&mut *self.reported.lock()) {
            self.invalid.with_label_values(&[self.controller, &key]).set(0);
        }
    }

    fn count(&self, key: &str, message: &str) {
        self.counter.with_label_values(&[self.controller, key]).inc();
        self.invalid.with_label_values(&[self.controller, key]).set(1);
        self.reported.lock().insert(key.to_owned());
        tracing::warn!(controller = self.controller, key, message, "a mistake in slo-controller-config");
    }

    pub(crate) fn report(
        &self,
        (key, reason): (&str, &'static str),
        message: String,
        at: (&ObjectKey, &Entry<ConfigMapView>),
        requests: &mut Requests,
    ) {
        self.count(key, &message);
        requests.event(Event {
            kind: ResourceKind::CONFIG_MAP,
            key: at.0.clone(),
            uid: at.1.uid.clone(),
            type_: EventType::Warning,
            action: "ReadingConfiguration",
            reason,
            message,
        });
    }
}
