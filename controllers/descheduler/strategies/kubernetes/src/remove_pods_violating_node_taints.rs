//! Evicts pods that do not tolerate a taint of their node.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::{Taint, Toleration};
use koord_config::descheduler::RemovePodsViolatingNodeTaintsArgs;
use koord_descheduler_framework::{
    Deschedule, Pass, Plugin, PodSelection, Reason, ReasonCode, Registration, StrategyError, toleration::tolerates,
};
use koord_scheduling::Effect;

use crate::{ArgsError, selection};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct RemovePodsViolatingNodeTaints {
    selection: PodSelection,
    taints: TaintSelection,
}

/// Which taints count.
#[derive(Clone, Debug)]
struct TaintSelection {
    effects: &'static [Effect],
    excluded: BTreeSet<String>,
    /// `None` includes all. An empty list includes none.
    included: Option<BTreeSet<String>>,
}

impl RemovePodsViolatingNodeTaints {
    /// # Errors
    ///
    /// The label selector is none.
    pub fn new(args: RemovePodsViolatingNodeTaintsArgs) -> Result<Self, ArgsError> {
        let selection = selection::pods(args.namespaces.as_ref(), args.label_selector.as_ref())?;
        let taints = TaintSelection {
            effects: if args.include_prefer_no_schedule {
                &[Effect::NoSchedule, Effect::PreferNoSchedule]
            } else {
                &[Effect::NoSchedule]
            },
            excluded: args.excluded_taints.into_iter().collect(),
            included: args.included_taints.map(|taints| taints.into_iter().collect()),
        };
        Ok(Self { selection, taints })
    }
}

impl TaintSelection {
    /// Entries of the lists are `key`, or `key=value` for a taint that has a value.
    fn counts(&self, taint: &Taint) -> bool {
        let is_in = |list: &BTreeSet<String>| {
            let value = taint.value.as_deref().filter(|value| !value.is_empty());
            list.contains(&taint.key) || value.is_some_and(|value| list.contains(&format!("{}={value}", taint.key)))
        };
        self.effects.iter().any(|effect| effect.as_str() == taint.effect)
            && !is_in(&self.excluded)
            && self.included.as_ref().is_none_or(is_in)
    }
}

/// The first taint that no toleration is about.
fn untolerated<'t>(taints: &[&'t Taint], tolerations: &[Toleration]) -> Option<&'t Taint> {
    taints.iter().copied().find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

fn reason(taint: &Taint) -> Reason {
    let value = taint.value.as_deref().filter(|value| !value.is_empty());
    let taint = match value {
        Some(value) => format!("{}={value}:{}", taint.key, taint.effect),
        None => format!("{}:{}", taint.key, taint.effect),
    };
    ReasonCode::TaintNotTolerated
        .reason(format!("does not tolerate the taint {taint} of its node"))
        .with("taint", taint)
}

impl Plugin for RemovePodsViolatingNodeTaints {
    fn name(&self) -> &'static str {
        "RemovePodsViolatingNodeTaints"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).deschedule(&self)
    }
}

