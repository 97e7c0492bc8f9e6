//! The plugin.

mod pre_filter_state;
mod vendor;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use koord_config::scheduler::{DeviceShareArgs, ScoringType};
use koord_resource::controller::ResourceKind;
use koord_scheduler_allocation::{
    devices::{
        allocation::AllocatedDevices,
        amounts::DeviceResource,
        combination::wants_devices,
        refusal::Refused,
        request::{DeviceRequest, GpuRequest, InvalidDevices},
        score::{DeviceScorer, Preference},
        state::Devices,
        template::GpuTemplates,
    },
    source,
};
use koord_scheduler_framework::{
    AllocationRestore, Audit, DoubleAllocation, EnqueueExtensions, FeatureGates, Filter, NodeFilter, NodeNumaHints,
    NodeScore, NumaHintProvider, Operands, Patch, Plugin, PluginState, PreBind, PreBindProgress, PreFilter,
    PreparedFilter, Query, Reason, ReasonCode, Refusal, Registration, Rejection, Request, ReservationFilter, Reserve,
    ReservedNumaAffinity, SchedulingSignature, Score, ServiceEndpoint, ServiceError, SignatureFields, SourceFilter,
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    hold::{Holds, Resized},
    pod::{Pod, Template},
};
use koord_types::{
    device::Device as ApiDevice,
    device_protocol::{DEVICE_ALLOCATED, DeviceAllocations, GPU_ISOLATION_PROVIDER},
    protocol::Text,
    reservation_protocol::{RESERVATION_IGNORED, RESERVATION_RESIZE_ALLOCATABLE, ReservationResizeAllocatable},
};
use serde_json::Value;

use self::pre_filter_state::{Compared, IN_PARTS, PER_RESERVATION, PreFilterState, Step, UNHEALTHY, UNSHAREABLE};
use super::{
    fragments::{Fragments, Taken},
    shown,
};

/// Gives pods GPUs, network cards and FPGAs, or shares of them. Nodes of whose devices nothing is known, neither by a report nor
/// by their pods, are left to the amounts that they offer.
#[derive(Clone, Debug)]
pub struct DeviceShare(Arc<Settings>);

#[derive(Debug)]
struct Settings {
    scorer: DeviceScorer,
    /// Whether devices are near the CPUs of a pod.
    is_numa_aligned: bool,
    /// A share of a GPU with one of these resources has a template.
    templates_for: Vec<DeviceResource>,
    templates_in: String,
    /// Vendors and models of GPUs that cannot be shared.
    unshareable: Vec<(String, String)>,
    /// Whether something is written for the device plugins of vendors.
    adapts: bool,
    /// Whether a Reservation keeps the devices that it was given, and not what its template requests.
    resizes: bool,
}

impl Settings {
    /// Whether a share of a GPU must have a template, and no model has one for it.
    fn lacks_template(&self, gpus: &GpuRequest, cluster: &Cluster) -> bool {
        let templates = cluster.state::<Devices>().and_then(|devices| devices.templates(&self.templates_in));
        GpuTemplates::concern(gpus, &self.templates_for)
            && templates
                .and_then(|templates| templates.needed(gpus, &self.templates_for))
                .is_none_or(|known| known.is_empty())
    }
}

impl Default for DeviceShare {
    fn default() -> Self {
        Self::new(&DeviceShareArgs::default())
    }
}

impl DeviceShare {
    /// With these arguments.
    pub fn new(args: &DeviceShareArgs) -> Self {
        Self::with_gates(args, &|_| false)
    }

