//! What is measured of a cluster at one time.

mod room;

use std::collections::BTreeMap;

use koord_scheduler_allocation::devices::{Device, DeviceAmounts, DeviceResource, Devices, Kind};
use koord_scheduler_framework::{cluster::Cluster, columns::Row};

pub(crate) use self::room::Rooms;

/// The name under which whole GPUs are reported, whatever resources stand for them.
pub(crate) const GPUS: &str = "gpus";

/// The GPUs of a node as devices: of each what there is and what is free, in thousandths.
pub(crate) fn gpus(cluster: &Cluster, row: Row) -> Vec<(i64, i64)> {
    let node = cluster.state::<Devices>().and_then(|devices| devices.of(row));
    let percent = |amounts: &DeviceAmounts| {
        let listed = [DeviceResource::GpuCore, DeviceResource::GpuMemoryRatio].into_iter();
        listed.filter_map(|resource| amounts.get(resource)).min().unwrap_or(0)
    };
    let of = |device: &Device| (10 * percent(&device.total), 10 * percent(&device.free()).max(0));
    let all = node.into_iter().flat_map(|node| node.of(Kind::Gpu)).map(|(_, device)| of(device));
    all.filter(|(total, _)| *total > 0).collect()
}

/// What is requested of each of these resources on a row, and what there is.
pub(crate) fn of_row<'r>(
    cluster: &Cluster,
    row: Row,
    resources: &'r BTreeMap<String, i64>,
) -> Vec<(&'r str, i64, i64)> {
    let ids = resources.keys().filter_map(|name| Some((name.as_str(), cluster.resources().get(name)?)));
    ids.map(|(name, id)| (name, cluster.requested(id, row), cluster.allocatable(id, row))).collect()
}

/// The share of each of these resources that is requested, and of GPUs that is given out.
pub(crate) fn shares(cluster: &Cluster, resources: &BTreeMap<String, i64>) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for (row, _) in cluster.rows() {
        let gpus = gpus(cluster, row).into_iter().map(|(total, free)| (GPUS, total - free, total));
        for (name, used, all) in of_row(cluster, row, resources).into_iter().chain(gpus) {
            let sum = sums.entry(name).or_default();
            *sum = (sum.0.saturating_add(used), sum.1.saturating_add(all));
        }
    }
    let offered = sums.into_iter().filter(|(_, (_, all))| *all > 0);
    offered.map(|(name, (used, all))| (name.to_owned(), used as f64 / all as f64)).collect()
}
