use jiff::Timestamp;
use koord_descheduler_framework::{Filter, Input, Memory, Pod, PreparedFilter, Step};
use koord_descheduler_testing::{Everything, args, cluster, descheduler, node, pod, with};
use serde_json::{Value, json};

use super::*;

/// Lets all pods go but those in `kube-system`.
struct NotSystem;

impl Plugin for NotSystem {
    fn name(&self) -> &'static str {
        "NotSystem"
    }

    fn register(self: Arc<Self>) -> Registration {
        let evict = Arc::new(Everything).register().evict;
        Registration { evict, ..Registration::of(&self).filter(&self) }
    }
}

impl Filter for NotSystem {
    fn prepare_filter<'a>(&'a self, cluster: &'a Cluster, _: Timestamp) -> Box<dyn PreparedFilter + 'a> {
        Box::new(Prepared(cluster))
    }
}

struct Prepared<'a>(&'a Cluster);

impl PreparedFilter for Prepared<'_> {
    fn filter(&self, pod: PodId) -> Result<(), Refusal> {
        let is_system = |pod: &Arc<Pod>| pod.namespace() == "kube-system";
        if self.0.pod(pod).is_some_and(is_system) { Err(ReasonCode::SystemCritical.into()) } else { Ok(()) }
    }
}

/// The steps of a pass: pods with what their deletion costs, or none where they are evicted.
fn steps(arguments: &Value, objects: &[Value], results: &[bool]) -> (Vec<(String, Option<i32>)>, usize) {
    let plugin = ScaleDownBinPack::new(args("ScaleDownBinPack", arguments)).unwrap();
    let (cluster, memory) = (cluster(objects), Memory::default());
    let input = Input { results, ..Input::new(&cluster, &memory, Timestamp::UNIX_EPOCH) };
    let plan = descheduler(plugin, NotSystem).pass(&input);
    let step = |step: &Step| match step {
        Step::SetDeletionCost { pod, cost } => Some((pod.key.name().to_owned(), Some(*cost))),
        Step::Evict(eviction) => {
            assert_eq!(eviction.recorded_reason, "scale-down binpack");
            Some((eviction.pod.key.name().to_owned(), None))
        }
        _ => None,
    };
    (plan.steps.iter().filter_map(step).collect(), plan.errors.len())
}

/// The pods by rank.
fn ranks(arguments: &Value, objects: &[Value]) -> Vec<String> {
    let (mut steps, errors) = steps(arguments, objects, &[]);
    assert_eq!(errors, 0);
    steps.retain(|(_, cost)| *cost != Some(COST_MAX));
    assert!((0..).zip(&steps).all(|(rank, (_, cost))| *cost == Some(rank)), "{steps:?}");
    steps.into_iter().map(|(name, _)| name).collect()
}

fn requesting(name: &str, node: &str, cpu_milli: i64, memory_mib: i64) -> Value {
    let requests = json!({"cpu": format!("{cpu_milli}m"), "memory": format!("{memory_mib}Mi")});
    let container = json!({"name": "c", "image": "i", "resources": {"requests": requests}});
    with(&pod(name, node), &json!({"spec": {"containers": [container]}}))
}

fn protected(name: &str, node: &str, cpu_milli: i64) -> Value {
    with(&requesting(name, node, cpu_milli, 0), &json!({"metadata": {"namespace": "kube-system"}}))
}

fn created(pod: &Value, second: i64) -> Value {
    with(pod, &json!({"metadata": {"creationTimestamp": format!("1970-01-01T00:00:{second:02}Z")}}))
}

#[test]
fn pods_are_ranked_by_what_stays_on_their_node() {
    let none = json!({});
    let objects = [
        node("node1"),
        node("node2"),
        node("node4"),
        node("node5"),
        requesting("p1", "node1", 1000, 1024),
        requesting("p2", "node2", 1000, 1024),
        protected("tax", "node2", 4000),
        requesting("p4b", "node4", 1000, 1024),
        requesting("p4a", "node4", 1000, 1024),
        requesting("p5b", "node5", 1000, 1024),
        requesting("p5a", "node5", 2000, 1024),
    ];
    assert_eq!(
        ranks(&none, &objects),
        ["p1", "p4a", "p4b", "p5a", "p5b", "p2"],
        "few pods, names, large pods, taxed nodes"
    );
}

#[test]
fn within_a_node_large_and_then_new_pods_come_first() {
    let of = |name: &str, namespace: &str, second: i64| {
        created(&with(&requesting(name, "n1", 100, 0), &json!({"metadata": {"namespace": namespace}})), second)
    };
    let objects = [
        node("n1"),
        node("n2"),
        of("oldest", "z", 1),
        of("same2", "b-ns", 5),
        of("same3", "c-ns", 5),
        of("same1", "a-ns", 5),
        of("newest", "z", 9),
        created(&requesting("large", "n1", 500, 0), 0),
    ];
    assert_eq!(ranks(&json!({}), &objects), ["large", "newest", "same1", "same2", "same3", "oldest"]);
}

