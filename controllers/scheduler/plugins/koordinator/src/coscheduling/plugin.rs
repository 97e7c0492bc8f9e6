//! Coscheduling as a plugin.

use std::{collections::BTreeMap, sync::Arc};

use koord_config::scheduler::{CoschedulingArgs, MatchPolicy as ConfiguredPolicy};
use koord_core::{key::ObjectKey, uid::Uid};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    Attempted, BeforePreFilter, Code, EnqueueExtensions, FailureHandler, Figure, FindOneNode, Found, MetricSource,
    NextPod, NodeScore, Orders, Patch, Permit, PermitResult, Plugin, PluginState, PodActivation, PostFilter,
    PostFilterResult, PreBind, PreEnqueue, Profile, Query, Reason, ReasonCode, Registration, Rejection, Request,
    Reserve, Score, ServiceEndpoint, ServiceError, StatusUpdates, StatusWriter, Workload, WorkloadSource,
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    cycle::Rehearsal,
    event::{Event, Events},
    pod::Pod,
    preemption::refuse_reserve_pod,
    unavailable,
};
use koord_types::{
    cluster_network_topology::ClusterNetworkTopology,
    gang::{BIND_GANG_GROUP_ID, BIND_GANG_MEMBER_COUNT},
    pod_group::PodGroup,
};
use serde_json::Value;

use super::{
    arrangement::{arrange, seat_all, without_tree},
    context::{Context, Job, Place, Preemption},
    declaration::{Defaults, MatchPolicy},
    network::{Nearness, selector},
    preemption::{Nominations, preempt, waits_for_victims},
    round::bind_annotations,
    status_updates::status_updates,
};

/// Places the pods of a gang together or not at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coscheduling {
    defaults: Defaults,
    /// Whether gangs are placed in the network as they ask for it.
    is_aware: bool,
    /// Whether pods of lower priority are evicted for whole gangs.
    preempts: bool,
    /// Whether a gang that has a place in the network is tried there as a whole first.
    in_batches: bool,
}

impl Coscheduling {
    /// The plugin with these arguments.
    pub fn new(args: &CoschedulingArgs) -> Self {
        let policy = match args.default_match_policy {
            ConfiguredPolicy::OnlyWaiting => MatchPolicy::OnlyWaiting,
            ConfiguredPolicy::WaitingAndRunning => MatchPolicy::WaitingAndRunning,
            ConfiguredPolicy::OnceSatisfied => MatchPolicy::OnceSatisfied,
        };
        let waiting_time = if args.default_timeout > koord_resource::Duration::ZERO {
            args.default_timeout
        } else {
            Defaults::default().waiting_time
        };
        Self {
            defaults: Defaults { waiting_time, policy },
            is_aware: args.aware_network_topology,
            preempts: args.enable_preemption,
            in_batches: false,
        }
    }

    /// The same; with the gate `EnableInlineBatchSchedule`, members of a gang that has a place in the network are all tried
    /// there, with everything that they get, before the first one is placed (`spec/scheduler.md` 2.11).
    #[must_use]
    pub const fn in_batches(self, in_batches: bool) -> Self {
        Self { in_batches, ..self }
    }

