//! Arguments of the strategies of kubernetes-sigs/descheduler 0.35, checked as that program checks them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{Configuration, Problems};
use serde::{Deserialize, Serialize};

use super::{
    metrics::MetricsUtilization,
    shared::{Namespaces, Thresholds, check_one_list, check_selector},
};
use crate::Args;

/// Arguments of LowNodeUtilization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct LowNodeUtilizationArgs {
    /// Below all of these a node is underutilized, in percent of what it can give to pods.
    pub thresholds: Thresholds,
    /// Above one of these a node is overutilized, in percent; the same resources.
    pub target_thresholds: Thresholds,
    /// Whether both are distances from the average.
    pub use_deviation_thresholds: bool,
    /// Nothing is evicted unless more nodes than this are underutilized.
    #[koord(minimum = 0)]
    pub number_of_nodes: i32,
    /// Namespaces whose pods stay.
    pub evictable_namespaces: Option<Namespaces>,
    /// Limits of one pass.
    pub eviction_limits: EvictionLimits,
    /// Where utilization is measured. Without it, what pods request counts.
    pub metrics_utilization: Option<MetricsUtilization>,
}

/// Limits of one pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct EvictionLimits {
    /// The most pods that are evicted from one node.
    pub node: Option<u32>,
}

/// Arguments of HighNodeUtilization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct HighNodeUtilizationArgs {
    /// At or below all of these a node is to be emptied, in percent of what it can give to pods.
    pub thresholds: Thresholds,
    /// Nothing is evicted unless more nodes than this are to be emptied.
    #[koord(minimum = 0)]
    pub number_of_nodes: i32,
    /// Namespaces whose pods stay.
    pub evictable_namespaces: Option<Namespaces>,
    /// Which pods are evicted.
    pub eviction_modes: Vec<HighNodeEvictionMode>,
}

/// Which pods leave nodes that are to be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum HighNodeEvictionMode {
    /// Those that request a resource that has a threshold.
    OnlyThresholdingResources,
}

/// Arguments of RemoveDuplicates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RemoveDuplicatesArgs {
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// Kinds of owners whose pods stay.
    pub exclude_owner_kinds: Vec<String>,
}

/// Arguments of RemovePodsViolatingInterPodAntiAffinity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct RemovePodsViolatingInterPodAntiAffinityArgs {
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// The pods that are looked at.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
}

/// Arguments of RemovePodsViolatingNodeAffinity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct RemovePodsViolatingNodeAffinityArgs {
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// The pods that are looked at.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// The affinities that count: `requiredDuringSchedulingIgnoredDuringExecution`, `preferredDuringSchedulingIgnoredDuringExecution`.
    pub node_affinity_type: Vec<String>,
}

/// Arguments of RemovePodsViolatingNodeTaints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct RemovePodsViolatingNodeTaintsArgs {
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// The pods that are looked at.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// Whether taints with the effect PreferNoSchedule count too.
    pub include_prefer_no_schedule: bool,
    /// Taints that do not count, as `key` or `key=value`.
    pub excluded_taints: Vec<String>,
    /// The only taints that count; none for all of them.
    pub included_taints: Option<Vec<String>>,
}

/// Arguments of RemovePodsViolatingTopologySpreadConstraint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(complete = Self::complete, check = Self::check)]
pub struct RemovePodsViolatingTopologySpreadConstraintArgs {
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// The pods that are looked at.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// The constraints that count; none where the list is empty.
    #[koord(default = ["DoNotSchedule"])]
    pub constraints: Vec<SpreadConstraint>,
    /// Whether a pod is only evicted when it fits a node of a domain that has too few.
    #[koord(default = true)]
    pub topology_balance_node_fit: bool,
    /// What version 0.27 and older called the constraint ScheduleAnyway, which is added to `constraints`.
    pub include_soft_constraints: bool,
}

/// What a constraint does where it cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum SpreadConstraint {
    /// Pods wait.
    DoNotSchedule,
    /// Pods are scheduled all the same.
    ScheduleAnyway,
}

/// Arguments of RemovePodsHavingTooManyRestarts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct RemovePodsHavingTooManyRestartsArgs {
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// The pods that are looked at.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// From this number of restarts of all containers on a pod is evicted.
    pub pod_restart_threshold: i32,
    /// Whether init containers count too.
    pub including_init_containers: bool,
    /// Only pods in one of these states: Running, CrashLoopBackOff.
    pub states: Vec<String>,
}

