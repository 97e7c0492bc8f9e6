//! What `explain` says is what the controllers write: for nodes, reports, pods, zones and configurations that a seed has thrown together, the
//! explained numbers are those that `plan`, which is the controllers themselves, would write.

use koord_resource::Quantity;
use koord_runtime::random::Random;
use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::{Map, Value, json};

/// How many clusters are thrown together.
const SEEDS: u64 = 200;

const AT: &str = "--at=2026-01-01T00:05:00Z";

struct Dice(Random);

impl Dice {
    fn one<'a, T>(&self, of: &'a [T]) -> &'a T {
        &of[usize::try_from(self.0.below(of.len() as u64)).unwrap()]
    }

    fn within(&self, from: u64, to: u64) -> u64 {
        from + self.0.below(to - from + 1)
    }

    /// Once in so many times.
    fn rarely(&self, times: u64) -> bool {
        self.0.below(times) == 0
    }

    /// A part of an object, or not.
    fn maybe(&self, object: &mut Map<String, Value>, name: &str, value: Value) {
        if self.rarely(2) {
            object.insert(name.to_owned(), value);
        }
    }

    fn amounts(&self, cores_max: u64, gigabytes_max: u64) -> Value {
        let cpu = format!("{}m", self.within(0, cores_max * 1000));
        json!({"cpu": cpu, "memory": format!("{}M", self.within(0, gigabytes_max * 1000))})
    }

    fn node(&self) -> Value {
        let (cores, gigabytes) = (self.within(1, 128), self.within(2, 512));
        let mut labels = Map::from_iter([("pool".to_owned(), json!(self.one(&["a", "b", "c"])))]);
        self.maybe(
            &mut labels,
            "node.koordinator.sh/cpu-reclaim-ratio",
            json!(self.one(&["0.5", "0.65", "1.5", "some"])),
        );
        self.maybe(&mut labels, "node.koordinator.sh/memory-reclaim-ratio", json!(self.one(&["0.4", "0.999", "-1"])));
        let mut annotations = Map::new();
        let strategies =
            [r#"{"enable":true,"cpuReclaimThresholdPercent":55}"#, r#"{"memoryCalculatePolicy":"request"}"#, "{"];
        self.maybe(&mut annotations, "node.koordinator.sh/colocation-strategy", json!(self.one(&strategies)));
        let reservations = [r#"{"resources":{"cpu":"1500m","memory":"1Gi"}}"#, r#"{"reservedCPUs":"0-1"}"#, "none"];
        self.maybe(&mut annotations, "node.koordinator.sh/reservation", json!(self.one(&reservations)));
        let others = r#"[{"name":"other","priority":"koord-batch","resources":{"kubernetes.io/batch-cpu":"1000","kubernetes.io/batch-memory":"1Gi"}}]"#;
        self.maybe(
            &mut annotations,
            "node.koordinator.sh/third-party-allocations",
            json!(format!(r#"{{"allocations":{others}}}"#)),
        );
        let bandwidth = self.one(&["10Gi", "100M", "wide"]);
        self.maybe(&mut annotations, "node.koordinator.sh/network-bandwidth", json!(bandwidth));
        let allocatable = json!({"cpu": format!("{}m", cores * 950), "memory": format!("{}M", gigabytes * 970)});
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels, "annotations": annotations},
            "status": {"capacity": {"cpu": cores.to_string(), "memory": format!("{gigabytes}G")}, "allocatable": allocatable},
        })
    }

    fn pod(&self, name: &str) -> Value {
        let mut labels = Map::new();
        self.maybe(&mut labels, "koordinator.sh/qosClass", json!(self.one(&["LSE", "LSR", "LS", "BE"])));
        let priority = self.one(&[9500, 7500, 5500, 3500, 0]);
        let phase = self.one(&["Running", "Running", "Pending", "Succeeded"]);
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop", "labels": labels},
            "spec": {"nodeName": "n1", "priority": priority, "containers": [{"name": "c", "resources": {"requests": self.amounts(12, 24)}}]},
            "status": {"phase": phase, "qosClass": self.one(&["Burstable", "Guaranteed", "BestEffort"])},
        })
    }

    fn metric(&self) -> Value {
        let updated =
            self.one(&["2026-01-01T00:04:30Z", "2026-01-01T00:04:30Z", "2026-01-01T00:00:00Z", "2025-12-31T20:00:00Z"]);
        let mut status = Map::from_iter([("updateTime".to_owned(), json!(updated))]);
        let usage = json!({"nodeUsage": {"resources": self.amounts(40, 100)}, "systemUsage": {"resources": self.amounts(8, 16)}});
        status.insert("nodeMetric".to_owned(), usage);
        let priorities = ["koord-prod", "koord-mid", "koord-batch", "koord-free"];
        let pods = (0..self.within(0, 5)).map(|index| {
            json!({
                "name": format!("p{index}"), "namespace": "shop", "podUsage": {"resources": self.amounts(10, 16)},
                "priority": self.one(&priorities), "qos": self.one(&["LSR", "LS", "BE"]),
            })
        });
        status.insert("podsMetric".to_owned(), pods.collect());
        let application = json!([{
            "name": "agent", "usage": {"resources": self.amounts(3, 4)}, "priority": self.one(&priorities), "qos": "LS",
        }]);
        self.maybe(&mut status, "hostApplicationMetric", application);
        self.maybe(&mut status, "prodReclaimableMetric", json!({"resource": {"resources": self.amounts(20, 40)}}));
        json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n1"}, "status": status})
    }

    fn topology(&self, node: &Value) -> Value {
        let zones = self.within(1, 4);
        let whole =
            |name: &str| node["status"]["capacity"][name].as_str().unwrap().parse::<Quantity>().unwrap().value();
        let share = |name: &str| Value::from((whole(name) / i64::try_from(zones).unwrap()).to_string());
        let resource = |name: &str| json!({"name": name, "capacity": share(name), "allocatable": share(name), "available": share(name)});
        let zone = |index| json!({"name": format!("node-{index}"), "type": "Node", "resources": [resource("cpu"), resource("memory")]});
        json!({
            "apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", "metadata": {"name": "n1"},
            "topologyPolicies": [self.one(&["None", "SingleNUMANodePodLevel"])], "zones": (0..zones).map(zone).collect::<Vec<_>>(),
        })
    }

    fn colocation(&self) -> Map<String, Value> {
        let mut strategy = Map::new();
        let policies = ["usage", "request", "maxUsageRequest"];
        self.maybe(&mut strategy, "cpuReclaimThresholdPercent", json!(self.within(0, 100)));
        self.maybe(&mut strategy, "memoryReclaimThresholdPercent", json!(self.within(0, 100)));
        self.maybe(&mut strategy, "cpuCalculatePolicy", json!(self.one(&policies)));
        self.maybe(&mut strategy, "memoryCalculatePolicy", json!(self.one(&policies)));
        self.maybe(&mut strategy, "midCPUThresholdPercent", json!(self.within(0, 100)));
        self.maybe(&mut strategy, "midMemoryThresholdPercent", json!(self.within(0, 100)));
        self.maybe(&mut strategy, "midUnallocatedPercent", json!(self.within(0, 100)));
        self.maybe(&mut strategy, "batchCPUThresholdPercent", json!(self.within(0, 100)));
        self.maybe(&mut strategy, "batchMemoryThresholdPercent", json!(self.within(0, 100)));
        self.maybe(&mut strategy, "degradeTimeMinutes", json!(self.within(1, 30)));
        strategy
    }

    /// A strategy for all nodes and one for some, which may be those of n1.
    fn with_node_strategy(
        &self,
        mut cluster: Map<String, Value>,
        mut node: Map<String, Value>,
        inline: bool,
    ) -> String {
        let selector = json!({"matchLabels": {"pool": self.one(&["a", "b"])}});
        node.extend([("name".to_owned(), json!("some")), ("nodeSelector".to_owned(), selector)]);
        let (all, some) = if inline { ("", "nodeConfigs") } else { ("clusterStrategy", "nodeStrategies") };
        if inline {
            cluster.insert(some.to_owned(), json!([node]));
            return Value::from(cluster).to_string();
        }
        json!({all: cluster, some: [node]}).to_string()
    }

    fn threshold(&self) -> Map<String, Value> {
        let mut strategy = Map::new();
        self.maybe(&mut strategy, "enable", json!(self.rarely(2)));
        self.maybe(&mut strategy, "cpuSuppressThresholdPercent", json!(self.within(0, 100)));
        self.maybe(&mut strategy, "cpuSuppressPolicy", json!(self.one(&["cpuset", "cfsQuota"])));
        self.maybe(&mut strategy, "memoryEvictThresholdPercent", json!(self.within(0, 100)));
        strategy
    }

    fn burst(&self) -> Map<String, Value> {
        let mut strategy = Map::new();
        self.maybe(&mut strategy, "policy", json!(self.one(&["none", "auto", "cpuBurstOnly"])));
        self.maybe(&mut strategy, "cpuBurstPercent", json!(self.within(1, 10_000)));
        strategy
    }

    fn quality(&self) -> Map<String, Value> {
        let mut strategy = Map::new();
        self.maybe(&mut strategy, "lsClass", json!({"cpuQOS": {"enable": true, "groupIdentity": self.within(0, 2)}}));
        self.maybe(
            &mut strategy,
            "beClass",
            json!({"memoryQOS": {"enable": self.rarely(2), "wmarkRatio": self.within(0, 100)}}),
        );
        strategy
    }

    fn configuration(&self) -> Value {
        let mut cluster = self.colocation();
        cluster.insert("enable".to_owned(), json!(!self.rarely(6)));
        let mut data = Map::from_iter([(
            "colocation-config".to_owned(),
            self.with_node_strategy(cluster, self.colocation(), true).into(),
        )]);
        let section = |all, some| Value::from(self.with_node_strategy(all, some, false));
        self.maybe(&mut data, "resource-threshold-config", section(self.threshold(), self.threshold()));
        self.maybe(&mut data, "cpu-burst-config", section(self.burst(), self.burst()));
        self.maybe(&mut data, "resource-qos-config", section(self.quality(), self.quality()));
        self.maybe(
            &mut data,
            "system-config",
            section(Map::from_iter([("minFreeKbytesFactor".to_owned(), json!(110))]), Map::new()),
        );
        let applications = json!({"applications": [{"name": "all", "priority": "koord-prod"}], "nodeConfigs": [
            {"name": "some", "nodeSelector": {"matchLabels": {"pool": "b"}}, "applications": [{"name": "b-only", "priority": "koord-batch"}]},
        ]});
        self.maybe(&mut data, "host-application-config", applications.to_string().into());
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "slo-controller-config", "namespace": "koordinator-system"},
        })
    }
}

