//! The order in which jobs that wait may start.

use std::{cmp::Reverse, collections::BTreeMap};

use koord_core::uid::Uid;
use koord_descheduler_framework::{
    Cluster, Pod,
    order::{by_importance, newest},
};

use super::Waiting;
use crate::jobs::MigrationJob;

/// Four stable sorts, of which the last dominates: the newest job first; jobs without pod and then those of the least important pods first; the jobs of one
/// batch Job together, at the place of the first of them; and first those whose batch Job has most pods migrating.
pub(super) fn in_order<'a>(
    mut waiting: Vec<Waiting<'a>>,
    cluster: &'a Cluster,
    migrating: impl Iterator<Item = &'a MigrationJob>,
) -> Vec<Waiting<'a>> {
    waiting.sort_by_key(|waiting| Reverse(waiting.job.created));
    waiting.sort_by_cached_key(|waiting| waiting.pod.map(|(_, pod)| (by_importance(pod), newest(pod))));
    let mut first_of = BTreeMap::<&Uid, usize>::new();
    let mut places = Vec::with_capacity(waiting.len());
    for (index, waiting) in waiting.into_iter().enumerate() {
        let place = batch_job(&waiting).map_or(index, |batch_job| *first_of.entry(batch_job).or_insert(index));
        places.push((place, waiting));
    }
    places.sort_by_key(|(place, _)| *place);
    let mut migrating_of = BTreeMap::<&Uid, usize>::new();
    for (_, pod) in migrating.filter_map(|job| job.pod_in(cluster)) {
        if let Some(batch_job) = batch_job_of(pod) {
            *migrating_of.entry(batch_job).or_default() += 1;
        }
    }
    let count = |waiting: &Waiting<'a>| batch_job(waiting).and_then(|batch_job| migrating_of.get(batch_job)).copied();
    places.sort_by_key(|(_, waiting)| Reverse(count(waiting).unwrap_or(0)));
    places.into_iter().map(|(_, waiting)| waiting).collect()
}

/// The batch Job that controls the pod of a job.
fn batch_job<'a>(waiting: &Waiting<'a>) -> Option<&'a Uid> {
    waiting.pod.and_then(|(_, pod)| batch_job_of(pod))
}

fn batch_job_of(pod: &Pod) -> Option<&Uid> {
    let owner = pod.controller()?;
    (&*owner.kind == "Job" && owner.api_version.starts_with("batch/")).then_some(&owner.uid)
}
