//! Devices on the PCI bus, as sysfs shows them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use koord_koordlet_system::FileTree;
use koord_types::device::DeviceTopology;

/// The address of a function on the PCI bus, such as `0000:1a:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PciAddress {
    pub domain: u32,
    pub bus: u8,
    pub device: u8,
    pub function: u8,
}

/// The socket of a device is not looked for; NUMA nodes say more.
const NO_SOCKET: i32 = -1;

impl PciAddress {
    /// Reads an address of sysfs, or of NVIDIA, whose domains have eight digits and capital letters. `None` of another text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (domain, bus, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (device, function) = rest.split_once('.')?;
        let hex = |text: &str, digits: usize| {
            let is_hex = (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        let byte = |text, digits| hex(text, digits).and_then(|number| u8::try_from(number).ok());
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            domain: hex(domain, 8)?,
            bus: byte(bus, 2)?,
            device: byte(device, 2)?,
            function: byte(function, 1)?,
        })
    }

    /// The folder of the device on the bus.
    pub fn folder(&self, sys: &Path) -> PathBuf {
        sys.join("bus/pci/devices").join(self.to_string())
    }

    /// Where the device is: its NUMA node, 0 where the kernel names none or writes −1; and the root of its PCIe tree, the first
    /// `pci<domain>:<bus>` on its path in sysfs, empty where there is none.
    pub fn topology(&self, tree: &dyn FileTree, sys: &Path) -> DeviceTopology {
        let folder = self.folder(sys);
        let node = tree.read(&folder.join("numa_node")).ok();
        let node = node.and_then(|text| std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok());
        let path = tree.resolve(&folder).unwrap_or_default();
        DeviceTopology {
            socket_id: NO_SOCKET,
            node_id: node.unwrap_or(0).max(0),
            pcie_id: pcie_root(&path.to_string_lossy()).unwrap_or_default(),
            bus_id: self.to_string(),
        }
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

/// The first `pci` with four digits, a colon and two hexadecimal digits.
fn pcie_root(path: &str) -> Option<String> {
    path.match_indices("pci").find_map(|(at, _)| {
        let root = path.get(at..at + 10)?;
        let (domain, bus) = root.strip_prefix("pci")?.split_once(':')?;
        let is_root = domain.len() == 4
            && domain.bytes().all(|byte| byte.is_ascii_digit())
            && bus.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_root.then(|| root.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::HostTree;

    use super::*;

    #[test]
    fn addresses_of_sysfs_and_of_nvidia_are_read() {
        for (text, expected) in [
            ("0000:1a:00.0", Some("0000:1a:00.0")),
            ("00000000:1A:00.0", Some("0000:1a:00.0")),
            ("00010000:1A:1F.7", Some("10000:1a:1f.7")),
            ("1a:00.0", None),
            ("0000:1a:00", None),
            ("0000:1a:00.0:1", None),
            ("0000:+a:00.0", None),
            ("000000000:1a:00.0", None),
            ("0000:1a1:00.0", None),
            ("", None),
        ] {
            let address = PciAddress::parse(text).map(|address| address.to_string());
            assert_eq!(address.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_pcie_root_is_the_first_on_the_path() {
        for (path, expected) in [
            ("/sys/devices/pci0000:1a/0000:1a:02.0/0000:1b:00.0", Some("pci0000:1a")),
            ("/sys/devices/pci0000:1A/pci0000:1b", Some("pci0000:1A")),
            ("/sys/bus/pci/devices/pci0000:00", Some("pci0000:00")),
            ("/sys/devices/pci10000:00/x", None),
            ("/sys/devices/pcid00:1a", None),
            ("/sys/devices/vmd/pci", None),
            ("", None),
        ] {
            assert_eq!(pcie_root(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_device_is_at_its_numa_node_and_pcie_root() {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path();
        let at = |address: &str, folder: &str, node: Option<&str>| {
            let target = sys.join("devices").join(folder).join(address);
            std::fs::create_dir_all(&target).unwrap();
            std::fs::create_dir_all(sys.join("bus/pci/devices")).unwrap();
            std::os::unix::fs::symlink(&target, sys.join("bus/pci/devices").join(address)).unwrap();
            if let Some(node) = node {
                std::fs::write(target.join("numa_node"), node).unwrap();
            }
            let topology = PciAddress::parse(address).unwrap().topology(&HostTree, sys);
            (topology.socket_id, topology.node_id, topology.pcie_id, topology.bus_id)
        };
        let expected = |node, pcie: &str, bus: &str| (-1, node, pcie.to_owned(), bus.to_owned());
        assert_eq!(at("0000:00:07.0", "pci0000:00", Some("-1\n")), expected(0, "pci0000:00", "0000:00:07.0"));
        assert_eq!(at("0000:00:08.0", "pci0000:00", Some("1\n")), expected(1, "pci0000:00", "0000:00:08.0"));
        assert_eq!(at("0000:00:09.0", "vmd", None), expected(0, "", "0000:00:09.0"));
        let absent = PciAddress::parse("0000:ff:00.0").unwrap().topology(&HostTree, sys);
        assert_eq!((absent.node_id, absent.pcie_id.as_str()), (0, ""));
    }
}
