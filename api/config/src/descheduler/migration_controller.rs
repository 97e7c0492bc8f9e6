//! Arguments of MigrationController.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{Configuration, Problems};
use koord_resource::Duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shared::{Namespaces, check_selector, check_selector_text};
use crate::Args;

/// Arguments of MigrationController.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete, check = Self::check)]
pub struct MigrationControllerArgs {
    /// Whether nothing is evicted.
    pub dry_run: bool,
    /// Jobs that are reconciled side by side.
    #[koord(
        default = 1,
        minimum = 1,
        no_effect = "a decision takes microseconds, and evictions and look-ups run beside each other anyway"
    )]
    pub max_concurrent_reconciles: i32,
    /// Whether failed pods without an owner are evicted.
    pub evict_failed_bare_pods: bool,
    /// Whether pods without an owner are evicted.
    pub evict_all_bare_pods: bool,
    /// Whether pods with local storage are evicted.
    pub evict_local_storage_pods: bool,
    /// Whether pods of the system are evicted.
    pub evict_system_critical_pods: bool,
    /// Whether pods with a PersistentVolumeClaim stay.
    pub ignore_pvc_pods: bool,
    /// Pods of this priority and above stay.
    pub priority_threshold: Option<PriorityThreshold>,
    /// The pods that may be evicted.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// Namespaces whose pods may be evicted.
    pub namespaces: Option<Namespaces>,
    /// Whether a pod is only evicted when it fits another node.
    pub node_fit: bool,
    /// The nodes that are looked at.
    pub node_selector: String,
    /// Checks that are left out.
    pub skip_eviction_gates: Vec<EvictionGate>,
    /// The most pods that migrate at a time. 0 is no limit.
    #[koord(minimum = 0)]
    pub max_migrating_globally: i32,
    /// The same of one node.
    #[koord(default = 2, minimum = 0)]
    pub max_migrating_per_node: i32,
    /// The same of one namespace.
    #[koord(minimum = 0)]
    pub max_migrating_per_namespace: i32,
    /// The same of one workload, as a number or a percentage; without it by its size.
    pub max_migrating_per_workload: Option<Value>,
    /// The most pods of a workload that may be unavailable, as a number or a percentage; without it by its size.
    pub max_unavailable_per_workload: Option<Value>,
    /// Whether the expected replicas of a workload are not looked at.
    pub skip_check_expected_replicas: bool,
    /// Limits over time, by workload and namespace.
    pub object_limiters: BTreeMap<String, ObjectLimiter>,
    /// How pods migrate.
    pub default_job_mode: JobMode,
    /// When a job is given up; 0 is never.
    #[serde(rename = "defaultJobTTL")]
    #[koord(default = "5m")]
    pub default_job_ttl: Duration,
    /// Schedulers whose pods may be migrated.
    #[koord(default = ["koord-scheduler"], zero_is_unset)]
    pub scheduler_names: Vec<String>,
    /// Evictions per second, as a number or a text.
    #[serde(rename = "evictQPS")]
    #[koord(default = 10, check = check_rate)]
    pub evict_qps: Value,
    /// Evictions that may come at once.
    #[koord(default = 1, minimum = 1)]
    pub evict_burst: i32,
    /// How a pod is evicted.
    pub eviction_policy: EvictionPolicy,
    /// Options of the deletion.
    pub default_delete_options: Option<Value>,
    /// How jobs are ordered.
    pub arbitration_args: Arbitration,
}

/// A check that a pod passes before it migrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum EvictionGate {
    /// How many pods migrate.
    MaxMigratingGlobally,
    /// How many pods of the node migrate.
    MaxMigratingPerNode,
    /// How many pods of the namespace migrate.
    MaxMigratingPerNamespace,
    /// How many pods of the workload migrate.
    MaxMigratingPerWorkload,
    /// How many pods of the workload are unavailable.
    MaxUnavailablePerWorkload,
    /// Whether the workload has more replicas than may be missing.
    ExpectedReplicas,
    /// Whether the pod has a PersistentVolumeClaim.
    #[serde(rename = "PVC")]
    Pvc,
    /// Whether the pod has an owner.
    BarePods,
    /// Whether the pod has local storage.
    LocalStorage,
    /// Whether the pod is critical.
    SystemCritical,
    /// The priority of the pod.
    PriorityThreshold,
    /// The labels of the pod.
    LabelSelector,
    /// The namespace of the pod.
    Namespaces,
    /// Whether the pod fits another node.
    NodeFit,
}

/// A priority, by number or by the name of its class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct PriorityThreshold {
    /// The number.
    pub value: Option<i32>,
    /// The name of the PriorityClass.
    pub name: String,
}

/// A limit over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ObjectLimiter {
    /// The time.
    pub duration: Option<Duration>,
    /// The most pods within it, as a number or a percentage.
    pub max_migrating: Option<Value>,
    /// The most at once.
    pub burst: Option<i32>,
}

/// How jobs are ordered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct Arbitration {
    /// Whether jobs are ordered.
    #[koord(default = true, no_effect = "jobs are always ordered")]
    pub enabled: bool,
    /// How often.
    #[koord(default = "500ms")]
    pub interval: Duration,
}

/// How pods migrate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum JobMode {
    /// Their place elsewhere is reserved before they are evicted.
    #[default]
    ReservationFirst,
    /// They are evicted.
    EvictDirectly,
}

/// How a pod is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum EvictionPolicy {
    /// By the eviction API.
    #[default]
    Eviction,
    /// By deletion.
    Delete,
    /// By an annotation, for those who own it.
    SoftEviction,
}

impl Args for MigrationControllerArgs {
    const PLUGIN: &'static str = "MigrationController";
}

impl MigrationControllerArgs {
    fn complete(&mut self) {
        if self.object_limiters.is_empty() {
            let five_minutes = ObjectLimiter { duration: Some(Duration::from_secs(300)), ..ObjectLimiter::default() };
            self.object_limiters.insert("workload".to_owned(), five_minutes);
        }
    }

    fn check(&self, problems: &mut Problems) {
        for name in self.object_limiters.keys().filter(|name| !matches!(name.as_str(), "workload" | "namespace")) {
            problems.add(&["objectLimiters", name], "must be workload or namespace");
        }
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
        check_selector_text(&self.node_selector, &["nodeSelector"], problems);
    }
}

fn check_rate(rate: &Value, problems: &mut Problems) {
    let rate = match rate {
        Value::String(text) => text.parse().unwrap_or(0.0),
        number => number.as_f64().unwrap_or(0.0),
    };
    if rate <= 0.0 {
        problems.add(&[], "must be greater than 0");
    }
}
