//! Nodes with nominated pods: whether they take a pod beside these.

use std::collections::BTreeMap;

use super::Candidates;
use crate::{Found, Profile, Refusals, Verdict, cluster::Cluster, columns::Row, pod::Pod};

impl Candidates {
    /// The rows that would take the pod, but not beside the nominated pods that go before it.
    pub(in crate::cycle) fn held_rows(
        &mut self,
        profile: &Profile,
        pod: &Pod,
        cluster: &mut Cluster,
    ) -> BTreeMap<Row, Verdict> {
        let nominated = cluster.nominated_rows();
        if !nominated.is_empty() {
            cluster.exclude_all();
        }
        let rows: Vec<Row> = nominated.into_iter().filter(|row| self.takes(*row, cluster)).collect();
        let refused = rows.into_iter().filter_map(|row| {
            let beside = profile.nominated_before(pod, row, cluster);
            let verdict = self.prepared.filter_beside(&mut cluster.trial(), row, &beside).err()?;
            Some((row, verdict))
        });
        refused.collect()
    }

    /// A search that has found nothing, where nodes with nominated pods have the reason for which they refuse the pod beside those for
    /// which it is made, though they refuse it without them too.
    pub(in crate::cycle) fn refused_beside(
        &mut self,
        held: &BTreeMap<Row, Verdict>,
        profile: &Profile,
        pod: &Pod,
        cluster: &mut Cluster,
        mut refusals: Refusals,
    ) -> Found {
        for row in cluster.nominated_rows().into_iter().filter(|row| !held.contains_key(row)) {
            let beside = profile.nominated_before(pod, row, cluster);
            let without = self.prepared.filter(cluster, row).err();
            let with = self.prepared.filter_beside(&mut cluster.trial(), row, &beside).err();
            let (Some(without), Some(with)) = (without, with) else { continue };
            refusals.change(without, with, row);
        }
        Found::Nothing(refusals)
    }
}
