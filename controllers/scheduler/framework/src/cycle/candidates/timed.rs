//! How long single filters and scores take: they are asked about one node once more, and not timed while all are asked.

use super::Candidates;
use crate::{
    Found, Profile,
    cluster::Cluster,
    cycle::{filtering::Filtering, scorer::Scorer},
    timing::{ExtensionPoint, Timing},
};

impl Candidates {
    /// Times filters and scores by asking them about one node once more: the one that was found, or one that was refused last. Scores
    /// that compare nodes with each other say nothing about one alone.
    pub(in crate::cycle) fn time_one_node(
        &self,
        profile: &Profile,
        found: &Found,
        cluster: &mut Cluster,
        timing: &mut impl Timing,
    ) {
        let row = match found {
            Found::Node { row, .. } => Some(*row),
            Found::Nothing(refusals) => refusals.nearest(),
            Found::Never(..) => None,
        };
        let Some(row) = row else { return };
        cluster.exclude_on(row);
        let cluster = &*cluster;
        for Filtering { plugin, filter, .. } in &self.prepared.filters {
            let Some(registration) = profile.plugins.get(usize::from(*plugin)) else { continue };
            if timing.call(registration, ExtensionPoint::Filter, || filter.filter(cluster, row)).is_err() {
                return;
            }
        }
        if !matches!(found, Found::Node { .. }) {
            return;
        }
        for Scorer { plugin, score, .. } in self.prepared.scores.iter().filter(|scorer| scorer.is_part_of_rows()) {
            if let Some(registration) = profile.plugins.get(usize::from(*plugin)) {
                timing.call(registration, ExtensionPoint::Score, || score.score(cluster, row));
            }
        }
    }
}
