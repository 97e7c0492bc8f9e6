//! Network cards with remote direct memory access (RDMA), by sysfs.

mod device_files;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use koord_koordlet_system::FileTree;
use koord_types::device::DeviceTopology;

pub use self::device_files::{CharacterDevice, CharacterDeviceError, rdma_device_files, rdma_device_paths};
use crate::{
    found::{Health, VirtualFunctions},
    pci::PciAddress,
};

/// The RDMA cards of the node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RdmaCards {
    /// By PCI address.
    pub cards: Vec<RdmaCard>,
    /// Cards that are not understood in part, and what was assumed.
    pub skipped: Vec<SkippedCard>,
}

/// A card: a physical function.
#[derive(Clone, Debug, PartialEq)]
pub struct RdmaCard {
    pub address: PciAddress,
    /// Its first InfiniBand device, such as `mlx5_0`.
    pub name: String,
    pub minor: i32,
    pub topology: DeviceTopology,
    pub health: Health,
    pub virtual_functions: VirtualFunctions,
}

/// Something of a card that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct SkippedCard {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it, and what was done.
    pub reason: String,
}

/// Class of PCI devices: network controllers.
const NETWORK_CLASS: &str = "0x02";
const ACTIVE: &str = "ACTIVE";
const NO_PORT: &str = "NoPort";
const PORT_NOT_ACTIVE: &str = "PortNotActive";

impl RdmaCards {
    /// Looks for network controllers with InfiniBand devices on the PCI bus; virtual functions belong to their card and are none.
    ///
    /// The minor number of a card whose device is named `mlx<digits>_<number>` is that number; others get the lowest free ones in the order of their
    /// addresses. A card is healthy when it has ports and all are `ACTIVE`.
    pub fn discover(tree: &dyn FileTree, sys: &Path) -> Self {
        let mut found = Self::default();
        for entry in tree.names(&sys.join("bus/pci/devices")).unwrap_or_default() {
            let Some(address) = PciAddress::parse(&entry) else { continue };
            let folder = address.folder(sys);
            let is_network = text(tree, &folder.join("class")).is_some_and(|class| class.starts_with(NETWORK_CLASS));
            let is_virtual = || tree.resolve(&folder.join("physfn")).is_ok();
            if !is_network || is_virtual() {
                continue;
            }
            let names = tree.names(&folder.join("infiniband")).unwrap_or_default();
            let Some(name) = names.into_iter().next() else { continue };
            let virtual_functions = found.virtual_functions(tree, &folder);
            found.cards.push(RdmaCard {
                minor: NO_MINOR,
                health: health(tree, sys, &name),
                topology: address.topology(tree, sys),
                virtual_functions,
                name,
                address,
            });
        }
        found.cards.sort_by_key(|card| card.address);
        number(&mut found.cards);
        found
    }

    /// The virtual functions that are switched on.
    fn virtual_functions(&mut self, tree: &dyn FileTree, folder: &Path) -> VirtualFunctions {
        let path = folder.join("sriov_numvfs");
        let count = match text(tree, &path).map(|text| text.parse::<u32>().map_err(|_| text)) {
            None => 0,
            Some(Ok(count)) => count,
            Some(Err(text)) => {
                let reason = format!("{text:?} is not a number; the card is reported without virtual functions");
                self.skipped.push(SkippedCard { path, reason });
                0
            }
        };
        if count == 0 {
            return VirtualFunctions::default();
        }
        let mut addresses = Vec::new();
        for entry in tree.names(folder).unwrap_or_default().iter().filter(|entry| entry.starts_with("virtfn")) {
            let path = folder.join(entry);
            let target = tree.resolve(&path).ok();
            let address = target.and_then(|target| PciAddress::parse(target.file_name()?.to_str()?));
            if address.is_none() {
                let reason = "the link leads to no PCI device; the virtual function is left out".to_owned();
                self.skipped.push(SkippedCard { path, reason });
            }
            addresses.extend(address);
        }
        addresses.sort_unstable();
        VirtualFunctions(addresses.iter().map(ToString::to_string).collect())
    }
}

/// Until a card has its number.
const NO_MINOR: i32 = -1;

