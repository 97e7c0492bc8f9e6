//! Evicts pods that are too old, or in a state in which they are not to stay.

use std::sync::Arc;

use koord_config::descheduler::{ConditionFilter, OwnerKinds, PodLifeTimeArgs};
use koord_descheduler_framework::{
    Deschedule, Pass, Plugin, Pod, PodId, PodSelection, Reason, ReasonCode, Refusal, Registration, StrategyError,
    pod::{ContainerKind, ContainerState},
};

use crate::{ArgsError, selection};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct PodLifeTime {
    args: PodLifeTimeArgs,
    selection: PodSelection,
    /// What of the arguments must hold, for reasons.
    states: Arc<str>,
}

impl PodLifeTime {
    /// # Errors
    ///
    /// The label selector is none.
    pub fn new(args: PodLifeTimeArgs) -> Result<Self, ArgsError> {
        let selection = selection::pods(args.namespaces.as_ref(), args.label_selector.as_ref())?;
        let states = args.states.join(", ").into();
        Ok(Self { args, selection, states })
    }

    /// Why a pod stays; all filters must let it go.
    fn check(&self, pod: &Pod, now: i64) -> Result<(), Refusal> {
        self.selection.check(pod)?;
        let age = now - pod.created;
        // A pod that was created in the future has no age, and is never too old.
        if let Some(max) = self.args.max_pod_life_time_seconds
            && u64::try_from(age).map_or(true, |age| age <= max)
        {
            let max = i64::try_from(max).unwrap_or(i64::MAX);
            return Err(Refusal::new(ReasonCode::NotOldEnough).with("age", age).with("maximum", max));
        }
        if !self.args.states.is_empty() && !self.is_in_state(pod) {
            let refusal = Refusal::new(ReasonCode::NotInState).with("phase", pod.state.phase.as_str());
            return Err(refusal.with("states", &self.states));
        }
        if let Some(kinds) = &self.args.owner_kinds
            && !selects_owners(kinds, pod)
        {
            return Err(ReasonCode::OwnerKindExcluded.into());
        }
        if !self.args.conditions.is_empty() && !self.args.conditions.iter().any(|filter| has(pod, filter, now)) {
            return Err(Refusal::new(ReasonCode::NotInState).with("conditions", "none of those that are wanted"));
        }
        if !self.args.exit_codes.is_empty() {
            // QUIRK: ephemeral containers do not count here, whatever includingEphemeralContainers says
            // (`exit_codes_of_ephemeral_containers_never_count`).
            let counted = self.containers(pod).filter(|state| state.kind != ContainerKind::Ephemeral);
            let mut codes = counted.filter_map(|state| state.terminated.as_ref().map(|(_, code)| *code));
            if !codes.any(|code| self.args.exit_codes.contains(&code)) {
                return Err(Refusal::new(ReasonCode::NotInState).with("exitCodes", "none of those that are wanted"));
            }
        }
        Ok(())
    }

    /// Whether its phase, its reason, or a reason for which a container waits or has ended is one of `states`.
    fn is_in_state(&self, pod: &Pod) -> bool {
        let is_wanted = |found: &str| self.args.states.iter().any(|state| state == found);
        is_wanted(pod.state.phase.as_str())
            || pod.state.reason.as_deref().is_some_and(is_wanted)
            || self.containers(pod).any(|state| {
                state.waiting.as_deref().is_some_and(is_wanted)
                    || state.terminated.as_ref().is_some_and(|(reason, _)| is_wanted(reason))
            })
    }

    fn containers<'p>(&self, pod: &'p Pod) -> impl Iterator<Item = &'p ContainerState> {
        let PodLifeTimeArgs { including_init_containers, including_ephemeral_containers, .. } = self.args;
        pod.state.containers.iter().filter(move |state| match state.kind {
            ContainerKind::Main => true,
            ContainerKind::Init => including_init_containers,
            ContainerKind::Ephemeral => including_ephemeral_containers,
        })
    }

    fn reason(&self, pod: &Pod, now: i64) -> Reason {
        let (age, phase) = (now - pod.created, pod.state.phase.as_str());
        let reason = match self.args.max_pod_life_time_seconds {
            Some(max) => {
                let reason =
                    ReasonCode::LifeTimeOver.reason(format!("is {age} seconds old, and {max} are the maximum"));
                reason.with("age", age).with("maximum", max)
            }
            None => ReasonCode::LifeTimeOver
                .reason(format!("is in a state in which it is not to stay, its phase is {phase}"))
                .with("age", age),
        };
        reason.with("phase", phase)
    }
}

