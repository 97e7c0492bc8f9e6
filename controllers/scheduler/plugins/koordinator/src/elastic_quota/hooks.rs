//! Hooks of quotas: what a program adds to the checks of pods, to the updates of quotas and to their status
//! (`spec/scheduler.md` 3D.6 and 3D.8).

mod factory;

use std::{any::Any, collections::BTreeMap, error::Error, fmt, sync::Arc};

use koord_core::uid::Uid;
use koord_quota::Quota;
use koord_resource::schema::patch::merge;
use koord_scheduler_framework::{Reason, ReasonCode, pod::Pod};
use koord_types::elastic_quota::ElasticQuota;
use serde_json::{Value, json};

pub use self::factory::{HookError, HookFactories};
use super::Forest;

/// An error of a hook, of any type: an `Err(text.into())`, or what `?` passes on.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A hook of quotas. Every function is optional.
///
/// What a hook keeps is part of the cluster: dry runs of preemption remove pods and put them back, and copies of the cluster have
/// copies of their hooks. So a hook decides by what its functions are given and by what it keeps of that, without I/O.
pub trait QuotaHook: Send + Sync {
    /// A copy, for a copy of the cluster.
    fn copy(&self) -> Box<dyn QuotaHook>;

    /// Whether an update is one for the hooks, though it changes nothing that decides how the quota limits pods. It is not asked
    /// about quotas that are added or deleted.
    fn is_quota_updated(&self, _update: &QuotaUpdate<'_>, _quotas: &Forest) -> bool {
        false
    }

    /// Before a quota is added, updated or deleted. `quotas` are as they were.
    fn pre_quota_update(&mut self, _update: &QuotaUpdate<'_>, _quotas: &Forest, _state: &mut QuotaUpdateState) {}

    /// After a quota was added, updated or deleted. `quotas` are as they are now.
    fn post_quota_update(&mut self, _update: &QuotaUpdate<'_>, _quotas: &Forest, _state: &mut QuotaUpdateState) {}

    /// A pod was placed in a quota (`new`), or is gone from there (`old`). One that is changed, or moves to another quota, is gone first.
    fn on_pod_updated(&mut self, _quota: &str, _old: Option<&Arc<Pod>>, _new: Option<&Arc<Pod>>) {}

    /// The object of a quota as it is to be written, where that is something else than `new`. `old` is the object as it is, `new` the
    /// same with what the scheduler and earlier hooks write; none where they write nothing.
    fn update_quota_status(&self, _old: &ElasticQuota, _new: Option<&ElasticQuota>) -> Option<ElasticQuota> {
        None
    }

    /// Whether the pod may be placed in its quota; the reason otherwise.
    fn check_pod(&self, _quota: &str, _pod: &Pod, _quotas: &Forest) -> Result<(), BoxError> {
        Ok(())
    }
}

/// An update of a quota.
#[derive(Clone, Copy, Debug)]
pub struct QuotaUpdate<'u> {
    /// The quota before; none where it is added.
    pub old: Option<&'u Quota>,
    /// The quota after; none where it is deleted.
    pub new: Option<&'u Quota>,
    /// The object: as it is now, or as it was where it is deleted.
    pub object: &'u ElasticQuota,
}

/// What hooks keep from before an update until after it, by key. All hooks share it.
#[derive(Default)]
pub struct QuotaUpdateState(BTreeMap<String, Box<dyn Any>>);

impl QuotaUpdateState {
    /// Keeps a value, instead of one of the same key.
    pub fn store<T: Any>(&mut self, key: impl Into<String>, value: T) {
        self.0.insert(key.into(), Box::new(value));
    }

    /// The value of this key, if it is of this type.
    pub fn load<T: Any>(&self, key: &str) -> Option<&T> {
        self.0.get(key)?.downcast_ref()
    }
}

/// A hook with the key that the configuration gives it.
pub struct Hook {
    key: Arc<str>,
    hook: Box<dyn QuotaHook>,
}

impl Hook {
    /// A hook with this key.
    pub fn new(key: &str, hook: Box<dyn QuotaHook>) -> Self {
        Self { key: key.into(), hook }
    }

    /// The hook without its key.
    pub fn into_inner(self) -> Box<dyn QuotaHook> {
        self.hook
    }
}

impl Clone for Hook {
    fn clone(&self) -> Self {
        Self { key: Arc::clone(&self.key), hook: self.hook.copy() }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hook").field(&self.key).finish()
    }
}

/// Why a pod is refused: a hook does not let it into its quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRefusal {
    quota: Arc<str>,
    hook: Arc<str>,
    error: String,
}