#[test]
fn pods_that_request_nothing_and_nodes_that_have_nothing() {
    let objects = [
        node("n1"),
        node("n2"),
        requesting("zero", "n1", 0, 0),
        protected("tax", "n1", 1000),
        requesting("b", "n2", 100, 0),
        protected("much", "n2", 7000),
    ];
    assert_eq!(ranks(&json!({}), &objects), ["b", "zero"], "nothing is gained on a node that stays used");
    let nothing = |name: &str| with(&node(name), &json!({"status": {"allocatable": {"cpu": "0", "memory": "0"}}}));
    let objects = [
        nothing("n2"),
        nothing("n1"),
        node("n3"),
        requesting("b", "n2", 1, 1),
        requesting("a", "n1", 1, 1),
        requesting("c", "n3", 1, 1),
        protected("tax", "n3", 10),
    ];
    assert_eq!(ranks(&json!({}), &objects), ["a", "b", "c"], "0, and names decide");
}

#[test]
fn weights_decide_and_those_of_other_resources_count_too() {
    let objects = [node("n1"), node("n2"), requesting("cpu", "n1", 4000, 0), requesting("mem", "n1", 0, 4096)];
    assert_eq!(ranks(&json!({}), &objects), ["cpu", "mem"]);
    assert_eq!(ranks(&json!({"resourceWeights": {"memory": 5.0}}), &objects), ["mem", "cpu"]);
    assert_eq!(
        ranks(&json!({"resources": ["cpu"], "resourceWeights": {"memory": 5.0}}), &objects),
        ["mem", "cpu"],
        "QUIRK"
    );
    assert_eq!(ranks(&json!({"resources": ["memory"]}), &objects), ["mem", "cpu"]);
}

#[test]
fn protected_pods_that_are_selected_cost_most() {
    let objects = [
        node("n1"),
        node("n2"),
        requesting("a", "n1", 1, 1),
        protected("tax", "n1", 1),
        protected("alone", "n2", 1),
        with(&requesting("ended", "n1", 1, 1), &json!({"status": {"phase": "Failed"}})),
    ];
    let all = [("a".to_owned(), Some(0)), ("tax".to_owned(), Some(COST_MAX))];
    assert_eq!(steps(&json!({}), &objects, &[]), (all[..].to_vec(), 0), "QUIRK: all are selected without podSelectors");
    let selectors = json!({"podSelectors": [{"name": "x", "selector": {"matchLabels": {"app": "x"}}}]});
    let labelled: Vec<Value> = objects
        .iter()
        .map(|object| {
            if object["metadata"]["name"] == "a" {
                with(object, &json!({"metadata": {"labels": {"app": "x"}}}))
            } else {
                object.clone()
            }
        })
        .collect();
    assert_eq!(steps(&selectors, &labelled, &[]).0, all[..1]);
    let outside = json!({"evictableNamespaces": {"include": ["default"]}});
    assert_eq!(steps(&outside, &objects, &[]).0, all, "namespaces do not count for that");
}

/// D15, and repaired: the original writes what is there already.
#[test]
fn costs_are_written_once() {
    let costing = |pod: &Value, cost: &str| with(pod, &json!({"metadata": {"annotations": {DELETION_COST: cost}}}));
    let objects = |one: &str, other: &str| {
        [
            node("n1"),
            node("n2"),
            costing(&requesting("a", "n1", 2, 1), one),
            costing(&requesting("b", "n1", 1, 1), other),
        ]
    };
    assert_eq!(steps(&json!({}), &objects("0", "1"), &[]).0, []);
    assert_eq!(steps(&json!({}), &objects("1", "1"), &[]).0, [("a".to_owned(), Some(0))]);
    assert_eq!(
        steps(&json!({}), &objects("x", "00"), &[false]),
        ([("a".to_owned(), Some(0)), ("b".to_owned(), Some(1))].to_vec(), 1),
        "a failure is an error, and the others are written"
    );
    assert_eq!(steps(&json!({"paused": true}), &objects("x", "y"), &[]).0, []);
    let alone = [node("n1"), node("n2"), requesting("a", "n1", 1, 1)];
    assert_eq!(steps(&json!({}), &alone, &[]).0, [("a".to_owned(), Some(0))]);
}

#[test]
fn pods_are_evicted_by_rank_up_to_the_limit() {
    let directly = |max: i64| json!({"strategy": "EvictDirectly", "maxPodsToEvict": max});
    let objects =
        [node("n1"), node("n2"), requesting("a", "n1", 3, 1), requesting("b", "n1", 2, 1), requesting("c", "n1", 1, 1)];
    let names = |arguments: &Value, results: &[bool]| {
        steps(arguments, &objects, results).0.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(&directly(2), &[]), ["a", "b"]);
    assert_eq!(names(&directly(2), &[false]), ["a", "b", "c"], "one that fails does not count");
    assert_eq!(names(&directly(9), &[]), ["a", "b", "c"]);
    let selected = with(&directly(9), &json!({"nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "n2"}}}));
    assert_eq!(names(&selected, &[]), [""; 0]);
}