/// A pod without owner is of no kind: it is not included, and not excluded.
fn selects_owners(kinds: &OwnerKinds, pod: &Pod) -> bool {
    let is_of = |kinds: &[String]| kinds.iter().any(|kind| pod.is_owned_by(kind));
    (kinds.include.is_empty() || is_of(&kinds.include)) && !is_of(&kinds.exclude)
}

/// Whether a condition of the pod is what is asked for. One of which it is not known when it changed is never old enough.
fn has(pod: &Pod, filter: &ConditionFilter, now: i64) -> bool {
    let is_equal = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    pod.state.conditions.iter().zip(&pod.transitions).any(|(condition, changed)| {
        let is_old_enough = filter
            .min_time_since_last_transition_seconds
            .is_none_or(|min| *changed != 0 && u64::try_from(now - changed).is_ok_and(|since| since >= min));
        is_equal(&filter.type_, &condition.kind)
            && is_equal(&filter.status, &condition.status)
            && is_equal(&filter.reason, &condition.reason)
            && is_old_enough
    })
}

impl Plugin for PodLifeTime {
    fn name(&self) -> &'static str {
        "PodLifeTime"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).deschedule(&self)
    }
}

impl Deschedule for PodLifeTime {
    fn deschedule(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        let (cluster, now) = (pass.cluster(), pass.now().as_second());
        let mut candidates: Vec<(i64, PodId)> = Vec::new();
        for (id, pod) in pass.pods() {
            match self.check(pod, now) {
                Ok(()) => candidates.push((pod.created, id)),
                Err(refusal) => pass.leave(id, refusal),
            }
        }
        // The oldest first, whatever their nodes: limits of evictions are spent on them.
        candidates.sort_by_key(|(created, _)| *created);
        for (_, id) in candidates {
            if selection::may_be_evicted(pass, id)
                && let Some(pod) = cluster.pod(id)
            {
                pass.evict(id, self.reason(pod, now), "");
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

    const NOW: i64 = 10_000;

    /// Which of these pods the strategy evicts, in this order.
    fn evicts(arguments: &Value, pods: &[Value]) -> Vec<String> {
        let plugin = PodLifeTime::new(args("PodLifeTime", arguments)).unwrap();
        let objects: Vec<Value> = [node("n1"), node("n2")].iter().chain(pods).cloned().collect();
        evicted(plugin, &cluster(&objects), NOW)
    }

    fn time(seconds: i64) -> String {
        jiff::Timestamp::from_second(seconds).unwrap().to_string()
    }

    fn aged(name: &str, age: i64, change: &Value) -> Value {
        with(&with(&pod(name, "n1"), &json!({"metadata": {"creationTimestamp": time(NOW - age)}})), change)
    }

    fn statuses(key: &str, state: &Value) -> Value {
        let container =
            json!({"name": "c", "ready": false, "restartCount": 0, "image": "i", "imageID": "", "state": state});
        json!({"status": {key: [container]}})
    }

    #[test]
    fn a_pod_goes_when_it_is_older_than_the_maximum() {
        for (age, max, expected) in
            [(605, 600, 1), (601, 600, 1), (600, 600, 0), (595, 600, 0), (1, 0, 1), (0, 0, 0), (-5, 0, 0), (-5, 600, 0)]
        {
            let found = evicts(&json!({"maxPodLifeTimeSeconds": max}), &[aged("a", age, &json!({}))]);
            assert_eq!(found.len(), expected, "{age} {max}");
        }
    }

    #[test]
    fn the_oldest_go_first_whatever_their_nodes() {
        let on = |node: &str| json!({"spec": {"nodeName": node}});
        let pods = [
            aged("a", 700, &on("n1")),
            aged("b", 900, &on("n2")),
            aged("c", 800, &on("n1")),
            aged("d", 800, &on("n2")),
        ];
        assert_eq!(evicts(&json!({"maxPodLifeTimeSeconds": 600}), &pods), ["b", "c", "d", "a"]);
    }

    #[test]
    fn states_are_phases_and_the_reasons_of_pods_and_containers() {
        let (waiting, ended) = (
            json!({"waiting": {"reason": "ImagePullBackOff"}}),
            json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}}),
        );
        let pods = [
            aged("a", 0, &json!({"status": {"phase": "Pending"}})),
            aged("b", 0, &json!({"status": {"phase": "Succeeded"}})),
            aged("c", 0, &json!({"status": {"phase": "Failed", "reason": "Shutdown"}})),
            aged("d", 0, &statuses("containerStatuses", &waiting)),
            aged("e", 0, &statuses("initContainerStatuses", &waiting)),
            aged("f", 0, &statuses("ephemeralContainerStatuses", &ended)),
            aged("g", 0, &statuses("containerStatuses", &ended)),
        ];
        for (states, expected) in [
            (json!(["Pending"]), vec!["a"]),
            (json!(["Succeeded", "Failed"]), vec!["b", "c"]),
            (json!(["Shutdown"]), vec!["c"]),
            (json!(["ImagePullBackOff"]), vec!["d"]),
            (json!(["OOMKilled"]), vec!["g"]),
            (json!(["NodeLost"]), vec![]),
        ] {
            assert_eq!(evicts(&json!({"states": states}), &pods), expected, "{states}");
        }
        let with_flag = |flag: &str, state: &str| evicts(&json!({"states": [state], flag: true}), &pods);
        assert_eq!(with_flag("includingInitContainers", "ImagePullBackOff"), ["d", "e"]);
        assert_eq!(with_flag("includingEphemeralContainers", "ImagePullBackOff"), ["d"]);
        assert_eq!(with_flag("includingEphemeralContainers", "OOMKilled"), ["f", "g"]);
    }