impl Deschedule for RemovePodsViolatingNodeTaints {
    fn deschedule(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        let cluster = pass.cluster();
        for node in pass.nodes() {
            let of_node = cluster.node(*node).into_iter().flat_map(|node| &node.taints);
            let taints: Vec<&Taint> = of_node.filter(|taint| self.taints.counts(taint)).collect();
            if taints.is_empty() && !pass.wants_verdicts() {
                continue;
            }
            if !pass.is_search_of_use() {
                break;
            }
            for (id, pod) in cluster.pods_on(*node) {
                if let Err(refusal) = selection::check_active(&self.selection, pod) {
                    pass.leave(id, refusal);
                } else if let Some(taint) = untolerated(&taints, &pod.template.placement.tolerations) {
                    if selection::may_be_evicted(pass, id) {
                        pass.evict(id, reason(taint), "");
                    }
                } else {
                    pass.leave(id, ReasonCode::TaintsTolerated);
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
    use crate::DefaultEvictor;
    use koord_descheduler_framework::{Descheduler, Input, Limits, Memory, VerdictScope};
    use koord_descheduler_testing::{args, cluster, descheduler, evicted, evicted_through, node, pod, with};

    fn strategy(arguments: &Value) -> RemovePodsViolatingNodeTaints {
        RemovePodsViolatingNodeTaints::new(args("RemovePodsViolatingNodeTaints", arguments)).unwrap()
    }

    fn taint(key: &str, value: &str, effect: &str) -> Value {
        json!({"key": key, "value": value, "effect": effect})
    }

    fn tainted(name: &str, taints: &[Value]) -> Value {
        with(&node(name), &json!({"spec": {"taints": taints}}))
    }

    fn tolerating(name: &str, tolerations: &Value) -> Value {
        with(&pod(name, "n1"), &json!({"spec": {"tolerations": tolerations}}))
    }

    /// The pods that are evicted from a node with these taints.
    fn evicts(arguments: &Value, taints: &[Value], pods: &[Value]) -> Vec<String> {
        let objects: Vec<Value> = [tainted("n1", taints), node("n2")].iter().chain(pods).cloned().collect();
        evicted(strategy(arguments), &cluster(&objects), 0)
    }

    #[test]
    fn only_effects_that_keep_pods_away_count_and_preferences_if_asked_for() {
        let soft = json!({"includePreferNoSchedule": true});
        for (effect, arguments, expected) in [
            ("NoSchedule", json!({}), 1),
            ("PreferNoSchedule", json!({}), 0),
            ("PreferNoSchedule", soft.clone(), 1),
            ("NoExecute", json!({}), 0),
            ("NoExecute", soft, 0),
        ] {
            let found = evicts(&arguments, &[taint("k", "v", effect)], &[pod("a", "n1"), pod("b", "n2")]);
            assert_eq!(found, ["a"][..expected], "{effect} {arguments}");
        }
    }

    #[test]
    fn a_pod_stays_where_it_tolerates_every_taint_that_counts() {
        let taints = [taint("k", "v", "NoSchedule"), taint("l", "5", "NoSchedule"), taint("m", "", "NoExecute")];
        let l = |operator: &str, value: &str| json!([{"key": "k", "operator": "Exists"}, {"key": "l", "operator": operator, "value": value}]);
        let pods = [
            tolerating("a", &json!([{"key": "k", "operator": "Exists"}])),
            tolerating("b", &l("Equal", "5")),
            tolerating("c", &l("Gt", "4")),
            tolerating("d", &l("Gt", "5")),
            tolerating("e", &l("Lt", "6")),
            tolerating("f", &l("Lt", "5")),
            tolerating("g", &json!([{"operator": "Exists"}])),
        ];
        assert_eq!(evicts(&json!({}), &taints, &pods), ["a", "d", "f"]);
    }

    #[test]
    fn taints_are_named_by_key_or_by_key_and_value() {
        let taints = [taint("k", "v", "NoSchedule"), taint("l", "", "NoSchedule")];
        let of = |key: &str| {
            let other = if key == "k" { "l" } else { "k" };
            tolerating(key, &json!([{"key": other, "operator": "Exists"}]))
        };
        // The pod `k` minds only the taint `k`, and the pod `l` only the taint `l`.
        for (list, is_named) in [
            (json!(["k"]), [true, false]),
            (json!(["k=v"]), [true, false]),
            (json!(["k=w"]), [false, false]),
            (json!(["k", "l"]), [true, true]),
            (json!(["l="]), [false, false]),
        ] {
            let found = |arguments: &Value| evicts(arguments, &taints, &[of("k"), of("l")]);
            let named = ["k", "l"].into_iter().zip(is_named);
            let (included, excluded): (Vec<_>, Vec<_>) = named.partition(|(_, is_named)| *is_named);
            let names = |pods: Vec<(&'static str, bool)>| pods.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
            assert_eq!(found(&json!({"includedTaints": list})), names(included), "included {list}");
            assert_eq!(found(&json!({"excludedTaints": list})), names(excluded), "excluded {list}");
        }
    }

    #[test]
    fn an_empty_list_of_included_taints_includes_none() {
        let found = |arguments: Value| evicts(&arguments, &[taint("k", "v", "NoSchedule")], &[pod("a", "n1")]);
        assert_eq!(found(json!({"includedTaints": []})), [""; 0]);
        assert_eq!(found(json!({"includedTaints": null})), ["a"]);
        assert_eq!(found(json!({})), ["a"]);
        assert_eq!(found(json!({"excludedTaints": []})), ["a"]);
    }

    #[test]
    fn namespaces_labels_and_the_end_of_a_pod_choose() {
        let status = |phase: &str| json!({"status": {"phase": phase}});
        let pods = [
            with(&pod("a", "n1"), &json!({"metadata": {"labels": {"app": "x"}}})),
            with(&pod("b", "n1"), &status("Pending")),
            with(&pod("c", "n1"), &status("Succeeded")),
            with(&pod("d", "n1"), &status("Failed")),
        ];
        let found = |arguments: Value| evicts(&arguments, &[taint("k", "", "NoSchedule")], &pods);
        assert_eq!(found(json!({})), ["a", "b"], "finished pods stay");
        assert_eq!(found(json!({"labelSelector": {"matchLabels": {"app": "x"}}})), ["a"]);
        assert_eq!(found(json!({"namespaces": {"exclude": ["default"]}})), [""; 0]);
        assert_eq!(found(json!({"namespaces": {"include": ["default"]}})), ["a", "b"]);
    }

    #[test]
    fn the_fit_that_the_evictor_asks_for_is_checked_before_the_eviction() {
        let evictor = |arguments: Value| DefaultEvictor::new(&args("DefaultEvictor", &arguments)).unwrap();
        let nodes = [tainted("n1", &[taint("k", "", "NoSchedule")]), node("n2")];
        let apart = json!([{"labelSelector": {"matchLabels": {"app": "y"}}, "topologyKey": "kubernetes.io/hostname"}]);
        let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}});
        let x = with(&pod("x", "n1"), &json!({"spec": {"affinity": apart}}));
        let y = |name: &str, node: &str| {
            with(
                &pod(name, node),
                &json!({"metadata": {"labels": {"app": "y"}}, "spec": {"tolerations": [{"operator": "Exists"}]}}),
            )
        };
        let found = |arguments: Value, pods: &[Value]| {
            let objects: Vec<Value> = nodes.iter().chain(pods).cloned().collect();
            evicted_through(strategy(&json!({})), evictor(arguments), &cluster(&objects), 0)
        };
        let fit = json!({"nodeFit": true});
        assert_eq!(found(json!({}), &[x.clone(), y("y", "n2")]), ["x"]);
        assert_eq!(found(fit.clone(), &[x.clone(), y("y", "n2")]), [""; 0], "its anti-affinity forbids the only node");
        let both = [x.clone(), y("y", "n2"), y("z", "n1")];
        assert_eq!(found(fit.clone(), &both), [""; 0], "a conflict on its own node does not hide that");
        assert_eq!(found(fit, &[x, y("z", "n1")]), ["x"]);
    }

    #[test]
    fn limits_are_asked_before_fit() {
        let nodes = [tainted("n1", &[taint("k", "", "NoSchedule")]), node("n2")];
        let pinned = with(&pod("b", "n1"), &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}));
        let tolerant = tolerating("c", &json!([{"operator": "Exists"}]));
        let ended = with(&pod("d", "n1"), &json!({"status": {"phase": "Succeeded"}}));
        let pods = [pod("a", "n1"), pinned, tolerant, ended];
        let cluster = cluster(&nodes.iter().chain(&pods).cloned().collect::<Vec<Value>>());
        let verdicts = |total: Option<u32>| {
            let evictor = DefaultEvictor::new(&args("DefaultEvictor", &json!({"nodeFit": true}))).unwrap();
            let limits = Limits { total, ..Limits::default() };
            let descheduler = Descheduler { limits, ..descheduler(strategy(&json!({})), evictor) };
            let (memory, now) = (Memory::default(), jiff::Timestamp::UNIX_EPOCH);
            let input = Input { verdicts_of: VerdictScope::All(9), ..Input::new(&cluster, &memory, now) };
            let verdicts = descheduler.pass(&input).verdicts;
            verdicts.iter().map(|verdict| (verdict.pod.name().to_owned(), verdict.refusal.code)).collect::<Vec<_>>()
        };
        let after = [("c".to_owned(), ReasonCode::TaintsTolerated), ("d".to_owned(), ReasonCode::NotInState)];
        assert_eq!(verdicts(None), [vec![("b".to_owned(), ReasonCode::NoOtherNodeFits)], after.to_vec()].concat());
        assert_eq!(verdicts(Some(1)), [vec![("b".to_owned(), ReasonCode::TotalLimit)], after.to_vec()].concat());
    }

    #[test]
    fn the_reason_names_the_taint() {
        let reason = |value: &str| reason(&serde_json::from_value(taint("k", value, "NoSchedule")).unwrap());
        assert_eq!(reason("v").operand("taint"), Some("k=v:NoSchedule"));
        assert_eq!(reason("").operand("taint"), Some("k:NoSchedule"));
    }
}
