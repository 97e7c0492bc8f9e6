//! What is measured: a file with nodes and pods, or with operations that are played one after the other.
//!
//! The fields of a plain scenario are those of the original's performance harness.

mod builtin;
mod check;
mod ops;

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use k8s_openapi::api::core::v1::Node;
use koord_configuration::{Configuration, Source, decode};
use koord_resource::{
    Duration, ResourceList,
    yaml::{parse, read_text},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::builtin::{LIST, builtin, list, names};
pub(crate) use self::ops::{
    Barrier, Churn, ChurnMode, CreateAny, CreateNamespaces, CreateNodes, CreatePods, DeletePods, Op, Selection, Stage,
    Step, UpdateAny,
};

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Scenario {
    /// Its name, which the result has too.
    pub name: String,
    /// What it shows.
    pub(crate) description: Option<String>,
    /// The scheduler that is measured.
    #[koord(default = "koord-scheduler")]
    pub scheduler_name: String,
    /// The namespace of pods that name none.
    #[koord(default = "benchmark")]
    pub(crate) namespace: String,
    /// How many nodes there are.
    #[koord(minimum = 1, maximum = 100_000)]
    pub(crate) node_count: Option<u32>,
    /// How many nodes are created at once.
    #[koord(default = 20, minimum = 1, maximum = 1000)]
    pub(crate) node_creation_workers: u32,
    /// How many pods are created and measured.
    #[koord(minimum = 1, maximum = 1_000_000)]
    pub(crate) pod_count: Option<u32>,
    /// How many pods are created at once.
    #[koord(default = 50, minimum = 1, maximum = 1000)]
    pub(crate) concurrency: u32,
    /// How many requests a second create objects; 0 or nothing means no limit.
    #[serde(rename = "clientQPS")]
    #[koord(minimum = 0, maximum = 1_000_000)]
    pub client_qps: Option<u32>,
    /// How many requests may come at once after a pause; clientQPS where it is not set.
    #[koord(minimum = 1, maximum = 1_000_000)]
    pub(crate) client_burst: Option<u32>,
    /// The QoS class of the pods.
    pub(crate) qos_class: Option<String>,
    /// What each pod requests, and is limited to.
    pub(crate) resource_requests: ResourceList,
    /// Labels of the pods.
    pub(crate) labels: BTreeMap<String, String>,
    /// Annotations of the pods.
    pub(crate) annotations: BTreeMap<String, String>,
    /// A file with the Node that all nodes are made after, beside the scenario.
    pub(crate) node_template_file: Option<PathBuf>,
    /// How long it may take.
    #[koord(default = "10m")]
    pub(crate) timeout: Duration,
    /// What counts as worse than an earlier result.
    pub thresholds: Thresholds,
    /// The pods form gangs of so many.
    #[koord(minimum = 1, maximum = 10_000)]
    pub(crate) gang_size: Option<u32>,
    /// So many pods of a gang are placed together; gangSize where it is not set.
    #[koord(minimum = 1, maximum = 10_000)]
    pub(crate) min_member: Option<u32>,
    /// Notes; they have no effect.
    pub(crate) extra: BTreeMap<String, Value>,
    /// Objects that operations are made of, by name. `extends` in one names another that it changes; `node` and `pod` are there.
    pub(crate) templates: BTreeMap<String, Value>,
    /// What happens, one after the other, in place of nodeCount and podCount.
    pub(crate) ops: Vec<Op>,
}

/// What counts as worse than an earlier result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Thresholds {
    /// By how many percent the throughput may fall.
    #[koord(minimum = 0, maximum = 100)]
    pub throughput_drop_pct: Option<f64>,
    /// By how many percent the 99th percentile of the wait for a node may grow.
    #[koord(minimum = 0)]
    pub p99_increase_pct: Option<f64>,
}

impl Scenario {
    /// Reads the scenario of a file, with the file that it names.
    pub fn of_file(file: &Path) -> Result<Self> {
        let cannot = || format!("{} cannot be read", file.display());
        let text = File::open(file).and_then(read_text).with_context(cannot)?;
        let mut scenario = Self::of_text(&file.display().to_string(), &text)?;
        if let Some(template) = &scenario.node_template_file {
            let path = file.parent().unwrap_or(Path::new("")).join(template);
            scenario.templates.insert("node".to_owned(), node_of(&path)?);
        }
        Ok(scenario)
    }

    /// Reads a scenario; each mistake is named with its line.
    fn of_text(name: &str, text: &str) -> Result<Self> {
        let source = Source::new(name, text);
        let scenario: Self = decode(&source.parse()?).map_err(|problems| source.error(problems))?;
        let problems = scenario.problems();
        if !problems.is_empty() {
            return Err(source.error(problems).into());
        }
        Ok(scenario)
    }

    /// What is played: the operations, or nodes and then pods.
    pub(crate) fn steps(&self) -> Vec<Step> {
        if !self.ops.is_empty() {
            return self.ops.iter().filter_map(Op::step).collect();
        }
        let nodes = CreateNodes { count: self.node_count.unwrap_or(1), ..CreateNodes::default() };
        let pods = CreatePods {
            count: self.pod_count.unwrap_or(1),
            collect_metrics: true,
            gang_size: self.gang_size,
            min_member: self.min_member,
            ..CreatePods::default()
        };
        vec![Step::CreateNodes(nodes), Step::CreatePods(pods)]
    }

    /// How long it may take.
    pub fn timeout(&self) -> std::time::Duration {
        self.timeout.to_std().unwrap_or_default()
    }
}