    #[test]
    fn one_condition_has_to_be_as_asked_for_and_for_as_long() {
        let condition = |name: &str, status: &str, reason: &str, ago: Option<i64>| {
            let changed = ago.map(|ago| time(NOW - ago));
            let condition = json!({"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": changed});
            let other = json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": time(NOW - 900)});
            aged(name, 0, &json!({"status": {"conditions": [other, condition]}}))
        };
        let pods = [
            condition("a", "False", "PodFailed", Some(600)),
            condition("b", "False", "", Some(599)),
            condition("c", "False", "", None),
            condition("d", "True", "", Some(-5)),
        ];
        for (conditions, expected) in [
            (json!([{"type": "Ready", "status": "False"}]), vec!["a", "b", "c"]),
            (json!([{"reason": "PodFailed"}]), vec!["a"]),
            (json!([{"type": "Ready", "minTimeSinceLastTransitionSeconds": 600}]), vec!["a"]),
            (json!([{"type": "Ready", "status": "False", "minTimeSinceLastTransitionSeconds": 0}]), vec!["a", "b"]),
            (json!([{"type": "Ready", "status": "True", "minTimeSinceLastTransitionSeconds": 0}]), vec![]),
            (json!([{"type": "Ready", "status": "True"}, {"reason": "PodFailed"}]), vec!["a", "d"]),
            (json!([{"type": "PodScheduled", "minTimeSinceLastTransitionSeconds": 900}]), vec!["a", "b", "c", "d"]),
            (json!([{"status": "Unknown"}]), vec![]),
        ] {
            assert_eq!(evicts(&json!({"conditions": conditions}), &pods), expected, "{conditions}");
        }
    }

