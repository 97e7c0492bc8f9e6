//! The devices that a pod has.

use std::collections::BTreeMap;

use koord_types::device_protocol::{
    AllocatedVirtualFunction, DeviceAllocation, DeviceAllocationExtension, DeviceAllocations,
};

use super::{amounts::DeviceAmounts, node::NodeDevices, request::Kind};

/// The devices that a pod has, or shares of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatedDevices(pub BTreeMap<Kind, Vec<Share>>);

/// A device that a pod has, or a share of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of the device among those of its kind.
    pub minor: i32,
    /// How much of it.
    pub amounts: DeviceAmounts,
    /// Its virtual functions, by their minor number and address.
    pub virtual_functions: Vec<(i32, String)>,
    /// The template by which the GPU is divided.
    pub template: Option<String>,
}

/// More of one resource of a device is not read, so that the sum of all pods of a node cannot overflow: a pebibyte.
const AMOUNT_MAX: i64 = 1 << 50;

impl Share {
    /// A share without more to it.
    pub fn new(minor: i32, amounts: DeviceAmounts) -> Self {
        Self { minor, amounts, virtual_functions: Vec::new(), template: None }
    }
}

impl AllocatedDevices {
    /// What the annotation of a pod says. Devices of a kind that pods cannot request are left out.
    pub fn read(written: &DeviceAllocations) -> Self {
        let share = |written: &DeviceAllocation| {
            let extension = written.extension.clone().unwrap_or_default();
            let functions = extension.virtual_functions.into_iter();
            Share {
                minor: written.minor,
                amounts: DeviceAmounts::read(&written.resources).within(AMOUNT_MAX),
                virtual_functions: functions.map(|function| (function.minor, function.bus_id)).collect(),
                template: Some(extension.gpu_shared_resource_template).filter(|name| !name.is_empty()),
            }
        };
        let known = written.0.iter().filter_map(|(type_, shares)| Some((Kind::of(type_)?, shares)));
        Self(known.map(|(kind, shares)| (kind, shares.iter().map(share).collect())).collect())
    }

    /// What the annotation of the pod is to say, with the ids of the node's devices.
    pub fn write(&self, node: &NodeDevices) -> DeviceAllocations {
        let written = self.0.iter().map(|(kind, shares)| {
            let share = |share: &Share| DeviceAllocation {
                minor: share.minor,
                resources: share.amounts.list(),
                id: node.get(*kind, share.minor).map(|device| device.id.clone()).unwrap_or_default(),
                extension: share.extension(),
            };
            (kind.type_(), shares.iter().map(share).collect())
        });
        DeviceAllocations(written.collect())
    }

    /// The part that others have too.
    pub fn shared_with(&self, others: &[&Self]) -> Self {
        let both = |kind: Kind, share: &Share| {
            let of_others =
                || others.iter().flat_map(|other| other.of(kind)).filter(|other| other.minor == share.minor);
            let sum = of_others().fold(DeviceAmounts::default(), |sum, other| sum.plus(&other.amounts));
            let has = |function: &&(i32, String)| of_others().any(|other| other.virtual_functions.contains(function));
            Share {
                amounts: share.amounts.left_after(&share.amounts.left_after(&sum)),
                virtual_functions: share.virtual_functions.iter().filter(has).cloned().collect(),
                ..share.clone()
            }
        };
        self.mapped(both)
    }

    /// What is left without a part of it. Devices of which nothing is left are still named.
    pub fn without(&self, part: &Self) -> Self {
        self.mapped(|kind, share| {
            let Some(part) = part.of(kind).iter().find(|part| part.minor == share.minor) else { return share.clone() };
            let is_left = |function: &&(i32, String)| !part.virtual_functions.contains(function);
            Share {
                amounts: share.amounts.left_after(&part.amounts),
                virtual_functions: share.virtual_functions.iter().filter(is_left).cloned().collect(),
                ..share.clone()
            }
        })
    }

    fn mapped(&self, change: impl Fn(Kind, &Share) -> Share) -> Self {
        let kinds = self.0.iter();
        Self(kinds.map(|(kind, shares)| (*kind, shares.iter().map(|share| change(*kind, share)).collect())).collect())
    }

    /// The shares of one kind.
    pub fn of(&self, kind: Kind) -> &[Share] {
        self.0.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// How much it is of each resource.
    pub fn total(&self) -> DeviceAmounts {
        self.iter().fold(DeviceAmounts::default(), |sum, (_, share)| sum.plus(&share.amounts))
    }

    /// All shares, with the kind of their device.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, &Share)> {
        self.0.iter().flat_map(|(kind, shares)| shares.iter().map(|share| (*kind, share)))
    }
}

