//! Pods that are tried on nodes together, by plugins that place several at once or preempt for them.

use std::sync::Arc;

use koord_core::uid::Uid;

use super::{Prepared, Profile, Verdict};
use crate::{
    AttemptState, Rejection, Request,
    cluster::{Class, Cluster, Mark, Placed, Trial},
    columns::Row,
    hold::Holds,
    pod::Pod,
};

/// A trial in which pods take their places one after the other, each with what plugins reserve for it there. All of it is
/// undone at the end.
pub struct Rehearsal<'c> {
    profile: &'c Profile,
    trial: Trial<'c>,
    pods: Vec<RehearsedPod>,
    prepared: Vec<Prepared>,
    steps: Vec<(Placed, bool)>,
    /// How many pods the last node took.
    last_capacity: usize,
}

/// A pod, with the index of what is asked of nodes for it.
struct RehearsedPod {
    pod: Arc<Pod>,
    class: Arc<Class>,
    state: AttemptState,
    prepared: usize,
    /// How many pods that are evaluated alike come from this one on.
    alike: usize,
}

/// What a node takes of the pods of a rehearsal.
#[derive(Debug, PartialEq, Eq)]
pub struct Filled {
    /// How many of them, one after the other from the first on.
    pub pods: usize,
    /// Why it does not take the next one; none where it takes all.
    pub refused: Option<NotNext>,
}

/// Why a node does not take the next pod.
#[derive(Debug, PartialEq, Eq)]
pub enum NotNext {
    /// A filter refuses it.
    Filter(Verdict),
    /// There is nothing left to be reserved for it.
    Reserve(Rejection),
}

/// How far a rehearsal has come, to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    mark: Mark,
    steps: usize,
}

impl<'c> Rehearsal<'c> {
    /// A rehearsal with these pods, none of which has a place yet.
    pub fn new(profile: &'c Profile, cluster: &'c mut Cluster, pods: &[Arc<Pod>]) -> Self {
        let (mut rehearsed, mut prepared, mut known) = (Vec::<RehearsedPod>::new(), Vec::new(), Vec::new());
        for pod in pods {
            let class = cluster.class(&pod.template);
            let is_individual = profile.is_individual(pod, cluster);
            let alike = known.iter().find(|(id, _)| !is_individual && *id == class.id()).map(|(_, index)| *index);
            let index = alike.unwrap_or_else(|| {
                let request =
                    Request { pod, class: &class, plugins: &profile.plugins, state: &AttemptState::default() };
                prepared.push(profile.prepare(&request, cluster));
                prepared.len() - 1
            });
            if !is_individual {
                known.push((class.id(), index));
            }
            let (pod, state) = (Arc::clone(pod), AttemptState::default());
            rehearsed.push(RehearsedPod { pod, class, state, prepared: index, alike: 1 });
        }
        for at in (1..rehearsed.len()).rev() {
            if rehearsed[at - 1].prepared == rehearsed[at].prepared {
                rehearsed[at - 1].alike = rehearsed[at].alike + 1;
            }
        }
        Self { profile, trial: cluster.trial(), pods: rehearsed, prepared, steps: Vec::new(), last_capacity: 0 }
    }

    /// The cluster as it would be.
    pub fn cluster(&self) -> &Cluster {
        &self.trial
    }

    pub fn pods(&self) -> impl ExactSizeIterator<Item = &Arc<Pod>> {
        self.pods.iter().map(|rehearsed| &rehearsed.pod)
    }

    /// Whether plugins other than the named one admit a pod to the cluster as it would be.
    pub fn admit(&self, pod: usize, but: &str) -> Result<(), Rejection> {
        let Some(rehearsed) = self.pods.get(pod) else { return Ok(()) };
        let request = rehearsed.request(self.profile);
        let admits = &self.profile.admits;
        let first = self.profile.at(admits, |plugin| &plugin.before_pre_filter);
        for (_, _, point) in first.filter(|(_, plugin, _)| plugin.name() != but) {
            point.before_pre_filter(&request, &self.trial)?;
        }
        let second = self.profile.at(admits, |plugin| &plugin.pre_filter);
        for (_, _, point) in second.filter(|(_, plugin, _)| plugin.name() != but) {
            point.pre_filter(&request, &self.trial)?;
        }
        Ok(())
    }

    /// Whether a node takes a pod beside all that have their places, and beside the pods that are nominated to it.
    pub fn takes(&mut self, pod: usize, row: Row) -> Result<(), Verdict> {
        let Some(rehearsed) = self.pods.get(pod) else { return Ok(()) };
        let beside = self.beside(rehearsed, row);
        let Some(prepared) = self.prepared.get_mut(rehearsed.prepared) else { return Ok(()) };
        prepared.refused.map_or(Ok(()), Err)?;
        prepared.filter_beside(&mut self.trial, row, &beside)
    }

