//! Requests of container runtimes, and the answers to them.

use std::{collections::BTreeMap, path::PathBuf};

use koord_koordlet_framework::Constraints;
use koord_types::protocol::Labels;

use crate::{hook::Hook, refused::Refused, resctrl_group::ResctrlGroup};

/// A pod as a container runtime knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimePod {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub labels: Labels,
    pub annotations: Labels,
    /// The folder of its cgroup; empty when the runtime does not say.
    pub cgroup_parent: String,
}

/// A container as a container runtime knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeContainer {
    pub name: String,
    pub id: String,
    /// The quota that the runtime is about to set, in microseconds of each period: of an update the requested one, else that of the container. 0 when it is
    /// not known, below 0 for none.
    pub cpu_quota: i64,
}

/// What hooks change of a container or sandbox; `None` and empty fields stay as the runtime has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adjustment {
    /// A list of CPUs such as `1,5,2-3`.
    pub cpuset_cpus: Option<String>,
    pub cpu_shares: Option<i64>,
    /// Microseconds of each period; −1 for no quota.
    pub cpu_quota: Option<i64>,
    /// Bytes; −1 for no limit.
    pub memory_limit: Option<i64>,
    /// The resctrl group of the container. It must exist before the container is made.
    pub rdt_class: Option<String>,
    pub envs: BTreeMap<String, String>,
    pub mounts: Vec<Mount>,
    pub devices: Vec<Device>,
}

/// A folder or file of the node in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub source: String,
    pub destination: String,
    /// `bind`.
    pub kind: &'static str,
    pub options: &'static [&'static str],
}

/// A device of the node in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub path: String,
    /// `c`: a character device.
    pub kind: &'static str,
    pub major: u32,
    pub minor: u32,
    pub file_mode: u32,
}

/// The answer to a call of a hook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// What the runtime is to change.
    pub adjustment: Adjustment,
    /// Files of the pod's cgroup, which no runtime writes.
    pub constraints: Constraints,
    /// What is done before the answer is given.
    pub effects: Vec<Effect>,
    /// Settings that are not used.
    pub refused: Vec<Refused>,
    /// The hooks that ran, and whether each succeeded.
    pub ran: Vec<(Hook, bool)>,
    /// The first hook that failed, when hooks that fail are errors. Later hooks did not run.
    pub error: Option<HookError>,
}

/// What is done on the node besides writing files of cgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The resctrl group exists.
    EnsureGroup(Box<ResctrlGroup>),
    /// The resctrl group of this name is removed at once: the sandbox of its pod is removed.
    RemoveGroup(String),
    /// Removes a folder with all that is in it, and makes it anew for everyone (mode 0777).
    RecreateFolder(PathBuf),
}

/// A hook that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hook {}: {refused}", hook.name())]
pub struct HookError {
    pub hook: Hook,
    pub refused: Refused,
}

impl Adjustment {
    /// Whether nothing is changed: no update is sent then.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
