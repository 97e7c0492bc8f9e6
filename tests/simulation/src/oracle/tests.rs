//! The oracle agrees with the numbers of the spec, and with nothing else.

use serde_json::{Value, json};

use super::Cluster;

/// spec/manager.md 6.5: pods that are pinned, shared, of a batch class, and over.
fn golden() -> Cluster {
    let uses = |cpu: &str, memory: &str| json!({"resources": {"cpu": cpu, "memory": memory}});
    let pod = |name: &str, qos: &str, phase: &str, status: &str| {
        json!({
            "metadata": {"namespace": "d", "name": name, "labels": {"koordinator.sh/qosClass": qos, "koordinator.sh/priority-class": if name == "shared-mid" { "koord-mid" } else { "" }},
                "annotations": {"scheduling.koordinator.sh/resource-status": status}},
            "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1G"}}}]},
            "status": {"phase": phase},
        })
    };
    let report = |name: &str, priority: &str, usage: Value| json!({"namespace": "d", "name": name, "priority": priority, "podUsage": usage});
    let amount = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
    let zone = |memory: &str, batch: [&str; 2]| {
        json!({"resources": [
            amount("cpu", "50"), amount("kubernetes.io/batch-cpu", batch[0]),
            amount("kubernetes.io/batch-memory", batch[1]), amount("memory", memory),
        ]})
    };
    let has = json!({
        "cpu": "100", "memory": "120G", "kubernetes.io/batch-cpu": "25k", "kubernetes.io/batch-memory": "33G",
        "kubernetes.io/mid-cpu": "10k", "kubernetes.io/mid-memory": "15G", "koordinator.sh/rdma": "100",
    });
    let prefix = "quota.scheduling.koordinator.sh";
    let of_nodes = r#"{"cpu":"100","memory":"120G","kubernetes.io/batch-cpu":"25k","kubernetes.io/batch-memory":"33G","kubernetes.io/mid-cpu":"10k","kubernetes.io/mid-memory":"15G","koordinator.sh/rdma":"100"}"#;
    Cluster {
        config: json!({
            "colocation-config": r#"{"enable":true,"cpuReclaimThresholdPercent":65,"memoryReclaimThresholdPercent":65}"#,
            "resource-qos-config": r#"{"clusterStrategy":{"lsClass":{"cpuQOS":{"enable":true},"networkQOS":{"ingressLimit":60}},
                "beClass":{"blkioQOS":{"blocks":[{"name":"a","type":"device"}]}}},"nodeStrategies":[
                {"nodeSelector":{"matchLabels":{}},"lsClass":{"cpuQOS":{"groupIdentity":2}},"beClass":{"blkioQOS":{"blocks":[{"name":"z"}]}}}]}"#,
            "cpu-burst-config": r#"{"clusterStrategy":{"policy":"auto"}}"#,
            "system-config": r#"{"clusterStrategy":{"minFreeKbytesFactor":90,"totalNetworkBandwidth":"10G"}}"#,
            "host-application-config": r#"{"applications":[{"name":"proxy"}],"nodeConfigs":[
                {"nodeSelector":{"matchLabels":{"no":"body"}},"applications":[{"name":"other"}]}]}"#,
        }),
        nodes: vec![json!({
            "metadata": {"name": "n", "annotations": {
                "node.koordinator.sh/cpu-normalization-ratio": "1.00", "node.koordinator.sh/network-bandwidth": "20M",
                "node.koordinator.sh/originExtendedAllocatable": r#"{"resources":{"kubernetes.io/batch-cpu":"25k","kubernetes.io/batch-memory":"33G"}}"#,
            }},
            "status": {"capacity": has, "allocatable": has},
        })],
        pods: vec![
            pod("pinned", "LS", "Running", r#"{"numaNodeResources":[{"node":0}]}"#),
            pod("shared", "LS", "Running", "{}"),
            pod("shared-mid", "LS", "Pending", "{}"),
            pod("batch", "BE", "Running", "{}"),
            pod("over", "LS", "Succeeded", "{}"),
        ],
        metrics: vec![json!({
            "metadata": {"name": "n"},
            "spec": {"metricCollectPolicy": {
                "aggregateDurationSeconds": 300, "reportIntervalSeconds": 60,
                "nodeAggregatePolicy": {"durations": ["5m0s", "10m0s", "30m0s"]},
                "nodeMemoryCollectPolicy": "usageWithoutPageCache",
            }},
            "status": {
                "updateTime": "2027-01-01T00:00:00Z",
                "nodeMetric": {"nodeUsage": uses("50", "55G"), "systemUsage": uses("7", "12G")},
                "prodReclaimableMetric": {"resource": uses("10", "15G")},
                "podsMetric": [
                    report("pinned", "", uses("5", "5G")), report("shared", "", uses("6", "6G")),
                    report("shared-mid", "", uses("22", "22G")), report("batch", "", uses("10", "10G")),
                ],
            },
        })],
        slos: vec![json!({"metadata": {"name": "n"}, "spec": {
            "resourceUsedThresholdWithBE": {
                "enable": false, "cpuSuppressThresholdPercent": 65, "cpuSuppressPolicy": "cpuset",
                "memoryEvictThresholdPercent": 70, "cpuEvictPolicy": "evictByRealLimit",
            },
            "resourceQOSStrategy": {
                "lsClass": {
                    "cpuQOS": {"enable": true, "groupIdentity": 2},
                    "networkQOS": {"ingressRequest": 0, "ingressLimit": 60, "egressRequest": 0, "egressLimit": 100},
                },
                "beClass": {"blkioQOS": {"blocks": [{"name": "z", "type": "device"}]}},
            },
            "cpuBurstStrategy": {
                "policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300,
                "cfsQuotaBurstPeriodSeconds": -1, "sharePoolThresholdPercent": 50,
            },
            "systemStrategy": {"minFreeKbytesFactor": 90, "totalNetworkBandwidth": "20M"},
            "hostApplications": [{"name": "proxy"}], "extensions": {"Object": {}},
        }})],
        devices: vec![
            json!({"metadata": {"name": "n"}, "spec": {"devices": [{"type": "rdma", "health": true}, {"type": "gpu", "health": false}]}}),
        ],
        topologies: vec![json!({"metadata": {"name": "n"}, "zones": [
            zone("62G", ["10k", "15300M"]), zone("58G", ["15k", "17700M"]),
        ]})],
        profiles: vec![json!({
            "metadata": {"name": "p", "labels": {format!("{prefix}/tree-id"): "7"}},
            "spec": {"quotaName": "q", "resourceRatio": "2", "nodeSelector": {}},
        })],
        quotas: vec![json!({
            "metadata": {"name": "q",
                "labels": {format!("{prefix}/profile"): "p", format!("{prefix}/tree-id"): "7", format!("{prefix}/is-root"): "true"},
                "annotations": {format!("{prefix}/total-resource"): of_nodes, format!("{prefix}/unschedulable-resource"): of_nodes},
            },
            "spec": {"min": {"cpu": "100", "memory": "120G"}, "max": {"cpu": "4611686018427387", "memory": "4611686018427387"}},
        })],
        ..Cluster::default()
    }
}

