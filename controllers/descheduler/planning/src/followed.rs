//! A plan with what becomes of it.

use std::fmt;

use koord_core::key::ObjectKey;
use koord_descheduler_framework::{Cluster, Eviction, Means, Plan, Step};
use serde_json::{Value, json};

use crate::{
    budgets::Budgets,
    rehearsal::{Rehearsal, Successor},
};

/// A step with what becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    pub step: Step,
    /// What comes instead of the pod; `None` where no pod is evicted, or the scheduler was not asked.
    pub successor: Option<Successor>,
    /// Why the step is not worth it; `None` where it is.
    pub objection: Option<Objection>,
}

/// Why an eviction is not worth it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The successor would get the node of the pod.
    ComesBack,
    /// No node would take the successor.
    StaysPending(String),
    /// The budget lets no further pod go.
    BreaksBudget(ObjectKey),
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ComesBack => f.write_str("it would come back to the same node"),
            Self::StaysPending(why) => write!(f, "its successor would stay pending: {why}"),
            Self::BreaksBudget(budget) => write!(f, "the PodDisruptionBudget {budget} lets no further pod go"),
        }
    }
}

impl Objection {
    /// As a name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ComesBack => "ComesBack",
            Self::StaysPending(_) => "StaysPending",
            Self::BreaksBudget(_) => "BreaksBudget",
        }
    }
}

/// The steps of a plan, each followed through. Without a rehearsal only budgets are looked at. An eviction that a budget forbids changes nothing for
/// those that follow.
pub fn follow(plan: Plan, cluster: &Cluster, mut rehearsal: Option<Rehearsal>) -> Vec<Followed> {
    let mut budgets = Budgets::of(cluster);
    let mut follow_step = |step: Step| {
        let Some(eviction) = step.eviction() else { return Followed { step, successor: None, objection: None } };
        if let Some(budget) = forbidding(&mut budgets, eviction, cluster) {
            return Followed { step, successor: None, objection: Some(Objection::BreaksBudget(budget)) };
        }
        let successor = rehearsal.as_mut().map(|rehearsal| rehearsal.evict(eviction));
        let objection = match &successor {
            Some(Successor::ComesBack(_)) => Some(Objection::ComesBack),
            Some(Successor::Pending(why)) => Some(Objection::StaysPending(why.clone())),
            _ => None,
        };
        Followed { step, successor, objection }
    };
    plan.steps.into_iter().map(&mut follow_step).collect()
}

/// The budget that forbids an eviction. One in dry run takes nothing out of budgets.
fn forbidding(budgets: &mut Budgets<'_>, eviction: &Eviction, cluster: &Cluster) -> Option<ObjectKey> {
    let pod = cluster.pod(cluster.pod_id(eviction.pod.key.as_str())?)?;
    if eviction.means == Means::DryRun { None } else { budgets.take(pod).err() }
}

impl Followed {
    /// For programs.
    pub fn document(&self) -> Value {
        let mut document = match &self.step {
            Step::Evict(eviction) => json!({
                "action": "evict", "pod": eviction.pod.key.as_str(), "node": eviction.pod.node, "profile": eviction.profile,
                "strategy": eviction.plugin, "reason": eviction.reason.document(), "by": means(&eviction.means),
            }),
            Step::Cordon { node } => json!({"action": "cordon", "node": node}),
            Step::Uncordon { node } => json!({"action": "uncordon", "node": node}),
            Step::SetDeletionCost { pod, cost } => {
                json!({"action": "setDeletionCost", "pod": pod.key.as_str(), "cost": cost})
            }
        };
        match &self.successor {
            Some(Successor::On(node) | Successor::ComesBack(node)) => document["successor"] = json!({"node": node}),
            Some(Successor::Pending(why)) => document["successor"] = json!({"pending": why}),
            Some(Successor::None) => document["successor"] = Value::Null,
            Some(Successor::Unknown(why)) => document["successor"] = json!({"unknown": why}),
            None => {}
        }
        if let Some(objection) = &self.objection {
            document["objection"] = json!({"code": objection.code(), "text": objection.to_string()});
        }
        document
    }
}

