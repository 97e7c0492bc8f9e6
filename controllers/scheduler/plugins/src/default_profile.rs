//! The plugins with which every profile begins.

use std::sync::Arc;

use koord_engine::{cycle::Profile, plugin::Plugin};

use crate::{
    BalancedAllocation, NodeAffinity, NodePorts, NodeResourcesFit, NodeUnschedulable, SchedulingGates, TaintToleration,
    Unbuilt,
};

/// The profile of kube-scheduler under this scheduler name, as far as its plugins are here, in its order and with its weights.
pub fn default_profile(scheduler: &str) -> Profile {
    let plugins: [(Arc<dyn Plugin>, bool, Option<i64>); 8] = [
        (Arc::new(SchedulingGates), false, None),
        (Arc::new(Unbuilt), true, None),
        (Arc::new(NodeUnschedulable), true, None),
        (Arc::new(TaintToleration), true, Some(3)),
        (Arc::new(NodeAffinity), true, Some(2)),
        (Arc::new(NodePorts), true, None),
        (Arc::new(NodeResourcesFit::default()), true, Some(1)),
        (Arc::new(BalancedAllocation::default()), false, Some(1)),
    ];
    let indexed = || (0_u8..).zip(&plugins);
    Profile {
        scheduler: scheduler.into(),
        filters: indexed().filter(|(_, (_, filters, _))| *filters).map(|(index, _)| index).collect(),
        scores: indexed().filter_map(|(index, (_, _, weight))| Some((index, (*weight)?))).collect(),
        post_filters: Vec::new(),
        plugins: plugins.into_iter().map(|(plugin, ..)| plugin).collect(),
    }
}
