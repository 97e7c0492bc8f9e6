use serde_json::{Value, json};

use super::*;

/// A node with eight CPUs, of which four are in its topology, a GPU, and a card with a virtual function.
fn node() -> [Value; 3] {
    let devices = json!([
        {"type": "gpu", "minor": 0, "health": true, "topology": {"nodeID": 0}},
        {"type": "rdma", "minor": 0, "health": true, "topology": {"nodeID": 0}},
    ]);
    let detail: Vec<Value> = (0..4).map(|cpu| json!({"id": cpu, "core": cpu / 2, "socket": 0, "node": 0})).collect();
    let topology = json!({ "detail": detail }).to_string();
    [
        json!({"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8"}}}),
        json!({"kind": "Device", "metadata": {"name": "n"}, "spec": {"devices": devices}}),
        json!({"kind": "NodeResourceTopology",
            "metadata": {"name": "n", "annotations": {"node.koordinator.sh/cpu-topology": topology}}}),
    ]
}

fn pod(name: &str, requests: &Value, labels: &Value, given: (&str, &Value)) -> Value {
    let annotation = format!("scheduling.koordinator.sh/{}", given.0);
    json!({"kind": "Pod", "metadata": {"name": name, "labels": labels, "annotations": {annotation: given.1.to_string()}},
        "spec": {"schedulerName": "koord-scheduler", "nodeName": "n", "containers": [{"resources": {"requests": requests}}]}})
}

fn with_cpus(name: &str, cpu: &str, labels: &Value) -> Value {
    pod(name, &json!({ "cpu": cpu }), labels, ("nothing", &Value::Null))
}

fn bound_to(name: &str, cpus: &str) -> Value {
    let own = json!({"koordinator.sh/qosClass": "LSR"});
    pod(name, &json!({"cpu": "2"}), &own, ("resource-status", &json!({ "cpuset": cpus })))
}

fn with_gpu(name: &str, percent: &str) -> Value {
    let resources = json!({"koordinator.sh/gpu-core": percent, "koordinator.sh/gpu-memory-ratio": percent});
    let given = json!({"gpu": [{"minor": 0, "resources": resources}]});
    pod(name, &json!({"koordinator.sh/gpu": percent}), &Value::Null, ("device-allocated", &given))
}

fn with_card(name: &str, percent: &str, function: &str) -> Value {
    let resources = json!({"koordinator.sh/rdma": percent});
    let given = json!({"rdma": [{"minor": 0, "resources": resources, "extension": {"vfs": [{"busID": function}]}}]});
    pod(name, &resources, &Value::Null, ("device-allocated", &given))
}

fn owner(name: &str, cpu: &str) -> Value {
    let of = json!({"name": "r", "uid": "r"});
    pod(name, &json!({ "cpu": cpu }), &json!({"app": "r"}), ("reservation-allocated", &of))
}

fn reservation() -> Value {
    let status = json!({"phase": "Available", "nodeName": "n", "allocatable": {"cpu": "2"}});
    json!({"kind": "Reservation", "metadata": {"name": "r", "uid": "r"}, "status": status,
        "spec": {"allocateOnce": false, "allocatePolicy": "Restricted", "template": {}}})
}

/// What is wrong on the node with these objects.
fn wrong(objects: &[Value]) -> Vec<String> {
    broken(&Facts::of(&[&node()[..], objects].concat()), false)
}

#[test]
fn nothing_is_given_out_twice_or_beyond_what_there_is() {
    let (of_quota, of_gang) =
        (json!({"quota.scheduling.koordinator.sh/name": "q"}), json!({"pod-group.scheduling.sigs.k8s.io": "g"}));
    let quota = json!({"kind": "ElasticQuota", "metadata": {"name": "q"}, "spec": {"max": {"cpu": "2"}}});
    let gang = json!({"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2}});
    let plain = |name: &str, cpu: &str| with_cpus(name, cpu, &Value::Null);
    let cases = [
        (vec![plain("a", "4"), plain("b", "4")], plain("c", "1"), "n gives out 9000 of 8000 cpu"),
        (vec![bound_to("a", "0-1"), bound_to("b", "2-3")], bound_to("c", "1-2"), "n gives out CPUs [1, 2] twice"),
        (
            vec![with_gpu("a", "60"), with_gpu("b", "40")],
            with_gpu("c", "20"),
            "n gives out 120 of 100 koordinator.sh/gpu-core of GPU 0",
        ),
        (
            vec![with_card("a", "60", "80:00.1"), with_card("b", "40", "80:00.2")],
            with_card("c", "20", "80:00.3"),
            "n gives out 120 of 100 koordinator.sh/rdma of rdma 0",
        ),
        (
            vec![with_card("a", "1", "80:00.1"), with_card("b", "1", "80:00.2")],
            with_card("c", "1", "80:00.2"),
            r#"n gives out virtual functions ["80:00.2"] twice"#,
        ),
        (
            vec![quota, with_cpus("a", "1", &of_quota), with_cpus("b", "1", &of_quota)],
            with_cpus("c", "1", &of_quota),
            "q is used by 3000 of 2000 cpu",
        ),
        (vec![gang], with_cpus("a", "1", &of_gang), "1 members of g have a node, and it needs 2"),
        (
            vec![reservation(), owner("a", "1"), owner("b", "1")],
            owner("c", "1"),
            "the owners of r have 3000 of 2000 cpu",
        ),
    ];
    for (legal, further, expected) in cases {
        assert_eq!(wrong(&legal), Vec::<String>::new(), "without the last pod: {legal:?}");
        assert_eq!(wrong(&[legal, vec![further]].concat()), [expected]);
    }
}
