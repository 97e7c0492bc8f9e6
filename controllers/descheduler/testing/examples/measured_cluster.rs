//! Prints the objects of the measured cluster, one a line: `cargo run -p koord-descheduler-testing --example measured_cluster [NODES]`.
#![allow(clippy::print_stdout)]

use koord_descheduler_testing::MeasuredCluster;

fn main() {
    let nodes = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let of = nodes.map_or(MeasuredCluster::SMALL, |nodes| MeasuredCluster { nodes, ..MeasuredCluster::SMALL });
    of.objects().for_each(|object| println!("{object}"));
}