/// Gives cards, in the order of their addresses, their numbers.
fn number(cards: &mut [RdmaCard]) {
    let mut taken = BTreeMap::new();
    for (at, card) in cards.iter().enumerate() {
        if let Some(minor) = number_of_name(&card.name) {
            taken.entry(minor).or_insert(at);
        }
    }
    let mut free = (0..).filter(|minor| !taken.contains_key(minor));
    let named: BTreeMap<usize, i32> = taken.iter().map(|(minor, at)| (*at, *minor)).collect();
    for (at, card) in cards.iter_mut().enumerate() {
        card.minor = named.get(&at).copied().or_else(|| free.next()).unwrap_or(NO_MINOR);
    }
}

/// The number in `mlx<digits>_<number>`.
fn number_of_name(name: &str) -> Option<i32> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (generation, number) = name.strip_prefix("mlx")?.split_once('_')?;
    (is_digits(generation) && is_digits(number)).then(|| number.parse().ok())?
}

fn health(tree: &dyn FileTree, sys: &Path, name: &str) -> Health {
    let folder = sys.join("class/infiniband").join(name).join("ports");
    let ports = tree.names(&folder).unwrap_or_default();
    if ports.is_empty() {
        return Health::unhealthy(NO_PORT, format!("{} has no port", folder.display()));
    }
    let broken = ports.iter().find_map(|port| {
        let state = text(tree, &folder.join(port).join("state")).unwrap_or_else(|| "unknown".to_owned());
        (!state.contains(ACTIVE)).then(|| format!("port {port} of {name} is {state}"))
    });
    broken.map_or(Health::Healthy, |message| Health::unhealthy(PORT_NOT_ACTIVE, message))
}

