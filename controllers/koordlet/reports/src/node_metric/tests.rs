use koord_koordlet_framework::{Node, PodReader};
use koord_koordlet_metrics::predict::Forecast;
use koord_koordlet_system::{Driver, Layout, Version};
use serde_json::{Value, json};

use super::*;

const MIB: f64 = 1_048_576.0;
const SERVED: ServedFields = ServedFields { numa_usages: true, prod_peak: true };

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

/// Pods of lines `NAMESPACE/NAME QOS_LABEL KUBERNETES_QOS PRIORITY`; the name is the uid, too.
fn pods(lines: &[&str]) -> Vec<Arc<Pod>> {
    let items: Vec<Value> = lines
        .iter()
        .map(|line| {
            let mut fields = line.split(' ');
            let [path, qos, class, priority] = std::array::from_fn(|_| fields.next().unwrap_or_default());
            let (namespace, name) = path.split_once('/').unwrap();
            let resources = json!({"kubernetes.io/batch-cpu": "2000"});
            json!({
                "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": {"koordinator.sh/qosClass": qos}},
                "spec": {
                    "priority": priority.parse::<i32>().ok(),
                    "containers": [{"name": "main", "resources": {"requests": resources, "limits": resources}}]
                },
                "status": {"phase": "Running", "qosClass": class, "containerStatuses": [
                    {"name": "main", "containerID": "containerd://abc", "state": {"running": {}}}
                ]}
            })
        })
        .collect();
    let layout = Layout::new(Version::V1, Driver::Systemd);
    PodReader::default().read(json!({"items": items}).to_string().as_bytes(), layout).unwrap().pods
}

/// A sample each second from one to another, of CPUs and MiB of memory.
fn append(store: &mut Store, seconds: std::ops::RangeInclusive<u64>, subject: Subject<'_>, cpu: f64, mib: f64) {
    for second in seconds {
        store.append(subject, Measure::Cpu, at(second), cpu);
        store.append(subject, Measure::Memory, at(second), mib * MIB);
    }
}

/// The policy of the recorded cases.
fn policy(memory: MemoryUsage) -> NodeMetricPolicy {
    NodeMetricPolicy {
        aggregate: Duration::from_mins(1),
        report_interval: Duration::from_secs(30),
        durations: vec![Duration::from_secs(30), Duration::from_mins(10)],
        memory,
    }
}

static NO_DEVICES: BTreeMap<Arc<str>, Vec<DeviceInfo>> = BTreeMap::new();

fn input<'a>(store: &'a Store, policy: &'a NodeMetricPolicy, pods: &'a [Arc<Pod>]) -> NodeMetricInput<'a> {
    NodeMetricInput {
        store,
        policy,
        pods,
        host_applications: &[],
        forecast: None,
        devices: &[],
        devices_of_pods: &NO_DEVICES,
        collected: CollectedMemory::default(),
        served: SERVED,
    }
}

fn status(input: &NodeMetricInput<'_>, seconds: u64) -> Value {
    let report = node_metric(input, at(seconds), "2026-03-01T12:00:00Z".parse().unwrap());
    serde_json::to_value(report.status).unwrap()
}

