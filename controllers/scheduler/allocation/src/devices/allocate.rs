//! The devices of a node that a pod gets (`spec/scheduler.md` 3F.4).

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use koord_scheduling::NumaMask;
use koord_types::{
    device_protocol::DeviceAllocateStrategy,
    node_annotations::{GPU_MODEL, GPU_PARTITION_POLICY, GPU_VENDOR, GpuPartitionPolicy},
};

use super::{
    allocation::{AllocatedDevices, Share},
    amounts::{DeviceAmounts, DeviceResource},
    by_default::{self, DefaultRequest},
    combination::whole_devices,
    node::NodeDevices,
    partition,
    refusal::Refused,
    request::{DeviceRequest, GpuRequest, Joint, Kind},
    scope,
    score::DeviceScorer,
    template::TemplateNames,
    view::{self, Seen},
};

/// Looks for devices of a node for a pod.
#[derive(Clone, Copy, Debug)]
pub struct Allocator<'a> {
    pub node: &'a NodeDevices,
    /// What the node says of its GPUs.
    pub labels: NodeLabels<'a>,
    /// What the pod requests.
    pub request: &'a DeviceRequest,
    /// How devices are compared.
    pub scorer: &'a DeviceScorer,
    /// The templates by which a GPU can be divided as the pod requests; none where no template is needed.
    pub templates: Option<&'a TemplateNames>,
    /// The NUMA nodes whose devices may be taken; none for all of them.
    pub numa_nodes: Option<NumaMask>,
    /// Whether the pod stays on this node. Before that, devices that are planned in pairs with GPUs are not looked for.
    pub is_reserving: bool,
}

/// What a node says of its GPUs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeLabels<'a> {
    /// Who made them.
    pub vendor: &'a str,
    pub model: &'a str,
    /// Whether they are given out in partitions only.
    pub honors_partitions: bool,
}

/// Which devices come first or may be taken at all. By default, all are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceLimits {
    /// The devices that come first.
    pub preferred: BTreeSet<(Kind, i32)>,
    /// At most so much may be taken of the devices of each kind that is named, and nothing of others of that kind.
    pub only: Option<BTreeMap<(Kind, i32), DeviceAmounts>>,
}

/// Devices of one kind that are looked for.
#[derive(Clone, Copy, Debug)]
struct Need {
    kind: Kind,
    each: DeviceAmounts,
    /// How many.
    count: usize,
}

impl<'a> NodeLabels<'a> {
    /// What the labels of a node say.
    pub fn of(label: impl Fn(&str) -> Option<&'a str>) -> Self {
        let text = |name| label(name).unwrap_or_default();
        Self {
            vendor: text(GPU_VENDOR.name()),
            model: text(GPU_MODEL.name()),
            honors_partitions: text(GPU_PARTITION_POLICY.name()) == GpuPartitionPolicy::Honor.as_str(),
        }
    }
}

