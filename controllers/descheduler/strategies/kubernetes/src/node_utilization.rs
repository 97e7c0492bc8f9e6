//! What LowNodeUtilization and HighNodeUtilization have in common: how nodes are measured, and how pods leave a node towards others.

mod drain;
mod measure;
mod targets;
mod usage;

use koord_descheduler_framework::{ReasonCode, Refusal};

pub(crate) use self::{
    drain::{Drain, Source},
    measure::{NodeUsage, Resources},
    targets::Targets,
    usage::{Amounts, Requests, Shares, UsageSource},
};

/// Why nothing is done where so many nodes are underutilized, of all nodes.
pub(crate) fn reason_to_do_nothing(underutilized: usize, nodes: usize, number_max: usize) -> Option<Refusal> {
    let code = match underutilized {
        0 => ReasonCode::NoTargetNodes,
        count if count <= number_max => ReasonCode::TooFewNodesUnderutilized,
        count if count == nodes => ReasonCode::AllNodesUnderutilized,
        _ => return None,
    };
    Some(Refusal::new(code).with("underutilized", underutilized).with("nodes", nodes))
}
