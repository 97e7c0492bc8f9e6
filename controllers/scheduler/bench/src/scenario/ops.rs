//! The operations of a scenario.

use std::collections::BTreeMap;

use koord_configuration::Configuration;
use koord_resource::Duration;
use serde::{Deserialize, Serialize};

/// One operation: exactly one of the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Op {
    /// Creates nodes.
    pub(super) create_nodes: Option<CreateNodes>,
    /// Creates namespaces.
    pub(super) create_namespaces: Option<CreateNamespaces>,
    /// Creates pods, and waits until they have nodes.
    pub(super) create_pods: Option<CreatePods>,
    /// Creates the same pods in several namespaces.
    pub(super) create_pod_sets: Option<CreatePodSets>,
    /// Creates objects of any kind.
    pub(super) create_any: Option<CreateAny>,
    /// Changes objects of any kind.
    pub(super) update_any: Option<UpdateAny>,
    /// Deletes pods.
    pub(super) delete_pods: Option<DeletePods>,
    /// Creates objects all the while, until the end.
    pub(super) churn: Option<Churn>,
    /// Waits for pods that were created before.
    pub(super) barrier: Option<Barrier>,
    /// Does nothing for so long.
    pub(super) sleep: Option<Duration>,
    /// From now on pods that get a node are measured.
    pub(super) start_collecting_metrics: Option<Selection>,
    /// Until now pods that got a node were measured.
    pub(super) stop_collecting_metrics: Option<BTreeMap<String, String>>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    CreateNodes(CreateNodes),
    CreateNamespaces(CreateNamespaces),
    CreatePods(CreatePods),
    CreatePodSets(CreatePodSets),
    CreateAny(CreateAny),
    UpdateAny(UpdateAny),
    DeletePods(DeletePods),
    Churn(Churn),
    Barrier(Barrier),
    Sleep(Duration),
    StartCollectingMetrics(Selection),
    StopCollectingMetrics,
}

impl Op {
    /// What is set of it.
    pub(super) fn set(&self) -> Vec<Step> {
        let Self {
            create_nodes,
            create_namespaces,
            create_pods,
            create_pod_sets,
            create_any,
            update_any,
            delete_pods,
            churn,
            barrier,
            sleep,
            start_collecting_metrics,
            stop_collecting_metrics,
        } = self.clone();
        let all = [
            create_nodes.map(Step::CreateNodes),
            create_namespaces.map(Step::CreateNamespaces),
            create_pods.map(Step::CreatePods),
            create_pod_sets.map(Step::CreatePodSets),
            create_any.map(Step::CreateAny),
            update_any.map(Step::UpdateAny),
            delete_pods.map(Step::DeletePods),
            churn.map(Step::Churn),
            barrier.map(Step::Barrier),
            sleep.map(Step::Sleep),
            start_collecting_metrics.map(Step::StartCollectingMetrics),
            stop_collecting_metrics.map(|_| Step::StopCollectingMetrics),
        ];
        all.into_iter().flatten().collect()
    }

    /// The operation.
    pub(super) fn step(&self) -> Option<Step> {
        self.set().pop()
    }
}

/// Creates nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CreateNodes {
    /// How many.
    #[koord(minimum = 1, maximum = 100_000)]
    pub(crate) count: u32,
    /// What they are made after.
    #[koord(default = "node")]
    pub(crate) template: String,
    /// Labels, whose values the nodes have in turn.
    pub(crate) labels: BTreeMap<String, Vec<String>>,
}

/// Creates namespaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CreateNamespaces {
    /// Their names are this, a `-` and a number from 0.
    pub(crate) prefix: String,
    /// How many.
    #[koord(minimum = 1, maximum = 10_000)]
    pub(crate) count: u32,
    /// Their labels.
    pub(crate) labels: BTreeMap<String, String>,
}