impl Allocator<'_> {
    /// The devices that the pod would get.
    pub fn allocate(&self, limits: &DeviceLimits) -> Result<AllocatedDevices, Refused> {
        let needs = self.needs()?;
        let mut allocation = AllocatedDevices::default();
        if let Some(joint) = self.request.joint.as_ref().filter(|_| needs.len() > 1) {
            self.jointly(joint, &needs, limits, &mut allocation)?;
        }
        for need in &needs {
            if let Entry::Vacant(vacant) = allocation.0.entry(need.kind) {
                vacant.insert(self.devices(need, need.count, need.count, None, limits)?);
            }
        }
        Ok(allocation)
    }

    /// The score of the node: the sum over the kinds of devices.
    ///
    /// QUIRK: of several devices of a kind, one counts as requested (`nodes_are_compared_by_what_one_device_takes`).
    pub fn score(&self, limits: &DeviceLimits) -> i64 {
        let needs = self.needs().unwrap_or_default();
        needs.iter().map(|need| self.scorer.score_all(&need.each, &self.view(need.kind, limits))).sum()
    }

    /// How many devices of each kind are looked for.
    pub fn counts(&self) -> Result<Vec<(Kind, usize)>, Refused> {
        Ok(self.needs()?.iter().map(|need| (need.kind, need.count)).collect())
    }

    /// The devices of a kind that the pod may have.
    pub fn view(&self, kind: Kind, limits: &DeviceLimits) -> Vec<Seen<'_>> {
        view::of(self.node, kind, self.request, self.numa_nodes, limits)
    }

    fn needs(&self) -> Result<Vec<Need>, Refused> {
        let kinds = self.request.kinds().filter(|kind| !self.is_left_for_later(*kind));
        kinds.map(|kind| self.need(kind)).collect()
    }

    fn is_left_for_later(&self, kind: Kind) -> bool {
        let has_whole_gpus = self.request.gpus.as_ref().is_some_and(|gpus| !gpus.is_shared);
        let is_secondary = self.request.joint.as_ref().is_some_and(|joint| joint.primary != kind);
        !self.is_reserving && self.node.is_well_planned && has_whole_gpus && is_secondary
    }

    fn need(&self, kind: Kind) -> Result<Need, Refused> {
        if self.node.of(kind).next().is_none() {
            return Err(Refused::NoDevices(kind));
        }
        let reported = || self.node.of(kind).filter(|(_, device)| device.is_reported);
        let need = match &self.request.gpus {
            Some(gpus) if kind == Kind::Gpu => Need { kind, each: gpus.each, count: gpus.count },
            _ => self.other_need(kind)?,
        };
        let wants_functions = self.request.hints.get(&kind).is_some_and(|hint| hint.virtual_functions.is_some());
        if wants_functions && reported().all(|(_, device)| device.virtual_functions.is_empty()) {
            return Err(Refused::NoVirtualFunctions(kind));
        }
        if reported().next().is_none() {
            // QUIRK: devices that pods have are there though they are reported no more, with nothing left of them
            // (`devices_that_are_reported_no_more_count_while_pods_have_them`).
            return Err(Refused::Devices(kind));
        }
        Ok(need)
    }

    /// How many devices that are no GPUs, and how much of each.
    fn other_need(&self, kind: Kind) -> Result<Need, Refused> {
        let percent = self.request.others.get(&kind).copied().unwrap_or(0);
        let resource = if kind == Kind::Fpga { DeviceResource::Fpga } else { DeviceResource::Rdma };
        let of = |percent, count| Need { kind, each: [(resource, percent)].into_iter().collect(), count };
        if let Some(count) = whole_devices(percent) {
            return Ok(of(100, count));
        }
        let hint = self.request.hints.get(&kind);
        Ok(match hint.and_then(|hint| hint.strategy.as_ref()) {
            Some(DeviceAllocateStrategy::ApplyForAll) => {
                let selector = hint.and_then(|hint| hint.selector.as_ref());
                let devices = self.node.of(kind).filter(|(_, device)| {
                    let selects = |selector: &koord_scheduling::Selector| {
                        selector.selects(|key| device.labels.get(key).map(String::as_str))
                    };
                    device.is_reported && selector.is_none_or(selects)
                });
                match devices.count() {
                    0 => return Err(Refused::NoDevices(kind)),
                    count => of(percent, count),
                }
            }
            Some(DeviceAllocateStrategy::RequestsAsCount) => {
                let is_exclusive = hint.is_some_and(|hint| hint.is_exclusive);
                of(if is_exclusive { 100 } else { 1 }, usize::try_from(percent).unwrap_or(usize::MAX))
            }
            _ => of(percent, 1),
        })
    }

    /// Devices near each other: those of the first kind, and those of the others on their PCIe switches.
    fn jointly(
        &self,
        joint: &Joint,
        needs: &[Need],
        limits: &DeviceLimits,
        allocation: &mut AllocatedDevices,
    ) -> Result<(), Refused> {
        let find = |kind| needs.iter().find(|need| need.kind == kind);
        let Some(primary) = find(joint.primary) else { return Ok(()) };
        let shares = self.devices(primary, primary.count, primary.count, None, limits)?;
        let switches = self.switches(primary.kind, &shares);
        allocation.0.insert(primary.kind, shares);
        let secondary: Vec<&Need> = joint.secondary.iter().filter_map(|kind| find(*kind)).collect();
        for need in &secondary {
            let least = if joint.is_same_pcie { need.count.max(switches.len()) } else { need.count };
            let shares = self.devices(need, least, least.max(switches.len()), Some(&switches), limits)?;
            allocation.0.insert(need.kind, shares);
        }
        // Asked of all kinds in the end: that there are too few devices of one of them is said first.
        let mut kinds = secondary.iter().map(|need| need.kind);
        let are_near = kinds.all(|kind| self.switches(kind, allocation.of(kind)) == switches);
        if joint.is_same_pcie && !are_near { Err(Refused::Joint) } else { Ok(()) }
    }

    /// The PCIe switches of devices.
    fn switches(&self, kind: Kind, shares: &[Share]) -> BTreeSet<String> {
        let places = shares.iter().filter_map(|share| self.node.get(kind, share.minor)?.place.as_ref());
        places.map(|place| place.pcie.clone()).collect()
    }

    fn devices(
        &self,
        need: &Need,
        least: usize,
        most: usize,
        switches: Option<&BTreeSet<String>>,
        limits: &DeviceLimits,
    ) -> Result<Vec<Share>, Refused> {
        let devices = self.view(need.kind, limits);
        let default_request = DefaultRequest {
            kind: need.kind,
            each: &need.each,
            least,
            most,
            hint: self.request.hints.get(&need.kind),
            switches,
            preferred: &limits.preferred,
        };
        match &self.request.gpus {
            Some(gpus) if need.kind == Kind::Gpu => self.gpus(gpus, &default_request, &devices),
            _ => by_default::allocate(&default_request, &devices, self.scorer),
        }
    }

    fn gpus(
        &self,
        request: &GpuRequest,
        default_request: &DefaultRequest<'_>,
        gpus: &[Seen<'_>],
    ) -> Result<Vec<Share>, Refused> {
        let used = self.used_gpus(gpus);
        if let Some(templates) = self.templates {
            let mut names = templates.of(self.labels.vendor, self.labels.model);
            let first = names.next().ok_or(Refused::Template)?;
            if names.next().is_none() {
                let mut shares = self.gpus_anywhere(request, default_request, gpus, &used)?;
                for share in &mut shares {
                    share.template = Some(first.to_owned());
                }
                return Ok(shares);
            }
        }
        match partition::allocate(self.node, &self.labels, request, gpus, &used)? {
            Some(shares) => Ok(shares),
            None => self.gpus_anywhere(request, default_request, gpus, &used),
        }
    }

    /// GPUs near each other, or one by one where the node does not say where they are and the pod does not care.
    fn gpus_anywhere(
        &self,
        request: &GpuRequest,
        default_request: &DefaultRequest<'_>,
        gpus: &[Seen<'_>],
        used: &[i32],
    ) -> Result<Vec<Share>, Refused> {
        match scope::allocate(self.node.scopes.as_ref(), request, gpus, used, self.scorer) {
            Err(Refused::NoTopology | Refused::MultiShared) if request.scope_level.is_none() => {
                by_default::allocate(&DefaultRequest { switches: None, ..*default_request }, gpus, self.scorer)
            }
            found => found,
        }
    }

    /// The GPUs of which others have a part, also those that the pod may not have. Of one that is unhealthy that does not count.
    fn used_gpus(&self, gpus: &[Seen<'_>]) -> Vec<i32> {
        let is_used = |(minor, device): (i32, &super::node::Device)| {
            let seen = gpus.iter().find(|seen| seen.minor == minor);
            seen.map_or(!device.used.is_zero(), |seen| seen.is_used && seen.has_anything()).then_some(minor)
        };
        self.node.of(Kind::Gpu).filter_map(is_used).collect()
    }
}

#[cfg(test)]
mod tests;
