//! What a pod says of the devices that it requests.

use std::{collections::BTreeMap, fmt};

use koord_resource::{Quantity, ResourceList};
use koord_scheduling::Selector;
use koord_types::{
    device::DeviceType,
    device_protocol::{
        DEVICE_ALLOCATE_HINT, DEVICE_JOINT_ALLOCATE, DeviceAllocateHints, DeviceAllocateStrategy,
        DeviceExclusivePolicy, DeviceHint as ApiHint, DeviceJointScope, GPU_ISOLATION_PROVIDER, GPU_PARTITION_SPEC,
    },
    protocol::{Key, ProtocolError, Text},
};

use super::{
    amounts::{DeviceAmounts, DeviceResource},
    combination::{self, InvalidRequest},
};

/// A kind of devices that pods request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Graphics processors and other accelerators.
    Gpu,
    /// Network cards with remote direct memory access.
    Rdma,
    /// Field-programmable gate arrays.
    Fpga,
}

/// What a pod says of the devices that it requests.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRequest {
    pub gpus: Option<GpuRequest>,
    /// How much of other devices, by kind, in percent.
    pub others: BTreeMap<Kind, i64>,
    /// Which devices, by kind.
    pub hints: BTreeMap<Kind, DeviceHint>,
    /// Devices that are near each other.
    pub joint: Option<Joint>,
}

/// The GPUs that a pod requests.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuRequest {
    pub each: DeviceAmounts,
    /// How many.
    pub count: usize,
    /// Whether others may have the rest of them.
    pub is_shared: bool,
    /// How they are kept apart from those who have the rest.
    pub isolation: Option<String>,
    /// The partition that they are to be.
    pub partition: Option<PartitionRequest>,
    /// How near each other they must be, from 1, on one node, to 4, one device; none where that does not matter.
    pub scope_level: Option<u8>,
}

/// The partition that a pod requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionRequest {
    /// Whether it must be one of those that are taken first.
    pub is_restricted: bool,
    /// The least bandwidth between its GPUs.
    pub bandwidth: Option<Quantity>,
}

/// Which devices of one kind a pod requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceHint {
    /// The devices that may be taken.
    pub selector: Option<Selector>,
    /// The pod requests virtual functions, and these may be taken.
    pub virtual_functions: Option<Selector>,
    /// How many devices.
    pub strategy: Option<DeviceAllocateStrategy>,
    /// Whether they are allocated as a whole.
    pub is_exclusive: bool,
}

/// Devices of several kinds that are near each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joint {
    /// The kind that is chosen first.
    pub primary: Kind,
    /// The kinds that are chosen near it.
    pub secondary: Vec<Kind>,
    /// Whether all must be on the same PCIe switches.
    pub is_same_pcie: bool,
}

/// Why the device request of a pod is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDevices {
    /// Its requests make no sense.
    #[error(transparent)]
    Request(#[from] InvalidRequest),
    /// An annotation cannot be read.
    #[error("invalid {what} annotation, err: {reason}")]
    Annotation {
        key: &'static str,
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A selector cannot be read.
    #[error("invalid {what} of DeviceHint, deviceType: {kind}, err: {reason}")]
    Selector {
        what: &'static str,
        /// Of which devices.
        kind: Kind,
        /// What is wrong with it.
        reason: String,
    },
}

impl InvalidDevices {
    /// The annotation in which it stands; none of requests.
    pub fn annotation(&self) -> Option<&'static str> {
        match self {
            Self::Request(_) => None,
            Self::Annotation { key, .. } => Some(*key),
            Self::Selector { .. } => Some(DEVICE_ALLOCATE_HINT.name()),
        }
    }
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Gpu, Self::Rdma, Self::Fpga];

    /// The kind of a type of devices; none where pods cannot request it.
    pub fn of(type_: &DeviceType) -> Option<Self> {
        match type_ {
            DeviceType::Gpu => Some(Self::Gpu),
            DeviceType::Rdma => Some(Self::Rdma),
            DeviceType::Fpga => Some(Self::Fpga),
            DeviceType::Other(_) => None,
        }
    }

    /// The type of devices.
    pub fn type_(self) -> DeviceType {
        match self {
            Self::Gpu => DeviceType::Gpu,
            Self::Rdma => DeviceType::Rdma,
            Self::Fpga => DeviceType::Fpga,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_().as_str())
    }
}

