//! What a node agent wants of each file of its node, and what the kernel shows.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The files that an agent decides about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFiles {
    /// The name of the node.
    pub node: String,
    /// When the files were read, by the clock of the node.
    pub time: Timestamp,
    /// Whether the agent writes nothing: then files differ as a rule.
    #[serde(default)]
    pub observe_only: bool,
    /// All pods that the agent knows.
    #[serde(default)]
    pub pods: Vec<NodePod>,
    #[serde(default)]
    pub files: Vec<FileState>,
}

/// A pod with its cgroups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodePod {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// The QoS class: `LS`, `BE`; absent when the pod has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    /// The folder of the cgroup below the root of a hierarchy.
    pub cgroup: String,
    #[serde(default)]
    pub containers: Vec<NodeContainer>,
}

/// A container with its cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeContainer {
    pub name: String,
    /// Absent before the runtime has made the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
}

/// A file, or the line of a disk in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileState {
    /// The path as the agent opens it; absent where this version of cgroups has no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name of the file, with the disk where it has a line for each: `cpu.max`, `blkio.throttle.read_bps_device 8:0`; the whole path of a
    /// file of the system.
    pub file: String,
    /// The folder of the cgroup, empty for the root; absent of a file of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// What all strategies want of it.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
    /// The value that follows; absent when the file may say what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What the kernel shows; absent when it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    pub comparison: Comparison,
    /// Why it is so, of a file that does not agree: what the kernel refused, which program writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What one strategy wants of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Constraint {
    /// The value with its bound: `200000`, `at most 150000`.
    pub wanted: String,
    #[serde(flatten)]
    pub reason: Reason,
}

/// The value of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    pub value: String,
    #[serde(flatten)]
    pub reason: Reason,
    /// The bound of another strategy that has changed the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded_by: Option<Reason>,
}

/// Why a value is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// `CPUSuppress`, `RuntimeHooks`.
    pub strategy: String,
    /// The field of the NodeSLO, the label or the annotation.
    pub setting: String,
    /// The object that has the setting: `NodeSLO/n1`, `Pod/shop/web-0`.
    pub object: String,
    /// The formula with its numbers.
    pub formula: String,
}

/// What the kernel shows beside what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Comparison {
    /// It shows the value, or one within the bounds.
    Agrees,
    /// It shows another.
    Differs,
    /// The file cannot be read.
    Unreadable,
    /// The kernel has no such file.
    Unsupported,
    /// The cgroup is not there: a container that has not started, or has ended.
    Gone,
}

// === impl NodeFiles ===

impl NodeFiles {
    /// The pod of this namespace and name.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<&NodePod> {
        self.pods.iter().find(|pod| pod.namespace == namespace && pod.name == name)
    }

    /// The files of a cgroup, in order.
    pub fn of_cgroup<'a>(&'a self, cgroup: &'a str) -> impl Iterator<Item = &'a FileState> {
        self.files.iter().filter(move |file| file.cgroup.as_deref() == Some(cgroup))
    }
}

// === impl NodePod ===

impl NodePod {
    /// `NAMESPACE/NAME`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The cgroups above, from that of the QoS class up to the root, which is empty.
    pub fn cgroups_above(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(parent(&self.cgroup), |cgroup| parent(cgroup))
    }
}

fn parent(cgroup: &str) -> Option<&str> {
    match cgroup.rsplit_once('/') {
        Some((parent, _)) => Some(parent),
        None => (!cgroup.is_empty()).then_some(""),
    }
}

impl Comparison {
    /// Whether the kernel shows something else than is wanted.
    pub const fn is_wrong(self) -> bool {
        matches!(self, Self::Differs | Self::Unreadable)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Unreadable => "cannot be read",
            Self::Unsupported => "the kernel has no such file",
            Self::Gone => "the cgroup is not there",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroups_above_a_pod_end_at_the_root() {
        let pod = |cgroup: &str| NodePod {
            namespace: "shop".to_owned(),
            name: "web-0".to_owned(),
            uid: "u".to_owned(),
            qos: None,
            cgroup: cgroup.to_owned(),
            containers: Vec::new(),
        };
        let above = |pod: &NodePod| pod.cgroups_above().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(above(&pod("kubepods/besteffort/podu")), ["kubepods/besteffort", "kubepods", ""]);
        assert_eq!(above(&pod("")), [""; 0]);
    }

    #[test]
    fn members_that_a_reader_does_not_know_are_ignored_and_absent_ones_are_empty() {
        let text = r#"{"node":"n1","time":"2026-06-01T00:00:00Z","colour":"red","files":[
            {"file":"cpu.max","cgroup":"kubepods","comparison":"differs","actual":"100000","decision":
             {"value":"200000","strategy":"CPUSuppress","setting":"s","object":"NodeSLO/n1","formula":"f"}}]}"#;
        let files: NodeFiles = serde_json::from_str(text).unwrap();
        assert!(files.pods.is_empty() && !files.observe_only);
        let file = files.of_cgroup("kubepods").next().unwrap();
        assert!(file.comparison.is_wrong() && file.constraints.is_empty());
        assert_eq!(file.decision.as_ref().unwrap().reason.strategy, "CPUSuppress");
        let again: NodeFiles = serde_json::from_str(&serde_json::to_string(&files).unwrap()).unwrap();
        assert_eq!(again, files);
    }
}
