//! DynamicResources: devices for the ResourceClaims of pods (`resource.k8s.io/v1`, structured parameters).
//!
//! A claim is given devices when its first pod has its node. What is given is known from the claims that say so and from the pods in
//! their places ([`ledger::Ledger`]), so that no device is given twice. Claims are objects that others change, so a pod with claims
//! is decided anew in each attempt. Read first: [`search`].

mod audit;
mod claims;
mod demand;
mod extended;
mod ledger;
mod pools;
mod search;
mod selectors;
mod state;
mod writes;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    Attempted, Audit, Code, Diagnostics, DoubleAllocation, EnqueueExtensions, FeatureGates, Filter, Found, NodeFilter,
    NodeScore, Orders, Patch, Plugin, PluginState, PodActivation, PostFilter, PostFilterResult, PreBind, PreEnqueue,
    PreFilter, PreparedFilter, Profile, Reason, ReasonCode, Refusal, Registration, Rejection, Request, Reserve,
    SchedulingSignature, Score, StatusUpdates, StatusWriter, Verdict,
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    dynamic::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice},
    event::{Event, Events},
    highest_is_best,
    hold::Holds,
    node::Node,
    normalize,
    object::ObjectChange,
    pod::Pod,
    texts::Texts,
};
use koord_scheduling::NodeTerm;

use self::{
    claims::{Claim, ClaimError},
    demand::Demand,
    ledger::{ClaimHeld, ClaimsHeld, Given},
    search::{AllocationError, Scope},
    selectors::Selectors,
    state::Devices,
};

/// Refuses nodes without the devices that a pod claims, and gives its claims those of the node that was chosen.
#[derive(Debug, Default)]
pub struct DynamicResources {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    selectors: Selectors,
    texts: Texts,
    /// Whether DeviceTaintRules taint devices.
    follows_rules: bool,
}

/// A node has not what the claims request. The operand is the number of the words.
const LACKS: u16 = 0;
/// The devices of claims cannot be reached from the node. The operand has a bit for each claim.
const OUT_OF_REACH: u16 = 1;

/// How long it may take until a claim is seen to have what was written.
const UNSEEN: Duration = Duration::from_secs(2);

/// A claim can be used by so many pods.
const CONSUMERS_MAX: usize = 256;

impl DynamicResources {
    /// The plugin under these feature gates.
    pub fn new(gates: FeatureGates<'_>) -> Self {
        Self { shared: Arc::new(Shared { follows_rules: gates("DRADeviceTaintRules"), ..Shared::default() }) }
    }

    /// The claims of a pod, and what those without devices request; or why it cannot be placed now.
    fn demands<'o>(&self, pod: &Pod, cluster: &'o Cluster) -> Result<(Vec<Claim<'o>>, Vec<Demand>), Reason> {
        let objects = cluster.objects();
        let claims = claims::of(pod, objects).map_err(|error| not_ready(&error))?;
        let devices = cluster.state::<Devices>();
        if let Some(devices) = devices
            && let Some(claim) = claims.iter().find(|claim| devices.is_given_back(claim, pod))
        {
            return Err(not_ready(&ClaimError::StillReserved(claim.key.clone())));
        }
        let without = claims.iter().filter(|claim| !claim.is_allocated());
        let demands = without.map(|claim| {
            if devices.is_some_and(|devices| devices.ledger.is_in_flight(&claim.key, &pod.uid)) {
                return Err(not_ready(&ClaimError::BeingAllocated(claim.key.clone())));
            }
            let demand = Demand::of(claim, objects, &self.shared.selectors);
            demand.map_err(|error| ReasonCode::ResourceClaimInvalid.reason(error.to_string()))
        });
        let demands = demands.collect::<Result<_, _>>()?;
        Ok((claims, demands))
    }

    fn find(&self, node: &Node, demands: &[Demand], cluster: &Cluster) -> Result<Vec<Given>, Reason> {
        let unavailable = |error: AllocationError| ReasonCode::ResourceClaimUnavailable.reason(error.to_string());
        let Some(Devices { pools, ledger, .. }) = cluster.state() else {
            return Err(unavailable(AllocationError::NONE));
        };
        let (objects, selectors) = (cluster.objects(), &self.shared.selectors);
        search::on(node, demands, Scope { pools, ledger, objects, selectors }).map_err(unavailable)
    }
}

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        "DynamicResources"
    }

    fn register(self: Arc<Self>) -> Registration {
        const ALL: [ResourceKind; 4] = [
            ResourceKind::typed::<ResourceClaim>(),
            ResourceKind::typed::<ResourceSlice>(),
            ResourceKind::typed::<DeviceClass>(),
            ResourceKind::typed::<DeviceTaintRule>(),
        ];
        let reads: &'static [ResourceKind] = match &ALL {
            all if self.shared.follows_rules => all,
            [but_rules @ .., _] => but_rules,
        };
        Registration::of(&self)
            .reads(reads)
            .pre_enqueue(&self)
            .enqueue_extensions(&self)
            .pod_activation(&self)
            .pre_filter(&self)
            .filter(&self)
            .score(&self)
            .post_filter(&self)
            .reserve(&self)
            .pre_bind(&self)
            .state(&self)
            .status_writer(&self)
            .diagnostics(&self)
            .audit(&self)
            .scheduling_signature(&self)
    }
}