/// Creates pods, and waits until they have nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CreatePods {
    /// How many.
    #[koord(minimum = 1, maximum = 1_000_000)]
    pub(crate) count: u32,
    /// What they are made after.
    #[koord(default = "pod")]
    pub(crate) template: String,
    /// Their namespace; without it that of the scenario.
    pub(crate) namespace: Option<String>,
    /// Whether they are measured.
    pub(crate) collect_metrics: bool,
    /// Whether what follows begins at once.
    pub(crate) skip_wait_to_completion: bool,
    /// The PersistentVolume that each gets, bound to a claim of its own.
    pub(crate) volume: Option<String>,
    /// The claim that each gets with it.
    pub(crate) claim: Option<String>,
    /// They form gangs of so many.
    #[koord(minimum = 1, maximum = 10_000)]
    pub(crate) gang_size: Option<u32>,
    /// So many pods of a gang are placed together; gangSize where it is not set.
    #[koord(minimum = 1, maximum = 10_000)]
    pub(crate) min_member: Option<u32>,
}

/// Creates the same pods in several namespaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CreatePodSets {
    /// In how many namespaces.
    #[koord(minimum = 1, maximum = 10_000)]
    pub(crate) count: u32,
    /// The namespaces are this, a `-` and a number from 0.
    pub(crate) namespace_prefix: String,
    /// The pods of each.
    pub(crate) create_pods: CreatePods,
}

/// Creates objects of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CreateAny {
    /// What they are made after.
    pub(crate) template: String,
    /// How many.
    #[koord(default = 1, minimum = 1, maximum = 100_000)]
    pub(crate) count: u32,
    /// Their namespace, where their kind has some.
    pub(crate) namespace: Option<String>,
}

/// Changes objects of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct UpdateAny {
    /// What is changed of them, with their names.
    pub(crate) template: String,
    /// How many.
    #[koord(default = 1, minimum = 1, maximum = 100_000)]
    pub(crate) count: u32,
    /// Their namespace, where their kind has some.
    pub(crate) namespace: Option<String>,
    /// How many a second. Without it as fast as it goes.
    #[koord(minimum = 1, maximum = 100_000)]
    pub(crate) update_per_second: Option<u32>,
    /// The part of the object that is changed, such as status.
    pub(crate) subresource: Option<String>,
}

/// Deletes pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct DeletePods {
    /// Their namespace; without it that of the scenario.
    pub(crate) namespace: Option<String>,
    /// Labels that they have.
    pub(crate) label_selector: BTreeMap<String, String>,
    /// How many a second. Without it as fast as it goes.
    #[koord(minimum = 1, maximum = 100_000)]
    #[serde(rename = "deletePodsPerSecond")]
    pub(crate) per_second: Option<u32>,
    /// Whether what follows begins at once.
    pub(crate) skip_wait_to_completion: bool,
}

/// Creates objects all the while, until the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Churn {
    /// Whether they stay.
    pub(crate) mode: ChurnMode,
    /// What they are made after.
    pub(crate) templates: Vec<String>,
    /// The namespace of those that have some; without it that of the scenario.
    pub(crate) namespace: Option<String>,
    /// How often.
    #[koord(default = "500ms")]
    pub(crate) interval: Duration,
    /// With create: how often at most; with recreate: how many there are at once. Without it without an end, or 1.
    #[koord(minimum = 1, maximum = 100_000)]
    pub(crate) number: Option<u32>,
}

/// Whether what a churn creates stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ChurnMode {
    /// It stays.
    #[default]
    Create,
    /// It is deleted at the next time, and created anew.
    Recreate,
}

/// Waits for pods that were created before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Barrier {
    /// Until what has come of them.
    pub(crate) stage_requirement: Stage,
    /// Their namespaces. Without it all.
    pub(crate) namespaces: Vec<String>,
    /// Labels that they have.
    pub(crate) label_selector: BTreeMap<String, String>,
}

/// What has come of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub(crate) enum Stage {
    /// They have their nodes.
    #[default]
    Scheduled,
    /// Something was said of each: a node, a refusal, or a gate.
    Attempted,
}

/// Which pods are meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Selection {
    /// Their namespaces. Without it all.
    pub(crate) namespaces: Vec<String>,
    /// Labels that they have.
    pub(crate) label_selector: BTreeMap<String, String>,
}
