//! The verdicts and scores of all plugins for all nodes, for diagnosis.

use std::{sync::Arc, time::Duration};

use super::{Prepared, Profile};
use crate::{Reason, Request, cluster::Cluster, columns::Row};

/// What the plugins of a profile say about one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnNode {
    pub node: Arc<str>,
    /// Who refuses it, in the order of filters. The first is the one that counts.
    pub refusals: Vec<NodeRefusal>,
    /// How plugins rate it, from 0 to 100, and what each counts. Only nodes that no plugin refuses are rated.
    pub scores: Vec<PluginScore>,
}

/// Why a plugin refuses a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRefusal {
    pub plugin: &'static str,
    pub reasons: Vec<Reason>,
    /// Whether the removal of pods from the node may help.
    pub resolvable: bool,
    /// How old the plugin's measures of the node are.
    pub input_age: Option<Duration>,
}

/// How a plugin rates a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginScore {
    pub plugin: &'static str,
    /// From 0 to 100.
    pub score: i64,
    /// How much it counts.
    pub weight: i64,
}

impl OnNode {
    /// The sum of the scores by their weights; none where the node is refused.
    pub fn total(&self) -> Option<i64> {
        self.refusals.is_empty().then(|| self.scores.iter().map(|one| one.score * one.weight).sum())
    }
}

impl Profile {
    /// What all plugins say about all nodes, in the order of rows. Nothing is cached, and PreFilter does not run.
    pub fn everywhere(&self, request: &Request<'_>, cluster: &Cluster) -> Vec<OnNode> {
        let mut prepared = self.prepare(request, cluster);
        let mut nodes: Vec<(Row, OnNode)> = cluster
            .rows()
            .map(|(row, node)| {
                let refusals = self.refusals(request, &prepared, cluster, row);
                (row, OnNode { node: Arc::clone(&node.name), refusals, scores: Vec::new() })
            })
            .collect();
        let passed: Vec<Row> = nodes.iter().filter(|(_, on)| on.refusals.is_empty()).map(|(row, _)| *row).collect();
        for scorer in &mut prepared.scores {
            let plugin = self.name_of(scorer.plugin);
            let rated = scorer.rate(cluster, &passed);
            let rows = nodes.iter_mut().filter(|(_, on)| on.refusals.is_empty());
            for ((_, on), score) in rows.zip(rated) {
                on.scores.push(PluginScore { plugin, score, weight: scorer.weight });
            }
        }
        nodes.into_iter().map(|(_, on)| on).collect()
    }

    /// The name of a plugin.
    pub fn name_of(&self, plugin: u8) -> &'static str {
        self.plugins.get(usize::from(plugin)).map_or("", |plugin| plugin.name())
    }

    /// How old a plugin's measures of a node are.
    pub fn input_age(&self, plugin: u8, cluster: &Cluster, row: Row) -> Option<Duration> {
        self.plugins.get(usize::from(plugin))?.diagnostics.as_ref()?.input_age(cluster, row)
    }

    fn refusals(&self, request: &Request<'_>, prepared: &Prepared, cluster: &Cluster, row: Row) -> Vec<NodeRefusal> {
        let of_all = prepared.refused.into_iter();
        let of_node = prepared.filters.iter().filter_map(|filter| filter.verdict(cluster, row));
        of_all
            .chain(prepared.subset.leaves_out(cluster, row))
            .chain(of_node)
            .map(|verdict| NodeRefusal {
                plugin: self.name_of(verdict.plugin),
                reasons: Reason::all_with_further(
                    self.reasons(&verdict, cluster),
                    &verdict.details(request, cluster, row),
                ),
                resolvable: verdict.refusal.resolvable,
                input_age: self.input_age(verdict.plugin, cluster, row),
            })
            .collect()
    }
}