#[test]
fn a_report_is_the_recorded_one_field_by_field() {
    let pods = pods(&[
        "shop/ls-1 LS Burstable 9500",
        "shop/be-1 BE BestEffort 5500",
        "shop/mid-1 LS Burstable 7500",
        "shop/none-2 - BestEffort",
        "bank/z - Guaranteed",
        "shop/without-samples LS Burstable",
    ]);
    let mut store = Store::default();
    append(&mut store, 2..=31, Subject::Node, 4.0, 6144.0);
    append(&mut store, 2..=31, Subject::System, 1.1999, 4060.0);
    append(&mut store, 2..=31, Subject::Numa(0), 2.0, 4096.0);
    append(&mut store, 2..=31, Subject::SystemNuma(0), 0.598, 1024.5);
    store.append(Subject::Numa(1), Measure::Memory, at(31), 1.0);
    for (pod, cpu, mib) in
        [("ls-1", 0.5, 512.0), ("be-1", 0.7499, 256.0), ("mid-1", 0.2, 100.0), ("none-2", 0.1, 64.0), ("z", 1.0, 1.0)]
    {
        append(&mut store, 2..=31, Subject::Pod(pod), cpu, mib);
    }
    let amounts = |milli_cpu, memory_bytes| Amounts { milli_cpu, memory_bytes };
    let minimum = Forecast { reclaimable: amounts(0, 0), peak: amounts(3378, 6_765_203_767) };
    let forecast = ProdForecast { minimum, ..ProdForecast::default() };
    let policy = policy(MemoryUsage::WithoutPageCache);
    let mut input = NodeMetricInput { forecast: Some(&forecast), ..input(&store, &policy, &pods) };
    let usage = |cpu: &str, memory: &str| json!({"resources": {"cpu": cpu, "memory": memory}});
    let of_all = |usage: &Value| json!({"avg": usage, "p50": usage, "p90": usage, "p95": usage, "p99": usage});
    let aggregated = |usage: Value| json!([{"duration": "30s", "usage": of_all(&usage)}, {"duration": "10m0s", "usage": of_all(&json!({}))}]);
    let pod = |namespace: &str, name: &str, cpu: &str, memory: &str, priority: &str, qos: &str| json!({"namespace": namespace, "name": name, "podUsage": usage(cpu, memory), "priority": priority, "qos": qos});
    let mut expected = json!({
        "updateTime": "2026-03-01T12:00:00Z",
        "nodeMetric": {
            "nodeUsage": usage("4", "6Gi"),
            "aggregatedNodeUsages": aggregated(usage("4", "6Gi")),
            "systemUsage": usage("1199m", "4060Mi"),
            "aggregatedSystemUsages": aggregated(usage("1199m", "4060Mi")),
            "numaUsages": [
                {"numaNodeID": 0, "nodeUsage": usage("2", "4Gi"), "systemUsage": usage("598m", "1049088Ki")}
            ],
        },
        "podsMetric": [
            pod("bank", "z", "1", "1Mi", "koord-prod", "LSR"),
            pod("shop", "be-1", "749m", "256Mi", "koord-batch", "BE"),
            pod("shop", "ls-1", "500m", "512Mi", "koord-prod", "LS"),
            pod("shop", "mid-1", "200m", "100Mi", "koord-mid", "LS"),
            pod("shop", "none-2", "100m", "64Mi", "koord-batch", "BE"),
        ],
        "prodReclaimableMetric": {"resource": usage("0", "0")},
        "prodPeakMetric": {"resource": usage("3378m", "6765203767")},
    });
    assert_eq!(status(&input, 31), expected);
    assert!(has_usage(&store, &policy, &pods[0], at(31)) && !has_usage(&store, &policy, &pods[5], at(31)));
    // A server of chart 1.8.0 knows fewer fields, and nothing is forecast at first.
    input.served = ServedFields { numa_usages: false, prod_peak: false };
    expected["nodeMetric"].as_object_mut().unwrap().remove("numaUsages");
    expected.as_object_mut().unwrap().remove("prodPeakMetric");
    assert_eq!(status(&input, 31), expected);
    (input.served, input.forecast) = (SERVED, None);
    expected["prodReclaimableMetric"] = json!({"resource": {}});
    expected["nodeMetric"]["numaUsages"] = status(&input, 31)["nodeMetric"]["numaUsages"].clone();
    assert_eq!(status(&input, 31), expected);
}

