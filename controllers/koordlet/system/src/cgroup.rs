//! Names of cgroups: which folders the kubelet and the container runtimes make, below the root of each hierarchy.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// The version of the cgroup interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

/// Who names the folders of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// systemd: slices and scopes.
    Systemd,
    /// The kubelet itself.
    Cgroupfs,
}

/// The folder of Kubernetes' QoS class to which a pod belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QosFolder {
    /// Folders of Guaranteed pods stand directly in the folder of all pods.
    Guaranteed,
    Burstable,
    BestEffort,
}

/// A cgroup: its folder relative to the root of a hierarchy, without slashes at its ends. The root is empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupPath(Arc<str>);

/// A program that runs containers, as it names itself in container ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    Containerd,
    Docker,
    Crio,
    Pouch,
}

/// The id of a container with its runtime: `containerd://3f2a…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId {
    pub runtime: Runtime,
    /// The id that the runtime knows.
    pub id: Arc<str>,
}

/// Why a text is no container id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no container id such as containerd://3f2a9c; runtimes are containerd, docker, cri-o and pouch")]
pub struct ContainerIdError(String);

/// The cgroup in which the kubelet keeps that of all pods, as its configuration names it (`cgroupRoot`), without slashes at its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KubeletRoot(&'static str);

/// How the folders of pods are named on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub version: Version,
    pub driver: Driver,
    pub root: KubeletRoot,
}

// === impl CgroupPath ===

impl CgroupPath {
    /// A cgroup by its folder; slashes at the ends are dropped.
    pub fn new(folder: &str) -> Self {
        Self(folder.trim_matches('/').into())
    }

    /// The root of a hierarchy.
    pub fn root() -> Self {
        Self("".into())
    }

    /// The folder relative to the root of a hierarchy.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The cgroup of this name below.
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self::new(name) } else { Self(format!("{}/{name}", self.0).into()) }
    }

    /// The cgroup above; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.0.is_empty() {
            return None;
        }
        Some(Self(self.0.rsplit_once('/').map_or("", |(parent, _)| parent).into()))
    }

    /// The last name of the path; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// How many cgroups are above: 0 for the root.
    pub fn depth(&self) -> usize {
        if self.0.is_empty() { 0 } else { self.0.split('/').count() }
    }

    /// Whether this is `other` or below it.
    pub fn is_within(&self, other: &Self) -> bool {
        match self.0.strip_prefix(&*other.0) {
            Some(rest) => rest.is_empty() || other.0.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// The QoS class whose folder's name is in the path, as the kubelet names them.
    pub fn qos_folder(&self) -> QosFolder {
        if self.0.contains("besteffort") {
            QosFolder::BestEffort
        } else if self.0.contains("burstable") {
            QosFolder::Burstable
        } else {
            QosFolder::Guaranteed
        }
    }
}

impl fmt::Display for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("/") } else { f.write_str(&self.0) }
    }
}

impl fmt::Debug for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

// === impl Runtime ===

impl Runtime {
    /// The name in container ids.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Docker => "docker",
            Self::Crio => "cri-o",
            Self::Pouch => "pouch",
        }
    }

    /// The runtime of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Containerd, Self::Docker, Self::Crio, Self::Pouch].into_iter().find(|runtime| runtime.as_str() == name)
    }

    /// What stands before the id in the name of a scope of systemd.
    const fn scope_prefix(self) -> &'static str {
        match self {
            Self::Containerd => "cri-containerd-",
            Self::Docker => "docker-",
            Self::Crio => "crio-",
            Self::Pouch => "pouch-",
        }
    }
}

// === impl ContainerId ===

impl ContainerId {
    /// Reads `containerd://ID`.
    pub fn parse(text: &str) -> Result<Self, ContainerIdError> {
        let error = || ContainerIdError(text.chars().take(80).collect());
        let (runtime, id) = text.split_once("://").ok_or_else(error)?;
        let runtime = Runtime::named(runtime).ok_or_else(error)?;
        // An id becomes the name of a folder.
        if id.is_empty() || id.contains('/') || id == "." || id == ".." {
            return Err(error());
        }
        Ok(Self { runtime, id: id.into() })
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.runtime.as_str(), self.id)
    }
}

// === impl QosFolder ===

impl QosFolder {
    pub const ALL: [Self; 3] = [Self::Guaranteed, Self::Burstable, Self::BestEffort];

    /// The folder of a class in a pod's status; unknown classes count as BestEffort's.
    pub fn of_class(class: &str) -> Self {
        match class {
            "Guaranteed" => Self::Guaranteed,
            "Burstable" => Self::Burstable,
            _ => Self::BestEffort,
        }
    }
}

// === impl KubeletRoot ===

