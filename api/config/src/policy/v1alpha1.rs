//! `DeschedulerPolicy` of `descheduler/v1alpha1`, which kubernetes-sigs/descheduler read up to version 0.30: strategies by name.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::Configuration;
use serde::{Deserialize, Serialize};

use crate::descheduler::Namespaces;

/// A policy of kubernetes-sigs/descheduler up to version 0.30.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(group = "descheduler", version = "v1alpha1", kind = "DeschedulerPolicy")]
pub struct PolicyV1alpha1 {
    /// The strategies, by name.
    pub strategies: BTreeMap<String, Strategy>,
    /// The nodes whose pods are descheduled, as a text such as `pool=a,!spot`.
    pub node_selector: Option<String>,
    /// Whether failed pods without an owner are evicted.
    pub evict_failed_bare_pods: bool,
    /// Whether pods with local storage are evicted.
    pub evict_local_storage_pods: bool,
    /// Whether critical pods are evicted.
    pub evict_system_critical_pods: bool,
    /// Whether pods of DaemonSets are evicted.
    pub evict_daemon_set_pods: bool,
    /// Whether pods with a PersistentVolumeClaim stay.
    pub ignore_pvc_pods: bool,
    /// The most pods to evict from one node in a cycle.
    pub max_no_of_pods_to_evict_per_node: Option<u32>,
    /// The most pods to evict in one namespace in a cycle.
    pub max_no_of_pods_to_evict_per_namespace: Option<u32>,
}

/// A strategy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct Strategy {
    /// Whether it is on.
    pub enabled: bool,
    /// Has never had an effect.
    pub weight: i64,
    /// Its parameters.
    pub params: Parameters,
}

/// The parameters of all strategies. Each reads its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Parameters {
    /// Of LowNodeUtilization and HighNodeUtilization.
    pub node_resource_utilization_thresholds: NodeResourceUtilizationThresholds,
    /// Of RemovePodsViolatingNodeAffinity.
    pub node_affinity_type: Vec<String>,
    /// Of RemovePodsHavingTooManyRestarts.
    pub pods_having_too_many_restarts: PodsHavingTooManyRestarts,
    /// Of PodLifeTime.
    pub pod_life_time: PodLifeTime,
    /// Of RemoveDuplicates.
    pub remove_duplicates: RemoveDuplicates,
    /// Of RemoveFailedPods.
    pub failed_pods: FailedPods,
    /// Of RemovePodsViolatingTopologySpreadConstraint: whether constraints with ScheduleAnyway count too.
    pub include_soft_constraints: bool,
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// Pods of this priority and above stay.
    pub threshold_priority: Option<i32>,
    /// The same by the name of a PriorityClass.
    pub threshold_priority_class_name: String,
    /// The pods that are looked at.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// Whether a pod is only evicted when it fits another node.
    pub node_fit: bool,
    /// Of RemovePodsViolatingNodeTaints: whether taints with the effect PreferNoSchedule count too.
    pub include_prefer_no_schedule: bool,
    /// Of RemovePodsViolatingNodeTaints: taints that do not count.
    pub excluded_taints: Vec<String>,
    /// Of RemovePodsViolatingNodeTaints: the only taints that count.
    pub included_taints: Vec<String>,
}

/// Parameters of LowNodeUtilization and HighNodeUtilization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeResourceUtilizationThresholds {
    /// Whether thresholds are distances from the average.
    pub use_deviation_thresholds: bool,
    /// Below all of these a node is underutilized, in percent.
    pub thresholds: BTreeMap<String, f64>,
    /// Above one of these a node is overutilized, in percent.
    pub target_thresholds: BTreeMap<String, f64>,
    /// Nothing is evicted unless more nodes than this are underutilized.
    pub number_of_nodes: i32,
}

/// Parameters of RemovePodsHavingTooManyRestarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodsHavingTooManyRestarts {
    /// From this number of restarts on a pod is evicted.
    pub pod_restart_threshold: i32,
    /// Whether init containers count too.
    pub including_init_containers: bool,
}

/// Parameters of PodLifeTime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodLifeTime {
    /// Only pods that are older.
    pub max_pod_life_time_seconds: Option<u64>,
    /// Only pods in one of these phases.
    pub pod_status_phases: Vec<String>,
    /// Only pods in one of these states.
    pub states: Vec<String>,
}

/// Parameters of RemoveDuplicates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RemoveDuplicates {
    /// Kinds of owners whose pods stay.
    pub exclude_owner_kinds: Vec<String>,
}

/// Parameters of RemoveFailedPods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FailedPods {
    /// Kinds of owners whose pods stay.
    pub exclude_owner_kinds: Vec<String>,
    /// Only pods that are older.
    pub min_pod_lifetime_seconds: Option<u64>,
    /// Only pods that have failed for one of these reasons.
    pub reasons: Vec<String>,
    /// Whether init containers count too.
    pub including_init_containers: bool,
}
