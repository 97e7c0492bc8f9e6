use std::collections::BTreeSet;

use koord_descheduler_framework::{Balance, Cluster, Pass, Plugin, ReasonCode, Registration, StrategyError};
use koord_descheduler_testing::{Everything, cluster, descheduler, node, pod, with};
use serde_json::{Value, json};

use super::*;

/// Evicts two pods of each node: the first ones that can be.
struct TwoOfEach;

impl Plugin for TwoOfEach {
    fn name(&self) -> &'static str {
        "TwoOfEach"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for TwoOfEach {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        for node in pass.nodes() {
            let mut evicted = 0;
            for (id, _) in pass.cluster().pods_on(*node) {
                if evicted < 2 && pass.filter(id) && pass.evict(id, ReasonCode::FailedPod.reason("test"), "") {
                    evicted += 1;
                }
            }
        }
        Ok(())
    }
}

const NODES: usize = 20;
const PODS: usize = 20;

/// Nodes with pods of ten workloads by turns.
fn objects() -> Vec<Value> {
    let of = |number: usize| {
        let workload = format!("rs{}", number % 10);
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": workload, "uid": workload, "controller": true}]);
        let one = pod(&format!("{workload}-{number:03}"), &format!("n{:02}", number / PODS));
        with(&one, &json!({"metadata": {"ownerReferences": owner}}))
    };
    let nodes = (0..NODES).map(|number| node(&format!("n{number:02}")));
    nodes.chain((0..NODES * PODS).map(of)).collect()
}

fn passes(of: &Cluster) -> Passes {
    let passes = Passes::new(descheduler(TwoOfEach, Everything), Duration::from_mins(1), None);
    *passes.cluster.lock() = of.clone();
    passes
}

/// The pods that one pass tries to evict where an API server refuses some, and how often the pass is computed.
fn tried(passes: &mut Passes, seconds: u64, refuses: impl Fn(&str) -> bool) -> (Vec<String>, usize) {
    let moment = Moment::default() + Duration::from_secs(seconds);
    let mut pass = passes.begin(Timestamp::UNIX_EPOCH, moment, None);
    let mut tried = Vec::new();
    while let Some(Step::Evict(eviction)) = pass.plan.steps.get(pass.done()).cloned() {
        let pod = eviction.pod.key.name().to_owned();
        let is_refused = refuses(&pod);
        if is_refused {
            passes.eviction_failed(&eviction.pod.uid, moment);
        }
        tried.push(pod);
        passes.carried_out(&mut pass, !is_refused);
    }
    let computed = pass.computed;
    passes.end(pass);
    (tried, computed)
}

/// What is tried where the pass is computed anew after each refusal.
fn tried_one_by_one(of: &Cluster, refuses: impl Fn(&str) -> bool) -> Vec<String> {
    let descheduler = descheduler(TwoOfEach, Everything);
    let (memory, mut results, mut tried) = (Memory::default(), Vec::new(), Vec::new());
    loop {
        let input = Input { results: &results, ..Input::new(of, &memory, Timestamp::UNIX_EPOCH) };
        let plan = descheduler.pass(&input);
        let Some(eviction) = plan.steps.get(results.len()).and_then(Step::eviction) else { return tried };
        tried.push(eviction.pod.key.name().to_owned());
        results.push(!refuses(eviction.pod.key.name()));
    }
}

#[test]
fn what_is_expected_changes_nothing_of_what_is_tried() {
    type Rule = fn(&str) -> bool;
    let of = cluster(&objects());
    let rules: [(&str, Rule); 5] = [
        ("nothing is refused", |_| false),
        ("one workload is refused", |pod| pod.starts_with("rs3")),
        ("most workloads are refused", |pod| !pod.starts_with("rs3")),
        ("every other pod is refused", |pod| pod.ends_with(['1', '4', '5', '8', '0'])),
        ("all are refused", |_| true),
    ];
    for (rule, refuses) in rules {
        let (tried, _) = tried(&mut passes(&of), 0, refuses);
        assert_eq!(tried, tried_one_by_one(&of, refuses), "{rule}");
        assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), tried.len(), "{rule}: each pod once");
    }
}

#[test]
fn a_server_that_refuses_everything_costs_few_computations_and_each_pod_one_request_for_each_pause() {
    let (of, mut requests, mut computed) = (cluster(&objects()), 0, 0);
    let mut passes = passes(&of);
    for minute in 0..60 {
        let (tried, times) = tried(&mut passes, minute * 60, |_| true);
        requests += tried.len();
        computed += times;
    }
    // In an hour of passes a minute apart: pauses of 1 s to 32 s end before the next pass, the others take 2, 3, 5, 9 and 10 minutes.
    let of_a_pod = requests / (NODES * PODS);
    assert!((10..=14).contains(&of_a_pod) && requests % (NODES * PODS) == 0, "{of_a_pod} requests for each pod");
    assert!(computed <= 60 + 2 * 8, "{computed} computations");
}

#[test]
fn a_server_that_is_well_again_costs_one_computation() {
    let of = cluster(&objects());
    let mut passes = passes(&of);
    tried(&mut passes, 0, |_| true);
    let (evicted, computed) = tried(&mut passes, 60, |_| false);
    assert_eq!((evicted.len(), computed), (2 * NODES, 2));
}

#[test]
fn a_budget_that_refuses_a_workload_costs_one_computation_for_it() {
    let of = cluster(&objects());
    let (tried, computed) = tried(&mut passes(&of), 0, |pod| pod.starts_with("rs0"));
    assert_eq!((tried.len(), computed), (NODES * 4, 2), "two that are refused and two that go, of each node");
}
