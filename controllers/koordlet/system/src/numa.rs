//! The NUMA nodes of a machine: their CPUs, memory, huge pages and distances.

use std::path::Path;

use koord_scheduling::CpuSet;

use crate::{
    file_tree::{FileTree, Reader, SkippedFile, number_of},
    files::Roots,
    id_list::parse_cpu_list,
    meminfo::NumaMemInfo,
    number::parse_counter,
    parse_error::ParseError,
    text::{fields, unsigned_32},
};

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaNode {
    /// Its number.
    pub id: u32,
    /// Its CPUs; none of a node that has memory alone.
    pub cpus: CpuSet,
    /// `None` where its meminfo is missing or malformed.
    pub memory: Option<NumaMemInfo>,
    /// Its huge pages, from the smallest size to the largest.
    pub huge_pages: Vec<HugePages>,
    /// How far the memory of each node is, in the order of the nodes; 10 is its own. Empty where the kernel does not say.
    pub distances: Vec<u32>,
}

/// Huge pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// The size of a page.
    pub page_kib: u64,
    /// How many there are, used ones included.
    pub count: u64,
}

/// The NUMA nodes of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaNodes {
    /// In the order of their numbers, which are 0 to the last without a gap. Empty on a kernel without NUMA.
    pub nodes: Vec<NumaNode>,
    /// Files that are there and were not understood.
    pub skipped: Vec<SkippedFile>,
}

/// A number is missing among the NUMA nodes: the kernel is adding or removing a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("NUMA node {missing} is missing below node {last}; nodes are numbered without gaps")]
pub struct NumaGap {
    missing: u32,
    last: u32,
}

impl HugePages {
    /// Saturates.
    pub fn bytes(&self) -> u64 {
        self.page_kib.saturating_mul(1024).saturating_mul(self.count)
    }
}

impl NumaNode {
    /// The bytes of huge pages of a size; 0 where there are none.
    pub fn huge_page_bytes(&self, page_kib: u64) -> u64 {
        self.huge_pages.iter().find(|pages| pages.page_kib == page_kib).map_or(0, HugePages::bytes)
    }

    /// MemTotal without huge pages of all sizes, in bytes. `None` where the memory is not known.
    pub fn memory_without_huge_pages_bytes(&self) -> Option<u64> {
        let huge = self.huge_pages.iter().map(HugePages::bytes).fold(0, u64::saturating_add);
        self.memory.map(|memory| memory.total_bytes().saturating_sub(huge))
    }
}

impl NumaNodes {
    /// Reads `bus/node/devices` of sysfs. Nodes that can only begin transfers, and have neither CPUs nor memory, are left out.
    ///
    /// Fails where a number is missing among the nodes. A missing or malformed file of a node does not stop it.
    pub fn discover(tree: &dyn FileTree, roots: &Roots) -> Result<Self, NumaGap> {
        let mut reader = Reader::new(tree);
        let initiators = initiators_alone(&mut reader, &roots.sys.join("devices/system/node"));
        let mut nodes = Vec::new();
        for (id, folder) in reader.numbered(&roots.sys.join("bus/node/devices"), "node") {
            if !initiators.contains(id) {
                nodes.push(node(&mut reader, id, &folder));
            }
        }
        if let (Some(missing), Some(last)) = ((0..).zip(&nodes).find(|(at, node)| *at != node.id), nodes.last()) {
            return Err(NumaGap { missing: missing.0, last: last.id });
        }
        Ok(Self { nodes, skipped: reader.skipped })
    }
}

/// The nodes that have a generic initiator and neither CPUs nor memory. The lists of nodes have the form of lists of CPUs.
fn initiators_alone(reader: &mut Reader, folder: &Path) -> CpuSet {
    let mut list = |name: &str| {
        let list = reader.parsed(&folder.join(name), |text| parse_cpu_list("list of NUMA nodes", text));
        list.unwrap_or_default()
    };
    let initiators = list("has_generic_initiator");
    if initiators.is_empty() {
        return initiators;
    }
    initiators.difference(&list("has_cpu")).difference(&list("has_memory"))
}

fn node(reader: &mut Reader, id: u32, folder: &Path) -> NumaNode {
    let cpus = reader.parsed(&folder.join("cpulist"), |text| parse_cpu_list("cpulist of a NUMA node", text));
    let huge_pages_of = folder.join("hugepages");
    let sizes = reader.names(&huge_pages_of);
    let mut huge_pages: Vec<_> = sizes
        .iter()
        .filter_map(|name| {
            let page_kib = unsigned_32(name.strip_prefix("hugepages-")?.strip_suffix("kB")?.as_bytes())?;
            let count = reader
                .parsed(&huge_pages_of.join(name).join("nr_hugepages"), |text| parse_counter("nr_hugepages", text))?;
            Some(HugePages { page_kib: page_kib.into(), count })
        })
        .collect();
    huge_pages.sort_unstable_by_key(|pages| pages.page_kib);
    NumaNode {
        id,
        cpus: cpus.unwrap_or_default(),
        memory: reader.parsed(&folder.join("meminfo"), NumaMemInfo::parse),
        huge_pages,
        distances: reader.parsed(&folder.join("distance"), distances).unwrap_or_default(),
    }
}

