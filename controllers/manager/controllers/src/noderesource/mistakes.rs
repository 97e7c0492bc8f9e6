//! Labels and annotations of a node whose values cannot be decoded.

use koord_types::{
    node_annotations::{
        CPU_NORMALIZATION_ENABLED, NODE_CPU_RECLAIM_RATIO, NODE_MEMORY_RECLAIM_RATIO,
        NODE_MID_STATIC_CPU_RESERVED_RATIO, NODE_MID_STATIC_MEMORY_RESERVED_RATIO, NODE_RESERVATION,
        THIRD_PARTY_ALLOCATIONS,
    },
    protocol::ProtocolError,
    slo_config::NODE_COLOCATION_STRATEGY,
};

use crate::view::NodeView;

/// The labels and annotations of a node that are ignored because their values cannot be decoded.
pub(super) fn of(node: &NodeView) -> Vec<ProtocolError> {
    let (labels, annotations) = (node.labels.to_map(), node.annotations.to_map());
    let reservation = NODE_RESERVATION.get(&annotations);
    let cpus = reservation.as_ref().ok().and_then(Option::as_ref).and_then(|reservation| reservation.cpus().err());
    [
        NODE_COLOCATION_STRATEGY.get(&annotations).err(),
        reservation.err().or(cpus),
        THIRD_PARTY_ALLOCATIONS.get(&annotations).err(),
        CPU_NORMALIZATION_ENABLED.get(&labels).err(),
        NODE_CPU_RECLAIM_RATIO.get(&labels).err(),
        NODE_MEMORY_RECLAIM_RATIO.get(&labels).err(),
        NODE_MID_STATIC_CPU_RESERVED_RATIO.get(&labels).err(),
        NODE_MID_STATIC_MEMORY_RESERVED_RATIO.get(&labels).err(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
