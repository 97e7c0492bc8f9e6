//! Arguments of Reservation.

use koord_configuration::{Percent, Problems};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Args;

/// Arguments of Reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReservationArgs {
    /// Whether pods may be preempted for a Reservation. Default false.
    pub enable_preemption: bool,
    /// The share of nodes, in percent, among which victims are looked for. Default 10.
    pub min_candidate_nodes_percentage: Option<Percent>,
    /// The least number of such nodes. Default 100.
    #[schemars(range(min = 0))]
    pub min_candidate_nodes_absolute: Option<i32>,
    /// Accepted without an effect: one task writes all statuses. Default 1.
    #[schemars(range(min = 0))]
    pub controller_workers: i64,
    /// How long a Reservation that is over is kept. Default 86400.
    #[schemars(range(min = 0))]
    pub gc_duration_seconds: i64,
    /// How often such Reservations are looked for. Default 60.
    #[schemars(range(min = 0))]
    pub gc_interval_seconds: i64,
    /// Whether Reservations that are over are kept for ever. Default false.
    pub disable_garbage_collection: bool,
    /// Accepted without an effect: a Reservation is looked at when something of it changes, and when its time comes. Default 60.
    #[schemars(range(min = 0))]
    pub resync_interval_seconds: i64,
    /// Reservations that may take the place of running pods.
    pub pre_allocation_config: Option<PreAllocation>,
    /// Extended resources, such as example.com/device, that a Reservation does not reserve.
    pub ignored_resources: Vec<String>,
    /// Prefixes of such resources, such as example.com, without a slash.
    pub ignored_resource_groups: Vec<String>,
    /// Accepted without an effect: Reservations are found by what their owners say in any case.
    pub reservation_selector_index: SelectorIndex,
}

/// Reservations that may take the place of running pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PreAllocation {
    /// Whether pods of the whole cluster are candidates. Default false.
    pub enable_cluster_mode: bool,
    /// The label of candidates.
    pub cluster_label_key: String,
    /// The annotation with their priority.
    pub cluster_priority_annotation_key: String,
    /// Whether nodes without candidates are preferred. Default false.
    pub prefer_no_pre_allocated_pods: bool,
}

/// Which labels of Reservations are indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SelectorIndex {
    /// Whether any are. Default false.
    pub enabled: bool,
    /// Prefixes of keys.
    pub key_prefixes: Vec<String>,
    /// Keys.
    pub keys: Vec<String>,
}

impl Default for PreAllocation {
    fn default() -> Self {
        Self {
            enable_cluster_mode: false,
            cluster_label_key: "pod.koordinator.sh/is-pre-allocatable".to_owned(),
            cluster_priority_annotation_key: "pod.koordinator.sh/pre-allocatable-priority".to_owned(),
            prefer_no_pre_allocated_pods: false,
        }
    }
}

impl Args for ReservationArgs {
    const PLUGIN: &'static str = "Reservation";
    const IDLE: &'static [(&'static str, &'static str)] = &[
        ("controllerWorkers", "one task writes the statuses of all Reservations"),
        ("resyncIntervalSeconds", "a Reservation is looked at when something of it changes, and when its time comes"),
        ("reservationSelectorIndex", "Reservations are found by what their owners say in any case"),
    ];

    fn complete(&mut self) {
        self.min_candidate_nodes_percentage.get_or_insert(Percent(10));
        self.min_candidate_nodes_absolute.get_or_insert(100);
        self.pre_allocation_config.get_or_insert_default();
        let defaults = [
            (&mut self.controller_workers, 1),
            (&mut self.gc_duration_seconds, 86_400),
            (&mut self.gc_interval_seconds, 60),
            (&mut self.resync_interval_seconds, 60),
        ];
        for (value, default) in defaults {
            if *value == 0 {
                *value = default;
            }
        }
    }

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
