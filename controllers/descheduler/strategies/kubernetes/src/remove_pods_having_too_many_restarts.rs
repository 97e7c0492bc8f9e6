//! Evicts pods whose containers have restarted too often.

use std::{cmp::Reverse, sync::Arc};

use koord_config::descheduler::RemovePodsHavingTooManyRestartsArgs;
use koord_descheduler_framework::{
    Deschedule, Pass, Plugin, Pod, PodId, PodSelection, ReasonCode, Refusal, Registration, StrategyError,
    pod::{ContainerKind, ContainerState},
};

use crate::{ArgsError, selection};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct RemovePodsHavingTooManyRestarts {
    args: RemovePodsHavingTooManyRestartsArgs,
    selection: PodSelection,
}

impl RemovePodsHavingTooManyRestarts {
    /// # Errors
    ///
    /// The label selector is none.
    pub fn new(args: RemovePodsHavingTooManyRestartsArgs) -> Result<Self, ArgsError> {
        let selection = selection::pods(args.namespaces.as_ref(), args.label_selector.as_ref())?;
        Ok(Self { args, selection })
    }

    /// The restarts for which a pod is evicted, or why it stays.
    fn decide(&self, pod: &Pod) -> Result<i64, Refusal> {
        self.selection.check(pod)?;
        let restarts: i64 = self.containers(pod).map(|state| i64::from(state.restarts)).sum();
        let threshold = self.args.pod_restart_threshold;
        if restarts < i64::from(threshold) {
            let refusal = Refusal::new(ReasonCode::TooFewRestarts);
            return Err(refusal.with("restarts", restarts).with("threshold", threshold));
        }
        let states = &self.args.states;
        let is_wanted = |found: &str| states.iter().any(|state| state == found);
        let phase = pod.state.phase.as_str();
        let mut waiting = self.containers(pod).filter_map(|state| state.waiting.as_deref());
        if !states.is_empty() && !is_wanted(phase) && !waiting.any(is_wanted) {
            return Err(Refusal::new(ReasonCode::NotInState).with("phase", phase));
        }
        Ok(restarts)
    }

    fn containers<'p>(&self, pod: &'p Pod) -> impl Iterator<Item = &'p ContainerState> {
        let counts_init = self.args.including_init_containers;
        pod.state.containers.iter().filter(move |state| match state.kind {
            ContainerKind::Main => true,
            ContainerKind::Init => counts_init,
            ContainerKind::Ephemeral => false,
        })
    }
}

impl Plugin for RemovePodsHavingTooManyRestarts {
    fn name(&self) -> &'static str {
        "RemovePodsHavingTooManyRestarts"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).deschedule(&self)
    }
}