    /// With these arguments, under these feature gates.
    pub fn with_gates(args: &DeviceShareArgs, gates: FeatureGates<'_>) -> Self {
        let strategy = &args.scoring_strategy;
        let preference = match strategy.type_ {
            ScoringType::MostAllocated => Preference::MostAllocated,
            ScoringType::LeastFragmented => Preference::LeastFragmented,
            _ => Preference::LeastAllocated,
        };
        let weights = strategy.resources.iter().map(|resource| (resource.name.as_str(), resource.weight.0));
        let templates = &args.gpu_shared_resource_templates;
        let unshareable = args.gpu_share_unsupported_models.iter();
        Self(Arc::new(Settings {
            scorer: DeviceScorer::new(preference, weights),
            is_numa_aligned: !args.disable_device_numa_topology_alignment,
            templates_for: templates.matched_resources.iter().filter_map(|name| DeviceResource::of(name)).collect(),
            templates_in: format!("{}/{}", templates.config_map_namespace, templates.config_map_name),
            unshareable: unshareable.map(|model| (model.vendor.clone(), model.model.clone())).collect(),
            adapts: gates("DevicePluginAdaption"),
            resizes: gates("ResizePod"),
        }))
    }

    fn pre_filter_state(&self, template: &Arc<Template>) -> Option<PreFilterState> {
        let request = read(template).ok().flatten()?;
        Some(PreFilterState::new(request, template, &self.0))
    }
}

/// The devices that a pod gets, as its annotation says.
fn allocations(placed: &Placed, cluster: &Cluster) -> Option<DeviceAllocations> {
    let node = cluster.state::<Devices>()?.of(placed.row)?;
    placed.holds.get::<AllocatedDevices>().map(|allocation| allocation.write(node))
}

impl Plugin for DeviceShare {
    fn name(&self) -> &'static str {
        "DeviceShare"
    }

    fn register(self: Arc<Self>) -> Registration {
        let templates_in = self.0.templates_in.rsplit('/').next().unwrap_or_default();
        Registration::of(&self)
            .reads(const { &[ResourceKind::typed::<ApiDevice>(), ResourceKind::typed::<ConfigMap>()] })
            .reads_only(vec![(ResourceKind::typed::<ConfigMap>(), templates_in.to_owned())])
            .enqueue_extensions(&self)
            .pre_filter(&self)
            .filter(&self)
            .score(&self)
            .numa_hint_provider(&self)
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

impl EnqueueExtensions for DeviceShare {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_LABELS | Events::POD_REMOVED | Events::POD_CHANGED | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, cluster: &Cluster) -> bool {
        match event {
            Event::NodeAdded(node) | Event::NodeChanged { new: node, .. } => {
                let (pre_filter_state, row) = (self.pre_filter_state(&pod.template), cluster.row(&node.name));
                pre_filter_state
                    .zip(row)
                    .is_none_or(|(pre_filter_state, row)| pre_filter_state.filter(cluster, row).is_ok())
            }
            Event::PodRemoved(gone) => {
                gone.given.get(DEVICE_ALLOCATED.name()).is_some() || wants_devices(&gone.template.requests)
            }
            Event::Object(change) => change.of::<ApiDevice>().is_some() || change.of::<ConfigMap>().is_some(),
            _ => true,
        }
    }
}

impl PreFilter for DeviceShare {
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        let invalid = |text: String, annotation: Option<&'static str>| {
            let annotation = annotation.map(|name| ("annotation", name.to_owned()));
            let reason = ReasonCode::DeviceRequestInvalid.reason(text);
            Rejection::unresolvable(reason.with_further(annotation.as_slice()))
        };
        let devices = read(request.template());
        // It is read after the requests and before all else that a pod says of devices.
        let left = request.pod.given.get(DEVICE_ALLOCATED.name()).map(|text| DEVICE_ALLOCATED.read(text));
        if let Some(Err(error)) = left
            && !matches!(devices, Err(InvalidDevices::Request(_)))
        {
            return Err(invalid(error.reason, Some(error.key)));
        }
        let devices = devices.map_err(|error| invalid(error.to_string(), error.annotation()))?;
        let lacks_template = |gpus: &GpuRequest| self.0.lacks_template(gpus, cluster);
        if devices.and_then(|devices| devices.gpus).as_ref().is_some_and(lacks_template) {
            return Err(Rejection::unresolvable(Refused::Template.reason()));
        }
        Ok(())
    }
}

