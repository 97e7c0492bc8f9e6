use std::collections::BTreeSet;

use koord_config::scheduler::DefaultPreemptionArgs;
use koord_core::{clock::Moment, random::Random, uid::Uid};
use koord_scheduler_engine::{Attempt, Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    NextPod, Profile,
    extender::{ExtenderArgs, ExtenderError, ExtenderResult},
    pod::Template,
};
use serde_json::json;

use super::*;
use crate::{DefaultPreemption, NodeResourcesFit};

const NOW: Moment = Moment::at(std::time::Duration::ZERO);

/// Wants the pod `next` to be tried before all others.
struct Wants;

impl Plugin for Wants {
    fn name(&self) -> &'static str {
        "Wants"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).next_pod(&self)
    }
}

impl NextPod for Wants {
    fn next_pod(&self, cluster: &Cluster) -> Option<Uid> {
        let uid = Uid::from("next");
        (cluster.pod(&uid).is_none() && cluster.pending_pod(&uid).is_some()).then_some(uid)
    }
}

/// An engine with nodes of four cores, and one extender that is asked about pods with this resource.
fn engine(extender: Extender, nodes: &[&str]) -> Engine {
    let plugins: Vec<Arc<dyn Plugin>> = vec![
        Arc::new(NodeResourcesFit::default()),
        Arc::new(DefaultPreemption::new(&DefaultPreemptionArgs::default())),
        Arc::new(Extenders::new(Arc::new([extender]))),
        Arc::new(Wants),
    ];
    let (filters, scores, post_filters) = (vec![0, 2], vec![(2, 1)], vec![1]);
    let profile = Profile { filters, scores, post_filters, ..Profile::of("test", plugins) };
    let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
    for name in nodes {
        let allocatable = json!({"cpu": "4", "pods": "9", "example.com/fpga": "9"});
        engine.set_node(koord_scheduler_testing::node(name, &json!({"status": {"allocatable": allocatable}})), NOW);
    }
    engine
}

fn extender(filter: &str, preempt: &str) -> Extender {
    let managed = ["example.com/fpga".to_owned()].into();
    Extender { filter: filter.to_owned(), preempt: preempt.to_owned(), managed, ..Extender::default() }
}

fn pod(name: &str, cpu: &str, priority: i32, fpgas: u32, node: Option<&str>) -> Arc<Pod> {
    let mut requests = json!({ "cpu": cpu });
    if fpgas > 0 {
        requests["example.com/fpga"] = json!(fpgas.to_string());
    }
    let pod = koord_scheduler_testing::pod(name, &json!({"containers": [{"resources": {"requests": requests}}]}));
    let template = Template { scheduler: "test".into(), priority, ..Template::clone(&pod.template) };
    Arc::new(Pod { template: Arc::new(template), node: node.map(Arc::from), ..Pod::clone(&pod) })
}

/// What comes of the next attempt: `a on n1`, `a: message`, `a? n1 n2` with the number of the question; nothing without one.
fn next(engine: &mut Engine) -> (String, u64) {
    let Some(Attempt { pod, outcome, .. }) = engine.attempt(NOW) else { return (String::new(), 0) };
    let name = pod.key.name();
    match outcome {
        Outcome::Bind { node, .. } => (format!("{name} on {node}"), 0),
        Outcome::Refused(refused) => {
            let victims: Vec<&str> = refused.victims.iter().map(|victim| victim.key.name()).collect();
            (format!("{name}: {}{}", refused.message, victims.concat()), 0)
        }
        Outcome::ExtenderCall { number, args: ExtenderArgs::Nodes(nodes) } => {
            (format!("{name}? {}", nodes.join(" ")), number)
        }
        Outcome::ExtenderCall { number, args: ExtenderArgs::Victims(victims) } => {
            let victims = victims.iter().map(|(node, of_node)| format!("{node}{:?}", of_node.pods));
            (format!("{name}! {}", victims.collect::<Vec<_>>().join(" ")), number)
        }
        Outcome::Waiting { .. } => (format!("{name} waits"), 0),
    }
}

/// An answer that accepts nodes with these scores, and refuses others with these words, for good where they begin with `!`.
fn nodes(requested: &[&str], accepted: &[(&str, i64)], failed: &[(&str, &str)]) -> ExtenderResult {
    let words = |(node, reason): &(&str, &str)| {
        let words =
            FailedNode { reason: reason.trim_start_matches('!').to_owned(), resolvable: !reason.starts_with('!') };
        (Arc::from(*node), words)
    };
    ExtenderResult::Nodes(Ok(Nodes {
        requested: requested.iter().map(|node| Arc::from(*node)).collect::<BTreeSet<_>>(),
        accepted: accepted.iter().map(|(node, score)| (Arc::from(*node), *score)).collect(),
        failed: failed.iter().map(words).collect(),
    }))
}

#[test]
fn a_pod_goes_where_extenders_accept_it_and_others_do_not_wait_for_that() {
    let mut engine = engine(extender("filter", ""), &["n1", "n2", "n3"]);
    engine.set_pod(pod("a", "1", 5, 1, None), NOW);
    engine.set_pod(pod("b", "1", 4, 1, None), NOW);
    engine.set_pod(pod("plain", "1", 3, 0, None), NOW);
    let (called, number) = next(&mut engine);
    assert_eq!(called, "a? n1 n2 n3");
    assert!(next(&mut engine).0.starts_with("plain on "), "nobody is asked about it; b waits for its turn");
    assert_eq!((next(&mut engine).0.as_str(), engine.has_work(NOW)), ("", false));
    engine.extender_call_finished(number + 1, nodes(&["n1"], &[("n1", 0)], &[]));
    assert!(!engine.has_work(NOW), "nobody has asked that");
    engine.extender_call_finished(number, nodes(&["n1", "n2", "n3"], &[("n2", 10), ("n3", 20)], &[("n1", "no")]));
    assert_eq!(next(&mut engine).0, "a on n3");
    let (called, number) = next(&mut engine);
    assert_eq!(called, "b? n1 n2 n3");
    engine.extender_call_finished(number, nodes(&["n1", "n2", "n3"], &[], &[("n1", "no"), ("n2", "never")]));
    let said = "b: 0/3 nodes are available: 1 never, 1 no. preemption: 0/3 nodes are available: \
                1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.";
    assert_eq!(next(&mut engine).0, said, "n3 was refused without a word");
}

