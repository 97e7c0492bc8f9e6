//! The arguments and the feature gates of the plugin in the form in which it decides by them.

use std::sync::Arc;

use jiff::SignedDuration;
use koord_config::scheduler::ElasticQuotaArgs;
use koord_quota::Quota;
use koord_resource::{Duration, ResourceList};
use koord_scheduler_framework::FeatureGates;

/// How quotas limit pods.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaSettings {
    /// Whether a quota may use its runtime, not its `max`.
    pub uses_runtime: bool,
    /// Whether mins shrink when their sum is too large.
    pub scales_min: bool,
    /// Whether the quotas above are checked too.
    pub checks_parents: bool,
    /// Whether pods of the default quota are not preempted.
    pub protects_default: bool,
    /// When quotas that use more than they may lose pods; none where they never do.
    pub revocation: Option<Revocation>,
    /// The namespace of the quotas that exist in every cluster.
    pub namespace: Arc<str>,
    /// What pods without a quota may use.
    pub default_max: ResourceList,
    /// What pods of the system may use.
    pub system_max: ResourceList,
    /// Whether there may be other trees than the default one. Feature gate `MultiQuotaTree`.
    pub has_trees: bool,
    /// Whether pods that name no quota have one. Denied by feature gate `DisableDefaultQuota`.
    pub has_default: bool,
    /// Whether what a quota uses is guaranteed to it. Feature gate `ElasticQuotaGuaranteeUsage`.
    pub guarantees_usage: bool,
    /// Whether a pod counts with the overhead of its runtime class. Denied by feature gate `ElasticQuotaIgnorePodOverhead`.
    pub counts_overhead: bool,
    /// How long pods count that are being deleted.
    pub deleting: Deleting,
}

/// When quotas lose pods that use more than they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// How often quotas are looked at.
    pub every: SignedDuration,
    /// How long one must have used too much without a break.
    pub after: SignedDuration,
}

/// How long pods count that are being deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deleting {
    /// Until they are gone.
    #[default]
    CountsToTheEnd,
    /// Until their time to end is over. Feature gate `ElasticQuotaIgnoreTerminatingPod`.
    CountsForItsTime,
    /// Not at all. Feature gate `ElasticQuotaImmediateIgnoreTerminatingPod`.
    CountsNot,
}

impl QuotaSettings {
    /// Of complete arguments under these feature gates.
    pub fn new(args: &ElasticQuotaArgs, gates: FeatureGates<'_>) -> Self {
        let span = |span: Duration| SignedDuration::from_nanos(span.as_nanos());
        let uses_runtime = args.enable_runtime_quota;
        let revokes = uses_runtime && args.monitor_all_quotas;
        // Without a pause it would be done all the time.
        let every = span(args.revoke_pod_interval).max(SignedDuration::from_secs(1));
        let deleting = if gates("ElasticQuotaImmediateIgnoreTerminatingPod") {
            Deleting::CountsNot
        } else if gates("ElasticQuotaIgnoreTerminatingPod") {
            Deleting::CountsForItsTime
        } else {
            Deleting::CountsToTheEnd
        };
        Self {
            uses_runtime,
            scales_min: args.enable_min_quota_scale,
            checks_parents: args.enable_check_parent_quota,
            protects_default: args.disable_default_quota_preemption,
            revocation: revokes.then(|| Revocation { every, after: span(args.delay_evict_time) }),
            namespace: args.quota_group_namespace.as_str().into(),
            default_max: args.default_quota_group_max.clone(),
            system_max: args.system_quota_group_max.clone(),
            has_trees: gates("MultiQuotaTree"),
            has_default: !gates("DisableDefaultQuota"),
            guarantees_usage: gates("ElasticQuotaGuaranteeUsage"),
            counts_overhead: !gates("ElasticQuotaIgnorePodOverhead"),
            deleting,
        }
    }

    /// The tree of a quota; empty for the default tree.
    pub(super) fn tree(&self, quota: &Quota) -> Arc<str> {
        if self.has_trees { quota.tree_id.as_str().into() } else { "".into() }
    }

    /// Whether a quota says what its tree has.
    pub(super) fn begins_tree(&self, quota: &Quota) -> bool {
        self.has_trees && quota.begins_tree && !quota.tree_id.is_empty()
    }
}

impl Default for QuotaSettings {
    fn default() -> Self {
        Self::new(&ElasticQuotaArgs::default(), &|_| false)
    }
}