#[test]
fn memory_is_what_the_policy_asks_for_and_what_is_collected() {
    let pods = pods(&["shop/a LS Burstable"]);
    let apps: Vec<HostApplicationSpec> = serde_json::from_value(
        json!([{"name": "b", "qos": "LS"}, {"name": "a", "qos": "BE", "priority": "koord-batch"}]),
    )
    .unwrap();
    let mut store = Store::default();
    for subject in [
        Subject::Node,
        Subject::Pod("a"),
        Subject::System,
        Subject::HostApplication("a"),
        Subject::HostApplication("b"),
    ] {
        append(&mut store, 1..=2, subject, 1.0, 100.0);
        store.append(subject, Measure::MemoryWithPageCache, at(2), 300.0 * MIB);
        store.append(subject, Measure::MemoryWithHotPages, at(2), 200.0 * MIB);
    }
    let all = CollectedMemory { with_page_cache: true, with_hot_pages: true };
    for (memory, collected, pods_memory, apps_memory) in [
        (MemoryUsage::WithoutPageCache, all, "100Mi", "100Mi"),
        (MemoryUsage::WithHotPages, all, "200Mi", "200Mi"),
        (MemoryUsage::WithPageCache, all, "300Mi", "300Mi"),
        (MemoryUsage::WithHotPages, CollectedMemory::default(), "100Mi", "100Mi"),
        (MemoryUsage::WithPageCache, CollectedMemory::default(), "100Mi", "300Mi"),
    ] {
        let policy = policy(memory);
        let input = NodeMetricInput { collected, host_applications: &apps, ..input(&store, &policy, &pods) };
        let status = status(&input, 2);
        let memory = |usage: &Value| usage["resources"]["memory"].clone();
        assert_eq!(memory(&status["nodeMetric"]["nodeUsage"]), pods_memory, "{policy:?} {collected:?}");
        assert_eq!(memory(&status["podsMetric"][0]["podUsage"]), pods_memory);
        assert_eq!(memory(&status["nodeMetric"]["systemUsage"]), "100Mi", "the system has no page cache");
        let apps = &status["hostApplicationMetric"];
        assert_eq!(
            (&apps[0]["name"], &apps[0]["priority"], &apps[0]["qos"]),
            (&json!("a"), &json!("koord-batch"), &json!("BE"))
        );
        assert_eq!((&apps[1]["name"], memory(&apps[1]["usage"])), (&json!("b"), json!(apps_memory)));
    }
}

#[test]
fn percentiles_follow_a_memory_use_that_grows() {
    // nodemetric-percentiles: 2 GiB, then 6 from the tenth second, 10 from the nineteenth, 13 from the twenty-fifth.
    let mut store = Store::default();
    for (seconds, gib) in [(1..=9, 2.0), (10..=18, 6.0), (19..=24, 10.0), (25..=30, 13.0)] {
        append(&mut store, seconds, Subject::Node, 4.0, gib * 1024.0);
    }
    let policy = policy(MemoryUsage::default());
    let usage = &status(&input(&store, &policy, &[]), 30)["nodeMetric"]["aggregatedNodeUsages"][0]["usage"];
    let memory = |aggregation: &str| usage[aggregation]["resources"]["memory"].as_str().unwrap().to_owned();
    assert_eq!(["p50", "p90", "p95", "p99"].map(memory), ["6Gi", "13Gi", "13Gi", "13Gi"]);
    assert_eq!(memory("avg"), "7Gi");
}

#[test]
fn a_young_agent_reports_what_it_knows_with_the_time_that_it_rests_on() {
    let policy = policy(MemoryUsage::default());
    let mut store = Store::default();
    let report = |store: &Store, second| node_metric(&input(store, &policy, &[]), at(second), Timestamp::UNIX_EPOCH);
    let durations = |report: &NodeMetricReport| {
        let metric = report.status.node_metric.clone().unwrap();
        let text = |usage: &AggregatedUsage| {
            format!("{} {}", usage.duration, usage.usage.values().filter(|usage| !usage.resources.is_empty()).count())
        };
        metric.aggregated_node_usages.iter().map(text).collect::<Vec<_>>()
    };
    let nothing = report(&store, 1);
    assert_eq!((nothing.is_young, durations(&nothing)), (true, vec!["30s 0".to_owned(), "10m0s 0".to_owned()]));
    append(&mut store, 2..=5, Subject::Node, 1.0, 10.0);
    let young = report(&store, 5);
    assert!(young.is_young);
    assert_eq!(durations(&young), ["30s 0", "10m0s 0", "3s 5"]);
    assert!(!young.status.node_metric.unwrap().node_usage.resources.is_empty());
    append(&mut store, 6..=17, Subject::Node, 1.0, 10.0);
    let grown = report(&store, 17);
    assert_eq!((grown.is_young, durations(&grown)), (false, vec!["30s 5".to_owned(), "10m0s 0".to_owned()]));
}

