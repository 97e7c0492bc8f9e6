//! The audit: what is summed up is compared with what the objects amount to.

use koord_scheduler_framework::{
    cluster::{Mismatch, Turn},
    columns::Row,
    cycle::CandidateCache,
};

use super::Engine;

impl Engine {
    /// Compares sums with what the objects amount to, of so many rows or of a part of the cluster as a whole, and sets right what
    /// differs. Gives what differed, and where to go on; nowhere after the last part of a round.
    pub fn audit(&mut self, turn: Turn, rows: usize) -> (Vec<Mismatch>, Option<Turn>) {
        let (found, next) = match turn {
            Turn::Rows(from) => {
                let end = from.saturating_add(rows).min(self.cluster.width());
                let among = (from..end).filter_map(Row::at);
                let found: Vec<Mismatch> = among.flat_map(|row| self.cluster.audit(row)).collect();
                (found, Some(if end < self.cluster.width() { Turn::Rows(end) } else { Turn::Whole(0) }))
            }
            Turn::Whole(part) => {
                let next = part + 1;
                (self.cluster.audit_whole(part), (next < self.cluster.audit_parts()).then_some(Turn::Whole(next)))
            }
        };
        if !found.is_empty() {
            // What was decided by a wrong sum is decided anew.
            self.candidate_caches.iter_mut().for_each(CandidateCache::clear);
            self.has_changed = true;
        }
        (found, next)
    }

    /// A whole round of [`Engine::audit`].
    pub fn audit_all(&mut self) -> Vec<Mismatch> {
        let (mut found, mut turn) = (Vec::new(), Some(Turn::default()));
        while let Some(at) = turn {
            let (some, next) = self.audit(at, usize::MAX);
            found.extend(some);
            turn = next;
        }
        found
    }
}
