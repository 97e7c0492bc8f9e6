//! Evicts pods that have failed.

use std::sync::Arc;

use koord_config::descheduler::RemoveFailedPodsArgs;
use koord_descheduler_framework::{
    Deschedule, Pass, Plugin, Pod, PodSelection, Reason, ReasonCode, Refusal, Registration, StrategyError,
    pod::{ContainerKind, Phase},
};

use crate::{ArgsError, selection};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct RemoveFailedPods {
    args: RemoveFailedPodsArgs,
    selection: PodSelection,
}

impl RemoveFailedPods {
    /// # Errors
    ///
    /// The label selector is none.
    pub fn new(args: RemoveFailedPodsArgs) -> Result<Self, ArgsError> {
        let selection = selection::pods(args.namespaces.as_ref(), args.label_selector.as_ref())?;
        Ok(Self { args, selection })
    }

    /// Why a pod is evicted, or why it stays.
    fn decide(&self, pod: &Pod, now: i64) -> Result<Reason, Refusal> {
        if pod.state.phase != Phase::Failed {
            return Err(Refusal::new(ReasonCode::NotInState).with("phase", pod.state.phase.as_str()));
        }
        let age = now - pod.created;
        let min = i64::try_from(self.args.min_pod_lifetime_seconds).unwrap_or(i64::MAX);
        if age < min {
            return Err(Refusal::new(ReasonCode::NotOldEnough).with("age", age).with("minimum", min));
        }
        if let Some(kind) = self.args.exclude_owner_kinds.iter().find(|kind| pod.is_owned_by(kind)) {
            return Err(Refusal::new(ReasonCode::OwnerKindExcluded).with("kind", Arc::<str>::from(kind.as_str())));
        }
        let counts = |kind| match kind {
            ContainerKind::Main => true,
            ContainerKind::Init => self.args.including_init_containers,
            ContainerKind::Ephemeral => false,
        };
        let states = || pod.state.containers.iter().filter(|state| counts(state.kind));
        if !self.args.reasons.is_empty() {
            let of_containers = states().flat_map(|state| {
                let terminated = state.terminated.as_ref().map(|(reason, _)| reason);
                state.waiting.iter().chain(terminated)
            });
            let mut reasons = pod.state.reason.iter().chain(of_containers);
            if !reasons.any(|reason| self.args.reasons.iter().any(|wanted| **wanted == **reason)) {
                return Err(Refusal::new(ReasonCode::NotInState).with("reasons", "none of those that are wanted"));
            }
        }
        if !self.args.exit_codes.is_empty() {
            let mut codes = states().filter_map(|state| state.terminated.as_ref().map(|(_, code)| *code));
            if !codes.any(|code| self.args.exit_codes.contains(&code)) {
                return Err(Refusal::new(ReasonCode::NotInState).with("exitCodes", "none of those that are wanted"));
            }
        }
        let reason = pod.state.reason.as_deref();
        let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        Ok(ReasonCode::FailedPod.reason(format!("failed{why}")).with("age", age))
    }
}

impl Plugin for RemoveFailedPods {
    fn name(&self) -> &'static str {
        "RemoveFailedPods"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).deschedule(&self)
    }
}

impl Deschedule for RemoveFailedPods {
    fn deschedule(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        let now = pass.now().as_second();
        for (id, pod) in pass.pods() {
            if let Err(refusal) = self.selection.check(pod) {
                pass.leave(id, refusal);
                continue;
            }
            match self.decide(pod, now) {
                Ok(reason) => {
                    if selection::may_be_evicted(pass, id) {
                        pass.evict(id, reason, "");
                    }
                }
                Err(refusal) => pass.leave(id, refusal),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::DefaultEvictor;
    use koord_descheduler_testing::{args, cluster, evicted, evicted_through, node, pod, with};

    const NOW: i64 = 10_000;

    /// Which of these pods the strategy evicts.
    fn evicts(arguments: &Value, pods: &[Value]) -> Vec<String> {
        let plugin = RemoveFailedPods::new(args("RemoveFailedPods", arguments)).unwrap();
        let objects: Vec<Value> = [node("n1"), node("n2")].iter().chain(pods).cloned().collect();
        evicted(plugin, &cluster(&objects), NOW)
    }

    fn failed(name: &str, change: &Value) -> Value {
        let failed = json!({"metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"}, "status": {"phase": "Failed"}});
        with(&with(&pod(name, "n1"), &failed), change)
    }

    #[test]
    fn only_failed_pods_that_are_old_enough_go() {
        let young = json!({"metadata": {"creationTimestamp": "1970-01-01T02:00:00Z"}});
        let pods = [failed("a", &json!({})), failed("b", &young), pod("c", "n1")];
        assert_eq!(evicts(&json!({}), &pods), ["a"], "an hour by default");
        assert_eq!(evicts(&json!({"minPodLifetimeSeconds": 0}), &pods), ["a", "b"]);
        assert_eq!(evicts(&json!({"minPodLifetimeSeconds": null}), &pods), ["a", "b"]);
    }

    #[test]
    fn reasons_and_exit_codes_are_looked_for_in_pod_and_containers() {
        let ended = |reason: &str, code: i32| {
            json!([{"name": "c", "ready": false, "restartCount": 0, "image": "i", "imageID": "",
                "state": {"terminated": {"reason": reason, "exitCode": code}}}])
        };
        let pods = [
            failed("a", &json!({"status": {"reason": "Evicted"}})),
            failed("b", &json!({"status": {"containerStatuses": ended("OOMKilled", 137)}})),
            failed("c", &json!({"status": {"initContainerStatuses": ended("Error", 1)}})),
        ];
        assert_eq!(evicts(&json!({"reasons": ["Evicted", "OOMKilled"]}), &pods), ["a", "b"]);
        assert_eq!(evicts(&json!({"reasons": ["evicted"]}), &pods), [""; 0], "case matters");
        assert_eq!(evicts(&json!({"reasons": ["Error"]}), &pods), [""; 0]);
        assert_eq!(evicts(&json!({"reasons": ["Error"], "includingInitContainers": true}), &pods), ["c"]);
        assert_eq!(evicts(&json!({"exitCodes": [137]}), &pods), ["b"]);
    }

    #[test]
    fn an_evicted_pod_with_local_storage_stays_unless_the_evictor_lets_such_pods_go() {
        let local = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}, "status": {"reason": "Evicted"}});
        let cluster = cluster(&[node("n1"), node("n2"), failed("a", &local)]);
        let found = |arguments: Value| {
            let plugin = RemoveFailedPods::new(args("RemoveFailedPods", &json!({"reasons": ["Evicted"]}))).unwrap();
            let evictor = DefaultEvictor::new(&args("DefaultEvictor", &arguments)).unwrap();
            evicted_through(plugin, evictor, &cluster, NOW)
        };
        assert_eq!(found(json!({})), [""; 0]);
        assert_eq!(found(json!({"evictLocalStoragePods": true})), ["a"]);
    }

    #[test]
    fn namespaces_labels_and_owners_choose() {
        let owned = json!({"metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}]}});
        let pods = [failed("a", &json!({"metadata": {"labels": {"app": "x"}}})), failed("b", &owned)];
        assert_eq!(evicts(&json!({"excludeOwnerKinds": ["Job"]}), &pods), ["a"]);
        assert_eq!(evicts(&json!({"labelSelector": {"matchLabels": {"app": "x"}}}), &pods), ["a"]);
        assert_eq!(evicts(&json!({"namespaces": {"exclude": ["default"]}}), &pods), [""; 0]);
    }
}
