//! The pre-filter state of a pod that requests devices, with its filter and scores.

use std::sync::Arc;

use koord_scheduler_allocation::{
    ReservationCache, ReservationRequirement, are_too_small,
    devices::{
        allocate::{Allocator, DeviceLimits, NodeLabels},
        allocation::AllocatedDevices,
        gpus::{Each, Gpus},
        node::NodeDevices,
        numa_hints,
        refusal::Refused,
        request::{DeviceRequest, GpuRequest, Kind},
        score::{ALIKE, DeviceScorer},
        state::Devices,
        template::GpuTemplates,
    },
    is_unreserved, reservations_with,
};
use koord_scheduler_framework::{
    AllocationSource, NodeFilter, NodeNumaAffinity, NodeNumaHints, NodeScore, NumaHints, Operands, Reason, Refusal,
    Scale, SourceFilter, cluster::Cluster, columns::Row, highest_is_best, node::Node, pod::Template,
};
use koord_scheduling::NumaMask;
use koord_types::device_protocol::GPU_ISOLATION_PROVIDER;

use super::{
    super::{
        fragments::Taken,
        node_views::{NodeView, node_views},
    },
    Settings, milli_cpu,
};

/// The reason with the operand of a model that cannot be shared.
pub(super) const UNSHAREABLE: u16 = u16::MAX;
/// In the operand of other reasons: devices of the kind that is too scarce are unhealthy.
pub(super) const UNHEALTHY: u64 = 2;
/// The same: the node has no GPUs but offers parts of them that a device plugin made.
pub(super) const IN_PARTS: u64 = 4;
/// The same, times the number of reservations with devices, of a pod that uses one or waits: each has too little.
pub(super) const PER_RESERVATION: u64 = 8;
/// What names of such parts begin with.
const PART_OF_GPU: &str = "nvidia.com/mig-";

/// What is looked for on every node.
pub(super) struct PreFilterState {
    pub(super) request: DeviceRequest,
    /// What the pod requires of reservations.
    pub(super) requirement: ReservationRequirement,
    pub(super) milli_cpu: i64,
    pub(super) settings: Arc<Settings>,
    /// Whether it is any GPUs, with nothing else and without a template.
    takes_any_gpus: bool,
}

/// What is looked up once for all nodes of a call.
#[derive(Clone, Copy)]
struct Known<'c> {
    cluster: &'c Cluster,
    devices: Option<&'c Devices>,
    /// Whether no part of any node is kept; of a single node it is found out when that matters.
    has_no_reservations: bool,
}

/// For what devices of a node are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The NUMA nodes on which they are.
    Hint,
    /// Whether there are enough.
    Filter,
    /// How good the node is.
    Score,
    /// Those that the pod gets.
    Reserve,
}

/// How nodes are compared: by their devices on the NUMA nodes of which the pod would get everything.
pub(super) struct Compared {
    pub(super) state: PreFilterState,
    /// The NUMA hints that found them; none without a NUMA policy.
    pub(super) numa_nodes: Option<Box<dyn NodeNumaAffinity>>,
}

impl<'c> Known<'c> {
    fn of_one(cluster: &'c Cluster) -> Self {
        Self { cluster, devices: cluster.state(), has_no_reservations: false }
    }

    fn of_all(cluster: &'c Cluster) -> Self {
        let has_no_reservations = cluster.state::<ReservationCache>().is_none_or(ReservationCache::is_empty)
            && cluster.excluded_pods().next().is_none();
        Self { has_no_reservations, ..Self::of_one(cluster) }
    }

    fn is_unreserved(&self, row: Row) -> bool {
        self.has_no_reservations || is_unreserved(self.cluster, row)
    }
}

impl PreFilterState {
    pub(super) fn new(request: DeviceRequest, template: &Arc<Template>, settings: &Arc<Settings>) -> Self {
        let (requirement, milli_cpu) = (ReservationRequirement::of(template), milli_cpu(template));
        let needs_template = |gpus| GpuTemplates::concern(gpus, &settings.templates_for);
        let takes_any_gpus = !requirement.needs_one && request.any_gpus().is_some_and(|gpus| !needs_template(gpus));
        Self { request, requirement, milli_cpu, settings: Arc::clone(settings), takes_any_gpus }
    }

