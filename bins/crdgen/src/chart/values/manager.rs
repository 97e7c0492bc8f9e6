//! `manager`: the Deployment of koord-manager and what belongs to it.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    forms::{LogLevel, Mode, NumberText, Object},
    image::ManagerImage,
    monitoring::{Dashboards, PrometheusRule},
    pods::Pods,
};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Manager {
    /// Number of pods. One of them leads; all answer webhooks.
    replicas: u32,
    image: ManagerImage,
    log: Log,
    webhook: Webhook,
    metrics: Metrics,
    health_probe: HealthProbe,
    /// Accepted for compatibility, without effect: caches need no periodic resync.
    resync_period: NumberText,
    #[serde(flatten)]
    pods: Pods,
    /// Whether pods use the node's network: for clusters whose API servers cannot reach the pod network.
    host_network: bool,
    /// Added. Whether admission warns of values without effect: one that a profile overwrites, a quota that does not exist.
    admission_warnings: bool,
    /// Added. What becomes of requests that break rules of Reservation, PodMigrationJob, NodeSLO, Device and ElasticQuota which the original
    /// never enforced: warn admits them with a warning, enforce denies them, off looks at none. Empty: what the gate DeclaredWebhooks says
    /// where featureGates sets it (true is enforce), else warn.
    declared_webhooks: Mode,
    /// Added. Further flags, such as --controllers=*,-nodeslo.
    #[schemars(inner(regex(pattern = "^-")))]
    extra_args: Vec<String>,
    network_policy: NetworkPolicy,
    /// Added. Whether the chart creates a PodMonitor; needs the Prometheus operator.
    monitor_enabled: bool,
    prometheus_rule: PrometheusRule,
    dashboards: Dashboards,
}

impl Default for Manager {
    fn default() -> Self {
        Self {
            replicas: 2,
            image: ManagerImage::default(),
            log: Log::default(),
            webhook: Webhook::default(),
            metrics: Metrics::default(),
            health_probe: HealthProbe::default(),
            resync_period: NumberText("0"),
            pods: Pods::default(),
            host_network: false,
            admission_warnings: false,
            declared_webhooks: Mode(""),
            extra_args: Vec::new(),
            network_policy: NetworkPolicy::default(),
            monitor_enabled: false,
            prometheus_rule: PrometheusRule::default(),
            dashboards: Dashboards::default(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Log {
    /// Verbosity of the logs, from 0 to 10.
    pub(super) level: LogLevel,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel("4") }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Webhook {
    /// Port of the webhooks in the pods; the Service finds it by name.
    #[schemars(range(min = 1))]
    port: u16,
}

impl Default for Webhook {
    fn default() -> Self {
        Self { port: 9443 }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Metrics {
    /// Address that metrics are served on; empty for all.
    addr: String,
    /// Port that metrics are served on.
    #[schemars(range(min = 1))]
    port: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { addr: String::new(), port: 8080 }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct HealthProbe {
    /// Port of /healthz and /readyz.
    #[schemars(range(min = 1))]
    port: u16,
}

impl Default for HealthProbe {
    fn default() -> Self {
        Self { port: 8000 }
    }
}

/// Added. The NetworkPolicy of the pods: it allows connections to their ports alone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NetworkPolicy {
    /// Whether the chart creates it.
    enabled: bool,
    /// Who may read metrics, as `from` of a NetworkPolicy; empty for everybody.
    metrics_from: Vec<Object>,
}

impl Default for NetworkPolicy {
    fn default() -> Self {
        Self { enabled: true, metrics_from: Vec::new() }
    }
}
