//! Arguments of ElasticQuota.

use std::collections::BTreeSet;

use koord_configuration::{Configuration, Problems};
use koord_resource::{Duration, ResourceList};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Args;

/// Arguments of ElasticQuota.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct ElasticQuotaArgs {
    /// How long a quota may use more than its runtime before pods are evicted.
    #[koord(default = "2m")]
    pub delay_evict_time: Duration,
    /// How often that is looked at.
    #[koord(default = "1s")]
    pub revoke_pod_interval: Duration,
    /// What pods without a quota may use; without a bound it is a fifth of all numbers.
    #[koord(default = {"cpu": "1844674407370955161", "memory": "1844674407370955161"}, zero_is_unset)]
    pub default_quota_group_max: ResourceList,
    /// What pods of the system may use; without a bound it is a fifth of all numbers.
    #[koord(default = {"cpu": "1844674407370955161", "memory": "1844674407370955161"}, zero_is_unset)]
    pub system_quota_group_max: ResourceList,
    /// The namespace of the quotas that the plugin creates.
    #[koord(default = "koordinator-system", zero_is_unset)]
    pub quota_group_namespace: String,
    /// Whether quotas that use too much are watched.
    pub monitor_all_quotas: bool,
    /// Whether the quotas above must have room too.
    pub enable_check_parent_quota: bool,
    /// Whether a quota may use its runtime, not its max.
    #[koord(default = true)]
    pub enable_runtime_quota: bool,
    /// Whether mins shrink when their sum is too large.
    #[koord(default = true)]
    pub enable_min_quota_scale: bool,
    /// Whether pods of the default quota are not preempted.
    #[koord(default = true)]
    pub disable_default_quota_preemption: bool,
    /// Whether a pod that its quota refused is tried again when its quota has room for it.
    #[koord(no_effect = "a pod that its quota refused is tried again when its quota has room for it, in any case")]
    pub enable_queue_hint: bool,
    /// How often quotas are copied.
    #[koord(default = "2m", no_effect = "quotas are read as they are, not copied")]
    pub quota_snapshot_update_interval: Duration,
    /// Hooks of quotas. They are compiled into a scheduler; koord-scheduler itself has none, and refuses what it does not have.
    pub hook_plugins: Vec<HookPlugin>,
}

/// A hook of quotas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
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
}

impl ElasticQuotaArgs {
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
