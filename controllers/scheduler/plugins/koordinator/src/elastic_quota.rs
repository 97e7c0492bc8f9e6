//! ElasticQuota: pods of a quota may use its runtime, which is divided among quotas by what they request.
//!
//! Pods are counted by what makes them find their quota ([`Ledger`]); the quotas are trees with sums that follow every
//! change ([`Forest`]). A pod whose quota is short may preempt less important pods of the same quota. What is
//! observed is written into the objects of the quotas ([`QuotaStatus`]), and a quota that uses too much for long loses pods
//! ([`Overuse`]). Programs add checks and texts of their own ([`QuotaHook`]).

#[cfg(test)]
mod cases;
mod check;
mod claim;
mod division;
mod forest;
mod hooks;
mod ledger;
mod quotas;
mod revoke;
mod settings;
mod status;
mod status_updates;
mod summary;
mod sums;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use koord_config::scheduler::ElasticQuotaArgs;
use koord_core::uid::Uid;
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    Diagnostics, EnqueueExtensions, FailureHandler, FeatureGates, Figure, Found, MetricSource, Orders, Plugin,
    PluginState, PodActivation, PostFilter, PostFilterResult, PreFilter, Profile, Query, Reason, ReasonCode,
    Registration, Rejection, Request, ServiceEndpoint, ServiceError, StatusUpdates, StatusWriter,
    cluster::{Cluster, Placed, state::State},
    event::{Event, Events},
    pod::Pod,
    preemption::{
        Attempted, LowerPriority, NotAdmitted, Rules, Width, awaits_victims, no_candidate, nominate, not_eligible,
        refuse_reserve_pod,
    },
};
use koord_types::{
    elastic_quota,
    quota::{DEFAULT_QUOTA, ROOT_QUOTA},
};
use serde_json::Value;

use self::quotas::Denial;
pub use self::{
    check::Shortage,
    claim::{Claim, is_preemptible},
    forest::{Forest, Node},
    hooks::{BoxError, Hook, HookError, HookFactories, HookRefusal, QuotaHook, QuotaUpdate, QuotaUpdateState},
    ledger::{Counted, Ledger},
    quotas::Quotas,
    revoke::{Overuse, Running, revoked},
    settings::{Deleting, QuotaSettings, Revocation},
    status::QuotaStatus,
    sums::{Kind, Sums},
};

/// Refuses pods whose quota is short. Profiles share the quotas, so that the first profile says by which
/// arguments and with which hooks they limit.
#[derive(Clone, Debug)]
pub struct ElasticQuotaPlugin {
    settings: QuotaSettings,
    hooks: Vec<Hook>,
}

/// Pods of the same quota and of a lower priority may go.
struct SameQuota<'a> {
    /// None where pods of the default quota belong to none.
    quota: Option<&'a str>,
    pod: &'a Pod,
    lower: LowerPriority,
}

impl ElasticQuotaPlugin {
    /// With these arguments, completed, under these feature gates.
    pub fn new(args: &ElasticQuotaArgs, gates: FeatureGates<'_>) -> Self {
        QuotaSettings::new(args, gates).into()
    }

    /// The same with these hooks.
    #[must_use]
    pub fn with_hooks(self, hooks: Vec<Hook>) -> Self {
        Self { hooks, ..self }
    }
}

impl From<QuotaSettings> for ElasticQuotaPlugin {
    fn from(settings: QuotaSettings) -> Self {
        Self { settings, hooks: Vec::new() }
    }
}

impl Plugin for ElasticQuotaPlugin {
    fn name(&self) -> &'static str {
        "ElasticQuota"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<elastic_quota::ElasticQuota>()] })
            .enqueue_extensions(&self)
            .pod_activation(&self)
            .pre_filter(&self)
            .post_filter(&self)
            .failure_handler(&self)
            .state(&self)
            .status_writer(&self)
            .diagnostics(&self)
            .service_endpoint(&self)
            .metrics(&self)
    }
}

impl EnqueueExtensions for ElasticQuotaPlugin {
    fn events_to_register(&self) -> Events {
        let of_pods = Events::POD_REMOVED | Events::POD_SCALED_DOWN | Events::POD_CHANGED;
        of_pods | Events::NODE_ADDED | Events::NODE_ALLOCATABLE | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, cluster: &Cluster) -> bool {
        let Some(quotas) = cluster.state::<Quotas>() else { return false };
        match event {
            Event::Object(change) if change.of::<elastic_quota::ElasticQuota>().is_none() => false,
            // The message about the quota is out of date, even where the quota is still short.
            Event::PodRemoved(gone) if quotas.are_together(&gone.template, &pod.template) => true,
            _ => quotas.admit(&pod.template, pod).is_ok(),
        }
    }
}

impl PodActivation for ElasticQuotaPlugin {
    fn order(&self, cluster: &mut Cluster, orders: &mut Orders) {
        orders.activate.extend(cluster.state_mut::<Quotas>().map(Quotas::revived).unwrap_or_default());
    }
}

impl PreFilter for ElasticQuotaPlugin {
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        let Some(quotas) = cluster.state::<Quotas>() else { return Ok(()) };
        quotas.admit(request.template(), request.pod).map_err(|denial| {
            let reason = match denial {
                Denial::Shortage(shortage) => shortage.reason(quotas.forest()),
                Denial::Hook(refusal) => return Rejection::unschedulable(refusal.reason()),
            };
            Rejection::unschedulable(match quotas.unknown_to(request.template()) {
                Some(unknown) => check::of_unknown(&reason, &unknown),
                None => reason,
            })
        })
    }
}

