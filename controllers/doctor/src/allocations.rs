//! Whether pods have devices and CPUs that exist, and each by themselves.

use koord_resource::{Resource as _, controller::ResourceKind};
use koord_types::{device::Device, node_resource_topology::v1alpha1::NodeResourceTopology};

use koord_explain::allocations::Allocations;
use koord_program::{findings::Report, listing, obstacle::Obstacle};

use crate::cluster::Cluster;

pub(crate) async fn look(cluster: &Cluster, report: &mut Report) {
    let mut allocations = Allocations::default();
    for kind in [ResourceKind::of(&Device::INFO), ResourceKind::of(&NodeResourceTopology::INFO), ResourceKind::POD] {
        let path = kind.url_path("", None);
        let query = if kind == ResourceKind::POD { listing::query("spec.nodeName!=", "") } else { String::new() };
        let listed = listing::each(&cluster.client, &path, &query, listing::Part::Whole, |text| {
            // An object that cannot be read is a finding of another check.
            let _ = allocations.add(kind.kind, text);
            Ok(())
        });
        match listed.await {
            Err(error) if listing::is_absent(&error) => {}
            listed => {
                if report.read(listed.map_err(|error| Obstacle::unlisted(&path, &error))).is_none() {
                    return;
                }
            }
        }
    }
    for (node, allocations) in allocations.iter() {
        for conflict in allocations.conflicts() {
            report.warning(
                format!("Node {node}"),
                conflict,
                format!(
                    "see who has what, and recreate a pod that has what it should not: koordctl explain node {node}"
                ),
            );
        }
    }
}