impl PreEnqueue for DynamicResources {
    fn pre_enqueue(&self, pod: &Pod, cluster: &Cluster) -> Result<(), Reason> {
        claims::of(pod, cluster.objects()).map(drop).map_err(|error| not_ready(&error))
    }
}

impl EnqueueExtensions for DynamicResources {
    fn events_to_register(&self) -> Events {
        let nodes = Events::NODE_ADDED | Events::NODE_LABELS | Events::NODE_ALLOCATABLE;
        nodes | Events::POD_CHANGED | Events::POD_REMOVED | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, cluster: &Cluster) -> bool {
        match event {
            // What it held of claims may have been on its way to them.
            Event::PodRemoved(gone) => gone.has_resource_claims(),
            Event::PodChanged => claims::of(pod, cluster.objects()).is_ok(),
            Event::Object(change) => may_help(pod, change, cluster),
            _ => true,
        }
    }
}

impl PodActivation for DynamicResources {
    fn order(&self, cluster: &mut Cluster, orders: &mut Orders) {
        let has_freed = cluster.state_mut::<Devices>().is_some_and(|devices| std::mem::take(&mut devices.has_freed));
        if has_freed {
            let waiting = cluster.pending().filter(|pod| pod.has_resource_claims());
            orders.activate.extend(waiting.map(|pod| pod.uid.clone()));
        }
    }
}

impl PreFilter for DynamicResources {
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        let (claims, _) = self.demands(request.pod, cluster).map_err(Rejection::unresolvable)?;
        let is_full = |claim: &Claim<'_>| {
            claim.object.status.reserved_for.len() >= CONSUMERS_MAX && !claim.is_reserved_for(request.pod)
        };
        if claims.iter().any(is_full) {
            return Err(Rejection::unresolvable(ReasonCode::ResourceClaimInUse.reason("resourceclaim in use")));
        }
        Ok(())
    }
}

impl Filter for DynamicResources {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        if !request.pod.has_resource_claims() {
            return PreparedFilter::Skip;
        }
        match self.demands(request.pod, cluster) {
            Ok((claims, _)) if claims.is_empty() => PreparedFilter::Skip,
            Ok((claims, demands)) => {
                let reaches = claims.iter().map(reach).collect();
                PreparedFilter::Nodes(Box::new(OnNodes { plugin: self.again(), demands, reaches }))
            }
            Err(reason) => PreparedFilter::None(self.lacks(reason)),
        }
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        match refusal.reason {
            OUT_OF_REACH => {
                ReasonCode::ResourceClaimOutOfReach.reason("resourceclaim not available on the node").into()
            }
            _ => self.shared.texts.get(refusal.operand, search::NONE),
        }
    }
}

impl Score for DynamicResources {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        if !request.pod.has_resource_claims() {
            return None;
        }
        let (_, demands) = self.demands(request.pod, cluster).ok()?;
        let has_choice = demands.iter().any(Demand::has_choice);
        has_choice.then(|| -> Box<dyn NodeScore> {
            Box::new(Preferred(OnNodes { plugin: self.again(), demands, reaches: Vec::new() }))
        })
    }
}