#[test]
fn extenders_are_called_again_when_their_nodes_are_full_meanwhile() {
    let mut engine = engine(extender("filter", ""), &["n1", "n2"]);
    engine.set_pod(pod("full", "4", 0, 0, Some("n2")), NOW);
    engine.set_pod(pod("a", "3", 5, 1, None), NOW);
    let (called, number) = next(&mut engine);
    assert_eq!(called, "a? n1");
    engine.set_pod(pod("other", "2", 9, 0, Some("n1")), NOW);
    engine.remove_pod(&Uid::from("full"), NOW);
    engine.extender_call_finished(number, nodes(&["n1"], &[("n1", 0)], &[]));
    let (called, number) = next(&mut engine);
    assert_eq!(called, "a? n2");
    engine.extender_call_finished(number, nodes(&["n2"], &[("n2", 0)], &[]));
    assert_eq!(next(&mut engine).0, "a on n2");
}

#[test]
fn an_extender_without_an_answer_is_an_error_and_a_pod_that_is_gone_is_not_waited_for() {
    let mut engine = engine(extender("filter", ""), &["n1"]);
    engine.set_pod(pod("a", "1", 5, 1, None), NOW);
    engine.set_pod(pod("b", "1", 4, 1, None), NOW);
    let (_, number) = next(&mut engine);
    engine.extender_call_finished(
        number,
        ExtenderResult::Nodes(Err(ExtenderError { message: "it is broken".to_owned() })),
    );
    assert_eq!(next(&mut engine).0, "a: it is broken");
    let (called, number) = next(&mut engine);
    assert_eq!(called, "b? n1");
    assert_eq!(next(&mut engine).0, "");
    engine.set_pod(pod("c", "1", 4, 1, None), NOW);
    assert_eq!(next(&mut engine).0, "", "c waits for its turn");
    engine.remove_pod(&Uid::from("b"), NOW);
    engine.extender_call_finished(number, nodes(&["n1"], &[("n1", 0)], &[]));
    assert_eq!(next(&mut engine).0, "c? n1", "what was said of b does not hold for c");
}

#[test]
fn pods_that_follow_each_other_are_not_overtaken() {
    let mut engine = engine(extender("filter", ""), &["n1"]);
    engine.set_pod(pod("a", "1", 5, 1, None), NOW);
    engine.set_pod(pod("plain", "1", 4, 0, None), NOW);
    let (_, number) = next(&mut engine);
    engine.set_pod(pod("next", "1", 1, 1, None), NOW);
    assert_eq!(next(&mut engine).0, "", "a plugin wants another pod than the first of the queue");
    assert!(!engine.has_work(NOW) && engine.wake_at().is_none());
    engine.extender_call_finished(number, nodes(&["n1"], &[("n1", 0)], &[]));
    assert_eq!(next(&mut engine).0, "a on n1");
    let (called, number) = next(&mut engine);
    assert_eq!((called.as_str(), next(&mut engine).0.as_str()), ("next? n1", ""));
    engine.extender_call_finished(number, nodes(&["n1"], &[("n1", 0)], &[]));
    assert_eq!([next(&mut engine).0, next(&mut engine).0], ["next on n1", "plain on n1"]);
}

#[test]
fn extenders_choose_among_the_victims_of_preemption() {
    let preempting = || {
        let mut engine = engine(extender("", "preempt"), &["n1", "n2"]);
        engine.set_pod(pod("v1", "4", 1, 0, Some("n1")), NOW);
        engine.set_pod(pod("v2", "4", 2, 0, Some("n2")), NOW);
        let theirs = pod("f", "0", 1, 0, Some("n2"));
        let template = Template { scheduler: "other".into(), ..Template::clone(&theirs.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&theirs) }), NOW);
        engine.set_pod(pod("a", "4", 5, 1, None), NOW);
        let (called, number) = next(&mut engine);
        assert_eq!(called, "a! n1[v1] n2[v2]");
        (engine, number)
    };
    let victims = |node: &str, pods: &str| {
        let pods = pods.split(' ').map(Uid::from).collect();
        ExtenderResult::Victims(Ok([(Arc::from(node), NodeVictims { pods, violations: 0 })].into()))
    };
    let insufficient = "a: 0/2 nodes are available: 2 Insufficient cpu.";
    for (answer, said) in [
        (victims("n2", "v2"), format!("{insufficient}v2")),
        (victims("n2", "v1"), format!("{insufficient} preemption: no candidate node for preemption")),
        // A pod of another scheduler is not evicted, whoever wants it.
        (victims("n2", "v2 f"), format!("{insufficient} preemption: no candidate node for preemption")),
        (
            ExtenderResult::Victims(Ok(Victims::new())),
            format!("{insufficient} preemption: no candidate node for preemption"),
        ),
        (ExtenderResult::Victims(Err(ExtenderError { message: "broken".to_owned() })), insufficient.to_owned()),
    ] {
        let (mut engine, number) = preempting();
        engine.extender_call_finished(number, answer);
        assert_eq!(next(&mut engine).0, said);
    }
}
