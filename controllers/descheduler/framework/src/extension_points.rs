//! What plugins implement.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    cluster::{Cluster, PodId},
    pass::Pass,
    reason::Reason,
    refusal::Refusal,
    registration::Registration,
    step::Means,
};

/// A plugin of the descheduling framework.
pub trait Plugin: Send + Sync + 'static {
    /// Its name in configurations, messages and metrics.
    fn name(&self) -> &'static str;

    /// The extension points that it implements, and the objects that it reads: `Registration::of(&self).balance(&self)`.
    fn register(self: Arc<Self>) -> Registration;
}

/// Why a strategy could not do its work in this pass. The other strategies do theirs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StrategyError(pub String);

/// A strategy that looks at each pod.
pub trait Deschedule: Send + Sync + 'static {
    /// Evicts the pods of the pass's nodes that it is about, by [`Pass::evict`].
    fn deschedule(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError>;
}

/// A strategy that looks at all nodes.
pub trait Balance: Send + Sync + 'static {
    /// Evicts pods such that the pass's nodes are balanced, by [`Pass::evict`].
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError>;
}

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