fn node_of(path: &Path) -> Result<Value> {
    let name = || format!("nodeTemplateFile {}", path.display());
    let text = File::open(path).and_then(read_text).with_context(|| format!("{} cannot be read", name()))?;
    let mut node = parse(&text).map_err(|error| anyhow!("{}:{}: {error}", name(), error.line))?;
    if node["kind"] != "Node" {
        bail!("{} must hold a Node", name());
    }
    let read: Node = serde_json::from_value(node.clone()).with_context(|| format!("{} holds no Node", name()))?;
    let node_name = read.metadata.name.unwrap_or_else(|| "node".to_owned());
    if !node_name.contains("{index") {
        node["metadata"]["name"] = format!("{node_name}-{{index}}").into();
    }
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_after_a_file_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let node = |text: &str| {
            let path = folder.path().join("node.yaml");
            std::fs::write(&path, text).unwrap();
            node_of(&path).map(|node| node["metadata"]["name"].clone()).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(node("{kind: Node, metadata: {name: gpu}}").unwrap(), "gpu-{index}");
        assert_eq!(node("{kind: Node}").unwrap(), "node-{index}");
        assert_eq!(node("{kind: Node, metadata: {name: 'a{index%2}b'}}").unwrap(), "a{index%2}b");
        let error = node("{kind: Node, metadata: {name: no}}").unwrap_err();
        assert!(error.contains("node.yaml holds no Node: invalid type: boolean `false`, expected a string"), "{error}");
    }

    fn read(text: &str) -> Result<Scenario, String> {
        Scenario::of_text("s.yaml", text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plain_scenario_has_the_fields_of_the_original() {
        let text = "\
name: mine
description: words
schedulerName: other
namespace: bench
nodeCount: 5
nodeCreationWorkers: 2
podCount: 10
concurrency: 3
clientQPS: 100
clientBurst: 200
qosClass: LS
resourceRequests: {cpu: 500m, memory: 512Mi}
labels: {a: b}
annotations: {c: d}
timeout: 90s
thresholds: {throughputDropPct: 10, p99IncreasePct: 20}
gangSize: 5
minMember: 4
extra: {anything: [1]}
";
        let scenario = read(text).unwrap();
        assert_eq!(
            (&*scenario.scheduler_name, &*scenario.namespace, scenario.timeout().as_secs()),
            ("other", "bench", 90)
        );
        let [Step::CreateNodes(nodes), Step::CreatePods(pods)] = &scenario.steps()[..] else { panic!() };
        assert_eq!((nodes.count, pods.count, pods.gang_size, pods.collect_metrics), (5, 10, Some(5), true));
    }

    #[test]
    fn every_mistake_has_its_line_and_a_remedy() {
        for (text, message) in [
            ("name: a\nnodeCout: 3\n", "s.yaml:2: nodeCout: unknown field; did you mean nodeCount?"),
            ("name: a\nnodeCount: 0\npodCount: 1\n", "s.yaml:2: nodeCount: must be 1 or greater"),
            ("name: a\nnodeCount: many\n", "s.yaml:2: nodeCount: must be a whole number, not a text"),
            ("name: a\nnodeCount: 1\n", "s.yaml:1: podCount: must be set, or ops"),
            ("nodeCount: 1\npodCount: 1\n", "s.yaml:1: name: must be set"),
            (
                "name: a b\nnodeCount: 1\npodCount: 1\n",
                "s.yaml:1: name: must be of lower-case letters, digits and '-', because files are named after it",
            ),
            (
                "name: a\nnodeCount: 1\npodCount: 1\nminMember: 2\n",
                "s.yaml:4: minMember: has no effect without gangSize",
            ),
            (
                "name: a\nnodeCount: 1\npodCount: 1\ngangSize: 2\nminMember: 3\n",
                "s.yaml:5: minMember: must not be more than gangSize",
            ),
            (
                "name: a\nnodeCount: 1\npodCount: 1\nqosClass: LSX\n",
                "s.yaml:4: qosClass: \"LSX\" is none of LSE, LSR, LS, BE, SYSTEM",
            ),
            (
                "name: a\nnodeCount: 1\npodCount: 1\ntimeout: soon\n",
                "s.yaml:4: timeout: time: invalid duration \"soon\"; durations are texts such as 90s, 5m or 1h30m",
            ),
            (
                "name: a\nthresholds:\n  p99IncreasePct: -1\n",
                "s.yaml:3: thresholds.p99IncreasePct: must be 0 or greater",
            ),
            ("name: a\nname: b\n", "s.yaml:2: "),
            (
                "name: a\nops:\n- createPods: {count: 1, template: pdo, collectMetrics: true}\n",
                "s.yaml:3: ops[0].createPods.template: there is no template \"pdo\"; did you mean \"pod\"?",
            ),
            (
                "name: a\nops:\n- createPod: {count: 1}\n",
                "s.yaml:3: ops[0].createPod: unknown field; did you mean createPods?",
            ),
            (
                "name: a\nops:\n- createNodes: {count: 1}\n  sleep: 1s\n",
                "s.yaml:3: ops[0]: must be one operation, not 2",
            ),
            (
                "name: a\nops:\n- createNodes: {count: 1}\n",
                "s.yaml:2: ops: nothing is measured; set collectMetrics in a createPods, or add startCollectingMetrics",
            ),
            (
                "name: a\nnodeCount: 1\nops:\n- createNodes: {count: 1}\n",
                "s.yaml:2: nodeCount: has no effect beside ops",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(message), "{text}\n{error}");
        }
    }
}
