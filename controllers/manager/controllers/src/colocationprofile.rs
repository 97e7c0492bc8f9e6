//! Applies ClusterColocationProfiles to pods that wait for a node: what the webhook does to new pods, for pods that were
//! there before the profile.
//!
//! Each profile that is given to the controller is gone through in rounds. A pod is changed once per revision of the
//! profile, and again when that was long ago; what people change by hand stays in between. Scheduler, priority class
//! and resources are left as they are, because the API server lets nobody change them.

mod change;
mod memory;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_profile::{Identity, NamespaceLabels, Profile, drawn};
use koord_resource::{controller, controller::ResourceKind};
use koord_runtime::{
    cache::{Cache, Entry},
    controller::{Controller, is_there},
    error::{Fault, ReconcileError},
    events::Event,
    key::ObjectKey,
    outcome::Outcome,
    projection::Projection as _,
    store::Store,
    uid::Uid,
    write::Write,
};
use parking_lot::Mutex;

use self::memory::{Mark, Memory};
use crate::view::PendingPodView;

/// The component of its events.
pub const COMPONENT: &str = "colocationprofile-controller";
const ACTION: &str = "ApplyingProfile";

/// Pods beyond what may be changed at once are looked at again no sooner than this.
const LOOK_AGAIN_MIN: Duration = Duration::from_secs(1);

/// Flags of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Whether profiles without the label `config.koordinator.sh/controller-managed` are applied too.
    pub by_default: bool,
    /// The time between two rounds; zero for no rounds.
    pub interval: Duration,
    /// After this time a profile is applied to a pod again; zero for never.
    pub force_after: Duration,
    /// How often is forgotten what was applied that long ago.
    pub forget_every: Duration,
    /// Pods that may be changed per second.
    pub per_second: f32,
    /// Pods that may be changed at once.
    pub burst: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            by_default: false,
            interval: Duration::from_secs(30),
            force_after: Duration::from_mins(5),
            forget_every: Duration::from_mins(10),
            per_second: 10.0,
            burst: 100,
        }
    }
}

/// Applies profiles to the pods that they select.
#[controller(
    name = "colocationprofile",
    for(profiles, predicate = is_there),
    reads(pods, fields = "spec.nodeName=,status.phase=Pending", writes = [patch]),
    reads(namespaces),
    init(memory = Arc::new(Mutex::new(Memory::new(&settings)))),
    rate_limit(max_ms = 30_000),
    gate = "ColocationProfileController",
)]
pub struct ColocationProfileController {
    profiles: Arc<Store<Profile>>,
    namespaces: Arc<Store<NamespaceLabels>>,
    pods: Arc<Store<PendingPodView>>,
    settings: Settings,
    memory: Arc<Mutex<Memory>>,
}

impl ColocationProfileController {
    fn handles(&self, entry: &Entry<Profile>) -> bool {
        !entry.deleting && (self.settings.by_default || entry.value.controller_managed)
    }

    /// Remembers what becomes of the write to a pod. What the API server refuses for good is not tried again before its
    /// time; everything else at the next reconcile.
    fn remember_write(&self, outcome: &mut Outcome, pod: &ObjectKey, mark: Mark) {
        let memory = Arc::clone(&self.memory);
        outcome.remember_of(ResourceKind::POD, pod, move |result| {
            let mut memory = memory.lock();
            memory.allowance.take(mark.at);
            if result.err().is_none_or(|error| error.fault != Fault::Api) {
                memory.keep(mark);
            }
        });
    }
}

/// Whether a profile concerns a pod that is there. QUIRK: without a selector it concerns none, other than in the
/// webhook, as recorded (`colocation-profile/nil-selector`). A namespace that nobody knows is not selected, and a
/// probability that is none selects nothing.
fn concerns(
    profile: &Profile,
    key: &ObjectKey,
    pod: &Entry<PendingPodView>,
    namespaces: &Cache<NamespaceLabels>,
) -> bool {
    let namespace = key.namespace();
    let in_namespace = || {
        let labels = namespaces.get(namespace).map(|entry| &entry.value.0);
        labels.is_some_and(|labels| profile.namespaces.selects(|key| labels.get(key)))
    };
    profile.spec.selector.is_some()
        && profile.objects.selects(|key| pod.value.labels.get(key))
        && (profile.namespaces.is_everything() || in_namespace())
        && drawn(profile, Identity::Named(namespace, key.name())).unwrap_or(false)
}