impl KubeletRoot {
    /// The root of each hierarchy.
    pub const NONE: Self = Self("");

    /// The cgroup that a kubelet names: `/` and the empty name are the root, `/a/b` is a cgroup below. The name is kept as long as the program runs, once.
    pub fn new(name: &str) -> Self {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let name = name.trim_matches('/');
        if name.is_empty() {
            return Self::NONE;
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(name) {
            return Self(known);
        }
        let name: &'static str = Box::leak(name.into());
        known.insert(name);
        Self(name)
    }

    fn parts(self) -> impl Iterator<Item = &'static str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }
}

// === impl Layout ===

impl Layout {
    /// The folders of a kubelet that keeps the cgroup of all pods in the root.
    pub const fn new(version: Version, driver: Driver) -> Self {
        Self { version, driver, root: KubeletRoot::NONE }
    }

    /// The folder of all pods.
    pub fn kubepods(&self) -> CgroupPath {
        match self.driver {
            Driver::Systemd => self.slices(),
            Driver::Cgroupfs => CgroupPath::new(self.root.0).child("kubepods"),
        }
    }

    /// The slices from the root to that of all pods. Each has the name of the one above in its own: `a.slice/a-kubepods.slice`.
    fn slices(&self) -> CgroupPath {
        let mut path = CgroupPath::root();
        let mut name = String::new();
        for part in self.root.parts().chain(["kubepods"]) {
            if !name.is_empty() {
                name.push('-');
            }
            name.push_str(&part.replace('-', "_"));
            path = path.child(&format!("{name}.slice"));
        }
        path
    }

    /// What names of systemd for pods begin with: `kubepods`, with the names of the slices above.
    fn slice_prefix(&self) -> String {
        let parts = self.root.parts().map(|part| part.replace('-', "_"));
        parts.chain(["kubepods".to_owned()]).collect::<Vec<_>>().join("-")
    }

    /// The folder of a QoS class. Guaranteed pods stand in the folder of all pods.
    pub fn qos(&self, qos: QosFolder) -> CgroupPath {
        let all = self.kubepods();
        match (self.driver, qos) {
            (_, QosFolder::Guaranteed) => all,
            (Driver::Systemd, QosFolder::Burstable) => all.child(&format!("{}-burstable.slice", self.slice_prefix())),
            (Driver::Systemd, QosFolder::BestEffort) => all.child(&format!("{}-besteffort.slice", self.slice_prefix())),
            (Driver::Cgroupfs, QosFolder::Burstable) => all.child("burstable"),
            (Driver::Cgroupfs, QosFolder::BestEffort) => all.child("besteffort"),
        }
    }

    /// The folder of a pod.
    pub fn pod(&self, qos: QosFolder, uid: &str) -> CgroupPath {
        let name = match (self.driver, qos) {
            (Driver::Cgroupfs, _) => format!("pod{uid}"),
            (Driver::Systemd, qos) => {
                let class = match qos {
                    QosFolder::Guaranteed => "",
                    QosFolder::Burstable => "-burstable",
                    QosFolder::BestEffort => "-besteffort",
                };
                format!("{}{class}-pod{}.slice", self.slice_prefix(), uid.replace('-', "_"))
            }
        };
        self.qos(qos).child(&name)
    }

    /// The folder of a container or sandbox of a pod.
    pub fn container(&self, pod: &CgroupPath, container: &ContainerId) -> CgroupPath {
        match self.driver {
            Driver::Cgroupfs => pod.child(&container.id),
            Driver::Systemd => pod.child(&format!("{}{}.scope", container.runtime.scope_prefix(), container.id)),
        }
    }

    /// Whether a name in a folder of a QoS class is that of a pod's folder.
    pub fn is_pod_folder(&self, name: &str) -> bool {
        self.pod_uid(name).is_some()
    }

