//! Applications that run outside pods.

use koord_resource::Schema;
use serde::{Deserialize, Serialize};

use crate::{
    qos::QosClass,
    word::{self, words},
};

/// An application outside pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
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
    /// Where its processes are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_path: Option<CgroupPath>,
    /// How it is treated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<HostApplicationStrategy>,
}

/// Where processes are, in the hierarchy of cgroups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CgroupPath {
    /// Where `parentDir` begins: `CgroupRoot`, `Kubepods`, `KubepodsBurstable` or `KubepodsBesteffort`.
    #[serde(default, skip_serializing_if = "word::is_unset")]
    pub base: Option<CgroupBase>,
    /// Directory below the base.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parent_dir: String,
    /// Directory below `parentDir`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub relative_path: String,
}

words! {
    /// Where a path of cgroups begins.
    pub open enum CgroupBase {
        /// At the root.
        CgroupRoot = "CgroupRoot",
        /// Where all pods are.
        Kubepods = "Kubepods",
        /// Where burstable pods are.
        KubepodsBurstable = "KubepodsBurstable",
        /// Where best-effort pods are.
        KubepodsBesteffort = "KubepodsBesteffort",
    }
}

/// How an application outside pods is treated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct HostApplicationStrategy {}
