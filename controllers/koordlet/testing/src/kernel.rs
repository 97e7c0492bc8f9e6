//! What the kernel does with what the agent writes, played over a folder of plain files.
//!
//! - cgroup v2: a bare quota written to `cpu.max` becomes `QUOTA 100000`; `cpuset.cpus.effective` follows `cpuset.cpus`.
//! - resctrl: a write to `schemata` changes only the lines that it names, each write to `tasks` adds one id, a new folder has the files of a group, and a
//!   folder goes with its files.
//! - Everything else is a plain file: it holds the last text written, and no value is refused.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use koord_koordlet_system::Writer;

/// One write of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The path below the root.
    pub path: String,
    /// What was written, not what the file says then.
    pub text: String,
}

/// The kernel below a fixture tree. Clones are the same kernel.
#[derive(Clone, Debug)]
pub struct FixtureKernel {
    root: PathBuf,
    is_v2: bool,
    has_resctrl: bool,
    log: Arc<Mutex<Vec<Written>>>,
}

impl FixtureKernel {
    pub fn new(root: &Path, is_v2: bool, has_resctrl: bool) -> Self {
        Self { root: root.to_owned(), is_v2, has_resctrl, log: Arc::default() }
    }

    /// All writes so far, in their order.
    pub fn written(&self) -> Vec<Written> {
        self.log().clone()
    }

    /// Whether statfs says `cgroup2` of a path.
    pub fn is_cgroup2(&self, path: &Path) -> bool {
        self.is_v2 && path.starts_with(self.root.join("cgroup")) && path.exists()
    }

    fn log(&self) -> MutexGuard<'_, Vec<Written>> {
        self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The path below the root.
    fn below<'a>(&self, path: &'a Path) -> io::Result<&'a str> {
        let below = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        below.ok_or_else(|| io::Error::other(format!("{} is outside of the tree", path.display())))
    }

    fn record(&self, path: &Path, text: &str) -> io::Result<()> {
        let below = self.below(path)?;
        if !path.is_file() {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        self.log().push(Written { path: below.to_owned(), text: text.to_owned() });
        Ok(())
    }

    fn resctrl(&self) -> PathBuf {
        self.root.join("sysfs/resctrl")
    }

    fn is_of_resctrl(&self, path: &Path) -> bool {
        self.has_resctrl && path.starts_with(self.resctrl())
    }

    /// A group that may be made or removed: a folder directly below resctrl, which is mounted.
    fn is_group(&self, path: &Path) -> bool {
        self.has_resctrl && path.parent() == Some(&self.resctrl()) && self.resctrl().join("schemata").exists()
    }
}

impl Writer for FixtureKernel {
    fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name == "tasks" && self.is_of_resctrl(path) {
            return self.append(path, text);
        }
        self.record(path, text)?;
        if name == "schemata" && self.is_of_resctrl(path) {
            return fs::write(path, merge_schemata(&fs::read_to_string(path)?, text));
        }
        if !self.is_v2 || !path.starts_with(self.root.join("cgroup")) {
            return fs::write(path, text);
        }
        if name == "cpu.max" {
            return fs::write(path, whole_quota(text));
        }
        let effective = path.with_file_name("cpuset.cpus.effective");
        if name == "cpuset.cpus" && !text.trim().is_empty() && effective.exists() {
            fs::write(effective, text)?;
        }
        fs::write(path, text)
    }

    fn append(&mut self, path: &Path, line: &str) -> io::Result<()> {
        self.record(path, line)?;
        let line = if self.is_of_resctrl(path) { format!("{}\n", line.trim()) } else { line.to_owned() };
        OpenOptions::new().append(true).open(path)?.write_all(line.as_bytes())
    }

    fn create_folder(&mut self, path: &Path) -> io::Result<()> {
        self.below(path)?;
        if path.is_dir() {
            return Ok(());
        }
        fs::create_dir(path)?;
        if self.is_group(path) {
            fs::copy(self.resctrl().join("schemata"), path.join("schemata"))?;
            fs::write(path.join("tasks"), "")?;
        }
        Ok(())
    }

    fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        self.below(path)?;
        if self.is_group(path) { fs::remove_dir_all(path) } else { fs::remove_dir(path) }
    }
}

