use k8s_openapi::api::core::v1::{Node as ApiNode, Pod as ApiPod};
use koord_core::intern::Interner;
use koord_scheduling::ResourceId;
use serde_json::{Value, json};

use super::*;
use crate::pod::{Condition, OwnerReference, Phase, State};

fn node(name: &str, cpu: &str) -> Arc<Node> {
    let object = json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi"}}});
    Arc::new(Node::of(&serde_json::from_value::<ApiNode>(object).unwrap()).unwrap())
}

fn pod(name: &str, node: Option<&str>, cpu: &str, phase: &str) -> Arc<Pod> {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true});
    let metadata = json!({"name": name, "namespace": "ns", "uid": name, "ownerReferences": [owner]});
    let object: Value = json!({"metadata": metadata, "spec": {"containers": [container], "nodeName": node}, "status": {"phase": phase}});
    Arc::new(Pod::of(&serde_json::from_value::<ApiPod>(object).unwrap(), &mut Interner::default()).unwrap())
}

fn names<'a>(pods: impl Iterator<Item = (PodId, &'a Arc<Pod>)>) -> Vec<&'a str> {
    pods.map(|(_, pod)| pod.key.name()).collect()
}

#[test]
fn pods_count_on_their_node_until_they_end_or_go() {
    let mut cluster = Cluster::default();
    cluster.set_node(node("a", "4"));
    for (name, cpu) in [("y", "1"), ("x", "500m"), ("z", "2")] {
        cluster.set_pod(pod(name, Some("a"), cpu, "Running"));
    }
    let a = cluster.node_id("a").unwrap();
    assert_eq!(names(cluster.pods_on(a)), ["x", "y", "z"], "by name");
    assert_eq!((cluster.requested(a).get(ResourceId::CPU), cluster.active_pods(a)), (3500, 3));
    cluster.set_pod(pod("z", Some("a"), "2", "Failed"));
    assert_eq!((cluster.requested(a).get(ResourceId::CPU), cluster.active_pods(a)), (1500, 2));
    assert_eq!((names(cluster.pods_on(a)).len(), names(cluster.active_pods_on(a)).len()), (3, 2));
    cluster.remove_pod("ns/y");
    cluster.remove_pod("ns/y");
    assert_eq!((cluster.requested(a).get(ResourceId::CPU), cluster.active_pods(a)), (500, 1));
    assert_eq!(names(cluster.pods_of(&Uid::from("web"))), ["x", "z"]);
}

#[test]
fn what_is_known_of_a_node_survives_the_node_and_comes_before_it() {
    let mut cluster = Cluster::default();
    let before = cluster.set_pod(pod("x", Some("a"), "1", "Running"));
    assert_eq!((cluster.node_id("a"), cluster.node_of(before), cluster.nodes().count()), (None, None, 0));
    cluster.set_metric("a", UsageReport::default());
    cluster.set_node(node("a", "4"));
    let a = cluster.node_id("a").unwrap();
    assert_eq!((cluster.requested(a).get(ResourceId::CPU), cluster.node_of(before)), (1000, Some(a)));
    assert!(cluster.metric(a).is_some());
    cluster.remove_node("a");
    assert_eq!(cluster.node_id("a"), None);
    cluster.remove_metric("a");
    cluster.set_node(node("b", "4"));
    assert_ne!(cluster.node_id("b"), Some(a), "a pod is still bound to it");
    cluster.remove_pod("ns/x");
    cluster.set_node(node("c", "4"));
    assert_eq!(cluster.node_id("c"), Some(a), "nothing is known of it any more");
}

#[test]
fn a_pod_that_is_bound_or_replaced_moves() {
    let mut cluster = Cluster::default();
    for name in ["a", "b"] {
        cluster.set_node(node(name, "4"));
    }
    let [a, b] = ["a", "b"].map(|name| cluster.node_id(name).unwrap());
    cluster.set_pod(pod("x", None, "1", "Pending"));
    assert_eq!((cluster.active_pods(a), cluster.pods().count()), (0, 1));
    cluster.set_pod(pod("x", Some("a"), "1", "Running"));
    cluster.set_pod(pod("x", Some("b"), "2", "Running"));
    assert_eq!((cluster.active_pods(a), cluster.active_pods(b)), (0, 1));
    assert_eq!(cluster.requested(b).get(ResourceId::CPU), 2000);
    let id = cluster.pod_id("ns/x").unwrap();
    assert_eq!((cluster.requests(id).get(ResourceId::CPU), cluster.pods_max()), (2000, 1));
}

