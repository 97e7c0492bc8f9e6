//! Arguments of DefaultEvictor.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_configuration::{Configuration, Problems};
use koord_resource::Duration;
use serde::{Deserialize, Serialize};

use super::{
    migration_controller::PriorityThreshold,
    shared::{check_selector, check_selector_text},
};
use crate::Args;

/// Pods of this priority and above are critical for the system.
const SYSTEM_CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// Arguments of DefaultEvictor, which evicts pods by the Eviction API and decides which it may evict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(check = Self::check)]
pub struct DefaultEvictorArgs {
    /// The nodes that count where a pod has to fit another one: a selector such as `pool=a,!spot`.
    pub node_selector: String,
    /// The pods that may be evicted.
    #[koord(opaque)]
    pub label_selector: Option<LabelSelector>,
    /// The namespaces whose pods may be evicted, by their labels.
    #[koord(opaque)]
    pub namespace_label_selector: Option<LabelSelector>,
    /// Pods of this priority and above stay.
    pub priority_threshold: Option<PriorityThreshold>,
    /// Whether a pod is only evicted when it fits another node.
    pub node_fit: bool,
    /// Whether pods with local storage are evicted. Where podProtections has an entry, it alone says which pods are protected.
    pub evict_local_storage_pods: bool,
    /// Whether pods of DaemonSets are evicted.
    pub evict_daemon_set_pods: bool,
    /// Whether critical pods, and those of the threshold, are evicted.
    pub evict_system_critical_pods: bool,
    /// Whether failed pods without an owner are evicted.
    pub evict_failed_bare_pods: bool,
    /// Whether pods with a PersistentVolumeClaim stay.
    pub ignore_pvc_pods: bool,
    /// Whether pods without a PodDisruptionBudget stay.
    #[serde(rename = "ignorePodsWithoutPDB")]
    pub ignore_pods_without_pdb: bool,
    /// The least number of pods that an owner has, so that one is evicted. 0 and 1 are no condition.
    pub min_replicas: u32,
    /// How long a pod runs before it is evicted.
    pub min_pod_age: Option<Duration>,
    /// What the annotation `descheduler.alpha.kubernetes.io/prefer-no-eviction` of a pod does.
    pub no_eviction_policy: NoEvictionPolicy,
    /// Which pods are protected.
    pub pod_protections: PodProtections,
}

/// What an annotation that asks for no eviction does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum NoEvictionPolicy {
    /// The pod is evicted after others.
    #[default]
    Preferred,
    /// The pod is not evicted.
    Mandatory,
}

/// Which pods are protected from eviction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodProtections {
    /// Protections that hold by default, and do not here.
    pub default_disabled: Vec<DefaultProtection>,
    /// Further protections.
    pub extra_enabled: Vec<ExtraProtection>,
    /// Settings of the protections.
    pub config: ProtectionSettings,
}

/// A protection that holds by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum DefaultProtection {
    /// Pods with local storage.
    PodsWithLocalStorage,
    /// Critical pods.
    SystemCriticalPods,
    /// Pods without an owner, failed or not.
    FailedBarePods,
    /// Pods of DaemonSets.
    DaemonSetPods,
}

/// A protection that has to be enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
pub enum ExtraProtection {
    /// Pods with a PersistentVolumeClaim.
    #[serde(rename = "PodsWithPVC")]
    PodsWithPvc,
    /// Pods that no PodDisruptionBudget selects.
    #[serde(rename = "PodsWithoutPDB")]
    PodsWithoutPdb,
    /// Pods with resource claims.
    PodsWithResourceClaims,
}

/// Settings of protections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct ProtectionSettings {
    /// Which pods with a PersistentVolumeClaim are protected.
    #[serde(rename = "PodsWithPVC")]
    pub pods_with_pvc: PvcProtection,
}

/// Which pods with a PersistentVolumeClaim are protected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PvcProtection {
    /// Those with a claim of one of these StorageClasses; without any, all of them.
    pub protected_storage_classes: Vec<ProtectedStorageClass>,
}

/// A StorageClass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(deny_unknown_fields, default)]
pub struct ProtectedStorageClass {
    /// Its name.
    pub name: String,
}

impl Args for DefaultEvictorArgs {
    const PLUGIN: &'static str = "DefaultEvictor";
    const IS_LENIENT: bool = true;
}

impl DefaultEvictorArgs {
    fn check(&self, problems: &mut Problems) {
        check_selector_text(&self.node_selector, &["nodeSelector"], problems);
        check_selector(self.label_selector.as_ref(), &["labelSelector"], problems);
        check_selector(self.namespace_label_selector.as_ref(), &["namespaceLabelSelector"], problems);
        let threshold = self.priority_threshold.as_ref().and_then(|threshold| threshold.value);
        if threshold.is_some_and(|value| value > SYSTEM_CRITICAL_PRIORITY) {
            let problem = format!("must not exceed {SYSTEM_CRITICAL_PRIORITY}, the priority of critical pods");
            problems.add(&["priorityThreshold", "value"], problem);
        }
    }
}