    #[test]
    fn owners_are_included_or_excluded_by_kind() {
        let owned = |kind: &str| json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": "o", "uid": "o"}]}});
        let pods = [
            aged("job", 9, &owned("Job")),
            aged("set", 9, &owned("StatefulSet")),
            aged("bare", 9, &json!({"metadata": {"ownerReferences": null}})),
        ];
        for (kinds, expected) in [
            (json!({"include": ["Job", "Widget"]}), vec!["job"]),
            (json!({"exclude": ["Job"]}), vec!["bare", "set"]),
            (json!({}), vec!["bare", "job", "set"]),
        ] {
            assert_eq!(evicts(&json!({"maxPodLifeTimeSeconds": 0, "ownerKinds": kinds}), &pods), expected, "{kinds}");
        }
    }

    #[test]
    fn exit_codes_of_ephemeral_containers_never_count() {
        let ended = json!({"terminated": {"reason": "Error", "exitCode": 3}});
        let pods = [
            aged("a", 0, &statuses("containerStatuses", &ended)),
            aged("b", 0, &statuses("initContainerStatuses", &ended)),
            aged("c", 0, &statuses("ephemeralContainerStatuses", &ended)),
        ];
        assert_eq!(evicts(&json!({"exitCodes": [137, 3]}), &pods), ["a"]);
        assert_eq!(evicts(&json!({"exitCodes": [137]}), &pods), [""; 0]);
        let all = json!({"exitCodes": [3], "includingInitContainers": true, "includingEphemeralContainers": true});
        assert_eq!(evicts(&all, &pods), ["a", "b"]);
    }

    #[test]
    fn every_filter_must_let_a_pod_go() {
        let ended = statuses("containerStatuses", &json!({"terminated": {"reason": "Error", "exitCode": 3}}));
        let labelled = json!({"metadata": {"labels": {"app": "x"}}});
        let pods = [
            aged("a", 9, &with(&ended, &labelled)),
            aged("b", 9, &labelled),
            aged("c", 9, &ended),
            aged("d", 0, &with(&ended, &labelled)),
        ];
        let all = json!({
            "maxPodLifeTimeSeconds": 0, "states": ["Running"], "exitCodes": [3],
            "labelSelector": {"matchLabels": {"app": "x"}}, "namespaces": {"exclude": ["kube-system"]},
        });
        assert_eq!(evicts(&all, &pods), ["a"]);
        assert_eq!(evicts(&with(&all, &json!({"namespaces": {"exclude": ["default"]}})), &pods), [""; 0]);
    }

    #[test]
    fn why_a_pod_stays_is_known() {
        let change = json!({"metadata": {"ownerReferences": null}});
        let pods =
            [aged("a", 5, &json!({})), aged("b", 11, &json!({"status": {"phase": "Pending"}})), aged("c", 11, &change)];
        let objects: Vec<Value> = [node("n1"), node("n2")].iter().chain(&pods).cloned().collect();
        let arguments =
            json!({"maxPodLifeTimeSeconds": 10, "states": ["Running"], "ownerKinds": {"include": ["ReplicaSet"]}});
        let found = verdicts(PodLifeTime::new(args("PodLifeTime", &arguments)).unwrap(), &cluster(&objects), NOW);
        let expected =
            [("a", ReasonCode::NotOldEnough), ("b", ReasonCode::NotInState), ("c", ReasonCode::OwnerKindExcluded)];
        assert_eq!(found, expected.map(|(name, code)| (name.to_owned(), code)));
    }

    #[test]
    fn the_reason_has_the_age_and_the_maximum() {
        let reason = |arguments: Value| {
            let plugin = PodLifeTime::new(args("PodLifeTime", &arguments)).unwrap();
            let cluster = cluster(&[node("n1"), aged("a", 700, &json!({}))]);
            let reason = plugin.reason(cluster.pod(cluster.pod_id("default/a").unwrap()).unwrap(), NOW);
            ["age", "maximum", "phase"].map(|name| reason.operand(name).map(str::to_owned))
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(reason(json!({"maxPodLifeTimeSeconds": 600})), [text("700"), text("600"), text("Running")]);
        assert_eq!(reason(json!({"states": ["Running"]})), [text("700"), None, text("Running")]);
    }
}
