use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use koord_config::scheduler::DefaultPreemptionArgs;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_engine::{Attempt, Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    Plugin, Profile,
    object::Object,
    pod::{Pod, Template},
};
use koord_scheduler_testing::{labelled, node};
use serde_json::{Value, json};

use crate::{DefaultPreemption, NodeResourcesFit, testing::default_profile};

const NOW: Moment = Moment::at(std::time::Duration::ZERO);

/// A cluster in which a pod is tried.
pub(super) struct Stage {
    pub(super) engine: Engine,
}

impl Stage {
    /// Nodes by the cores that they have, and pods such as `a n1 2 5 100`: the name, the node, the cores, the priority, and when
    /// it was started. A pod has a label of its name.
    pub(super) fn new(nodes: &[(&str, &str)], pods: &[&str]) -> Self {
        Self::of(default_profile(), 1, nodes, pods)
    }

    fn of(profile: Profile, seed: u64, nodes: &[(&str, &str)], pods: &[&str]) -> Self {
        let mut stage = Self { engine: Engine::new(vec![profile], Timings::default(), Random::seeded(seed)) };
        for (name, cpu) in nodes {
            let labels = json!({"kubernetes.io/hostname": name, "zone": format!("of-{name}")});
            let status = json!({"allocatable": {"cpu": cpu, "pods": "20"}});
            stage.engine.set_node(node(name, &json!({"metadata": {"labels": labels}, "status": status})), NOW);
        }
        for text in pods {
            stage.place(text, &json!({}), |_| {});
        }
        stage
    }

    fn place(&mut self, text: &str, spec: &Value, change: impl FnOnce(&mut Pod)) {
        let [name, node, cpu, priority, started] = *text.split(' ').collect::<Vec<_>>() else { panic!("{text}") };
        let mut pod = Pod::clone(&sized(name, cpu, priority.parse().unwrap(), spec));
        pod.node = Some(node.into());
        pod.started = Some(started.parse().unwrap());
        change(&mut pod);
        self.engine.set_pod(Arc::new(pod), NOW);
    }

    /// A budget of so many disruptions for the pods with one of these names, of which some are being disrupted already.
    fn budget(&mut self, names: &[&str], allowed: i32, disrupted: &[&str]) {
        let expressions: Vec<Value> = vec![json!({"key": "app", "operator": "In", "values": names})];
        let disrupted: serde_json::Map<String, Value> =
            disrupted.iter().map(|name| ((*name).to_owned(), json!("2026-01-01T00:00:00Z"))).collect();
        let object = json!({
            "metadata": {"name": names[0], "namespace": "ns"},
            "spec": {"selector": {"matchExpressions": expressions}},
            "status": {
                "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
                "disruptedPods": disrupted,
            },
        });
        let budget: PodDisruptionBudget = serde_json::from_value(object).unwrap();
        let key = ObjectKey::new("ns", names[0]);
        self.engine.set_object(Object::new(key, Uid::from(names[0]), false, Arc::new(budget)), NOW);
    }

    /// What comes of a pod that is tried: `bound n1`, `n1: a b` for the pods that go from a node, or why none do.
    pub(super) fn tried(&mut self, cpu: &str, priority: i32, spec: &Value) -> String {
        self.engine.set_pod(sized("tried", cpu, priority, spec), NOW);
        match self.engine.attempt(NOW) {
            Some(Attempt { outcome: Outcome::Bind { node, .. }, .. }) => format!("bound {node}"),
            Some(Attempt { outcome: Outcome::Refused(refused), .. }) => match refused.nominated {
                Some(node) => {
                    let victims: Vec<&str> = refused.victims.iter().map(|victim| victim.key.name()).collect();
                    format!("{node}: {}", victims.join(" "))
                }
                None => refused.message.split_once("preemption: ").map_or(&*refused.message, |(_, why)| why).to_owned(),
            },
            other => panic!("{other:?}"),
        }
    }
}

