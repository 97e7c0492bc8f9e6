//! The cgroups of a node as values, and as a map for plans and tests.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
};

use crate::{
    cgroup::{CgroupPath, Layout},
    files,
    resource::{Resource, Support, TextError},
    value::Value,
};

/// Why a value of a cgroup is not known.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The cgroup, or the file in it, is not there: normal for pods that end.
    #[error("{path} is not there")]
    Gone { path: PathBuf },
    #[error("{path} cannot be read: {source}")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path}: {source}")]
    Text {
        path: PathBuf,
        #[source]
        source: TextError,
    },
    /// This version of the interface has no such file.
    #[error("this kernel's cgroups have no {0}")]
    Unsupported(Resource),
}

/// What the cgroups of a node say.
pub trait Kernel {
    /// How folders are named.
    fn layout(&self) -> Layout;

    /// The value of a file.
    ///
    /// # Errors
    ///
    /// The cgroup is gone, or its file cannot be read or says nothing that is known.
    fn value(&self, cgroup: &CgroupPath, resource: Resource) -> Result<Value, ReadError>;

    /// The text of a file.
    ///
    /// # Errors
    ///
    /// The cgroup is gone, or its file cannot be read.
    fn text(&self, cgroup: &CgroupPath, resource: Resource) -> Result<String, ReadError>;

    /// The cgroups directly below, sorted by name; none of one that is gone.
    fn children(&self, cgroup: &CgroupPath) -> Vec<CgroupPath>;

    /// Whether the kernel has the file in this cgroup.
    fn supports(&self, cgroup: &CgroupPath, resource: Resource) -> bool;

    /// The cgroup and all below it down to `depth` levels, parents first.
    fn subtree(&self, cgroup: &CgroupPath, depth: usize) -> Vec<CgroupPath> {
        let mut all = vec![cgroup.clone()];
        let mut level = 0..1;
        for _ in 0..depth {
            let below: Vec<CgroupPath> =
                all.get(level.clone()).unwrap_or_default().iter().flat_map(|parent| self.children(parent)).collect();
            level = all.len()..all.len() + below.len();
            all.extend(below);
        }
        all
    }
}

/// The cgroups that are mounted below a root.
#[derive(Debug)]
pub struct Cgroups {
    root: PathBuf,
    layout: Layout,
    /// Resources whose support was looked up once in the cgroup of all pods, or in the root.
    supported: RefCell<BTreeMap<Resource, bool>>,
}

impl Cgroups {
    pub fn new(root: PathBuf, layout: Layout) -> Self {
        Self { root, layout, supported: RefCell::default() }
    }

    /// Names folders otherwise from now on.
    pub fn set_layout(&mut self, layout: Layout) {
        if self.layout != layout {
            self.layout = layout;
            self.supported.get_mut().clear();
        }
    }

    /// The path of the file that is written; `None` where this version has none.
    pub fn path(&self, cgroup: &CgroupPath, resource: Resource) -> Option<PathBuf> {
        resource.row().file(self.layout.version).map(|file| self.join(cgroup, file))
    }

    /// The path of the file that is read.
    pub fn path_to_read(&self, cgroup: &CgroupPath, resource: Resource) -> Option<PathBuf> {
        resource.row().file_to_read(self.layout.version).map(|file| self.join(cgroup, file))
    }

    /// The folder of a cgroup in the hierarchy in which pods are looked for: `cpu` in v1.
    pub fn folder(&self, cgroup: &CgroupPath) -> PathBuf {
        self.join(cgroup, (Resource::CpuShares.row().file(self.layout.version).map_or("", |file| file.0), ""))
    }

    fn join(&self, cgroup: &CgroupPath, (hierarchy, file): (&str, &str)) -> PathBuf {
        let mut path = self.root.clone();
        for part in [hierarchy, cgroup.as_str(), file] {
            if !part.is_empty() {
                path.push(part);
            }
        }
        path
    }
}