fn distances(text: &[u8]) -> Result<Vec<u32>, ParseError> {
    fields(text).map(|distance| number_of("distance")(distance)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_tree::RecordedTree;

    fn roots() -> Roots {
        Roots { sys: "/sys".into(), ..Roots::host() }
    }

    fn discover(files: &[(&str, &str)]) -> Result<NumaNodes, NumaGap> {
        let tree: RecordedTree =
            files.iter().map(|(path, text)| (format!("/sys/{path}"), format!("{text}\n"))).collect();
        NumaNodes::discover(&tree, &roots())
    }

    const MEMORY: &str = "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 4194304 kB\nNode 0 Active(file): 0 kB\n\
        Node 0 Inactive(file): 0 kB\nNode 0 SReclaimable: 0 kB";

    #[test]
    fn nodes_have_cpus_memory_huge_pages_and_distances() {
        const GIB: u64 = 1 << 30;
        let nodes = discover(&[
            ("bus/node/devices/node0/cpulist", "0-1,4-5"),
            ("bus/node/devices/node0/meminfo", MEMORY),
            ("bus/node/devices/node0/distance", "10 21"),
            ("bus/node/devices/node0/hugepages/hugepages-1048576kB/nr_hugepages", "2"),
            ("bus/node/devices/node0/hugepages/hugepages-2048kB/nr_hugepages", "512"),
            ("bus/node/devices/node1/cpulist", ""),
            ("bus/node/devices/node1/meminfo", MEMORY),
            ("bus/node/devices/power", ""),
        ])
        .unwrap();
        let [first, second] = nodes.nodes.as_slice() else { panic!("{nodes:?}") };
        assert_eq!((first.cpus.to_string().as_str(), first.distances.as_slice()), ("0-1,4-5", [10, 21].as_slice()));
        assert_eq!(
            (first.huge_page_bytes(2048), first.huge_page_bytes(1 << 20), first.huge_page_bytes(64)),
            (GIB, 2 * GIB, 0)
        );
        assert_eq!(first.memory_without_huge_pages_bytes(), Some(5 * GIB));
        assert_eq!((second.cpus.len(), second.memory_without_huge_pages_bytes()), (0, Some(8 * GIB)));
        assert!(nodes.skipped.is_empty());
        let most = HugePages { page_kib: u64::MAX, count: u64::MAX };
        assert_eq!(most.bytes(), u64::MAX);
        assert_eq!(NumaNode { huge_pages: vec![most], ..first.clone() }.memory_without_huge_pages_bytes(), Some(0));
    }

    #[test]
    fn a_kernel_without_numa_has_no_nodes() {
        assert_eq!(discover(&[]), Ok(NumaNodes::default()));
    }

    #[test]
    fn numbers_are_without_a_gap_and_generic_initiators_do_not_count() {
        let nodes = [
            ("bus/node/devices/node0/cpulist", "0"),
            ("bus/node/devices/node2/cpulist", "1"),
            ("bus/node/devices/node3/cpulist", ""),
        ];
        let error = discover(&nodes).unwrap_err();
        assert_eq!(error.to_string(), "NUMA node 1 is missing below node 3; nodes are numbered without gaps");
        let nodes = [
            ("bus/node/devices/node0/cpulist", "0"),
            ("bus/node/devices/node1/cpulist", ""),
            ("bus/node/devices/node3/cpulist", ""),
            ("devices/system/node/has_generic_initiator", "0,3"),
            ("devices/system/node/has_cpu", "0"),
            ("devices/system/node/has_memory", "0-1"),
        ];
        assert_eq!(discover(&nodes).unwrap().nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn malformed_files_of_a_node_are_named() {
        let nodes = discover(&[
            ("bus/node/devices/node0/cpulist", "0-"),
            ("bus/node/devices/node0/meminfo", "Node 0 MemTotal: 1 kB"),
            ("bus/node/devices/node0/distance", "10 x"),
            ("bus/node/devices/node0/hugepages/hugepages-2048kB/nr_hugepages", "many"),
        ])
        .unwrap();
        assert_eq!(nodes.nodes, [NumaNode::default()]);
        let skipped: Vec<_> = nodes.skipped.iter().map(ToString::to_string).collect();
        let folder = "/sys/bus/node/devices/node0";
        assert_eq!(
            skipped,
            [
                format!("{folder}/cpulist: cpulist of a NUMA node: CPUs is \"0-\", not a list such as 0-3,8"),
                format!(
                    "{folder}/hugepages/hugepages-2048kB/nr_hugepages: nr_hugepages: value is \"many\", \
                     not a number from 0 to 18446744073709551615"
                ),
                format!("{folder}/meminfo: meminfo of a NUMA node lacks MemFree"),
                format!("{folder}/distance: distance: value is \"x\", not a number from 0 to 4294967295"),
            ]
        );
    }
}