impl DeviceRequest {
    /// What a pod with these requests, labels and annotations says; none where it requests no device.
    pub fn read<'a>(
        requests: &ResourceList,
        label: impl Fn(&str) -> Option<&'a str>,
        annotation: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Option<Self>, InvalidDevices> {
        let gpus = combination::gpus(requests)?;
        let mut others = BTreeMap::new();
        for (name, resource) in combination::PERCENTAGES {
            let kind = if resource == DeviceResource::Rdma { Kind::Rdma } else { Kind::Fpga };
            if let Some(percent) = combination::percent(requests, name)? {
                others.insert(kind, percent);
            }
        }
        if gpus.is_none() && others.is_empty() {
            return Ok(None);
        }
        let hints = read(&DEVICE_ALLOCATE_HINT, "DeviceAllocateHint", &annotation)?.unwrap_or_default();
        let gpus = gpus.map(|gpus| GpuRequest::read(gpus, &hints, &label, &annotation)).transpose()?;
        let hints = DeviceHint::read_all(&hints)?;
        let is_requested = |kind: &Kind| if *kind == Kind::Gpu { gpus.is_some() } else { others.contains_key(kind) };
        let joint = joint(&annotation, |kind| {
            let is_for_all = hints.get(kind).is_some_and(DeviceHint::applies_for_all);
            is_requested(kind) && !is_for_all
        })?;
        Ok(Some(Self { gpus, others, hints, joint }))
    }

    /// The kinds of devices that it requests.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.gpus.iter().map(|_| Kind::Gpu).chain(self.others.keys().copied())
    }
}

impl GpuRequest {
    fn read<'a>(
        gpus: combination::RequestedGpus,
        hints: &DeviceAllocateHints,
        label: &impl Fn(&str) -> Option<&'a str>,
        annotation: &impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, InvalidDevices> {
        let partition = read(&GPU_PARTITION_SPEC, "GPUPartitionSpec", annotation)?
            .map(|spec| PartitionRequest { is_restricted: spec.is_restricted(), bandwidth: spec.ring_bus_bandwidth });
        let scope = hints.0.get(&DeviceType::Gpu).and_then(|hint| hint.required_topology_scope.as_ref());
        Ok(Self {
            each: gpus.each,
            count: gpus.count,
            is_shared: gpus.is_shared,
            isolation: label(GPU_ISOLATION_PROVIDER.name()).filter(|text| !text.is_empty()).map(str::to_owned),
            partition,
            scope_level: scope.filter(|scope| !scope.as_str().is_empty()).map(|scope| scope.level().unwrap_or(0)),
        })
    }
}

impl DeviceHint {
    /// Whether the pod requests a part of every device.
    pub fn applies_for_all(&self) -> bool {
        self.strategy == Some(DeviceAllocateStrategy::ApplyForAll)
    }

    fn read_all(hints: &DeviceAllocateHints) -> Result<BTreeMap<Kind, Self>, InvalidDevices> {
        let known = hints.0.iter().filter_map(|(type_, hint)| Some((Kind::of(type_)?, hint)));
        known.map(|(kind, hint)| Ok((kind, Self::read(kind, hint)?))).collect()
    }

    fn read(kind: Kind, hint: &ApiHint) -> Result<Self, InvalidDevices> {
        let selector = |what, selector: &Option<_>| {
            let error = |reason: koord_scheduling::SelectorError| InvalidDevices::Selector {
                what,
                kind,
                reason: reason.to_string(),
            };
            selector.as_ref().map(Selector::new).transpose().map_err(error)
        };
        Ok(Self {
            selector: selector("Selector", &hint.selector)?,
            virtual_functions: selector("VFSelector", &hint.vf_selector)?,
            strategy: hint.allocate_strategy.clone(),
            is_exclusive: hint.exclusive_policy == Some(DeviceExclusivePolicy::DeviceLevel),
        })
    }
}

