use std::sync::Arc;

use koord_scheduler_framework::{EnqueueExtensions as _, cluster::Cluster, event::Event, node::Node};
use koord_scheduler_testing::{amounts, filtered_in, node, offering, pod, requesting};
use serde_json::json;

use crate::NodeResourcesFit;

const NODE: &str = "cpu=8 memory=16 pods=9 example.com/gpu=4 kubernetes.io/x=6 hugepages-2Mi=4 ephemeral-storage=50";

/// What a node that offers this says about a pod beside another one.
fn said(fit: &NodeResourcesFit, offered: &str, used: &str, requested: &str) -> String {
    filtered_in(fit, &mut offering(&[offered], &[(0, used)]), &requesting(requested)).remove(0)
}

#[test]
fn what_is_requested_must_be_left() {
    let fit = NodeResourcesFit::default();
    for (what, used, requested, expected) in [
        ("nothing is requested", "cpu=8 memory=16", "-", ""),
        ("of a full node too", "cpu=20 memory=16", "cpu=0", ""),
        ("neither is left", "cpu=8 memory=16", "cpu=1 memory=1", "U Insufficient cpu, Insufficient memory"),
        ("both are left", "cpu=3 memory=5", "cpu=1 memory=1", ""),
        ("exactly", "cpu=3 memory=5", "cpu=5 memory=11", ""),
        ("too little memory", "cpu=7 memory=15", "cpu=1 memory=2", "U Insufficient memory"),
        ("too little cpu", "cpu=7 memory=15", "cpu=1001m memory=1", "U Insufficient cpu"),
        ("more than the node ever had", "-", "cpu=9 memory=17", "UU Insufficient cpu, Insufficient memory"),
        (
            "one of which the node never had as much",
            "cpu=1",
            "cpu=8 memory=17",
            "UU Insufficient cpu, Insufficient memory",
        ),
        // Init containers run one after the other, before the others: the largest counts.
        ("an init container", "cpu=6 memory=1", "cpu=1; init: cpu=3", "U Insufficient cpu"),
        ("the largest init container", "cpu=6 memory=1", "cpu=1; init: cpu=3; init: cpu=2", "U Insufficient cpu"),
        ("an init container's memory", "cpu=1 memory=14", "memory=1; init: memory=3", "U Insufficient memory"),
        ("the largest of them, not the sum", "cpu=5", "cpu=1; init: cpu=3; init: cpu=2; init: cpu=3", ""),
        ("exactly, by an init container", "cpu=3 memory=5", "cpu=4 memory=1; init: cpu=5 memory=11", ""),
        // Init containers that go on add up.
        ("a sidecar that fits", "cpu=4", "cpu=2; sidecar: cpu=2", ""),
        ("a sidecar that does not fit", "cpu=5", "cpu=2; sidecar: cpu=2", "U Insufficient cpu"),
        (
            "an init container beside an earlier sidecar",
            "cpu=5",
            "cpu=1; sidecar: cpu=1; init: cpu=3",
            "U Insufficient cpu",
        ),
        ("a later sidecar is not there yet", "cpu=5", "cpu=1; init: cpu=3; sidecar: cpu=1", ""),
        // Other resources.
        ("an extended resource", "-", "example.com/gpu=4", ""),
        ("of an init container", "-", "-; init: example.com/gpu=4", ""),
        ("more than there is", "-", "cpu=1 example.com/gpu=5", "UU Insufficient example.com/gpu"),
        (
            "of an init container, more than there is",
            "-",
            "-; init: example.com/gpu=5",
            "UU Insufficient example.com/gpu",
        ),
        ("more than is left", "example.com/gpu=1", "example.com/gpu=4", "U Insufficient example.com/gpu"),
        (
            "for two containers",
            "example.com/gpu=2",
            "example.com/gpu=2; example.com/gpu=1",
            "U Insufficient example.com/gpu",
        ),
        ("for two init containers", "example.com/gpu=2", "-; init: example.com/gpu=2; init: example.com/gpu=1", ""),
        (
            "for two init containers, too many",
            "example.com/gpu=2",
            "-; init: example.com/gpu=3; init: example.com/gpu=1",
            "U Insufficient example.com/gpu",
        ),
        ("one that the node does not have", "-", "example.com/tpu=1", "UU Insufficient example.com/tpu"),
        ("nothing of one that the node does not have", "-", "example.com/tpu=0", ""),
        ("one of Kubernetes", "kubernetes.io/x=1", "kubernetes.io/x=6", "U Insufficient kubernetes.io/x"),
        ("one of Kubernetes that the node does not have", "-", "kubernetes.io/y=1", "UU Insufficient kubernetes.io/y"),
        ("huge pages", "hugepages-2Mi=1", "hugepages-2Mi=3", ""),
        (
            "huge pages for two containers",
            "hugepages-2Mi=1",
            "hugepages-2Mi=2; hugepages-2Mi=2",
            "U Insufficient hugepages-2Mi",
        ),
        ("huge pages, more than there are", "-", "hugepages-2Mi=5", "UU Insufficient hugepages-2Mi"),
        ("storage", "ephemeral-storage=40", "ephemeral-storage=10", ""),
        (
            "storage, more than is left",
            "ephemeral-storage=41",
            "ephemeral-storage=10",
            "U Insufficient ephemeral-storage",
        ),
        ("storage, more than there is", "-", "ephemeral-storage=51", "UU Insufficient ephemeral-storage"),
        (
            "storage of two containers and an init container",
            "-",
            "ephemeral-storage=20; ephemeral-storage=31; init: ephemeral-storage=9",
            "UU Insufficient ephemeral-storage",
        ),
        // What is overhead, and what is requested as a whole.
        ("overhead", "cpu=4 memory=4", "cpu=3 memory=9; overhead: cpu=1 memory=3", ""),
        (
            "too much with the overhead",
            "cpu=4 memory=4",
            "cpu=3 memory=9; overhead: cpu=1 memory=4",
            "U Insufficient memory",
        ),
        ("as a whole", "cpu=3 memory=5", "cpu=1 memory=1; pod: cpu=5 memory=11", ""),
        ("too much cpu as a whole", "cpu=3 memory=5", "cpu=1 memory=1; pod: cpu=6 memory=11", "U Insufficient cpu"),
        (
            "too much memory as a whole",
            "cpu=3 memory=5",
            "cpu=1 memory=1; pod: cpu=5 memory=12",
            "U Insufficient memory",
        ),
        (
            "cpu as a whole, memory of containers",
            "cpu=3 memory=5",
            "memory=6; memory=6; pod: cpu=5",
            "U Insufficient memory",
        ),
        ("as a whole, less than an init container", "cpu=3", "cpu=1; init: cpu=6; pod: cpu=5", ""),
        ("huge pages as a whole", "hugepages-2Mi=1", "-; pod: hugepages-2Mi=3", ""),
        (
            "too many huge pages as a whole",
            "hugepages-2Mi=1",
            "hugepages-2Mi=1; pod: hugepages-2Mi=4",
            "U Insufficient hugepages-2Mi",
        ),
    ] {
        assert_eq!(said(&fit, NODE, used, requested), expected, "{what}");
    }
}