/// What `cpu.max` says after a write: `-1` is no limit, and a bare quota has the usual period.
pub(crate) fn whole_quota(text: &str) -> String {
    match text.trim() {
        "-1" => "max 100000\n".to_owned(),
        quota if !quota.is_empty() && !quota.contains(' ') => format!("{quota} 100000\n"),
        _ => text.to_owned(),
    }
}

/// The schemata after a write: the lines and domains that it names are replaced.
fn merge_schemata(present: &str, written: &str) -> String {
    let mut resources: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for line in present.lines().chain(written.lines()) {
        let Some((resource, domains)) = line.trim().split_once(':') else { continue };
        for (domain, mask) in domains.split(';').filter_map(|part| part.split_once('=')) {
            resources.entry(resource).or_default().insert(domain.trim(), mask.trim());
        }
    }
    let line = |(resource, domains): (&&str, &BTreeMap<&str, &str>)| {
        let domains: Vec<String> = domains.iter().map(|(domain, mask)| format!("{domain}={mask}")).collect();
        format!("    {resource}:{}\n", domains.join(";"))
    };
    resources.iter().rev().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_unified_hierarchy_completes_quotas_and_follows_cpusets() {
        let files = [
            ("cgroup/a/cpu.max", "max 100000\n"),
            ("cgroup/a/cpuset.cpus", "\n"),
            ("cgroup/a/cpuset.cpus.effective", "0-3\n"),
        ];
        let root = tree(&files);
        let path = |name: &str| root.path().join("cgroup/a").join(name);
        let mut kernel = FixtureKernel::new(root.path(), true, false);
        for (name, text, says) in [
            ("cpu.max", "200000", "200000 100000\n"),
            ("cpu.max", "-1", "max 100000\n"),
            ("cpu.max", "5 10", "5 10"),
            ("cpuset.cpus", "0,1", "0,1"),
        ] {
            kernel.write(&path(name), text).unwrap();
            assert_eq!(fs::read_to_string(path(name)).unwrap(), says);
        }
        assert_eq!(fs::read_to_string(path("cpuset.cpus.effective")).unwrap(), "0,1");
        assert!(kernel.is_cgroup2(&root.path().join("cgroup/a")));
        assert!(!kernel.is_cgroup2(&root.path().join("cgroup/b")));
        assert_eq!(kernel.written().len(), 4);
        assert_eq!(kernel.written()[0], Written { path: "cgroup/a/cpu.max".to_owned(), text: "200000".to_owned() });
        assert_eq!(kernel.write(&path("cpu.weight"), "1").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(
            kernel.write(Path::new("/proc/self/comm"), "x").unwrap_err().to_string().contains("outside of the tree")
        );
    }

    #[test]
    fn resctrl_merges_lines_adds_ids_and_makes_groups() {
        let schemata = "    MB:0=100;1=100\n    L3:0=7ff;1=7ff\n";
        let root = tree(&[("sysfs/resctrl/schemata", schemata), ("sysfs/resctrl/tasks", "1\n")]);
        let at = |path: &str| root.path().join("sysfs/resctrl").join(path);
        let read = |path: &str| fs::read_to_string(at(path)).unwrap();
        let mut kernel = FixtureKernel::new(root.path(), false, true);
        kernel.create_folder(&at("BE")).unwrap();
        kernel.create_folder(&at("BE")).unwrap();
        assert_eq!((read("BE/schemata").as_str(), read("BE/tasks").as_str()), (schemata, ""));
        kernel.write(&at("BE/schemata"), "L3:1=f;\n").unwrap();
        assert_eq!(read("BE/schemata"), "    MB:0=100;1=100\n    L3:0=7ff;1=f\n");
        kernel.append(&at("BE/tasks"), "101").unwrap();
        kernel.write(&at("BE/tasks"), "102\n").unwrap();
        assert_eq!(read("BE/tasks"), "101\n102\n");
        kernel.remove_folder(&at("BE")).unwrap();
        assert!(!at("BE").exists());
    }
}