fn joint<'a>(
    annotation: &impl Fn(&str) -> Option<&'a str>,
    counts: impl Fn(&Kind) -> bool,
) -> Result<Option<Joint>, InvalidDevices> {
    let Some(joint) = read(&DEVICE_JOINT_ALLOCATE, "DeviceJointAllocate", annotation)? else { return Ok(None) };
    let mut kinds = joint.device_types.iter().filter_map(Kind::of).filter(counts);
    Ok(kinds.next().map(|primary| Joint {
        primary,
        secondary: kinds.collect(),
        is_same_pcie: joint.required_scope == Some(DeviceJointScope::SamePcie),
    }))
}

fn read<'a, T: Text>(
    key: &Key<T>,
    what: &'static str,
    annotation: &impl Fn(&str) -> Option<&'a str>,
) -> Result<Option<T>, InvalidDevices> {
    let value = annotation(key.name()).map(|text| key.read(text)).transpose();
    value.map_err(|ProtocolError { key, reason, .. }| InvalidDevices::Annotation { key, what, reason })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::devices::testing::{rejected, request};

    #[test]
    fn a_pod_without_device_resources_requests_none() {
        let nothing = DeviceRequest::read(&ResourceList::new(), |_| None, |_| None);
        assert_eq!(nothing, Ok(None));
    }

    #[test]
    fn annotations_say_which_devices() {
        let request = request(&json!({
            "requests": {"koordinator.sh/gpu": "200", "koordinator.sh/rdma": "100"},
            "labels": {"koordinator.sh/gpu-isolation-provider": "HAMi-core"},
            "hints": {
                "gpu": {"requiredTopologyScope": "NUMANode", "selector": {"matchLabels": {"t": "a"}}},
                "rdma": {"vfSelector": {}, "exclusivePolicy": "DeviceLevel"},
                "xpu": {},
            },
            "joint": {"deviceTypes": ["fpga", "gpu", "rdma"], "requiredScope": "SamePCIe"},
            "partition": {"allocatePolicy": "Restricted", "ringBusBandwidth": "200Gi"},
        }));
        let gpus = request.gpus.as_ref().unwrap();
        assert_eq!((gpus.count, gpus.is_shared, gpus.scope_level), (2, false, Some(2)));
        assert_eq!(gpus.isolation.as_deref(), Some("HAMi-core"));
        assert!(gpus.partition.as_ref().unwrap().is_restricted);
        assert!(request.hints[&Kind::Rdma].is_exclusive && request.hints[&Kind::Rdma].virtual_functions.is_some());
        assert_eq!(request.hints.len(), 2);
        let joint = Joint { primary: Kind::Gpu, secondary: vec![Kind::Rdma], is_same_pcie: true };
        assert_eq!(request.joint, Some(joint), "what is not requested is not near anything");
    }

    #[test]
    fn devices_that_are_requested_as_a_whole_are_not_allocated_jointly() {
        let request = request(&json!({
            "requests": {"koordinator.sh/gpu": "100", "koordinator.sh/rdma": "1"},
            "hints": {"rdma": {"allocateStrategy": "ApplyForAll"}},
            "joint": {"deviceTypes": ["gpu", "rdma"]},
        }));
        assert_eq!(request.joint.unwrap().secondary, []);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let gpu = json!({"koordinator.sh/gpu": "100"});
        let near = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
        for (pod, message) in [
            (json!({"requests": gpu, "hints": 1}), "invalid DeviceAllocateHint annotation, err: "),
            (json!({"requests": gpu, "joint": 1}), "invalid DeviceJointAllocate annotation, err: "),
            (json!({"requests": gpu, "partition": 1}), "invalid GPUPartitionSpec annotation, err: "),
            (
                json!({"requests": gpu, "hints": {"gpu": {"selector": near}}}),
                "invalid Selector of DeviceHint, deviceType: gpu, err: ",
            ),
            (json!({"requests": {"koordinator.sh/rdma": "150"}}), "invalid resource unit koordinator.sh/rdma: 150"),
        ] {
            let rejected = rejected(&pod);
            assert!(rejected.starts_with(message), "{rejected}");
        }
    }
}