#[test]
fn a_node_takes_so_many_pods() {
    let fit = NodeResourcesFit::default();
    for (what, used, requested, expected) in [
        ("nothing is requested", "cpu=1 memory=2", "-", "U Too many pods"),
        ("all is left", "cpu=1 memory=2", "cpu=1 memory=1", "U Too many pods"),
        ("exactly", "cpu=1 memory=2", "cpu=7 memory=14", "U Too many pods"),
        ("exactly, by an init container", "cpu=1 memory=2", "cpu=1; init: cpu=7 memory=14", "U Too many pods"),
        ("nothing else is left", "cpu=8", "cpu=1", "U Too many pods, Insufficient cpu"),
    ] {
        assert_eq!(said(&fit, "cpu=8 memory=16 pods=1", used, requested), expected, "{what}");
    }
}

#[test]
fn extended_resources_are_ignored_by_name_and_by_domain() {
    const REQUESTED: &str = "cpu=1 example.com/tpu=1 example.com/fpga=2";
    let with = |names: &[&str], groups: &[&str]| {
        let args = json!({"ignoredResources": names, "ignoredResourceGroups": groups});
        NodeResourcesFit::new(serde_json::from_value(args).unwrap())
    };
    for (what, fit, requested, expected) in [
        ("one by name", with(&["example.com/tpu"], &[]), REQUESTED, "UU Insufficient example.com/fpga"),
        ("both by name", with(&["example.com/tpu", "example.com/fpga"], &[]), REQUESTED, ""),
        ("both by domain", with(&[], &["example.com"]), REQUESTED, ""),
        ("another domain", with(&[], &["example.org"]), "example.com/tpu=1", "UU Insufficient example.com/tpu"),
        (
            "a domain that begins alike",
            with(&[], &["example.co"]),
            "example.com/tpu=1",
            "UU Insufficient example.com/tpu",
        ),
        (
            "nothing of one, and one that is ignored",
            with(&[], &["example.com"]),
            "example.com/tpu=1 example.org/x=0",
            "",
        ),
        ("cpu is no extended resource", with(&["cpu"], &[]), "cpu=9", "UU Insufficient cpu"),
    ] {
        assert_eq!(said(&fit, NODE, "-", requested), expected, "{what}");
    }
}

