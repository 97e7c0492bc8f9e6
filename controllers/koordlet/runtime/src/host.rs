//! The node on which the agent runs: which cgroups it has, and its CPUs.

use std::{
    io,
    path::{Path, PathBuf},
};

use koord_koordlet_system::{
    Cgroups, Disks, Driver, HostTree, KubeletProcess, KubeletRoot, Layout, Machine, NumaGap, NumaNodes, Roots, Version,
    configured_cgroup_driver, configured_cgroup_root, read,
};

use crate::{cookies::CoreScheduling, traffic::TrafficControl};

/// What of the node does not change while the agent runs.
pub struct Host {
    pub layout: Layout,
    /// How the driver of cgroups was found.
    pub driver_source: DriverSource,
    pub machine: Machine,
    /// The disks as lsblk, vgs, lvs and findmnt print them, where sysfs shows none.
    pub disk_programs: Option<Box<dyn Fn() -> Disks + Send>>,
    pub interfaces: Interfaces,
}

/// What of a node is changed otherwise than by files below its roots. Of a tree of files nothing is.
#[derive(Default)]
pub struct Interfaces {
    pub core_scheduling: Option<Box<dyn CoreScheduling>>,
    /// The network card.
    pub traffic: Option<Box<dyn TrafficControl>>,
    /// The folder of Terway.
    pub terway: Option<PathBuf>,
}

/// How the driver of cgroups was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverSource {
    /// The folder of all pods has the name that this driver gives it.
    Folder,
    /// The command line of the kubelet, or its configuration file.
    Kubelet,
    /// Nothing says it.
    Assumed,
}

/// Which version of cgroups is mounted at a folder.
pub fn cgroup_version(root: &Path) -> io::Result<Version> {
    const CGROUP2_SUPER_MAGIC: i64 = 0x6367_7270;
    let file_system = rustix::fs::statfs(root)?;
    #[allow(clippy::useless_conversion, reason = "its width depends on the architecture")]
    let magic = i64::try_from(file_system.f_type).unwrap_or_default();
    Ok(if magic == CGROUP2_SUPER_MAGIC { Version::V2 } else { Version::V1 })
}

impl Host {
    /// Looks at a node whose cgroups have this version.
    pub fn discover(roots: &Roots, version: Version) -> Self {
        let (layout, driver_source) = layout(roots, version);
        Self {
            layout,
            driver_source,
            machine: Machine::discover(&HostTree, roots),
            disk_programs: None,
            interfaces: Interfaces::default(),
        }
    }

    /// The NUMA nodes as they are now: their memory and huge pages change.
    ///
    /// # Errors
    ///
    /// A number is missing among them.
    pub fn numa(roots: &Roots) -> Result<NumaNodes, NumaGap> {
        NumaNodes::discover(&HostTree, roots)
    }
}

impl Host {
    /// The disks as they are now.
    pub(crate) fn disks(&self, roots: &Roots) -> Disks {
        let disks = Disks::discover(&HostTree, roots);
        match &self.disk_programs {
            Some(programs) if disks.numbers().next().is_none() => programs(),
            _ => disks,
        }
    }
}

/// The driver whose folder of all pods is there.
pub(crate) fn found(roots: &Roots, version: Version, root: KubeletRoot) -> Option<Layout> {
    let layouts = [Driver::Systemd, Driver::Cgroupfs].map(|driver| Layout { version, driver, root });
    layouts.into_iter().find(|layout| has_kubepods(roots, *layout))
}

/// Whether the folder of all pods is there.
pub(crate) fn has_kubepods(roots: &Roots, layout: Layout) -> bool {
    Cgroups::new(roots.cgroup.clone(), layout).folder(&layout.kubepods()).is_dir()
}

/// How the folders of pods are named. Where the kubelet has made none yet, or keeps them below another cgroup than the root, its process is looked at.
fn layout(roots: &Roots, version: Version) -> (Layout, DriverSource) {
    if let Some(layout) = found(roots, version, KubeletRoot::NONE) {
        return (layout, DriverSource::Folder);
    }
    let assumed = Layout::new(version, Driver::Systemd);
    let Some(kubelet) = KubeletProcess::find(&HostTree, &roots.proc) else { return (assumed, DriverSource::Assumed) };
    let configuration = kubelet.configuration_file().and_then(|file| read(file).ok()).unwrap_or_default();
    let root = kubelet.cgroup_root().or_else(|| configured_cgroup_root(&configuration)).unwrap_or_default();
    if let Some(layout) = found(roots, version, root) {
        return (layout, DriverSource::Folder);
    }
    match kubelet.cgroup_driver().or_else(|| configured_cgroup_driver(&configuration)) {
        Some(driver) => (Layout { version, driver, root }, DriverSource::Kubelet),
        None => (Layout { root, ..assumed }, DriverSource::Assumed),
    }
}
