//! CPUs and NUMA nodes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, config, histories, holds, node, pod};

fn cast() -> Cast {
    let place = |id: u32| json!({"id": id, "core": id / 2, "node": id / 8, "socket": id / 8});
    let detail: Vec<Value> = (0..16).map(place).collect();
    let cpus = json!({"detail": detail}).to_string();
    let amount = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
    let zone = |node: u32, extra: &[Value]| {
        let mut resources = vec![amount("cpu", "8"), amount("memory", "32Gi")];
        resources.extend(extra.iter().cloned());
        json!({"name": format!("node-{node}"), "type": "Node", "resources": resources})
    };
    let report = |annotations: Value, policy: &str, zones: &[Value]| json!({"metadata": {"annotations": annotations}, "topologyPolicies": [policy], "zones": zones});
    let topology = || json!({"node.koordinator.sh/cpu-topology": cpus});
    let reports = vec![
        report(topology(), "None", &[zone(0, &[]), zone(1, &[])]),
        report(topology(), "SingleNUMANodePodLevel", &[zone(0, &[amount("x/y", "4")]), zone(1, &[])]),
        report(json!({"node.koordinator.sh/cpu-topology": "{"}), "BestEffort", &[zone(0, &[])]),
        report(
            json!({"node.koordinator.sh/pod-cpu-allocs": "[{\"uid\":\"u\",\"cpuset\":\"0-1\",\"managedByKubelet\":true}]"}),
            "Restricted",
            &[],
        ),
    ];
    let lsr = |cpu: &str| {
        pod(
            json!({"koordinator.sh/qosClass": "LSR", "koordinator.sh/priority-class": "koord-prod"}),
            json!({}),
            json!({"cpu": cpu, "memory": "1Gi"}),
        )
    };
    let given = |text: &str| {
        let mut form = lsr("2");
        form["metadata"]["annotations"] = json!({"scheduling.koordinator.sh/resource-status": text});
        form
    };
    let share = |node: i32, resources: &str| {
        format!(r#"{{"cpuset":"","numaNodeResources":[{{"node":{node},"resources":{resources}}}]}}"#)
    };
    Cast {
        nodes: vec![
            node("16", json!({}), json!({})),
            node(
                "24",
                json!({"node.koordinator.sh/numa-topology-policy": "Restricted", "node.koordinator.sh/cpu-bind-policy": "FullPCPUsOnly"}),
                json!({"node.koordinator.sh/resource-amplification-ratio": "{\"cpu\":1.5}"}),
            ),
            node(
                "16",
                json!({"node.koordinator.sh/numa-allocate-strategy": "x"}),
                json!({"node.koordinator.sh/resource-amplification-ratio": "["}),
            ),
        ],
        pods: vec![
            lsr("2"),
            lsr("4"),
            pod(json!({}), json!({}), json!({"cpu": "1", "memory": "1Gi", "x/y": "1"})),
            pod(
                json!({}),
                json!({"scheduling.koordinator.sh/resource-spec": "{\"requiredCPUBindPolicy\":\"FullPCPUs\",\"preferredCPUExclusivePolicy\":\"PCPULevel\"}"}),
                json!({"cpu": "2", "memory": "1Gi"}),
            ),
            given(r#"{"cpuset":"0-3"}"#),
            given(r#"{"cpuset":"0-1,99"}"#),
            given(r#"{"cpuset":"x"}"#),
            given("{"),
            given(&share(0, "{}")),
            given(&share(0, r#"{"cpu":"2","x/z":"3"}"#)),
            given(&share(0, r#"{"cpu":"-2"}"#)),
            given(&share(0, r#"{"memory":"9223372036854775807"}"#)),
            given(&share(-1, r#"{"cpu":"1"}"#)),
        ],
        objects: vec![
            ("topology", "n0", reports.clone()),
            ("topology", "n1", reports.clone()),
            ("topology", "n3", reports),
        ],
        gates: Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn cpus_are_held_by_the_pods_that_have_them(steps in histories()) {
        holds(&cast(), &steps)?;
    }
}
