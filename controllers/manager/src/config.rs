//! Where the configuration lies, and how its mistakes are told.

use std::sync::Arc;

use koord_api::slo_config;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Wiring,
    cache::Entry,
    controller::Reaction,
    events::{Event, EventType},
    key::ObjectKey,
    metrics::{Audience, Metrics},
    reflector::Selection,
    store::Store,
};
use prometheus::IntCounterVec;

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
pub(crate) struct Complaints {
    controller: &'static str,
    counter: IntCounterVec,
}

impl Complaints {
    pub(crate) fn new(metrics: &Metrics, controller: &'static str) -> prometheus::Result<Self> {
        let name = format!("slo_controller_{controller}_config_error_count");
        let help = "Edits of slo-controller-config with a key that could not be taken.";
        Ok(Self { controller, counter: metrics.counter(Audience::Internal, &name, help, &["key"])? })
    }

    /// Counts a mistake without telling users; for mistakes that the original keeps to itself.
    pub(crate) fn count(&self, key: &str, message: &str) {
        self.counter.with_label_values(&[key]).inc();
        tracing::warn!(controller = self.controller, key, message, "the last good configuration stays in force");
    }

    pub(crate) fn tell(
        &self,
        (key, reason): (&str, &'static str),
        message: String,
        at: (&ObjectKey, &Entry<ConfigMapView>),
        reaction: &mut Reaction,
    ) {
        self.count(key, &message);
        reaction.event(Event {
            kind: ResourceKind::CONFIG_MAP,
            key: at.0.clone(),
            uid: Arc::clone(&at.1.uid),
            type_: EventType::Warning,
            reason,
            message,
        });
    }
}
