//! What the plugin keeps about the cluster: each node's CPUs and NUMA nodes, and what its pods have of them.

mod audit;

use std::collections::BTreeMap;

use koord_resource::ResourceList;
use koord_scheduler_framework::{
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    object::ObjectChange,
};
use koord_scheduling::{CpuSet, NumaMask, ParseCpuSetError, ResourceNames, ResourceVector};
use koord_types::{
    node_annotations::RESOURCE_AMPLIFICATION_RATIO,
    node_resource_topology::v1alpha1::NodeResourceTopology,
    numa::{NumaNodeResource, RESOURCE_STATUS, ResourceSpec, ResourceStatus},
};

use super::{
    ledger::{Ledger, NumaAllocation},
    node::{NumaNode, Settings},
    policy::Exclusive,
    report::Report,
};

/// What a pod has of its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumaHold {
    /// exclusive CPUs.
    pub cpus: CpuSet,
    /// What it does not share with pods that say the same.
    pub exclusive: Exclusive,
    /// What it has of each NUMA node.
    pub shares: Vec<(u32, ResourceList)>,
    /// The NUMA nodes of which it gets everything; none where it does not matter which.
    pub affinity: Option<NumaMask>,
    /// How its CPUs are bound, to be written into a pod that did not say it.
    pub spec: Option<ResourceSpec>,
}

#[derive(Clone, Debug, Default)]
pub struct NumaState {
    names: ResourceNames,
    reports: BTreeMap<Box<str>, Report>,
    /// By row. In most clusters few nodes are reported or set up: the others are [`NumaState::plain`].
    nodes: Vec<Option<Box<NumaNode>>>,
    /// A node of which nothing is reported, that is not set up, and of which no pod has anything.
    plain: NumaNode,
}

// === impl NumaHold ===

impl NumaHold {
    /// What an annotation records.
    ///
    /// # Errors
    ///
    /// Its CPUs cannot be read.
    pub fn of(status: &ResourceStatus, exclusive: Exclusive) -> Result<Self, ParseCpuSetError> {
        let share = |share: &NumaNodeResource| Some((u32::try_from(share.node).ok()?, share.resources.clone()));
        Ok(Self {
            cpus: status.cpus()?,
            exclusive,
            shares: status.numa_node_resources.iter().filter_map(share).collect(),
            ..Self::default()
        })
    }

    /// The same in numbers. Resources without a number are left out: what an annotation says beside them is of no NUMA node, and anybody may
    /// write it.
    pub fn allocation(&self, names: &ResourceNames) -> NumaAllocation {
        let shares = self.shares.iter().map(|(node, share)| (*node, within_reason(&names.known(share))));
        NumaAllocation { shares: shares.collect(), cpus: self.cpus.clone(), exclusive: self.exclusive }
    }

    /// As an annotation records it: its name and its text.
    pub fn status(&self) -> (&'static str, String) {
        let share = |(node, resources): &(u32, ResourceList)| {
            Some(NumaNodeResource { node: i32::try_from(*node).ok()?, resources: resources.clone() })
        };
        let numa_node_resources = self.shares.iter().filter_map(share).collect();
        let status = ResourceStatus { cpuset: self.cpus.to_string(), numa_node_resources };
        (RESOURCE_STATUS.name(), koord_types::protocol::Text::write(&status))
    }
}

// === impl NumaState ===

impl NumaState {
    /// The node of a row.
    pub fn node(&self, row: Row) -> Option<&NumaNode> {
        self.nodes.get(row.index()).map(|node| node.as_deref().unwrap_or(&self.plain))
    }

    /// Whether there is a report of a node.
    pub fn is_reported(&self, node: &str) -> bool {
        self.reports.contains_key(node)
    }

    /// The names of resources as the nodes number them.
    pub fn names(&self) -> &ResourceNames {
        &self.names
    }

    /// Amounts in the numbers of the nodes. Resources that no NUMA node reports are left out.
    pub fn vector(&self, list: &ResourceList) -> ResourceVector {
        self.names.known(list)
    }

    /// What a pod has, in the numbers of the nodes.
    pub fn allocation_of(&self, hold: &NumaHold) -> NumaAllocation {
        hold.allocation(&self.names)
    }

    fn node_mut(&mut self, row: Row) -> &mut NumaNode {
        self.slot(row).get_or_insert_default()
    }