fn sized(offered: &str) -> Arc<Node> {
    node("n", &json!({"status": {"allocatable": amounts(offered)}}))
}

#[test]
fn a_node_that_is_large_enough_helps_where_it_is_new_or_has_grown() {
    let changed = |old: &str, new: &str| Event::NodeChanged { old: sized(old), new: sized(new) };
    for (what, requested, event, helps) in [
        ("a node that is too small", "cpu=2", Event::NodeAdded(sized("cpu=1 pods=9")), false),
        ("a node that takes no pods", "cpu=2", Event::NodeAdded(sized("cpu=4")), false),
        ("a node that is large enough", "cpu=2", Event::NodeAdded(sized("cpu=2 pods=9")), true),
        ("a node that lacks one of two", "cpu=2 example.com/gpu=1", Event::NodeAdded(sized("cpu=2 pods=9")), false),
        ("a node for whom nothing is too small", "-", Event::NodeAdded(sized("pods=1")), true),
        ("it has not changed", "cpu=2", changed("cpu=4 pods=9", "cpu=4 pods=9"), false),
        ("it has shrunk", "cpu=2", changed("cpu=4 pods=9", "cpu=3 pods=9"), false),
        ("it has grown", "cpu=2", changed("cpu=2 pods=9", "cpu=3 pods=9"), true),
        ("it has grown, but not enough", "cpu=9", changed("cpu=2 pods=9", "cpu=3 pods=9"), false),
        (
            "it has more of what is not wanted",
            "cpu=2",
            changed("cpu=2 memory=1 pods=9", "cpu=2 memory=9 pods=9"),
            false,
        ),
        ("it has an extended resource now", "example.com/gpu=1", changed("pods=9", "example.com/gpu=1 pods=9"), true),
        ("it takes more pods", "cpu=2", changed("cpu=2 pods=1", "cpu=2 pods=2"), true),
        ("it takes more pods, of whom nothing is wanted", "-", changed("cpu=2 pods=1", "cpu=2 pods=2"), true),
        ("it has grown, and nothing is wanted", "-", changed("cpu=2 pods=1", "cpu=3 pods=1"), false),
        ("it takes more pods, but is too small", "cpu=9", changed("cpu=2 pods=1", "cpu=2 pods=2"), false),
    ] {
        let waiting = pod("waiting", &requesting(requested));
        assert_eq!(NodeResourcesFit::default().is_helped_by(&waiting, &event, &Cluster::default()), helps, "{what}");
    }
}

#[test]
fn a_pod_that_goes_or_shrinks_in_a_requested_resource_helps() {
    let of = |requests: &str| pod("other", &requesting(requests));
    let shrunk = |old: &str, new: &str| Event::PodScaledDown { old: of(old), new: of(new) };
    for (what, event, helps) in [
        ("it goes", Event::PodRemoved(of("memory=1")), true),
        ("it needs less of another resource", shrunk("cpu=1 memory=2", "cpu=1 memory=1"), false),
        ("it needs less", shrunk("cpu=2 memory=2", "cpu=1 memory=2"), true),
        ("the pod itself has changed", Event::PodChanged, true),
    ] {
        let waiting = pod("waiting", &requesting("cpu=2 example.com/gpu=0"));
        assert_eq!(NodeResourcesFit::default().is_helped_by(&waiting, &event, &Cluster::default()), helps, "{what}");
    }
}