    /// Preempts for a pod and all that are tried together with it.
    fn preempt(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> Result<Together, Preemption> {
        let by = request.pod.key.clone();
        if !request.template().preempts {
            let message = "not eligible due to preemptionPolicy=Never.".to_owned();
            return Err(Preemption { by, message, nominates: false, was_tried: false });
        }
        let failed = |message: String| Preemption { by: by.clone(), message, nominates: false, was_tried: true };
        let Some(context) = attempted.cluster.state::<Context>() else { return Err(failed(String::new())) };
        let topology = context.topology_of_job(&request.pod.uid);
        let Job { pods, in_place, group } = context.job(&request.pod.uid);
        let preemptor = group.unwrap_or_else(|| by.to_string());
        let row = |uid: &Uid| attempted.cluster.pod(uid).map(|placed| (uid.clone(), placed.row));
        let in_place: Vec<(Uid, Row)> = in_place.iter().filter_map(row).collect();
        let all = pods.len() + in_place.len();
        if waits_for_victims(request, attempted, &pods) {
            let nominated = |uid: Uid| attempted.cluster.nomination(&uid).map(|row| (uid, row));
            let nominations = pods.into_iter().filter_map(nominated).chain(in_place).collect();
            let message = "not eligible due to terminating pod on the nominated node.".to_owned();
            let preemption = Preemption { by, message, nominates: true, was_tried: false };
            return Ok(Together { nominations, victims: Vec::new(), preemptor, preemption });
        }
        let pods: Vec<Arc<Pod>> =
            pods.iter().filter_map(|uid| attempted.cluster.pending_pod(uid)).map(Arc::clone).collect();
        let topology = topology.map_err(|error| failed(error.to_string()))?;
        let Nominations { mut rows, victims } = preempt(request, attempted, &pods, topology.as_ref(), self.name())
            .map_err(|error| failed(error.to_string()))?;
        let message = format!("preempt success, alreadyWaitingForBound: {}/{all}", in_place.len());
        rows.extend(in_place);
        let preemption = Preemption { by, message, nominates: true, was_tried: true };
        Ok(Together { nominations: rows, victims, preemptor, preemption })
    }
}

/// Nominations that is made for several pods.
struct Together {
    nominations: Vec<(Uid, Row)>,
    victims: Vec<Uid>,
    /// The gang group, or the pod that goes alone.
    preemptor: String,
    preemption: Preemption,
}

impl Plugin for Coscheduling {
    fn name(&self) -> &'static str {
        "Coscheduling"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<PodGroup>(), ResourceKind::typed::<ClusterNetworkTopology>()] })
            .pre_enqueue(&self)
            .next_pod(&self)
            .enqueue_extensions(&self)
            .pod_activation(&self)
            .before_pre_filter(&self)
            .find_one_node(&self)
            .score(&self)
            .post_filter(&self)
            .failure_handler(&self)
            .reserve(&self)
            .permit(&self)
            .pre_bind(&self)
            .state(&self)
            .status_writer(&self)
            .service_endpoint(&self)
            .metrics(&self)
            .workload(&self)
    }
}

impl PreEnqueue for Coscheduling {
    fn pre_enqueue(&self, pod: &Pod, cluster: &Cluster) -> Result<(), Reason> {
        cluster.state::<Context>().map_or(Ok(()), |context| context.may_queue(&pod.uid))
    }

    fn activates(&self) -> bool {
        true
    }

    fn representative(&self, pod: &Pod, cluster: &Cluster) -> Option<Uid> {
        let (first, _) = cluster.state::<Context>()?.gangs.representative_of(&pod.uid)?;
        Some(first.clone())
    }
}

impl NextPod for Coscheduling {
    fn next_pod(&self, cluster: &Cluster) -> Option<Uid> {
        cluster.state::<Context>()?.next().cloned()
    }

    fn next_pod_unavailable(&self, uid: &Uid, cluster: &mut Cluster, orders: &mut Orders) {
        if let Some(context) = cluster.state_mut::<Context>() {
            context.lost(uid, orders);
        }
    }
}

impl EnqueueExtensions for Coscheduling {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED
            | Events::NODE_ALLOCATABLE
            | Events::NODE_LABELS
            | Events::NODE_TAINTS
            | Events::POD_REMOVED
            | Events::POD_CHANGED
            | Events::OBJECTS
    }

    /// What refused a member is not known here, so whatever may help anybody helps; but only those that may be tried.
    fn is_helped_by(&self, pod: &Pod, _: &Event, cluster: &Cluster) -> bool {
        self.pre_enqueue(pod, cluster).is_ok()
    }
}

impl PodActivation for Coscheduling {
    fn order(&self, cluster: &mut Cluster, orders: &mut Orders) {
        let now = cluster.time();
        let due = cluster.state::<Context>().filter(|context| context.statuses.due().is_some_and(|due| due <= now));
        let seen = due.map(|context| context.statuses.look(&context.gangs, cluster));
        if let Some(context) = cluster.state_mut::<Context>() {
            if let Some(seen) = seen {
                context.statuses.looked(seen, now);
            }
            context.settle(orders);
        }
    }
}

impl BeforePreFilter for Coscheduling {
    fn before_pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        let Some(context) = cluster.state::<Context>() else { return Ok(()) };
        context.admits(&request.pod.uid)?;
        // What a gang asks of the network must be known, whether it counts here or not.
        if context.lacks_network(&request.pod.uid, cluster) { Err(without_tree()) } else { Ok(()) }
    }
}

