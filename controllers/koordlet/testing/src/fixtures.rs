//! Files of a machine, of cgroup folders, and what is laid over them.

use std::{cell::RefCell, collections::BTreeMap, fs, path::PathBuf, rc::Rc};

use serde::{Deserialize, de::DeserializeOwned};

/// A machine: its CPUs, and its files below `proc/` and `sys/`.
#[derive(Debug, Deserialize)]
pub struct Machine {
    /// The CPUs as a list: `0-3`.
    pub cpus: String,
    /// How many there are.
    pub ncpu: u64,
    /// What programs of the path print; `None` for one that fails.
    #[serde(default)]
    pub commands: BTreeMap<String, Option<String>>,
    /// Path → text.
    pub files: BTreeMap<String, String>,
}

/// The files of cgroup folders, by name; in v1 after the hierarchy, as `cpu/cpu.shares`. `{cpus}` stands for the CPUs of the machine.
#[derive(Debug, Deserialize)]
pub struct CgroupFiles {
    pub root: BTreeMap<String, String>,
    pub qos: BTreeMap<String, String>,
    pub pod: BTreeMap<String, String>,
    pub container: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Extra {
    files: BTreeMap<String, String>,
}

/// The fixtures of a corpus; each is read once.
#[derive(Debug)]
pub struct Fixtures {
    folder: PathBuf,
    machines: RefCell<BTreeMap<String, Rc<Machine>>>,
    cgroups: RefCell<BTreeMap<String, Rc<CgroupFiles>>>,
}

impl Fixtures {
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder, machines: RefCell::default(), cgroups: RefCell::default() }
    }

    /// `machine-NAME.json`.
    pub fn machine(&self, name: &str) -> Rc<Machine> {
        self.kept(&self.machines, &format!("machine-{name}"))
    }

    /// `cgroup-VERSION-KERNEL.json`.
    pub fn cgroup_files(&self, version: &str, kernel: &str) -> Rc<CgroupFiles> {
        self.kept(&self.cgroups, &format!("cgroup-{version}-{kernel}"))
    }

    /// The files of `extra-NAME.json`.
    pub fn extra(&self, name: &str) -> BTreeMap<String, String> {
        self.read::<Extra>(&format!("extra-{name}")).files
    }

    fn kept<T: DeserializeOwned>(&self, kept: &RefCell<BTreeMap<String, Rc<T>>>, name: &str) -> Rc<T> {
        kept.borrow_mut().entry(name.to_owned()).or_insert_with(|| Rc::new(self.read(name))).clone()
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> T {
        let path = self.folder.join(format!("{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}
