//! The files of a node, as the resolver reads and writes them.

use std::{collections::BTreeMap, io, path::PathBuf};

use koord_koordlet_framework::Target;
use koord_koordlet_system::{
    CgroupPath, Cgroups, Form, Kernel, Layout, ReadError, Resource, Value, ValueError, Version, Writer, is_gone, read,
};

/// Reads and writes what targets say.
pub trait NodeFiles {
    /// What the target says now.
    ///
    /// # Errors
    ///
    /// It is gone, or cannot be read.
    fn read(&self, target: &Target) -> Result<Value, ReadError>;

    /// Whether the target shows another number than the one that is written for a value, although it means the same: v1 shows no limit as the largest number of
    /// whole pages.
    fn is_rounded(&self, target: &Target, value: &Value) -> bool;

    /// Makes the target say a value.
    ///
    /// # Errors
    ///
    /// It is gone, the value is none that it takes, or the kernel refuses.
    fn write(&mut self, target: &Target, value: &Value) -> Result<(), WriteError>;

    /// Whether the kernel has the file.
    fn supports(&self, target: &Target) -> bool;
}

/// Why a value was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The cgroup, or the file in it, is not there: normal for pods that end.
    #[error("{path} is not there")]
    Gone { path: PathBuf },
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("the kernel refuses {value:?} for {path}: {source}")]
    Refused {
        path: PathBuf,
        value: String,
        #[source]
        source: io::Error,
    },
}

/// The files of a machine or of a fixture tree.
pub struct MountedFiles {
    cgroups: Cgroups,
    writer: Box<dyn Writer>,
}

impl MountedFiles {
    pub fn new(cgroups: Cgroups, writer: Box<dyn Writer>) -> Self {
        Self { cgroups, writer }
    }

    pub fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    /// Names folders otherwise from now on.
    pub fn set_layout(&mut self, layout: Layout) {
        self.cgroups.set_layout(layout);
    }

    /// Changes files and folders that are no targets.
    pub fn writer(&mut self) -> &mut dyn Writer {
        &mut *self.writer
    }

    /// The absolute path of a target; `None` where this version of cgroups has no such file.
    pub fn path(&self, target: &Target) -> Option<PathBuf> {
        match target {
            Target::Cgroup { cgroup, resource } | Target::Disk { cgroup, resource, .. } => {
                self.cgroups.path(cgroup, *resource)
            }
            Target::System(path) => Some(path.clone()),
        }
    }
}

impl MountedFiles {
    /// What was last written to a cgroup's cpuset; nothing where it has the CPUs of its parent. v2 shows elsewhere what of it is in effect, which changes
    /// with the cgroups above.
    fn cpuset(&self, cgroup: &CgroupPath) -> Result<Value, ReadError> {
        let row = Resource::Cpuset.row();
        let version = self.cgroups.layout().version;
        let path = self.cgroups.path(cgroup, Resource::Cpuset).ok_or(ReadError::Unsupported(Resource::Cpuset))?;
        match read(&path).ok().and_then(|text| row.value(version, &text).ok()) {
            Some(Value::Cpus(cpus)) => Ok(Value::Cpus(cpus)),
            _ => self.cgroups.value(cgroup, Resource::Cpuset),
        }
    }
}

impl NodeFiles for MountedFiles {
    fn read(&self, target: &Target) -> Result<Value, ReadError> {
        match target {
            Target::Cgroup { cgroup, resource: Resource::Cpuset } => self.cpuset(cgroup),
            Target::Cgroup { cgroup, resource } => self.cgroups.value(cgroup, *resource),
            Target::Disk { cgroup, resource, disk } => {
                let text = self.cgroups.text(cgroup, *resource)?;
                Ok(disk_value(*resource, disk, &text))
            }
            Target::System(path) => {
                let text = read(path).map_err(|source| {
                    let path = path.clone();
                    if is_gone(&source) { ReadError::Gone { path } } else { ReadError::Io { path, source } }
                })?;
                let text = String::from_utf8_lossy(&text);
                let amount = text.trim().parse();
                // What is no number is different from every number.
                Ok(amount.map_or_else(|_| Value::Disk { disk: "".into(), text: text.trim().into() }, Value::Amount))
            }
        }
    }

    fn is_rounded(&self, target: &Target, value: &Value) -> bool {
        let (Target::Cgroup { cgroup, resource }, Value::Unlimited) = (target, value) else { return false };
        let version = self.cgroups.layout().version;
        let shown = self.cgroups.text(cgroup, *resource).ok();
        let written = resource.row().text(version, value).ok();
        version == Version::V1 && shown.as_deref().map(str::trim) != written.as_deref()
    }

    fn write(&mut self, target: &Target, value: &Value) -> Result<(), WriteError> {
        let version = self.cgroups.layout().version;
        let text = match target {
            Target::Cgroup { resource, .. } | Target::Disk { resource, .. } => resource.row().text(version, value)?,
            Target::System(_) => value.to_string(),
        };
        let Some(path) = self.path(target) else { return Ok(()) };
        self.writer.write(&path, &text).map_err(|source| {
            if is_gone(&source) { WriteError::Gone { path } } else { WriteError::Refused { path, value: text, source } }
        })
    }