fn text(tree: &dyn FileTree, path: &Path) -> Option<String> {
    tree.read(path).ok().map(|content| String::from_utf8_lossy(content.trim_ascii()).into_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use koord_koordlet_system::HostTree;
    use tempfile::TempDir;

    use super::*;

    struct Sysfs(TempDir);

    impl Sysfs {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn write(&self, path: &str, content: &str) {
            let path = self.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        /// A network controller below a PCIe root, with its link on the bus.
        fn controller(&self, root: &str, address: &str, class: &str) -> String {
            let folder = format!("devices/{root}/{address}");
            self.write(&format!("{folder}/class"), &format!("{class}\n"));
            self.write(&format!("{folder}/numa_node"), "1\n");
            let bus = self.path().join("bus/pci/devices");
            fs::create_dir_all(&bus).unwrap();
            symlink(self.path().join(&folder), bus.join(address)).unwrap();
            folder
        }

        /// An InfiniBand device with the states of its ports.
        fn infiniband(&self, folder: &str, name: &str, ports: &[&str]) {
            self.write(&format!("{folder}/infiniband/{name}/node_type"), "1: CA\n");
            for (at, state) in ports.iter().enumerate() {
                self.write(&format!("class/infiniband/{name}/ports/{}/state", at + 1), &format!("{state}\n"));
            }
        }

        fn discover(&self) -> RdmaCards {
            RdmaCards::discover(&HostTree, self.path())
        }
    }

    #[test]
    fn cards_are_controllers_of_networks_with_infiniband_devices() {
        let sysfs = Sysfs::new();
        let card = sysfs.controller("pci0000:1a", "0000:1b:00.0", "0x020700");
        sysfs.infiniband(&card, "mlx5_3", &["4: ACTIVE"]);
        let ethernet = sysfs.controller("pci0000:3a", "0000:3b:00.0", "0x020000");
        sysfs.infiniband(&ethernet, "mlx5_0", &["4: ACTIVE", "1: DOWN"]);
        // Others: without InfiniBand, of another class, a virtual function.
        sysfs.controller("pci0000:3a", "0000:3c:00.0", "0x020000");
        let disk = sysfs.controller("pci0000:3a", "0000:3d:00.0", "0x010802");
        sysfs.infiniband(&disk, "mlx5_7", &["4: ACTIVE"]);
        let virtual_function = sysfs.controller("pci0000:1a", "0000:1b:00.2", "0x020700");
        sysfs.infiniband(&virtual_function, "mlx5_4", &["4: ACTIVE"]);
        symlink("../0000:1b:00.0", sysfs.path().join(&virtual_function).join("physfn")).unwrap();
        let RdmaCards { cards, skipped } = sysfs.discover();
        assert_eq!(skipped, []);
        let topology = |pcie: &str, bus: &str| DeviceTopology {
            socket_id: -1,
            node_id: 1,
            pcie_id: pcie.to_owned(),
            bus_id: bus.to_owned(),
        };
        let card = |pcie: &str, bus: &str, name: &str, minor, health| RdmaCard {
            address: PciAddress::parse(bus).unwrap(),
            name: name.to_owned(),
            minor,
            topology: topology(pcie, bus),
            health,
            virtual_functions: VirtualFunctions::default(),
        };
        let down = Health::unhealthy("PortNotActive", "port 2 of mlx5_0 is 1: DOWN");
        assert_eq!(
            cards,
            [
                card("pci0000:1a", "0000:1b:00.0", "mlx5_3", 3, Health::Healthy),
                card("pci0000:3a", "0000:3b:00.0", "mlx5_0", 0, down)
            ]
        );
    }

    #[test]
    fn cards_of_any_name_have_numbers_of_their_own() {
        let sysfs = Sysfs::new();
        for (address, name) in [
            ("0000:03:00.0", "rocep31s0f0"),
            ("0000:01:00.0", "mlx5_1"),
            ("0000:02:00.0", "bnxt_re0"),
            ("0000:04:00.0", "mlx4_1"),
            ("0000:05:00.0", "mlx5_bond_0"),
        ] {
            let folder = sysfs.controller("pci0000:00", address, "0x020000");
            sysfs.infiniband(&folder, name, &["4: ACTIVE"]);
        }
        let numbers = sysfs.discover().cards.into_iter().map(|card| (card.name, card.minor)).collect::<Vec<_>>();
        let expected = [("mlx5_1", 1), ("bnxt_re0", 0), ("rocep31s0f0", 2), ("mlx4_1", 3), ("mlx5_bond_0", 4)];
        assert_eq!(numbers, expected.map(|(name, minor)| (name.to_owned(), minor)));
    }

    #[test]
    fn numbers_are_read_from_names_of_mellanox() {
        for (name, expected) in [
            ("mlx5_3", Some(3)),
            ("mlx5_12", Some(12)),
            ("mlx4_0", Some(0)),
            ("mlx_0", None),
            ("mlx5_", None),
            ("mlx5_3a", None),
            ("mlx5_99999999999", None),
            ("rocep31s0f0", None),
        ] {
            assert_eq!(number_of_name(name), expected, "{name}");
        }
    }

    #[test]
    fn the_first_device_of_a_card_counts_and_one_without_ports_is_unhealthy() {
        let sysfs = Sysfs::new();
        let folder = sysfs.controller("pci0000:1a", "0000:1b:00.0", "0x020000");
        sysfs.infiniband(&folder, "mlx5_2", &["4: ACTIVE"]);
        sysfs.infiniband(&folder, "mlx5_1", &[]);
        let cards = sysfs.discover().cards;
        let Health::Unhealthy { reason, message } = &cards[0].health else { panic!("it is unhealthy") };
        assert_eq!((cards[0].minor, reason.as_str()), (1, "NoPort"));
        assert!(message.ends_with("class/infiniband/mlx5_1/ports has no port"), "{message}");
    }

    #[test]
    fn virtual_functions_that_are_on_are_sorted_by_address() {
        let sysfs = Sysfs::new();
        let folder = sysfs.controller("pci0000:1a", "0000:1b:00.0", "0x020000");
        sysfs.infiniband(&folder, "mlx5_0", &["4: ACTIVE"]);
        for (link, target) in [("virtfn0", "0000:1b:00.3"), ("virtfn1", "0000:1b:00.2"), ("virtfn2", "nothing")] {
            let target_folder = sysfs.path().join("devices/pci0000:1a").join(target);
            fs::create_dir_all(&target_folder).unwrap();
            symlink(target_folder, sysfs.path().join(&folder).join(link)).unwrap();
        }
        let functions = |count: &str| {
            sysfs.write(&format!("{folder}/sriov_numvfs"), count);
            let RdmaCards { cards, skipped } = sysfs.discover();
            let skipped = skipped.iter().map(|skipped| skipped.path.file_name().unwrap().to_owned());
            (cards[0].virtual_functions.0.clone(), skipped.collect::<Vec<_>>())
        };
        assert_eq!(functions("0\n"), (vec![], vec![]));
        assert_eq!(functions("2\n"), (vec!["0000:1b:00.2".into(), "0000:1b:00.3".into()], vec!["virtfn2".into()]));
        assert_eq!(functions("many\n"), (vec![], vec!["sriov_numvfs".into()]));
    }

    #[test]
    fn a_machine_without_pci_has_no_cards() {
        assert_eq!(Sysfs::new().discover(), RdmaCards::default());
    }
}
