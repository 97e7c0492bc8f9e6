//! Shares of a device that together are more than all of it, and virtual functions that several pods have.

use std::collections::BTreeMap;

use crate::{
    devices::{
        allocation::{AllocatedDevices, Share},
        amounts::{DeviceAmounts, DeviceResource},
        node::NodeDevices,
        request::Kind,
        state::Devices,
    },
    users,
};
use koord_core::uid::Uid;
use koord_scheduler_framework::{
    DoubleAllocation,
    cluster::{Cluster, Placed},
    columns::Row,
};

/// A share of a device, with the pod that has it.
type Has<'c> = (&'c Placed, &'c Share);

/// What of the devices of a node is given to more pods than may have it.
pub fn double_allocations(cluster: &Cluster, row: Row) -> Vec<DoubleAllocation> {
    let Some(node) = cluster.state::<Devices>().and_then(|devices| devices.of(row)) else { return Vec::new() };
    let mut by_device: BTreeMap<(Kind, i32), Vec<Has<'_>>> = BTreeMap::new();
    for placed in users(cluster, row) {
        let shares = placed.holds.get::<AllocatedDevices>().into_iter().flat_map(AllocatedDevices::iter);
        for (kind, share) in shares {
            by_device.entry((kind, share.minor)).or_default().push((placed, share));
        }
    }
    let several = by_device.into_iter().filter(|(_, shares)| shares.len() > 1);
    let given = several.flat_map(|(device, shares)| {
        let exceeded = exceeded(node, device, &shares);
        exceeded.into_iter().chain(functions(device, &shares)).collect::<Vec<_>>()
    });
    given.collect()
}

/// A resource of a device of which pods have more than there is. Nothing is known of a device that the node does not report, and none is
/// to be had of one that has become unhealthy: pods keep what they have of it.
fn exceeded(node: &NodeDevices, (kind, minor): (Kind, i32), shares: &[Has<'_>]) -> Option<DoubleAllocation> {
    let device = node.get(kind, minor).filter(|device| device.is_reported && !device.is_unhealthy)?;
    let sum = shares.iter().fold(DeviceAmounts::default(), |sum, (_, share)| sum.plus(&share.amounts));
    let is_more = |(resource, amount): &(DeviceResource, i64)| {
        is_percentage(*resource) && device.total.get(*resource).is_some_and(|total| *amount > total)
    };
    let (resource, amount) = sum.iter().find(is_more)?;
    let (total, resource) = (device.total.amount(resource), resource.name());
    let has_some = shares.iter().filter(|(_, share)| !share.amounts.is_zero());
    let pods: Vec<&Placed> = has_some.map(|(placed, _)| *placed).collect();
    Some(given("device", &format!("{kind} {minor}: {amount} of {total} {resource} are given"), &pods))
}

/// The virtual functions of a device that several pods have.
fn functions((kind, minor): (Kind, i32), shares: &[Has<'_>]) -> Vec<DoubleAllocation> {
    let mut by_address: BTreeMap<&str, BTreeMap<&Uid, &Placed>> = BTreeMap::new();
    for (placed, share) in shares {
        for (_, bus_id) in &share.virtual_functions {
            by_address.entry(bus_id).or_default().insert(&placed.pod.uid, placed);
        }
    }
    let several = by_address.into_iter().filter(|(_, pods)| pods.len() > 1);
    let twice = several.map(|(bus_id, pods)| {
        let words = format!("{kind} {minor}: the virtual function {bus_id} is given");
        given("virtual_function", &words, &pods.into_values().collect::<Vec<_>>())
    });
    twice.collect()
}

fn given(what: &'static str, words: &str, pods: &[&Placed]) -> DoubleAllocation {
    let names: Vec<&str> = pods.iter().map(|placed| placed.pod.key.as_str()).collect();
    let details = format!("{words} to {}", names.join(", "));
    DoubleAllocation { what, details, pods: pods.iter().map(|placed| placed.pod.uid.clone()).collect(), subject: None }
}

/// Whether a resource is a part of a device in percent, of which there is the same whatever the device is.
fn is_percentage(resource: DeviceResource) -> bool {
    use DeviceResource::{Fpga, GpuCore, GpuMemoryRatio, NpuDvpp, Rdma};
    matches!(resource, Fpga | GpuCore | GpuMemoryRatio | NpuDvpp | Rdma)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::devices::testing::allocation;
    use koord_core::key::ObjectKey;
    use koord_resource::controller::ResourceKind;
    use koord_scheduler_framework::{
        hold::Holds,
        object::Object,
        pod::{Pod, Reference},
    };
    use koord_scheduler_testing::devices::report;
    use serde_json::json;

    use super::*;

    /// What is given twice on a node with these devices, of which these pods have so much. A pod `r…` is a reserve pod.
    fn found(devices: &str, pods: &[(&str, &str)]) -> Vec<String> {
        let mut cluster = Cluster::default();
        cluster.add_state(Box::<Devices>::default());
        cluster.set_node(koord_scheduler_testing::node("n", &json!({})));
        let key = ObjectKey::cluster("n");
        cluster.set_object(Object::new(key, Uid::from("n"), false, Arc::new(report(devices))));
        for (name, has) in pods {
            let reference = Reference { kind: ResourceKind::POD, key: ObjectKey::cluster("r") };
            let reservation = name.starts_with('r').then(|| Arc::new(reference));
            let mut holds = Holds::default();
            holds.set(allocation(has));
            let pod = Pod { reservation, ..Pod::clone(&koord_scheduler_testing::pod(name, &json!({}))) };
            cluster.place(Arc::new(pod), &"n".into(), holds);
        }
        let found = double_allocations(&cluster, cluster.row("n").unwrap());
        found.into_iter().map(|one| format!("{}: {} ({} pods)", one.what, one.details, one.pods.len())).collect()
    }

    #[test]
    fn shares_that_are_more_than_the_device_are_found_with_their_pods() {
        assert_eq!(found("gpu0 gpu1", &[("a", "gpu0:60 gpu1"), ("b", "gpu0:40")]), [""; 0]);
        assert_eq!(
            found("gpu0 gpu1 rdma0", &[("a", "gpu0:60 rdma0:50"), ("b", "gpu0:50 rdma0:60"), ("c", "gpu1")]),
            [
                "device: gpu 0: 110 of 100 koordinator.sh/gpu-core are given to ns/a, ns/b (2 pods)",
                "device: rdma 0: 110 of 100 koordinator.sh/rdma are given to ns/a, ns/b (2 pods)",
            ]
        );
    }

    #[test]
    fn a_virtual_function_that_two_pods_have_is_found() {
        let twice = "virtual_function: rdma 0: the virtual function f1 is given to ns/a, ns/b (2 pods)";
        assert_eq!(found("rdma0+f1+f2", &[("a", "rdma0:10+f1"), ("b", "rdma0:10+f1"), ("c", "rdma0:10+f2")]), [twice]);
    }

    #[test]
    fn reserved_devices_and_devices_that_are_unreported_or_unhealthy_are_not_double_allocations() {
        assert_eq!(found("gpu0", &[("r", "gpu0"), ("a", "gpu0:50"), ("b", "gpu0:50")]), [""; 0]);
        assert_eq!(found("gpu0!", &[("a", "gpu0"), ("b", "gpu0")]), [""; 0]);
        assert_eq!(found("gpu0", &[("a", "gpu1"), ("b", "gpu1")]), [""; 0]);
    }
}
