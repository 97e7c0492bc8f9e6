//! The engine's sums over all rows.

use std::collections::BTreeSet;

use koord_core::uid::Uid;
use koord_scheduling::ResourceId;

use super::{Cluster, Mismatch, Subject};
use crate::{
    cluster::{images::Images, rows_of},
    columns::Row,
};

impl Cluster {
    /// How many parts [`Cluster::audit_whole`] knows.
    pub fn audit_parts(&self) -> usize {
        self.states.len() + 1
    }

    /// Compares a part of what is summed up of the cluster as a whole with what the objects amount to. What differs is set right,
    /// and everything is evaluated anew about all rows.
    pub fn audit_whole(&mut self, part: usize) -> Vec<Mismatch> {
        let found = match part.checked_sub(1) {
            None => self.audit_totals(),
            Some(state) => self.with_states(|states, cluster| {
                states.iter_mut().nth(state).map(|state| state.audit_whole(cluster)).unwrap_or_default()
            }),
        };
        if !found.is_empty() {
            let rows: Vec<Row> = self.rows.values().copied().collect();
            for row in rows {
                self.log.note(row);
            }
        }
        found
    }

    fn audit_totals(&mut self) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let mut mismatch = |sum, details| found.push(Mismatch::new(Subject::Cluster, sum, details));
        if let Some(details) = self.audit_pods_by_row() {
            mismatch("pods_by_row", details);
        }
        let nodes = || self.rows().map(|(_, node)| node);
        let [nodes, softly_tainted] = [nodes().count(), nodes().filter(|node| node.is_softly_tainted()).count()];
        let assumed = self.pods().filter(|placed| placed.pod.node.is_none()).count();
        for (sum, cached, actual) in [
            ("nodes", &mut self.nodes, nodes),
            ("softly_tainted", &mut self.softly_tainted, softly_tainted),
            ("assumed", &mut self.assumed, assumed),
        ] {
            if *cached != actual {
                mismatch(sum, format!("{cached} instead of {actual}"));
                *cached = actual;
            }
        }
        let classes = self.recount_classes();
        if let Some(details) = self.population.audit(&classes) {
            mismatch("classes", details);
        }
        if let Some(details) = self.numbering.audit(&self.allocatable, self.slots.len()) {
            mismatch("nodes_by_resource", details);
        }
        if let Some(details) = self.audit_images() {
            mismatch("images", details);
        }
        if let Some(details) = self.topologies.audit_domains() {
            mismatch("nodes_by_domain", details);
        }
        found
    }

    /// Compares which pods a row names with those that are on it, and sets right what differs.
    pub(super) fn audit_pods_of(&mut self, row: Row) -> Option<String> {
        let before = self.slots.get(row.index())?.pods.clone();
        let is_there = |uid: &Uid| self.pods.get(uid).is_some_and(|placed| placed.row == row);
        let is_sound = before.is_sorted_by(|one, next| one < next) && before.iter().all(is_there);
        // Whether there are others is known by all pods alone, which are looked through where their number is in doubt.
        if is_sound && usize::try_from(self.requested(ResourceId::PODS, row)) == Ok(before.len()) {
            return None;
        }
        self.recount_pods_by_row();
        let pods = &self.slots.get(row.index())?.pods;
        (*pods != before).then(|| format!("{} instead of {}", before.len(), pods.len()))
    }

    /// Notes anew which pods each row has.
    fn recount_pods_by_row(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.pods.clear());
        for (uid, placed) in &self.pods {
            if let Some(slot) = self.slots.get_mut(placed.row.index()) {
                slot.pods.push(uid.clone());
            }
        }
    }

    fn audit_pods_by_row(&mut self) -> Option<String> {
        let named: usize = self.slots.iter().map(|slot| slot.pods.len()).sum();
        (named != self.pods.len()).then(|| {
            self.recount_pods_by_row();
            format!("{named} instead of {}", self.pods.len())
        })
    }

    /// How many pods each class has, and on which rows, by its index.
    fn recount_classes(&self) -> Vec<(u64, BTreeSet<Row>)> {
        let mut classes = Vec::new();
        for row in self.rows.values() {
            for residents in self.residents(*row) {
                classes.resize_with(classes.len().max(residents.index + 1), Default::default);
                let (pods, rows): &mut (u64, BTreeSet<Row>) = &mut classes[residents.index];
                *pods += u64::from(residents.pods);
                rows.insert(*row);
            }
        }
        classes
    }

    /// Compares how many images nodes have; that each of them has its own is looked at by row.
    fn audit_images(&mut self) -> Option<String> {
        let listed: usize = self.rows().map(|(_, node)| node.images.len()).sum();
        if self.images.copies() == listed {
            return None;
        }
        let actual = rows_of(&self.slots).fold(Images::default(), |mut images, (row, node)| {
            images.change(row, None, Some(node));
            images
        });
        self.images.audit(actual)
    }
}