    /// Asks about the devices of a node in the ways in which the pod may take them; the first answer that is none of a
    /// refusal counts, or the last refusal. None where nothing is known of the node's devices.
    pub(super) fn first<T>(
        &self,
        cluster: &Cluster,
        row: Row,
        (numa_nodes, step): (Option<NumaMask>, Step),
        source: &AllocationSource,
        ask: impl Fn(&Allocator<'_>, &NodeView<'_>) -> Result<T, Refused>,
    ) -> Option<Result<T, Refused>> {
        let devices = cluster.state::<Devices>()?;
        let node = devices.of(row)?;
        let labels = &cluster.node(row)?.labels;
        let gpus = self.request.gpus.as_ref();
        let templates = devices.templates(&self.settings.templates_in);
        let templates = gpus.and_then(|gpus| templates?.needed(gpus, &self.settings.templates_for));
        let compared = if step == Step::Reserve { self.compared(cluster, row) } else { None };
        let scorer = compared.as_ref().unwrap_or(&self.settings.scorer);
        let mut answer = Err(Refused::Devices(self.request.kinds().next()?));
        for view in node_views(cluster, row, node, &self.requirement, source) {
            let allocator = Allocator {
                node: &view.node,
                labels: NodeLabels::of(|name| labels.get(name)),
                request: &self.request,
                scorer: if self.are_alike(step, &view) { &ALIKE } else { scorer },
                templates: templates.as_ref(),
                numa_nodes,
                is_reserving: step == Step::Reserve,
            };
            answer = ask(&allocator, &view);
            if answer.is_ok() {
                break;
            }
        }
        Some(answer)
    }

    /// Whether all devices that have enough are alike, as they are in the original until a node is scored. They are not where it
    /// depends on which of them are taken whether the pod gets everything: hints and filters accept only what Reserve will find.
    fn are_alike(&self, step: Step, view: &NodeView<'_>) -> bool {
        match step {
            Step::Hint | Step::Filter => self.request.joint.is_none() && !view.requires_devices(),
            Step::Score | Step::Reserve => false,
        }
    }

    /// The devices that the pod gets of a node; none where nothing is known of any.
    pub(super) fn allocate(
        &self,
        cluster: &Cluster,
        row: Row,
        at: (Option<NumaMask>, Step),
        source: &AllocationSource,
    ) -> Option<Result<AllocatedDevices, Refused>> {
        self.first(cluster, row, at, source, |allocator, view| view.complete(allocator.allocate(&view.limits)?))
    }

    /// The devices of a node that has only to be asked how many GPUs have enough: neither the pod nor the node cares which of them
    /// it gets, and nothing is kept there.
    fn counted<'c>(&self, known: &Known<'c>, row: Row) -> Option<(&'c NodeDevices, &GpuRequest)> {
        let gpus = self.request.gpus.as_ref().filter(|_| self.takes_any_gpus)?;
        if !known.is_unreserved(row) {
            return None;
        }
        let devices = known.devices?;
        let node = devices.of(row)?;
        let honors_partitions = || match node.partitions {
            Some(_) => node.honors_partitions,
            None => devices.honors_partitions(row),
        };
        (gpus.is_shared || !honors_partitions()).then_some((node, gpus))
    }

    /// Whether the pod gets what it wants of a node; where all GPUs are counted alike, by what it has of each.
    fn check(&self, known: &Known<'_>, row: Row, each: Option<&mut Each<'_>>) -> Result<(), Refusal> {
        let cluster = known.cluster;
        self.check_sharing(cluster, row)?;
        let counted = self.counted(known, row).zip(each).map(|((node, gpus), each)| node.has_any_gpus(gpus, each));
        let found = counted.unwrap_or_else(|| {
            let allocated = self.allocate(cluster, row, (None, Step::Filter), &AllocationSource::Any);
            allocated.map_or(Ok(()), |allocated| allocated.map(drop))
        });
        match found {
            Err(_) if self.is_left_to_reservation(cluster, row) => Ok(()),
            found => found.map_err(|refused| self.refusal(refused, cluster, row)),
        }
    }

    fn refusal(&self, refused: Refused, cluster: &Cluster, row: Row) -> Refusal {
        let reservations = PER_RESERVATION * self.reservations_with(cluster, row) as u64;
        Refusal { operand: reservations | circumstance(refused, cluster, row), ..refused.refusal() }
    }

    /// How many reservations with devices have too little, where the pod uses one or waits.
    pub(super) fn reservations_with(&self, cluster: &Cluster, row: Row) -> usize {
        if self.requirement.needs_one { reservations_with::<AllocatedDevices>(cluster, row) } else { 0 }
    }

    /// Whether the plugin Reservation, which runs later, reports what is lacking.
    fn is_left_to_reservation(&self, cluster: &Cluster, row: Row) -> bool {
        !self.requirement.needs_one && are_too_small(cluster, row, &self.requirement)
    }

    /// With LeastFragmented: how GPUs of a node are compared for a share of one.
    fn compared(&self, cluster: &Cluster, row: Row) -> Option<DeviceScorer> {
        let scorer = Some(&self.settings.scorer).filter(|scorer| scorer.is_least_fragmented())?;
        let by_gpu = Taken::of(self.milli_cpu, self.request.gpus.as_ref()).by_gpu(cluster, row);
        Some(scorer.with(by_gpu))
    }

    /// Whether GPUs of this node can be shared as the pod requests.
    #[inline]
    fn check_sharing(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let gpus = self.request.gpus.as_ref().filter(|gpus| gpus.is_shared);
        let gpus = gpus.filter(|gpus| gpus.isolation.is_some() || !self.settings.unshareable.is_empty());
        let node = gpus.and_then(|gpus| Some((gpus, cluster.node(row)?)));
        node.map_or(Ok(()), |(gpus, node)| self.check_sharing_of(gpus, node))
    }

    /// The same, where that depends on the node.
    fn check_sharing_of(&self, gpus: &GpuRequest, node: &Node) -> Result<(), Refusal> {
        let isolates = |provider: &String| node.labels.get(GPU_ISOLATION_PROVIDER.name()) == Some(provider);
        if gpus.isolation.as_ref().is_some_and(|provider| !isolates(provider)) {
            return Err(Refused::Isolation.refusal());
        }
        let node_labels = NodeLabels::of(|name| node.labels.get(name));
        let is_own = |(vendor, model): &(String, String)| vendor == node_labels.vendor && model == node_labels.model;
        let listed = (0..).zip(&self.settings.unshareable).find(|(_, model)| is_own(model));
        match listed {
            Some((index, _)) => Err(Refusal { reason: UNSHAREABLE, resolvable: false, operand: index }),
            None => Ok(()),
        }
    }
}