impl Share {
    fn extension(&self) -> Option<DeviceAllocationExtension> {
        let functions = self.virtual_functions.iter();
        let extension = DeviceAllocationExtension {
            virtual_functions: functions
                .map(|(minor, bus_id)| AllocatedVirtualFunction { minor: *minor, bus_id: bus_id.clone() })
                .collect(),
            gpu_shared_resource_template: self.template.clone().unwrap_or_default(),
        };
        (extension != DeviceAllocationExtension::default()).then_some(extension)
    }
}

#[cfg(test)]
mod tests {
    use koord_types::device_protocol::DEVICE_ALLOCATED;
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::devices::{amounts::DeviceResource, testing::node};

    fn share() -> impl Strategy<Value = Share> {
        let amount = 0..=1_i64 << 40;
        let functions = vec((0..9_i32, "[0-9a-f]{1,4}"), 0..3);
        (0..8_i32, amount, functions, proptest::option::of("[a-z]{1,5}")).prop_map(
            |(minor, amount, virtual_functions, template)| {
                let amounts = [(DeviceResource::GpuMemory, amount), (DeviceResource::GpuMemoryRatio, amount % 101)];
                Share { minor, amounts: amounts.into_iter().collect(), virtual_functions, template }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(gpus in vec(share(), 1..4), cards in vec(share(), 1..3)) {
            let allocation = AllocatedDevices([(Kind::Gpu, gpus), (Kind::Rdma, cards)].into());
            let mut annotations = BTreeMap::new();
            DEVICE_ALLOCATED.set(&mut annotations, &allocation.write(&NodeDevices::default()));
            let read = DEVICE_ALLOCATED.get(&annotations).unwrap().unwrap();
            prop_assert_eq!(AllocatedDevices::read(&read), allocation);
        }
    }

    #[test]
    fn owners_allocate_a_part_of_a_reservation_and_the_rest_stays_reserved() {
        use crate::devices::testing::allocation;
        let mut kept = allocation("gpu0:100 gpu1:50");
        let mut card = allocation("rdma0:10+f1").0;
        card.values_mut().flatten().for_each(|share| share.virtual_functions.push((2, "f2".to_owned())));
        kept.0.extend(card);
        let owners = [allocation("gpu0:30 gpu2:100"), allocation("gpu0:30 gpu1:80"), allocation("rdma0:10+f1")];
        let both = kept.shared_with(&owners.iter().collect::<Vec<_>>());
        let core = |allocation: &AllocatedDevices| {
            let shares = allocation.of(Kind::Gpu).iter();
            shares.map(|share| (share.minor, share.amounts.amount(DeviceResource::GpuCore))).collect::<Vec<_>>()
        };
        let functions = |allocation: &AllocatedDevices| {
            allocation.of(Kind::Rdma)[0].virtual_functions.iter().map(|(_, bus)| bus.clone()).collect::<Vec<_>>()
        };
        assert_eq!((core(&both), functions(&both)), (vec![(0, 60), (1, 50)], vec!["f1".to_owned()]));
        let rest = kept.without(&both);
        assert_eq!((core(&rest), functions(&rest)), (vec![(0, 40), (1, 0)], vec!["f2".to_owned()]));
    }

    #[test]
    fn amounts_that_cannot_be_are_read_as_what_a_device_could_have() {
        let read = |amount: &str| {
            let text = format!(r#"{{"gpu":[{{"minor":0,"resources":{{"koordinator.sh/gpu-core":"{amount}"}}}}]}}"#);
            let written = DEVICE_ALLOCATED.read(&text).unwrap();
            AllocatedDevices::read(&written).of(Kind::Gpu)[0].amounts.amount(DeviceResource::GpuCore)
        };
        assert_eq!(["-30", "50", "9223372036854775807"].map(read), [0, 50, AMOUNT_MAX]);
    }

    #[test]
    fn the_annotation_has_the_ids_of_the_node_and_the_order_of_the_original() {
        let text = r#"{"gpu":[{"minor":2,"resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory":"80Gi","koordinator.sh/gpu-memory-ratio":"100"},"id":"GPU-2"}],"rdma":[{"minor":1,"resources":{"koordinator.sh/rdma":"1"},"id":"RDMA-1","extension":{"vfs":[{"busID":"0000:81:00.1"}]}}]}"#;
        let allocation = AllocatedDevices::read(&DEVICE_ALLOCATED.read(text).unwrap());
        let mut annotations = BTreeMap::new();
        DEVICE_ALLOCATED.set(&mut annotations, &allocation.write(&node("gpu2 rdma1")));
        assert_eq!(annotations[DEVICE_ALLOCATED.name()], text);
    }
}
