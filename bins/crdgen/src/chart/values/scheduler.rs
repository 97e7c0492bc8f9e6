//! `scheduler`: the Deployment of koord-scheduler and what belongs to it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    forms::{LogLevel, Object},
    image::SchedulerImage,
    manager::{Log, NetworkPolicy},
    monitoring::{Dashboards, PrometheusRule},
    pods::Pods,
};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Scheduler {
    /// Added. Whether the chart installs koord-scheduler. While it does not, what runs of it stays as it is.
    enabled: bool,
    /// Number of pods. One of them leads, and schedules.
    replicas: u32,
    image: SchedulerImage,
    log: Log,
    /// Port of health and metrics in the pods.
    #[schemars(range(min = 1))]
    port: u16,
    /// Feature gates of the scheduler, such as "MultiQuotaTree=true". What it may do follows them: with DevicePluginAdaption it may
    /// patch nodes, with DRADeviceTaintRules read DeviceTaintRules.
    feature_gates: String,
    /// Accepted for compatibility, without effect: the scheduler works with every server that this chart installs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    compatible_feature_gates: Option<String>,
    /// Accepted for compatibility, without effect: the scheduler works with every server that this chart installs on.
    #[serde(rename = "compatible122FeatureGates")]
    compatible_122_feature_gates: String,
    /// Accepted for compatibility, without effect: the scheduler works with every server that this chart installs on.
    #[serde(rename = "compatibleBelow122FeatureGates")]
    compatible_below_122_feature_gates: String,
    /// Whether whole gangs may preempt pods; single pods preempt none then.
    enable_job_preemption: bool,
    device_share: DeviceShare,
    /// Added. The whole configuration, a KubeSchedulerConfiguration, instead of the one that the chart makes of these values.
    config: Object,
    #[serde(flatten)]
    pods: Pods,
    /// Whether pods use the node's network.
    host_network: bool,
    /// Added. Further flags, such as --pod-max-in-unschedulable-pods-duration=1m.
    #[schemars(inner(regex(pattern = "^-")))]
    extra_args: Vec<String>,
    network_policy: NetworkPolicy,
    /// Whether the chart creates a PodMonitor; needs the Prometheus operator.
    monitor_enabled: bool,
    prometheus_rule: PrometheusRule,
    dashboards: Dashboards,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            enabled: false,
            replicas: 2,
            image: SchedulerImage::default(),
            log: Log { level: LogLevel("4") },
            port: 10251,
            feature_gates: String::new(),
            compatible_feature_gates: None,
            compatible_122_feature_gates: "CompatibleCSIStorageCapacity=true".to_owned(),
            compatible_below_122_feature_gates:
                "DisableCSIStorageCapacityInformer=true,CompatiblePodDisruptionBudget=true".to_owned(),
            enable_job_preemption: true,
            device_share: DeviceShare::default(),
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

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct DeviceShare {
    /// Models of GPUs that pods cannot share: [{vendor: VENDOR, model: MODEL}].
    gpu_share_unsupported_models: Vec<Object>,
}

impl Default for DeviceShare {
    fn default() -> Self {
        let duo = [("model".to_owned(), json!("Ascend-310P3-300I-DUO")), ("vendor".to_owned(), json!("huawei"))];
        Self { gpu_share_unsupported_models: vec![Object::from_iter(duo)] }
    }
}