fn means(means: &Means) -> &'static str {
    match means {
        Means::Eviction { .. } => "Eviction",
        Means::Job { .. } => "PodMigrationJob",
        Means::DryRun => "DryRun",
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use koord_descheduler_framework::{EvictedPod, Reason, ReasonCode};
    use koord_descheduler_testing::{cluster, node, pod, with};
    use koord_program::{gates::Gates, plan::Source};
    use koord_scheduler_assembly::{Configuration, GATES, snapshot};

    use super::*;

    /// What becomes of evictions of these pods, in this order.
    async fn followed(objects: &[Value], pods: &[&str]) -> Vec<Followed> {
        let configuration = Configuration::shipped_for_all_pods().unwrap();
        let source = Source::Files(objects.to_vec());
        let engine = snapshot(&configuration, &Gates::new(GATES), source, Timestamp::UNIX_EPOCH).await.unwrap();
        let cluster = cluster(objects);
        let step = |name: &&str| {
            let known = cluster.pod(cluster.pod_id(&format!("default/{name}")).unwrap()).unwrap();
            let pod = EvictedPod { key: known.key.clone(), uid: known.uid.clone(), node: known.node.clone() };
            let reason: Reason = ReasonCode::FailedPod.reason("test");
            let (profile, recorded_reason) = ("p".into(), String::new());
            let means = Means::Eviction { delete_options: None };
            Step::Evict(Box::new(Eviction { pod, profile, plugin: "Test", reason, recorded_reason, means }))
        };
        let plan = Plan { steps: pods.iter().map(step).collect(), ..Plan::default() };
        follow(plan, &cluster, Some(Rehearsal::of(&engine)))
    }

    fn stored(object: &Value, api_version: &str) -> Value {
        with(object, &json!({"apiVersion": api_version, "metadata": {"resourceVersion": "1"}}))
    }

    fn named_node(name: &str, cpu: &str) -> Value {
        let amounts = json!({"cpu": cpu, "memory": "16Gi", "pods": "110"});
        stored(
            &with(
                &node(name),
                &json!({"metadata": {"uid": name}, "status": {"allocatable": amounts, "capacity": amounts}}),
            ),
            "v1",
        )
    }

    fn requesting(name: &str, on: &str, cpu: &str) -> Value {
        let container = json!({"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}});
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let change = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}, "status": {"conditions": ready}});
        stored(&with(&pod(name, on), &change), "v1")
    }

    #[tokio::test]
    async fn each_eviction_sees_what_became_of_those_before() {
        // One pod takes two of n2's three cores: the second successor can only come back.
        let objects = [
            named_node("n1", "6"),
            named_node("n2", "3"),
            requesting("a", "n1", "2"),
            requesting("b", "n1", "2"),
            requesting("c", "n1", "2"),
        ];
        let seen = followed(&objects, &["a", "b"]).await;
        let nodes: Vec<_> = seen.iter().map(|followed| followed.successor.clone().unwrap()).collect();
        assert!(nodes.contains(&Successor::On("n2".into())), "{nodes:?}");
        assert!(nodes.contains(&Successor::ComesBack("n1".into())), "{nodes:?}");
        let objections = seen.iter().filter_map(|followed| followed.objection.clone());
        assert_eq!(objections.collect::<Vec<_>>(), [Objection::ComesBack]);
    }

    #[tokio::test]
    async fn a_successor_that_fits_nowhere_stays_pending() {
        let cordoned = with(&named_node("n1", "8"), &json!({"spec": {"unschedulable": true}}));
        let objects = [cordoned, named_node("n2", "1"), requesting("a", "n1", "2")];
        let seen = followed(&objects, &["a"]).await;
        assert!(matches!(&seen[0].objection, Some(Objection::StaysPending(_))), "{seen:?}");
        assert_eq!(seen[0].document()["objection"]["code"], "StaysPending");
    }

    #[tokio::test]
    async fn a_budget_lets_as_many_go_as_it_allows() {
        let budget = json!({
            "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default", "uid": "b"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
        });
        let objects = [
            named_node("n1", "8"),
            named_node("n2", "8"),
            requesting("a", "n1", "1"),
            requesting("b", "n1", "1"),
            stored(&budget, "policy/v1"),
        ];
        let seen = followed(&objects, &["a", "b"]).await;
        assert_eq!(seen[0].objection.as_ref().map(Objection::code).filter(|code| *code == "BreaksBudget"), None);
        assert_eq!(seen[1].objection, Some(Objection::BreaksBudget(ObjectKey::new("default", "web"))));
    }

    #[tokio::test]
    async fn nothing_comes_instead_of_a_pod_without_a_controller() {
        let bare = with(&requesting("a", "n1", "1"), &json!({"metadata": {"ownerReferences": null}}));
        let seen = followed(&[named_node("n1", "8"), named_node("n2", "8"), bare], &["a"]).await;
        assert_eq!((&seen[0].successor, &seen[0].objection), (&Some(Successor::None), &None));
    }
}
