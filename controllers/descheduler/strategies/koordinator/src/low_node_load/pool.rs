//! Nodes that are balanced among themselves.

use std::collections::{BTreeMap, BTreeSet};

use koord_config::descheduler::LowNodeLoadArgs;
use koord_descheduler_framework::{Cluster, NodeId};
use koord_scheduling::Selector;

use super::{
    detector::Condition,
    thresholds::{Given, Thresholds},
};
use crate::{ArgsError, selection};

/// Nodes that are balanced among themselves, with their thresholds.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// `None` selects all nodes.
    nodes: Option<Selector>,
    pub(super) thresholds: Thresholds,
    pub(super) condition: Condition,
}

impl Pool {
    /// The pools of arguments: first that of the arguments themselves, and then those of `nodePools`, which inherit what they do not set.
    pub(super) fn all(args: &LowNodeLoadArgs) -> Result<Vec<Self>, ArgsError> {
        let parse = |field, selector: Option<&_>| selector.map(|nodes| selection::parse(field, nodes)).transpose();
        let own = Self {
            nodes: parse("nodeSelector", args.node_selector.as_ref())?,
            thresholds: Thresholds::new(&Given {
                low: &args.low_thresholds,
                high: &args.high_thresholds,
                prod_low: &args.prod_low_thresholds,
                prod_high: &args.prod_high_thresholds,
                are_deviations: args.use_deviation_thresholds,
                weights: &args.resource_weights,
            }),
            condition: Condition::new(&args.anomaly_condition),
        };
        let pools = args.node_pools.iter().map(|pool| {
            // QUIRK: whether thresholds are deviations is not inherited.
            let given = Given {
                low: or(pool.low_thresholds.as_ref(), &args.low_thresholds),
                high: or(pool.high_thresholds.as_ref(), &args.high_thresholds),
                prod_low: or(pool.prod_low_thresholds.as_ref(), &args.prod_low_thresholds),
                prod_high: or(pool.prod_high_thresholds.as_ref(), &args.prod_high_thresholds),
                are_deviations: pool.use_deviation_thresholds,
                weights: or(pool.resource_weights.as_ref(), &args.resource_weights),
            };
            Ok(Self {
                nodes: parse("nodePools", pool.node_selector.as_ref())?,
                thresholds: Thresholds::new(&given),
                condition: Condition::new(pool.anomaly_condition.as_ref().unwrap_or(&args.anomaly_condition)),
            })
        });
        std::iter::once(Ok(own)).chain(pools).collect()
    }

    /// The nodes of the pool.
    ///
    /// QUIRK: a pool without selector has those too that were overutilized in an earlier pool.
    pub(super) fn select(&self, cluster: &Cluster, nodes: &[NodeId], processed: &BTreeSet<NodeId>) -> Vec<NodeId> {
        let mut selected = selection::nodes(cluster, nodes, self.nodes.as_ref());
        if self.nodes.is_some() {
            selected.retain(|id| !processed.contains(id));
        }
        selected
    }
}

fn or<'a, V>(own: Option<&'a BTreeMap<String, V>>, all: &'a BTreeMap<String, V>) -> &'a BTreeMap<String, V> {
    own.unwrap_or(all)
}