impl FindOneNode for Coscheduling {
    fn find_one_node(
        &self,
        request: &Request<'_>,
        profile: &Profile,
        cluster: &mut Cluster,
    ) -> Option<Result<Row, Rejection>> {
        let uid = &request.pod.uid;
        let context = cluster.state::<Context>().filter(|_| self.is_aware)?;
        let spec = match context.place_of(uid) {
            Place::Any => return None,
            Place::At(node) => return Some(cluster.row(&node).ok_or_else(unplanned)),
            Place::Unplanned => return Some(Err(unplanned())),
            Place::Together(spec) => spec,
        };
        let pods = context.job(uid).pods;
        let pods: Vec<Arc<Pod>> = pods.iter().filter_map(|uid| cluster.pending_pod(uid)).map(Arc::clone).collect();
        cluster.exclude_all();
        let arrangement = arrange(profile, cluster, &spec, &pods);
        let is_batch = self.in_batches && arrangement.is_ok();
        let arrangement = arrangement.and_then(|arrangement| {
            let rehearsal = is_batch.then(|| Rehearsal::new(profile, cluster, &pods));
            rehearsal.map_or(Ok(()), |rehearsal| seat_all(rehearsal, &arrangement, self.name()))?;
            Ok(arrangement)
        });
        if let Some(context) = cluster.state_mut::<Context>() {
            context.arranged(arrangement.as_ref().ok().cloned(), is_batch);
        }
        let node = match arrangement {
            Ok(arrangement) => arrangement.get(uid).cloned(),
            Err(rejection) => return Some(Err(rejection)),
        };
        Some(node.and_then(|node| cluster.row(&node)).ok_or_else(unplanned))
    }

    fn reasons(&self) -> Vec<Reason> {
        ReasonCode::GangUnplanned.reason(format!("node(s) didn't satisfy plugin(s) [{}]", self.name())).into()
    }
}

impl Score for Coscheduling {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let selector = selector(request.template()).filter(|_| self.is_aware)?.to_owned();
        let tree = Arc::clone(cluster.state::<Context>()?.network.tree(cluster)?);
        Some(Box::new(Nearness { selector, tree, ranks: BTreeMap::new() }))
    }
}

impl PostFilter for Coscheduling {
    fn shares_nomination(&self, pod: &Pod, other: &Pod, cluster: &Cluster) -> bool {
        let context = cluster.state::<Context>().filter(|_| self.is_aware || self.preempts);
        context.is_some_and(|context| context.gangs.are_together(&pod.uid, &other.uid))
    }

    /// Unless it is configured to evict pods, it leaves that to others.
    fn preempts_for_rejected(&self) -> bool {
        self.preempts
    }

    fn post_filter(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilterResult {
        let uid = &request.pod.uid;
        let Some(context) = attempted.cluster.state::<Context>().filter(|_| self.preempts) else {
            return PostFilterResult::Nothing(String::new());
        };
        if let Some(refused) = refuse_reserve_pod(request) {
            return refused;
        }
        if let Some(Preemption { by, message, nominates, .. }) = context.preemption(uid) {
            let words = format!("preemption: preemption already attempted by {by} with message {message}");
            return match attempted.cluster.nomination(uid).filter(|_| *nominates) {
                Some(row) => {
                    let (nominations, victims) = (vec![(uid.clone(), row)], Vec::new());
                    PostFilterResult::Together { nominations, victims, preemptor: String::new(), words }
                }
                None => PostFilterResult::NoCandidate(words),
            };
        }
        let has_no_round = context.lacks_network(uid, attempted.cluster);
        let result = self.preempt(request, attempted);
        let preemption = result.as_ref().map_or_else(Clone::clone, |together| together.preemption.clone());
        let words = format!("preemption: {}", preemption.message);
        if let Some(context) = attempted.cluster.state_mut::<Context>().filter(|_| !has_no_round) {
            context.preempted(uid, preemption);
        }
        match result {
            Ok(Together { nominations, victims, preemptor, .. }) => {
                PostFilterResult::Together { nominations, victims, preemptor, words }
            }
            Err(_) => PostFilterResult::NoCandidate(words),
        }
    }
}

impl FailureHandler for Coscheduling {
    fn attempt_failed(&self, request: &Request<'_>, found: &Found, cluster: &mut Cluster, orders: &mut Orders) {
        let uid = &request.pod.uid;
        let known = &*cluster;
        let may_be_of_round = known
            .state::<Context>()
            .is_some_and(|context| context.gangs.gang_of(uid).is_some() && !context.lacks_network(uid, known));
        // Without nodes no member is tried.
        let nodes = cluster.len();
        if nodes > 0 && may_be_of_round {
            let reason = match found {
                Found::Never(_, rejection) if rejection.code != Code::Error => {
                    unavailable(&BTreeMap::from([(rejection.message(), nodes)]), nodes)
                }
                found => found.words(request.plugins, cluster),
            };
            let nearest = if let Found::Nothing(refusals) = found { refusals.nearest() } else { None };
            let best_node = nearest.and_then(|row| cluster.name(row)).cloned();
            if let Some(context) = cluster.state_mut::<Context>() {
                context.refuse(uid, &reason, best_node, orders);
            }
        }
    }
}

impl Reserve for Coscheduling {
    fn unreserve(&self, placed: &Placed, cluster: &mut Cluster, orders: &mut Orders) {
        if let Some(context) = cluster.state_mut::<Context>() {
            context.lost(&placed.pod.uid, orders);
        }
    }
}

impl Permit for Coscheduling {
    fn permit(&self, request: &Request<'_>, cluster: &mut Cluster, orders: &mut Orders) -> PermitResult {
        let context = cluster.state_mut::<Context>();
        context.map_or(PermitResult::Allow, |context| context.permit(&request.pod.uid, orders))
    }

