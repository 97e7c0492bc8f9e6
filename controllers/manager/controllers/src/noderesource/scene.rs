//! One node and what belongs to it, for tests of the formulas.

use jiff::Timestamp;
use koord_runtime::cache::Cache;
use koord_types::slo_config::{ColocationConfig, CpuNormalizationConfig, ResourceAmplificationConfig};
use serde_json::{Value, json};

use super::{
    Caches, Configuration, Decision, Facts, Plugins,
    batch::{self, Place},
    decide, mid,
    waterfall::{Unasked, arrives_at},
};
use crate::{
    amount::Native,
    view::{DeviceView, NodeMetricView, NodeView, PodView, TopologyView},
};

pub(super) const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
pub(super) const GIGA: i64 = 1_000_000_000;

/// A node with 100 cores and 120 GB, whose system uses 7 cores and 12 GB.
pub(super) struct Scene {
    pub(super) node: Value,
    pub(super) pods: Vec<Value>,
    pub(super) metric: Value,
    pub(super) topology: Value,
    pub(super) device: Value,
    pub(super) config: Value,
    pub(super) normalization: Value,
    pub(super) amplification: Value,
}

impl Scene {
    pub(super) fn new(config: Value) -> Self {
        let amounts = json!({"cpu": "100", "memory": "120G"});
        let metric = json!({"status": {
            "updateTime": NOW.to_string(), "podsMetric": [],
            "nodeMetric": {"nodeUsage": usage("50", "55G"), "systemUsage": usage("7", "12G")},
        }});
        let mut scene = Self {
            node: json!({"metadata": {"annotations": {"a": "b"}}, "status": {"capacity": amounts, "allocatable": amounts}}),
            pods: Vec::new(),
            metric,
            topology: Value::Null,
            device: Value::Null,
            normalization: json!({}),
            amplification: json!({}),
            config: json!({"enable": true, "cpuReclaimThresholdPercent": 65, "memoryReclaimThresholdPercent": 65}),
        };
        let Value::Object(config) = config else { panic!("{config}") };
        scene.config.as_object_mut().unwrap().extend(config);
        scene
    }

    /// With pods of every class, which take 33 cores and 33 GB.
    pub(super) fn busy(config: Value) -> Self {
        let mut scene = Self::new(config);
        scene.pod("prod", "LS", "koord-prod", ("20", "20G"), Some(("11", "11G")));
        scene.pod("mid", "LS", "koord-mid", ("22", "22G"), Some(("17", "17G")));
        scene.pod("batch", "BE", "koord-batch", ("0", "0"), Some(("9", "9G")));
        scene.pod("new", "LSR", "koord-prod", ("5", "5G"), None);
        scene
    }

    pub(super) fn pod(
        &mut self,
        name: &str,
        qos: &str,
        class: &str,
        request: (&str, &str),
        used: Option<(&str, &str)>,
    ) {
        let labels = json!({"koordinator.sh/qosClass": qos, "koordinator.sh/priority-class": class});
        self.pods.push(json!({
            "metadata": {"name": name, "namespace": "d", "labels": labels},
            "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": request.0, "memory": request.1}}}]},
            "status": {"phase": "Running"},
        }));
        if let Some((cpu, memory)) = used {
            self.report(name, class, cpu, memory);
        }
    }

    pub(super) fn report(&mut self, name: &str, class: &str, cpu: &str, memory: &str) {
        let metric = json!({"name": name, "namespace": "d", "priority": class, "podUsage": usage(cpu, memory)});
        self.metric["status"]["podsMetric"].as_array_mut().unwrap().push(metric);
    }

    pub(super) fn annotate(mut self, key: &str, text: &str) -> Self {
        self.node["metadata"]["annotations"][key] = text.into();
        self
    }

    pub(super) fn zones(mut self, memory: [&str; 2]) -> Self {
        let zone = |name, memory| {
            let of =
                |name, amount| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
            json!({"name": name, "type": "Node", "resources": [of("cpu", "50"), of("memory", memory)]})
        };
        self.topology = json!({"zones": [zone("node-0", memory[0]), zone("node-1", memory[1])]});
        self
    }

    pub(super) fn look<T>(&self, see: impl FnOnce(&Facts<'_>) -> T) -> T {
        fn cache<'a, P: koord_runtime::projection::Projection>(
            objects: impl IntoIterator<Item = &'a Value>,
        ) -> Cache<P> {
            let mut cache = Cache::default();
            for object in objects.into_iter().filter(|object| !object.is_null()) {
                let mut object = object.clone();
                for (field, text) in [("name", "n"), ("uid", "u"), ("resourceVersion", "1")] {
                    if object["metadata"][field].is_null() {
                        object["metadata"][field] = text.into();
                    }
                }
                cache.upsert(&object.to_string()).unwrap();
            }
            cache
        }
        let nodes = cache::<NodeView>([&self.node]);
        let metrics = cache::<NodeMetricView>([&self.metric]);
        let pods = cache::<PodView>(&self.pods);
        let topologies = cache::<TopologyView>([&self.topology]);
        let devices = cache::<DeviceView>([&self.device]);
        let caches =
            Caches { nodes: &nodes, metrics: &metrics, pods: &pods, topologies: &topologies, devices: &devices };
        let colocation = ColocationConfig::parse(Some(&self.config.to_string())).unwrap();
        let normalization = CpuNormalizationConfig::parse(Some(&self.normalization.to_string())).ok();
        let amplification = ResourceAmplificationConfig::parse(Some(&self.amplification.to_string())).ok();
        let config = Configuration { colocation, normalization, amplification };
        see(&Facts::of(&caches, "n", &config, NOW).unwrap())
    }

    pub(super) fn decide(&self) -> Decision {
        self.look(|facts| decide(facts, &Plugins::default()))
    }

    /// Thousandths of cores and bytes, which the waterfalls arrive at too.
    pub(super) fn batch(&self, place: Place) -> (i64, i64) {
        self.look(|facts| {
            let count = |native: Native| {
                let trusted = facts.trusted().unwrap();
                let amount = batch::available(native, place, facts, trusted, &mut Unasked);
                let mut terms = Vec::new();
                assert_eq!(batch::available(native, place, facts, trusted, &mut terms), amount);
                assert_eq!(arrives_at(native, &terms), Some(amount), "{terms:?}");
                native.count(amount)
            };
            (count(Native::Cpu), count(Native::Memory))
        })
    }

    pub(super) fn mid(&self) -> (i64, i64) {
        self.look(|facts| {
            let count = |native: Native| {
                let trusted = facts.trusted().unwrap();
                let amount = mid::available(native, facts, trusted, &mut Unasked);
                let mut terms = Vec::new();
                assert_eq!(mid::available(native, facts, trusted, &mut terms), amount);
                assert_eq!(arrives_at(native, &terms), Some(amount), "{terms:?}");
                native.count(amount)
            };
            (count(Native::Cpu), count(Native::Memory))
        })
    }
}

pub(super) fn usage(cpu: &str, memory: &str) -> Value {
    json!({"resources": {"cpu": cpu, "memory": memory}})
}
