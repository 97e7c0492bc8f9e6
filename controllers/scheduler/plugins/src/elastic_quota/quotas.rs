//! The quotas of the cluster with what their pods request and use, kept up to date.

use std::{collections::BTreeMap, sync::Arc};

use koord_api::elastic_quota::ElasticQuota;
use koord_core::key::ObjectKey;
use koord_engine::{
    cluster::{Cluster, Placed},
    columns::Row,
    object::ObjectChange,
    pod::{Pod, Template},
    state::State,
};
use koord_quota::Quota;
use koord_resource::ResourceList;

use super::{Claim, Counted, Forest, Ledger, QuotaStatus, Settings, Shortage, is_preemptible};

/// The quotas of the cluster.
#[derive(Clone, Debug)]
pub struct Quotas {
    ledger: Ledger,
    /// By the keys of their objects.
    read: BTreeMap<ObjectKey, Quota>,
    /// What nodes offer, by row.
    offered: Vec<Option<ResourceList>>,
}

impl Quotas {
    /// Of no cluster.
    pub fn new(settings: Settings) -> Self {
        Self { ledger: Ledger::new(settings), read: BTreeMap::new(), offered: Vec::new() }
    }

    /// The quotas as trees.
    pub fn forest(&self) -> &Forest {
        self.ledger.forest(self.read.values())
    }

    /// How quotas limit pods.
    pub fn settings(&self) -> &Settings {
        self.ledger.settings()
    }

    /// The name of the quota of a template's pods; none where they belong to none.
    pub fn quota_of(&self, template: &Template) -> Option<&Arc<str>> {
        self.forest().quota_of(&Claim::of(template))
    }

    /// Whether the quota of a template has room for one more of its pods.
    pub fn check(&self, template: &Template) -> Result<(), Shortage> {
        counted(template, |pod| self.forest().check(self.settings(), pod))
    }

    /// What is to be written about a quota; none where there is no such quota.
    pub fn status(&self, name: &str) -> Option<QuotaStatus> {
        QuotaStatus::of(self.forest(), self.settings(), name)
    }

    /// Whether a pod counts. A reservation has no quota, though its pods have one.
    fn counts(&self, pod: &Pod) -> bool {
        !(pod.is_reservation() || pod.deleting && self.settings().ignores_deleting)
    }
}

fn counted<T>(template: &Template, with: impl FnOnce(Counted<'_>) -> T) -> T {
    let claim = Claim::of(template);
    with(Counted { claim: &claim, requests: &template.requests, is_preemptible: is_preemptible(template) })
}

/// What decides of an object. The scheduler's own annotations are no change.
fn decisive(object: &ElasticQuota) -> Quota {
    Quota { guaranteed: ResourceList::new(), requested: ResourceList::new(), ..Quota::from(object) }
}

impl State for Quotas {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        if self.counts(&placed.pod) {
            counted(&placed.pod.template, |pod| self.ledger.place(pod));
        }
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        if self.counts(&placed.pod) {
            counted(&placed.pod.template, |pod| self.ledger.unplace(pod));
        }
    }

    fn pod(&mut self, _: &Cluster, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        let [old, new] = [old, new].map(|pod| pod.filter(|pod| self.counts(pod)).map(|pod| &pod.template));
        if let (Some(old), Some(new)) = (old, new)
            && Arc::ptr_eq(old, new)
        {
            return;
        }
        if let Some(new) = new {
            counted(new, |pod| self.ledger.request(pod));
        }
        if let Some(old) = old {
            counted(old, |pod| self.ledger.unrequest(pod));
        }
    }

    fn node(&mut self, cluster: &Cluster, row: Row) {
        if row.index() >= self.offered.len() {
            self.offered.resize(row.index() + 1, None);
        }
        let new = cluster.node(row).map(|node| &node.allocatable);
        let known = &mut self.offered[row.index()];
        if known.as_ref() != new {
            self.ledger.offer(known.as_ref(), new);
            *known = new.cloned();
        }
    }

    fn object(&mut self, _: &Cluster, change: &ObjectChange) -> Vec<Row> {
        if let Some((_, new)) = change.of::<ElasticQuota>()
            && let Some(key) = change.key()
        {
            let new = new.map(decisive);
            if self.read.get(key) != new.as_ref() {
                match new {
                    Some(new) => _ = self.read.insert(key.clone(), new),
                    None => _ = self.read.remove(key),
                }
                self.ledger.quotas_changed();
            }
        }
        // What a quota allows is asked in every attempt.
        Vec::new()
    }
}
