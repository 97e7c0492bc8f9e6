//! Arguments of MigrationController.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{DurationText, Problems};
use koord_resource::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shared::Namespaces;
use crate::Args;

/// Arguments of MigrationController.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MigrationControllerArgs {
    /// Whether nothing is evicted.
    pub dry_run: bool,
    /// Jobs that are reconciled side by side. Default 1.
    #[schemars(range(min = 1))]
    pub max_concurrent_reconciles: Option<i32>,
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
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    pub label_selector: Option<LabelSelector>,
    /// Namespaces whose pods may be evicted.
    pub namespaces: Option<Namespaces>,
    /// Whether a pod is only evicted when it fits another node.
    pub node_fit: bool,
    /// The nodes that are looked at.
    pub node_selector: String,
    /// Checks that are left out.
    pub skip_eviction_gates: Vec<String>,
    /// The most pods that migrate at a time. 0 is no limit.
    #[schemars(range(min = 0))]
    pub max_migrating_globally: Option<i32>,
    /// The same of one node. Default 2.
    #[schemars(range(min = 0))]
    pub max_migrating_per_node: Option<i32>,
    /// The same of one namespace.
    #[schemars(range(min = 0))]
    pub max_migrating_per_namespace: Option<i32>,
    /// The same of one workload, as a number or a percentage. Default by its size.
    pub max_migrating_per_workload: Option<Value>,
    /// The most pods of a workload that may be unavailable, as a number or a percentage. Default by its size.
    pub max_unavailable_per_workload: Option<Value>,
    /// Whether the expected replicas of a workload are not looked at.
    pub skip_check_expected_replicas: bool,
    /// Limits over time, by workload and namespace.
    pub object_limiters: BTreeMap<String, ObjectLimiter>,
    /// How pods migrate. Default ReservationFirst.
    pub default_job_mode: Option<JobMode>,
    /// When a job is given up; 0 is never. Default 5m.
    #[serde(rename = "defaultJobTTL")]
    #[schemars(with = "Option<DurationText>")]
    pub default_job_ttl: Option<Duration>,
    /// Schedulers whose pods may be migrated. Default koord-scheduler.
    pub scheduler_names: Vec<String>,
    /// Evictions per second, as a number or a text. Default 10.
    #[serde(rename = "evictQPS")]
    pub evict_qps: Option<Value>,
    /// Evictions that may come at once. Default 1.
    #[schemars(range(min = 1))]
    pub evict_burst: Option<i32>,
    /// How a pod is evicted. Default Eviction.
    pub eviction_policy: Option<EvictionPolicy>,
    /// Options of the deletion.
    pub default_delete_options: Option<Value>,
    /// How jobs are ordered.
    pub arbitration_args: Option<Arbitration>,
}

/// A priority, by number or by the name of its class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PriorityThreshold {
    /// The number.
    pub value: Option<i32>,
    /// The name of the PriorityClass.
    pub name: String,
}

/// A limit over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ObjectLimiter {
    /// The time.
    #[schemars(with = "Option<DurationText>")]
    pub duration: Option<Duration>,
    /// The most pods within it, as a number or a percentage.
    pub max_migrating: Option<Value>,
    /// The most at once.
    pub burst: Option<i32>,
}

/// How jobs are ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Arbitration {
    /// Accepted without an effect.
    pub enabled: Option<bool>,
    /// How often. Default 500ms.
    #[schemars(with = "Option<DurationText>")]
    pub interval: Option<Duration>,
}

/// How pods migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum JobMode {
    /// Their place elsewhere is reserved before they are evicted.
    ReservationFirst,
    /// They are evicted.
    EvictDirectly,
}

/// How a pod is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EvictionPolicy {
    /// By the eviction API.
    Eviction,
    /// By deletion.
    Delete,
    /// By an annotation, for those who own it.
    SoftEviction,
}

impl Args for MigrationControllerArgs {
    const PLUGIN: &'static str = "MigrationController";

    fn complete(&mut self) {
        self.max_concurrent_reconciles.get_or_insert(1);
        self.max_migrating_per_node.get_or_insert(2);
        if self.object_limiters.is_empty() {
            let five_minutes = ObjectLimiter { duration: Some(Duration::from_secs(300)), ..ObjectLimiter::default() };
            self.object_limiters.insert("workload".to_owned(), five_minutes);
        }
        self.default_job_mode.get_or_insert(JobMode::ReservationFirst);
        self.default_job_ttl.get_or_insert(Duration::from_secs(300));
        if self.scheduler_names.is_empty() {
            self.scheduler_names.push("koord-scheduler".to_owned());
        }
        self.evict_qps.get_or_insert_with(|| json!(10));
        self.evict_burst.get_or_insert(1);
        self.eviction_policy.get_or_insert(EvictionPolicy::Eviction);
        let arbitration = self.arbitration_args.get_or_insert_default();
        arbitration.enabled.get_or_insert(true);
        arbitration.interval.get_or_insert(Duration::from_nanos(500_000_000));
    }

    fn check(&self, problems: &mut Problems) {
        Namespaces::check(self.namespaces.as_ref(), "namespaces", problems);
        let rate = match self.evict_qps.as_ref() {
            Some(Value::String(text)) => text.parse().unwrap_or(0.0),
            Some(number) => number.as_f64().unwrap_or(0.0),
            None => 0.0,
        };
        if rate <= 0.0 {
            problems.add(&["evictQPS"], "must be greater than 0");
        }
        for name in self.object_limiters.keys().filter(|name| !matches!(name.as_str(), "workload" | "namespace")) {
            problems.add(&["objectLimiters", name], "must be workload or namespace");
        }
    }
}
