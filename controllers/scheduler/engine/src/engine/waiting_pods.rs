//! Waiting pods: reserved, and held back by Permit until plugins allow or reject them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use koord_core::{clock::Moment, uid::Uid};
use koord_scheduler_framework::{Orders, Reason, ReasonCode, Rejection, pod::Pod};

use super::{Attempt, Engine, Outcome, failure_handler::rejected};
use crate::queue::{Return, Tried};

/// A reserved pod that is not bound yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) pod: Arc<Pod>,
    pub(super) tried: Tried,
    /// When its attempt began.
    pub(super) began: Moment,
    pub(super) node: Arc<str>,
    pub(super) score: i64,
    pub(super) ties: u32,
    /// The plugin whose Permit holds it back.
    pub(super) plugin: u8,
    pub(super) until: Moment,
    /// How long that is in all.
    pub(super) limit: Duration,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Waitlist {
    by_uid: BTreeMap<Uid, Waiting>,
    /// Who waits until when, the first timeout first.
    ends: BTreeSet<(Moment, Uid)>,
}

impl Waitlist {
    pub(super) fn insert(&mut self, waiting: Waiting) {
        let uid = waiting.pod.uid.clone();
        self.remove(&uid);
        self.ends.insert((waiting.until, uid.clone()));
        self.by_uid.insert(uid, waiting);
    }

    pub(super) fn remove(&mut self, uid: &Uid) -> Option<Waiting> {
        let waiting = self.by_uid.remove(uid)?;
        self.ends.remove(&(waiting.until, uid.clone()));
        Some(waiting)
    }

    pub(super) fn contains(&self, uid: &Uid) -> bool {
        self.by_uid.contains_key(uid)
    }

    pub(super) fn first_end(&self) -> Option<Moment> {
        self.ends.first().map(|(until, _)| *until)
    }

    /// Those that have timed out by now.
    fn over(&self, now: Moment) -> Vec<Uid> {
        let mut over: Vec<Uid> =
            self.ends.iter().take_while(|(until, _)| *until <= now).map(|(_, uid)| uid.clone()).collect();
        over.sort_unstable();
        over
    }
}

impl Engine {
    pub fn waiting(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.waiting.by_uid.values().map(|waiting| &waiting.pod)
    }

    /// Rejects pods that have timed out, and applies the orders of plugins.
    pub(super) fn update_waiting_pods(&mut self, now: Moment) {
        self.has_changed = false;
        for uid in self.waiting.over(now) {
            let Some(waiting) = self.waiting.by_uid.get(&uid) else { continue };
            let plugin = self.profile_of(&waiting.pod).and_then(|index| {
                let plugins = &self.profiles.get(index)?.plugins;
                plugins.get(usize::from(waiting.plugin))
            });
            let Some(plugin) = plugin else { continue };
            let waited = koord_resource::Duration::from(waiting.limit).to_string();
            let message = format!("rejected due to timeout after waiting {waited} at plugin {}", plugin.name());
            let Some(permit) = &plugin.permit else { continue };
            let reason = permit.timeout_reason(&waiting.pod, &self.cluster, &waited, message);
            self.reject(&uid, None, reason, true, now);
        }
        let mut orders = Orders::default();
        for profile in self.profiles.clone() {
            profile.each(|plugin| &plugin.pod_activation).for_each(|point| point.order(&mut self.cluster, &mut orders));
        }
        self.apply_orders(orders, now);
    }

    pub(super) fn apply_orders(&mut self, orders: Orders, now: Moment) {
        let Orders { allow, reject, withdraw, activate, marks } = orders;
        self.jobs.note(marks, now);
        for uid in allow {
            if let Some(waiting) = self.waiting.remove(&uid) {
                let outcome = self.bind(&waiting);
                let Waiting { pod, tried, began, .. } = waiting;
                self.ready.push_back(Attempt { pod, tried, began, has_waited: true, searched: None, outcome });
            }
        }
        for (uid, reason) in reject {
            self.reject(&uid, None, reason, true, now);
        }
        for (uid, reason) in withdraw {
            self.reject(&uid, None, reason, false, now);
        }
        if !activate.is_empty() {
            let hints = super::PluginHints { profiles: &self.profiles, cluster: &self.cluster };
            self.queue.activate(&activate, now, &hints);
        }
    }

    /// Preempts a waiting pod in the name of this plugin. Returns the pod.
    pub(super) fn preempt_waiting(&mut self, uid: &Uid, plugin: &str, now: Moment) -> Option<Arc<Pod>> {
        let pod = Arc::clone(&self.waiting.by_uid.get(uid)?.pod);
        self.reject(uid, Some(plugin), ReasonCode::Preempted.reason("preempted"), true, now);
        Some(pod)
    }

    /// Rejects a waiting pod in the name of this plugin, or of the one that holds it back.
    fn reject(&mut self, uid: &Uid, by: Option<&str>, reason: Reason, helps_others: bool, now: Moment) {
        let Some(Waiting { pod, tried, began, plugin, .. }) = self.waiting.remove(uid) else { return };
        let Some(profile) = self.profile_of(&pod).and_then(|index| self.profiles.get(index)) else { return };
        let named = by.and_then(|name| (0_u8..).zip(&profile.plugins).find(|(_, plugin)| plugin.name() == name));
        let plugin = named.map_or(plugin, |(index, _)| index);
        let (refused_by, mut refused) = rejected(profile, plugin, Rejection::unschedulable(reason));
        refused.nominated = self.nominated_node(uid);
        self.unreserve(&pod, tried, Return::Refused(refused_by), helps_others, now);
        let outcome = Outcome::Refused(refused);
        self.ready.push_back(Attempt { pod, tried, began, has_waited: true, searched: None, outcome });
    }
}