    fn supports(&self, target: &Target) -> bool {
        match target {
            Target::Cgroup { cgroup, resource } | Target::Disk { cgroup, resource, .. } => {
                self.cgroups.supports(cgroup, *resource)
            }
            Target::System(path) => path.exists(),
        }
    }
}

/// What a file with a line for each disk says of one: where it has no line, nothing is limited.
fn disk_value(resource: Resource, disk: &str, text: &str) -> Value {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(disk)?.strip_prefix(' '));
    let absent = match resource.row().form {
        Form::Disks if resource != Resource::BlkioWeight => "0",
        _ => "",
    };
    Value::Disk { disk: disk.into(), text: line.unwrap_or(absent).trim().into() }
}

/// Files that are read from a node, and written to memory only: for plans.
pub struct PlannedFiles<'a> {
    files: &'a dyn NodeFiles,
    written: BTreeMap<Target, Value>,
}

impl<'a> PlannedFiles<'a> {
    pub fn new(files: &'a dyn NodeFiles) -> Self {
        Self { files, written: BTreeMap::new() }
    }
}

impl NodeFiles for PlannedFiles<'_> {
    fn read(&self, target: &Target) -> Result<Value, ReadError> {
        self.written.get(target).map_or_else(|| self.files.read(target), |value| Ok(value.clone()))
    }

    fn is_rounded(&self, target: &Target, value: &Value) -> bool {
        !self.written.contains_key(target) && self.files.is_rounded(target, value)
    }

    fn write(&mut self, target: &Target, value: &Value) -> Result<(), WriteError> {
        self.written.insert(target.clone(), value.clone());
        Ok(())
    }

    fn supports(&self, target: &Target) -> bool {
        self.files.supports(target)
    }
}

/// The quota of the cgroup of a target, to which the kernel bounds its burst.
pub(crate) fn quota_of(cgroup: &CgroupPath) -> Target {
    Target::Cgroup { cgroup: cgroup.clone(), resource: Resource::CpuQuota }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpuset_that_was_never_written_is_empty_whatever_is_in_effect() {
        use koord_koordlet_system::{Driver, KernelWriter, Layout, Version};
        let root = tempfile::tempdir().unwrap();
        let cgroup = CgroupPath::new("kubepods.slice");
        let folder = root.path().join("kubepods.slice");
        std::fs::create_dir(&folder).unwrap();
        let layout = Layout::new(Version::V2, Driver::Systemd);
        let mut files = MountedFiles::new(Cgroups::new(root.path().to_owned(), layout), Box::new(KernelWriter));
        let target = Target::Cgroup { cgroup, resource: Resource::Cpuset };
        let cpus = |list: &str| Value::Cpus(list.parse().unwrap());
        for (written, wanted) in [("\n", ""), ("0-3\n", "0-3"), ("0,2\n", "0,2")] {
            std::fs::write(folder.join("cpuset.cpus"), written).unwrap();
            std::fs::write(folder.join("cpuset.cpus.effective"), "0-7\n").unwrap();
            assert_eq!(files.read(&target).unwrap(), cpus(wanted), "{written:?}");
        }
        files.write(&target, &cpus("0-7")).unwrap();
        assert_eq!(files.read(&target).unwrap(), cpus("0-7"));
    }

    #[test]
    fn v1_shows_no_limit_as_another_number_than_is_written() {
        use koord_koordlet_system::{Driver, KernelWriter, Layout};
        for (version, shown, is_rounded) in [
            (Version::V1, "9223372036854771712\n", true),
            (Version::V1, "9223372036854775807\n", false),
            (Version::V2, "max\n", false),
        ] {
            let root = tempfile::tempdir().unwrap();
            let layout = Layout::new(version, Driver::Systemd);
            let cgroups = Cgroups::new(root.path().to_owned(), layout);
            let cgroup = CgroupPath::new("kubepods.slice");
            let path = cgroups.path(&cgroup, Resource::MemoryHigh).unwrap();
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, shown).unwrap();
            let files = MountedFiles::new(cgroups, Box::new(KernelWriter));
            let target = Target::Cgroup { cgroup, resource: Resource::MemoryHigh };
            assert_eq!(files.read(&target).unwrap(), Value::Unlimited);
            assert_eq!(files.is_rounded(&target, &Value::Unlimited), is_rounded, "{version:?} {shown}");
            assert!(!files.is_rounded(&target, &Value::Amount(4096)));
        }
    }

    #[test]
    fn a_disk_without_a_line_is_not_limited() {
        let text = "8:0 1048576\n253:16 4\n";
        let value = |resource, disk: &str| match disk_value(resource, disk, text) {
            Value::Disk { text, .. } => text.into_string(),
            other => other.to_string(),
        };
        assert_eq!(value(Resource::BlkioReadBps, "8:0"), "1048576");
        assert_eq!(value(Resource::BlkioReadBps, "8:1"), "0");
        assert_eq!(value(Resource::BlkioReadBps, "253:1"), "0");
        assert_eq!(value(Resource::BlkioWeight, "8:1"), "");
    }
}
