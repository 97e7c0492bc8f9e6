//! The pod of a job is evicted.

use jiff::{SignedDuration, Timestamp};
use koord_core::key::ObjectKey;
use koord_descheduler_framework::pod::Phase as PodPhase;
use koord_types::pod_migration_job::{PodMigrationJobConditionType as Type, PodMigrationJobReason as Reason};

use super::{Course, Pod};
use crate::job::{
    Decision, EvictionRequest, EvictionSeen, Fetched, JobEvent, JobPod, JobReservation,
    eviction::reason,
    status::{self as says, Says, find, set, set_condition},
};

/// A pod that was evicted and has failed is deleted within this time; after it nobody will.
const DELETED_WITHIN: SignedDuration = SignedDuration::from_secs(30);

impl Course<'_> {
    /// Evicts the pod. `None` when it is gone.
    pub(super) fn evict(&self, key: &ObjectKey) -> Option<Decision> {
        let condition = find(self.status(), &Type::Eviction);
        if condition.is_some_and(|condition| condition.status == "True") {
            return None;
        }
        let is_evicting = condition.is_some_and(|condition| condition.reason == Some(Reason::Evicting));
        let pod = match (self.pod(), condition) {
            (Pod::There(pod), _) => pod,
            // The pod was there when its eviction was announced.
            (Pod::Gone | Pod::Unknown, Some(_)) if is_evicting => return Some(self.evicted(key)),
            (Pod::Gone | Pod::Unknown, Some(announced)) => {
                let is_refused = announced.reason == Some(Reason::FailedEvict);
                let message = if is_refused { says::evicted(key) } else { announced.message.clone() };
                return Some(self.evicting(message, true));
            }
            (Pod::Gone, None) => return Some(self.fail(&Reason::MissingPod, says::missing_pod(key))),
            (Pod::Unknown, None) => return Some(Decision::fetching(Fetched::Pod, key.clone())),
        };
        if is_evicting {
            let since = condition.and_then(|condition| condition.last_transition_time);
            return Some(self.wait_for_end(key, pod, since.map_or(self.now, koord_resource::Time::at)));
        }
        let is_taken = !self.job.evicts_directly(self.settings)
            && self.seen.reservation().is_some_and(JobReservation::has_succeeded);
        if is_taken && !pod.is_deleting {
            return Some(self.fail(&Reason::ForbiddenMigratePod, says::BOUND_BY_OTHER));
        }
        let was_asked = condition.is_some();
        let message = says::evicting(key, &pod.node, &reason(self.job));
        let request = EvictionRequest::of(self.job, key, pod, self.settings.policy);
        Some(match &self.seen.eviction {
            EvictionSeen::Accepted if was_asked => self.evicting(message, true),
            // Whoever deletes it already: the pod leaves.
            _ if pod.is_deleting => self.evicting(message, was_asked),
            _ if !was_asked => {
                let announced = Says { status: "Unknown", reason: None, message };
                self.write(|status| set_condition(status, &Type::Eviction, announced, self.now))
            }
            EvictionSeen::Refused(why) => {
                let says = Says::no(Reason::FailedEvict).because(why);
                let event = JobEvent::warning("FailedEvict", format!("Pod \"{key}\" cannot be evicted: {why}"));
                // The step that the job is at stays.
                let decision = self.write(|status| {
                    status.message.clone_from(why);
                    set_condition(status, &Type::Eviction, says, self.now);
                });
                Decision { eviction: Some(request), ..decision.with_event(event) }
            }
            EvictionSeen::Pending | EvictionSeen::Accepted => {
                Decision { eviction: Some(request), ..Decision::default() }
            }
        })
    }

    /// The pod is on its way out.
    fn evicting(&self, message: String, is_ours: bool) -> Decision {
        let says = Says::no(Reason::Evicting).because(message.clone());
        let mut decision = self.write(|status| set(status, &Type::Eviction, says, self.now));
        decision.events.push(JobEvent::normal("Evicting", message.clone()));
        if is_ours {
            decision.events.push(JobEvent { is_about_pod: true, ..JobEvent::normal("Descheduled", message) });
        }
        decision
    }

    /// Waits until a pod that was evicted is gone. One that ends and is never deleted has left all the same.
    fn wait_for_end(&self, key: &ObjectKey, pod: &JobPod, since: Timestamp) -> Decision {
        match pod.phase {
            PodPhase::Succeeded if !pod.is_deleting => self.evicted(key),
            PodPhase::Failed if !pod.is_deleting => {
                let left = DELETED_WITHIN - self.now.duration_since(since);
                if left.is_positive() {
                    return Decision::default().not_later_than(left);
                }
                self.fail(
                    &Reason::FailedEvict,
                    format!("Pod \"{key}\" has failed after its eviction and is not deleted"),
                )
            }
            _ => Decision::default(),
        }
    }

    fn evicted(&self, key: &ObjectKey) -> Decision {
        let says = Says { reason: Some(Reason::EvictComplete), ..Says::yes() };
        let event = JobEvent::normal("EvictComplete", says::evicted(key));
        self.write(|status| set(status, &Type::Eviction, says, self.now)).with_event(event)
    }
}
