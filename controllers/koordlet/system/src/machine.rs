//! The CPUs of a machine: where each sits, which L3 cache it has, and what they can do.

use std::{collections::BTreeMap, path::Path};

use koord_scheduling::{Cpu, CpuSet, CpuTopology};

use crate::{
    cpu_info::CpuInfo,
    file_tree::{FileTree, Reader, SkippedFile, number_of},
    files::Roots,
    id_list::parse_cpu_list,
    parse_error::ParseError,
    text::{Field, unsigned_32},
};

/// The CPUs of a machine that are online. They are read from sysfs, and numbered as `lscpu` numbers them: cores and sockets from 0 on, in the order
/// in which the CPUs mention them; NUMA nodes by their number in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Where each CPU sits. A CPU of which the kernel says nothing is a core of its own, in socket 0 and NUMA node 0.
    pub topology: CpuTopology,
    /// The number of the L3 cache of each CPU, which resctrl uses too; 0 where the kernel names none.
    pub l3_of_cpus: BTreeMap<u32, u32>,
    /// Vendor, model and features.
    pub info: CpuInfo,
    /// Whether cores run several threads: the kernel's `smt/active`, else whether some core has two CPUs.
    pub has_hyper_threading: bool,
    /// Whether `intel_pstate` allows turbo; `false` with other drivers.
    pub has_turbo: bool,
    /// The ways of the L3 cache as the text of `resctrl/info/L3/cbm_mask`, such as `7ff`; empty where resctrl is not mounted.
    pub l3_mask: String,
    /// Files that are there and were not understood.
    pub skipped: Vec<SkippedFile>,
}

/// What tells cores apart where the CPUs of a core are not listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CoreKey {
    /// The CPUs of the core.
    Siblings(CpuSet),
    /// Socket, die and core as the kernel numbers them.
    Ids(Option<u32>, Option<u32>, u32),
    /// A CPU of which the kernel says nothing.
    Alone(u32),
}

/// Numbers from 0 on, in the order of first use.
struct Numbers<K>(BTreeMap<K, u32>);

impl<K: Ord> Numbers<K> {
    fn of(&mut self, key: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }
}

impl Machine {
    /// Reads what the machine has: `devices/system/cpu` and `devices/system/node` of sysfs, `/proc/cpuinfo`, and `resctrl/info`.
    /// Nothing that is missing or malformed stops it.
    pub fn discover(tree: &dyn FileTree, roots: &Roots) -> Self {
        let mut reader = Reader::new(tree);
        let folder = roots.sys.join("devices/system/cpu");
        let online = online(&mut reader, &folder);
        let nodes = numa_nodes(&mut reader, &roots.sys.join("devices/system/node"));
        let (mut cores, mut sockets) = (Numbers(BTreeMap::new()), Numbers(BTreeMap::new()));
        let mut caches = Numbers(BTreeMap::new());
        let mut cpus = Vec::new();
        let mut l3_of_cpus = BTreeMap::new();
        for id in online.iter() {
            let cpu = folder.join(format!("cpu{id}"));
            let socket = reader.parsed(&cpu.join("topology/physical_package_id"), socket_id).flatten();
            cpus.push(Cpu {
                id,
                core: cores.of(core_key(&mut reader, &cpu, id, socket)),
                node: nodes.iter().find(|(_, cpus)| cpus.contains(id)).map_or(0, |(node, _)| *node),
                socket: sockets.of(socket),
            });
            l3_of_cpus.insert(id, l3(&mut reader, &cpu, &mut caches).unwrap_or(0));
        }
        let topology: CpuTopology = cpus.into_iter().collect();
        let switch =
            |reader: &mut Reader, path: &str| reader.parsed(&folder.join(path), number_of("a switch of the CPU"));
        let has_smt = switch(&mut reader, "smt/active").map(|active| active == 1);
        let has_turbo = switch(&mut reader, "intel_pstate/no_turbo") == Some(0);
        let l3_mask = reader.text(&roots.sys_fs.join("resctrl/info/L3/cbm_mask")).unwrap_or_default();
        Self {
            l3_of_cpus,
            info: reader.text(&roots.proc.join("cpuinfo")).map(|text| CpuInfo::parse(&text)).unwrap_or_default(),
            has_hyper_threading: has_smt.unwrap_or_else(|| topology.cores().any(|(_, cpus)| cpus.len() > 1)),
            has_turbo,
            l3_mask: String::from_utf8_lossy(&l3_mask).into_owned(),
            topology,
            skipped: reader.skipped,
        }
    }

