//! `koordctl up` when nothing is in the way.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use hollow::{Fleet, usage::UsageModel};
use jiff::Timestamp;
use koord_resource::Quantity;
use serde_json::{Value, json};

use crate::program::{Api, Up, folder, koordctl};

#[test]
fn a_cluster_comes_up_tells_what_to_try_and_leaves_nothing_behind() {
    let kubeconfig = folder("up").join("koord.kubeconfig");
    let mut up = Up::start(&kubeconfig, &[]);
    assert!(up.greeting.contains(&format!("export KUBECONFIG={}", kubeconfig.display())), "{}", up.greeting);
    assert_eq!(up.greeting.lines().filter(|line| line.starts_with("  kubectl ")).count(), 5);
    let version = koordctl().args(["version", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(text.contains("server v1.34"), "{text}");
    let equal =
        koordctl().args(["crd", "diff", "--profile=hardened", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    assert!(equal.status.success() && equal.stdout.is_empty(), "{equal:?}");
    let different = koordctl().args(["crd", "diff", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    assert!(!different.status.success() && !different.stdout.is_empty(), "{different:?}");
    assert!(up.end());
    assert!(!kubeconfig.exists());
}

#[test]
fn a_fresh_cluster_has_nothing_wrong_and_says_so_again_after_it_was_killed() {
    let kubeconfig = folder("fresh").join("koord.kubeconfig");
    let data = format!("--data-dir={}", folder("fresh-data").display());
    let looks = || {
        let doctor = koordctl().args(["doctor", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
        let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
        let all = "server, definitions, webhooks, certificates, permissions, lease, configuration, objects, nodes, allocations, descheduler";
        assert_eq!(text, format!("nothing is wrong with: {all}\n"), "{doctor:?}");
        assert!(doctor.status.success(), "{doctor:?}");
    };
    let mut up = Up::start(&kubeconfig, &[&data]);
    looks();
    up.kill();
    let begin = Instant::now();
    let _again = Up::start(&kubeconfig, &[&data, "--force"]);
    assert!(begin.elapsed() < Duration::from_secs(10), "it waits for the Lease of the earlier run to expire");
    looks();
}

/// Reports of a node, by the cluster's clock: what of its CPU was in use when.
#[derive(Default)]
struct Reports {
    last: Option<Timestamp>,
    cpu: Vec<f64>,
}

impl Reports {
    fn spread(&self) -> f64 {
        let (least, most) = self.cpu.iter().fold((f64::MAX, 0.0), |(least, most), cpu| (cpu.min(least), cpu.max(most)));
        most / least
    }
}

#[test]
fn a_fast_clock_shows_days_of_load_in_seconds_and_no_lease_is_lost() {
    const SPEED: f64 = 10_000.0;
    const NODES: u32 = 12;
    const SEED: u64 = 1;
    let kubeconfig = folder("speed").join("koord.kubeconfig");
    let (nodes, seed) = (format!("--nodes={NODES}"), format!("--seed={SEED}"));
    // Without pods: those that come later would change even a steady load.
    let up = Up::start(&kubeconfig, &["--speed=10000", "--pods-per-node=0", &nodes, &seed]);
    assert!(up.greeting.contains("10000 times as fast"), "{}", up.greeting);
    let api = Api::of(&kubeconfig);
    let fleet = Fleet::drawn(SEED, NODES);
    let mut reports: BTreeMap<String, Reports> = BTreeMap::new();
    let (begin, mut first) = (Instant::now(), None);
    loop {
        let (real, list) = (Instant::now(), api.get("/apis/slo.koordinator.sh/v1alpha1/nodemetrics"));
        for metric in list["items"].as_array().unwrap() {
            let Some(updated) = metric["status"]["updateTime"].as_str() else { continue };
            let updated: Timestamp = updated.parse().unwrap();
            assert!(updated < Timestamp::now(), "the cluster runs ahead of us: {updated}");
            let reports = reports.entry(metric["metadata"]["name"].as_str().unwrap().to_owned()).or_default();
            assert!(reports.last.is_none_or(|last| last <= updated), "time runs backwards");
            reports.last = Some(updated);
            let cpu: Quantity =
                metric["status"]["nodeMetric"]["nodeUsage"]["resources"]["cpu"].as_str().unwrap().parse().unwrap();
            reports.cpu.push(cpu.milli_value() as f64);
        }
        let latest = reports.values().filter_map(|reports| reports.last).max().unwrap();
        let (first_real, first_shown) = *first.get_or_insert((real, latest));
        let passed = (real - first_real).as_secs_f64();
        // A day of the waves, and hours of bursts, have been seen.
        let seen = fleet.nodes().iter().all(|node| {
            matches!(node.usage, UsageModel::Steady { .. })
                || reports.get(&node.name).is_some_and(|node| node.spread() > 1.5)
        });
        if seen && passed > 3.0 {
            let shown = latest.duration_since(first_shown).as_secs_f64();
            assert!((0.5..1.5).contains(&(shown / passed / SPEED)), "{shown} seconds in {passed}");
            break;
        }
        assert!(begin.elapsed() < Duration::from_mins(1), "the load does not move as it should");
        std::thread::sleep(Duration::from_millis(50));
    }
    for node in fleet.nodes().iter().filter(|node| matches!(node.usage, UsageModel::Steady { .. })) {
        assert!(reports[&node.name].spread() < 1.3, "{} is not steady: {:?}", node.name, reports[&node.name].cpu);
    }
    let leases = api.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases");
    assert_eq!(leases["items"].as_array().unwrap().len(), NODES as usize);
    for lease in leases["items"].as_array().unwrap() {
        let renewed: Timestamp = lease["spec"]["renewTime"].as_str().unwrap().parse().unwrap();
        let age = Timestamp::now().duration_since(renewed).as_secs_f64();
        assert!((-1.0..40.0).contains(&age), "a lease counts as lost after 40 real seconds: {age}");
    }
}

/// Batch CPU of a node whenever it was written anew.
fn written(api: &Api, node: &str) -> Option<i64> {
    let node = api.get(&format!("/api/v1/nodes/{node}"));
    let text = node["status"]["allocatable"]["kubernetes.io/batch-cpu"].as_str()?;
    Some(text.parse::<Quantity>().unwrap().value())
}

#[test]
fn batch_resources_fall_with_the_day_and_rise_with_the_night() {
    const SEED: u64 = 1;
    let fleet = Fleet::drawn(SEED, 12);
    let daily = fleet.nodes().iter().find(|node| matches!(node.usage, UsageModel::DailyWave { .. })).unwrap();
    let kubeconfig = folder("batch").join("koord.kubeconfig");
    // A day in half a minute; reports, looked for every 100 ms, still come often enough to be accepted.
    let _up = Up::start(&kubeconfig, &["--speed=3000", "--nodes=12", "--seed=1"]);
    let api = Api::of(&kubeconfig);
    let begin = Instant::now();
    let (mut least, mut most, mut falls, mut rises) = (i64::MAX, 0, false, false);
    while !(falls && rises) {
        if let Some(amount) = written(&api, &daily.name) {
            falls |= amount < most * 2 / 3;
            rises |= amount * 2 / 3 > least;
            (least, most) = (least.min(amount), most.max(amount));
        }
        assert!(begin.elapsed() < Duration::from_mins(2), "between {least} and {most}: it only rises, or only falls");
        std::thread::sleep(Duration::from_millis(50));
    }
    // What batch got is what production did not use: never as much as the node has.
    assert!(most < i64::try_from(daily.cpu_milli).unwrap());
}

#[test]
fn a_node_does_what_its_node_metric_tells_it() {
    let kubeconfig = folder("orders").join("koord.kubeconfig");
    let _up = Up::start(&kubeconfig, &["--speed=600"]);
    let api = Api::of(&kubeconfig);
    let path = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/hollow-0";
    let until = |what: &str, holds: &dyn Fn(&serde_json::Value) -> bool| {
        let begin = Instant::now();
        while !holds(&api.get(path)) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let share = |metric: &serde_json::Value| {
        let used =
            metric["status"]["podsMetric"][0]["podUsage"]["resources"]["cpu"].as_str()?.parse::<Quantity>().ok()?;
        let asked = Fleet::drawn(1, 1).nodes()[0].cpu_milli as f64 * 0.6;
        Some(used.milli_value() as f64 / asked)
    };
    for load in [0.9, 0.2] {
        let annotations = serde_json::json!({"hollow.koordinator.sh/load": load.to_string()});
        api.merge(path, &serde_json::json!({"metadata": {"annotations": annotations}})).unwrap();
        until("the load follows", &|metric| share(metric).is_some_and(|share| (share - load).abs() < 0.05));
    }
    let time = |metric: &serde_json::Value| metric["status"]["updateTime"].as_str().map(str::to_owned);
    let order = |koordlet: serde_json::Value| {
        api.merge(path, &serde_json::json!({"metadata": {"annotations": {"hollow.koordinator.sh/koordlet": koordlet}}}))
    };
    order("stopped".into()).unwrap();
    // It sees it with its next report, after a tenth of a second.
    std::thread::sleep(Duration::from_secs(1));
    let last = time(&api.get(path));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(time(&api.get(path)), last, "a koordlet that was stopped reports");
    order(serde_json::Value::Null).unwrap();
    until("it reports again", &|metric| time(metric) != last);
}

/// Reads an object until it is as it should be.
fn until(api: &Api, path: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let object = api.get(path);
        if is_right(&object) {
            return object;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{path} stays as it is: {object:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["schedulerName"] = json!("koord-scheduler");
    spec["containers"] = json!([{"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}]);
    json!({"metadata": {"name": name, "labels": {"app": "spread"}}, "spec": spec})
}

#[test]
fn cordoned_nodes_leave_the_spread_and_claims_that_wait_for_their_pod_are_bound() {
    let kubeconfig = folder("volumes").join("koord.kubeconfig");
    let _up = Up::start(&kubeconfig, &["--nodes=3", "--pods-per-node=0"]);
    let api = Api::of(&kubeconfig);
    let placed = |name: &str| {
        let pod = until(&api, &format!("{PODS}/{name}"), |pod| pod["spec"]["nodeName"].is_string());
        pod["spec"]["nodeName"].as_str().unwrap().to_owned()
    };

    for (node, lab, cordoned) in [("hollow-0", "a", false), ("hollow-1", "b", true)] {
        let patch = json!({"metadata": {"labels": {"lab": lab}}, "spec": {"unschedulable": cordoned}});
        api.merge(&format!("/api/v1/nodes/{node}"), &patch).unwrap();
    }
    until(&api, "/api/v1/nodes/hollow-1", |node| {
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        taints
            .clone()
            .any(|taint| taint["key"] == "node.kubernetes.io/unschedulable" && taint["effect"] == "NoSchedule")
    });
    let constraint = json!({"maxSkew": 1, "topologyKey": "lab", "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"app": "spread"}}});
    let spread = json!({"topologySpreadConstraints": [constraint]});
    for name in ["spread-0", "spread-1", "spread-2"] {
        api.create(PODS, &pod(name, &spread)).unwrap();
    }
    for name in ["spread-0", "spread-1", "spread-2"] {
        assert_eq!(placed(name), "hollow-0");
    }

    let class = json!({"metadata": {"name": "wffc"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"});
    api.create("/apis/storage.k8s.io/v1/storageclasses", &class).unwrap();
    let on_node = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["hollow-2"]}]}]});
    let disk = json!({"metadata": {"name": "disk"}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "wffc", "local": {"path": "/x"}, "nodeAffinity": {"required": on_node}}});
    api.create("/api/v1/persistentvolumes", &disk).unwrap();
    let claim = json!({"metadata": {"name": "claim"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "wffc",
        "resources": {"requests": {"storage": "1Gi"}}}});
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    api.create(claims, &claim).unwrap();
    let volumes = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]});
    api.create(PODS, &pod("reader", &volumes)).unwrap();
    assert_eq!(placed("reader"), "hollow-2");
    let claim = until(&api, &format!("{claims}/claim"), |claim| claim["status"]["phase"] == "Bound");
    assert_eq!(claim["spec"]["volumeName"], "disk");
    let volume = until(&api, "/api/v1/persistentvolumes/disk", |volume| volume["status"]["phase"] == "Bound");
    assert_eq!(volume["spec"]["claimRef"]["uid"], claim["metadata"]["uid"]);
}

/// A pod that uses all that it may, placed on the node with koordlet.
fn batch_pod() -> Value {
    let batch = json!({"kubernetes.io/batch-cpu": "8000", "kubernetes.io/batch-memory": "4Gi"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "job", "namespace": "default", "labels": {"koordinator.sh/qosClass": "BE"}},
        "spec": {
            "nodeName": "hollow-0", "priorityClassName": "koord-batch",
            "containers": [{"name": "main", "image": "job", "resources": {"requests": batch, "limits": batch}}],
        },
    })
}

#[test]
fn koordlet_suppresses_and_evicts_on_a_machine_of_files() {
    let folder = folder("node-agent");
    let (kubeconfig, machine) = (folder.join("koord.kubeconfig"), folder.join("machine"));
    let flag = format!("--node-agent={}", machine.display());
    let up = Up::start(&kubeconfig, &["--speed=5", &flag]);
    assert!(up.greeting.contains("koordlet runs on hollow-0"), "{}", up.greeting);
    let api = Api::of(&kubeconfig);
    let settings = json!({"clusterStrategy": {
        "enable": true, "cpuSuppressThresholdPercent": 65, "cpuSuppressPolicy": "cfsQuota", "cpuEvictTimeWindowSeconds": 10,
        "cpuEvictBESatisfactionLowerPercent": 60, "cpuEvictBESatisfactionUpperPercent": 80, "cpuEvictBEUsageThresholdPercent": 90,
    }});
    let configuration = "/api/v1/namespaces/koordinator-system/configmaps/slo-controller-config";
    api.merge(configuration, &json!({"data": {"resource-threshold-config": settings.to_string()}})).unwrap();
    api.create("/api/v1/namespaces/default/pods", &batch_pod()).unwrap();
    let best_effort = machine.join("cgroup/kubepods.slice/kubepods-besteffort.slice");
    let quota = || -> Option<u64> {
        std::fs::read_to_string(best_effort.join("cpu.max")).ok()?.split_whitespace().next()?.parse().ok()
    };
    let wait = |what: &str, holds: &dyn Fn() -> bool| {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < Duration::from_mins(1), "{what}: {:?}", quota());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait("the pod has no memory limit", &|| {
        let pods = std::fs::read_dir(&best_effort).unwrap().filter_map(Result::ok);
        let limits = pods.filter_map(|pod| std::fs::read_to_string(pod.path().join("memory.max")).ok());
        limits.into_iter().any(|limit| limit.trim() == (4u64 << 30).to_string())
    });
    wait("best-effort pods have no quota", &|| quota().is_some());
    // The address stands in the greeting.
    let address = up.greeting.split("--address ").nth(1).unwrap().split_whitespace().next().unwrap();
    let explained =
        koordctl().args(["node", "explain", "hollow-0", "default/job", "--address", address]).output().unwrap();
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(text.contains("batch memory limit = 4294967296") && text.contains("CPUSuppress"), "{explained:?}");
    let metric = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics/hollow-0";
    api.merge(metric, &json!({"metadata": {"annotations": {"hollow.koordinator.sh/load": "1"}}})).unwrap();
    wait("the pod is not evicted", &|| {
        let events = api.get("/api/v1/namespaces/default/events");
        events["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|event| event["reason"] == "evictPodSuccess" && event["source"]["component"] == "koordlet-qosManager")
    });
    wait("the folder of the pod stays", &|| {
        let pods = std::fs::read_dir(&best_effort).unwrap().filter_map(Result::ok);
        !pods.into_iter().any(|pod| pod.path().is_dir())
    });
}
