//! Sums that are not what the objects amount to, for tests of histories.

use std::{collections::BTreeMap, sync::Arc};

use super::{Cluster, Residents};
use crate::columns::Row;

/// A sum that is not what the objects amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discrepancy {
    pub node: Arc<str>,
    pub what: String,
    pub cached: i64,
    /// What the objects amount to.
    pub actual: i64,
}

impl Cluster {
    /// The sums that are not what the objects amount to, which never happens.
    pub fn discrepancies(&self) -> Vec<Discrepancy> {
        let mut rebuilt = Self { resources: self.resources.clone(), ..Self::default() };
        for slot in self.slots.iter().filter_map(|slot| slot.node.as_ref()) {
            rebuilt.set_node(Arc::clone(slot));
        }
        for (name, row) in &self.rows {
            self.pods_on(*row).for_each(|placed| rebuilt.place(Arc::clone(&placed.pod), name, placed.holds.clone()));
        }
        let mut found = Vec::new();
        for (name, row) in &self.rows {
            let twin = rebuilt.rows.get(name).copied();
            let cached = self.sums(*row);
            let actual = twin.map(|twin| rebuilt.sums(twin)).unwrap_or_default();
            for (what, cached) in cached {
                let actual = actual.get(&what).copied().unwrap_or(0);
                if cached != actual {
                    found.push(Discrepancy { node: Arc::clone(name), what, cached, actual });
                }
            }
        }
        found
    }

    pub(super) fn sums(&self, row: Row) -> BTreeMap<String, i64> {
        let mut sums = BTreeMap::new();
        for (column, part) in [(&self.allocatable, "allocatable"), (&self.requested, "requested")] {
            for (index, amount) in column.row(row).enumerate() {
                let name = self.resources.names().nth(index).unwrap_or_default();
                sums.insert(format!("{part} {name}"), amount);
            }
        }
        for Residents { class, pods, deleting, .. } in self.residents(row) {
            let labels: Vec<String> =
                class.template().labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let whose = format!("{} {}", class.template().namespace, labels.join(","));
            *sums.entry(format!("pods of {whose}")).or_default() += i64::from(*pods);
            *sums.entry(format!("deleted pods of {whose}")).or_default() += i64::from(*deleting);
        }
        let [cpu, memory] = self.assumed_usage(row);
        sums.extend([("assumed cpu".to_owned(), cpu), ("assumed memory".to_owned(), memory)]);
        sums
    }
}
