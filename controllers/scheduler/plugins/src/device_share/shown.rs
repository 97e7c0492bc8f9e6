//! What is known of the devices of nodes, for people, under the names of the original.

use koord_engine::{cluster::Cluster, columns::Row};
use serde_json::{Map, Value, json};

use super::{
    allocation::Allocation,
    amounts::Amounts,
    node::{Device, NodeDevices},
    request::Kind,
    state::Devices,
};

const KINDS: [Kind; 3] = [Kind::Gpu, Kind::Rdma, Kind::Fpga];

/// The devices of all nodes that have some, by the name of the node.
pub(super) fn all(devices: &Devices, cluster: &Cluster) -> Value {
    let nodes = cluster.rows().filter_map(|(row, node)| Some((node.name.to_string(), on_node(devices, cluster, row)?)));
    nodes.collect()
}

/// The devices of a node: what they have, what of it is free and used, and by whom. None of a node without devices.
pub(super) fn on_node(devices: &Devices, cluster: &Cluster, row: Row) -> Option<Value> {
    type Of = fn(&Device) -> Amounts;
    let node = devices.of(row)?;
    let amounts: [(&str, Of); 3] =
        [("deviceTotal", |device| device.total), ("deviceFree", Device::free), ("deviceUsed", |device| device.used)];
    let mut summary = Map::new();
    for (name, of) in amounts {
        let sum = KINDS
            .iter()
            .flat_map(|kind| node.of(*kind))
            .fold(Amounts::default(), |sum, (_, device)| sum.plus(&of(device)));
        summary.insert(name.to_owned(), json!(sum.list()));
        summary.insert(format!("{name}Detail"), by_kind(node, &|device| json!(of(device).list())));
    }
    summary.insert("devices".to_owned(), by_kind(node, &device));
    summary.insert(
        "allocateSet".to_owned(),
        KINDS.iter().map(|kind| (kind.to_string(), given(*kind, cluster, row))).collect(),
    );
    summary.retain(|_, value| value.as_object().is_none_or(|members| !members.is_empty()));
    Some(summary.into())
}

/// What `of` says of each device, by kind and minor number. Kinds without devices are left out.
fn by_kind(node: &NodeDevices, of: &dyn Fn(&Device) -> Value) -> Value {
    let kinds = KINDS.iter().filter(|kind| node.of(**kind).next().is_some());
    let devices =
        |kind: &Kind| -> Value { node.of(*kind).map(|(minor, device)| (minor.to_string(), of(device))).collect() };
    kinds.map(|kind| (kind.to_string(), devices(kind))).collect()
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
        let shares = placed.holds.get::<Allocation>()?.of(kind);
        let shares: Map<String, Value> =
            shares.iter().map(|share| (share.minor.to_string(), json!(share.amounts.list()))).collect();
        (!shares.is_empty()).then(|| (placed.pod.key.to_string(), Value::from(shares)))
    });
    pods.collect()
}
