//! The plugin NodeNUMAResource (`spec/scheduler.md` 3B).

#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use koord_config::scheduler::{CpuBindPolicy, NodeNumaResourceArgs, ScoringStrategy, ScoringType};
use koord_resource::controller::ResourceKind;
use koord_scheduler_allocation::{
    ReservationRequirement,
    numa::{
        policy::{Bind, Exclusive, Fill},
        state::{NumaHold, NumaState},
    },
    source,
};
use koord_scheduler_framework::{
    AllocationRestore, AllocationSource, Audit, Code, DoubleAllocation, EnqueueExtensions, Filter, NodeFilter,
    NodeNumaAffinity, NodeNumaHints, NodeScore, NumaTopologyManager, Operands, Patch, Plugin, PluginState, PreBind,
    PreFilter, PreparedFilter, Query, Reason, ReasonCode, Refusal, Registration, Rejection, Request, ReservationFilter,
    Reserve, ReservedNumaAffinity, SchedulingSignature, Score, ServiceEndpoint, ServiceError, SignatureFields,
    SourceFilter,
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    hold::Holds,
    pod::{Pod, Template},
    texts::Texts,
};
use koord_types::{
    device::Device,
    node_resource_topology::v1alpha1::NodeResourceTopology,
    numa::{RESOURCE_SPEC, RESOURCE_STATUS, ResourceSpec},
    priority::PRIORITY_CLASS_LABEL,
    protocol::Text,
    qos::QOS_LABEL,
    reservation::Reservation,
    reservation_protocol::RESERVATION_IGNORED,
};
use serde_json::Value;

use super::{
    pre_filter_state::{Configured, NodeInCluster, PreFilterState},
    refused::Refused,
    resource_options::{Invalid, ResourceOptions},
    shown,
};

const OUT_OF_SCOPE: &str = "pod has a nominated reservation but cannot be allocated within its NUMA scope";

/// Gives pods exclusive CPUs and resources of as few NUMA nodes as they request, and refuses nodes that do not have them.
#[derive(Debug)]
pub struct NodeNumaResource {
    settings: Arc<Configured>,
    texts: Arc<Texts>,
}

// === impl NodeNumaResource ===

impl NodeNumaResource {
    /// The plugin with these arguments.
    pub fn new(args: NodeNumaResourceArgs) -> Self {
        let bind = match args.default_cpu_bind_policy {
            CpuBindPolicy::Unset => None,
            CpuBindPolicy::FullPcpus => Some(Bind::FullPcpus),
            CpuBindPolicy::SpreadByPcpus => Some(Bind::SpreadByPcpus),
        };
        let fill = |strategy: &ScoringStrategy| match strategy.type_ {
            ScoringType::MostAllocated => Fill::MostAllocated,
            ScoringType::LeastAllocated | ScoringType::BalancedAllocation | ScoringType::LeastFragmented => {
                Fill::LeastAllocated
            }
        };
        let scoring = args.scoring_strategy;
        let settings = Configured {
            bind,
            fill: fill(&scoring),
            numa_fill: fill(&args.numa_scoring_strategy),
            // QUIRK: NUMA nodes are compared by the resources of nodes
            // (spec/scheduler.md 1.1; `numa_nodes_are_compared_by_the_resources_of_nodes`).
            weights: scoring.resources.into_iter().map(|one| (one.name, one.weight.0)).collect(),
        };
        Self { settings: Arc::new(settings), texts: Arc::default() }
    }

    /// The pre-filter state of a pod; `None` when it requests nothing.
    fn pre_filter_state(&self, request: &Request<'_>) -> Result<Option<PreFilterState>, Invalid> {
        let providers = request.each(|plugin| &plugin.numa_hint_provider);
        let others = providers.filter_map(|provider| provider.prepare_numa_hints(request)).collect();
        self.pre_filter_state_of(request.template(), others)
    }

    fn pre_filter_state_of(
        &self,
        template: &Arc<Template>,
        others: Vec<Box<dyn NodeNumaHints>>,
    ) -> Result<Option<PreFilterState>, Invalid> {
        let options = options(template, self.settings.bind)?;
        if template.requests.is_zero() {
            return Ok(None);
        }
        let (settings, texts) = (Arc::clone(&self.settings), Arc::clone(&self.texts));
        let (template, requirement, of_nodes) =
            (Arc::clone(template), ReservationRequirement::of(template), Vec::new());
        let numbered = OnceLock::new();
        Ok(Some(PreFilterState { options, template, requirement, others, of_nodes, numbered, settings, texts }))
    }
}

/// The resource spec of a Reservation.
fn resource_spec_of(name: &str, cluster: &Cluster) -> ResourceSpec {
    let object = cluster.objects().get::<Reservation>(name);
    let annotations = object.and_then(|object| object.metadata.annotations.as_ref());
    annotations.and_then(|annotations| RESOURCE_SPEC.get(annotations).ok().flatten()).unwrap_or_default()
}

