//! What is known of the devices of nodes, for people, under the names of the original.

use koord_scheduler_allocation::devices::{
    allocation::AllocatedDevices,
    amounts::DeviceAmounts,
    node::{Device, NodeDevices},
    request::Kind,
    state::Devices,
};
use koord_scheduler_framework::{cluster::Cluster, columns::Row};
use serde_json::{Map, Value, json};

const KINDS: [Kind; 3] = [Kind::Gpu, Kind::Rdma, Kind::Fpga];

/// The devices of all nodes that have some, by the name of the node.
pub(super) fn all(devices: &Devices, cluster: &Cluster) -> Value {
    let nodes = cluster.rows().filter_map(|(row, node)| Some((node.name.to_string(), on_node(devices, cluster, row)?)));
    nodes.collect()
}

/// The devices of a node: what they have, what of it is free and used, and by whom. None of a node without devices.
pub(super) fn on_node(devices: &Devices, cluster: &Cluster, row: Row) -> Option<Value> {
    type Of = fn(&Device) -> Option<DeviceAmounts>;
    let node = devices.of(row)?;
    let used: Of = |device| Some(device.used).filter(|used| !used.is_zero());
    let amounts: [(&str, Of); 3] = [
        ("deviceTotal", |device| Some(device.total)),
        ("deviceFree", |device| Some(device.free())),
        ("deviceUsed", used),
    ];
    let mut summary = Map::new();
    for (name, of) in amounts {
        let all = KINDS.iter().flat_map(|kind| node.of(*kind));
        let sum = all.filter_map(|(_, device)| of(device)).fold(DeviceAmounts::default(), |sum, one| sum.plus(&one));
        summary.insert(name.to_owned(), json!(sum.list()));
        summary.insert(format!("{name}Detail"), by_kind(node, &|device| of(device).map(|one| json!(one.list()))));
    }
    summary.insert("devices".to_owned(), by_kind(node, &|one| Some(device(one))));
    let kinds = KINDS.iter().filter(|kind| node.of(**kind).next().is_some());
    summary
        .insert("allocateSet".to_owned(), kinds.map(|kind| (kind.to_string(), given(*kind, cluster, row))).collect());
    Some(summary.into())
}

/// What `of` says of each device, by kind and minor number. Kinds of which it says nothing are left out.
fn by_kind(node: &NodeDevices, of: &dyn Fn(&Device) -> Option<Value>) -> Value {
    let devices = |kind: &Kind| -> Map<String, Value> {
        node.of(*kind).filter_map(|(minor, device)| Some((minor.to_string(), of(device)?))).collect()
    };
    let kinds = KINDS.iter().map(|kind| (kind.to_string(), devices(kind)));
    kinds.filter(|(_, devices)| !devices.is_empty()).map(|(kind, devices)| (kind, Value::from(devices))).collect()
}

fn device(device: &Device) -> Value {
    let place = device.place.as_ref();
    json!({
        "id": device.id, "isReported": device.is_reported, "isHealthy": !device.total.is_zero(),
        "numaNode": place.map(|place| place.numa_node), "pcie": place.map(|place| &place.pcie),
    })
}

/// What each pod has of a kind, by the minor numbers of the devices.
fn given(kind: Kind, cluster: &Cluster, row: Row) -> Value {
    let pods = cluster.pods_on(row).filter_map(|placed| {
        let shares = placed.holds.get::<AllocatedDevices>()?.of(kind);
        let shares: Map<String, Value> =
            shares.iter().map(|share| (share.minor.to_string(), json!(share.amounts.list()))).collect();
        (!shares.is_empty()).then(|| (placed.pod.key.to_string(), Value::from(shares)))
    });
    pods.collect()
}