impl PostFilter for DynamicResources {
    fn post_filter(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilterResult {
        if self.skipped_pre_filter(request, attempted) {
            return PostFilterResult::Stop("not found".to_owned());
        }
        if !request.pod.has_resource_claims() {
            return PostFilterResult::Nothing("no new claims to deallocate".to_owned());
        }
        let words = match self.idle_claim(request.pod, attempted) {
            Some((key, version)) => {
                if let Some(devices) = attempted.cluster.state_mut::<Devices>() {
                    devices.idle_claims.insert(key, version);
                }
                "deallocation of ResourceClaim completed"
            }
            None => "still not schedulable",
        };
        PostFilterResult::Nothing(words.to_owned())
    }
}

impl Reserve for DynamicResources {
    fn reserve(&self, request: &Request<'_>, cluster: &Cluster, row: Row, holds: &mut Holds) -> Result<(), Rejection> {
        let Some(node) = cluster.node(row).filter(|_| request.pod.has_resource_claims()) else { return Ok(()) };
        let (_, demands) = self.demands(request.pod, cluster).map_err(Rejection::unresolvable)?;
        if demands.is_empty() {
            return Ok(());
        }
        let given = self.find(node, &demands, cluster).map_err(Rejection::unresolvable)?;
        let held = demands.into_iter().zip(given).map(|(demand, given)| {
            let Demand { key, uid, revision, .. } = demand;
            ClaimHeld { key, uid, revision, given }
        });
        holds.set(ClaimsHeld(held.collect()));
        Ok(())
    }

    fn unreserve(&self, placed: &Placed, cluster: &mut Cluster, _: &mut Orders) {
        let until = cluster.time().saturating_add(UNSEEN).unwrap_or(Timestamp::MAX);
        let Some(devices) = cluster.state_mut::<Devices>() else { return };
        if let Some(held) = placed.holds.get() {
            devices.ledger.doubt(&placed.pod.uid, held, until);
        }
        if placed.pod.has_resource_claims() {
            devices.lost_its_place(&placed.pod.uid);
        }
    }
}

impl PreBind for DynamicResources {
    fn pre_bind(&self, request: &Request<'_>, placed: &Placed, cluster: &Cluster, patch: &mut Patch) {
        let held = placed.holds.get::<ClaimsHeld>();
        let held_for = |claim: &Claim<'_>| held.and_then(|held| held.0.iter().find(|held| held.key == claim.key));
        for claim in claims::of(request.pod, cluster.objects()).unwrap_or_default() {
            let writes = writes::reserve(request.pod, &claim, held_for(&claim));
            patch.writes.extend(writes.into_iter().map(|write| (self.name(), write)));
        }
    }
}

impl PluginState for DynamicResources {
    fn state(&self) -> Box<dyn State> {
        Box::new(Devices::default())
    }
}

impl StatusWriter for DynamicResources {
    fn status_writes(&self, cluster: &Cluster) -> StatusUpdates {
        let Some(devices) = cluster.state::<Devices>() else { return StatusUpdates::default() };
        let mut writes = devices.deallocations(cluster);
        writes.extend(devices.given_back(cluster));
        StatusUpdates { writes, again: None }
    }
}

impl Diagnostics for DynamicResources {
    fn remarks(&self, request: &Request<'_>, cluster: &Cluster) -> Vec<Reason> {
        extended::remarks(request.template(), cluster)
    }
}

impl Audit for DynamicResources {
    fn double_allocations(&self, cluster: &Cluster, row: Option<Row>) -> Vec<DoubleAllocation> {
        let devices = cluster.state::<Devices>().filter(|_| row.is_none());
        devices.map(|devices| devices.double_allocations(cluster)).unwrap_or_default()
    }
}

impl SchedulingSignature for DynamicResources {
    fn is_individual(&self, pod: &Pod, _: &Cluster) -> bool {
        pod.has_resource_claims()
    }
}

fn not_ready(error: &ClaimError) -> Reason {
    ReasonCode::ResourceClaimNotReady.reason(error.to_string())
}

/// Whether a change of an object may help a pod.
fn may_help(pod: &Pod, change: &ObjectChange, cluster: &Cluster) -> bool {
    if change.of::<ResourceSlice>().is_some() || change.of::<DeviceTaintRule>().is_some() {
        return true;
    }
    if let Some((_, new)) = change.of::<DeviceClass>() {
        return new.is_some();
    }
    let Some((old, new)) = change.of::<ResourceClaim>() else { return false };
    let Ok(claims) = claims::of(pod, cluster.objects()) else { return false };
    let has_devices = |claim: Option<&ResourceClaim>| claim.is_some_and(|claim| claim.status.allocation.is_some());
    if has_devices(old) && !has_devices(new) {
        return true;
    }
    let is_its_own = change.key().is_some_and(|key| claims.iter().any(|claim| claim.key == *key));
    // What changes beside the status, as a finalizer, does not matter.
    is_its_own && old.map(|old| &old.status) != new.map(|new| &new.status)
}

impl DynamicResources {
    /// The same plugin, for what outlives the call.
    fn again(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }

