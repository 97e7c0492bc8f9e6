//! The devices of a node, counted anew.

use koord_scheduler_framework::{cluster::Cluster, columns::Row};
use koord_types::device::Device as ApiDevice;

use super::{Devices, NodeDevices};
use crate::devices::allocation::AllocatedDevices;

impl Devices {
    /// Compares what is known of the devices of a node with its report and its pods, and sets right what differs.
    pub fn audit_row(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        let actual = self.recount(cluster, row);
        let nothing = NodeDevices::default();
        let cached = self.rows.get(row.index()).unwrap_or(&nothing);
        if *cached == actual {
            return Vec::new();
        }
        let wrong = match cached.difference(&actual) {
            Some(details) => ("devices", details),
            None => ("device_reports", "a report as it was instead of as it is".to_owned()),
        };
        *self.at(row) = actual;
        vec![wrong]
    }

    /// What is to be known of the devices of a node.
    fn recount(&self, cluster: &Cluster, row: Row) -> NodeDevices {
        let node = cluster.node(row);
        let mut devices = match node.map(|node| cluster.objects().get::<ApiDevice>(&node.name)) {
            Some(Some(report)) => {
                let mut devices = NodeDevices::default();
                devices.report(report);
                devices
            }
            // Without a report the last one is what is known of them.
            Some(None) => self.rows.get(row.index()).map(NodeDevices::unused).unwrap_or_default(),
            None => NodeDevices::default(),
        };
        let allocations = cluster.pods_on(row).filter_map(|placed| placed.holds.get::<AllocatedDevices>());
        allocations.for_each(|allocation| devices.allocate(allocation));
        devices
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::{key::ObjectKey, uid::Uid};
    use koord_scheduler_framework::{hold::Holds, object::Object};
    use serde_json::json;

    use super::*;
    use crate::devices::testing::allocation;
    use koord_scheduler_testing::devices::report;

    /// What makes a sum wrong.
    type Spoil = fn(&mut NodeDevices);

    fn stage() -> (Cluster, Row) {
        let mut cluster = Cluster::default();
        cluster.add_state(Box::<Devices>::default());
        cluster.set_node(koord_scheduler_testing::node("n", &json!({})));
        let key = ObjectKey::cluster("n");
        cluster.set_object(Object::new(key, Uid::from("n"), false, Arc::new(report("gpu0 gpu1 rdma0"))));
        let mut holds = Holds::default();
        holds.set(allocation("gpu0:30 rdma0:10+f1"));
        cluster.place(koord_scheduler_testing::pod("p", &json!({})), &"n".into(), holds);
        let row = cluster.row("n").unwrap();
        (cluster, row)
    }

    #[test]
    fn devices_that_are_spoilt_are_found_and_set_right() {
        let spoil: [(&str, &str, Spoil); 3] = [
            ("devices", "fpga 0 koordinator.sh/fpga=50 instead of nothing", |node| {
                node.allocate(&allocation("fpga0:50"));
            }),
            ("devices", "rdma 0 nothing instead of koordinator.sh/rdma=10 f1", |node| {
                node.release(&allocation("rdma0:10+f1"));
            }),
            ("device_reports", "a report as it was instead of as it is", |node| node.is_well_planned = true),
        ];
        for (sum, details, spoil) in spoil {
            let (mut cluster, row) = stage();
            assert_eq!(cluster.audit(row), []);
            let right = cluster.state::<Devices>().cloned();
            spoil(cluster.state_mut::<Devices>().unwrap().at(row));
            let found = cluster.audit(row);
            let found: Vec<_> = found.iter().map(|found| (found.sum, &*found.details)).collect();
            assert_eq!(found, [(sum, details)]);
            assert_eq!(cluster.state::<Devices>().cloned(), right);
        }
    }
}