/// Arguments of PodLifeTime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct PodLifeTimeArgs {
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// The pods that are looked at.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// Only pods that are older.
    pub max_pod_life_time_seconds: Option<u64>,
    /// Only pods in one of these states: phases, and reasons of pods and containers.
    pub states: Vec<String>,
    /// Whether init containers count too.
    pub including_init_containers: bool,
    /// Whether ephemeral containers count too.
    pub including_ephemeral_containers: bool,
    /// Only pods whose owners have such kinds.
    pub owner_kinds: Option<OwnerKinds>,
    /// Only pods with one of these conditions.
    pub conditions: Vec<ConditionFilter>,
    /// Only pods with a container that has ended with one of these codes.
    pub exit_codes: Vec<i32>,
}

/// Kinds of owners: those that are named, or all but those.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct OwnerKinds {
    /// Only these.
    pub include: Vec<String>,
    /// All but these.
    pub exclude: Vec<String>,
}

/// A condition of a pod. What is not set is not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ConditionFilter {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// Its status.
    pub status: String,
    /// Its reason.
    pub reason: String,
    /// How long ago it changed, at least.
    pub min_time_since_last_transition_seconds: Option<u64>,
}

/// Arguments of RemoveFailedPods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct RemoveFailedPodsArgs {
    /// Namespaces whose pods are looked at.
    pub namespaces: Option<Namespaces>,
    /// The pods that are looked at.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// Kinds of owners whose pods stay.
    pub exclude_owner_kinds: Vec<String>,
    /// Only pods that are as old.
    #[koord(default = 3600)]
    pub min_pod_lifetime_seconds: u64,
    /// Only pods that failed, or have a container that waits or has ended, for one of these reasons.
    pub reasons: Vec<String>,
    /// Whether init containers count too.
    pub including_init_containers: bool,
    /// Only pods with a container that has ended with one of these codes.
    pub exit_codes: Vec<i32>,
}

macro_rules! lenient {
    ($($args:ident $plugin:literal)*) => { $(
        impl Args for $args {
            const PLUGIN: &'static str = $plugin;
            const IS_LENIENT: bool = true;
        }
    )* };
}

lenient! {
    LowNodeUtilizationArgs "LowNodeUtilization"
    HighNodeUtilizationArgs "HighNodeUtilization"
    RemoveDuplicatesArgs "RemoveDuplicates"
    RemovePodsViolatingInterPodAntiAffinityArgs "RemovePodsViolatingInterPodAntiAffinity"
    RemovePodsViolatingNodeAffinityArgs "RemovePodsViolatingNodeAffinity"
    RemovePodsViolatingNodeTaintsArgs "RemovePodsViolatingNodeTaints"
    RemovePodsViolatingTopologySpreadConstraintArgs "RemovePodsViolatingTopologySpreadConstraint"
    RemovePodsHavingTooManyRestartsArgs "RemovePodsHavingTooManyRestarts"
    PodLifeTimeArgs "PodLifeTime"
    RemoveFailedPodsArgs "RemoveFailedPods"
}

/// What the metrics server measures of a node; pods are counted.
const MEASURED: [&str; 3] = ["cpu", "memory", "pods"];
/// The name of what a query of Prometheus measures.
const MEASURED_BY_QUERY: &str = "MetricResource";

impl LowNodeUtilizationArgs {
    fn check(&self, problems: &mut Problems) {
        check_thresholds("thresholds", &self.thresholds, problems);
        check_thresholds("targetThresholds", &self.target_thresholds, problems);
        let names = |thresholds: &Thresholds| thresholds.keys().cloned().collect::<Vec<_>>();
        if names(&self.thresholds) != names(&self.target_thresholds) {
            problems.add(&["targetThresholds"], "must name the resources of thresholds");
        }
        for (name, low) in &self.thresholds {
            let is_above = self.target_thresholds.get(name).is_some_and(|high| low > high);
            if is_above && !self.use_deviation_thresholds {
                problems.add(&["thresholds", name], "must not exceed targetThresholds");
            }
        }
        check_evictable(self.evictable_namespaces.as_ref(), problems);
        if let Some(metrics) = &self.metrics_utilization {
            self.check_measured(metrics, problems);
        }
    }

    /// Thresholds are about what is measured.
    fn check_measured(&self, metrics: &MetricsUtilization, problems: &mut Problems) {
        if metrics.is_prometheus() {
            if self.thresholds.len() != 1 || !self.thresholds.contains_key(MEASURED_BY_QUERY) {
                let message = format!("must have {MEASURED_BY_QUERY} alone where Prometheus measures");
                problems.add(&["thresholds"], message);
            }
            return;
        }
        for name in self.thresholds.keys().filter(|name| !MEASURED.contains(&name.as_str())) {
            let remedy = format!("the metrics server measures {}", MEASURED.join(", "));
            problems.suggest(&["thresholds", name], "is not measured", Some(remedy));
        }
    }
}

