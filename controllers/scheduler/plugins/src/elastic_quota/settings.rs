//! The arguments and the feature gates of the plugin in the form in which it decides by them.

use std::sync::Arc;

use koord_config::scheduler::ElasticQuotaArgs;
use koord_quota::Quota;
use koord_resource::ResourceList;

/// How quotas limit pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Whether a quota may use its runtime, not its `max`.
    pub uses_runtime: bool,
    /// Whether mins shrink when their sum is too large.
    pub scales_min: bool,
    /// Whether the quotas above must have room too.
    pub checks_parents: bool,
    /// Whether pods of the default quota are not preempted.
    pub protects_default: bool,
    /// Whether quotas that use more than their runtime lose pods, and after how many seconds.
    pub revoke_after_seconds: Option<i64>,
    /// What pods without a quota may use.
    pub default_max: ResourceList,
    /// What pods of the system may use.
    pub system_max: ResourceList,
    /// Whether there may be other trees than the default one. Feature gate `MultiQuotaTree`.
    pub has_trees: bool,
    /// Whether pods that name no quota have one. Denied by feature gate `DisableDefaultQuota`.
    pub has_default: bool,
    /// Whether pods that are being deleted count no more. Feature gate `ElasticQuotaImmediateIgnoreTerminatingPod`.
    pub ignores_deleting: bool,
}

impl From<&ElasticQuotaArgs> for Settings {
    /// Of complete arguments, with the gates at their defaults.
    fn from(args: &ElasticQuotaArgs) -> Self {
        let uses_runtime = args.enable_runtime_quota.unwrap_or(true);
        let revokes = uses_runtime && args.monitor_all_quotas == Some(true);
        let delay = args.delay_evict_time.map_or(0, |delay| delay.as_nanos() / 1_000_000_000);
        Self {
            uses_runtime,
            scales_min: args.enable_min_quota_scale.unwrap_or(true),
            checks_parents: args.enable_check_parent_quota.unwrap_or(false),
            protects_default: args.disable_default_quota_preemption.unwrap_or(true),
            revoke_after_seconds: revokes.then_some(delay),
            default_max: args.default_quota_group_max.clone(),
            system_max: args.system_quota_group_max.clone(),
            has_trees: false,
            has_default: true,
            ignores_deleting: false,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let mut args = ElasticQuotaArgs::default();
        koord_config::Args::complete(&mut args);
        Self::from(&args)
    }
}

impl Settings {
    /// The tree of a quota; empty for the default tree.
    pub(super) fn tree(&self, quota: &Quota) -> Arc<str> {
        if self.has_trees { quota.tree_id.as_str().into() } else { "".into() }
    }

    /// Whether a quota says what its tree has.
    pub(super) fn begins_tree(&self, quota: &Quota) -> bool {
        self.has_trees && quota.begins_tree && !quota.tree_id.is_empty()
    }
}
