//! Arguments of Reservation.

use koord_configuration::{Configuration, Percent, Problems};
use serde::{Deserialize, Serialize};

use crate::Args;

/// Arguments of Reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct ReservationArgs {
    /// Whether pods may be preempted for a Reservation.
    pub enable_preemption: bool,
    /// The share of nodes, in percent, among which victims are looked for.
    #[koord(default = 10)]
    pub min_candidate_nodes_percentage: Percent,
    /// The least number of such nodes.
    #[koord(default = 100, minimum = 0)]
    pub min_candidate_nodes_absolute: i32,
    /// How many tasks write statuses.
    #[koord(default = 1, zero_is_unset, minimum = 0, no_effect = "one task writes the statuses of all Reservations")]
    pub controller_workers: i64,
    /// How long a Reservation that is over is kept.
    #[koord(default = 86_400, zero_is_unset, minimum = 0)]
    pub gc_duration_seconds: i64,
    /// How often such Reservations are looked for.
    #[koord(default = 60, zero_is_unset, minimum = 0)]
    pub gc_interval_seconds: i64,
    /// Whether Reservations that are over are kept for ever.
    pub disable_garbage_collection: bool,
    /// How often every Reservation is looked at.
    #[koord(
        default = 60,
        zero_is_unset,
        minimum = 0,
        no_effect = "a Reservation is looked at when something of it changes, and when its time comes"
    )]
    pub resync_interval_seconds: i64,
    /// Reservations that may take the place of running pods.
    pub pre_allocation_config: PreAllocation,
    /// Extended resources, such as example.com/device, that a Reservation does not reserve.
    pub ignored_resources: Vec<String>,
    /// Prefixes of such resources, such as example.com, without a slash.
    pub ignored_resource_groups: Vec<String>,
    /// Which labels of Reservations are indexed.
    #[koord(no_effect = "Reservations are found by what their owners say in any case")]
    pub reservation_selector_index: SelectorIndex,
}

/// Reservations that may take the place of running pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PreAllocation {
    /// Whether pods of the whole cluster are candidates.
    pub enable_cluster_mode: bool,
    /// The label of candidates.
    #[koord(default = "pod.koordinator.sh/is-pre-allocatable")]
    pub cluster_label_key: String,
    /// The annotation with their priority.
    #[koord(default = "pod.koordinator.sh/pre-allocatable-priority")]
    pub cluster_priority_annotation_key: String,
    /// Whether nodes without candidates are preferred.
    pub prefer_no_pre_allocated_pods: bool,
}

/// Which labels of Reservations are indexed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SelectorIndex {
    /// Whether any are.
    pub enabled: bool,
    /// Prefixes of keys.
    pub key_prefixes: Vec<String>,
    /// Keys.
    pub keys: Vec<String>,
}

impl Args for ReservationArgs {
    const PLUGIN: &'static str = "Reservation";
}

impl ReservationArgs {
    fn check(&self, problems: &mut Problems) {
        for (index, name) in self.ignored_resources.iter().enumerate() {
            let (domain, resource) = name.split_once('/').unwrap_or(("", name));
            if domain.is_empty() || resource.is_empty() || domain.ends_with("kubernetes.io") {
                problems.add(
                    &["ignoredResources", &index.to_string()],
                    format!("{name:?} is no extended resource, such as example.com/device"),
                );
            }
        }
        for (index, group) in self.ignored_resource_groups.iter().enumerate() {
            if group.is_empty() || group.contains('/') || group == "kubernetes.io" {
                problems.add(
                    &["ignoredResourceGroups", &index.to_string()],
                    format!("{group:?} is no prefix of extended resources, such as example.com"),
                );
            }
        }
    }
}
