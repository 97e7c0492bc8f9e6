//! What plugins implement that say which pods may be evicted, and how. They are prepared once a pass, and then asked pod by pod.

use jiff::Timestamp;

use crate::{
    cluster::{Cluster, PodId},
    reason::Reason,
    refusal::Refusal,
    step::Means,
};

/// Says which pods may be evicted at all.
pub trait Filter: Send + Sync + 'static {
    /// Prepares the checks of one pass.
    fn prepare_filter<'a>(&'a self, cluster: &'a Cluster, now: Timestamp) -> Box<dyn PreparedFilter + 'a>;
}

/// The checks of one pass.
pub trait PreparedFilter {
    /// Whether a pod may be evicted.
    fn filter(&self, pod: PodId) -> Result<(), Refusal>;

    /// A pod is evicted in this pass, by whichever profile.
    fn evicted(&mut self, _pod: PodId) {}
}

/// Checks that are made once more, and only right before an eviction.
pub trait PreEvictionFilter: Send + Sync + 'static {
    /// Prepares the checks of one pass.
    fn prepare_pre_eviction_filter<'a>(
        &'a self,
        cluster: &'a Cluster,
        now: Timestamp,
    ) -> Box<dyn PreparedPreEvictionFilter + 'a>;
}

/// The checks of one pass that are made right before an eviction.
pub trait PreparedPreEvictionFilter {
    fn pre_eviction_filter(&self, pod: PodId) -> Result<(), Refusal>;
}

/// Says how pods are evicted. A profile has exactly one such plugin.
pub trait Evict: Send + Sync + 'static {
    /// Prepares the evictions of one pass.
    fn prepare_evict<'a>(&'a self, cluster: &'a Cluster, now: Timestamp) -> Box<dyn PreparedEvict + 'a>;
}

/// The evictions of one pass.
pub trait PreparedEvict {
    /// How a pod is evicted that the filters and limits let go, or why it stays after all.
    fn evict(&mut self, pod: PodId, reason: &Reason) -> Result<Means, Refusal>;
}