impl NodeFilter for PreFilterState {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        self.check(&Known::of_one(cluster), row, self.request.gpus.as_ref().map(Each::of).as_mut())
    }

    fn filter_rows(&self, cluster: &Cluster, rows: &mut Vec<Row>, refused: &mut dyn FnMut(Row, Refusal)) {
        let (known, mut each) = (Known::of_all(cluster), self.request.gpus.as_ref().map(Each::of));
        rows.retain(|row| self.check(&known, *row, each.as_mut()).map_err(|refusal| refused(*row, refusal)).is_ok());
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, alike: usize) -> Option<Result<(), Refusal>> {
        if let Err(refusal) = self.check_sharing(cluster, row) {
            return Some(Err(refusal));
        }
        let known = Known::of_one(cluster);
        let found = match (known.devices.and_then(|devices| devices.of(row)), self.counted(&known, row)) {
            (None, _) => Ok(()),
            (Some(_), counted) => counted.and_then(|(node, gpus)| node.has_any_gpus_after(gpus, alike))?,
        };
        Some(found.map_err(|refused| self.refusal(refused, cluster, row)))
    }
}

/// What a node's devices are in the way by, beside being in use.
fn circumstance(refused: Refused, cluster: &Cluster, row: Row) -> u64 {
    let (Some(kind), Some(devices)) = (refused.lacks(), cluster.state::<Devices>().and_then(|all| all.of(row))) else {
        return 0;
    };
    let is_in_parts = || parts_of_gpus(cluster, row).next().is_some();
    match refused {
        _ if devices.has_unhealthy(kind) => UNHEALTHY,
        Refused::NoDevices(Kind::Gpu) if is_in_parts() => IN_PARTS,
        _ => 0,
    }
}

/// The resources by which a node offers parts of GPUs.
fn parts_of_gpus(cluster: &Cluster, row: Row) -> impl Iterator<Item = &str> {
    let offered = cluster.node(row).into_iter().flat_map(|node| node.allocatable.iter());
    offered.map(|(name, _)| name).filter(|name| name.starts_with(PART_OF_GPU))
}

