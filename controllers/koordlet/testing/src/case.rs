//! Recorded cases: what an agent is given, and what the original did with it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::{Map, Value};

/// A change of a fixture file.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum FileChange {
    /// The whole content.
    Text(String),
    /// What is added at the end.
    Append {
        /// The text that is added.
        append: String,
    },
}

/// Something that happens while the agent runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Step {
    /// Seconds after the first request for pods.
    pub at: f64,
    /// The state before this step is recorded under this name.
    pub snapshot: Option<String>,
    /// The snapshot also records objects.
    pub watch: bool,
    /// Files that are written from outside; `null` removes one.
    pub files: BTreeMap<String, Option<String>>,
    /// Folders that vanish.
    pub rmdirs: Vec<String>,
    /// Memory in use, see [`Case::memory`].
    pub memory: Option<BTreeMap<String, Value>>,
    /// Cores in use, see [`Case::cpu`].
    pub cpu: Option<BTreeMap<String, f64>>,
    /// What changes in the answers of the kubelet.
    pub kubelet: Option<Map<String, Value>>,
    /// Objects that are created or replaced.
    pub objects: Vec<Value>,
    /// Objects that are deleted.
    pub delete: Vec<Value>,
    /// Pods whose folders exist from the start, although the kubelet does not answer them yet.
    pub cgroup_pods: Vec<Value>,
}

/// A call of the hook server, or an event of NRI.
#[derive(Clone, Debug, Deserialize)]
pub struct Call {
    /// The method: `PreRunPodSandboxHook`, `CreateContainer`.
    pub method: String,
    /// The request in JSON, by the field names of the protocol, with placeholders.
    pub request: Value,
}

/// Which metrics are recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub struct MetricsWanted {
    /// The paths that are read.
    pub endpoints: Vec<String>,
    /// Patterns of family names; without any, all families of the original: those that begin with `koordlet_`.
    pub only: Option<Vec<String>>,
}

impl Default for MetricsWanted {
    fn default() -> Self {
        Self { endpoints: vec!["/metrics".to_owned()], only: None }
    }
}

