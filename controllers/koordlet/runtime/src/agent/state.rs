//! What the agent shows of itself: its features, its inputs, and what it wants of the files of the node.

use koord_core::clock::Moment;
use koord_koordlet_framework::{Bound, Pod, Reason, Target};
use koord_koordlet_resolver::{File, MountedFiles, NodeFiles as _, State as ResolverState, Wanted, decide};
use koord_koordlet_state::{
    Capability, CapabilityState, Comparison, Constraint, Decision, FileState, Input, NodeContainer, NodeFiles, NodePod,
    NodeStatus, Reason as ShownReason,
};
use koord_koordlet_system::{CgroupPath, Cgroups, Driver, Layout, ObservingWriter, ReadError, Version};

use super::{Agent, Now};
use crate::capability::State;

/// What is wanted of files, apart from the agent: its files are read without it.
pub struct WantedFiles {
    pods: Vec<NodePod>,
    files: Vec<(Target, File)>,
    objects: Objects,
    observe_only: bool,
    cgroups: Cgroups,
    now: Now,
}

/// The objects that settings belong to.
struct Objects {
    node: String,
    /// Pods with their cgroups, as `NAMESPACE/NAME`.
    pods: Vec<(CgroupPath, String)>,
}

impl Agent {
    /// The features of the agent and the age of its inputs.
    pub fn status(&self, version: &str, now: Now) -> NodeStatus {
        let layout = self.host.layout;
        let age = |name: &str, event: &str, at: Option<Moment>| Input {
            name: name.to_owned(),
            event: event.to_owned(),
            age_seconds: at.map(|at| now.moment.since(at).as_secs_f64()),
        };
        NodeStatus {
            node: self.settings.node_name.clone(),
            time: now.time,
            started: self.started,
            version: version.to_owned(),
            cgroup_version: cgroup_version(layout).to_owned(),
            cgroup_driver: cgroup_driver(layout).to_owned(),
            observe_only: self.settings.only_observes,
            pods: self.kubelet.pods.len(),
            capabilities: self.capabilities.iter().map(|(feature, state)| capability(feature, state)).collect(),
            inputs: vec![
                age("samples", "taken", self.sampling.last),
                age("kubelet pods", "answered", self.kubelet.pods_at),
                age("kubelet configuration", "answered", self.kubelet.configuration_at),
                age("Node", "changed", self.node_at),
                age("NodeSLO", "changed", self.slo.at),
                age("NodeMetric", "written", self.reporting.written),
            ],
        }
    }

    /// What is wanted of all files; of those of a pod, its containers and the cgroups above where one is named as `NAMESPACE/NAME`.
    pub fn wanted_files(&self, pod: Option<&str>, now: Now) -> WantedFiles {
        let pods = &self.kubelet.pods;
        let shown = pod.map(|key| pods.iter().find(|pod| pod.key() == key));
        let is_shown = |target: &Target| match (&shown, target.cgroup()) {
            (None, _) => true,
            (Some(Some(pod)), Some(cgroup)) => cgroup.is_within(&pod.cgroup) || pod.cgroup.is_within(cgroup),
            (Some(_), _) => false,
        };
        let files = self.resolver.files().filter(|(target, _)| is_shown(target));
        WantedFiles {
            pods: pods.iter().map(|pod| node_pod(pod)).collect(),
            files: files.map(|(target, file)| (target.clone(), file.clone())).collect(),
            objects: Objects {
                node: self.settings.node_name.clone(),
                pods: pods.iter().map(|pod| (pod.cgroup.clone(), pod.key())).collect(),
            },
            observe_only: self.settings.only_observes,
            cgroups: Cgroups::new(self.settings.roots.cgroup.clone(), self.host.layout),
            now,
        }
    }

    /// Compares a file anew; `None` when nothing is wanted of it any more. The agent does not write meanwhile.
    fn compare_now(&self, target: &Target, objects: &Objects) -> Option<FileState> {
        self.resolver.file(target).map(|file| compared(target, file, &self.files, objects))
    }
}

impl WantedFiles {
    /// Reads the files and compares them with what is wanted. The agent goes on meanwhile and may write others, so that a file that differs is
    /// compared once more while `agent` gives the agent, which it does for one file at a time.
    pub fn compare<G: std::ops::Deref<Target = Agent>>(self, agent: impl Fn() -> G) -> NodeFiles {
        let Self { pods, files, objects, observe_only, cgroups, now } = self;
        let node_files = MountedFiles::new(cgroups, Box::new(ObservingWriter));
        let shown = files.iter().filter_map(|(target, file)| {
            let state = compared(target, file, &node_files, &objects);
            if state.comparison.is_wrong() { agent().compare_now(target, &objects) } else { Some(state) }
        });
        let shown = shown.collect();
        NodeFiles { node: objects.node, time: now.time, observe_only, pods, files: shown }
    }
}

impl Objects {
    /// The object that has the setting of a reason, as `KIND/NAME`.
    fn of(&self, setting: &str, cgroup: Option<&CgroupPath>) -> String {
        let node = &self.node;
        for kind in ["NodeSLO", "NodeResourceTopology"] {
            if setting.strip_prefix(kind).is_some_and(|rest| rest.starts_with(' ')) {
                return format!("{kind}/{node}");
            }
        }
        if setting.starts_with("node.koordinator.sh/") {
            return format!("Node/{node}");
        }
        let pod = cgroup.and_then(|cgroup| self.pods.iter().find(|(of_pod, _)| cgroup.is_within(of_pod)));
        pod.map_or_else(|| format!("Node/{node}"), |(_, key)| format!("Pod/{key}"))
    }

