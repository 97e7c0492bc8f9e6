//! `koordlet`: the DaemonSet of the node agent and what belongs to it.

use std::collections::BTreeMap;

use koord_resource::document::restricted_container;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{
    forms::{LogLevel, NodesAtOnce, Object},
    image::KoordletImage,
    manager::{Log, NetworkPolicy},
    monitoring::{Dashboards, PrometheusRule},
};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Koordlet {
    /// Added. Whether the chart installs koordlet on the nodes. While it does not, what runs of it stays as it is.
    enabled: bool,
    image: KoordletImage,
    log: Log,
    /// Feature gates of the agent, such as "BECPUEvict=true,CPICollector=true". Empty for those that the original's chart sets:
    /// BECPUEvict, BEMemoryEvict, CgroupReconcile and Accelerators. The pods get the capabilities and mounts that the gates need.
    features: String,
    /// Added. Whether the agent only measures and reports: it writes no file of the node, evicts no pod, and has no capability.
    observe_only: bool,
    /// Added. Whether suppression and evictions for memory run as soon as the kernel reports pressure. The container gets the capability SYS_RESOURCE,
    /// without which the kernel looks every two seconds alone.
    pressure_triggers: bool,
    /// Added. Whether the container is privileged. Only kernels and gates that write below /proc/sys need it: SystemConfig, and group
    /// identity on kernels of Anolis.
    privileged: bool,
    host_dirs: HostDirs,
    metrics: Metrics,
    /// Resource requirements of the container.
    resources: Object,
    /// RuntimeClass of the pods; empty for none.
    runtime_class_name: String,
    /// Added. Node selector of the pods.
    node_selector: BTreeMap<String, String>,
    /// Affinity of the pods, with the key nodeAffinity in it.
    node_affinity: Object,
    /// Added. Tolerations of the pods; the default is every taint.
    tolerations: Vec<Object>,
    /// Added. PriorityClass of the pods; empty for none.
    priority_class_name: String,
    /// Added. How many pods, or which percentage of them, are replaced at a time.
    max_unavailable: NodesAtOnce,
    /// Added. Whether pods use the node's network. The kubelet is asked at the address of the node.
    host_network: bool,
    /// Added. Whether pods see the processes of the node: for the driver of cgroups, resctrl groups, core scheduling and OOM scores.
    #[serde(rename = "hostPID")]
    host_pid: bool,
    /// Added. Security context of the pods. Files of cgroups belong to root.
    pod_security_context: Object,
    /// Added. Security context of the container, to which the capabilities that the gates need are added.
    security_context: Object,
    /// Added. Further flags, such as --only-evict-by-api.
    #[schemars(inner(regex(pattern = "^-")))]
    extra_args: Vec<String>,
    network_policy: NetworkPolicy,
    /// Whether the chart creates a Service and a ServiceMonitor; needs the Prometheus operator.
    enable_service_monitor: bool,
    prometheus_rule: PrometheusRule,
    dashboards: Dashboards,
}

impl Default for Koordlet {
    fn default() -> Self {
        Self {
            enabled: false,
            image: KoordletImage::default(),
            log: Log { level: LogLevel("4") },
            features: String::new(),
            observe_only: false,
            pressure_triggers: false,
            privileged: false,
            host_dirs: HostDirs::default(),
            metrics: Metrics::default(),
            resources: Object::from_iter([
                ("limits".to_owned(), json!({"cpu": "200m", "memory": "256Mi"})),
                ("requests".to_owned(), json!({"cpu": "0", "memory": "0"})),
            ]),
            runtime_class_name: String::new(),
            node_selector: BTreeMap::new(),
            node_affinity: Object::new(),
            tolerations: vec![Object::from_iter([("operator".to_owned(), json!("Exists"))])],
            priority_class_name: "system-node-critical".to_owned(),
            max_unavailable: NodesAtOnce("20%"),
            host_network: true,
            host_pid: true,
            pod_security_context: Object::from_iter([
                ("runAsGroup".to_owned(), json!(0)),
                ("runAsUser".to_owned(), json!(0)),
                ("seccompProfile".to_owned(), json!({"type": "RuntimeDefault"})),
            ]),
            security_context: restricted_container(),
            extra_args: Vec::new(),
            network_policy: NetworkPolicy::default(),
            enable_service_monitor: false,
            prometheus_rule: PrometheusRule::default(),
            dashboards: Dashboards::default(),
        }
    }
}

/// Folders of the node.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct HostDirs {
    /// Where the kubelet may have its configuration.
    kubelet_config_dir: String,
    /// The folder of the kubelet.
    kubelet_lib_dir: String,
    /// Where the runtime proxy looks for hook servers.
    koord_proxy_register_dir: String,
    /// The folder of the agent's sockets.
    koordlet_sock_dir: String,
    /// The folder of the checkpoints of the prediction.
    prediction_checkpoint_dir: String,
    /// Accepted for compatibility, without effect: samples are kept in memory.
    #[serde(rename = "koordletTSDBDir")]
    koordlet_tsdb_dir: String,
    /// The folder of the socket of the pod-resources proxy.
    pod_resources_proxy_path: String,
    /// Added. The folder of audit files, for the gate AuditEvents.
    audit_log_dir: String,
}

impl Default for HostDirs {
    fn default() -> Self {
        let folder = str::to_owned;
        Self {
            kubelet_config_dir: folder("/etc/kubernetes/"),
            kubelet_lib_dir: folder("/var/lib/kubelet/"),
            koord_proxy_register_dir: folder("/etc/runtime/hookserver.d/"),
            koordlet_sock_dir: folder("/var/run/koordlet"),
            prediction_checkpoint_dir: folder("/var/run/koordlet/prediction-checkpoints"),
            koordlet_tsdb_dir: String::new(),
            pod_resources_proxy_path: folder("/var/run/koordlet/pod-resources/"),
            audit_log_dir: folder("/var/log/koordlet"),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Metrics {
    /// Port of metrics and health.
    #[schemars(range(min = 1))]
    port: u16,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { port: 9316 }
    }
}