impl Controller for ColocationProfileController {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let mut outcome = Outcome::settled();
        let (profiles, namespaces, pods) = (self.profiles.read(), self.namespaces.read(), self.pods.read());
        let Some(entry) = profiles.get(key.as_str()).filter(|entry| self.handles(entry)) else { return Ok(outcome) };
        if let Some(probability) = &entry.value.spec.probability
            && let Err(error) = probability.int_or_percent()
        {
            let message = format!("spec.probability: {error}; the profile is applied to no pod");
            outcome.event(Event::warning((key, entry), ACTION, "InvalidProbability", message));
            return Ok(outcome);
        }
        let memory = self.memory.lock();
        let mut allowance = memory.allowance.at(now);
        let name: Arc<str> = key.name().into();
        // Pods to which the profile cannot be applied.
        let mut marks = Vec::new();
        for (pod_key, pod) in pods.iter().filter(|(key, pod)| concerns(&entry.value, key, pod, &namespaces)) {
            let (profile, pod_uid) = (Arc::clone(&name), pod.uid.clone());
            let mark = Mark { profile, revision: entry.revision, pod: pod_uid, at: now };
            if memory.knows(&mark, &self.settings) {
                continue;
            }
            // Those that come after it go on winning where they say the same differently.
            let later = profiles.iter().filter(|(other, later)| {
                other.name() > key.name() && self.handles(later) && concerns(&later.value, pod_key, pod, &namespaces)
            });
            let mut applied = vec![Arc::clone(&entry.value)];
            applied.extend(later.map(|(_, later)| Arc::clone(&later.value)));
            match change::change(&pod.value.object, &applied) {
                // It is looked at again: somebody may change what it has of the profile.
                Ok(patch) if patch.is_empty() => {}
                Ok(_) if !allowance.take(now) => {
                    if let Some(wait) = allowance.wait() {
                        outcome.requeue_after(wait.max(LOOK_AGAIN_MIN));
                    }
                    break;
                }
                Ok(patch) => {
                    outcome.change(&pods, pod_key, "", patch);
                    self.remember_write(&mut outcome, pod_key, mark);
                }
                Err(error) => {
                    marks.push(mark);
                    let message = format!("ClusterColocationProfile {name} is not applied: {error}");
                    outcome.event(Event::warning((pod_key, pod), ACTION, "ProfileNotApplied", message));
                }
            }
        }
        drop(memory);
        // What is never old would be remembered for ever.
        let is_endless = self.settings.force_after.is_zero();
        let waiting: Option<BTreeSet<Uid>> = is_endless.then(|| pods.iter().map(|(_, pod)| pod.uid.clone()).collect());
        let (memory, settings) = (Arc::clone(&self.memory), self.settings.clone());
        outcome.remember_of(Profile::KIND, key, move |_| {
            let mut memory = memory.lock();
            memory.tidy(&settings, now, |pod| waiting.as_ref().is_none_or(|waiting| waiting.contains(pod)));
            for mark in marks {
                memory.keep(mark);
            }
        });
        if entry.value.spec.selector.is_some() && !self.settings.interval.is_zero() {
            outcome.requeue_after(self.settings.interval);
        }
        Ok(outcome)
    }

    fn failed(&self, key: &ObjectKey, write: &Write, error: &ReconcileError) -> Option<Event> {
        if error.fault == Fault::Api {
            return None;
        }
        let pods = self.pods.read();
        let pod = pods.get(write.key.as_str())?;
        let message = format!("ClusterColocationProfile {} is not applied: {error}", key.name());
        Some(Event::warning((&write.key, pod), ACTION, "ProfileNotApplied", message))
    }
}