/// What is known of such a refusal.
pub(super) fn details(refusal: &Refusal, cluster: &Cluster, row: Row) -> Operands {
    let lacks = Refused::of(refusal.reason).and_then(Refused::lacks);
    let joined = |names: &mut dyn Iterator<Item = &str>| names.collect::<Vec<_>>().join(" ");
    match (lacks, cluster.state::<Devices>().and_then(|all| all.of(row))) {
        (Some(kind), Some(devices)) if refusal.operand & UNHEALTHY != 0 => {
            vec![("uuid", joined(&mut devices.unhealthy(kind)))]
        }
        (Some(_), _) if refusal.operand & IN_PARTS != 0 => vec![("mig", joined(&mut parts_of_gpus(cluster, row)))],
        _ => Operands::new(),
    }
}

impl NodeNumaHints for PreFilterState {
    fn hints(
        &self,
        cluster: &Cluster,
        row: Row,
        nodes_max: u32,
        source: &AllocationSource,
    ) -> Result<NumaHints, Vec<Reason>> {
        if !self.settings.is_numa_aligned {
            return Ok(NumaHints::default());
        }
        let hints = |allocator: &Allocator<'_>, view: &NodeView<'_>| numa_hints(allocator, nodes_max, &view.limits);
        let Some(found) = self.first(cluster, row, (None, Step::Hint), source, hints) else {
            return Ok(NumaHints::default());
        };
        let (kinds, hints) = found.map_err(|refused| refused.within(self.reservations_with(cluster, row)))?;
        Ok(NumaHints { resources: kinds.iter().map(ToString::to_string).collect(), hints })
    }

    fn verify(
        &self,
        cluster: &Cluster,
        row: Row,
        affinity: Option<NumaMask>,
        source: &AllocationSource,
    ) -> Result<(), Vec<Reason>> {
        let affinity = affinity.filter(|_| self.settings.is_numa_aligned);
        let allocated = self.allocate(cluster, row, (affinity, Step::Filter), source);
        allocated.map_or(Ok(()), |allocated| allocated.map(drop)).map_err(|refused| vec![refused.reason()])
    }
}

impl SourceFilter for PreFilterState {
    fn filter_source(&self, cluster: &Cluster, row: Row, source: &AllocationSource) -> bool {
        self.allocate(cluster, row, (None, Step::Filter), source).is_none_or(|allocated| allocated.is_ok())
    }

    fn score_source(&self, cluster: &Cluster, row: Row, source: &AllocationSource) -> Option<i64> {
        let score = |allocator: &Allocator<'_>, view: &NodeView<'_>| Ok(allocator.score(&view.limits));
        Some(self.first(cluster, row, (None, Step::Score), source, score).and_then(Result::ok).unwrap_or(0))
    }
}

impl Compared {
    /// The score of a node. Where only the sums of its GPUs count, they are often those of the node before: `last` has these with their
    /// score.
    fn rate<'c>(&self, known: &Known<'c>, row: Row, last: &mut Option<(&'c Gpus, i64)>) -> i64 {
        let (Self { state, numa_nodes }, cluster) = (self, known.cluster);
        let score = |allocator: &Allocator<'_>, view: &NodeView<'_>| {
            // A filter has found out already that one of the ways will do.
            if view.limits != DeviceLimits::default() {
                allocator.allocate(&view.limits)?;
            }
            Ok(allocator.score(&view.limits))
        };
        let nodes = numa_nodes.as_ref().and_then(|numa_nodes| numa_nodes.affinity(cluster, row));
        if let (None, Some((node, gpus))) = (nodes, state.counted(known, row)) {
            let is_same =
                |(other, _): &(&Gpus, i64)| (&other.total, &other.free) == (&node.gpus.total, &node.gpus.free);
            let score = || state.settings.scorer.score(&gpus.each, &node.gpus.total, &node.gpus.free);
            if !last.as_ref().is_some_and(is_same) {
                *last = Some((&node.gpus, score()));
            }
            return last.map_or(0, |(_, score)| score);
        }
        state.first(cluster, row, (nodes, Step::Score), &AllocationSource::Any, score).and_then(Result::ok).unwrap_or(0)
    }
}

impl NodeScore for Compared {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        self.rate(&Known::of_one(cluster), row, &mut None)
    }

    fn score_rows(&self, cluster: &Cluster, rows: &[Row]) -> Vec<i64> {
        let (known, mut last) = (Known::of_all(cluster), None);
        rows.iter().map(|row| self.rate(&known, *row, &mut last)).collect()
    }

    fn scale(&self) -> Option<Scale> {
        Some(highest_is_best)
    }

    fn is_local(&self) -> bool {
        false
    }
}