/// A pod of the scheduler `test`.
fn sized(name: &str, cpu: &str, priority: i32, spec: &Value) -> Arc<Pod> {
    let mut spec = spec.clone();
    spec["containers"] = json!([{"resources": {"requests": {"cpu": cpu}}}]);
    let pod = labelled("ns", name, &[("app", name), ("of-test", "")], &spec);
    let template = Template { scheduler: "test".into(), priority, ..Template::clone(&pod.template) };
    Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) })
}

const TWO: [(&str, &str); 2] = [("n1", "4"), ("n2", "4")];

#[test]
fn the_least_important_sufficient_pods_are_victims() {
    for (what, nodes, pods, cpu, expected) in [
        ("nobody has to go", &TWO[..], &["a n1 2 0 1"][..], "3", "bound n2"),
        ("one node takes it", &TWO, &["a n1 4 0 1", "b n2 1 0 1"], "3", "bound n2"),
        (
            "it is larger than any node",
            &TWO,
            &["a n1 4 0 1", "b n2 1 0 1"],
            "5",
            "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
        ),
        (
            "only more important pods are there",
            &TWO,
            &["a n1 4 11 1", "b n2 3 12 1"],
            "2",
            "0/2 nodes are available: 2 No preemption victims found for incoming pod.",
        ),
        (
            "pods of the same priority",
            &TWO[..1],
            &["a n1 4 10 1"],
            "2",
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        ),
        (
            "the larger goes, though it is more important",
            &TWO[..1],
            &["small n1 1 0 1", "large n1 3 5 1"],
            "3",
            "n1: large",
        ),
        (
            "the less important ones of several",
            &TWO[..1],
            &["a n1 1 1 1", "b n1 1 2 1", "c n1 1 5 1", "d n1 1 11 1"],
            "2",
            "n1: b a",
        ),
        (
            "of equals those that run for the shortest time",
            &TWO[..1],
            &["a n1 1 5 1", "b n1 1 5 4", "c n1 1 5 2", "d n1 1 5 3"],
            "2",
            "n1: d b",
        ),
        (
            "too little goes on one node, nobody may on the other",
            &TWO,
            &["a n1 1 0 1", "b n1 3 11 1", "c n2 4 11 1"],
            "2",
            "0/2 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod.",
        ),
        (
            "nodes that are too small, and nodes where too little goes",
            &[("n1", "1"), ("n2", "4"), ("n3", "1"), ("n4", "4")],
            &["a n2 1 0 1", "b n2 3 11 1", "c n4 1 0 1", "d n4 3 11 1"],
            "2",
            "0/4 nodes are available: 2 Insufficient cpu, 2 Preemption is not helpful for scheduling.",
        ),
        (
            "a node that is too small does not count",
            &[("n1", "1"), ("n2", "4")],
            &["a n1 1 0 1", "b n2 4 5 1"],
            "2",
            "n2: b",
        ),
    ] {
        assert_eq!(Stage::new(nodes, pods).tried(cpu, 10, &json!({})), expected, "{what}");
    }
}

#[test]
fn preemption_respects_inter_pod_affinity() {
    let term = |label: &str| {
        json!({
            "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": [label]}]},
        })
    };
    let of = |kind: &str, label: &str| json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term(label)]}}});
    for (what, its, spec, expected) in [
        ("apart from it", json!({}), of("podAntiAffinity", "a"), "n1: a"),
        ("it wants to be apart", of("podAntiAffinity", "tried"), json!({}), "n1: a"),
        (
            "near another one",
            json!({}),
            of("podAffinity", "elsewhere"),
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        ),
    ] {
        let mut stage = Stage::new(&TWO[..1], &["b n1 1 1 1", "c n1 1 11 1"]);
        stage.place("a n1 1 5 1", &its, |_| {});
        assert_eq!(stage.tried("1", 10, &spec), expected, "{what}");
    }
    // Two pods of the kind in the zone of n1 and none in that of n2, which more important pods fill.
    let constraint = json!({
        "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b", "tried"]}]},
    });
    let mut stage = Stage::new(&TWO, &["a n1 1 1 1", "b n1 1 1 2", "c n2 4 11 1"]);
    assert_eq!(stage.tried("1", 10, &json!({"topologySpreadConstraints": [constraint]})), "n1: a b");
}