    /// The numbers of the L3 caches with their CPUs, in order.
    pub fn l3_caches(&self) -> BTreeMap<u32, CpuSet> {
        let mut caches: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for (cpu, l3) in &self.l3_of_cpus {
            caches.entry(*l3).or_default().insert(*cpu);
        }
        caches
    }
}

/// The CPUs that are online; all that have a folder where the kernel does not list them.
fn online(reader: &mut Reader, folder: &Path) -> CpuSet {
    let listed = reader.parsed(&folder.join("online"), |text| parse_cpu_list("cpu/online", text));
    let listed = listed.filter(|cpus| !cpus.is_empty());
    listed.unwrap_or_else(|| reader.numbered(folder, "cpu").into_iter().map(|(cpu, _)| cpu).collect())
}

fn numa_nodes(reader: &mut Reader, folder: &Path) -> Vec<(u32, CpuSet)> {
    let nodes = reader.numbered(folder, "node");
    let cpus = |(node, folder): (u32, std::path::PathBuf)| {
        let cpus = reader.parsed(&folder.join("cpulist"), |text| parse_cpu_list("node/cpulist", text))?;
        Some((node, cpus))
    };
    nodes.into_iter().filter_map(cpus).collect()
}

/// `None` where the kernel knows no socket, which it writes as -1.
fn socket_id(text: &[u8]) -> Result<Option<u32>, ParseError> {
    let text = text.trim_ascii();
    if text == b"-1" {
        return Ok(None);
    }
    let field = Field { file: "topology/physical_package_id", field: "value" };
    unsigned_32(text).map(Some).ok_or_else(|| field.malformed(text, "a number or -1"))
}

fn core_key(reader: &mut Reader, cpu: &Path, id: u32, socket: Option<u32>) -> CoreKey {
    for name in ["topology/core_cpus_list", "topology/thread_siblings_list"] {
        let siblings = reader.parsed(&cpu.join(name), |text| parse_cpu_list("topology of a CPU", text));
        if let Some(siblings) = siblings.filter(|siblings| siblings.contains(id)) {
            return CoreKey::Siblings(siblings);
        }
    }
    let Some(core) = reader.parsed(&cpu.join("topology/core_id"), socket_id).flatten() else {
        return CoreKey::Alone(id);
    };
    CoreKey::Ids(socket, reader.parsed(&cpu.join("topology/die_id"), socket_id).flatten(), core)
}

/// The number of the L3 cache; counted in the order of first use where the kernel gives caches no numbers.
fn l3(reader: &mut Reader, cpu: &Path, caches: &mut Numbers<CpuSet>) -> Option<u32> {
    let indexes = reader.numbered(&cpu.join("cache"), "index");
    let level = |reader: &mut Reader, index: &Path| reader.parsed(&index.join("level"), number_of("cache/level"));
    let (_, l3) = indexes.into_iter().find(|(_, index)| level(reader, index) == Some(3))?;
    let number = reader.parsed(&l3.join("id"), number_of("cache/id"));
    number.or_else(|| {
        let shared =
            reader.parsed(&l3.join("shared_cpu_list"), |text| parse_cpu_list("cache/shared_cpu_list", text))?;
        Some(caches.of(shared))
    })
}

#[cfg(test)]
mod tests;