#[test]
fn pods_with_the_same_template_and_owners_are_of_one_class() {
    let mut cluster = Cluster::default();
    let one = pod("x", Some("a"), "1", "Running");
    let mut same = (*one).clone();
    same.key = ObjectKey::new("ns", "y");
    let bare = Pod { key: ObjectKey::new("ns", "bare"), owners: Arc::from([]), ..same.clone() };
    let other = pod("z", Some("a"), "1", "Running");
    let ids = [one, Arc::new(same), other, Arc::new(bare)].map(|pod| cluster.set_pod(pod));
    let [x, y, z, bare] = ids.map(|id| cluster.equivalence_class(id));
    assert!(x == y && x != z && x != bare && x.max(z).max(bare) < cluster.equivalence_classes_max());
    assert!(cluster.node_id("a").is_none() && cluster.nodes_max() == 1);
    let (by_class, computed) = (ByClass::default(), std::cell::Cell::new(0));
    let values = ids.map(|id| {
        by_class.of(&cluster, id, || {
            computed.set(computed.get() + 1);
            computed.get()
        })
    });
    assert_eq!((values, computed.get()), ([1, 1, 2, 3], 3));
}

#[test]
fn a_controller_has_so_many_pods_that_are_not_available() {
    let mut cluster = Cluster::default();
    let unavailable = |cluster: &Cluster| cluster.unavailable_pods_of(&Uid::from("web"));
    let of = |name: &str, is_ready: bool, is_deleting: bool| {
        let mut pod = (*pod(name, None, "1", "Running")).clone();
        let status = if is_ready { "True" } else { "False" };
        let ready = Condition { kind: "Ready".into(), status: status.into(), reason: "".into() };
        pod.state = Arc::new(State { phase: Phase::Running, conditions: [ready].into(), ..State::default() });
        pod.is_deleting = is_deleting;
        pod
    };
    cluster.set_pod(Arc::new(of("x", true, false)));
    cluster.set_pod(Arc::new(of("y", false, false)));
    cluster.set_pod(Arc::new(of("z", true, true)));
    assert_eq!(unavailable(&cluster), 2);
    cluster.set_pod(Arc::new(of("y", true, false)));
    assert_eq!(unavailable(&cluster), 1);
    cluster.remove_pod("ns/z");
    assert_eq!(unavailable(&cluster), 0);
    // An owner that is named twice has the pod once, and one that does not control it is not short of it.
    let mut twice = of("y", false, false);
    twice.owners = [&twice.owners[..], &twice.owners[..]].concat().into();
    let mut owned = of("x", false, false);
    owned.owners = owned.owners.iter().map(|owner| OwnerReference { is_controller: false, ..owner.clone() }).collect();
    cluster.set_pod(Arc::new(twice));
    cluster.set_pod(Arc::new(owned));
    assert_eq!((unavailable(&cluster), cluster.pods_of(&Uid::from("web")).count()), (1, 2));
    cluster.remove_pod("ns/y");
    cluster.remove_pod("ns/x");
    assert_eq!((unavailable(&cluster), cluster.owners().count()), (0, 0));
}

#[test]
fn nodes_are_found_by_the_labels_that_they_have_now() {
    let labelled = |name: &str, labels: &[(&'static str, &'static str)]| {
        let mut node = (*node(name, "4")).clone();
        node.labels = labels.iter().copied().collect();
        Arc::new(node)
    };
    let mut cluster = Cluster::default();
    for name in ["a", "b"] {
        cluster.set_node(labelled(name, &[("zone", "x"), ("arch", "arm64")]));
    }
    let names = |cluster: &Cluster, key: &str, value: &str| {
        let nodes = cluster.nodes_labelled(key, value).iter();
        nodes.map(|id| cluster.node_name(*id).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&cluster, "zone", "x"), ["a", "b"]);
    cluster.set_node(labelled("a", &[("zone", "y"), ("disk", "ssd")]));
    assert_eq!((names(&cluster, "zone", "x"), names(&cluster, "zone", "y")), (vec!["b".into()], vec!["a".into()]));
    assert_eq!(
        (names(&cluster, "arch", "arm64"), names(&cluster, "disk", "ssd")),
        (vec!["b".into()], vec!["a".into()])
    );
    cluster.remove_node("a");
    cluster.remove_node("b");
    for (key, value) in [("zone", "x"), ("zone", "y"), ("arch", "arm64"), ("disk", "ssd")] {
        assert_eq!(names(&cluster, key, value), [""; 0], "{key}");
    }
}