impl Filter for DeviceShare {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        self.pre_filter_state(request.template())
            .map_or(PreparedFilter::Skip, |pre_filter_state| PreparedFilter::Nodes(Box::new(pre_filter_state)))
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        if refusal.reason == UNSHAREABLE {
            let model = usize::try_from(refusal.operand).ok().and_then(|index| self.0.unshareable.get(index));
            let words = |(vendor, model): &(String, String)| {
                let words = format!("model {model:?} of vendor {vendor:?} does not support GPU Share");
                ReasonCode::DeviceNotShareable.reason(words).with("model", model)
            };
            return model.map(words).into_iter().collect();
        }
        let reservations = usize::try_from(refusal.operand / PER_RESERVATION).unwrap_or(0);
        let reasons = Refused::of(refusal.reason).map(|refused| refused.within(reservations));
        let coded = |reason: Reason| match refusal.operand {
            operand if operand & UNHEALTHY != 0 => Reason { code: ReasonCode::DeviceUnhealthy, ..reason },
            operand if operand & IN_PARTS != 0 => Reason { code: ReasonCode::DeviceUnmanaged, ..reason },
            _ => reason,
        };
        reasons.unwrap_or_default().into_iter().map(coded).collect()
    }

    fn details(&self, refusal: &Refusal, _: &Request<'_>, cluster: &Cluster, row: Row) -> Operands {
        if refusal.reason == UNSHAREABLE { Operands::new() } else { pre_filter_state::details(refusal, cluster, row) }
    }
}

impl Score for DeviceShare {
    fn prepare_score(&self, request: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
        if self.0.scorer.is_least_fragmented() {
            let taken = taken(request.template());
            return if taken.is_nothing() { None } else { Some(Box::new(Fragments::of(taken))) };
        }
        let pre_filter_state = self.pre_filter_state(request.template())?;
        let mut managers = request.each(|plugin| &plugin.numa_topology_manager);
        let manager = managers.next().filter(|_| self.0.is_numa_aligned);
        let numa_nodes = manager.and_then(|manager| manager.prepare_numa_affinity(request));
        Some(Box::new(Compared { state: pre_filter_state, numa_nodes }))
    }
}

impl NumaHintProvider for DeviceShare {
    fn prepare_numa_hints(&self, request: &Request<'_>) -> Option<Box<dyn NodeNumaHints>> {
        self.pre_filter_state(request.template())
            .map(|pre_filter_state| -> Box<dyn NodeNumaHints> { Box::new(pre_filter_state) })
    }
}

impl ReservationFilter for DeviceShare {
    fn prepare_reservation_filter(&self, request: &Request<'_>) -> Option<Box<dyn SourceFilter>> {
        self.pre_filter_state(request.template())
            .map(|pre_filter_state| -> Box<dyn SourceFilter> { Box::new(pre_filter_state) })
    }
}

impl Reserve for DeviceShare {
    fn reserve(&self, request: &Request<'_>, cluster: &Cluster, row: Row, holds: &mut Holds) -> Result<(), Rejection> {
        let Some(pre_filter_state) = self.pre_filter_state(request.template()) else { return Ok(()) };
        let chosen = holds.get::<ReservedNumaAffinity>().filter(|_| self.0.is_numa_aligned).map(|chosen| chosen.0);
        match pre_filter_state.allocate(
            cluster,
            row,
            (chosen, Step::Reserve),
            &source(holds, &pre_filter_state.requirement),
        ) {
            Some(Ok(allocation)) => {
                if self.0.resizes && request.pod.is_reservation() {
                    holds.set(Resized(allocation.total().list()));
                }
                holds.set(allocation);
            }
            Some(Err(refused)) => return Err(Rejection::unschedulable(refused.reason())),
            None => {}
        }
        Ok(())
    }
}