fn answer(file: &str, line: &[&str]) -> Value {
    let line = ["koordctl"].iter().chain(line).copied().chain(["-o", "json", AT, "-f", file]);
    let cli = <Cli as clap::Parser>::try_parse_from(line).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let Answer { text, .. } = runtime.block_on(run_on(cli, Screen::ENDLESS)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Makes an object what a planned change makes it.
fn change(object: &mut Value, path: &str, to: &Value) {
    let mut place = object;
    for step in path.split_inclusive(['.', '[', ']']).map(|step| step.trim_end_matches(['.', '[', ']'])) {
        if step.is_empty() {
            continue;
        }
        place = match step.parse::<usize>() {
            Ok(index) => {
                if place.is_null() {
                    *place = json!([]);
                }
                let list = place.as_array_mut().unwrap();
                list.resize(list.len().max(index + 1), Value::Null);
                &mut list[index]
            }
            Err(_) => &mut place[step],
        };
    }
    *place = to.clone();
}

/// The objects of a kind as the plan leaves it.
fn after(plan: &Value, kind: &str, mut object: Value) -> Value {
    for write in plan["writes"].as_array().unwrap().iter().filter(|write| write["kind"] == kind) {
        for one in write["changes"].as_array().unwrap() {
            // Names of resources and annotations have dots of their own.
            let path = one["path"].as_str().unwrap();
            match path.split_once('[') {
                Some((before, name)) if name.contains('/') => {
                    let pointer = format!("/{}", before.replace('.', "/"));
                    if object.pointer(&pointer).is_none() {
                        change(&mut object, before, &json!({}));
                    }
                    object.pointer_mut(&pointer).unwrap()[name.trim_end_matches(']')] = one["to"].clone();
                }
                _ => change(&mut object, path, &one["to"]),
            }
        }
    }
    object
}

fn leaves(path: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| leaves(&format!("{path}.{name}"), value, found));
        }
        Value::Null => {}
        value => found.push((path.trim_start_matches('.').to_owned(), value.clone())),
    }
}