fn options(template: &Template, default_bind: Option<Bind>) -> Result<ResourceOptions, Invalid> {
    let cpu = template.requests.amount("cpu").milli_value();
    let (label, annotation) = (|key: &str| template.labels.get(key), |key: &str| template.annotations.get(key));
    ResourceOptions::of(label, annotation, template.priority, cpu, default_bind)
}

impl Plugin for NodeNumaResource {
    fn name(&self) -> &'static str {
        "NodeNUMAResource"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<NodeResourceTopology>()] })
            .enqueue_extensions(&self)
            .pre_filter(&self)
            .filter(&self)
            .score(&self)
            .numa_topology_manager(&self)
            .reservation_filter(&self)
            .reserve(&self)
            .pre_bind(&self)
            .allocation_restore(&self)
            .state(&self)
            .service_endpoint(&self)
            .audit(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for NodeNumaResource {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_LABELS | Events::POD_REMOVED | Events::OBJECTS | Events::POD_CHANGED
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, cluster: &Cluster) -> bool {
        match event {
            // A node whose NUMA nodes are not reported yet helps no pod that needs them.
            Event::NodeAdded(node) | Event::NodeChanged { new: node, .. } => {
                let pre_filter_state = self.pre_filter_state_of(&pod.template, Vec::new()).ok().flatten();
                let row = cluster.row(&node.name);
                pre_filter_state
                    .zip(row)
                    .is_none_or(|(pre_filter_state, row)| pre_filter_state.filter(cluster, row).is_ok())
            }
            Event::Object(change) => change.of::<NodeResourceTopology>().is_some() || change.of::<Device>().is_some(),
            _ => true,
        }
    }
}

impl PreFilter for NodeNumaResource {
    fn pre_filter(&self, request: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        let options = options(request.template(), self.settings.bind);
        if let Err(Invalid::Annotation { key, reason }) = &options {
            let message = format!("running PreFilter plugin \"{}\": {reason}", self.name());
            return Err(Rejection::error(ReasonCode::CpuRequestInvalid.reason(message).with("annotation", key)));
        }
        let status = request.pod.given.get(RESOURCE_STATUS.name()).filter(|_| !request.template().requests.is_zero());
        if let Some(Err(error)) = status.map(|text| RESOURCE_STATUS.read(text)) {
            let reason = ReasonCode::CpuRequestInvalid.reason(error.reason).with("annotation", error.key);
            return Err(Rejection::unresolvable(reason));
        }
        let fractional = |_| Rejection::unresolvable(ReasonCode::CpuRequestInvalid.reason(Invalid::FRACTIONAL_CPU));
        options.map(drop).map_err(fractional)
    }
}

impl Filter for NodeNumaResource {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        match self.pre_filter_state(request) {
            Ok(Some(pre_filter_state)) => PreparedFilter::Nodes(Box::new(pre_filter_state)),
            Ok(None) | Err(_) => PreparedFilter::Skip,
        }
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        self.texts.get(refusal.operand, "node(s) NUMA nodes do not fit")
    }

    fn details(&self, refusal: &Refusal, request: &Request<'_>, cluster: &Cluster, row: Row) -> Operands {
        let reasons = self.reasons(refusal, cluster);
        let (Some(reason), Some(place), Ok(Some(pre_filter_state))) =
            (reasons.first(), NodeInCluster::of(cluster, row), self.pre_filter_state(request))
        else {
            return Operands::new();
        };
        shown::details(reason.code, &pre_filter_state, place)
    }

    fn is_of_reserve(&self, refusal: &Refusal) -> bool {
        refusal.reason == Refused::OF_RESERVE
    }
}

impl Score for NodeNumaResource {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let pre_filter_state = self.pre_filter_state(request).ok()??;
        Some(Box::new(PreFilterState { of_nodes: pre_filter_state.of_nodes(cluster), ..pre_filter_state }))
    }
}

impl NumaTopologyManager for NodeNumaResource {
    fn prepare_numa_affinity(&self, request: &Request<'_>) -> Option<Box<dyn NodeNumaAffinity>> {
        self.pre_filter_state(request)
            .ok()?
            .map(|pre_filter_state| -> Box<dyn NodeNumaAffinity> { Box::new(pre_filter_state) })
    }
}

impl ReservationFilter for NodeNumaResource {
    fn prepare_reservation_filter(&self, request: &Request<'_>) -> Option<Box<dyn SourceFilter>> {
        self.pre_filter_state(request)
            .ok()?
            .map(|pre_filter_state| -> Box<dyn SourceFilter> { Box::new(pre_filter_state) })
    }
}

