//! The quotas of the cluster with what their pods request and use, kept up to date.

mod audit;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_quota::Quota;
use koord_resource::ResourceList;
use koord_scheduler_framework::{
    cluster::{Cluster, Mismatch, Placed, state::State},
    columns::Row,
    node::Node,
    object::ObjectChange,
    pod::{Pod, Template},
};
use koord_types::{
    elastic_quota::ElasticQuota,
    resource_names::{BATCH_CPU, BATCH_MEMORY, DEPRECATED},
};

use super::{
    Claim, Counted, Deleting, Forest, Hook, HookRefusal, Ledger, Overuse, QuotaSettings, QuotaStatus, QuotaUpdate,
    Shortage, claim::requests, hooks::Hooks, is_preemptible,
};

/// The quotas of the cluster.
#[derive(Clone, Debug)]
pub struct Quotas {
    ledger: Ledger,
    /// By the keys of their objects.
    read: BTreeMap<ObjectKey, Read>,
    /// What nodes offer, by row.
    offered: Vec<Option<Arc<Node>>>,
    overuse: Overuse,
    /// Pods that are being deleted, by when their time to end is over, and those of which it is: these do not count.
    ending: BTreeSet<(i64, Uid)>,
    overdue: BTreeSet<Uid>,
    /// Pods that their quota or a hook refused when they were tried last.
    short: BTreeMap<Uid, Arc<Pod>>,
    /// Whether pods request less since those were looked at, of which the queue does not learn.
    is_freed: bool,
    hooks: Hooks,
}

/// Why a pod is not admitted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Denial {
    /// A quota has too little left.
    Shortage(Shortage),
    /// A hook refuses it.
    Hook(HookRefusal),
}

/// What was read of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub(super) uid: Uid,
    quota: Quota,
    /// What it says of what is observed.
    pub(super) written: QuotaStatus,
}

impl Quotas {
    /// Of no cluster.
    pub fn new(settings: QuotaSettings) -> Self {
        Self {
            ledger: Ledger::new(settings),
            read: BTreeMap::new(),
            offered: Vec::new(),
            overuse: Overuse::default(),
            ending: BTreeSet::new(),
            overdue: BTreeSet::new(),
            short: BTreeMap::new(),
            is_freed: false,
            hooks: Hooks::default(),
        }
    }