    /// The uid in the name of a pod's folder, as it stands there: systemd's names have `_` for `-`.
    pub fn pod_uid<'a>(&self, name: &'a str) -> Option<&'a str> {
        let uid = match self.driver {
            Driver::Cgroupfs => name.strip_prefix("pod"),
            Driver::Systemd => name.strip_prefix(&*self.slice_prefix()).and_then(|rest| {
                let mut classes = ["-besteffort-pod", "-burstable-pod", "-pod"].iter();
                classes.find_map(|class| rest.strip_prefix(class)).and_then(|rest| rest.strip_suffix(".slice"))
            }),
        };
        uid.filter(|uid| !uid.is_empty())
    }

    /// The id in the name of a container's folder.
    pub fn container_id<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self.driver {
            Driver::Cgroupfs => Some(name),
            Driver::Systemd => [Runtime::Docker, Runtime::Containerd, Runtime::Crio, Runtime::Pouch]
                .iter()
                .find_map(|runtime| name.strip_prefix(runtime.scope_prefix())?.strip_suffix(".scope"))
                // cri-o leaves folders of conmon without the suffix.
                .or_else(|| name.strip_prefix(Runtime::Crio.scope_prefix())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEMD: Layout = Layout::new(Version::V1, Driver::Systemd);
    const CGROUPFS: Layout = Layout::new(Version::V2, Driver::Cgroupfs);

    #[test]
    fn folders_are_named_as_the_driver_names_them() {
        let container = ContainerId::parse("containerd://abc").unwrap();
        for (layout, qos, pod_path, container_path) in [
            (
                SYSTEMD,
                QosFolder::Guaranteed,
                "kubepods.slice/kubepods-pod1_2.slice",
                "kubepods.slice/kubepods-pod1_2.slice/cri-containerd-abc.scope",
            ),
            (
                SYSTEMD,
                QosFolder::BestEffort,
                "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice",
                "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice/cri-containerd-abc.scope",
            ),
            (CGROUPFS, QosFolder::Burstable, "kubepods/burstable/pod1-2", "kubepods/burstable/pod1-2/abc"),
            (CGROUPFS, QosFolder::Guaranteed, "kubepods/pod1-2", "kubepods/pod1-2/abc"),
        ] {
            let pod = layout.pod(qos, "1-2");
            assert_eq!(pod.as_str(), pod_path);
            assert_eq!(layout.container(&pod, &container).as_str(), container_path);
            assert_eq!(pod.qos_folder(), qos);
        }
    }

    #[test]
    fn pods_may_stand_below_another_cgroup_than_the_root() {
        let below = |layout: Layout, root| Layout { root: KubeletRoot::new(root), ..layout };
        for (layout, pod_path) in [
            (below(CGROUPFS, "/kubelet"), "kubelet/kubepods/burstable/pod1-2"),
            (below(CGROUPFS, "/a/b-c/"), "a/b-c/kubepods/burstable/pod1-2"),
            (
                below(SYSTEMD, "/kubelet"),
                "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod1_2.slice",
            ),
            (
                below(SYSTEMD, "/a/b-c"),
                "a.slice/a-b_c.slice/a-b_c-kubepods.slice/a-b_c-kubepods-burstable.slice/a-b_c-kubepods-burstable-pod1_2.slice",
            ),
        ] {
            let pod = layout.pod(QosFolder::Burstable, "1-2");
            assert_eq!(pod.as_str(), pod_path);
            assert_eq!(layout.pod_uid(pod.name()).map(|uid| uid.replace('_', "-")).as_deref(), Some("1-2"));
        }
        assert_eq!(below(SYSTEMD, "/"), SYSTEMD);
        assert_eq!(KubeletRoot::new("/kubelet/"), KubeletRoot::new("kubelet"));
    }

    #[test]
    fn names_of_folders_give_ids_back() {
        assert_eq!(SYSTEMD.pod_uid("kubepods-burstable-pod1_2.slice"), Some("1_2"));
        assert_eq!(SYSTEMD.pod_uid("kubepods-besteffort.slice"), None);
        assert_eq!(CGROUPFS.pod_uid("pod1-2"), Some("1-2"));
        assert_eq!(CGROUPFS.pod_uid("burstable"), None);
        assert_eq!(SYSTEMD.container_id("cri-containerd-abc.scope"), Some("abc"));
        assert_eq!(SYSTEMD.container_id("crio-abc"), Some("abc"));
        assert_eq!(SYSTEMD.container_id("abc"), None);
        assert_eq!(CGROUPFS.container_id("abc"), Some("abc"));
    }

    #[test]
    fn an_id_that_is_none_is_refused() {
        for text in ["", "abc", "containerd://", "rkt://abc", "docker://../x", "docker://.."] {
            assert!(ContainerId::parse(text).is_err(), "{text}");
        }
        assert_eq!(ContainerId::parse("cri-o://abc").unwrap().to_string(), "cri-o://abc");
    }

    #[test]
    fn a_path_knows_what_is_above_and_below() {
        let pod = CgroupPath::new("/kubepods/burstable/pod1/");
        let burstable = CgroupPath::new("kubepods/burstable");
        assert!(pod.is_within(&burstable) && pod.is_within(&pod) && pod.is_within(&CgroupPath::root()));
        assert!(!CgroupPath::new("kubepods/burstable2").is_within(&burstable));
        assert_eq!((pod.depth(), pod.name(), pod.parent()), (3, "pod1", Some(burstable)));
        assert_eq!((CgroupPath::root().depth(), CgroupPath::root().parent()), (0, None));
        assert_eq!(CgroupPath::new("kubepods").parent(), Some(CgroupPath::root()));
    }
}
