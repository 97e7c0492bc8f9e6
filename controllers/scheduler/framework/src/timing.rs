//! How long single plugins take, in the attempts that are sampled.
//!
//! The search is compiled twice, with a clock and without one: an attempt that is not sampled asks for no time.

use std::time::Duration;

use koord_core::clock::Clock;

use crate::{Code, NodeScore, PermitResult, PostFilterResult, PreparedFilter, Refusal, Registration, Rejection};

/// An extension point at which plugins are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionPoint {
    /// [`BeforePreFilter`](crate::BeforePreFilter).
    BeforePreFilter,
    /// [`PreFilter`](crate::PreFilter), and [`Filter::prepare_filter`](crate::Filter::prepare_filter) where it is called anew.
    PreFilter,
    /// [`NodeFilter::filter`](crate::NodeFilter::filter) of one node.
    Filter,
    /// [`PostFilter`](crate::PostFilter).
    PostFilter,
    /// [`Score::prepare_score`](crate::Score::prepare_score) where it is called anew.
    PreScore,
    /// [`NodeScore::score`] of one node.
    Score,
    /// [`Reserve`](crate::Reserve).
    Reserve,
    /// [`Permit`](crate::Permit).
    Permit,
    /// [`PreBind`](crate::PreBind).
    PreBind,
}

/// What a plugin answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing that stands in the way of the pod.
    Success,
    /// That it has nothing to say about the pod.
    Skip,
    /// That the pod waits in its place.
    Wait,
    /// A refusal that the removal of pods may resolve.
    Unschedulable,
    /// A refusal that the removal of pods does not resolve.
    Unresolvable,
    /// That something is wrong which has to do with neither the pod nor the cluster.
    Error,
}

/// How long a plugin has taken at an extension point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginLatency {
    pub plugin: &'static str,
    pub point: ExtensionPoint,
    pub status: Status,
    /// How long.
    pub took: Duration,
}

impl ExtensionPoint {
    /// The label of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforePreFilter => "BeforePreFilter",
            Self::PreFilter => "PreFilter",
            Self::Filter => "Filter",
            Self::PostFilter => "PostFilter",
            Self::PreScore => "PreScore",
            Self::Score => "Score",
            Self::Reserve => "Reserve",
            Self::Permit => "Permit",
            Self::PreBind => "PreBind",
        }
    }

    /// Whether a plugin may be called more than once for one answer.
    const fn is_called_often(self) -> bool {
        matches!(self, Self::PreFilter | Self::PreScore)
    }
}

impl Status {
    /// The label of metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Skip => "Skip",
            Self::Wait => "Wait",
            Self::Unschedulable => "Unschedulable",
            Self::Unresolvable => "UnschedulableAndUnresolvable",
            Self::Error => "Error",
        }
    }
}

/// Calls plugins, with a clock or without one.
pub trait Timing {
    /// Whether the calls are timed.
    const IS_ON: bool;

    /// Calls a plugin at an extension point.
    fn call<R: CallResult>(&mut self, plugin: &Registration, point: ExtensionPoint, call: impl FnOnce() -> R) -> R;
}

/// Calls plugins without a clock.
pub struct Untimed;

impl Timing for Untimed {
    const IS_ON: bool = false;

    #[inline]
    fn call<R: CallResult>(&mut self, _: &Registration, _: ExtensionPoint, call: impl FnOnce() -> R) -> R {
        call()
    }
}

/// Calls plugins, and keeps how long that takes.
pub struct Stopwatch<'l> {
    clock: &'l dyn Clock,
    latencies: &'l mut Vec<PluginLatency>,
}

impl<'l> Stopwatch<'l> {
    /// Keeps latencies here, by this clock.
    pub fn new(clock: &'l dyn Clock, latencies: &'l mut Vec<PluginLatency>) -> Self {
        Self { clock, latencies }
    }
}

impl Timing for Stopwatch<'_> {
    const IS_ON: bool = true;

    fn call<R: CallResult>(&mut self, plugin: &Registration, point: ExtensionPoint, call: impl FnOnce() -> R) -> R {
        let began = self.clock.moment();
        let answer = call();
        let took = self.clock.moment().since(began);
        let (plugin, status) = (plugin.name(), answer.status());
        let is_same = |lap: &&mut PluginLatency| point.is_called_often() && lap.plugin == plugin && lap.point == point;
        match self.latencies.iter_mut().find(is_same) {
            Some(lap) => {
                lap.took += took;
                if status != Status::Success {
                    lap.status = status;
                }
            }
            None => self.latencies.push(PluginLatency { plugin, point, status, took }),
        }
        answer
    }
}

/// An answer of a plugin.
pub trait CallResult {
    /// What metrics show of it.
    fn status(&self) -> Status;
}

impl CallResult for () {
    fn status(&self) -> Status {
        Status::Success
    }
}

impl CallResult for i64 {
    fn status(&self) -> Status {
        Status::Success
    }
}

impl CallResult for Result<(), Rejection> {
    fn status(&self) -> Status {
        match self {
            Ok(()) => Status::Success,
            Err(Rejection { code: Code::Unschedulable, .. }) => Status::Unschedulable,
            Err(Rejection { code: Code::Unresolvable, .. }) => Status::Unresolvable,
            Err(Rejection { code: Code::Error, .. }) => Status::Error,
        }
    }
}

impl CallResult for Refusal {
    fn status(&self) -> Status {
        if self.resolvable { Status::Unschedulable } else { Status::Unresolvable }
    }
}

impl CallResult for Result<(), Refusal> {
    fn status(&self) -> Status {
        self.as_ref().err().map_or(Status::Success, CallResult::status)
    }
}

impl CallResult for PreparedFilter {
    fn status(&self) -> Status {
        match self {
            Self::Skip => Status::Skip,
            Self::Nodes(_) | Self::NodeNames(..) => Status::Success,
            Self::None(refusal) => refusal.status(),
        }
    }
}

impl CallResult for Option<Box<dyn NodeScore>> {
    fn status(&self) -> Status {
        if self.is_some() { Status::Success } else { Status::Skip }
    }
}

impl CallResult for PostFilterResult {
    fn status(&self) -> Status {
        match self {
            Self::Nominate { .. } | Self::CallExtenders(_) | Self::Together { .. } => Status::Success,
            Self::Nothing(_) | Self::NoCandidate(_) => Status::Unschedulable,
            Self::Stop(_) => Status::Unresolvable,
        }
    }
}

impl CallResult for PermitResult {
    fn status(&self) -> Status {
        match self {
            Self::Allow => Status::Success,
            Self::Wait(_) => Status::Wait,
            Self::Reject(_) => Status::Unschedulable,
        }
    }
}