#[test]
fn budgets_are_broken_last() {
    const PODS: [&str; 3] = ["a n1 2 1 1", "b n1 2 1 1", "c n2 4 5 1"];
    for (what, names, allowed, disrupted, expected) in [
        ("enough for both", &["a", "b"][..], 2, &[][..], "n1: a b"),
        ("enough for one of both", &["a", "b"], 1, &[], "n2: c"),
        ("both are disrupted already", &["a", "b"], 0, &["a", "b"], "n1: a b"),
        ("others are disrupted already", &["a", "b"], 0, &["x", "y"], "n2: c"),
        ("one is disrupted already, and one may be", &["a", "b"], 1, &["a"], "n1: a b"),
        ("of all nodes", &["a", "b", "c"], 0, &[], "n2: c"),
    ] {
        let mut stage = Stage::new(&TWO, &PODS);
        stage.budget(names, allowed, disrupted);
        assert_eq!(stage.tried("4", 10, &json!({})), expected, "{what}");
    }
    // Who breaks a budget is kept first, though others are more important.
    let mut stage = Stage::new(&TWO[..1], &["a n1 2 1 1", "b n1 2 5 1"]);
    stage.budget(&["a"], 0, &[]);
    assert_eq!(stage.tried("2", 10, &json!({})), "n1: b");
}

#[test]
fn the_search_goes_on_until_no_budget_is_broken() {
    let nodes = ["n1", "n2", "n3", "n4", "n5"].map(|name| (name, "4"));
    let pods = ["a n1 4 1 1", "b n2 4 1 1", "c n3 4 9 1", "d n4 4 1 1", "e n5 4 1 1"];
    for seed in 0..10 {
        let args = DefaultPreemptionArgs { min_candidate_nodes_percentage: 0, min_candidate_nodes_absolute: 1 };
        let plugins: Vec<Arc<dyn Plugin>> =
            vec![Arc::new(NodeResourcesFit::default()), Arc::new(DefaultPreemption::new(&args))];
        let profile = Profile { filters: vec![0], post_filters: vec![1], ..Profile::of("test", plugins) };
        let mut stage = Stage::of(profile, seed, &nodes, &pods);
        stage.budget(&["a", "b", "d", "e"], 0, &[]);
        assert_eq!(stage.tried("4", 10, &json!({})), "n3: c", "{seed}");
    }
}

#[test]
fn a_pod_may_be_forbidden_to_preempt_or_have_to_wait() {
    for (what, spec, expected) in [
        ("unsaid", json!({}), "n1: a"),
        ("allowed", json!({"preemptionPolicy": "PreemptLowerPriority"}), "n1: a"),
        ("forbidden", json!({"preemptionPolicy": "Never"}), "not eligible due to preemptionPolicy=Never."),
    ] {
        assert_eq!(Stage::new(&TWO[..1], &["a n1 4 1 1"]).tried("1", 10, &spec), expected, "{what}");
    }
    // On the node that it is nominated for, a pod is being deleted: as its victim or for other reasons.
    for (what, is_preempted, priority, expected) in [
        ("a victim is going", true, 1, "not eligible due to a terminating pod on the nominated node."),
        ("somebody is going", false, 1, "n1: b"),
        ("a more important one is going", true, 11, "n1: b"),
    ] {
        let mut stage = Stage::new(&TWO[..1], &["b n1 3 1 1"]);
        stage.place(&format!("a n1 1 {priority} 1"), &json!({}), |pod| {
            pod.deleting = true;
            pod.is_preempted = is_preempted;
        });
        let tried = sized("tried", "3", 10, &json!({}));
        stage.engine.set_pod(Arc::new(Pod { nominated: Some("n1".into()), ..Pod::clone(&tried) }), NOW);
        let Some(Attempt { outcome: Outcome::Refused(refused), .. }) = stage.engine.attempt(NOW) else {
            panic!("{what}")
        };
        let victims: Vec<&str> = refused.victims.iter().map(|victim| victim.key.name()).collect();
        let said = refused.message.split_once("preemption: ").map(|(_, why)| why.to_owned());
        assert_eq!(said.unwrap_or_else(|| format!("n1: {}", victims.join(" "))), expected, "{what}");
    }
}