    /// The same with these hooks.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Vec<Hook>) -> Self {
        self.hooks = Hooks::new(hooks);
        self
    }

    /// The quotas as trees.
    pub fn forest(&self) -> &Forest {
        self.ledger.forest(self.read.values().map(|read| &read.quota))
    }

    /// How quotas limit pods.
    pub fn settings(&self) -> &Arc<QuotaSettings> {
        self.ledger.settings()
    }

    /// The name of the quota of a template's pods; none where they belong to none.
    pub fn quota_of(&self, template: &Template) -> Option<&Arc<str>> {
        self.forest().quota_of(&Claim::of(template))
    }

    /// The quota that the label of a template names, where there is none of that name.
    pub(super) fn unknown_to(&self, template: &Template) -> Option<Arc<str>> {
        let label = Claim::of(template).label;
        (!label.is_empty() && self.forest().node(&label).is_none()).then_some(label)
    }

    /// Whether the quota of a template suffices for this pod of it, and no hook refuses the pod.
    pub(super) fn admit(&self, template: &Template, pod: &Pod) -> Result<(), Denial> {
        let forest = self.forest();
        counted(template, self.settings(), |counted| {
            forest.check_leaf(counted).map_err(Denial::Shortage)?;
            self.check_hooks(template, pod).map_err(Denial::Hook)?;
            forest.check_above(self.settings(), counted).map_err(Denial::Shortage)
        })
    }

    /// Whether no hook refuses a pod of a template. A pod that belongs to no quota is not shown to them.
    pub(super) fn check_hooks(&self, template: &Template, pod: &Pod) -> Result<(), HookRefusal> {
        let quota = if self.hooks.is_empty() { None } else { self.quota_of(template) };
        quota.map_or(Ok(()), |quota| self.hooks.check(quota, pod, self.forest()))
    }

    /// Whether the runtime of a template's quota suffices for one more of its pods.
    pub fn check_runtime(&self, template: &Template) -> Result<(), Shortage> {
        counted(template, self.settings(), |pod| self.forest().check_runtime(pod))
    }

    /// Whether pods of two templates are of one quota.
    pub(super) fn are_together(&self, one: &Template, other: &Template) -> bool {
        self.quota_of(one).is_some_and(|quota| self.quota_of(other) == Some(quota))
    }

    /// What is to be written about a quota; none where there is no such quota.
    pub fn status(&self, name: &str) -> Option<QuotaStatus> {
        QuotaStatus::of(self.forest(), self.settings(), name)
    }

    /// What was read of each object.
    pub(super) fn objects(&self) -> &BTreeMap<ObjectKey, Read> {
        &self.read
    }

    pub(super) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// The quotas that use more than they may.
    pub(super) fn overuse(&self) -> &Overuse {
        &self.overuse
    }

    /// What a pod of the template requests of its quota.
    pub(super) fn requests<'t>(&self, template: &'t Template) -> Cow<'t, ResourceList> {
        requests(template, self.settings())
    }

    /// Whether a pod counts. A reservation has no quota, though its pods have one.
    pub(super) fn counts(&self, pod: &Pod) -> bool {
        let is_ignored = pod.deleting && self.settings().deleting == Deleting::CountsNot;
        !(pod.is_reservation() || is_ignored || self.overdue.contains(&pod.uid))
    }

    /// Whether the quota of a pod was short when it was tried.
    pub(super) fn tried(&mut self, pod: &Arc<Pod>, is_short: bool) {
        if is_short {
            self.short.insert(pod.uid.clone(), Arc::clone(pod));
        } else {
            self.short.remove(&pod.uid);
        }
    }

    /// The pods whose quota suffices after others have gone that only requested it.
    pub(super) fn revived(&mut self) -> Vec<Uid> {
        if !std::mem::take(&mut self.is_freed) {
            return Vec::new();
        }
        let short = self.short.iter().filter(|(_, pod)| self.admit(&pod.template, pod).is_ok());
        short.map(|(uid, _)| uid.clone()).collect()
    }

    /// Counts what the node of a row offers. Says whether that has changed.
    fn offer(&mut self, cluster: &Cluster, row: Row) -> bool {
        if row.index() >= self.offered.len() {
            self.offered.resize(row.index() + 1, None);
        }
        let new = cluster.node(row);
        let known = std::mem::replace(&mut self.offered[row.index()], new.cloned());
        let [old, new] = [known.as_ref(), new].map(|node| node.map(|node| &node.allocatable));
        let is_changed = old != new;
        if is_changed {
            self.ledger.offer(old, new);
        }
        is_changed
    }

    /// Keeps in mind when a pod's time to end is over, and that one in its place waits no more.
    fn follow(&mut self, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        let Some(uid) = old.or(new).map(|pod| &pod.uid) else { return };
        let ends = |pod: Option<&Arc<Pod>>| Some((pod?.ends?, uid.clone()));
        if let Some(ended) = ends(old) {
            self.ending.remove(&ended);
        }
        if new.is_none() {
            self.overdue.remove(uid);
        }
        if new.is_none_or(|new| new.node.is_some()) {
            self.short.remove(uid);
        }
        if self.settings().deleting == Deleting::CountsForItsTime && !self.overdue.contains(uid) {
            self.ending.extend(ends(new));
        }
    }

    /// Counts pods no more whose time to end is over.
    fn forget_overdue(&mut self, cluster: &Cluster, now: Timestamp) {
        while let Some((_, uid)) = self.ending.first().filter(|(ends, _)| *ends <= now.as_second()).cloned() {
            self.ending.pop_first();
            // A pod that is about to be bound may have changed since it was placed: what it requests is as it is now.
            let placed = cluster.pod(&uid).map(|placed| &placed.pod).filter(|pod| self.counts(pod));
            let known = cluster.pending_pod(&uid).filter(|pod| self.counts(pod)).or(placed);
            let settings = Arc::clone(self.settings());
            if let Some(placed) = placed {
                counted(&placed.template, &settings, |pod| self.ledger.unplace(pod));
                self.hooks.removed(&uid);
            }
            let Some(known) = known else { continue };
            counted(&known.template, &settings, |pod| self.ledger.unrequest(pod));
            self.overdue.insert(uid);
            self.is_freed = true;
        }
    }

    /// Takes an object as it is read now; none where it is gone.
    fn take_in(&mut self, key: &ObjectKey, new: Option<Read>) {
        let new_quota = new.as_ref().map(|read| read.quota.clone());
        let old = match new {
            Some(new) => self.read.insert(key.clone(), new),
            None => self.read.remove(key),
        };
        if old.map(|read| read.quota) != new_quota {
            self.ledger.quotas_changed();
        }
    }

    /// The same, with hooks before and after it where the quota changes or one of them takes it for changed.
    fn take_in_with_hooks(&mut self, key: &ObjectKey, new: Option<Read>, object: &ElasticQuota) {
        let mut hooks = std::mem::take(&mut self.hooks);
        let [old_quota, new_quota] = [self.read.get(key), new.as_ref()].map(|read| read.map(|read| read.quota.clone()));
        let update = QuotaUpdate { old: old_quota.as_ref(), new: new_quota.as_ref(), object };
        let is_updated =
            update.old != update.new || (update.old.is_some() && hooks.is_quota_updated(&update, self.forest()));
        let state = is_updated.then(|| hooks.before(&update, self.forest()));
        self.take_in(key, new);
        if let Some(mut state) = state {
            hooks.after(&update, self.forest(), &mut state);
            hooks.move_pods(|pod| self.quota_of(&pod.template).cloned());
        }
        self.hooks = hooks;
    }
}