    fn reason(&self, strategy: &str, reason: &Reason, cgroup: Option<&CgroupPath>) -> ShownReason {
        ShownReason {
            strategy: strategy.to_owned(),
            setting: reason.setting.to_owned(),
            object: self.of(reason.setting, cgroup),
            formula: reason.formula.to_string(),
        }
    }
}

/// A file beside what is wanted of it.
fn compared(target: &Target, file: &File, node: &MountedFiles, objects: &Objects) -> FileState {
    let cgroup = target.cgroup();
    let actual = if node.supports(target) { Some(node.read(target)) } else { None };
    let value = actual.as_ref().and_then(|actual| actual.as_ref().ok());
    let decision = decide(file.wanted(), value);
    let comparison = match &actual {
        None => Comparison::Unsupported,
        Some(Err(ReadError::Gone { .. })) => Comparison::Gone,
        Some(Err(ReadError::Io { .. } | ReadError::Text { .. } | ReadError::Unsupported(_))) => Comparison::Unreadable,
        Some(Ok(actual)) => match &decision {
            Some(decision) if decision.value != *actual => Comparison::Differs,
            _ => Comparison::Agrees,
        },
    };
    let why = match (comparison, &actual) {
        (Comparison::Unreadable, Some(Err(error))) => Some(error.to_string()),
        (Comparison::Differs, _) => why(file.state()),
        _ => None,
    };
    let constraint = |wanted: &Wanted| Constraint {
        wanted: bounded(wanted),
        reason: objects.reason(wanted.strategy, &wanted.reason, cgroup),
    };
    FileState {
        path: node.path(target).map(|path| path.display().to_string()),
        file: name(target, node),
        cgroup: cgroup.map(|cgroup| cgroup.as_str().to_owned()),
        constraints: file.wanted().iter().map(constraint).collect(),
        decision: decision.map(|decision| Decision {
            value: decision.value.to_string(),
            reason: objects.reason(decision.strategy, &decision.reason, cgroup),
            bounded_by: decision.bounded_by.map(|(strategy, reason)| objects.reason(strategy, &reason, cgroup)),
        }),
        actual: value.map(ToString::to_string),
        comparison,
        why,
    }
}

/// The name of a file as the kernel has it, or as v1 has it where this version has none.
fn name(target: &Target, node: &MountedFiles) -> String {
    let file = |resource: koord_koordlet_system::Resource| {
        let version = koord_koordlet_system::Kernel::layout(node.cgroups()).version;
        resource.row().file(version).map_or_else(|| resource.name(), |(_, file)| file)
    };
    match target {
        Target::Cgroup { resource, .. } => file(*resource).to_owned(),
        Target::Disk { resource, disk, .. } => format!("{} {disk}", file(*resource)),
        Target::System(path) => path.display().to_string(),
    }
}

fn bounded(wanted: &Wanted) -> String {
    match wanted.bound {
        Bound::Exactly => wanted.value.to_string(),
        Bound::AtLeast => format!("at least {}", wanted.value),
        Bound::AtMost => format!("at most {}", wanted.value),
    }
}

/// Why a file says something else than is wanted, where that is known.
fn why(state: &ResolverState) -> Option<String> {
    match state {
        ResolverState::Refused { .. } | ResolverState::Cut { .. } | ResolverState::Foreign { .. } => {
            Some(state.to_string())
        }
        ResolverState::New | ResolverState::Agrees | ResolverState::Gone { .. } | ResolverState::Unsupported => None,
    }
}

fn capability(feature: &str, state: &State) -> Capability {
    let (state, reason, remedy) = match state {
        State::Active => (CapabilityState::Active, None, None),
        State::Off => (CapabilityState::Off, None, None),
        State::Degraded { reason, remedy } => {
            (CapabilityState::Degraded, Some(reason.clone()), Some(remedy.clone()).filter(|remedy| !remedy.is_empty()))
        }
    };
    Capability { feature: feature.to_owned(), state, reason, remedy }
}

fn node_pod(pod: &Pod) -> NodePod {
    let containers = pod.containers.iter().map(|container| NodeContainer {
        name: container.name.to_string(),
        cgroup: container.cgroup.as_ref().map(|cgroup| cgroup.as_str().to_owned()),
    });
    NodePod {
        namespace: pod.namespace.to_string(),
        name: pod.name.to_string(),
        uid: pod.uid.to_string(),
        qos: pod.qos().map(|qos| qos.to_string()),
        cgroup: pod.cgroup.as_str().to_owned(),
        containers: containers.collect(),
    }
}

const fn cgroup_version(layout: Layout) -> &'static str {
    match layout.version {
        Version::V1 => "v1",
        Version::V2 => "v2",
    }
}

const fn cgroup_driver(layout: Layout) -> &'static str {
    match layout.driver {
        Driver::Systemd => "systemd",
        Driver::Cgroupfs => "cgroupfs",
    }
}