    fn lacks(&self, reason: Reason) -> Refusal {
        Refusal { reason: LACKS, resolvable: false, operand: self.shared.texts.number(vec![reason]) }
    }

    /// QUIRK: whether PreFilter ended with a plugin before this one, or did not begin. In the original PostFilter then has no state of
    /// the pod, which is an error.
    fn skipped_pre_filter(&self, request: &Request<'_>, attempted: &Attempted<'_>) -> bool {
        let Found::Never(ending, Rejection { code: Code::Unresolvable, .. }) = attempted.found else { return false };
        let Profile { admits, plugins, .. } = attempted.profile;
        let is_own = |plugin: u8| plugins.get(usize::from(plugin)).is_some_and(|one| one.name() == self.name());
        let mut earlier = admits.iter().take_while(|plugin| !is_own(**plugin));
        let ended = plugins.get(usize::from(*ending));
        let first = ended.and_then(|one| one.before_pre_filter.as_ref());
        earlier.any(|plugin| plugin == ending)
            || first.is_some_and(|point| point.before_pre_filter(request, attempted.cluster).is_err())
    }

    /// An idle claim that keeps a pod from some node, with the version of it that was checked.
    fn idle_claim(&self, pod: &Pod, attempted: &Attempted<'_>) -> Option<(ObjectKey, (Uid, String))> {
        let Found::Nothing(refusals) = attempted.found else { return None };
        let is_own = |plugin: u8| {
            attempted.profile.plugins.get(usize::from(plugin)).map(Registration::name) == Some(self.name())
        };
        let verdicts = refusals.iter().map(|(verdict, _)| verdict);
        let out_of_reach =
            verdicts.filter(|Verdict { plugin, refusal }| refusal.reason == OUT_OF_REACH && is_own(*plugin));
        let bits = out_of_reach.fold(0, |bits, verdict| bits | verdict.refusal.operand);
        let claims = claims::of(pod, attempted.cluster.objects()).ok()?;
        let mut idle = (0..u64::BITS).zip(claims).filter(|(bit, _)| bits & (1 << bit) != 0);
        let (_, claim) = idle.find(|(_, claim)| claim.is_idle_but_for(pod))?;
        Some((claim.key, (claim.uid.clone(), claim.object.metadata.resource_version.clone())))
    }
}

/// The nodes from which the devices of a claim can be reached; none where that is every node, or it has no devices.
fn reach(claim: &Claim<'_>) -> Option<Vec<NodeTerm>> {
    let selector = claim.object.status.allocation.as_ref()?.node_selector.as_ref()?;
    Some(selector.node_selector_terms.iter().filter_map(NodeTerm::new).collect())
}

/// Filters nodes for a pod with claims.
struct OnNodes {
    plugin: DynamicResources,
    /// Of the claims without devices.
    demands: Vec<Demand>,
    /// By claim, from where its devices can be reached.
    reaches: Vec<Option<Vec<NodeTerm>>>,
}

impl NodeFilter for OnNodes {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(node) = cluster.node(row) else { return Ok(()) };
        if !self.demands.is_empty() {
            self.plugin.find(node, &self.demands, cluster).map_err(|reason| self.plugin.lacks(reason))?;
        }
        let includes =
            |terms: &[NodeTerm]| terms.iter().any(|term| term.selects(&node.name, |key| node.labels.get(key)));
        let reaches = (0..u64::BITS).zip(&self.reaches);
        let bits = reaches.filter(|(_, reach)| reach.as_ref().is_some_and(|terms| !includes(terms)));
        match bits.fold(0, |bits, (bit, _)| bits | 1_u64 << bit) {
            0 => Ok(()),
            operand => Err(Refusal { reason: OUT_OF_REACH, resolvable: false, operand }),
        }
    }
}

/// Prefers nodes where requests have those of their alternatives that they name first.
struct Preferred(OnNodes);

impl NodeScore for Preferred {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let Self(OnNodes { plugin, demands, .. }) = self;
        let given = cluster.node(row).and_then(|node| plugin.find(node, demands, cluster).ok()).unwrap_or_default();
        demands.iter().zip(&given).map(|(demand, given)| demand.preference(given)).sum()
    }

    fn normalize(&self, scores: &mut [i64]) {
        normalize(scores, highest_is_best);
    }

    fn is_local(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
