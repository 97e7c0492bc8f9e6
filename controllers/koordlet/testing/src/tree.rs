//! The folder tree that is a node for the agent.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs,
    path::Path,
};

use serde_json::Value;

use crate::{
    amount::{thousandths_of, units_of},
    case::{Case, FileChange},
    fixtures::{CgroupFiles, Fixtures},
    memory::memory_files,
    names::{Names, items, statuses, text},
    pattern::matches,
};

/// Folders below the root that exist although they are empty.
const FOLDERS: [&str; 9] = ["cgroup", "sys", "sysfs", "proc", "var-run", "run", "kubelet", "hookserver", "xpu"];

/// The files of a case's node: path below the root → text.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub files: BTreeMap<String, String>,
    pub folders: BTreeSet<String>,
    /// What programs of the path print; `None` for one that fails.
    pub commands: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// The tree of a case before the agent starts.
    pub fn of(case: &Case, fixtures: &Fixtures) -> Self {
        let (names, machine) = (Names::of(case), fixtures.machine(&case.machine));
        let mut tree =
            Self { files: machine.files.clone(), folders: BTreeSet::new(), commands: machine.commands.clone() };
        for extra in &case.extras {
            tree.files.extend(fixtures.extra(extra));
        }
        let mut cgroups = CgroupFolders {
            is_v2: case.is_v2(),
            cpus: &machine.cpus,
            kernel: &fixtures.cgroup_files(&case.cgroup, &case.kernel),
            files: &mut tree.files,
        };
        cgroups.add_classes(&names);
        for pod in case.all_pods().filter(|pod| !case.no_cgroup.iter().any(|name| name == text(pod, "/metadata/name")))
        {
            cgroups.add_pod(pod, &names, case.sandboxes);
        }
        for folder in &case.cgroups {
            let files = &cgroups.kernel.container.clone();
            cgroups.add(files, &names.fill(folder), &Given::new());
        }
        tree.change(case, &names);
        let dropped: Vec<String> = case.drop.iter().map(|pattern| names.fill(pattern)).collect();
        tree.files.retain(|path, _| !dropped.iter().any(|pattern| matches(pattern, path)));
        tree.commands.extend(case.commands.clone());
        if !case.memory.is_empty() {
            tree.files.extend(memory_files(case.is_v2(), &names, &case.memory));
            // What a case says about a file comes last.
            for (path, change) in &case.files {
                if let Some(FileChange::Text(text)) = change {
                    tree.files.insert(names.fill(path), names.fill(text));
                }
            }
        }
        // The process of the test lives as long as the case.
        for path in case.processes.values().flatten() {
            tree.files.insert(names.fill(path), format!("{}\n", std::process::id()));
        }
        let all = FOLDERS.iter().filter(|folder| !case.no_dirs.iter().any(|missing| missing == *folder));
        tree.folders =
            all.map(|folder| (*folder).to_owned()).chain(case.dirs.iter().map(|folder| names.fill(folder))).collect();
        tree
    }

    fn change(&mut self, case: &Case, names: &Names) {
        for (path, change) in &case.files {
            let path = names.fill(path);
            let paths: Vec<String> = match path.strip_suffix("**") {
                Some(folder) if folder.ends_with('/') => {
                    self.files.keys().filter(|file| file.starts_with(folder)).cloned().collect()
                }
                _ => vec![path],
            };
            for path in paths {
                match change {
                    None => _ = self.files.remove(&path),
                    Some(FileChange::Text(text)) => _ = self.files.insert(path, names.fill(text)),
                    Some(FileChange::Append { append }) => {
                        self.files.entry(path).or_default().push_str(&names.fill(append));
                    }
                }
            }
        }
    }

    /// Writes the tree below a folder.
    pub fn write(&self, root: &Path) {
        let mut made = HashSet::new();
        for folder in &self.folders {
            fs::create_dir_all(root.join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
        }
        for (path, text) in &self.files {
            let target = root.join(path);
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if made.insert(folder) {
                fs::create_dir_all(root.join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
            }
            fs::write(target, text).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }
}

/// What a kubelet has written into files, by their names.
type Given = BTreeMap<&'static str, String>;

struct CgroupFolders<'a> {
    is_v2: bool,
    cpus: &'a str,
    kernel: &'a CgroupFiles,
    files: &'a mut BTreeMap<String, String>,
}

impl CgroupFolders<'_> {
    fn add(&mut self, files: &BTreeMap<String, String>, folder: &str, given: &Given) {
        let below = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        for (key, text) in files {
            let (hierarchy, name) = key.rsplit_once('/').unwrap_or(("", key));
            let path =
                if self.is_v2 { format!("cgroup/{below}{key}") } else { format!("cgroup/{hierarchy}/{below}{name}") };
            self.files.insert(path, given.get(name).unwrap_or(text).replace("{cpus}", self.cpus));
        }
    }

    fn add_classes(&mut self, names: &Names) {
        let kernel = self.kernel;
        self.add(&kernel.root, "", &Given::new());
        for class in ["Guaranteed", "Burstable"] {
            self.add(&kernel.qos, names.qos(class), &Given::new());
        }
        self.add(&kernel.qos, names.qos("BestEffort"), &least_shares());
    }

    fn add_pod(&mut self, pod: &Value, names: &Names, has_sandbox: bool) {
        let kernel = self.kernel;
        let containers = items(pod, "/spec/containers");
        let requests: i128 = containers.iter().map(|container| amount(container, "requests", "cpu")).sum();
        let limit = |resource: &str| {
            let limits: Vec<i128> = containers.iter().map(|container| amount(container, "limits", resource)).collect();
            if limits.contains(&0) { 0 } else { limits.iter().sum() }
        };
        self.add(&kernel.pod, &names.pod(pod), &by_kubelet(requests, limit("cpu"), limit("memory") / 1000));
        for status in statuses(pod) {
            let id = text(status, "/containerID");
            if id.is_empty() {
                continue;
            }
            // A name that is used twice is that of the last one: an init container.
            let mut all = containers.iter().chain(items(pod, "/spec/initContainers"));
            let container = all.rfind(|container| container["name"] == status["name"]).unwrap_or(&Value::Null);
            let memory = units_of(&container["resources"]["limits"]["memory"]);
            let given = by_kubelet(amount(container, "requests", "cpu"), amount(container, "limits", "cpu"), memory);
            self.add(&kernel.container, &names.container(pod, id), &given);
        }
        if has_sandbox && !items(pod, "/status/containerStatuses").is_empty() {
            self.add(&kernel.container, &names.sandbox(pod), &least_shares());
        }
    }
}

/// The thousandths of a resource of a container; 0 where it has none.
fn amount(container: &Value, kind: &str, resource: &str) -> i128 {
    thousandths_of(&container["resources"][kind][resource])
}

fn least_shares() -> Given {
    Given::from([("cpu.shares", "2\n".to_owned()), ("cpu.weight", "1\n".to_owned())])
}

/// What a kubelet writes: CPU in thousandths, memory in bytes; 0 for no limit.
fn by_kubelet(cpu_request_milli: i128, cpu_limit_milli: i128, memory_limit: i128) -> Given {
    let shares = (cpu_request_milli * 1024 / 1000).max(2);
    let weight = 1 + (shares - 2) * 9999 / 262_142;
    let mut given = Given::from([("cpu.shares", format!("{shares}\n")), ("cpu.weight", format!("{weight}\n"))]);
    if cpu_limit_milli != 0 {
        let quota = cpu_limit_milli * 100;
        given.insert("cpu.cfs_quota_us", format!("{quota}\n"));
        given.insert("cpu.max", format!("{quota} 100000\n"));
    }
    if memory_limit != 0 {
        given.insert("memory.limit_in_bytes", format!("{memory_limit}\n"));
        given.insert("memory.max", format!("{memory_limit}\n"));
    }
    given
}