impl Deschedule for RemovePodsHavingTooManyRestarts {
    fn deschedule(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        let cluster = pass.cluster();
        let mut candidates: Vec<(i64, PodId)> = Vec::new();
        for node in pass.nodes() {
            candidates.clear();
            for (id, pod) in cluster.pods_on(*node) {
                match self.decide(pod) {
                    Ok(restarts) => candidates.push((restarts, id)),
                    Err(refusal) => pass.leave(id, refusal),
                }
            }
            // A limit of evictions is spent on the pods that restart most.
            candidates.sort_by_key(|(restarts, _)| Reverse(*restarts));
            for (restarts, id) in candidates.iter().copied() {
                if selection::may_be_evicted(pass, id) {
                    let threshold = self.args.pod_restart_threshold;
                    let text = format!("its containers have restarted {restarts} times, and {threshold} are too many");
                    let reason = ReasonCode::TooManyRestarts.reason(text);
                    pass.evict(id, reason.with("restarts", restarts).with("threshold", threshold), "");
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use koord_descheduler_testing::{args, cluster, evicted, node, pod, verdicts, with};

    /// Which of these pods the strategy evicts, in this order.
    fn evicts(arguments: &Value, pods: &[Value]) -> Vec<String> {
        let arguments = args("RemovePodsHavingTooManyRestarts", arguments);
        let objects: Vec<Value> = [node("n1"), node("n2")].iter().chain(pods).cloned().collect();
        evicted(RemovePodsHavingTooManyRestarts::new(arguments).unwrap(), &cluster(&objects), 0)
    }

    fn container(restarts: i32, waiting: Option<&str>) -> Value {
        let state = waiting.map_or(json!({}), |reason| json!({"waiting": {"reason": reason}}));
        json!({"name": "c", "ready": false, "restartCount": restarts, "image": "i", "imageID": "", "state": state})
    }

    fn restarted(name: &str, containers: &[Value], init: &[Value]) -> Value {
        with(&pod(name, "n1"), &json!({"status": {"containerStatuses": containers, "initContainerStatuses": init}}))
    }

    #[test]
    fn restarts_of_all_containers_are_added_up_to_the_threshold() {
        let pods = [
            restarted("a", &[container(2, None), container(3, None)], &[]),
            restarted("b", &[container(4, None)], &[]),
            restarted("c", &[container(3, None)], &[container(4, None)]),
            restarted("d", &[container(i32::MAX, None), container(i32::MAX, None)], &[]),
        ];
        assert_eq!(evicts(&json!({"podRestartThreshold": 5}), &pods), ["d", "a"], "the sum is wider than its terms");
        let with_init = json!({"podRestartThreshold": 5, "includingInitContainers": true});
        assert_eq!(evicts(&with_init, &pods), ["d", "c", "a"]);
    }

    #[test]
    fn on_each_node_the_pod_with_most_restarts_goes_first() {
        let pods = [
            restarted("a", &[container(3, None)], &[]),
            restarted("b", &[container(30, None)], &[]),
            restarted("c", &[container(13, None)], &[]),
            restarted("d", &[container(13, None)], &[]),
            with(&restarted("e", &[container(99, None)], &[]), &json!({"spec": {"nodeName": "n2"}})),
        ];
        assert_eq!(evicts(&json!({"podRestartThreshold": 2}), &pods), ["b", "c", "d", "a", "e"]);
    }

    #[test]
    fn states_are_phases_and_reasons_for_which_containers_wait() {
        let crashing = Some("CrashLoopBackOff");
        let pods = [
            restarted("a", &[container(9, crashing)], &[]),
            restarted("b", &[container(9, None)], &[container(0, crashing)]),
            with(&restarted("c", &[container(9, None)], &[]), &json!({"status": {"phase": "Failed"}})),
            with(&restarted("d", &[container(9, crashing)], &[]), &json!({"status": {"phase": "Pending"}})),
        ];
        for (states, with_init, expected) in [
            (json!([]), false, vec!["a", "b", "c", "d"]),
            (json!(["CrashLoopBackOff"]), false, vec!["a", "d"]),
            (json!(["CrashLoopBackOff"]), true, vec!["a", "b", "d"]),
            (json!(["Running"]), false, vec!["a", "b"]),
            (json!(["Running", "CrashLoopBackOff"]), false, vec!["a", "b", "d"]),
        ] {
            let arguments = json!({"podRestartThreshold": 5, "states": states, "includingInitContainers": with_init});
            assert_eq!(evicts(&arguments, &pods), expected, "{arguments}");
        }
    }

    #[test]
    fn why_a_pod_stays_is_known() {
        let pods = [restarted("a", &[container(9, None)], &[]), restarted("b", &[container(1, None)], &[])];
        let objects: Vec<Value> = [node("n1"), node("n2")].iter().chain(&pods).cloned().collect();
        let crashing = args("", &json!({"podRestartThreshold": 5, "states": ["CrashLoopBackOff"]}));
        let found = verdicts(RemovePodsHavingTooManyRestarts::new(crashing).unwrap(), &cluster(&objects), 0);
        let expected = [("a", ReasonCode::NotInState), ("b", ReasonCode::TooFewRestarts)];
        assert_eq!(found, expected.map(|(name, code)| (name.to_owned(), code)));
    }

    #[test]
    fn namespaces_and_labels_choose() {
        let pods = [
            with(&restarted("a", &[container(9, None)], &[]), &json!({"metadata": {"labels": {"app": "x"}}})),
            restarted("b", &[container(9, None)], &[]),
        ];
        let labels = json!({"podRestartThreshold": 5, "labelSelector": {"matchLabels": {"app": "x"}}});
        assert_eq!(evicts(&labels, &pods), ["a"]);
        assert_eq!(evicts(&json!({"podRestartThreshold": 5, "namespaces": {"exclude": ["default"]}}), &pods), [""; 0]);
    }
}
