//! The CPUs and NUMA nodes of a node, counted anew.

use koord_scheduler_framework::{cluster::Cluster, columns::Row};

use super::{Ledger, NumaHold, NumaState};

impl NumaState {
    /// Compares what pods have of a node, and how it is set up, with its pods, its object and its report, and sets right what differs.
    pub fn audit_row(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        let holds = cluster.pods_on(row).filter_map(|placed| placed.holds.get::<NumaHold>());
        let ledger = holds.fold(Ledger::default(), |mut ledger, hold| {
            ledger.add(&self.allocation_of(hold));
            ledger
        });
        let actual = self.built(cluster, row, ledger);
        let cached = self.node(row).unwrap_or(&self.plain);
        if *cached == actual {
            return Vec::new();
        }
        let wrong = if cached.ledger == actual.ledger {
            ("numa_node", "a node or a report as it was instead of as it is".to_owned())
        } else {
            ("numa", format!("{} instead of {}", cached.ledger.words(), actual.ledger.words()))
        };
        self.set(row, actual);
        vec![wrong]
    }
}

#[cfg(test)]
mod tests {
    use koord_scheduler_framework::hold::Holds;
    use koord_scheduler_testing::{node, pod};
    use serde_json::json;

    use super::*;
    use crate::numa::node::NumaNode;

    /// What makes a sum wrong.
    type Spoil = fn(&mut NumaNode);

    #[test]
    fn what_pods_have_of_a_node_and_is_spoilt_is_found_and_counted_anew() {
        let spoil: [(&str, &str, Spoil); 3] = [
            (
                "numa",
                "0 CPUs of 0 pods and shares of 0 NUMA nodes instead of 2 CPUs of 1 pods and shares of 1 NUMA nodes",
                |node| {
                    node.ledger = Ledger::default();
                },
            ),
            (
                "numa",
                "2 CPUs of 1 pods and shares of 1 NUMA nodes instead of 2 CPUs of 1 pods and shares of 1 NUMA nodes",
                |node| {
                    node.ledger.add(&crate::numa::ledger::NumaAllocation {
                        shares: vec![(
                            0,
                            [(koord_scheduling::ResourceId::CPU, 5)]
                                .into_iter()
                                .fold(koord_scheduling::ResourceVector::default(), set),
                        )],
                        ..Default::default()
                    });
                },
            ),
            ("numa_node", "a node or a report as it was instead of as it is", |node| node.refs_max = 7),
        ];
        for (sum, details, spoil) in spoil {
            let mut cluster = Cluster::default();
            cluster.add_state(Box::<NumaState>::default());
            cluster.set_node(node("n", &json!({})));
            let shares = vec![(0, [("cpu", "2".parse().unwrap())].into_iter().collect())];
            let mut holds = Holds::default();
            holds.set(NumaHold { cpus: "0-1".parse().unwrap(), shares, ..NumaHold::default() });
            cluster.place(pod("p", &json!({})), &"n".into(), holds);
            let row = cluster.row("n").unwrap();
            assert_eq!(cluster.audit(row), []);
            let right = cluster.state::<NumaState>().unwrap().nodes.clone();
            spoil(cluster.state_mut::<NumaState>().unwrap().node_mut(row));
            let found: Vec<_> = cluster.audit(row).into_iter().map(|found| (found.sum, found.details)).collect();
            assert_eq!(found, [(sum, details.to_owned())]);
            assert_eq!(cluster.state::<NumaState>().unwrap().nodes, right);
        }
    }

    fn set(
        mut vector: koord_scheduling::ResourceVector,
        (resource, amount): (koord_scheduling::ResourceId, i64),
    ) -> koord_scheduling::ResourceVector {
        vector.set(resource, amount);
        vector
    }
}