    fn slot(&mut self, row: Row) -> &mut Option<Box<NumaNode>> {
        if self.nodes.len() <= row.index() {
            self.nodes.resize(row.index() + 1, None);
        }
        &mut self.nodes[row.index()]
    }

    fn set(&mut self, row: Row, node: NumaNode) {
        let node = (node != self.plain).then(|| Box::new(node));
        *self.slot(row) = node;
    }

    /// A resource is reported that was not before: what pods have of it counts from now on. Gives the rows where they have some.
    fn count_anew(&mut self, cluster: &Cluster) -> Vec<Row> {
        let rows = (0..self.nodes.len()).filter_map(Row::at);
        rows.filter(|row| !self.audit_row(cluster, *row).is_empty()).collect()
    }

    /// The node of a row as it is reported and set up now, with what its pods have.
    fn rebuild(&mut self, cluster: &Cluster, row: Row) {
        let ledger = self.slot(row).take().map(|node| node.ledger).unwrap_or_default();
        let node = self.built(cluster, row, ledger);
        self.set(row, node);
    }

    fn built(&self, cluster: &Cluster, row: Row, ledger: Ledger) -> NumaNode {
        let none = Report::default();
        let (report, settings) = match cluster.node(row) {
            None => (&none, Settings::default()),
            Some(node) => {
                let ratios = node.annotations.get(RESOURCE_AMPLIFICATION_RATIO.name());
                let ratios = ratios.map(|text| RESOURCE_AMPLIFICATION_RATIO.read(text).ok());
                let report = self.reports.get(&*node.name).unwrap_or(&none);
                let is_ratio_unreadable = ratios.as_ref().is_some_and(Option::is_none);
                let settings = Settings::of(|key| node.labels.get(key), ratios.flatten().unwrap_or_default());
                (report, Settings { is_ratio_unreadable, ..settings })
            }
        };
        NumaNode::new(report, &settings, &self.names, ledger)
    }
}

/// Amounts from 0 to a pebibyte, so that the sum of all pods of a node cannot overflow whatever an annotation says.
fn within_reason(amounts: &ResourceVector) -> ResourceVector {
    const AMOUNT_MAX: i64 = 1 << 50;
    amounts.iter().fold(ResourceVector::default(), |mut within, (resource, amount)| {
        within.set(resource, amount.clamp(0, AMOUNT_MAX));
        within
    })
}

impl State for NumaState {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        if let Some(hold) = placed.holds.get::<NumaHold>() {
            let allocation = self.allocation_of(hold);
            self.node_mut(placed.row).add(&allocation);
        }
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        if let Some(hold) = placed.holds.get::<NumaHold>() {
            let allocation = self.allocation_of(hold);
            self.node_mut(placed.row).remove(&allocation);
        }
    }

    fn audit(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        self.audit_row(cluster, row)
    }

    fn node(&mut self, cluster: &Cluster, row: Row) {
        self.rebuild(cluster, row);
    }

    fn object(&mut self, cluster: &Cluster, change: &ObjectChange) -> Vec<Row> {
        let (Some((_, new)), Some(key)) = (change.of::<NodeResourceTopology>(), change.key()) else {
            return Vec::new();
        };
        let known = self.names.len();
        match new {
            Some(NodeResourceTopology { metadata, topology_policies, zones }) => {
                let report = Report::of(metadata, zones, topology_policies, &mut self.names);
                self.reports.insert(key.name().into(), report);
            }
            None => _ = self.reports.remove(key.name()),
        }
        let row = cluster.row(key.name());
        let mut rows: Vec<Row> = row.into_iter().inspect(|row| self.rebuild(cluster, *row)).collect();
        if self.names.len() > known {
            rows.extend(self.count_anew(cluster));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduling::ResourceId;

    use super::*;

    #[test]
    fn shares_that_cannot_be_are_read_as_what_a_node_could_have() {
        let share = |amount: &str| {
            let shares = vec![(0, [("memory", amount.parse().unwrap())].into_iter().collect())];
            let allocation = NumaState::default().allocation_of(&NumaHold { shares, ..NumaHold::default() });
            allocation.shares[0].1.get(ResourceId::MEMORY)
        };
        assert_eq!(["-5", "7", "9223372036854775807"].map(share), [0, 7, 1 << 50]);
    }
}
