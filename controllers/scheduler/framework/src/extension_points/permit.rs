//! Permit: whether a reserved pod is bound at once.

use std::time::Duration;

use super::{Orders, Reason, ReasonCode, Request};
use crate::{cluster::Cluster, pod::Pod};

/// Holds the binding of a reserved pod back, such as until all members of its gang are reserved.
pub trait Permit: Send + Sync + 'static {
    /// Whether the pod is bound at once.
    fn permit(&self, request: &Request<'_>, cluster: &mut Cluster, orders: &mut Orders) -> PermitResult;

    /// The reason of a pod that has waited for so long, with this text.
    fn timeout_reason(&self, _pod: &Pod, _cluster: &Cluster, waited: &str, text: String) -> Reason {
        ReasonCode::PermitTimeout.reason(text).with("waited", waited)
    }
}

/// The result of [`Permit::permit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitResult {
    /// The pod is bound.
    Allow,
    /// The pod stays reserved, unbound, until [`Orders`] allow or reject it or the time is over.
    Wait(Duration),
    /// The pod is not bound.
    Reject(Reason),
}