impl Kernel for Cgroups {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn value(&self, cgroup: &CgroupPath, resource: Resource) -> Result<Value, ReadError> {
        let path = self.path_to_read(cgroup, resource).ok_or(ReadError::Unsupported(resource))?;
        let text = files::read(&path).map_err(|source| read_error(path.clone(), source))?;
        resource.row().value(self.layout.version, &text).map_err(|source| ReadError::Text { path, source })
    }

    fn text(&self, cgroup: &CgroupPath, resource: Resource) -> Result<String, ReadError> {
        let path = self.path_to_read(cgroup, resource).ok_or(ReadError::Unsupported(resource))?;
        let text = files::read(&path).map_err(|source| read_error(path, source))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn children(&self, cgroup: &CgroupPath) -> Vec<CgroupPath> {
        // A folder that is gone has none.
        let names = files::folders(&self.folder(cgroup)).unwrap_or_default();
        names.iter().map(|name| cgroup.child(name)).collect()
    }

    fn supports(&self, cgroup: &CgroupPath, resource: Resource) -> bool {
        let exists = |cgroup: &CgroupPath| self.path(cgroup, resource).is_some_and(|path| path.exists());
        let once = |cgroup: &CgroupPath| *self.supported.borrow_mut().entry(resource).or_insert_with(|| exists(cgroup));
        match resource.row().support(self.layout.version) {
            Support::Always => true,
            Support::Never => false,
            Support::File => exists(cgroup),
            Support::Kubepods => once(&self.layout.kubepods()),
            Support::Root => once(&CgroupPath::root()),
        }
    }
}

fn read_error(path: PathBuf, source: io::Error) -> ReadError {
    if files::is_gone(&source) { ReadError::Gone { path } } else { ReadError::Io { path, source } }
}

/// Cgroups that exist as values only: for plans, which show what would change, and for tests.
#[derive(Clone, Debug)]
pub struct MapKernel {
    layout: Layout,
    values: BTreeMap<(CgroupPath, Resource), Value>,
    texts: BTreeMap<(CgroupPath, Resource), String>,
    cgroups: BTreeSet<CgroupPath>,
    /// Resources that this kernel lacks.
    lacks: BTreeSet<Resource>,
}

impl MapKernel {
    /// A kernel with the folders of the QoS classes and without values.
    pub fn new(layout: Layout) -> Self {
        let (values, texts, cgroups, lacks) = Default::default();
        let mut kernel = Self { layout, values, texts, cgroups, lacks };
        for qos in crate::cgroup::QosFolder::ALL {
            kernel.add(&layout.qos(qos));
        }
        kernel
    }

    /// Makes a cgroup, and those above it.
    pub fn add(&mut self, cgroup: &CgroupPath) {
        let mut next = Some(cgroup.clone());
        while let Some(cgroup) = next {
            next = cgroup.parent();
            self.cgroups.insert(cgroup);
        }
    }

    /// Sets what a file says, in a cgroup that is made when it is not there.
    pub fn set(&mut self, cgroup: &CgroupPath, resource: Resource, value: Value) {
        self.add(cgroup);
        self.values.insert((cgroup.clone(), resource), value);
    }

    /// Sets the lines of a file.
    pub fn set_text(&mut self, cgroup: &CgroupPath, resource: Resource, text: &str) {
        self.add(cgroup);
        self.texts.insert((cgroup.clone(), resource), text.to_owned());
    }

    /// Takes a file away from all cgroups.
    pub fn lack(&mut self, resource: Resource) {
        self.lacks.insert(resource);
    }

    /// Removes a cgroup and all below it.
    pub fn remove(&mut self, cgroup: &CgroupPath) {
        self.cgroups.retain(|other| !other.is_within(cgroup));
        self.values.retain(|(other, _), _| !other.is_within(cgroup));
        self.texts.retain(|(other, _), _| !other.is_within(cgroup));
    }
}

impl Kernel for MapKernel {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn value(&self, cgroup: &CgroupPath, resource: Resource) -> Result<Value, ReadError> {
        let gone = || ReadError::Gone { path: format!("{cgroup}/{resource}").into() };
        if self.lacks.contains(&resource) {
            return Err(gone());
        }
        self.values.get(&(cgroup.clone(), resource)).cloned().ok_or_else(gone)
    }