impl PostFilter for ElasticQuotaPlugin {
    fn post_filter(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilterResult {
        if let Some(refused) = refuse_reserve_pod(request) {
            return refused;
        }
        let quotas = attempted.cluster.state::<Quotas>();
        let quota = quotas.and_then(|quotas| quotas.quota_of(request.template())).cloned();
        if !request.template().preempts {
            return not_eligible("preemptionPolicy=Never.");
        }
        let lower = LowerPriority { priority: request.template().priority };
        let rules = SameQuota { quota: quota.as_deref(), pod: request.pod, lower };
        if awaits_victims(request, attempted, |placed| rules.makes_way(placed, attempted.cluster)) {
            return not_eligible("a terminating pod on the nominated node.");
        }
        let found = attempted.candidates(request, &rules, Width { percent: 100, at_least: 0 });
        found.map_or_else(no_candidate, |candidates| nominate(request, attempted, candidates))
    }
}

impl FailureHandler for ElasticQuotaPlugin {
    fn attempt_failed(&self, request: &Request<'_>, found: &Found, cluster: &mut Cluster, _: &mut Orders) {
        let Some(quotas) = cluster.state_mut::<Quotas>() else { return };
        let by = |index: u8| request.plugins.get(usize::from(index)).map(Registration::name);
        quotas.tried(request.pod, matches!(found, Found::Never(index, _) if by(*index) == Some(self.name())));
    }
}

impl PluginState for ElasticQuotaPlugin {
    fn state(&self) -> Box<dyn State> {
        Box::new(Quotas::new(self.settings.clone()).with_hooks(self.hooks.clone()))
    }
}

impl StatusWriter for ElasticQuotaPlugin {
    fn status_writes(&self, cluster: &Cluster) -> StatusUpdates {
        cluster.state::<Quotas>().map(|quotas| quotas.status_updates(cluster)).unwrap_or_default()
    }
}

impl Diagnostics for ElasticQuotaPlugin {
    fn remarks(&self, request: &Request<'_>, cluster: &Cluster) -> Vec<Reason> {
        let Some(quotas) = cluster.state::<Quotas>() else { return Vec::new() };
        let Some(unknown) = quotas.unknown_to(request.template()) else { return Vec::new() };
        let counted_in = quotas.quota_of(request.template()).map_or("none", |name| name);
        let text = match &*unknown {
            ROOT_QUOTA => format!("{ROOT_QUOTA} takes no pods of its own; the pod counts in {counted_in}"),
            unknown => format!("there is no quota {unknown}; the pod counts in {counted_in}"),
        };
        ReasonCode::QuotaNotFound.reason(text).with("quota", unknown).with("counted_in", counted_in).into()
    }
}

impl ServiceEndpoint for ElasticQuotaPlugin {
    fn paths(&self) -> &'static [&'static str] {
        &["quotas", "quotas/:name"]
    }

    fn serve(&self, path: &[&str], query: &Query, cluster: &Cluster) -> Result<Value, ServiceError> {
        let quotas = cluster.state::<Quotas>().ok_or(ServiceError::UnknownPath)?;
        match *path {
            ["quotas"] => Ok(quotas.summaries_of(query, cluster)),
            ["quotas", name] => {
                let summary = quotas.summary_with(name, query, cluster);
                summary.ok_or_else(|| ServiceError::NotFound(format!("cannot find quota {name}")))
            }
            _ => Err(ServiceError::UnknownPath),
        }
    }
}

impl MetricSource for ElasticQuotaPlugin {
    fn figures(&self, cluster: &Cluster) -> Vec<Figure> {
        cluster.state::<Quotas>().map(|quotas| quotas.figures(cluster)).unwrap_or_default()
    }
}

impl SameQuota<'_> {
    fn is_lower(&self, placed: &Placed, cluster: &Cluster) -> bool {
        let quota = cluster.state::<Quotas>().and_then(|quotas| quotas.quota_of(&placed.pod.template));
        self.lower.may_evict(placed, cluster) && quota.map(|quota| &**quota) == self.quota
    }

    /// Whether a pod goes already.
    ///
    /// QUIRK: whoever deleted it (`a_victim_that_is_going_matters_to_pods_of_its_quota_only`), and though the quota itself must not
    /// evict it (`a_pod_of_the_default_quota_stays_nominated_while_its_victims_are_going`).
    fn makes_way(&self, placed: &Placed, cluster: &Cluster) -> bool {
        (placed.pod.deleting || cluster.is_evicted(placed)) && self.is_lower(placed, cluster)
    }
}

impl Rules for SameQuota<'_> {
    fn may_evict(&self, placed: &Placed, cluster: &Cluster) -> bool {
        let Some(quotas) = cluster.state::<Quotas>() else { return false };
        let is_protected = self.quota == Some(DEFAULT_QUOTA) && quotas.settings().protects_default;
        !is_protected && is_preemptible(&placed.pod.template) && self.is_lower(placed, cluster)
    }

    fn protected(&self, pods: &[Placed], cluster: &Cluster) -> BTreeSet<Uid> {
        self.lower.protected(pods, cluster)
    }

    fn no_victims(&self, node: &str) -> String {
        format!("No victims found on node {node} for preemptor pod {}", self.pod.key.name())
    }

    /// Evictions help within the quota's runtime, and neither in its `min` nor in the quotas above; hooks are called as if the
    /// pods were gone.
    fn admits(&self, request: &Request<'_>, _: &Profile, cluster: &Cluster) -> Result<(), NotAdmitted> {
        let Some(quotas) = cluster.state::<Quotas>() else { return Ok(()) };
        quotas.check_runtime(request.template()).map_err(NotAdmitted::new)?;
        quotas.check_hooks(request.template(), request.pod).map_err(NotAdmitted::new)
    }
}
