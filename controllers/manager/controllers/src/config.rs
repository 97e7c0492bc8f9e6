//! Where the configuration lies, and how its errors are reported.

use std::collections::BTreeSet;

use koord_runtime::{
    cache::Entry,
    controller::Requests,
    events::Event,
    key::ObjectKey,
    metrics::{Audience, Description, Metrics, Unit},
};
use koord_types::slo_config;
use parking_lot::Mutex;
use prometheus::{IntCounterVec, IntGaugeVec};

use crate::view::ConfigMapView;

/// Which ConfigMap holds the configuration of the controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSource {
    pub namespace: String,
    pub name: String,
}

impl Default for ConfigSource {
    fn default() -> Self {
        Self { namespace: slo_config::CONFIG_MAP_NAMESPACE.to_owned(), name: slo_config::CONFIG_MAP_NAME.to_owned() }
    }
}

impl ConfigSource {
    /// Selects the ConfigMap in its namespace; all controllers share the cache of it.
    pub(crate) fn fields(&self) -> String {
        format!("metadata.name={}", self.name)
    }
}

/// A key of the configuration that could not be taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigError {
    pub(crate) key: &'static str,
    /// The reason of the event about it.
    pub(crate) reason: &'static str,
    /// What is wrong.
    pub(crate) message: String,
}

/// Reports the errors of a configuration: an event on the ConfigMap, a metric and a log line, once per edit.
pub(crate) struct ConfigErrors {
    controller: &'static str,
    counter: IntCounterVec,
    invalid: IntGaugeVec,
    invalid_keys: Mutex<BTreeSet<&'static str>>,
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
        Ok(Self { controller, counter, invalid, invalid_keys: Mutex::default() })
    }

    /// The ConfigMap was read: these are its errors now.
    pub(crate) fn report(
        &self,
        errors: impl IntoIterator<Item = ConfigError>,
        config_map: (&ObjectKey, &Entry<ConfigMapView>),
        requests: &mut Requests,
    ) {
        let mut invalid_keys = self.invalid_keys.lock();
        for key in std::mem::take(&mut *invalid_keys) {
            self.invalid.with_label_values(&[self.controller, key]).set(0);
        }
        for ConfigError { key, reason, message } in errors {
            self.counter.with_label_values(&[self.controller, key]).inc();
            self.invalid.with_label_values(&[self.controller, key]).set(1);
            invalid_keys.insert(key);
            tracing::warn!(controller = self.controller, key, message, "an error in slo-controller-config");
            requests.event(Event::warning(config_map, "ReadingConfiguration", reason, message));
        }
    }
}
