//! Which features of a node agent work, and how old its inputs are.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A node agent: its features and its inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// The name of the node.
    pub node: String,
    /// The time of this document, by the clock of the node.
    pub time: Timestamp,
    pub started: Timestamp,
    /// The version of the agent.
    pub version: String,
    /// `v1` or `v2`.
    pub cgroup_version: String,
    /// `systemd` or `cgroupfs`.
    pub cgroup_driver: String,
    /// Whether the agent writes nothing and evicts no pod.
    #[serde(default)]
    pub observe_only: bool,
    /// The pods that the agent knows.
    #[serde(default)]
    pub pods: usize,
    #[serde(default)]
    pub capabilities: Vec<Capability>,
    #[serde(default)]
    pub inputs: Vec<Input>,
}

/// A feature of the agent on this node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    pub feature: String,
    pub state: CapabilityState,
    /// What is missing, of a degraded feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What makes it work, of a degraded feature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Whether a feature works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CapabilityState {
    Active,
    /// A gate, a flag or the NodeSLO turns it off.
    Off,
    /// It does not work, or only in part.
    Degraded,
}

/// Something that decisions of the agent follow from, or that others decide by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// `kubelet pods`, `NodeSLO`.
    pub name: String,
    /// What happened last: `answered`, `changed`, `taken`, `written`.
    pub event: String,
    /// How long ago that was; absent when it never happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<f64>,
}

impl fmt::Display for CapabilityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Off => "off",
            Self::Degraded => "degraded",
        })
    }
}