#[test]
fn devices_stand_beside_the_resources() {
    let mut store = Store::default();
    for subject in [Subject::Node, Subject::Pod("a")] {
        append(&mut store, 1..=2, subject, 1.0, 1.0);
    }
    let (pods, policy) = (pods(&["shop/a LS Burstable"]), policy(MemoryUsage::default()));
    let node = [gpu_usage(1, "GPU-1", 80.5, 8e9, 16e9)];
    let of_pods = BTreeMap::from([("a".into(), vec![gpu_usage(1, "GPU-1", 40.0, 4e9, 0.0)])]);
    let input = NodeMetricInput { devices: &node, devices_of_pods: &of_pods, ..input(&store, &policy, &pods) };
    let status = status(&input, 2);
    let device = &status["nodeMetric"]["nodeUsage"]["devices"][0];
    assert_eq!((&device["minor"], &device["id"], &device["type"]), (&json!(1), &json!("GPU-1"), &json!("gpu")));
    let resources = |device: &Value| {
        ["gpu-core", "gpu-memory", "gpu-memory-ratio"]
            .map(|name| device["resources"][format!("koordinator.sh/{name}")].clone())
    };
    assert_eq!(resources(device), [json!("80"), json!("7812500Ki"), json!("50")]);
    assert_eq!(resources(&status["podsMetric"][0]["podUsage"]["devices"][0])[2], json!("0"), "no total is known");
}

#[test]
fn gauges_are_those_of_the_recorded_case() {
    let mut store = Store::default();
    append(&mut store, 1..=2, Subject::Node, 3.998, 6144.0);
    append(&mut store, 1..=2, Subject::Numa(1), 1.999, 4096.0);
    let policy = policy(MemoryUsage::default());
    let report = node_metric(&input(&store, &policy, &[]), at(2), Timestamp::UNIX_EPOCH);
    let node = Node {
        allocatable: serde_json::from_value(json!({"cpu": "8", "kubernetes.io/batch-cpu": "5000"})).unwrap(),
        ..Node::default()
    };
    let pods = pods(&["shop/be-1 BE BestEffort"]);
    let all =
        [node_metric_gauges(&report.status), allocatable_gauges(&node), container_resource_gauges(&pods)].concat();
    let text = |gauge: &koord_koordlet_metrics::gauges::Gauge| {
        let labels: Vec<String> = gauge.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}{{{}}} {}", gauge.name, labels.join(","), gauge.value)
    };
    let container = "pod_uid=be-1,pod_name=be-1,pod_namespace=shop,container_id=containerd://abc,container_name=main";
    assert_eq!(
        all.iter().map(text).collect::<Vec<_>>(),
        [
            "node_metric_node_usage{resource=cpu,unit=core} 3.998".to_owned(),
            "node_metric_node_usage{resource=memory,unit=byte} 6442450944".to_owned(),
            "node_metric_numa_node_usage{numa_node_id=1,resource=cpu,unit=core} 1.999".to_owned(),
            "node_metric_numa_node_usage{numa_node_id=1,resource=memory,unit=byte} 4294967296".to_owned(),
            "node_resource_allocatable{resource=kubernetes.io/batch-cpu,unit=integer} 5000".to_owned(),
            format!("container_resource_requests{{resource=kubernetes.io/batch-cpu,unit=integer,{container}}} 2000"),
            format!("container_resource_limits{{resource=kubernetes.io/batch-cpu,unit=byte,{container}}} 2000"),
        ]
    );
}