impl HighNodeUtilizationArgs {
    fn check(&self, problems: &mut Problems) {
        check_thresholds("thresholds", &self.thresholds, problems);
        check_evictable(self.evictable_namespaces.as_ref(), problems);
    }
}

fn check_thresholds(key: &str, thresholds: &Thresholds, problems: &mut Problems) {
    if thresholds.is_empty() {
        problems.add(&[key], "must be set");
    }
    for (name, _) in thresholds.iter().filter(|(_, percent)| !(0.0..=100.0).contains(*percent)) {
        problems.add(&[key, name], "must be from 0 to 100");
    }
}

/// Nodes are balanced whatever the namespaces of their pods: these can be kept, and not chosen.
fn check_evictable(namespaces: Option<&Namespaces>, problems: &mut Problems) {
    if namespaces.is_some_and(|namespaces| !namespaces.include.is_empty()) {
        problems.add(&["evictableNamespaces", "include"], "cannot be set: name the others in exclude");
    }
}

fn check_words(key: &str, texts: &[String], known: &[&str], problems: &mut Problems) {
    for (index, text) in texts.iter().enumerate().filter(|(_, text)| !known.contains(&text.as_str())) {
        let suggestion = koord_configuration::nearest(text, known.iter().copied());
        problems.suggest(&[key, &index.to_string()], format!("{text:?} is none of {}", known.join(", ")), suggestion);
    }
}

impl RemovePodsViolatingInterPodAntiAffinityArgs {
    fn check(&self, problems: &mut Problems) {
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
    }
}

impl RemovePodsViolatingNodeAffinityArgs {
    fn check(&self, problems: &mut Problems) {
        const KNOWN: [&str; 2] =
            ["requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"];
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
        if self.node_affinity_type.is_empty() {
            let suggestion = Some(KNOWN.join(" or "));
            problems.suggest(&["nodeAffinityType"], "must be set", suggestion);
        }
    }
}

impl RemovePodsViolatingNodeTaintsArgs {
    fn check(&self, problems: &mut Problems) {
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
        let includes = self.included_taints.as_ref().is_some_and(|taints| !taints.is_empty());
        if includes && !self.excluded_taints.is_empty() {
            problems.add(&["includedTaints"], "cannot be set together with excludedTaints");
        }
    }
}

impl RemovePodsViolatingTopologySpreadConstraintArgs {
    fn complete(&mut self) {
        if self.include_soft_constraints && !self.constraints.contains(&SpreadConstraint::ScheduleAnyway) {
            self.constraints.push(SpreadConstraint::ScheduleAnyway);
        }
    }

    fn check(&self, problems: &mut Problems) {
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
    }
}

impl RemovePodsHavingTooManyRestartsArgs {
    fn check(&self, problems: &mut Problems) {
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
        if self.pod_restart_threshold < 1 {
            problems.add(&["podRestartThreshold"], "must be 1 or greater");
        }
        check_words("states", &self.states, &["Running", "CrashLoopBackOff"], problems);
    }
}

impl PodLifeTimeArgs {
    /// Phases, reasons of pods, and reasons for which containers wait and end.
    const STATES: [&str; 24] = [
        "Running",
        "Pending",
        "Succeeded",
        "Failed",
        "Unknown",
        "NodeAffinity",
        "NodeLost",
        "Shutdown",
        "UnexpectedAdmissionError",
        "PodInitializing",
        "ContainerCreating",
        "ImagePullBackOff",
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "ErrImagePull",
        "CreateContainerError",
        "InvalidImageName",
        "OOMKilled",
        "Error",
        "Completed",
        "DeadlineExceeded",
        "Evicted",
        "ContainerCannotRun",
        "StartError",
    ];

    fn check(&self, problems: &mut Problems) {
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
        let is_unfiltered = self.max_pod_life_time_seconds.is_none() && self.states.is_empty();
        if is_unfiltered && self.conditions.is_empty() && self.exit_codes.is_empty() {
            problems.add(
                &["maxPodLifeTimeSeconds"],
                "must be set, or one of states, conditions and exitCodes: every pod would be evicted",
            );
        }
        check_words("states", &self.states, &Self::STATES, problems);
        let nothing = ConditionFilter::default();
        for (index, _) in self.conditions.iter().enumerate().filter(|(_, condition)| **condition == nothing) {
            problems.add(&["conditions", &index.to_string()], "must name something of the condition");
        }
    }
}

impl OwnerKinds {
    fn check(&self, problems: &mut Problems) {
        check_one_list(&self.include, &self.exclude, problems);
    }
}

impl RemoveFailedPodsArgs {
    fn check(&self, problems: &mut Problems) {
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
    }
}
