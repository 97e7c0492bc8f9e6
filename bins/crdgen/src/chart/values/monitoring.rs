//! What the values of every program say of its alerts and its dashboard.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Added. The PrometheusRule with the alerts of the reference page; needs the Prometheus operator.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PrometheusRule {
    /// Whether the chart creates it.
    enabled: bool,
    /// Further labels, by which a Prometheus selects its rules, such as {release: kube-prometheus-stack}.
    labels: BTreeMap<String, String>,
}

/// Added. The ConfigMap with the Grafana dashboard, as Grafana's sidecar loads it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Dashboards {
    /// Whether the chart creates it.
    enabled: bool,
    /// Further labels; the default is the one that the sidecar of the Grafana chart looks for.
    labels: BTreeMap<String, String>,
    /// Annotations, such as {grafana_folder: Koordinator}.
    annotations: BTreeMap<String, String>,
}

impl Default for Dashboards {
    fn default() -> Self {
        let labels = BTreeMap::from([("grafana_dashboard".to_owned(), "1".to_owned())]);
        Self { enabled: false, labels, annotations: BTreeMap::new() }
    }
}
