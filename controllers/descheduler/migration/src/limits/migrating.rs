//! The pods that migrate, counted.

use std::collections::BTreeMap;

use koord_core::uid::Uid;
use koord_descheduler_framework::{NodeId, Pod, PodId};

use crate::{
    jobs::MigrationJob,
    workloads::{KnownWorkload, Workloads},
};

/// The jobs that count for limits, with the indexes that make a check cheap.
#[derive(Debug, Default)]
pub(crate) struct Migrating {
    /// By the number of a pod: how many of the jobs are its own.
    jobs_of_pod: Vec<u32>,
    jobs: usize,
    /// The jobs of each namespace.
    by_namespace: BTreeMap<Box<str>, usize>,
    /// By the number of a node: its pods.
    by_node: Vec<usize>,
    by_workload: BTreeMap<Uid, WorkloadCounts>,
}

/// The pods of a workload that migrate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorkloadCounts {
    pub(crate) pods: usize,
    /// Those of them that are available until then.
    pub(crate) available: usize,
}

impl Migrating {
    /// Counts these jobs.
    pub(crate) fn new<'a>(workloads: &Workloads<'a>, jobs: impl Iterator<Item = &'a MigrationJob>) -> Self {
        let cluster = workloads.cluster();
        let (jobs_of_pod, by_node) = (vec![0; cluster.pods_max()], vec![0; cluster.nodes_max()]);
        let mut migrating = Self { jobs_of_pod, by_node, ..Self::default() };
        for job in jobs {
            match job.pod_in(cluster) {
                Some((id, pod)) => migrating.add(workloads, id, pod),
                None => migrating.add_job(job.pod.as_ref().map_or("", |pod| pod.namespace())),
            }
        }
        migrating
    }

    /// Adds a job of a pod.
    pub(crate) fn add(&mut self, workloads: &Workloads<'_>, id: PodId, pod: &Pod) {
        self.add_job(pod.namespace());
        let Some(jobs) = self.jobs_of_pod.get_mut(id.index()) else { return };
        *jobs += 1;
        if *jobs > 1 {
            return;
        }
        let node = workloads.cluster().bound_to(id);
        if let Some(pods) = node.and_then(|node| self.by_node.get_mut(node.index())) {
            *pods += 1;
        }
        let (Some(resolution), Some(controller)) = (workloads.of(id, pod), pod.controller()) else { return };
        // Pods of a workload that is not known count by their controller.
        let workload = resolution.as_ref().as_ref().map_or(&controller.uid, |KnownWorkload { uid, .. }| uid);
        let counts = self.by_workload.entry(workload.clone()).or_default();
        counts.pods += 1;
        counts.available += usize::from(pod.is_available());
    }

    fn add_job(&mut self, namespace: &str) {
        self.jobs += 1;
        match self.by_namespace.get_mut(namespace) {
            Some(jobs) => *jobs += 1,
            None => drop(self.by_namespace.insert(namespace.into(), 1)),
        }
    }

    /// How many of the jobs are a pod's own.
    pub(crate) fn jobs_of(&self, id: PodId) -> usize {
        self.jobs_of_pod.get(id.index()).map_or(0, |jobs| *jobs as usize)
    }

    /// How many jobs other pods have.
    pub(crate) fn jobs_of_others(&self, id: PodId) -> usize {
        self.jobs.saturating_sub(self.jobs_of(id))
    }

    /// How many jobs other pods of a pod's namespace have.
    pub(crate) fn in_namespace(&self, namespace: &str, id: PodId) -> usize {
        self.by_namespace.get(namespace).map_or(0, |jobs| jobs.saturating_sub(self.jobs_of(id)))
    }

    /// How many other pods of a pod's node migrate.
    pub(crate) fn on_node(&self, node: NodeId, id: PodId) -> usize {
        self.by_node.get(node.index()).map_or(0, |pods| pods.saturating_sub(self.itself(id)))
    }

    /// The other pods of a pod's workload that migrate.
    pub(crate) fn of_workload(&self, workload: &Uid, id: PodId, pod: &Pod) -> WorkloadCounts {
        let counts = self.by_workload.get(workload).copied().unwrap_or_default();
        let itself = self.itself(id);
        WorkloadCounts {
            pods: counts.pods.saturating_sub(itself),
            available: counts.available.saturating_sub(if pod.is_available() { itself } else { 0 }),
        }
    }

    fn itself(&self, id: PodId) -> usize {
        usize::from(self.jobs_of(id) > 0)
    }
}
