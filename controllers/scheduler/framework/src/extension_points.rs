//! The extension points, one file each, and what plugins answer.

mod attempt_state;
mod audit;
mod before_pre_filter;
mod bind;
mod diagnostics;
mod enqueue_extensions;
mod extender_calls;
mod failure_handler;
mod filter;
mod find_one_node;
mod found;
mod metrics;
mod next_pod;
mod node_subset;
mod numa_topology;
mod permit;
mod pod_activation;
mod post_filter;
mod pre_bind;
mod pre_enqueue;
mod pre_filter;
mod prefer_nodes;
mod profile;
mod reason;
mod registration;
mod rejection;
mod reservation_filter;
mod reservation_restore;
mod reserve;
mod reserve_pod;
mod restore;
mod scheduling_hints;
mod scheduling_signature;
mod score;
mod service_endpoint;
mod state;
mod status_writer;
mod workload;

use std::sync::Arc;

pub(crate) use self::node_subset::NodeSubset;
pub use self::{
    attempt_state::AttemptState,
    audit::{Audit, DoubleAllocation},
    before_pre_filter::BeforePreFilter,
    bind::Bind,
    diagnostics::Diagnostics,
    enqueue_extensions::EnqueueExtensions,
    extender_calls::ExtenderCalls,
    failure_handler::FailureHandler,
    filter::{Filter, NodeFilter, PreparedFilter, Refusal},
    find_one_node::FindOneNode,
    found::{Alike, Found, Refusals, Searched, Verdict, abridged, unavailable},
    metrics::{Figure, MetricSource},
    next_pod::NextPod,
    numa_topology::{
        NodeNumaAffinity, NodeNumaHints, NumaHint, NumaHintProvider, NumaHints, NumaTopologyManager,
        ReservedNumaAffinity,
    },
    permit::{Permit, PermitResult},
    pod_activation::{Orders, PodActivation},
    post_filter::{Attempted, Candidate, PostFilter, PostFilterResult},
    pre_bind::{Patch, PreBind, PreBindProgress},
    pre_enqueue::PreEnqueue,
    pre_filter::PreFilter,
    prefer_nodes::PreferNodes,
    profile::{AddError, Profile},
    reason::{Operands, Reason, ReasonCode, StableCode},
    registration::Registration,
    rejection::{Code, Rejection},
    reservation_filter::{AllocationSource, ReservationFilter, SourceFilter},
    reservation_restore::ReservationRestore,
    reserve::Reserve,
    reserve_pod::{ReservePodSource, ReservePodState},
    restore::AllocationRestore,
    scheduling_hints::SchedulingHintSource,
    scheduling_signature::{SchedulingSignature, SignatureFields},
    score::{NodeScore, Scale, Score, as_it_is, highest_is_best, lowest_is_best, normalize, score_of_node, share},
    service_endpoint::{Query, ServiceEndpoint, ServiceError},
    state::PluginState,
    status_writer::{Explanation, StatusUpdates, StatusWriter},
    workload::{JobMark, Workload, WorkloadSource},
};
use crate::{
    cluster::Class,
    pod::{Pod, Template},
};

/// The highest score of a node.
pub const SCORE_MAX: i64 = 100;

/// Whether a feature gate of this name is on.
pub type FeatureGates<'g> = &'g dyn Fn(&str) -> bool;

/// A plugin of the scheduling framework.
pub trait Plugin: Send + Sync + 'static {
    /// Its name in configurations, messages and metrics.
    fn name(&self) -> &'static str;

    /// The extension points that it implements, and the objects that it reads:
    /// `Registration::of(&self).filter(&self).enqueue_extensions(&self)`.
    fn register(self: Arc<Self>) -> Registration;
}

/// A pod for which a node is sought.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub pod: &'a Arc<Pod>,
    pub class: &'a Arc<Class>,
    /// All plugins of its profile.
    pub plugins: &'a [Registration],
    /// What plugins have found about the pod in this attempt.
    pub state: &'a AttemptState,
}

impl<'a> Request<'a> {
    /// What the pod shares with the others of its class, as objects have it.
    pub fn template(&self) -> &'a Arc<Template> {
        self.class.template()
    }

    /// What implements an extension point, in the order of plugins.
    pub fn each<P: ?Sized + 'a>(
        &self,
        point: impl Fn(&'a Registration) -> &'a Option<Arc<P>>,
    ) -> impl Iterator<Item = &'a P> {
        Registration::each(self.plugins, point)
    }
}