    fn text(&self, cgroup: &CgroupPath, resource: Resource) -> Result<String, ReadError> {
        if let Some(text) = self.texts.get(&(cgroup.clone(), resource)) {
            return Ok(text.clone());
        }
        self.value(cgroup, resource).map(|value| value.to_string())
    }

    fn children(&self, cgroup: &CgroupPath) -> Vec<CgroupPath> {
        self.cgroups.iter().filter(|other| other.parent().as_ref() == Some(cgroup)).cloned().collect()
    }

    fn supports(&self, _: &CgroupPath, resource: Resource) -> bool {
        !self.lacks.contains(&resource) && resource.row().support(self.layout.version) != Support::Never
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cgroup::{Driver, QosFolder, Version};

    #[test]
    fn values_are_read_from_the_hierarchy_of_their_resource() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(Version::V1, Driver::Cgroupfs);
        let cgroups = Cgroups::new(folder.path().to_owned(), layout);
        let besteffort = layout.qos(QosFolder::BestEffort);
        let quota = folder.path().join("cpu/kubepods/besteffort/cpu.cfs_quota_us");
        assert_eq!(cgroups.path(&besteffort, Resource::CpuQuota).unwrap(), quota);
        assert!(matches!(cgroups.value(&besteffort, Resource::CpuQuota), Err(ReadError::Gone { .. })));
        fs::create_dir_all(folder.path().join("cpu/kubepods/besteffort/pod1/abc")).unwrap();
        fs::write(&quota, "400000\n").unwrap();
        assert_eq!(cgroups.value(&besteffort, Resource::CpuQuota).unwrap(), Value::Amount(400_000));
        let paths: Vec<String> =
            cgroups.subtree(&besteffort, 2).iter().map(|cgroup| cgroup.as_str().to_owned()).collect();
        assert_eq!(paths, ["kubepods/besteffort", "kubepods/besteffort/pod1", "kubepods/besteffort/pod1/abc"]);
        fs::write(&quota, "many\n").unwrap();
        assert!(matches!(cgroups.value(&besteffort, Resource::CpuQuota), Err(ReadError::Text { .. })));
    }

    #[test]
    fn support_is_looked_up_once_in_the_cgroup_of_all_pods() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(Version::V1, Driver::Cgroupfs);
        fs::create_dir_all(folder.path().join("cpu/kubepods")).unwrap();
        let cgroups = Cgroups::new(folder.path().to_owned(), layout);
        let kubepods = layout.kubepods();
        assert!(!cgroups.supports(&kubepods, Resource::CpuIdle));
        fs::write(folder.path().join("cpu/kubepods/cpu.idle"), "0\n").unwrap();
        assert!(!cgroups.supports(&kubepods, Resource::CpuIdle), "not asked again");
        let fresh = Cgroups::new(folder.path().to_owned(), layout);
        assert!(fresh.supports(&kubepods.child("pod1"), Resource::CpuIdle));
        assert!(fresh.supports(&kubepods, Resource::CpuShares) && !fresh.supports(&kubepods, Resource::CpuBurst));
    }

    #[test]
    fn a_map_answers_as_a_tree_does() {
        let layout = Layout::new(Version::V2, Driver::Systemd);
        let mut kernel = MapKernel::new(layout);
        let pod = layout.pod(QosFolder::BestEffort, "1");
        kernel.set(&pod, Resource::CpuShares, Value::Amount(2));
        assert_eq!(kernel.value(&pod, Resource::CpuShares).unwrap(), Value::Amount(2));
        assert_eq!(kernel.children(&layout.qos(QosFolder::BestEffort)), std::slice::from_ref(&pod));
        assert_eq!(kernel.subtree(&layout.kubepods(), 1).len(), 3);
        kernel.remove(&pod);
        assert!(matches!(kernel.value(&pod, Resource::CpuShares), Err(ReadError::Gone { .. })));
    }
}
