//! `descheduler`: the Deployment of koord-descheduler and what belongs to it.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    forms::{LogLevel, Object, Planning},
    image::DeschedulerImage,
    manager::{Log, NetworkPolicy},
    monitoring::{Dashboards, PrometheusRule},
    pods::Pods,
};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Descheduler {
    /// Added. Whether the chart installs koord-descheduler. While it does not, what runs of it stays as it is.
    enabled: bool,
    /// Number of pods. One of them leads, and evicts.
    replicas: u32,
    image: DeschedulerImage,
    log: Log,
    /// Port of health and metrics in the pods.
    #[schemars(range(min = 1))]
    port: u16,
    /// Feature gates of the descheduler, such as "DisablePVCReservation=true".
    feature_gates: String,
    /// Added. Whether evictions are followed through the scheduler before they are made: off, report, or enforce, which leaves out those that
    /// are not worth it. Empty: enforce in a new installation, else what the configuration in the cluster says, and report where it says
    /// nothing, as the original's. A `config` says so in its profiles instead.
    planning: Planning,
    /// Added. The namespaces whose pods may be evicted; empty for all but kube-system and that of the installation. Where they are named, the
    /// roles permit evictions in these namespaces alone. A `config` has to name them, too.
    #[schemars(inner(regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), length(max = 63)))]
    eviction_namespaces: Vec<String>,
    /// Added. Whether the scale subresource of every kind may be read, so that pods of controllers of other kinds can migrate.
    read_scales: bool,
    /// Added. The whole configuration, a DeschedulerConfiguration, instead of the one that the chart makes of these values.
    config: Object,
    #[serde(flatten)]
    pods: Pods,
    /// Whether pods use the node's network.
    host_network: bool,
    /// Added. Further flags, such as --secure-port=0.
    #[schemars(inner(regex(pattern = "^-")))]
    extra_args: Vec<String>,
    network_policy: NetworkPolicy,
    /// Whether the chart creates a PodMonitor; needs the Prometheus operator.
    monitor_enabled: bool,
    prometheus_rule: PrometheusRule,
    dashboards: Dashboards,
}

impl Default for Descheduler {
    fn default() -> Self {
        Self {
            enabled: false,
            replicas: 2,
            image: DeschedulerImage::default(),
            log: Log { level: LogLevel("4") },
            port: 10251,
            feature_gates: String::new(),
            planning: Planning(""),
            eviction_namespaces: Vec::new(),
            read_scales: false,
            config: Object::new(),
            pods: Pods::default(),
            host_network: false,
            extra_args: Vec::new(),
            network_policy: NetworkPolicy::default(),
            monitor_enabled: false,
            prometheus_rule: PrometheusRule::default(),
            dashboards: Dashboards::default(),
        }
    }
}