fn counted<T>(template: &Template, settings: &QuotaSettings, with: impl FnOnce(Counted<'_>) -> T) -> T {
    let (claim, requests) = (Claim::of(template), requests(template, settings));
    with(Counted { claim: &claim, requests: &requests, is_preemptible: is_preemptible(template) })
}

impl Read {
    fn of(uid: Uid, object: &ElasticQuota) -> Self {
        Self { uid, quota: decisive(object), written: QuotaStatus::written(object) }
    }
}

/// What decides of an object. The scheduler's own annotations are no change.
pub(super) fn decisive(object: &ElasticQuota) -> Quota {
    let mut quota = Quota { guaranteed: ResourceList::new(), requested: ResourceList::new(), ..Quota::from(object) };
    [&mut quota.min, &mut quota.max].into_iter().for_each(rename);
    quota
}

/// Gives batch resources the names that pods request them by, unless that name is there too (1.7).
fn rename(amounts: &mut ResourceList) {
    for (old, new) in DEPRECATED.iter().filter(|(_, new)| [BATCH_CPU, BATCH_MEMORY].contains(new)) {
        if !amounts.contains(new)
            && let Some(amount) = amounts.remove(old)
        {
            amounts.insert(*new, amount);
        }
    }
}

impl State for Quotas {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        if self.counts(&placed.pod) {
            let settings = Arc::clone(self.settings());
            counted(&placed.pod.template, &settings, |pod| self.ledger.place(pod));
            if !self.hooks.is_empty() {
                let quota = self.quota_of(&placed.pod.template).cloned();
                self.hooks.placed(quota, &placed.pod);
            }
        }
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        if self.counts(&placed.pod) {
            let settings = Arc::clone(self.settings());
            counted(&placed.pod.template, &settings, |pod| self.ledger.unplace(pod));
        }
        self.hooks.removed(&placed.pod.uid);
    }

    fn pod(&mut self, _: &Cluster, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        let [old_template, new_template] =
            [old, new].map(|pod| pod.filter(|pod| self.counts(pod)).map(|pod| &pod.template));
        let is_alike = matches!((old_template, new_template), (Some(old), Some(new)) if Arc::ptr_eq(old, new));
        let settings = Arc::clone(self.settings());
        if let Some(new) = new_template.filter(|_| !is_alike) {
            counted(new, &settings, |pod| self.ledger.request(pod));
        }
        if let Some(old) = old_template.filter(|_| !is_alike) {
            counted(old, &settings, |pod| self.ledger.unrequest(pod));
        }
        self.is_freed |= new_template.is_none() && old.is_some_and(|old| old.node.is_none());
        self.follow(old, new);
    }

    fn node(&mut self, cluster: &Cluster, row: Row) {
        self.offer(cluster, row);
    }

    fn audit(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        let details = || "a node as it was instead of as it is".to_owned();
        self.offer(cluster, row).then(|| ("quota_total", details())).into_iter().collect()
    }

    fn object(&mut self, _: &Cluster, change: &ObjectChange) -> Vec<Row> {
        if let Some((old, new)) = change.of::<ElasticQuota>()
            && let Some(key) = change.key()
        {
            let uid = change.new.as_ref().map(|object| object.uid.clone()).unwrap_or_default();
            let read = new.map(|object| Read::of(uid, object));
            match new.or(old).filter(|_| !self.hooks.is_empty()) {
                Some(object) => self.take_in_with_hooks(key, read, object),
                None => self.take_in(key, read),
            }
        }
        // What a quota allows is asked in every attempt.
        Vec::new()
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        self.audit_all(cluster)
    }

    fn tick(&mut self, cluster: &Cluster, now: Timestamp) -> Vec<Row> {
        self.forget_overdue(cluster, now);
        let mut overuse = std::mem::take(&mut self.overuse);
        overuse.look(self, cluster, now);
        self.overuse = overuse;
        Vec::new()
    }

    fn wake_at(&self) -> Option<Timestamp> {
        let ends = self.ending.first().and_then(|(ends, _)| Timestamp::from_second(*ends).ok());
        let looks = self.settings().revocation.map(|_| self.overuse.looks_at().unwrap_or(Timestamp::MIN));
        ends.into_iter().chain(looks).min()
    }
}