    /// The pods that are nominated to a node, other than those of the rehearsal, and that go before one of these.
    fn beside(&self, rehearsed: &RehearsedPod, row: Row) -> Vec<Arc<Pod>> {
        let mut beside = self.profile.nominated_before(&rehearsed.pod, row, &self.trial);
        beside.retain(|other| self.pods.iter().all(|rehearsed| rehearsed.pod.uid != other.uid));
        beside
    }

    /// Puts a pod in its place, with what plugins reserve for it.
    pub fn place(&mut self, pod: usize, row: Row) -> Result<(), Rejection> {
        let Some(rehearsed) = self.pods.get(pod) else { return Ok(()) };
        let mut holds = Holds::default();
        for (_, _, point) in self.profile.at(&self.profile.reserves, |plugin| &plugin.reserve) {
            point.reserve(&rehearsed.request(self.profile), &self.trial, row, &mut holds)?;
        }
        let pod = Arc::clone(&rehearsed.pod);
        self.put(pod, row, holds);
        Ok(())
    }

    /// How many of the pods a node takes, one after the other. None of them stays there.
    pub fn fill(&mut self, row: Row) -> Filled {
        let point = self.point();
        let (mut pods, mut refused) = (0, None);
        while refused.is_none() && pods < self.pods.len() {
            let (taken, next) = self.fill_alike(pods, row);
            pods += taken;
            refused = next;
        }
        self.back_to(point);
        Filled { pods, refused }
    }

    /// How many of the pods that are alike from this one on a node takes, and why not the next of them. Where it takes all, they
    /// have their places there afterwards for those that follow.
    fn fill_alike(&mut self, first: usize, row: Row) -> (usize, Option<NotNext>) {
        let next = first + self.pods.get(first).map_or(0, |rehearsed| rehearsed.alike);
        let capacity = self.capacity(first, row);
        self.last_capacity = capacity.map_or(self.last_capacity, |(capacity, _)| capacity);
        match capacity {
            Some((capacity, Some(verdict))) => return (capacity, Some(NotNext::Filter(verdict))),
            Some((capacity, None)) if next == self.pods.len() => return (capacity, None),
            _ => {}
        }
        for pod in first..next {
            let taken = if capacity.is_some() { Ok(()) } else { self.takes(pod, row).map_err(NotNext::Filter) };
            if let Err(refused) = taken.and_then(|()| self.place(pod, row).map_err(NotNext::Reserve)) {
                return (pod - first, Some(refused));
            }
        }
        (next - first, None)
    }

    /// How many of the pods that are alike from this one on a node takes, and the verdict about the next of them; `None` when only
    /// trying shows it.
    fn capacity(&self, first: usize, row: Row) -> Option<(usize, Option<Verdict>)> {
        let rehearsed = self.pods.get(first)?;
        let prepared = self.prepared.get(rehearsed.prepared)?;
        if let Some(refused) = prepared.refused {
            return Some((0, Some(refused)));
        }
        if self.beside(rehearsed, row).is_empty() {
            prepared.capacity(&self.trial, row, rehearsed.alike, self.last_capacity)
        } else {
            None
        }
    }

    /// Takes a pod from its place.
    pub fn remove(&mut self, uid: &Uid) {
        if let Some(placed) = self.trial.pod(uid).cloned() {
            self.trial.remove(uid);
            self.step(placed, false);
        }
    }

    /// Puts a pod back where it was.
    pub fn put_back(&mut self, placed: &Placed) {
        self.put(Arc::clone(&placed.pod), placed.row, placed.holds.clone());
    }

    /// The point that the rehearsal has come to.
    pub fn point(&self) -> Checkpoint {
        Checkpoint { mark: self.trial.mark(), steps: self.steps.len() }
    }

    /// Undoes what was done since.
    pub fn back_to(&mut self, point: Checkpoint) {
        self.trial.back_to(point.mark);
        while self.steps.len() > point.steps {
            let Some((placed, was_added)) = self.steps.pop() else { return };
            self.prepared.iter_mut().for_each(|prepared| prepared.changed(&self.trial, &placed, !was_added));
        }
    }

    fn put(&mut self, pod: Arc<Pod>, row: Row, holds: Holds) {
        let uid = pod.uid.clone();
        self.trial.place(pod, row, holds);
        if let Some(placed) = self.trial.pod(&uid).cloned() {
            self.step(placed, true);
        }
    }

    fn step(&mut self, placed: Placed, is_added: bool) {
        self.prepared.iter_mut().for_each(|prepared| prepared.changed(&self.trial, &placed, is_added));
        self.steps.push((placed, is_added));
    }
}

impl RehearsedPod {
    fn request<'a>(&'a self, profile: &'a Profile) -> Request<'a> {
        Request { pod: &self.pod, class: &self.class, plugins: &profile.plugins, state: &self.state }
    }
}
