//! Applications that run outside of pods.

use koord_resource::{Mutate, Schema, Validate};
use serde::{Deserialize, Serialize};

use crate::{
    qos::QosClass,
    word::{self, words},
};

/// An application that runs outside of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct HostApplicationSpec {
    /// Name of the application.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Priority class of the application: `koord-prod`, `koord-mid`, `koord-batch` or `koord-free`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub priority: String,
    /// QoS class of the application: `LSE`, `LSR`, `LS`, `BE` or `SYSTEM`.
    #[koord(schemaless, type = "string")]
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub qos: Option<QosClass>,
    /// The cgroup of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_path: Option<CgroupPath>,
    /// The QoS strategy of the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<HostApplicationStrategy>,
}

/// The path of a cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate, Mutate)]
#[serde(rename_all = "camelCase")]
pub struct CgroupPath {
    /// The directory that contains `parentDir`: `CgroupRoot`, `Kubepods`, `KubepodsBurstable` or `KubepodsBesteffort`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub base: Option<CgroupBase>,
    /// Directory in the base.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent_dir: String,
    /// Directory in `parentDir`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub relative_path: String,
}

words! {
    /// The base directory of a cgroup's path.
    pub open enum CgroupBase {
        /// The root cgroup.
        CgroupRoot = "CgroupRoot",
        /// The cgroup of all pods.
        Kubepods = "Kubepods",
        /// The cgroup of Burstable pods.
        KubepodsBurstable = "KubepodsBurstable",
        /// The cgroup of BestEffort pods.
        KubepodsBesteffort = "KubepodsBesteffort",
    }
}

/// The QoS strategy of an application that runs outside of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate, Mutate)]
pub struct HostApplicationStrategy {}
