//! What each eviction of a pass leads to.

use std::sync::Arc;

use jiff::Timestamp;
use koord_descheduler_framework::{
    Cluster, Descheduler, Eviction, History, Input, Judge, Means, Outlook, Planning, Pod, Profile, ReasonCode, Refusal,
    Successor,
};
use koord_scheduler_engine::Engine;

use crate::{again::EvictedAgain, budgets::Budgets, plan::Foresight, rehearsal::Rehearsal};

/// How many evictions of a pass are followed through the scheduler. One takes a millisecond or less.
const FOLLOWED_MAX: usize = 2000;

/// The judge of one computation of a pass.
pub(crate) struct Judgement<'a> {
    descheduler: &'a Descheduler,
    scheduler: Option<&'a Engine>,
    /// A copy of the scheduler's engine, made for the first eviction: most passes evict nothing.
    rehearsal: Option<Rehearsal>,
    budgets: Budgets<'a>,
    history: &'a History,
    again: &'a EvictedAgain,
    now: Timestamp,
    followed: usize,
    /// What the last eviction has changed.
    last: Option<Changed>,
}

/// What an eviction has changed for those that follow.
struct Changed {
    budgets_of: Option<Arc<Pod>>,
    is_rehearsed: bool,
}

impl<'a> Judgement<'a> {
    pub(crate) fn new(
        descheduler: &'a Descheduler,
        input: &Input<'a>,
        Foresight { scheduler, history }: Foresight<'a>,
        again: &'a EvictedAgain,
    ) -> Self {
        Self {
            descheduler,
            scheduler,
            rehearsal: None,
            budgets: Budgets::of(input.cluster),
            history,
            again,
            now: input.now,
            followed: 0,
            last: None,
        }
    }

    /// What is known without asking the scheduler.
    fn known_objection(&self, pod: &Pod, eviction: &Eviction, profile: &Profile) -> Option<Refusal> {
        let (strategy, reason) = (eviction.plugin, eviction.reason.code.as_str());
        if let Some(past) = self.history.cooling_down(pod, strategy, reason, profile.cool_down, self.now) {
            let until: Arc<str> = past.cools_down_until(profile.cool_down).to_string().into();
            let evicted: Arc<str> = format!("{} at {}", past.pod, past.at).into();
            return Some(Refusal::new(ReasonCode::CoolingDown).with("replaces", evicted).with("until", until));
        }
        let node = self.again.node(eviction)?;
        Some(Refusal::new(ReasonCode::RelievesNothing).with("node", node))
    }

    /// What comes instead of the pod, or why that was not tried.
    fn successor(&mut self, eviction: &Eviction) -> Result<Successor, &'static str> {
        let scheduler = self.scheduler.ok_or("the objects that the scheduler reads are not known")?;
        if self.followed >= FOLLOWED_MAX {
            return Err("the pass has more evictions than are followed");
        }
        self.followed += 1;
        let rehearsal = self.rehearsal.get_or_insert_with(|| Rehearsal::of(scheduler));
        Ok(rehearsal.evict(eviction))
    }
}

impl Judge for Judgement<'_> {
    fn outlook(&mut self, cluster: &Cluster, eviction: &Eviction) -> Outlook {
        self.last = None;
        let pod = cluster.pod_id(eviction.pod.key.as_str()).and_then(|id| cluster.pod(id));
        let profile = self.descheduler.profiles.iter().find(|profile| profile.name == eviction.profile);
        let (Some(pod), Some(profile)) = (pod, profile) else { return Outlook::default() };
        let is_enforced = profile.planning == Planning::Enforce;
        let known = self.known_objection(pod, eviction, profile);
        if known.is_some() && is_enforced {
            return Outlook { successor: None, objection: known };
        }
        let mut changed = Changed { budgets_of: None, is_rehearsed: false };
        if eviction.means != Means::DryRun {
            if let Err(budget) = self.budgets.take(pod) {
                let budget: Arc<str> = budget.as_str().into();
                let objection = Refusal::new(ReasonCode::BreaksBudget).with("budget", budget);
                return Outlook { successor: None, objection: Some(known.unwrap_or(objection)) };
            }
            changed.budgets_of = Some(Arc::clone(pod));
        }
        let successor = self.successor(eviction);
        changed.is_rehearsed = successor.is_ok();
        self.last = Some(changed);
        let objection = known.or_else(|| match &successor {
            Ok(Successor::ComesBack(node)) => Some(Refusal::new(ReasonCode::ComesBack).with("node", node)),
            Ok(Successor::Pending(why)) => {
                let why: Arc<str> = why.as_str().into();
                Some(Refusal::new(ReasonCode::StaysPending).with("why", why))
            }
            Err(why) if is_enforced => Some(Refusal::new(ReasonCode::NotFollowed).with("why", *why)),
            _ => None,
        });
        Outlook { successor: Some(successor.unwrap_or_else(Successor::Unknown)), objection }
    }

    fn take_back(&mut self) {
        let Some(Changed { budgets_of, is_rehearsed }) = self.last.take() else { return };
        if let Some(pod) = budgets_of {
            self.budgets.give_back(&pod);
        }
        if let Some(rehearsal) = self.rehearsal.as_mut().filter(|_| is_rehearsed) {
            rehearsal.take_back();
        }
    }
}