/// A recorded case. Paths begin with `cgroup/`, `proc/`, `sys/`, `sysfs/`, `kubelet/`, `hookserver/` or `xpu/`, and may hold placeholders
/// ([`Names::fill`](crate::Names::fill)).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Case {
    pub name: String,
    pub group: String,
    pub about: String,
    pub node_name: String,
    /// `Gate=true,Other=false`.
    pub feature_gates: String,
    /// Added to the standard flags, or in their place; `null` takes one away.
    pub flags: BTreeMap<String, Option<String>>,
    pub env: BTreeMap<String, Option<String>>,
    /// How long the agent runs after its first request for pods.
    pub seconds: f64,
    /// `v1` or `v2`.
    pub cgroup: String,
    /// `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
    /// Whose files the cgroups have: `anolis` or `plain`.
    pub kernel: String,
    /// The CPUs and their topology.
    pub machine: String,
    /// Further fixtures over the machine.
    pub extras: Vec<String>,
    /// Files over the fixtures; `null` removes one, or with `/**` all below a folder.
    pub files: BTreeMap<String, Option<FileChange>>,
    /// Patterns of files that are not there.
    pub drop: Vec<String>,
    /// Further cgroups with the files of a container.
    pub cgroups: Vec<String>,
    /// Names of pods without folders.
    pub no_cgroup: Vec<String>,
    pub no_dirs: Vec<String>,
    pub dirs: Vec<String>,
    /// Whether pods have the folder of a sandbox.
    pub sandboxes: bool,
    /// What programs of the path print; `null` for one that fails.
    pub commands: BTreeMap<String, Option<String>>,
    /// Processes that live while the case is played, and the files that have their number.
    pub processes: BTreeMap<String, Vec<String>>,
    pub work_files: BTreeMap<String, String>,
    pub work_dirs: Option<Vec<String>>,
    /// What the kubelet answers.
    pub pods: Vec<Value>,
    /// Cores in use by `node`, `pod/NAME`, `container/POD/NAME`, `cgroup/FOLDER`.
    pub cpu: BTreeMap<String, f64>,
    /// Bytes in use, by the same names; of `node` the members `total`, `available`, `free`.
    pub memory: BTreeMap<String, Value>,
    /// The share of periods in which a container is throttled.
    pub throttle: BTreeMap<String, f64>,
    pub node: Option<Value>,
    /// Objects that exist before the start.
    pub objects: Vec<Value>,
    /// The pods also exist on the API server.
    pub api_pods: bool,
    pub no_api_pod: Vec<String>,
    pub kubelet: Map<String, Value>,
    pub steps: Vec<Step>,
    pub hooks: Vec<Call>,
    pub after_hooks: f64,
    pub nri: Vec<Call>,
    pub cri: bool,
    /// Kinds of objects that are recorded; also `Pods` for evictions, and `Events`.
    pub watch: Vec<String>,
    /// Patterns of the files that are recorded; all where there are none.
    pub keep: Option<Vec<String>>,
    /// Patterns of files that are not recorded.
    pub ignore: Vec<String>,
    /// Patterns of files whose order of writes is recorded.
    pub order: Vec<String>,
    /// Patterns of files whose writes are counted.
    pub counts: Vec<String>,
    pub metrics: Option<MetricsWanted>,
    /// Paths that are read over HTTP, by name.
    pub http: BTreeMap<String, String>,
    pub http_body: bool,
    pub kubelet_requests: bool,
    pub record_dirs: bool,
    pub record_stop: bool,
    pub work_files_out: Vec<String>,
    pub work_names_out: Vec<String>,
    /// The time begins with the start, not with the first request for pods.
    pub no_wait: bool,
    /// The original crashed: whatever does not crash is right.
    pub reference_crash: bool,
    /// Why the outcome is taken for a defect of the original.
    pub defect: Option<String>,
    /// JSON pointers that are not compared.
    pub unstable: Vec<String>,
    /// JSON pointers whose numbers are compared within 15 %.
    pub approx: Vec<String>,
    pub strict_writes: bool,
    /// What the original did.
    pub recorded: Value,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            name: String::new(),
            group: String::new(),
            about: String::new(),
            node_name: String::new(),
            feature_gates: String::new(),
            flags: BTreeMap::new(),
            env: BTreeMap::new(),
            seconds: 10.0,
            cgroup: "v1".to_owned(),
            cgroup_driver: "systemd".to_owned(),
            kernel: "anolis".to_owned(),
            machine: "t8".to_owned(),
            extras: Vec::new(),
            files: BTreeMap::new(),
            drop: Vec::new(),
            cgroups: Vec::new(),
            no_cgroup: Vec::new(),
            no_dirs: Vec::new(),
            dirs: Vec::new(),
            sandboxes: true,
            commands: BTreeMap::new(),
            processes: BTreeMap::new(),
            work_files: BTreeMap::new(),
            work_dirs: None,
            pods: Vec::new(),
            cpu: BTreeMap::new(),
            memory: BTreeMap::new(),
            throttle: BTreeMap::new(),
            node: None,
            objects: Vec::new(),
            api_pods: false,
            no_api_pod: Vec::new(),
            kubelet: Map::new(),
            steps: Vec::new(),
            hooks: Vec::new(),
            after_hooks: 0.5,
            nri: Vec::new(),
            cri: false,
            watch: Vec::new(),
            keep: None,
            ignore: Vec::new(),
            order: Vec::new(),
            counts: Vec::new(),
            metrics: None,
            http: BTreeMap::new(),
            http_body: false,
            kubelet_requests: false,
            record_dirs: false,
            record_stop: false,
            work_files_out: Vec::new(),
            work_names_out: Vec::new(),
            no_wait: false,
            reference_crash: false,
            defect: None,
            unstable: Vec::new(),
            approx: Vec::new(),
            strict_writes: false,
            recorded: Value::Null,
        }
    }
}

impl Case {
    /// `group/name`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// Whether the node has the unified hierarchy.
    pub fn is_v2(&self) -> bool {
        self.cgroup == "v2"
    }

    /// All pods that have folders: those of the kubelet, and those that it answers later.
    pub fn all_pods(&self) -> impl Iterator<Item = &Value> {
        self.pods.iter().chain(self.steps.iter().flat_map(|step| &step.cgroup_pods))
    }

    /// The files of resctrl are played.
    pub fn has_resctrl(&self) -> bool {
        self.extras.iter().any(|extra| extra.starts_with("resctrl"))
    }
}

/// A folder with `cases/GROUP/NAME.json` and `fixtures/`.
#[derive(Clone, Debug)]
pub struct Corpus {
    folder: PathBuf,
}

impl Corpus {
    /// The corpus in a folder; `None` where there is no such folder.
    pub fn at(folder: &Path) -> Option<Self> {
        folder.join("cases").is_dir().then(|| Self { folder: folder.to_owned() })
    }

    /// The small corpus of this package.
    pub fn own() -> Self {
        Self { folder: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data")) }
    }

    /// The recordings of the original beside the repository, or in the folder that `KOORD_SHARED` names; `None` where there are none.
    pub fn recorded() -> Option<Self> {
        let shared = std::env::var_os("KOORD_SHARED")
            .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared")), PathBuf::from);
        Self::at(&shared.join("corpus/koordlet"))
    }

    /// The folder of the fixtures.
    pub fn fixtures(&self) -> PathBuf {
        self.folder.join("fixtures")
    }

    /// All cases, sorted by group and name.
    pub fn cases(&self) -> Vec<Case> {
        let folder = self.folder.join("cases");
        let mut files: Vec<PathBuf> = list(&folder).iter().flat_map(|group| list(group)).collect();
        files.sort();
        files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "json")).map(read).collect()
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn read(file: &PathBuf) -> Case {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