/// That the last term is the amount: CPU is explained in cores and written in thousandths of them.
#[track_caller]
fn ends_in_its_amount(explained: &Value, seed: u64) {
    let quantity = |value: &Value| value.as_str().unwrap().parse::<Quantity>().unwrap();
    let Some(last) = explained["terms"].as_array().unwrap().last() else {
        assert!(!explained["reason"].is_null() || explained["amount"].is_null(), "seed {seed}: {explained:#}");
        return;
    };
    let is_cpu = explained["resource"].as_str().unwrap().contains("-cpu");
    let last = quantity(&last["amount"]);
    let last = if is_cpu { last.milli_value() } else { last.value() };
    assert_eq!(last, quantity(&explained["amount"]).value(), "seed {seed}: {explained:#}");
}

#[test]
fn what_is_explained_is_what_the_controllers_write() {
    let folder = tempfile::tempdir().unwrap();
    let (mut some, mut none, mut in_zones) = (0, 0, 0);
    for seed in 0..SEEDS {
        let dice = Dice(Random::seeded(seed));
        let node = dice.node();
        let mut objects = vec![node.clone(), dice.configuration()];
        if !dice.rarely(8) {
            objects.push(dice.metric());
        }
        objects.extend((0..dice.within(0, 5)).map(|index| dice.pod(&format!("p{index}"))));
        let topology = dice.rarely(2).then(|| dice.topology(&node));
        objects.extend(topology.clone());
        let file = folder.path().join("objects.json");
        std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
        let file = file.display().to_string();

        let plan = answer(&file, &["plan"]);
        assert_eq!(plan["problems"], json!([]), "seed {seed}");
        let written = after(&plan, "Node", node);
        for (what, names) in [("batch", ["batch-cpu", "batch-memory"]), ("mid", ["mid-cpu", "mid-memory"])] {
            let explained = answer(&file, &["explain", what, "n1"]);
            for (amount, name) in explained["amounts"].as_array().unwrap().iter().zip(names) {
                let name = format!("kubernetes.io/{name}");
                assert_eq!(amount["resource"], name);
                assert_eq!(
                    amount["amount"], written["status"]["allocatable"][&name],
                    "seed {seed}, {name}: {explained:#}\n{plan:#}"
                );
                if amount["amount"].is_null() { none += 1 } else { some += 1 }
            }
        }
        if let Some(topology) = topology {
            let written = after(&plan, "NodeResourceTopology", topology);
            let explained = answer(&file, &["explain", "zone", "n1"]);
            let mut of_zones = Vec::new();
            for zone in written["zones"].as_array().unwrap() {
                for name in ["kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"] {
                    let resource =
                        zone["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == name);
                    of_zones.push(resource.map_or(Value::Null, |resource| resource["allocatable"].clone()));
                }
            }
            for (amount, stored) in explained["amounts"].as_array().unwrap().iter().zip(&of_zones) {
                // Where nothing may be used, a zone that says nothing about it is left so.
                let is_left = stored.is_null() && !amount["reason"].is_null() && amount["amount"] == "0";
                assert!(amount["amount"] == *stored || is_left, "seed {seed}: {explained:#}\n{plan:#}");
                ends_in_its_amount(amount, seed);
            }
            assert_eq!(explained["amounts"].as_array().unwrap().len(), of_zones.len(), "seed {seed}");
            in_zones += of_zones.iter().filter(|amount| !amount.is_null()).count();
        }

        let slo = after(&plan, "NodeSLO", json!({}));
        let mut stored = Vec::new();
        leaves("", &slo["spec"], &mut stored);
        let explained = answer(&file, &["explain", "slo", "n1"]);
        let lines = explained["values"].as_array().unwrap().iter();
        let mut predicted: Vec<(String, Value)> =
            lines.map(|line| (line["field"].as_str().unwrap().to_owned(), line["value"].clone())).collect();
        predicted.sort_by(|one, other| one.0.cmp(&other.0));
        stored.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(predicted, stored, "seed {seed}");
    }
    assert!(
        some > 300 && none > 30 && in_zones > 100,
        "the dice are loaded: {some} amounts, {none} times none, {in_zones} in zones"
    );
}
