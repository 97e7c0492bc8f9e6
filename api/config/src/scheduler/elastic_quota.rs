//! Arguments of ElasticQuota.

use std::collections::{BTreeMap, BTreeSet};

use koord_configuration::{DurationText, Problems, QuantityText};
use koord_resource::{Duration, Quantity, ResourceList, quantity::Format};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Args;

/// Arguments of ElasticQuota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ElasticQuotaArgs {
    /// How long a quota may use more than its runtime before pods are evicted. Default 2m.
    #[schemars(with = "Option<DurationText>")]
    pub delay_evict_time: Option<Duration>,
    /// How often that is looked at. Default 1s.
    #[schemars(with = "Option<DurationText>")]
    pub revoke_pod_interval: Option<Duration>,
    /// What pods without a quota may use. Default a fifth of all numbers.
    #[schemars(with = "BTreeMap<String, QuantityText>")]
    pub default_quota_group_max: ResourceList,
    /// What pods of the system may use. Default a fifth of all numbers.
    #[schemars(with = "BTreeMap<String, QuantityText>")]
    pub system_quota_group_max: ResourceList,
    /// The namespace of the quotas that the plugin creates. Default koordinator-system.
    pub quota_group_namespace: String,
    /// Whether quotas that use too much are watched. Default false.
    pub monitor_all_quotas: Option<bool>,
    /// Whether the quotas above must have room too. Default false.
    pub enable_check_parent_quota: Option<bool>,
    /// Whether a quota may use its runtime, not its max. Default true.
    pub enable_runtime_quota: Option<bool>,
    /// Whether mins shrink when their sum is too large. Default true.
    pub enable_min_quota_scale: Option<bool>,
    /// Whether pods of the default quota are not preempted. Default true.
    pub disable_default_quota_preemption: Option<bool>,
    /// Accepted without an effect: a pod that its quota refused is tried again when its quota has room for it, in any case. Default false.
    pub enable_queue_hint: Option<bool>,
    /// Accepted without an effect: quotas are read as they are, not copied. Default 2m.
    #[schemars(with = "Option<DurationText>")]
    pub quota_snapshot_update_interval: Option<Duration>,
    /// Hooks of quotas. They are compiled into a scheduler; koord-scheduler itself has none, and refuses what it does not have.
    pub hook_plugins: Vec<HookPlugin>,
}

/// A hook of quotas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HookPlugin {
    /// Its name, which messages and metrics show.
    pub key: String,
    /// Its kind: the factory that makes it.
    pub factory_key: String,
    /// Its arguments.
    pub factory_args: Value,
}

impl Args for ElasticQuotaArgs {
    const PLUGIN: &'static str = "ElasticQuota";
    const IDLE: &'static [(&'static str, &'static str)] = &[
        ("enableQueueHint", "a pod that its quota refused is tried again when its quota has room for it, in any case"),
        ("quotaSnapshotUpdateInterval", "quotas are read as they are, not copied"),
    ];

    fn complete(&mut self) {
        self.delay_evict_time.get_or_insert(Duration::from_secs(120));
        self.revoke_pod_interval.get_or_insert(Duration::from_secs(1));
        self.quota_snapshot_update_interval.get_or_insert(Duration::from_secs(120));
        for max in [&mut self.default_quota_group_max, &mut self.system_quota_group_max] {
            if max.is_empty() {
                *max = ["cpu", "memory"]
                    .map(|name| (name, Quantity::new(i64::MAX / 5, Format::DecimalSI)))
                    .into_iter()
                    .collect();
            }
        }
        if self.quota_group_namespace.is_empty() {
            "koordinator-system".clone_into(&mut self.quota_group_namespace);
        }
        let switches = [
            (&mut self.monitor_all_quotas, false),
            (&mut self.enable_check_parent_quota, false),
            (&mut self.enable_runtime_quota, true),
            (&mut self.enable_min_quota_scale, true),
            (&mut self.disable_default_quota_preemption, true),
            (&mut self.enable_queue_hint, false),
        ];
        for (switch, default) in switches {
            switch.get_or_insert(default);
        }
    }

    fn check(&self, problems: &mut Problems) {
        let mut keys = BTreeSet::new();
        for (index, HookPlugin { key, factory_key, .. }) in self.hook_plugins.iter().enumerate() {
            let mut problem = |field, message: &str| problems.add(&["hookPlugins", &index.to_string(), field], message);
            if key.is_empty() {
                problem("key", "must not be empty");
            } else if !keys.insert(key) {
                problem("key", &format!("{key:?} stands twice"));
            }
            if factory_key.is_empty() {
                problem("factoryKey", "must not be empty");
            }
        }
    }
}