impl Reserve for NodeNumaResource {
    fn reserve(&self, request: &Request<'_>, cluster: &Cluster, row: Row, holds: &mut Holds) -> Result<(), Rejection> {
        let Ok(Some(mut pre_filter_state)) = self.pre_filter_state(request) else { return Ok(()) };
        if let Some(reference) = &request.pod.reservation {
            // What is decided is written into the Reservation, beside what that says itself and not its template.
            pre_filter_state.options.spec = resource_spec_of(reference.key.as_str(), cluster);
        }
        let Some(place) = NodeInCluster::of(cluster, row) else { return Ok(()) };
        let source = source(holds, &pre_filter_state.requirement);
        let reserved = pre_filter_state.reserve(place, &source).map_err(|refused| match &source {
            AllocationSource::Only(_) if !request.pod.is_reservation() => {
                Rejection::unschedulable(ReasonCode::ReservationFull.reason(OUT_OF_SCOPE))
            }
            _ => {
                let code = if refused.is_resolvable { Code::Unschedulable } else { Code::Unresolvable };
                Rejection { code, reasons: refused.reasons }
            }
        })?;
        if let Some(hold) = reserved {
            // Plugins that reserve after this one follow it.
            if let Some(affinity) = hold.affinity {
                holds.set(ReservedNumaAffinity(affinity));
            }
            holds.set(hold);
        }
        Ok(())
    }
}

impl PreBind for NodeNumaResource {
    fn pre_bind(&self, _: &Request<'_>, placed: &Placed, _: &Cluster, patch: &mut Patch) {
        let Some(hold) = placed.holds.get::<NumaHold>() else {
            if placed.pod.given.get(RESOURCE_STATUS.name()).is_some() && !placed.pod.is_reservation() {
                // It is left of a binding that has failed, perhaps to another node.
                patch.annotations.insert(RESOURCE_STATUS.name().to_owned(), None);
            }
            return;
        };
        let (name, status) = hold.status();
        patch.annotate(name, status);
        if let Some(spec) = &hold.spec {
            patch.annotate(RESOURCE_SPEC.name(), spec.write());
        }
    }
}

impl AllocationRestore for NodeNumaResource {
    /// What the pod does not share is what it says, also where its class binds no CPUs.
    ///
    /// QUIRK: what cannot be read changes nothing, so that its CPUs are free only after a restart
    /// (`annotations_that_cannot_be_read_change_nothing`).
    fn restore_allocation(&self, pod: &Pod, holds: &mut Holds) {
        let status = pod.given.get(RESOURCE_STATUS.name()).and_then(|text| RESOURCE_STATUS.read(text).ok());
        let spec = pod.template.annotations.get(RESOURCE_SPEC.name()).map(|text| RESOURCE_SPEC.read(text));
        let (Some(status), Ok(spec)) = (status, spec.transpose()) else { return };
        let exclusive = Exclusive::of_pod(spec.unwrap_or_default().preferred_cpu_exclusive_policy.as_ref());
        if let Ok(hold) = NumaHold::of(&status, exclusive) {
            holds.set(hold);
        }
    }

    /// A pod has nothing any more that its annotation, which is gone, said.
    fn update_allocation(&self, was: &Placed, pod: &Pod, holds: &mut Holds) {
        let is_written = |pod: &Pod| pod.given.get(RESOURCE_STATUS.name()).is_some();
        if is_written(&was.pod) && !is_written(pod) {
            holds.remove::<NumaHold>();
        }
    }
}

impl PluginState for NodeNumaResource {
    fn state(&self) -> Box<dyn State> {
        Box::<NumaState>::default()
    }
}

impl ServiceEndpoint for NodeNumaResource {
    fn paths(&self) -> &'static [&'static str] {
        &["nodes/:nodeName"]
    }

    fn serve(&self, path: &[&str], _: &Query, cluster: &Cluster) -> Result<Value, ServiceError> {
        match (path, cluster.state()) {
            (["nodes", node], Some(state)) => shown::on_node(state, cluster, node),
            _ => Err(ServiceError::UnknownPath),
        }
    }
}

impl Audit for NodeNumaResource {
    fn double_allocations(&self, cluster: &Cluster, row: Option<Row>) -> Vec<DoubleAllocation> {
        row.map(|row| koord_scheduler_allocation::numa::double_allocations(cluster, row)).unwrap_or_default()
    }
}

impl SchedulingSignature for NodeNumaResource {
    fn signature(&self) -> SignatureFields {
        const { SignatureFields::Labels(&[QOS_LABEL, PRIORITY_CLASS_LABEL, RESERVATION_IGNORED.name()]) }
    }

    /// A pod may request a resource that NUMA nodes report only now.
    fn epoch(&self, cluster: &Cluster) -> u64 {
        cluster.state::<NumaState>().map_or(0, |state| state.names().len() as u64)
    }
}