fn check(cluster: &Cluster, time: &str) -> Result<(), String> {
    cluster.check(time.parse().unwrap())
}

const NOW: &str = "2027-01-01T00:15:00Z";

#[test]
fn the_numbers_of_the_spec_are_right() {
    check(&golden(), NOW).unwrap();
}

/// Every value that the manager writes is looked at.
#[test]
fn any_other_value_is_wrong() {
    let pointers = [
        ("nodes", "/status/capacity/kubernetes.io~1batch-cpu"),
        ("nodes", "/status/allocatable/kubernetes.io~1batch-memory"),
        ("nodes", "/status/allocatable/kubernetes.io~1mid-cpu"),
        ("nodes", "/status/capacity/kubernetes.io~1mid-memory"),
        ("nodes", "/status/capacity/koordinator.sh~1rdma"),
        ("nodes", "/metadata/annotations/node.koordinator.sh~1cpu-normalization-ratio"),
        ("nodes", "/metadata/annotations/node.koordinator.sh~1originExtendedAllocatable"),
        ("topologies", "/zones/0/resources/1/allocatable"),
        ("topologies", "/zones/1/resources/2/available"),
        ("slos", "/spec/resourceUsedThresholdWithBE/cpuSuppressThresholdPercent"),
        ("slos", "/spec/resourceQOSStrategy/lsClass/cpuQOS/groupIdentity"),
        ("slos", "/spec/resourceQOSStrategy/beClass/blkioQOS/blocks/0/type"),
        ("slos", "/spec/cpuBurstStrategy/policy"),
        ("slos", "/spec/systemStrategy/totalNetworkBandwidth"),
        ("slos", "/spec/hostApplications/0/name"),
        ("metrics", "/spec/metricCollectPolicy/reportIntervalSeconds"),
        ("quotas", "/spec/min/cpu"),
        ("quotas", "/spec/max/memory"),
        ("quotas", "/metadata/labels/quota.scheduling.koordinator.sh~1tree-id"),
        ("quotas", "/metadata/annotations/quota.scheduling.koordinator.sh~1unschedulable-resource"),
    ];
    for (kind, pointer) in pointers {
        let mut cluster = golden();
        let objects = match kind {
            "nodes" => &mut cluster.nodes,
            "topologies" => &mut cluster.topologies,
            "slos" => &mut cluster.slos,
            "metrics" => &mut cluster.metrics,
            _ => &mut cluster.quotas,
        };
        *objects[0].pointer_mut(pointer).unwrap() = json!("11");
        assert!(check(&cluster, NOW).is_err(), "{kind} {pointer}");
    }
}

#[test]
fn what_belongs_to_nobody_is_wrong_too() {
    let mut cluster = golden();
    cluster.nodes[0]["status"]["capacity"]["koordinator.sh/gpu"] = json!("100");
    cluster.nodes[0]["status"]["allocatable"]["koordinator.sh/gpu"] = json!("100");
    assert!(check(&cluster, NOW).unwrap_err().contains("koordinator.sh/gpu"));
}

/// A second later the report is too old.
#[test]
fn old_reports_leave_nothing() {
    assert!(check(&golden(), "2027-01-01T00:15:01Z").unwrap_err().contains("mid-cpu"));
}