impl HookRefusal {
    pub(super) fn reason(&self) -> Reason {
        ReasonCode::PluginSpecific.reason(self.to_string()).with("quota", &self.quota).with("hook", &self.hook)
    }
}

impl fmt::Display for HookRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckPod failed for hook plugin {}, err: {}", self.hook, self.error)
    }
}

/// The hooks of a cluster's quotas.
#[derive(Clone, Debug, Default)]
pub(super) struct Hooks {
    hooks: Vec<Hook>,
    /// The placed pods that count, each with its quota as the hooks know it; none where it belongs to none.
    pods: BTreeMap<Uid, (Option<Arc<str>>, Arc<Pod>)>,
}

impl Hooks {
    pub(super) fn new(hooks: Vec<Hook>) -> Self {
        Self { hooks, pods: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Whether every hook lets the pod into its quota.
    pub(super) fn check(&self, quota: &Arc<str>, pod: &Pod, quotas: &Forest) -> Result<(), HookRefusal> {
        self.hooks.iter().try_for_each(|Hook { key, hook }| {
            let checked = hook.check_pod(quota, pod, quotas);
            checked.map_err(|error| HookRefusal {
                quota: Arc::clone(quota),
                hook: Arc::clone(key),
                error: error.to_string(),
            })
        })
    }

    /// Whether some hook takes an update for one.
    pub(super) fn is_quota_updated(&self, update: &QuotaUpdate<'_>, quotas: &Forest) -> bool {
        self.hooks.iter().any(|Hook { hook, .. }| hook.is_quota_updated(update, quotas))
    }

    pub(super) fn before(&mut self, update: &QuotaUpdate<'_>, quotas: &Forest) -> QuotaUpdateState {
        let mut state = QuotaUpdateState::default();
        for Hook { hook, .. } in &mut self.hooks {
            hook.pre_quota_update(update, quotas, &mut state);
        }
        state
    }

    pub(super) fn after(&mut self, update: &QuotaUpdate<'_>, quotas: &Forest, state: &mut QuotaUpdateState) {
        for Hook { hook, .. } in &mut self.hooks {
            hook.post_quota_update(update, quotas, state);
        }
    }

    /// A pod was placed in this quota; in none where it belongs to none.
    pub(super) fn placed(&mut self, quota: Option<Arc<str>>, pod: &Arc<Pod>) {
        if let Some(quota) = &quota {
            self.hooks.iter_mut().for_each(|Hook { hook, .. }| hook.on_pod_updated(quota, None, Some(pod)));
        }
        self.pods.insert(pod.uid.clone(), (quota, Arc::clone(pod)));
    }

    /// A pod is not placed any more, or does not count any more.
    pub(super) fn removed(&mut self, uid: &Uid) {
        if let Some((Some(quota), pod)) = self.pods.remove(uid) {
            self.hooks.iter_mut().for_each(|Hook { hook, .. }| hook.on_pod_updated(&quota, Some(&pod), None));
        }
    }

    /// Pods may belong to other quotas than they did.
    pub(super) fn move_pods(&mut self, quota_of: impl Fn(&Pod) -> Option<Arc<str>>) {
        let moved = self.pods.values().filter_map(|(known, pod)| {
            let quota = quota_of(pod);
            (quota != *known).then(|| (quota, Arc::clone(pod)))
        });
        let moved: Vec<(Option<Arc<str>>, Arc<Pod>)> = moved.collect();
        for (quota, pod) in moved {
            self.removed(&pod.uid);
            self.placed(quota, &pod);
        }
    }

    /// The patch of a quota's object with what hooks write, which the scheduler would patch like this; none where there is nothing
    /// to write.
    pub(super) fn status_patch(&self, object: &ElasticQuota, uid: &Uid, patch: Option<Value>) -> Option<Value> {
        let old = json!(object);
        let mut new: Option<ElasticQuota> =
            patch.as_ref().and_then(|patch| serde_json::from_value(merge::apply(old.clone(), patch)).ok());
        let mut is_updated = false;
        for Hook { hook, .. } in &self.hooks {
            if let Some(updated) = hook.update_quota_status(object, new.as_ref()) {
                (new, is_updated) = (Some(updated), true);
            }
        }
        if !is_updated {
            return patch;
        }
        let mut patch = merge::diff(&old, &json!(new))?;
        patch["metadata"]["uid"] = json!(uid);
        Some(patch)
    }
}