impl PreBind for DeviceShare {
    fn pre_bind(&self, _: &Request<'_>, placed: &Placed, cluster: &Cluster, patch: &mut Patch) {
        if let Some(given) = placed.holds.get::<Resized>() {
            let key = RESERVATION_RESIZE_ALLOCATABLE;
            let known = placed.pod.template.annotations.get(key.name()).and_then(|text| key.read(text).ok());
            let resources = given.over(&known.unwrap_or_default().resources);
            patch.annotate(key.name(), ReservationResizeAllocatable { resources }.write());
        }
        if let Some(allocations) = allocations(placed, cluster) {
            patch.annotate(DEVICE_ALLOCATED.name(), allocations.write());
            self.adapt(&allocations, placed, cluster, patch);
        }
    }

    fn pre_bind_progress(&self, placed: &Placed, cluster: &Cluster) -> PreBindProgress {
        allocations(placed, cluster)
            .map_or(PreBindProgress::Done, |allocations| self.lock(&allocations, placed, cluster))
    }
}

impl AllocationRestore for DeviceShare {
    /// QUIRK: what cannot be read changes nothing, so that its devices are free only after a restart
    /// (`devices_that_a_pod_no_longer_names_are_free`).
    fn restore_allocation(&self, pod: &Pod, holds: &mut Holds) {
        let written = pod.given.get(DEVICE_ALLOCATED.name()).and_then(|text| DEVICE_ALLOCATED.read(text).ok());
        if let Some(written) = written {
            holds.set(AllocatedDevices::read(&written));
        }
    }

    /// A pod has no devices any more that its annotation, which is gone, said.
    fn update_allocation(&self, was: &Placed, pod: &Pod, holds: &mut Holds) {
        let is_written = |pod: &Pod| pod.given.get(DEVICE_ALLOCATED.name()).is_some();
        if is_written(&was.pod) && !is_written(pod) {
            holds.remove::<AllocatedDevices>();
        }
    }
}

impl PluginState for DeviceShare {
    fn state(&self) -> Box<dyn State> {
        Box::new(Devices::new(self.0.templates_in.clone()))
    }
}

impl ServiceEndpoint for DeviceShare {
    fn paths(&self) -> &'static [&'static str] {
        &["nodeDeviceSummaries", "nodeDeviceSummaries/:nodeName"]
    }

    fn serve(&self, path: &[&str], _: &Query, cluster: &Cluster) -> Result<Value, ServiceError> {
        let devices = cluster.state::<Devices>().ok_or(ServiceError::UnknownPath)?;
        match *path {
            ["nodeDeviceSummaries"] => Ok(shown::all(devices, cluster)),
            ["nodeDeviceSummaries", node] => {
                let summary = cluster.row(node).and_then(|row| shown::on_node(devices, cluster, row));
                summary.ok_or_else(|| ServiceError::NotFound(format!("cannot find node {node}")))
            }
            _ => Err(ServiceError::UnknownPath),
        }
    }
}

impl Audit for DeviceShare {
    fn double_allocations(&self, cluster: &Cluster, row: Option<Row>) -> Vec<DoubleAllocation> {
        row.map(|row| koord_scheduler_allocation::devices::double_allocations(cluster, row)).unwrap_or_default()
    }
}

impl SchedulingSignature for DeviceShare {
    fn signature(&self) -> SignatureFields {
        const { SignatureFields::Labels(&[GPU_ISOLATION_PROVIDER.name(), RESERVATION_IGNORED.name()]) }
    }

    fn score_epoch(&self, cluster: &Cluster) -> u64 {
        let devices = cluster.state::<Devices>().filter(|_| self.0.scorer.is_least_fragmented());
        devices.map_or(0, |devices| devices.mix.epoch())
    }
}

fn read(template: &Template) -> Result<Option<DeviceRequest>, InvalidDevices> {
    DeviceRequest::read(&template.requests, |name| template.labels.get(name), |name| template.annotations.get(name))
}

/// What pods of a template take of a node.
fn taken(template: &Template) -> Taken {
    let request = read(template).ok().flatten();
    Taken::of(milli_cpu(template), request.as_ref().and_then(|request| request.gpus.as_ref()))
}

fn milli_cpu(template: &Template) -> i64 {
    template.requests.amount("cpu").milli_value()
}

#[cfg(test)]
mod tests;