    fn timeout_reason(&self, pod: &Pod, cluster: &Cluster, waited: &str, text: String) -> Reason {
        let gang = cluster.state::<Context>().and_then(|context| context.gangs.gang_of(&pod.uid));
        let reason = ReasonCode::GangTimeout.reason(text).with("elapsed", waited);
        gang.map_or(reason.clone(), |gang| reason.with("gang", gang))
    }
}

impl PreBind for Coscheduling {
    fn pre_bind(&self, request: &Request<'_>, _: &Placed, cluster: &Cluster, patch: &mut Patch) {
        let context = cluster.state::<Context>();
        let released = context.and_then(|context| context.gangs.released_with(&request.pod.uid));
        let written = released.map(|(group, members)| bind_annotations(group, members)).unwrap_or_default();
        for key in [
            BIND_GANG_GROUP_ID.key.name(),
            BIND_GANG_GROUP_ID.deprecated,
            BIND_GANG_MEMBER_COUNT.key.name(),
            BIND_GANG_MEMBER_COUNT.deprecated,
        ] {
            match written.get(key) {
                Some(value) => patch.annotate(key, value),
                // A pod that was once bound with others says so no longer.
                None if request.template().annotations.get(key).is_some() => {
                    patch.annotations.insert(key.to_owned(), None);
                }
                None => {}
            }
        }
    }
}

impl PluginState for Coscheduling {
    fn state(&self) -> Box<dyn State> {
        Box::new(Context::new(self.defaults))
    }
}

impl StatusWriter for Coscheduling {
    fn status_writes(&self, cluster: &Cluster) -> StatusUpdates {
        status_updates(cluster, self.is_aware)
    }
}

impl ServiceEndpoint for Coscheduling {
    fn paths(&self) -> &'static [&'static str] {
        &["gangs", "gang/:namespace/:name"]
    }

    fn serve(&self, path: &[&str], _: &Query, cluster: &Cluster) -> Result<Value, ServiceError> {
        let context = cluster.state::<Context>().ok_or(ServiceError::UnknownPath)?;
        match *path {
            ["gangs"] => Ok(context.gangs.summaries(cluster.objects())),
            ["gang", namespace, name] => {
                let summary = context.gangs.summary(&ObjectKey::new(namespace, name), cluster.objects());
                summary.ok_or_else(|| ServiceError::NotFound(format!("cannot find gang {namespace}/{name}")))
            }
            _ => Err(ServiceError::UnknownPath),
        }
    }
}

impl MetricSource for Coscheduling {
    fn figures(&self, cluster: &Cluster) -> Vec<Figure> {
        let waiting = cluster.state::<Context>().map_or(0, |context| context.gangs.waiting_groups());
        vec![Figure { name: "scheduler_waiting_gang_group_number", labels: Vec::new(), value: waiting as f64 }]
    }
}

impl WorkloadSource for Coscheduling {
    fn workload(&self, pod: &Pod, cluster: &Cluster) -> Option<Workload> {
        cluster.state::<Context>()?.gangs.workload(&pod.uid)
    }
}

fn unplanned() -> Rejection {
    Rejection::error(ReasonCode::GangUnplanned.reason("no planned pods"))
}

#[cfg(test)]
mod tests;
