//! What plugins implement.

mod registration;

use std::sync::Arc;

pub use self::registration::Registration;
use crate::pass::Pass;

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
