//! How an agent runs: what its flags say.

mod delivery;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use koord_koordlet_hooks::Options;
use koord_koordlet_system::{Roots, Version};

pub use self::delivery::{DeliverySettings, NriSettings, PodResourcesSettings};
use crate::{audit::AuditSettings, node_readers::NodeReaders};

/// How an agent runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node that the agent runs on.
    pub node_name: String,
    pub roots: Roots,
    /// The version of the files below the root of cgroups. `None` for what is mounted there says.
    pub cgroup_version: Option<Version>,
    /// The features that are on.
    pub features: Features,
    pub intervals: Intervals,
    /// Whether memory with the page cache is sampled, too.
    pub samples_page_cache: bool,
    /// Whether caches and bandwidth of resctrl groups are sampled.
    pub samples_resctrl: bool,
    pub kubelet: KubeletSettings,
    /// Whether nothing is written into the files of the node, and no pod is evicted.
    pub only_observes: bool,
    /// Whether NodeMetrics are reported.
    pub reports_node_metric: bool,
    pub prediction: PredictionSettings,
    pub eviction: EvictionSettings,
    /// What flags and gates say for runtime hooks.
    pub hooks: Options,
    /// Whether audit events are served.
    pub serves_audit: bool,
    /// Who may read the state of the agent.
    pub state_readers: NodeReaders,
    /// How events are audited; `None` for not at all.
    pub audit: Option<AuditSettings>,
    /// How hooks are delivered, and what else of the node is connected.
    pub delivery: DeliverySettings,
    /// Whether GPUs of NVIDIA are looked for.
    pub reads_nvidia_gpus: bool,
    /// Where device files of vendors are.
    pub xpu_device_infos: PathBuf,
}

/// Features by the names of their gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features(BTreeSet<&'static str>);

/// How often things are done.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// Counters of the node and its pods are read.
    pub collect: Duration,
    /// Samples older than this are not combined with others.
    pub outdated: Duration,
    pub node_info: Duration,
    pub pressure: Duration,
    pub cpi: Duration,
    pub cpi_window: Duration,
    pub cold_pages: Duration,
    pub resctrl: Duration,
    /// Strategies that only follow objects.
    pub reconcile: Duration,
    pub cpu_suppress: Duration,
    pub cpu_evict: Duration,
    pub memory_evict: Duration,
    /// Hooks are applied to pods that run.
    pub hooks: Duration,
    /// Files are compared with what they shall say.
    pub verify: Duration,
    /// The NodeResourceTopology is computed; `None` for never.
    pub topology: Option<Duration>,
}

/// How the kubelet is asked.
#[derive(Clone, Debug)]
pub struct KubeletSettings {
    /// How often its pods are read; `None` for never.
    pub sync: Option<Duration>,
    pub timeout: Duration,
    /// Plain HTTP at the read-only port, without credentials.
    pub is_insecure: bool,
    pub read_only_port: u16,
    /// The type of the node's address at which it is asked.
    pub address_type: String,
    /// Whether its configuration is asked for.
    pub asks_configuration: bool,
}

/// How peaks are predicted.
#[derive(Clone, Debug)]
pub struct PredictionSettings {
    pub checkpoints: PathBuf,
    /// Pods younger than this are taken to use what they request.
    pub cold_start: Duration,
    /// What is added to a predicted peak.
    pub safety_margin_percent: i64,
    pub memory_half_life: Duration,
    pub cpu_half_life: Duration,
    pub training: Duration,
    pub expiration: Duration,
    pub checkpoint_interval: Duration,
    pub checkpoints_per_step: usize,
}

/// How pods are evicted.
#[derive(Clone, Copy, Debug)]
pub struct EvictionSettings {
    pub cpu_cool_time: Duration,
    pub memory_cool_time: Duration,
    /// Pods are evicted through the API server, and their containers are never stopped directly.
    pub only_by_api: bool,
}

impl Features {
    pub fn new(on: impl IntoIterator<Item = &'static str>) -> Self {
        Self(on.into_iter().collect())
    }

    /// Whether the feature of this gate is on.
    pub fn has(&self, gate: &str) -> bool {
        self.0.contains(gate)
    }
}
